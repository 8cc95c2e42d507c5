//! The inbox on PostgreSQL: a callback is written down before it is worked on, and a repeat is recognised.
//!
//! Guarantees: the numbers of one document are in the order of arrival, because they are taken behind the document's lock:
//! whoever sees a number sees all smaller ones of the same document. Callbacks of unknown documents are ordered by their key.

use jiff::Timestamp;
use model::callbacks::{Answer, Callback, ends_session};
use model::{DocumentId, InboxNumber};
use tokio_postgres::Row;

use super::rows::{Stored, get, get_optional, label, ms, optional_ms, text};
use super::step::Step;
use super::{keys, locks};
use crate::adapting::{End, InboxRow};
use crate::saves::{Arrival, Committed, Receipt, ReceiptStanding};
use crate::{LedgerError, Result, callback_text};

/// Recognises a repeat, or writes the callback down.
pub(super) async fn receive(step: &Step, arrival: &Arrival) -> Result<Receipt> {
    let (repeat, document) = match &arrival.document {
        Some(document) => locked_with_document(step, arrival, document).await?,
        None => (locked_by_name(step, arrival).await?, None),
    };
    if let Some(known) = repeat {
        note_repeat(step, known.number, arrival).await?;
        return Ok(known);
    }
    let number = write_down(step, arrival, document.as_ref()).await?;
    if let Some(document) = &document {
        tokio::try_join!(
            biased;
            keys::adopt_if_unknown(step, document, &arrival.callback.key, arrival.at),
            keys::count_received_save(step, &arrival.callback, number, arrival.at),
        )?;
    }
    Ok(Receipt { number, standing: ReceiptStanding::New, document })
}

/// The callback this one repeats, and its document if that is not gone: what is true behind the document's lock.
async fn locked_with_document(
    step: &Step,
    arrival: &Arrival,
    document: &DocumentId,
) -> Result<(Option<Receipt>, Option<DocumentId>)> {
    let (is_there, repeat, is_known) = tokio::try_join!(
        biased;
        locks::document(step, document),
        find_repeat(step, arrival),
        keys::is_known_document(step, document),
    )?;
    if !is_there {
        return Ok((locked_by_name(step, arrival).await?, None));
    }
    Ok((repeat, is_known.then(|| document.clone())))
}

/// The same for a callback without a document, behind a lock of its key.
async fn locked_by_name(step: &Step, arrival: &Arrival) -> Result<Option<Receipt>> {
    let key = arrival.callback.key.as_str();
    let ((), repeat) = tokio::try_join!(biased; locks::name(step, key), find_repeat(step, arrival))?;
    Ok(repeat)
}

/// The identity of a save: key, status and the path of its link; for a checkpoint also the time of its last change.
async fn find_repeat(step: &Step, arrival: &Arrival) -> Result<Option<Receipt>> {
    if !step.shared.guards.inbox {
        return Ok(None);
    }
    let callback = &arrival.callback;
    let oldest = arrival.at.checked_sub(arrival.identity_window).unwrap_or(Timestamp::MIN);
    let found = step
        .query_optional(
            "SELECT number, document, answer FROM inbox
             WHERE key = $1 AND status = $2 AND url_path IS NOT DISTINCT FROM $3
             AND (status <> 6 OR last_save_ms IS NOT DISTINCT FROM $4)
             AND received_ms >= $5 AND outcome IS DISTINCT FROM 'expired' ORDER BY number DESC LIMIT 1",
            &[
                &callback.key.as_str(),
                &i64::from(callback.status),
                &callback.url_path().map(text),
                &optional_ms(callback.last_save),
                &ms(oldest),
            ],
        )
        .await?;
    let Some(row) = found else { return Ok(None) };
    let answer = get_optional::<String>(&row, "answer")?;
    let standing = match answer.as_deref().and_then(Answer::parse) {
        Some(answer) => ReceiptStanding::Finished(answer),
        None => ReceiptStanding::Unfinished,
    };
    Ok(Some(Receipt { number: get(&row, "number")?, standing, document: get_optional(&row, "document")? }))
}

