//! Bytes that came in, from wherever: checked as they are, judged by the operator's policy, and described for the ledger.
//!
//! Guarantees: what is checked is what is stored (both read the same spool); checking runs off the async threads; every
//! finding is counted, whatever follows from it.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use ledger::LedgerError;
use ledger::documents::BlobFacts;
use ledger::saves::Committed;
use model::checking::{Effect, Extent, Source, Weight, rule_on_finding};
use model::saves::Ruling;
use model::{Digest, DocumentId};
use office_check::{Code, Hint, Kind, Limits, Report, Severity};
use vault::{Sidecar, Spooled, VaultError, read_verified};

use crate::app::App;
use crate::room::space;
use crate::telemetry;

/// Why bytes could not be checked. It passes: try again.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The spool cannot be read.
    #[error("the spool cannot be read")]
    Spool(#[source] VaultError),
    /// The check was interrupted.
    #[error("the check was interrupted")]
    Interrupted,
}

/// Why an upload did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// More bytes than allowed.
    #[error("the upload is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The caller stopped.
    #[error("the upload broke off")]
    BrokenOff,
    /// There is too little room on the disk.
    #[error("there is too little room on the disk")]
    NoRoom,
    /// The spool cannot take it.
    #[error("the spool cannot take the upload")]
    Spool(#[source] VaultError),
}

/// Why bytes could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The ledger could not be asked about them.
    #[error("the ledger failed")]
    Ledger(#[from] LedgerError),
    /// The vault did not take them.
    #[error("the vault failed")]
    Vault(#[from] VaultError),
}

/// Which life of its blob stored bytes belong to: the ledger refuses a row for bytes that were removed after they were stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life(u64);

/// Stores spooled bytes. Asks first how often they were removed, so that a removal meanwhile is noticed.
pub(crate) async fn store(app: &App, spooled: &Spooled, sidecar: &Sidecar) -> Result<Life, StoreError> {
    let life = life_of(app, spooled).await?;
    app.vault.put(&spooled.in_life(life.0), sidecar).await?;
    Ok(life)
}

/// The first half of [`store`], for whoever puts the bytes somewhere else.
pub(crate) async fn life_of(app: &App, spooled: &Spooled) -> Result<Life, LedgerError> {
    Ok(Life(app.ledger.removals_of(&spooled.digest).await?))
}

/// Takes the body of an upload into the spool, within the limit.
pub(crate) async fn spool_upload<E>(
    app: &App,
    body: impl Stream<Item = Result<Bytes, E>>,
) -> Result<Spooled, UploadError> {
    if !space(app).takes_uploads() {
        return Err(UploadError::NoRoom);
    }
    let limit_bytes = app.config.server.upload_bytes_max;
    let mut writer = app.spool.begin();
    let mut body = std::pin::pin!(body);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|_| UploadError::BrokenOff)?;
        if writer.size_bytes() + chunk.len() as u64 > limit_bytes {
            return Err(UploadError::TooLarge { limit_bytes });
        }
        writer.write(&chunk).await.map_err(UploadError::Spool)?;
    }
    writer.finish().await.map_err(UploadError::Spool)
}

/// Takes a blob out of the vault into the spool, verified, for whoever has to read it from anywhere.
pub(crate) async fn spool_blob(app: &App, digest: &Digest) -> Result<Spooled, VaultError> {
    let blob = app.vault.open(digest, None).await?;
    app.spool.take_in(read_verified(blob.reader, *digest), "read a blob").await
}

/// What the check and the policy say of bytes.
pub(crate) struct Checked {
    kind: Kind,
    flags: Vec<&'static str>,
    extent: Option<Extent>,
    /// Why they are refused, if they are: the first finding that refuses, in a sentence.
    pub(crate) refusal: Option<String>,
}

/// What a link to a forgotten file promises: it ends in the file's own name.
pub(crate) fn hint_of(link: &str) -> Hint {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    Hint::from_extension(path.rsplit('.').next().unwrap_or_default())
}

