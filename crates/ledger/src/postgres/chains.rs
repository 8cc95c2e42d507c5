//! Appends to many audit chains at once: an import tells thousands of things of hundreds of organisations.
//!
//! Guarantees: as [`super::audit`]'s, with a statement for each table and not for each entry. Chains are locked in the order of
//! their names. Does not do: chains of documents, companies or scopes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::Digest;
use model::audit::{CHAIN_START, Entry, hash_of};

use super::rows::{all, asked, get, text};
use super::step::Step;
use crate::Result;
use crate::documents::Author;

/// Something that was done, in the chain it belongs to.
pub(super) struct Told {
    pub(super) chain: String,
    pub(super) action: &'static str,
    pub(super) details: String,
}

/// Appends in the given order.
pub(super) async fn append(step: &Step, (by, at): (&Author, Timestamp), told: &[Told]) -> Result<()> {
    if told.is_empty() {
        return Ok(());
    }
    let mut ends = lock(step, told).await?;
    let (mut entries, mut hashes) = (Vec::with_capacity(told.len()), Vec::with_capacity(told.len()));
    for each in told {
        let end = ends.entry(each.chain.clone()).or_insert((0, CHAIN_START));
        let entry = Entry {
            chain: each.chain.clone(),
            sequence: end.0 + 1,
            at,
            actor: text(&by.id).into_owned(),
            from: text(&by.from).into_owned(),
            action: each.action.to_owned(),
            outcome: "done".to_owned(),
            details: each.details.clone(),
        };
        *end = (entry.sequence, hash_of(&end.1, &entry));
        hashes.push(end.1.as_bytes().to_vec());
        entries.push(entry);
    }
    write(step, &entries, &hashes).await?;
    let update = "UPDATE chains c SET sequence = n.sequence, hash = n.hash
                  FROM UNNEST($1::text[], $2::bigint[], $3::bytea[]) AS n (chain, sequence, hash) WHERE c.chain = n.chain";
    let names: Vec<&str> = ends.keys().map(String::as_str).collect();
    let sequences: Vec<i64> = ends.values().map(|(sequence, _)| asked(*sequence)).collect();
    let hashes: Vec<Vec<u8>> = ends.values().map(|(_, hash)| hash.as_bytes().to_vec()).collect();
    step.execute(update, &[&names, &sequences, &hashes]).await?;
    Ok(())
}

/// The ends of the chains, which nobody else moves from now on.
async fn lock(step: &Step, told: &[Told]) -> Result<BTreeMap<String, (u64, Digest)>> {
    let mut names: Vec<&str> = told.iter().map(|each| each.chain.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let insert = "INSERT INTO chains (chain, sequence, hash)
                  SELECT n.chain, 0, $2::bytea FROM UNNEST($1::text[]) WITH ORDINALITY AS n (chain, place) ORDER BY n.place
                  ON CONFLICT DO NOTHING";
    step.execute(insert, &[&names, &CHAIN_START.as_bytes().as_slice()]).await?;
    let query =
        "SELECT chain, sequence, hash FROM chains WHERE chain = ANY($1) ORDER BY chain FOR NO KEY UPDATE";
    let rows = step.query(query, &[&names]).await?;
    let ends = all(&rows, |row| Ok((get(row, "chain")?, (get(row, "sequence")?, get(row, "hash")?))))?;
    Ok(ends.into_iter().collect())
}

async fn write(step: &Step, entries: &[Entry], hashes: &[Vec<u8>]) -> Result<()> {
    let texts = |of: fn(&Entry) -> &str| -> Vec<&str> { entries.iter().map(of).collect() };
    step.execute(
        "INSERT INTO audit (chain, sequence, at_ms, actor, came_from, action, outcome, details, hash, company)
         SELECT n.*, '' FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
           $8::text[], $9::bytea[]) AS n",
        &[
            &texts(|entry| &entry.chain),
            &entries.iter().map(|entry| asked(entry.sequence)).collect::<Vec<_>>(),
            &entries.iter().map(|entry| entry.at.as_millisecond()).collect::<Vec<_>>(),
            &texts(|entry| &entry.actor),
            &texts(|entry| &entry.from),
            &texts(|entry| &entry.action),
            &texts(|entry| &entry.outcome),
            &texts(|entry| &entry.details),
            &hashes,
        ],
    )
    .await?;
    Ok(())
}
