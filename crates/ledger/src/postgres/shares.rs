//! Share links and their guests, on PostgreSQL.
//!
//! Guarantees: a link is found by the hash of all its bits through an index, as API tokens are.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::sharing::{Allows, DownloadSwitch, guest_name, read_guest_id};
use model::{Digest, DocumentId};
use serde_json::{Value, json};
use tokio_postgres::Row;

use super::audit::{Act, Actor, append};
use super::rows::{Stored, all, asked, get, get_optional, ms, optional_ms, text};
use super::step::Step;
use super::{PostgresLedger, locks};
use crate::documents::Author;
use crate::shares::{Guest, GuestSession, NewShare, RefusedVisit, Share, ShareRevocation, Visit};
use crate::{LedgerError, Result, Shares};

/// Nobody tells us when somebody stops looking. After so long they have reloaded the page, or the server has forgotten them.
const VIEWERS_STAY: SignedDuration = SignedDuration::from_hours(7 * 24);

const COLUMNS: &str =
    "number, document, label, allows, may_download, password, created_by, created_ms, expires_ms, revoked_ms,
    uses, last_used_ms FROM shares";

#[async_trait]
impl Shares for PostgresLedger {
    async fn create_share(&self, new: &NewShare) -> Result<Share> {
        let step = self.write().await?;
        let done = create(&step, new).await;
        step.end(done).await
    }

    async fn share_by_hash(&self, hash: &Digest) -> Result<Option<Share>> {
        let query = format!("SELECT {COLUMNS} WHERE hash = $1");
        let step = self.glance().await?;
        let found = step.query_optional(&query, &[&Stored(*hash)]).await;
        step.end(found).await?.as_ref().map(share).transpose()
    }

    async fn share(&self, number: u64) -> Result<Option<Share>> {
        let step = self.read().await?;
        let done = find(&step, number).await;
        step.end(done).await
    }

    async fn shares(&self, document: &DocumentId, after: u64, limit: u32) -> Result<Vec<Share>> {
        let query = format!("SELECT {COLUMNS} WHERE document = $1 AND number > $2 ORDER BY number LIMIT $3");
        let step = self.glance().await?;
        let found = step.query(&query, &[&document.as_str(), &asked(after), &i64::from(limit)]).await;
        step.end(found).await.and_then(|rows| all(&rows, share))
    }

    async fn admit_guest(&self, visit: &Visit) -> Result<Option<Guest>> {
        let step = self.write().await?;
        let done = admit(&step, visit).await;
        step.end(done).await
    }

    async fn guest(&self, share: u64, number: u64) -> Result<Option<Guest>> {
        let query = "SELECT share, number, name FROM guests WHERE share = $1 AND number = $2";
        let step = self.glance().await?;
        let found = step.query_optional(query, &[&asked(share), &asked(number)]).await;
        let Some(row) = step.end(found).await? else { return Ok(None) };
        Ok(Some(Guest { share: get(&row, "share")?, number: get(&row, "number")?, name: get(&row, "name")? }))
    }

    async fn seat_guest(&self, session: &GuestSession, at: Timestamp) -> Result<bool> {
        let step = self.write().await?;
        let done = seat(&step, session, at).await;
        step.end(done).await
    }

    async fn revoke_share(&self, revocation: &ShareRevocation) -> Result<bool> {
        let step = self.write().await?;
        let done = revoke(&step, revocation).await;
        step.end(done).await
    }

    async fn guests_to_drop(&self, now: Timestamp, limit: u32) -> Result<Vec<GuestSession>> {
        let query =
            "SELECT share, guest, key, until_ms FROM guest_drops WHERE dropped_ms IS NULL OR until_ms <= $1
                     ORDER BY key, share, guest LIMIT $2";
        let step = self.glance().await?;
        let found = step.query(query, &[&ms(now), &i64::from(limit)]).await;
        step.end(found).await.and_then(|rows| all(&rows, session))
    }

    async fn note_dropped(&self, sessions: &[GuestSession], at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = note_dropped(&step, sessions, at).await;
        step.end(done).await
    }

