//! Share links and their guests, on SQLite.
//!
//! Guarantees: a link is found by the hash of all its bits through an index, as API tokens are.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use model::sharing::{Allows, DownloadSwitch, guest_name, read_guest_id};
use model::{Digest, DocumentId};
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};

use super::SqliteLedger;
use super::audit::{Act, Actor, append};
use super::facts::exists;
use super::rows::{Stored, asked, get, get_optional, ms, optional, optional_ms};
use crate::documents::Author;
use crate::shares::{Guest, GuestSession, NewShare, RefusedVisit, Share, ShareRevocation, Visit};
use crate::{LedgerError, Result, Shares};

/// Nobody tells us when somebody stops looking. After so long they have reloaded the page, or the server has forgotten them.
const VIEWERS_STAY: SignedDuration = SignedDuration::from_hours(7 * 24);

#[async_trait]
impl Shares for SqliteLedger {
    async fn create_share(&self, new: &NewShare) -> Result<Share> {
        let new = new.clone();
        self.write(move |connection, _| create(connection, &new)).await
    }

    async fn share_by_hash(&self, hash: &Digest) -> Result<Option<Share>> {
        let hash = *hash;
        self.read(move |connection| {
            let mut query = connection.prepare_cached("SELECT * FROM shares WHERE hash = ?1")?;
            optional(query.query_row([Stored(hash)], share))
        })
        .await
    }

    async fn share(&self, number: u64) -> Result<Option<Share>> {
        self.read(move |connection| find(connection, number)).await
    }

    async fn shares(&self, document: &DocumentId, after: u64, limit: u32) -> Result<Vec<Share>> {
        let document = document.clone();
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM shares WHERE document = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
            )?;
            let rows = query.query_map(params![document.as_str(), asked(after), limit], share)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn admit_guest(&self, visit: &Visit) -> Result<Option<Guest>> {
        let visit = visit.clone();
        self.write(move |connection, _| admit(connection, &visit)).await
    }

    async fn guest(&self, share: u64, number: u64) -> Result<Option<Guest>> {
        self.read(move |connection| {
            let mut query =
                connection.prepare_cached("SELECT * FROM guests WHERE share = ?1 AND number = ?2")?;
            optional(query.query_row([share, number], |row| {
                Ok(Guest { share: row.get("share")?, number: row.get("number")?, name: row.get("name")? })
            }))
        })
        .await
    }

    async fn seat_guest(&self, session: &GuestSession, at: Timestamp) -> Result<bool> {
        let session = session.clone();
        self.write(move |connection, _| seat(connection, &session, at)).await
    }

    async fn revoke_share(&self, revocation: &ShareRevocation) -> Result<bool> {
        let revocation = revocation.clone();
        self.write(move |connection, _| revoke(connection, &revocation)).await
    }

    async fn guests_to_drop(&self, now: Timestamp, limit: u32) -> Result<Vec<GuestSession>> {
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM guest_drops WHERE dropped_ms IS NULL OR until_ms <= ?1 ORDER BY key, share, guest LIMIT ?2",
            )?;
            Ok(query.query_map(params![ms(now), limit], session)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn note_dropped(&self, sessions: &[GuestSession], at: Timestamp) -> Result<()> {
        let sessions = sessions.to_vec();
        self.write(move |connection, _| {
            for session in &sessions {
                let place = params![session.share, session.guest, session.key.as_str(), ms(at)];
                connection
                    .prepare_cached(
                        "UPDATE guest_drops SET dropped_ms = ?4 WHERE share = ?1 AND guest = ?2 AND key = ?3",
                    )?
                    .execute(place)?;
                connection
                    .prepare_cached(
                        "DELETE FROM guest_drops WHERE share = ?1 AND guest = ?2 AND key = ?3 AND until_ms <= ?4",
                    )?
                    .execute(place)?;
            }
            Ok(())
        })
        .await
    }

    async fn unwelcome(&self, users: &[String]) -> Result<Vec<String>> {
        let users = users.to_vec();
        self.read(move |connection| {
            let is_revoked = "SELECT 1 FROM guests g JOIN shares s ON s.number = g.share
                WHERE g.share = ?1 AND g.number = ?2 AND s.revoked_ms IS NOT NULL";
            let mut unwelcome = Vec::new();
            for user in users {
                let Some((share, guest)) = read_guest_id(&user) else { continue };
                if exists(connection, is_revoked, params![share, guest])? {
                    unwelcome.push(user);
                }
            }
            Ok(unwelcome)
        })
        .await
    }

    async fn note_refused(&self, refused: &RefusedVisit) -> Result<()> {
        let refused = refused.clone();
        self.write(move |connection, _| {
            let share = require(connection, refused.share)?;
            let nobody = Author::new("nobody", "Nobody").calling_from(refused.from);
            let details = json!({ "share": share.number, "outcome": refused.why });
            note(connection, &share, (&nobody, refused.at), ("share-refused", details))
        })
        .await
    }
}

fn create(connection: &Connection, new: &NewShare) -> Result<Share> {
    let is_there = "SELECT 1 FROM documents WHERE id = ?1 AND deleted_ms IS NULL";
    if !exists(connection, is_there, params![new.document.as_str()])? {
        return Err(LedgerError::not_found(format!("document `{}`", new.document)));
    }
    connection.execute(
        "INSERT INTO shares (hash, document, label, allows, may_download, password, created_by, created_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            Stored(new.hash),
            new.document.as_str(),
            new.label,
            new.allows.as_str(),
            new.download == DownloadSwitch::On,
            new.password,
            new.by.id,
            ms(new.at),
            optional_ms(new.expires_at),
        ],
    )?;
    let number = u64::try_from(connection.last_insert_rowid()).map_err(LedgerError::damaged)?;
    let share = require(connection, number)?;
    let details = json!({
        "share": number,
        "label": share.label,
        "allows": share.allows.as_str(),
        "mayDownload": share.download == DownloadSwitch::On,
        "hasPassword": share.password.is_some(),
        "expiresMs": optional_ms(share.expires_at),
    });
    note(connection, &share, (&new.by, new.at), ("share-created", details))?;
    Ok(share)
}

