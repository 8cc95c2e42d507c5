//! Letting go, on PostgreSQL: the facts are read, the rule is asked and the rows are marked in one step.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use model::names::FileName;
use model::retention::{
    ContentFacts, DeletedFacts, PurgeRuling, Reason, rule_on_contents, rule_on_kept, rule_on_purge,
};
use model::{CompanyId, Digest, DocumentId, EditorKey, Label, ProjectId};
use serde_json::json;

use super::audit::{Act, Actor, CompanyAct, anchor_document, append, append_company_act};
use super::contents::perhaps_unneeded;
use super::rows::{KEPT_COLUMNS, Stored, all, asked, get, get_optional, id, kept, label, ms};
use super::step::Step;
use super::{PostgresLedger, locks, needs};
use crate::documents::KeptCopy;
use crate::pruning::{Meaning, OwedPruning, PruneWish, PrunedContent, PrunedKept, Purged};
use crate::trail::BlobRecord;
use crate::{Pruning, Result};

/// Contents that are let go in one step: the entry that tells of them stays below 64 KiB. The rest goes next time.
const CONTENTS_MAX: usize = 200;

#[async_trait]
impl Pruning for PostgresLedger {
    async fn prune_contents(&self, document: &DocumentId, wish: &PruneWish) -> Result<Vec<PrunedContent>> {
        // Most documents have nothing to let go: that is found out without a lock.
        let step = self.read().await?;
        let going = going_contents(&step, document, wish).await;
        let going = step.end(going).await?;
        if going.is_empty() || wish.meaning == Meaning::OnlySay {
            return Ok(going.into_iter().map(|(pruned, _)| pruned).collect());
        }
        let step = self.write().await?;
        let done = prune_contents(&step, document, wish).await;
        step.end(done).await
    }

    async fn prune_kept(&self, wish: &PruneWish, limit: u32) -> Result<Vec<PrunedKept>> {
        let step = match wish.meaning {
            Meaning::DoIt => self.write().await?,
            Meaning::OnlySay => self.read().await?,
        };
        let done = prune_kept(&step, wish, limit).await;
        step.end(done).await
    }

    async fn purge_document(&self, document: &DocumentId, wish: &PruneWish) -> Result<Purged> {
        let step = match wish.meaning {
            Meaning::DoIt => self.write().await?,
            Meaning::OnlySay => self.read().await?,
        };
        let done = purge_document(&step, document, wish).await;
        step.end(done).await
    }

    async fn deleted_documents(
        &self,
        before: Timestamp,
        after: Option<&DocumentId>,
        limit: u32,
    ) -> Result<Vec<DocumentId>> {
        let after = after.map_or("", DocumentId::as_str);
        let query =
            "SELECT id FROM documents WHERE deleted_ms IS NOT NULL AND deleted_ms <= $1 AND purged_ms IS NULL
                     AND id > $2 ORDER BY id LIMIT $3";
        let step = self.glance().await?;
        let found = step.query(query, &[&ms(before), &after, &i64::from(limit)]).await;
        step.end(found).await.and_then(|rows| all(&rows, |row| get(row, "id")))
    }

    async fn owed_prunings(&self, limit: u32) -> Result<Vec<OwedPruning>> {
        let query =
            "SELECT id, company, project, name, purged_ms FROM documents WHERE owes_pruning_ms IS NOT NULL
                     ORDER BY owes_pruning_ms LIMIT $1";
        let step = self.glance().await?;
        let found = step.query(query, &[&i64::from(limit)]).await;
        all(&step.end(found).await?, |row| {
            Ok(OwedPruning {
                document: get(row, "id")?,
                company: id(row, "company", CompanyId::parse)?,
                project: id(row, "project", ProjectId::parse)?,
                name: get::<FileName>(row, "name")?,
                is_purged: get_optional::<Timestamp>(row, "purged_ms")?.is_some(),
            })
        })
    }

    async fn knew_content(&self, document: &DocumentId, digest: &Digest) -> Result<bool> {
        let step = self.read().await?;
        let done = async {
            let query = "SELECT 1 FROM contents WHERE digest = $2 AND document = $1
                         UNION ALL SELECT 1 FROM kept WHERE digest = $2 AND document = $1";
            step.exists(query, &[&document.as_str(), &Stored(*digest)]).await
        };
        let done = done.await;
        step.end(done).await
    }

