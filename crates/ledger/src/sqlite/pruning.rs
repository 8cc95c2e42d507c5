//! Letting go, on SQLite: the facts are read, the rule is asked and the rows are marked in one step.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use model::names::FileName;
use model::retention::{
    ContentFacts, DeletedFacts, PurgeRuling, Reason, rule_on_contents, rule_on_kept, rule_on_purge,
};
use model::{CompanyId, Digest, DocumentId, EditorKey, Label, ProjectId};
use rusqlite::{Connection, params};
use serde_json::json;

use super::audit::{Act, Actor, CompanyAct, anchor_document, append, append_company_act};
use super::contents::perhaps_unneeded;
use super::facts::exists;
use super::rows::{KEPT_COLUMNS, Stored, get, get_optional, id, kept, label, ms, optional};
use super::{SqliteLedger, needs};
use crate::pruning::{Meaning, OwedPruning, PruneWish, PrunedContent, PrunedKept, Purged};
use crate::trail::BlobRecord;
use crate::{Pruning, Result};

/// Contents that are let go in one step: the entry that tells of them stays below 64 KiB. The rest goes next time.
const CONTENTS_MAX: usize = 200;

#[async_trait]
impl Pruning for SqliteLedger {
    async fn prune_contents(&self, document: &DocumentId, wish: &PruneWish) -> Result<Vec<PrunedContent>> {
        let (document, wish) = (document.clone(), wish.clone());
        // Most documents have nothing to let go: that is found out without keeping the writer from its work.
        let looked = (document.clone(), wish.clone());
        let going = self.read(move |connection| going_contents(connection, &looked.0, &looked.1)).await?;
        if going.is_empty() || wish.meaning == Meaning::OnlySay {
            return Ok(going.into_iter().map(|(pruned, _)| pruned).collect());
        }
        self.write(move |connection, _| prune_contents(connection, &document, &wish)).await
    }

    async fn prune_kept(&self, wish: &PruneWish, limit: u32) -> Result<Vec<PrunedKept>> {
        let wish = wish.clone();
        match wish.meaning {
            Meaning::DoIt => self.write(move |connection, _| prune_kept(connection, &wish, limit)).await,
            Meaning::OnlySay => self.read(move |connection| prune_kept(connection, &wish, limit)).await,
        }
    }

    async fn purge_document(&self, document: &DocumentId, wish: &PruneWish) -> Result<Purged> {
        let (document, wish) = (document.clone(), wish.clone());
        match wish.meaning {
            Meaning::DoIt => {
                self.write(move |connection, _| purge_document(connection, &document, &wish)).await
            }
            Meaning::OnlySay => {
                self.read(move |connection| purge_document(connection, &document, &wish)).await
            }
        }
    }

