//! S3: our vault beside the bare client library that only puts the bytes, on a server that keeps objects as files.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStoreExt as _, PutPayload};
use test_stores::S3Server;
use test_stores::s3::{ACCESS_KEY_ID, BUCKET, SECRET_ACCESS_KEY};
use vault::Vault as _;
use vault::s3::{Addressing, Credentials, PlainHttp, S3Vault, Settings};

use super::{Load, ROUNDS, each, put_all, spooled, timed};
use crate::report::Row;

const REGION: &str = "us-east-1";
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The rows of this store.
pub(super) async fn rows(loads: &[Load]) -> Result<Vec<Row>> {
    let parent = std::env::current_exe()?.parent().context("no folder")?.to_owned();
    let mut rows = Vec::new();
    for load in loads {
        let name = format!("s3 {}", load.name);
        let (mut ours, mut limit) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // A server and a folder of its own, so that no round finds what another left.
            let server = S3Server::fast_in(&parent);
            let vault = Arc::new(S3Vault::open(&settings(&server))?);
            let bare = Arc::new(bare_client(&server)?);
            vault.probe().await?;
            put_bare(Arc::clone(&bare), vec![Bytes::from_static(b"connected")], 1).await?;
            let contents = load.contents(round);
            let (mut ours_s, mut limit_s) = (0.0, 0.0);
            // Who goes first finds another disk than who goes second: in each half of a round somebody else.
            for (half, contents) in contents.chunks(contents.len() / 2).enumerate() {
                let (blobs, _spool) = spooled(contents, &parent).await?;
                let (bare, contents) = (Arc::clone(&bare), contents.to_vec());
                let bare = timed(put_bare(bare, contents, load.side_by_side));
                let ours = timed(put_all(Arc::clone(&vault), blobs, load.side_by_side));
                if half % 2 == 0 {
                    ours_s += ours.await?;
                    limit_s += bare.await?;
                } else {
                    limit_s += bare.await?;
                    ours_s += ours.await?;
                }
            }
            ours.push(ours_s);
            limit.push(limit_s);
            eprintln!(
                "{name}: round {} of {ROUNDS}: {:.3} s, limit {:.3} s",
                round + 1,
                ours[round],
                limit[round]
            );
        }
        rows.push(load.row(&name, (ours, limit)));
    }
    Ok(rows)
}

fn settings(server: &S3Server) -> Settings {
    Settings {
        bucket: BUCKET.to_owned(),
        prefix: "ours/".to_owned(),
        region: REGION.to_owned(),
        endpoint: Some(server.endpoint()),
        addressing: Addressing::Path,
        plain_http: PlainHttp::Allowed,
        ca_file: None,
        credentials: Credentials::Given {
            access_key_id: ACCESS_KEY_ID.to_owned(),
            secret_access_key: SECRET_ACCESS_KEY.to_owned(),
        },
        silence_max: SILENCE_MAX,
    }
}

/// The library as it comes.
fn bare_client(server: &S3Server) -> Result<AmazonS3> {
    let builder = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_bucket_name(BUCKET)
        .with_region(REGION)
        .with_access_key_id(ACCESS_KEY_ID)
        .with_secret_access_key(SECRET_ACCESS_KEY)
        .with_client_options(ClientOptions::new().with_allow_http(true));
    Ok(builder.build()?)
}

async fn put_bare(store: Arc<AmazonS3>, contents: Vec<Bytes>, side_by_side: usize) -> Result<()> {
    let numbered: Vec<(usize, Bytes)> = contents.into_iter().enumerate().collect();
    each(numbered, side_by_side, move |(number, content)| {
        let store = Arc::clone(&store);
        async move {
            store.put(&Path::from(format!("bare/{number}")), PutPayload::from_bytes(content)).await?;
            Ok(())
        }
    })
    .await
}