    async fn backups_pruned(&self, document: &DocumentId) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            step.execute("UPDATE documents SET owes_pruning_ms = NULL WHERE id = $1", &[&document.as_str()])
                .await?;
            Ok(())
        };
        let done = done.await;
        step.end(done).await
    }

    async fn unneeded_blobs(&self, before: Timestamp, limit: u32) -> Result<Vec<BlobRecord>> {
        let step = self.read().await?;
        let done = needs::unneeded(&step, before, limit).await;
        step.end(done).await
    }

    async fn begin_removal(&self, digest: &Digest, before: Timestamp) -> Result<bool> {
        let step = self.write().await?;
        let done = needs::begin_removal(&step, digest, before).await;
        step.end(done).await
    }

    async fn begun_removals(&self, limit: u32) -> Result<Vec<BlobRecord>> {
        let step = self.read().await?;
        let done = needs::begun(&step, limit).await;
        step.end(done).await
    }

    async fn finish_removal(&self, digest: &Digest, at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = needs::finish_removal(&step, digest, at).await;
        step.end(done).await
    }

    async fn removals_of(&self, digest: &Digest) -> Result<u64> {
        let step = self.read().await?;
        let done = needs::removals_of(&step, digest).await;
        step.end(done).await
    }
}

/// A content that goes, and the blobs it needed.
type Going = (PrunedContent, Vec<Digest>);

async fn going_contents(step: &Step, document: &DocumentId, wish: &PruneWish) -> Result<Vec<Going>> {
    // The facts of all contents are in memory at once; a document with thousands of young ones is not read for nothing.
    if let Some(limit) = wish.policy.spares_younger_than() {
        let young_since = wish.at.checked_sub(limit).unwrap_or(Timestamp::MIN);
        let old = "SELECT 1 FROM contents WHERE document = $1 AND committed_ms < $2 AND pruned_ms IS NULL";
        if !step.exists(old, &[&document.as_str(), &ms(young_since)]).await? {
            return Ok(Vec::new());
        }
    }
    let (facts, sizes) = content_facts(step, document).await?;
    let going: BTreeMap<Label, Reason> = rule_on_contents(&wish.policy, &facts, wish.at);
    let going = going.into_iter().take(CONTENTS_MAX).filter_map(|(label, reason)| {
        let (size_bytes, digests) = sizes.get(&label)?.clone();
        Some((PrunedContent { label, size_bytes, reason }, digests))
    });
    Ok(going.collect())
}

/// Facts of every content, and its size with the blobs it needs.
type Facts = (Vec<ContentFacts>, BTreeMap<Label, (u64, Vec<Digest>)>);

/// In use: the head, the newest version, what the tree shows, and what a key needs or brought that is not yet over, as far as
/// we and the server have said.
async fn content_facts(step: &Step, document: &DocumentId) -> Result<Facts> {
    let query = "SELECT c.version, c.checkpoint, c.committed_ms, c.key, c.is_filed_beside, c.pruned_ms, c.handed_out_ms, c.digest,
           c.changes_digest, b.size_bytes,
           (c.version, c.checkpoint) = (d.head_version, d.head_checkpoint) OR (c.version, c.checkpoint) = (d.last_version, 0)
           OR (c.version IS NOT DISTINCT FROM d.published_version
               AND c.checkpoint IS NOT DISTINCT FROM d.published_checkpoint) AS is_shown
         FROM documents d JOIN contents c ON c.document = d.id JOIN blobs b ON b.digest = c.digest
         WHERE d.id = $1 AND d.purged_ms IS NULL AND d.deleted_ms IS NULL";
    let sessions = open_sessions(step, document).await?;
    let (mut facts, mut sizes) = (Vec::new(), BTreeMap::new());
    for row in &step.query(query, &[&document.as_str()]).await? {
        let number = label(row, "version", "checkpoint")?;
        let key: Option<EditorKey> = get_optional(row, "key")?;
        let is_of_session =
            key.as_ref().is_some_and(|key| sessions.keys.contains(key)) || sessions.bases.contains(&number);
        facts.push(ContentFacts {
            label: number,
            committed_at: get(row, "committed_ms")?,
            key,
            is_filed_beside: get(row, "is_filed_beside")?,
            is_pruned: get_optional::<Timestamp>(row, "pruned_ms")?.is_some(),
            is_in_use: is_of_session || get(row, "is_shown")?,
            handed_out_at: get_optional(row, "handed_out_ms")?,
        });
        let digests = get_optional(row, "changes_digest")?.into_iter().chain([get(row, "digest")?]);
        sizes.insert(number, (get(row, "size_bytes")?, digests.collect()));
    }
    Ok((facts, sizes))
}

/// Sessions that are not over, as far as we and the server have said, and what they began with.
#[derive(Default)]
struct OpenSessions {
    keys: BTreeSet<EditorKey>,
    bases: BTreeSet<Label>,
}