    async fn unwelcome(&self, users: &[String]) -> Result<Vec<String>> {
        let guests: Vec<_> = users.iter().filter_map(|user| Some((user, read_guest_id(user)?))).collect();
        if guests.is_empty() {
            return Ok(Vec::new());
        }
        let (ids, numbers): (Vec<&str>, Vec<(u64, u64)>) =
            guests.into_iter().map(|(user, numbers)| (user.as_str(), numbers)).unzip();
        let (shares, guests): (Vec<i64>, Vec<i64>) =
            numbers.into_iter().map(|(share, guest)| (asked(share), asked(guest))).unzip();
        let query = "SELECT u.id FROM UNNEST($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS u (id, share, guest, place)
                     JOIN guests g ON g.share = u.share AND g.number = u.guest
                     JOIN shares s ON s.number = g.share WHERE s.revoked_ms IS NOT NULL ORDER BY u.place";
        let step = self.glance().await?;
        let found = step.query(query, &[&ids, &shares, &guests]).await;
        step.end(found).await.and_then(|rows| all(&rows, |row| get(row, "id")))
    }

    async fn note_refused(&self, refused: &RefusedVisit) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            let share = locked(&step, refused.share).await?;
            let nobody = Author::new("nobody", "Nobody").calling_from(refused.from.clone());
            let details = json!({ "share": share.number, "outcome": refused.why });
            note(&step, &share, (&nobody, refused.at), ("share-refused", details)).await
        };
        let done = done.await;
        step.end(done).await
    }
}

async fn create(step: &Step, new: &NewShare) -> Result<Share> {
    locks::document(step, &new.document).await?;
    let is_there = "SELECT 1 FROM documents WHERE id = $1 AND deleted_ms IS NULL";
    if !step.exists(is_there, &[&new.document.as_str()]).await? {
        return Err(LedgerError::not_found(format!("document `{}`", new.document)));
    }
    let row = step
        .query_one(
            "INSERT INTO shares (hash, document, label, allows, may_download, password, created_by, created_ms, expires_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING number",
            &[
                &Stored(new.hash),
                &new.document.as_str(),
                &text(&new.label),
                &new.allows.as_str(),
                &(new.download == DownloadSwitch::On),
                &new.password,
                &text(&new.by.id),
                &ms(new.at),
                &optional_ms(new.expires_at),
            ],
        )
        .await?;
    let number: u64 = get(&row, "number")?;
    let share = require(step, number).await?;
    let details = json!({
        "share": number,
        "label": share.label,
        "allows": share.allows.as_str(),
        "mayDownload": share.download == DownloadSwitch::On,
        "hasPassword": share.password.is_some(),
        "expiresMs": optional_ms(share.expires_at),
    });
    note(step, &share, (&new.by, new.at), ("share-created", details)).await?;
    Ok(share)
}

async fn admit(step: &Step, visit: &Visit) -> Result<Option<Guest>> {
    let share = locked(step, visit.share).await?;
    if !share.counts_at(visit.at) {
        return Ok(None);
    }
    let number = share.uses + 1;
    let guest = Guest { share: share.number, number, name: guest_name(visit.said_name.as_deref(), number) };
    step.execute(
        "UPDATE shares SET uses = $2, last_used_ms = $3 WHERE number = $1",
        &[&asked(guest.share), &asked(guest.number), &ms(visit.at)],
    )
    .await?;
    step.execute(
        "INSERT INTO guests (share, number, name, opened_ms) VALUES ($1, $2, $3, $4)",
        &[&asked(guest.share), &asked(guest.number), &text(&guest.name), &ms(visit.at)],
    )
    .await?;
    let who = Author::new(guest.id(), guest.name.clone()).calling_from(visit.from.clone());
    let details = json!({ "share": share.number, "name": guest.name });
    note(step, &share, (&who, visit.at), ("share-used", details)).await?;
    Ok(Some(guest))
}

async fn seat(step: &Step, session: &GuestSession, at: Timestamp) -> Result<bool> {
    if !locked(step, session.share).await?.counts_at(at) {
        return Ok(false);
    }
    step.execute("INSERT INTO guest_sessions (share, guest, key, opened_ms, until_ms) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (share, guest, key) DO UPDATE SET opened_ms = $4, until_ms = greatest(guest_sessions.until_ms, $5)", &[&asked(session.share), &asked(session.guest), &session.key.as_str(), &ms(at), &ms(session.until)]).await?;
    Ok(true)
}

