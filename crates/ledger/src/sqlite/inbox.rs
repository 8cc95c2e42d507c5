//! The inbox on SQLite: a callback is written down before it is worked on, and a repeat is recognised.

use jiff::Timestamp;
use model::callbacks::{Answer, Callback, ends_session};
use model::{DocumentId, InboxNumber};
use rusqlite::{Connection, params};

use super::rows::{Stored, get, get_optional, label, ms, optional, optional_ms};
use super::{Shared, keys};
pub(super) use crate::adapting::{End, InboxRow};
use crate::callback_text;
use crate::saves::{Arrival, Committed, Receipt, ReceiptStanding};
use crate::{LedgerError, Result};

/// Recognises a repeat, or writes the callback down.
pub(super) fn receive(connection: &Connection, shared: &Shared, arrival: &Arrival) -> Result<Receipt> {
    if shared.guards.inbox
        && let Some(known) = find_repeat(connection, arrival)?
    {
        note_repeat(connection, known.number, arrival)?;
        return Ok(known);
    }
    let document = match &arrival.document {
        Some(document) if keys::is_known_document(connection, document)? => Some(document.clone()),
        _ => None,
    };
    let number = write_down(connection, arrival, document.as_ref())?;
    if let Some(document) = &document {
        keys::adopt_if_unknown(connection, document, &arrival.callback.key, arrival.at)?;
        keys::count_received_save(connection, &arrival.callback, number, arrival.at)?;
    }
    Ok(Receipt { number, standing: ReceiptStanding::New, document })
}

/// The identity of a save: key, status and the path of its link; for a checkpoint also the time of its last change.
fn find_repeat(connection: &Connection, arrival: &Arrival) -> Result<Option<Receipt>> {
    let callback = &arrival.callback;
    let oldest = arrival.at.checked_sub(arrival.identity_window).unwrap_or(Timestamp::MIN);
    let found = connection
        .prepare_cached(
            "SELECT number, document, answer FROM inbox
             WHERE key = ?1 AND status = ?2 AND url_path IS ?3 AND (status <> 6 OR last_save_ms IS ?4)
             AND received_ms >= ?5 AND outcome IS NOT 'expired' ORDER BY number DESC LIMIT 1",
        )?
        .query_row(
            params![
                callback.key.as_str(),
                callback.status,
                callback.url_path(),
                optional_ms(callback.last_save),
                ms(oldest)
            ],
            |row| {
                let answer = row.get::<_, Option<String>>("answer")?;
                let standing = match answer.as_deref().and_then(Answer::parse) {
                    Some(answer) => ReceiptStanding::Finished(answer),
                    None => ReceiptStanding::Unfinished,
                };
                Ok(Receipt {
                    number: get(row, "number")?,
                    standing,
                    document: get_optional(row, "document")?,
                })
            },
        );
    optional(found)
}

/// A repeat brings a fresh link, which an unfinished save may need. What the first delivery said of the save stays: a
/// repeat may carry the time of a newer change.
fn note_repeat(connection: &Connection, number: InboxNumber, arrival: &Arrival) -> Result<()> {
    let first = load(connection, number)?.callback;
    let callback = Callback {
        last_save: first.last_save,
        session_start: first.session_start,
        history: first.history,
        ..arrival.callback.clone()
    };
    connection
        .prepare_cached(
            "UPDATE inbox SET deliveries = deliveries + 1,
             callback = CASE WHEN outcome IS NULL THEN ?2 ELSE callback END,
             link_received_ms = CASE WHEN outcome IS NULL THEN ?3 ELSE link_received_ms END WHERE number = ?1",
        )?
        .execute(params![Stored(number), callback_text::write(&callback), ms(arrival.at)])?;
    if ends_session(arrival.callback.status) {
        keys::count_repeat(connection, &arrival.callback.key, arrival.at)?;
    }
    Ok(())
}

pub(super) fn write_down(
    connection: &Connection,
    arrival: &Arrival,
    document: Option<&DocumentId>,
) -> Result<InboxNumber> {
    let callback = &arrival.callback;
    connection
        .prepare_cached(
            "INSERT INTO inbox (key, document, status, url_path, last_save_ms, callback, received_ms, link_received_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        )?
        .execute(params![
            callback.key.as_str(),
            document.map(DocumentId::as_str),
            callback.status,
            callback.url_path(),
            optional_ms(callback.last_save),
            callback_text::write(callback),
            ms(arrival.at),
        ])?;
    u64::try_from(connection.last_insert_rowid()).map(InboxNumber).map_err(LedgerError::damaged)
}

pub(super) fn load(connection: &Connection, number: InboxNumber) -> Result<InboxRow> {
    let found = connection.prepare_cached("SELECT * FROM inbox WHERE number = ?1")?.query_row(
        [Stored(number)],
        |row| {
            let document: Option<DocumentId> = get_optional(row, "document")?;
            let end = match row.get::<_, Option<String>>("answer")?.as_deref().and_then(Answer::parse) {
                None => None,
                Some(answer) => Some(Committed {
                    document: document.clone(),
                    ruling: None,
                    label: match row.get::<_, Option<u32>>("version")? {
                        Some(_) => Some(label(row, "version", "checkpoint")?),
                        None => None,
                    },
                    kept: row.get("kept")?,
                    answer,
                    vanished: Vec::new(),
                    over_quota: None,
                    is_new: false,
                }),
            };
            Ok((document, row.get::<_, String>("callback")?, end))
        },
    );
    let (document, text, end) =
        optional(found)?.ok_or_else(|| LedgerError::not_found(format!("callback {number}")))?;
    Ok(InboxRow { number, document, callback: callback_text::read(&text)?, end })
}

/// Writes down how a callback ended. A finished callback stays finished (a trigger sees to it).
pub(super) fn finish(
    connection: &Connection,
    number: InboxNumber,
    outcome: &str,
    end: &End<'_>,
) -> Result<()> {
    let committed = end.committed;
    connection
        .prepare_cached(
            "UPDATE inbox SET outcome = ?2, answer = ?3, version = ?4, checkpoint = ?5, kept = ?6, finished_ms = ?7,
             answered_ms = ?8 WHERE number = ?1",
        )?
        .execute(params![
            Stored(number),
            outcome,
            committed.answer.as_str(),
            committed.label.map(|label| label.version),
            committed.label.map(|label| label.checkpoint),
            committed.kept,
            ms(end.at),
            optional_ms(end.answered_at),
        ])?;
    Ok(())
}
