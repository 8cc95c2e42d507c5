//! Changes past the editors, on PostgreSQL: the rule is asked under the document's lock, like an opening.

use async_trait::async_trait;
use jiff::Timestamp;
use model::{DocumentId, InboxNumber};
use serde_json::json;

use super::audit::{Act, Actor, CompanyAct, anchor_document, append, append_company_act};
use super::contents::{self, NewContent};
use super::rows::{Stored, all, asked, get, get_optional, ms, text};
use super::step::Step;
use super::{PostgresLedger, keys, locks};
use crate::adapting::{Asked, Sessions, first_outcome};
use crate::changes::{
    ChangeOutcome, ChangeRequest, ChangeSource, Changes, Download, EditorsInside, HeadChange, SaveNews,
};
use crate::documents::Author;
use crate::{LedgerError, Result, callback_text};

#[async_trait]
impl Changes for PostgresLedger {
    async fn put_version(&self, change: &HeadChange) -> Result<ChangeOutcome> {
        let step = self.write().await?;
        let done = put_version(&step, change).await;
        step.end(done).await
    }

    async fn delete_document(&self, request: &ChangeRequest) -> Result<ChangeOutcome> {
        let step = self.write().await?;
        let done = delete_document(&step, request).await;
        step.end(done).await
    }

    async fn undelete_document(&self, document: &DocumentId, who: &Author, at: Timestamp) -> Result<bool> {
        let step = self.write().await?;
        let done = undelete_document(&step, document, who, at).await;
        step.end(done).await
    }

    async fn dismiss_kept(&self, number: u64, who: &Author, at: Timestamp) -> Result<bool> {
        let step = self.write().await?;
        let done = async { settle_kept(&step, number, &Settling { as_what: "dismissed", who, at }).await };
        let done = done.await;
        step.end(done).await
    }

    async fn newest_save(&self, document: &DocumentId) -> Result<InboxNumber> {
        let query = "SELECT coalesce(max(number), 0) AS newest FROM inbox WHERE document = $1";
        let step = self.glance().await?;
        let found = step.query_one(query, &[&document.as_str()]).await;
        get(&step.end(found).await?, "newest")
    }

    async fn saves_after(&self, document: &DocumentId, after: InboxNumber) -> Result<Vec<SaveNews>> {
        let step = self.read().await?;
        let done = saves_after(&step, document, after).await;
        step.end(done).await
    }

    async fn note_download(&self, download: &Download) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            let Download { document, label, who, freshness, at } = &download;
            let details = json!({ "label": label.to_string(), "freshness": freshness });
            append(
                &step,
                &Act { document, at: *at, actor: Actor::person(who), action: "downloaded", details },
            )
            .await
        };
        let done = done.await;
        step.end(done).await
    }
}

/// Whether the change may happen now; if not, what to do first.
async fn first(step: &Step, request: &ChangeRequest) -> Result<(Sessions, Option<ChangeOutcome>)> {
    let asked = Asked {
        knowledge: request.knowledge.as_ref(),
        quiet_after: request.quiet_after,
        listening_since: None,
    };
    locks::document(step, &request.document).await?;
    let sessions = keys::sessions_of(step, &request.document, &asked).await?;
    let outcome = first_outcome(&sessions);
    Ok((sessions, outcome))
}

/// Nobody opens anything under these keys any more.
async fn end_sessions(step: &Step, sessions: &Sessions, why: &str, at: Timestamp) -> Result<()> {
    for record in sessions.live.iter().chain(&sessions.left) {
        keys::settle(step, &record.key, why, at).await?;
        keys::confirm(step, &record.key, at).await?;
    }
    Ok(())
}