async fn open_sessions(step: &Step, document: &DocumentId) -> Result<OpenSessions> {
    let query = "SELECT key, base_version, base_checkpoint FROM keys WHERE document = $1 AND mode = 'edit'
                 AND (state <> 'retired' OR confirmed_ms IS NULL OR users <> '[]')";
    let mut sessions = OpenSessions::default();
    for row in &step.query(query, &[&document.as_str()]).await? {
        sessions.keys.insert(get(row, "key")?);
        if get_optional::<u32>(row, "base_version")?.is_some() {
            sessions.bases.insert(label(row, "base_version", "base_checkpoint")?);
        }
    }
    Ok(sessions)
}

async fn prune_contents(step: &Step, document: &DocumentId, wish: &PruneWish) -> Result<Vec<PrunedContent>> {
    locks::document(step, document).await?;
    let going = going_contents(step, document, wish).await?;
    if going.is_empty() {
        return Ok(Vec::new());
    }
    let (versions, checkpoints): (Vec<i64>, Vec<i64>) = going
        .iter()
        .map(|(pruned, _)| (i64::from(pruned.label.version), i64::from(pruned.label.checkpoint)))
        .unzip();
    step.execute(
        "UPDATE contents SET pruned_ms = $4 WHERE document = $1 AND (version, checkpoint) IN
           (SELECT g.version, g.checkpoint FROM UNNEST($2::bigint[], $3::bigint[]) AS g (version, checkpoint))",
        &[&document.as_str(), &versions, &checkpoints, &ms(wish.at)],
    )
    .await?;
    let digests: Vec<Digest> = going.iter().flat_map(|(_, digests)| digests.iter().copied()).collect();
    perhaps_unneeded(step, &digests, wish.at).await?;
    owe_pruning(step, document, wish.at).await?;
    let told =
        |(pruned, _): &Going| json!({ "content": pruned.label.to_string(), "why": pruned.reason.as_str() });
    let size_bytes: u64 = going.iter().map(|(pruned, _)| pruned.size_bytes).sum();
    let details = json!({ "contents": going.iter().map(told).collect::<Vec<_>>(), "sizeBytes": size_bytes });
    let (at, actor) = (wish.at, Actor::SAVEGUARD);
    append(step, &Act { document, at, actor, action: "contents-pruned", details }).await?;
    Ok(going.into_iter().map(|(pruned, _)| pruned).collect())
}

async fn owe_pruning(step: &Step, document: &DocumentId, at: Timestamp) -> Result<()> {
    step.execute(
        "UPDATE documents SET owes_pruning_ms = coalesce(owes_pruning_ms, $2) WHERE id = $1",
        &[&document.as_str(), &ms(at)],
    )
    .await?;
    Ok(())
}

async fn prune_kept(step: &Step, wish: &PruneWish, limit: u32) -> Result<Vec<PrunedKept>> {
    let Some(limit_age) = wish.policy.kept else { return Ok(Vec::new()) };
    let before = wish.at.checked_sub(limit_age).unwrap_or(Timestamp::MIN);
    if wish.meaning == Meaning::DoIt {
        lock_owners(step, before, limit).await?;
    }
    let query = format!(
        "SELECT {KEPT_COLUMNS} WHERE k.settled_ms < $1 AND k.pruned_ms IS NULL ORDER BY k.number LIMIT $2"
    );
    let copies = all(&step.query(&query, &[&ms(before), &i64::from(limit)]).await?, kept)?;
    let is_over =
        |copy: &KeptCopy| rule_on_kept(&wish.policy, copy.settled.as_ref().map(|(at, _)| *at), wish.at);
    let copies: Vec<KeptCopy> = copies.into_iter().filter(is_over).collect();
    let pruned = copies
        .iter()
        .map(|copy| PrunedKept { number: copy.number, size_bytes: copy.blob.size_bytes })
        .collect();
    if wish.meaning == Meaning::OnlySay || copies.is_empty() {
        return Ok(pruned);
    }
    let numbers: Vec<i64> = copies.iter().map(|copy| asked(copy.number)).collect();
    step.execute("UPDATE kept SET pruned_ms = $2 WHERE number = ANY($1)", &[&numbers, &ms(wish.at)]).await?;
    let digests: Vec<Digest> = copies.iter().map(|copy| copy.blob.digest).collect();
    perhaps_unneeded(step, &digests, wish.at).await?;
    // Entries of a chain are made one after the other: each has the hash of the one before it.
    for copy in &copies {
        let details = json!({ "kept": copy.number, "sizeBytes": copy.blob.size_bytes });
        let (at, actor, action) = (wish.at, Actor::SAVEGUARD, "kept-copy-pruned");
        match &copy.document {
            Some(document) => append(step, &Act { document, at, actor, action, details }).await?,
            None => {
                append_company_act(step, &CompanyAct { company: None, at, actor, action, details }).await?;
            }
        }
    }
    Ok(pruned)
}