    async fn deleted_documents(
        &self,
        before: Timestamp,
        after: Option<&DocumentId>,
        limit: u32,
    ) -> Result<Vec<DocumentId>> {
        let after = after.map_or_else(String::new, ToString::to_string);
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT id FROM documents WHERE deleted_ms IS NOT NULL AND deleted_ms <= ?1 AND purged_ms IS NULL AND id > ?2
                 ORDER BY id LIMIT ?3",
            )?;
            let rows = query.query_map(params![ms(before), after, limit], |row| get(row, "id"))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn owed_prunings(&self, limit: u32) -> Result<Vec<OwedPruning>> {
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT id, company, project, name, purged_ms FROM documents WHERE owes_pruning_ms IS NOT NULL
                 ORDER BY owes_pruning_ms LIMIT ?1",
            )?;
            let rows = query.query_map([limit], |row| {
                Ok(OwedPruning {
                    document: get(row, "id")?,
                    company: id(row, "company", CompanyId::parse)?,
                    project: id(row, "project", ProjectId::parse)?,
                    name: get::<FileName>(row, "name")?,
                    is_purged: get_optional::<Timestamp>(row, "purged_ms")?.is_some(),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn knew_content(&self, document: &DocumentId, digest: &Digest) -> Result<bool> {
        let (document, digest) = (document.clone(), *digest);
        self.read(move |connection| {
            let query = "SELECT 1 FROM contents WHERE digest = ?2 AND document = ?1
                         UNION ALL SELECT 1 FROM kept WHERE digest = ?2 AND document = ?1";
            exists(connection, query, params![document.as_str(), Stored(digest)])
        })
        .await
    }

    async fn backups_pruned(&self, document: &DocumentId) -> Result<()> {
        let document = document.clone();
        self.write(move |connection, _| {
            connection
                .prepare_cached("UPDATE documents SET owes_pruning_ms = NULL WHERE id = ?1")?
                .execute([document.as_str()])?;
            Ok(())
        })
        .await
    }

    async fn unneeded_blobs(&self, before: Timestamp, limit: u32) -> Result<Vec<BlobRecord>> {
        self.read(move |connection| needs::unneeded(connection, before, limit)).await
    }

    async fn begin_removal(&self, digest: &Digest, before: Timestamp) -> Result<bool> {
        let digest = *digest;
        self.write(move |connection, _| needs::begin_removal(connection, &digest, before)).await
    }

    async fn begun_removals(&self, limit: u32) -> Result<Vec<BlobRecord>> {
        self.read(move |connection| needs::begun(connection, limit)).await
    }

    async fn finish_removal(&self, digest: &Digest, at: Timestamp) -> Result<()> {
        let digest = *digest;
        self.write(move |connection, _| needs::finish_removal(connection, &digest, at)).await
    }

    async fn removals_of(&self, digest: &Digest) -> Result<u64> {
        let digest = *digest;
        self.read(move |connection| needs::removals_of(connection, &digest)).await
    }
}

/// A content that goes, and the blobs it needed.
type Going = (PrunedContent, Vec<Digest>);

fn going_contents(connection: &Connection, document: &DocumentId, wish: &PruneWish) -> Result<Vec<Going>> {
    // The facts of all contents are in memory at once; a document with thousands of young ones is not read for nothing.
    if let Some(limit) = wish.policy.spares_younger_than() {
        let young_since = wish.at.checked_sub(limit).unwrap_or(Timestamp::MIN);
        let old = "SELECT 1 FROM contents WHERE document = ?1 AND committed_ms < ?2 AND pruned_ms IS NULL";
        if !exists(connection, old, params![document.as_str(), ms(young_since)])? {
            return Ok(Vec::new());
        }
    }
    let (facts, sizes) = content_facts(connection, document)?;
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
fn content_facts(connection: &Connection, document: &DocumentId) -> Result<Facts> {
    let mut query = connection.prepare_cached(
        "SELECT c.version, c.checkpoint, c.committed_ms, c.key, c.is_filed_beside, c.pruned_ms, c.handed_out_ms, c.digest,
           c.changes_digest, b.size_bytes,
           (c.version, c.checkpoint) = (d.head_version, d.head_checkpoint) OR (c.version, c.checkpoint) = (d.last_version, 0)
           OR (c.version, c.checkpoint) IS (d.published_version, d.published_checkpoint) AS is_shown
         FROM documents d JOIN contents c ON c.document = d.id JOIN blobs b ON b.digest = c.digest
         WHERE d.id = ?1 AND d.purged_ms IS NULL AND d.deleted_ms IS NULL",
    )?;
    let sessions = open_sessions(connection, document)?;
    let (mut facts, mut sizes) = (Vec::new(), BTreeMap::new());
    let mut rows = query.query([document.as_str()])?;
    while let Some(row) = rows.next()? {
        let number = label(row, "version", "checkpoint")?;
        let key: Option<EditorKey> = get_optional(row, "key")?;
        let is_of_session =
            key.as_ref().is_some_and(|key| sessions.keys.contains(key)) || sessions.bases.contains(&number);
        facts.push(ContentFacts {
            label: number,
            committed_at: get(row, "committed_ms")?,
            key,
            is_filed_beside: row.get("is_filed_beside")?,
            is_pruned: get_optional::<Timestamp>(row, "pruned_ms")?.is_some(),
            is_in_use: is_of_session || row.get("is_shown")?,
            handed_out_at: get_optional(row, "handed_out_ms")?,
        });
        let digests = get_optional(row, "changes_digest")?.into_iter().chain([get(row, "digest")?]);
        sizes.insert(number, (row.get("size_bytes")?, digests.collect()));
    }
    Ok((facts, sizes))
}

/// Sessions that are not over, as far as we and the server have said, and what they began with.
#[derive(Default)]
struct OpenSessions {
    keys: BTreeSet<EditorKey>,
    bases: BTreeSet<Label>,
}

fn open_sessions(connection: &Connection, document: &DocumentId) -> Result<OpenSessions> {
    let mut query = connection.prepare_cached(
        "SELECT key, base_version, base_checkpoint FROM keys WHERE document = ?1 AND mode = 'edit'
         AND (state <> 'retired' OR confirmed_ms IS NULL OR users <> '[]')",
    )?;
    let mut sessions = OpenSessions::default();
    let mut rows = query.query([document.as_str()])?;
    while let Some(row) = rows.next()? {
        sessions.keys.insert(get(row, "key")?);
        if row.get::<_, Option<u32>>("base_version")?.is_some() {
            sessions.bases.insert(label(row, "base_version", "base_checkpoint")?);
        }
    }
    Ok(sessions)
}

fn prune_contents(
    connection: &Connection,
    document: &DocumentId,
    wish: &PruneWish,
) -> Result<Vec<PrunedContent>> {
    let going = going_contents(connection, document, wish)?;
    if going.is_empty() {
        return Ok(Vec::new());
    }
    for (pruned, digests) in &going {
        connection
            .prepare_cached(
                "UPDATE contents SET pruned_ms = ?4 WHERE document = ?1 AND version = ?2 AND checkpoint = ?3",
            )?
            .execute(params![
                document.as_str(),
                pruned.label.version,
                pruned.label.checkpoint,
                ms(wish.at)
            ])?;
        for digest in digests {
            perhaps_unneeded(connection, digest, wish.at)?;
        }
    }
    owe_pruning(connection, document, wish.at)?;
    let told =
        |(pruned, _): &Going| json!({ "content": pruned.label.to_string(), "why": pruned.reason.as_str() });
    let size_bytes: u64 = going.iter().map(|(pruned, _)| pruned.size_bytes).sum();
    let details = json!({ "contents": going.iter().map(told).collect::<Vec<_>>(), "sizeBytes": size_bytes });
    let (at, actor) = (wish.at, Actor::SAVEGUARD);
    append(connection, &Act { document, at, actor, action: "contents-pruned", details })?;
    Ok(going.into_iter().map(|(pruned, _)| pruned).collect())
}

fn owe_pruning(connection: &Connection, document: &DocumentId, at: Timestamp) -> Result<()> {
    connection
        .prepare_cached("UPDATE documents SET owes_pruning_ms = coalesce(owes_pruning_ms, ?2) WHERE id = ?1")?
        .execute(params![document.as_str(), ms(at)])?;
    Ok(())
}

fn prune_kept(connection: &Connection, wish: &PruneWish, limit: u32) -> Result<Vec<PrunedKept>> {
    let Some(limit_age) = wish.policy.kept else { return Ok(Vec::new()) };
    let before = wish.at.checked_sub(limit_age).unwrap_or(Timestamp::MIN);
    let mut query = connection.prepare_cached(&format!(
        "SELECT {KEPT_COLUMNS} WHERE k.settled_ms < ?1 AND k.pruned_ms IS NULL ORDER BY k.number LIMIT ?2"
    ))?;
    let copies = query.query_map(params![ms(before), limit], kept)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut pruned = Vec::new();
    for copy in copies {
        let settled_at = copy.settled.as_ref().map(|(at, _)| *at);
        if !rule_on_kept(&wish.policy, settled_at, wish.at) {
            continue;
        }
        pruned.push(PrunedKept { number: copy.number, size_bytes: copy.blob.size_bytes });
        if wish.meaning == Meaning::OnlySay {
            continue;
        }
        connection
            .prepare_cached("UPDATE kept SET pruned_ms = ?2 WHERE number = ?1")?
            .execute(params![copy.number, ms(wish.at)])?;
        perhaps_unneeded(connection, &copy.blob.digest, wish.at)?;
        let details = json!({ "kept": copy.number, "sizeBytes": copy.blob.size_bytes });
        let (at, actor, action) = (wish.at, Actor::SAVEGUARD, "kept-copy-pruned");
        match &copy.document {
            Some(document) => append(connection, &Act { document, at, actor, action, details })?,
            None => {
                append_company_act(connection, &CompanyAct { company: None, at, actor, action, details })?
            }
        }
    }
    Ok(pruned)
}

fn purge_document(connection: &Connection, document: &DocumentId, wish: &PruneWish) -> Result<Purged> {
    let Some(facts) = deleted_facts(connection, document)? else { return Ok(Purged::NotYet) };
    match rule_on_purge(&wish.policy, &facts, wish.at) {
        PurgeRuling::NotYet => return Ok(Purged::NotYet),
        PurgeRuling::Waits(why) => return Ok(Purged::Waits(why)),
        PurgeRuling::Purge => {}
    }
    let (contents, size_bytes) = extent_of(connection, document)?;
    if wish.meaning == Meaning::OnlySay {
        return Ok(Purged::Yes { contents, size_bytes });
    }
    for digest in digests_of(connection, document)? {
        perhaps_unneeded(connection, &digest, wish.at)?;
    }
    let mark = |statement: &str| -> Result<()> {
        connection.prepare_cached(statement)?.execute(params![document.as_str(), ms(wish.at)])?;
        Ok(())
    };
    mark("UPDATE contents SET pruned_ms = ?2 WHERE document = ?1 AND pruned_ms IS NULL")?;
    mark("UPDATE kept SET pruned_ms = ?2 WHERE document = ?1 AND pruned_ms IS NULL")?;
    mark("DELETE FROM mentions WHERE document = ?1 AND at_ms <= ?2")?;
    mark(
        "UPDATE documents SET purged_ms = ?2, owes_pruning_ms = coalesce(owes_pruning_ms, ?2) WHERE id = ?1",
    )?;
    let details = json!({ "contents": contents, "sizeBytes": size_bytes });
    let (at, actor) = (wish.at, Actor::SAVEGUARD);
    append(connection, &Act { document, at, actor, action: "document-purged", details })?;
    // Like its deletion, its end does not wait to be anchored.
    anchor_document(connection, document, wish.at)?;
    Ok(Purged::Yes { contents, size_bytes })
}

fn deleted_facts(connection: &Connection, document: &DocumentId) -> Result<Option<DeletedFacts>> {
    let found = connection
        .prepare_cached(
            "SELECT d.deleted_ms, d.owes_since_ms IS NOT NULL OR d.published_version IS NOT NULL AS is_shown,
               EXISTS (SELECT 1 FROM keys k WHERE k.document = d.id AND k.mode = 'edit'
                 AND (k.state = 'live' OR k.users <> '[]' OR (k.state = 'retired' AND k.confirmed_ms IS NULL))) AS has_session,
               EXISTS (SELECT 1 FROM inbox i WHERE i.document = d.id AND i.outcome IS NULL) AS has_open_save,
               EXISTS (SELECT 1 FROM kept k WHERE k.document = d.id AND k.settled_ms IS NULL AND k.pruned_ms IS NULL) AS has_kept_copy
             FROM documents d WHERE d.id = ?1 AND d.deleted_ms IS NOT NULL AND d.purged_ms IS NULL",
        )?
        .query_row([document.as_str()], |row| {
            Ok(DeletedFacts {
                deleted_at: get(row, "deleted_ms")?,
                has_session: row.get("has_session")?,
                has_open_save: row.get("has_open_save")?,
                has_kept_copy: row.get("has_kept_copy")?,
                is_shown: row.get("is_shown")?,
            })
        });
    optional(found)
}

fn extent_of(connection: &Connection, document: &DocumentId) -> Result<(u64, u64)> {
    let query =
        "SELECT count(*), coalesce(sum(b.size_bytes), 0) FROM contents c JOIN blobs b ON b.digest = c.digest
                 WHERE c.document = ?1 AND c.pruned_ms IS NULL";
    let mut query = connection.prepare_cached(query)?;
    Ok(query.query_row([document.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

fn digests_of(connection: &Connection, document: &DocumentId) -> Result<Vec<Digest>> {
    let mut query = connection.prepare_cached(
        "SELECT digest FROM contents WHERE document = ?1 UNION SELECT changes_digest FROM contents WHERE document = ?1
         UNION SELECT digest FROM kept WHERE document = ?1 UNION SELECT digest FROM forms WHERE document = ?1",
    )?;
    let rows = query.query_map([document.as_str()], |row| row.get::<_, Option<Stored<Digest>>>(0))?;
    let found = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(found.into_iter().flatten().map(|stored| stored.0).collect())
}
