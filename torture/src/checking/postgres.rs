//! The ledger of several instances, read from PostgreSQL past all of them.
//!
//! Guarantees: one answer, one moment: all queries see the same snapshot. Rows are read as they stand.

use anyhow::{Context as _, Result, bail};

use super::ledger::{ContentRow, DocumentRow, KeptRow, Ledger};
use crate::cluster::LedgerEngine;

/// Every row in one query, each as a row of texts behind the name of what it is: one statement has one snapshot.
const EVERYTHING: &str = "
SELECT 'document' AS what, ARRAY[id, name, encode(head_digest, 'hex'), (published_version IS NOT NULL)::text] AS cells,
    id AS one, 0::bigint AS two, 0::bigint AS three FROM documents
UNION ALL
SELECT 'content', ARRAY[c.document, c.version::text, c.checkpoint::text, encode(c.digest, 'hex'), c.key, c.saved_ms::text,
    c.is_filed_beside::text, i.status::text, i.url_path, i.last_save_ms::text], c.document, c.version, c.checkpoint
    FROM contents c LEFT JOIN inbox i ON i.number = c.inbox
UNION ALL
SELECT 'kept', ARRAY[k.number::text, k.document, k.kind, k.reason, encode(k.digest, 'hex'), k.key, i.last_save_ms::text],
    '', k.number, 0 FROM kept k LEFT JOIN inbox i ON i.number = k.inbox
UNION ALL
SELECT 'live', ARRAY[key, document], key, 0, 0 FROM keys WHERE state = 'live' AND mode = 'edit'
UNION ALL SELECT * FROM (
SELECT 'dump', ARRAY['document', id, head_version::text, head_checkpoint::text, encode(head_digest, 'hex'), last_version::text,
    key_counter::text, owes_since_ms::text, published_version::text, published_checkpoint::text, audit_sequence::text],
    id, 0::bigint, 0::bigint FROM documents
UNION ALL
SELECT 'dump', ARRAY['content', document, version::text, checkpoint::text, encode(digest, 'hex'), inbox::text, is_filed_beside::text],
    document, version, checkpoint FROM contents
UNION ALL
SELECT 'dump', ARRAY['kept', number::text, document, kind, reason, encode(digest, 'hex'), inbox::text], '', number, 0 FROM kept
UNION ALL
SELECT 'dump', ARRAY['key', key, state, retired_why, saves_received::text, final_inbox::text, checkpoint_inbox::text, settled_ms::text],
    key, 0, 0 FROM keys
UNION ALL
SELECT 'dump', ARRAY['inbox', number::text, key, status::text, outcome, answer, deliveries::text], '', number, 0 FROM inbox
UNION ALL
SELECT 'dump', ARRAY['blob', encode(digest, 'hex'), state], encode(digest, 'hex'), 0, 0 FROM blobs
UNION ALL
SELECT 'dump', ARRAY['scope', number::text, organisation, registration, head::text], '', number, 0 FROM record_scopes
UNION ALL
SELECT 'dump', ARRAY['log', id, state, reason, superseded_by::text, basis::text, created::text, updated::text, unchanged::text,
    removed::text, applied::text, submitter_id, run::text], '', number, 0 FROM summary_logs
UNION ALL
SELECT 'dump', ARRAY['commit', scope::text, sequence::text, log::text, committed_ms::text], '', scope, sequence FROM record_commits
UNION ALL
SELECT 'dump', ARRAY['versions', scope::text, sequence::text, log::text, count(*)::text, sum(content)::text], log::text, scope, sequence
    FROM record_versions GROUP BY scope, sequence, log
UNION ALL
SELECT 'dump', ARRAY['audit', chain, sequence::text, action, details], chain, sequence, 0 FROM audit WHERE chain NOT LIKE 'company:%'
) AS dumped
ORDER BY 1, 3, 4, 5";

/// Reads everything.
pub(super) async fn read(engine: &LedgerEngine) -> Result<Ledger> {
    let query = format!("SELECT what, to_json(cells) FROM ({EVERYTHING}) AS everything");
    let mut ledger = Ledger::default();
    for row in engine.rows(&query).await? {
        let [Some(what), Some(cells)] = row.as_slice() else { bail!("a row without a name: {row:?}") };
        let cells: Vec<Option<String>> = serde_json::from_str(cells)?;
        let row = Cells(&cells);
        match what.as_str() {
            "document" => ledger.documents.push(row.document()?),
            "content" => ledger.contents.push(row.content()?),
            "kept" => ledger.kept.push(row.kept()?),
            "live" => ledger.live_keys.push((row.text(0)?, row.text(1)?)),
            _ => ledger.dump.push(row.line()),
        }
    }
    Ok(ledger)
}

/// The cells of one row.
struct Cells<'a>(&'a [Option<String>]);

impl Cells<'_> {
    fn maybe(&self, at: usize) -> Option<String> {
        self.0.get(at).cloned().flatten()
    }

    fn text(&self, at: usize) -> Result<String> {
        self.maybe(at).with_context(|| format!("cell {at} of {:?} is empty", self.0))
    }

    fn number<T: std::str::FromStr>(&self, at: usize) -> Result<T> {
        self.text(at)?.parse().ok().with_context(|| format!("cell {at} of {:?} is no number", self.0))
    }

    fn is_true(&self, at: usize) -> Result<bool> {
        Ok(self.text(at)? == "true")
    }

    fn maybe_number(&self, at: usize) -> Option<i64> {
        self.maybe(at)?.parse().ok()
    }

    fn document(&self) -> Result<DocumentRow> {
        Ok(DocumentRow {
            id: self.text(0)?,
            name: self.text(1)?,
            head_sha256: self.text(2)?,
            is_published: self.is_true(3)?,
        })
    }

    fn content(&self) -> Result<ContentRow> {
        let status = self.maybe(7).and_then(|status| status.parse().ok());
        Ok(ContentRow {
            document: self.text(0)?,
            version: self.number(1)?,
            checkpoint: self.number(2)?,
            sha256: self.text(3)?,
            key: self.maybe(4),
            saved_ms: self.maybe_number(5),
            is_filed_beside: self.is_true(6)?,
            identity: status.map(|status| (status, self.maybe(8), self.maybe_number(9))),
        })
    }

    fn kept(&self) -> Result<KeptRow> {
        Ok(KeptRow {
            number: self.number(0)?,
            document: self.maybe(1),
            kind: self.text(2)?,
            reason: self.text(3)?,
            sha256: self.text(4)?,
            key: self.maybe(5),
            last_save_ms: self.maybe_number(6),
        })
    }

    fn line(&self) -> String {
        self.0.iter().map(|cell| cell.as_deref().unwrap_or("-")).collect::<Vec<_>>().join(" ")
    }
}