/// The documents whose chains will tell of it are locked first, in the order of their ids.
async fn lock_owners(step: &Step, before: Timestamp, limit: u32) -> Result<()> {
    step.query(
        "SELECT d.id FROM documents d WHERE d.id IN (SELECT k.document FROM kept k
           WHERE k.settled_ms < $1 AND k.pruned_ms IS NULL ORDER BY k.number LIMIT $2)
         ORDER BY d.id FOR NO KEY UPDATE OF d",
        &[&ms(before), &i64::from(limit)],
    )
    .await
    .map(drop)
}

async fn purge_document(step: &Step, document: &DocumentId, wish: &PruneWish) -> Result<Purged> {
    if wish.meaning == Meaning::DoIt {
        locks::document(step, document).await?;
    }
    let Some(facts) = deleted_facts(step, document).await? else { return Ok(Purged::NotYet) };
    match rule_on_purge(&wish.policy, &facts, wish.at) {
        PurgeRuling::NotYet => return Ok(Purged::NotYet),
        PurgeRuling::Waits(why) => return Ok(Purged::Waits(why)),
        PurgeRuling::Purge => {}
    }
    let (contents, size_bytes) = extent_of(step, document).await?;
    if wish.meaning == Meaning::OnlySay {
        return Ok(Purged::Yes { contents, size_bytes });
    }
    perhaps_unneeded(step, &digests_of(step, document).await?, wish.at).await?;
    locks::company_of(step, document).await?;
    for statement in [
        "UPDATE contents SET pruned_ms = $2 WHERE document = $1 AND pruned_ms IS NULL",
        "UPDATE kept SET pruned_ms = $2 WHERE document = $1 AND pruned_ms IS NULL",
        "DELETE FROM mentions WHERE document = $1 AND at_ms <= $2",
        "UPDATE documents SET purged_ms = $2, owes_pruning_ms = coalesce(owes_pruning_ms, $2) WHERE id = $1",
    ] {
        step.execute(statement, &[&document.as_str(), &ms(wish.at)]).await?;
    }
    let details = json!({ "contents": contents, "sizeBytes": size_bytes });
    let (at, actor) = (wish.at, Actor::SAVEGUARD);
    append(step, &Act { document, at, actor, action: "document-purged", details }).await?;
    // Like its deletion, its end does not wait to be anchored.
    anchor_document(step, document, wish.at).await?;
    Ok(Purged::Yes { contents, size_bytes })
}

async fn deleted_facts(step: &Step, document: &DocumentId) -> Result<Option<DeletedFacts>> {
    let query = "SELECT d.deleted_ms, d.owes_since_ms IS NOT NULL OR d.published_version IS NOT NULL AS is_shown,
           EXISTS (SELECT 1 FROM keys k WHERE k.document = d.id AND k.mode = 'edit'
             AND (k.state = 'live' OR k.users <> '[]' OR (k.state = 'retired' AND k.confirmed_ms IS NULL))) AS has_session,
           EXISTS (SELECT 1 FROM inbox i WHERE i.document = d.id AND i.outcome IS NULL) AS has_open_save,
           EXISTS (SELECT 1 FROM kept k WHERE k.document = d.id AND k.settled_ms IS NULL AND k.pruned_ms IS NULL) AS has_kept_copy
         FROM documents d WHERE d.id = $1 AND d.deleted_ms IS NOT NULL AND d.purged_ms IS NULL";
    let Some(row) = step.query_optional(query, &[&document.as_str()]).await? else { return Ok(None) };
    Ok(Some(DeletedFacts {
        deleted_at: get(&row, "deleted_ms")?,
        has_session: get(&row, "has_session")?,
        has_open_save: get(&row, "has_open_save")?,
        has_kept_copy: get(&row, "has_kept_copy")?,
        is_shown: get(&row, "is_shown")?,
    }))
}

async fn extent_of(step: &Step, document: &DocumentId) -> Result<(u64, u64)> {
    let query = "SELECT count(*) AS contents, coalesce(sum(b.size_bytes), 0)::bigint AS bytes
                 FROM contents c JOIN blobs b ON b.digest = c.digest WHERE c.document = $1 AND c.pruned_ms IS NULL";
    let row = step.query_one(query, &[&document.as_str()]).await?;
    Ok((get(&row, "contents")?, get(&row, "bytes")?))
}

async fn digests_of(step: &Step, document: &DocumentId) -> Result<Vec<Digest>> {
    let query = "SELECT digest FROM contents WHERE document = $1
                 UNION SELECT changes_digest FROM contents WHERE document = $1 AND changes_digest IS NOT NULL
                 UNION SELECT digest FROM kept WHERE document = $1 UNION SELECT digest FROM forms WHERE document = $1";
    all(&step.query(query, &[&document.as_str()]).await?, |row| get(row, "digest"))
}