async fn revoke(step: &Step, revocation: &ShareRevocation) -> Result<bool> {
    let share = locked(step, revocation.number).await?;
    if share.revoked_at.is_some() {
        return Ok(false);
    }
    let viewers_since = revocation.at.checked_sub(VIEWERS_STAY).unwrap_or(Timestamp::MIN);
    step.execute(
        "UPDATE shares SET revoked_ms = $2 WHERE number = $1",
        &[&asked(revocation.number), &ms(revocation.at)],
    )
    .await?;
    // Who edits is inside as long as the key is live; who comes back into a retired one is asked to leave anyway.
    let inside = step.execute("INSERT INTO guest_drops (share, guest, key, until_ms)
         SELECT g.share, g.guest, g.key, g.until_ms FROM guest_sessions g JOIN keys k ON k.key = g.key
         WHERE g.share = $1 AND ((k.mode = 'edit' AND k.state = 'live') OR (k.mode = 'view' AND g.opened_ms >= $2))", &[&asked(revocation.number), &ms(viewers_since)]).await?;
    let details = json!({ "share": share.number, "uses": share.uses, "askedToLeave": inside });
    note(step, &share, (&revocation.by, revocation.at), ("share-revoked", details)).await?;
    Ok(true)
}

/// Behind the lock of its document, where whatever happens to a link is written down.
async fn locked(step: &Step, number: u64) -> Result<Share> {
    let query = "SELECT 1 FROM documents d WHERE d.id = (SELECT s.document FROM shares s WHERE s.number = $1)
                 FOR NO KEY UPDATE OF d";
    step.exists(query, &[&asked(number)]).await?;
    require(step, number).await
}

async fn note_dropped(step: &Step, sessions: &[GuestSession], at: Timestamp) -> Result<()> {
    let shares: Vec<i64> = sessions.iter().map(|session| asked(session.share)).collect();
    let guests: Vec<i64> = sessions.iter().map(|session| asked(session.guest)).collect();
    let keys: Vec<&str> = sessions.iter().map(|session| session.key.as_str()).collect();
    let these = "SELECT share, guest, key FROM UNNEST($1::bigint[], $2::bigint[], $3::text[]) AS u (share, guest, key)";
    for statement in [
        format!("UPDATE guest_drops SET dropped_ms = $4 WHERE (share, guest, key) IN ({these})"),
        format!("DELETE FROM guest_drops WHERE until_ms <= $4 AND (share, guest, key) IN ({these})"),
    ] {
        step.execute(&statement, &[&shares, &guests, &keys, &ms(at)]).await?;
    }
    Ok(())
}

async fn find(step: &Step, number: u64) -> Result<Option<Share>> {
    let query = format!("SELECT {COLUMNS} WHERE number = $1");
    step.query_optional(&query, &[&asked(number)]).await?.as_ref().map(share).transpose()
}

async fn require(step: &Step, number: u64) -> Result<Share> {
    find(step, number).await?.ok_or_else(|| LedgerError::not_found(format!("share link {number}")))
}

async fn note(
    step: &Step,
    share: &Share,
    (by, at): (&Author, Timestamp),
    (action, details): (&str, Value),
) -> Result<()> {
    append(step, &Act { document: &share.document, at, actor: Actor::person(by), action, details }).await
}

fn share(row: &Row) -> Result<Share> {
    let allows: String = get(row, "allows")?;
    Ok(Share {
        number: get(row, "number")?,
        document: get(row, "document")?,
        label: get(row, "label")?,
        allows: Allows::parse(&allows)
            .ok_or_else(|| LedgerError::damaged(format!("what a share link allows: `{allows}`")))?,
        download: if get::<bool>(row, "may_download")? { DownloadSwitch::On } else { DownloadSwitch::Off },
        password: get_optional(row, "password")?,
        created_by: get(row, "created_by")?,
        created_at: get(row, "created_ms")?,
        expires_at: get_optional(row, "expires_ms")?,
        revoked_at: get_optional(row, "revoked_ms")?,
        uses: get(row, "uses")?,
        last_used_at: get_optional(row, "last_used_ms")?,
    })
}

fn session(row: &Row) -> Result<GuestSession> {
    Ok(GuestSession {
        share: get(row, "share")?,
        guest: get(row, "guest")?,
        key: get(row, "key")?,
        until: get(row, "until_ms")?,
    })
}