/// A repeat brings a fresh link, which an unfinished save may need. What the first delivery said of the save stays: a
/// repeat may carry the time of a newer change.
async fn note_repeat(step: &Step, number: InboxNumber, arrival: &Arrival) -> Result<()> {
    let first = load(step, number).await?.callback;
    let callback = Callback {
        last_save: first.last_save,
        session_start: first.session_start,
        history: first.history,
        ..arrival.callback.clone()
    };
    step.execute(
        "UPDATE inbox SET deliveries = deliveries + 1,
         callback = CASE WHEN outcome IS NULL THEN $2 ELSE callback END,
         link_received_ms = CASE WHEN outcome IS NULL THEN $3 ELSE link_received_ms END WHERE number = $1",
        &[&Stored(number), &callback_text::write(&callback), &ms(arrival.at)],
    )
    .await?;
    if ends_session(arrival.callback.status) {
        keys::count_repeat(step, &arrival.callback.key, arrival.at).await?;
    }
    Ok(())
}

pub(super) async fn write_down(
    step: &Step,
    arrival: &Arrival,
    document: Option<&DocumentId>,
) -> Result<InboxNumber> {
    let callback = &arrival.callback;
    let row = step
        .query_one(
            "INSERT INTO inbox (key, document, status, url_path, last_save_ms, callback, received_ms, link_received_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $7) RETURNING number",
            &[
                &callback.key.as_str(),
                &document.map(DocumentId::as_str),
                &i64::from(callback.status),
                &callback.url_path().map(text),
                &optional_ms(callback.last_save),
                &callback_text::write(callback),
                &ms(arrival.at),
            ],
        )
        .await?;
    get(&row, "number")
}

/// Reads a callback to work on it. Whoever does more than read has locked it: [`locks::callback`].
pub(super) async fn load(step: &Step, number: InboxNumber) -> Result<InboxRow> {
    let query = "SELECT document, callback, answer, version, checkpoint, kept FROM inbox WHERE number = $1";
    let row = step.query_optional(query, &[&Stored(number)]).await?;
    let row = row.ok_or_else(|| LedgerError::not_found(format!("callback {number}")))?;
    let callback = callback_text::read(&get::<String>(&row, "callback")?)?;
    Ok(InboxRow { number, document: get_optional(&row, "document")?, callback, end: end_of(&row)? })
}

fn end_of(row: &Row) -> Result<Option<Committed>> {
    let answer = get_optional::<String>(row, "answer")?;
    let Some(answer) = answer.as_deref().and_then(Answer::parse) else { return Ok(None) };
    Ok(Some(Committed {
        document: get_optional(row, "document")?,
        ruling: None,
        label: match get_optional::<u32>(row, "version")? {
            Some(_) => Some(label(row, "version", "checkpoint")?),
            None => None,
        },
        kept: get_optional(row, "kept")?,
        answer,
        vanished: Vec::new(),
        over_quota: None,
        is_new: false,
    }))
}

/// Writes down how a callback ended. A finished callback stays finished (a trigger sees to it).
pub(super) async fn finish(step: &Step, number: InboxNumber, outcome: &str, end: &End<'_>) -> Result<()> {
    let committed = end.committed;
    step.execute(
        "UPDATE inbox SET outcome = $2, answer = $3, version = $4, checkpoint = $5, kept = $6, finished_ms = $7,
         answered_ms = $8 WHERE number = $1",
        &[
            &Stored(number),
            &outcome,
            &committed.answer.as_str(),
            &committed.label.map(|label| Stored(label.version)),
            &committed.label.map(|label| Stored(label.checkpoint)),
            &committed.kept.map(Stored),
            &ms(end.at),
            &optional_ms(end.answered_at),
        ],
    )
    .await
    .map(drop)
}