/// Checks spooled bytes.
pub(crate) async fn check(
    app: &App,
    spooled: &Spooled,
    (hint, source): (Hint, Source),
) -> Result<Checked, CheckError> {
    let spooled = spooled.clone();
    let checking = tokio::task::spawn_blocking(move || {
        spooled.reader().map(|reader| office_check::check(reader, hint, &Limits::default()))
    });
    let report = checking.await.map_err(|_| CheckError::Interrupted)?.map_err(CheckError::Spool)?;
    Ok(judge(app, source, &report))
}

fn judge(app: &App, source: Source, report: &Report) -> Checked {
    let mut checked =
        Checked { kind: report.kind, flags: Vec::new(), extent: report.extent.map(extent_of), refusal: None };
    for finding in &report.findings {
        let code = finding.code.as_str();
        let effect = rule_on_finding(&app.config.checking, source, (code, weight_of(finding.code)));
        telemetry::found(code, effect.as_str());
        if effect == Effect::Refused && checked.refusal.is_none() {
            checked.refusal = Some(finding.message.clone());
        }
        if matches!(effect, Effect::Flagged | Effect::Refused) && !checked.flags.contains(&code) {
            checked.flags.push(code);
        }
    }
    checked
}

fn weight_of(code: Code) -> Weight {
    match (code, code.severity()) {
        (Code::HostileMarkup, _) => Weight::OverLimit,
        (_, Severity::Note) => Weight::Note,
        (_, Severity::Notice) => Weight::Notice,
        (_, Severity::Fatal) => Weight::Damage,
    }
}

fn extent_of(extent: office_check::Extent) -> Extent {
    let office_check::Extent { text_bytes, cells, formulas, sheets, slides, pictures } = extent;
    Extent { text_bytes, cells, formulas, sheets, slides, pictures }
}

/// Much content had vanished in what was just committed: counted, and told unless the rule runs in shadow mode.
pub(crate) fn tell_vanished(app: &App, committed: &Committed) {
    let is_held = matches!(committed.ruling, Some(Ruling::KeepAside(_)));
    for code in committed.vanished.iter().map(|vanished| vanished.as_str()) {
        let effect = match app.config.checking.is_live(code) {
            false => Effect::Shadowed,
            true if is_held => Effect::Refused,
            true => Effect::Flagged,
        };
        telemetry::found(code, effect.as_str());
        if effect == Effect::Flagged {
            telemetry::alert("content-vanished");
            let document = committed.document.as_ref().map_or("?", DocumentId::as_str);
            tracing::warn!(
                document.id = document,
                code,
                "much of document {document} vanished with its newest content; what it held before is kept"
            );
        }
    }
}

/// The company has more than it may after what was just committed. Work that is done is never refused.
pub(crate) fn tell_over_quota(committed: &Committed) {
    if let Some(exceeded) = committed.over_quota {
        telemetry::alert("over-quota");
        let document = committed.document.as_ref().map_or("?", DocumentId::as_str);
        tracing::warn!(
            document.id = document,
            "document {document} was saved although its company may keep no more than {exceeded}"
        );
    }
}

impl Checked {
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// What the ledger writes down about these bytes in the vault.
    pub(crate) fn facts(&self, spooled: &Spooled, life: Life) -> BlobFacts {
        BlobFacts {
            digest: spooled.digest,
            size_bytes: spooled.size_bytes,
            file_type: self.kind.to_string(),
            flags: self.flags.join(","),
            extent: self.extent,
            removals: life.0,
        }
    }
}

/// What the ledger writes down about bytes that nobody looked into.
pub(crate) fn unchecked_facts(spooled: &Spooled, file_type: &str, life: Life) -> BlobFacts {
    BlobFacts {
        digest: spooled.digest,
        size_bytes: spooled.size_bytes,
        file_type: file_type.to_owned(),
        flags: String::new(),
        extent: None,
        removals: life.0,
    }
}