async fn put_version(step: &Step, change: &HeadChange) -> Result<ChangeOutcome> {
    let HeadChange { request, blob, from, .. } = change;
    let (sessions, first) = first(step, request).await?;
    let is_welcome = change.editors == EditorsInside::RetireTheirKey;
    let has_people = matches!(first, Some(ChangeOutcome::Edited(_)));
    match first {
        Some(ChangeOutcome::Edited(_)) if is_welcome => {}
        Some(outcome) => return Ok(outcome),
        None => {}
    }
    if change.expected_head.is_some_and(|expected| expected != sessions.facts.head) {
        return Ok(ChangeOutcome::HeadMoved(sessions.facts.head));
    }
    // Repeated after a crash, or asked for twice: it is there.
    if sessions.facts.head == blob.digest && sessions.head.is_version() {
        return Ok(ChangeOutcome::Done(sessions.head));
    }
    end_sessions(step, &sessions, "changed past the editors", request.at).await?;
    if let Some(live) = sessions.live.as_ref().filter(|_| has_people) {
        super::sessions::leave_inside(step, &live.key, &live.users).await?;
    }
    contents::name_blob(step, blob, request.at).await?;
    let label = contents::next_version(step, &request.document).await?;
    let new = NewContent::without_session(
        (&request.document, label),
        (from.origin(), blob),
        (&request.who, request.at),
    );
    contents::add_content(step, &new).await?;
    contents::move_head(step, &request.document, label, request.at).await?;
    if let ChangeSource::Kept(number) = from {
        let as_what = "used";
        settle_kept(step, *number, &Settling { as_what, who: &request.who, at: request.at }).await?;
    }
    let (action, source) = match from {
        ChangeSource::Upload => ("content-replaced", None),
        ChangeSource::Content(label) => ("version-restored", Some(label.to_string())),
        ChangeSource::Kept(number) => ("kept-copy-used", Some(number.to_string())),
    };
    let details = json!({
        "label": label.to_string(),
        "from": source,
        "digest": blob.digest.to_string(),
        "sizeBytes": blob.size_bytes,
        "flags": blob.flags,
    });
    let document = &request.document;
    append(step, &Act { document, at: request.at, actor: Actor::person(&request.who), action, details })
        .await?;
    Ok(ChangeOutcome::Done(label))
}

async fn delete_document(step: &Step, request: &ChangeRequest) -> Result<ChangeOutcome> {
    let (sessions, first) = first(step, request).await?;
    if let Some(outcome) = first {
        return Ok(outcome);
    }
    end_sessions(step, &sessions, "document deleted", request.at).await?;
    step.execute("UPDATE documents SET deleted_ms = $2, deleted_by = $3, owes_since_ms = coalesce(owes_since_ms, $2) WHERE id = $1", &[&request.document.as_str(), &ms(request.at), &text(&request.who.id)]).await?;
    let details = json!({ "head": sessions.head.to_string() });
    let document = &request.document;
    append(
        step,
        &Act {
            document,
            at: request.at,
            actor: Actor::person(&request.who),
            action: "document-deleted",
            details,
        },
    )
    .await?;
    anchor_document(step, document, request.at).await?;
    Ok(ChangeOutcome::Done(sessions.head))
}

async fn undelete_document(step: &Step, document: &DocumentId, who: &Author, at: Timestamp) -> Result<bool> {
    locks::document(step, document).await?;
    let restored = step.execute("UPDATE documents SET deleted_ms = NULL, deleted_by = NULL, owes_since_ms = coalesce(owes_since_ms, $2)
             WHERE id = $1 AND deleted_ms IS NOT NULL AND purged_ms IS NULL", &[&document.as_str(), &ms(at)]).await?;
    if restored > 0 {
        let details = json!({});
        append(
            step,
            &Act { document, at, actor: Actor::person(who), action: "deletion-taken-back", details },
        )
        .await?;
    }
    Ok(restored > 0)
}

/// What a person decided about a kept copy.
struct Settling<'a> {
    as_what: &'static str,
    who: &'a Author,
    at: Timestamp,
}

async fn settle_kept(step: &Step, number: u64, settling: &Settling<'_>) -> Result<bool> {
    let whose = step.query_optional("SELECT document FROM kept WHERE number = $1", &[&asked(number)]).await?;
    let whose = whose.ok_or_else(|| LedgerError::not_found(format!("kept copy {number}")))?;
    let document: Option<DocumentId> = get_optional(&whose, "document")?;
    if let Some(document) = &document {
        locks::document(step, document).await?;
    }
    let settled = step
        .execute(
            "UPDATE kept SET settled_ms = $2, settled_as = $3 WHERE number = $1 AND settled_ms IS NULL",
            &[&asked(number), &ms(settling.at), &settling.as_what],
        )
        .await?;
    if settled == 0 {
        return Ok(false);
    }
    let (actor, at, action) = (Actor::person(settling.who), settling.at, "kept-copy-settled");
    let details = json!({ "kept": number, "as": settling.as_what });
    match &document {
        Some(document) => append(step, &Act { document, at, actor, action, details }).await?,
        // An orphan is the installation's.
        None => append_company_act(step, &CompanyAct { company: None, at, actor, action, details }).await?,
    }
    Ok(true)
}

async fn saves_after(step: &Step, document: &DocumentId, after: InboxNumber) -> Result<Vec<SaveNews>> {
    let query = "SELECT number, status, callback, outcome IS NOT NULL AS is_finished FROM inbox
                 WHERE document = $1 AND number > $2 ORDER BY number";
    all(&step.query(query, &[&document.as_str(), &Stored(after)]).await?, |row| {
        Ok(SaveNews {
            number: get(row, "number")?,
            status: get(row, "status")?,
            user_data: callback_text::read(&get::<String>(row, "callback")?)?.user_data,
            is_finished: get(row, "is_finished")?,
        })
    })
}