fn admit(connection: &Connection, visit: &Visit) -> Result<Option<Guest>> {
    let share = require(connection, visit.share)?;
    if !share.counts_at(visit.at) {
        return Ok(None);
    }
    let number = share.uses + 1;
    let guest = Guest { share: share.number, number, name: guest_name(visit.said_name.as_deref(), number) };
    connection
        .prepare_cached("UPDATE shares SET uses = ?2, last_used_ms = ?3 WHERE number = ?1")?
        .execute(params![guest.share, guest.number, ms(visit.at)])?;
    connection
        .prepare_cached("INSERT INTO guests (share, number, name, opened_ms) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![guest.share, guest.number, guest.name, ms(visit.at)])?;
    let who = Author::new(guest.id(), guest.name.clone()).calling_from(visit.from.clone());
    let details = json!({ "share": share.number, "name": guest.name });
    note(connection, &share, (&who, visit.at), ("share-used", details))?;
    Ok(Some(guest))
}

fn seat(connection: &Connection, session: &GuestSession, at: Timestamp) -> Result<bool> {
    if !require(connection, session.share)?.counts_at(at) {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT INTO guest_sessions (share, guest, key, opened_ms, until_ms) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET (opened_ms, until_ms) = (?4, max(until_ms, ?5))",
        )?
        .execute(params![session.share, session.guest, session.key.as_str(), ms(at), ms(session.until)])?;
    Ok(true)
}

fn revoke(connection: &Connection, revocation: &ShareRevocation) -> Result<bool> {
    let share = require(connection, revocation.number)?;
    if share.revoked_at.is_some() {
        return Ok(false);
    }
    let viewers_since = revocation.at.checked_sub(VIEWERS_STAY).unwrap_or(Timestamp::MIN);
    connection.execute(
        "UPDATE shares SET revoked_ms = ?2 WHERE number = ?1",
        params![revocation.number, ms(revocation.at)],
    )?;
    // Who edits is inside as long as the key is live; who comes back into a retired one is asked to leave anyway.
    let inside = connection.execute(
        "INSERT INTO guest_drops (share, guest, key, until_ms)
         SELECT g.share, g.guest, g.key, g.until_ms FROM guest_sessions g JOIN keys k ON k.key = g.key
         WHERE g.share = ?1 AND ((k.mode = 'edit' AND k.state = 'live') OR (k.mode = 'view' AND g.opened_ms >= ?2))",
        params![revocation.number, ms(viewers_since)],
    )?;
    let details = json!({ "share": share.number, "uses": share.uses, "askedToLeave": inside });
    note(connection, &share, (&revocation.by, revocation.at), ("share-revoked", details))?;
    Ok(true)
}

fn find(connection: &Connection, number: u64) -> Result<Option<Share>> {
    let mut query = connection.prepare_cached("SELECT * FROM shares WHERE number = ?1")?;
    optional(query.query_row([asked(number)], share))
}

fn require(connection: &Connection, number: u64) -> Result<Share> {
    find(connection, number)?.ok_or_else(|| LedgerError::not_found(format!("share link {number}")))
}

fn note(
    connection: &Connection,
    share: &Share,
    (by, at): (&Author, Timestamp),
    (action, details): (&str, Value),
) -> Result<()> {
    append(connection, &Act { document: &share.document, at, actor: Actor::person(by), action, details })
}

fn share(row: &Row<'_>) -> rusqlite::Result<Share> {
    let allows: String = row.get("allows")?;
    Ok(Share {
        number: row.get("number")?,
        document: get(row, "document")?,
        label: row.get("label")?,
        allows: Allows::parse(&allows)
            .ok_or_else(|| rusqlite::Error::InvalidColumnName("allows".to_owned()))?,
        download: if row.get("may_download")? { DownloadSwitch::On } else { DownloadSwitch::Off },
        password: row.get("password")?,
        created_by: row.get("created_by")?,
        created_at: get(row, "created_ms")?,
        expires_at: get_optional(row, "expires_ms")?,
        revoked_at: get_optional(row, "revoked_ms")?,
        uses: row.get("uses")?,
        last_used_at: get_optional(row, "last_used_ms")?,
    })
}

fn session(row: &Row<'_>) -> rusqlite::Result<GuestSession> {
    Ok(GuestSession {
        share: row.get("share")?,
        guest: row.get("guest")?,
        key: get(row, "key")?,
        until: get(row, "until_ms")?,
    })
}
