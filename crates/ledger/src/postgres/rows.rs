//! Between rows and our words: one place that knows how each value is stored.
//!
//! Guarantees: a value that cannot be read back as what it must be is reported as damage, never guessed.

use std::borrow::Cow;
use std::error::Error;

use jiff::Timestamp;
use jiff::civil::Date;
use model::checking::Extent;
use model::names::FileName;
use model::versions::Origin;
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::documents::{Author, BlobFacts, Content, Document, Keeping, KeptCopy};
use crate::trail::BlobRecord;
use crate::{LedgerError, Result};

/// A value as it is stored; the wrapper keeps SQL out of `model`.
#[derive(Debug, Clone)]
pub(super) struct Stored<T>(pub(super) T);

type Converted<T> = std::result::Result<T, Box<dyn Error + Sync + Send>>;

fn refused<T: std::fmt::Debug>(what: T) -> Box<dyn Error + Sync + Send> {
    format!("{what:?} cannot be read").into()
}

/// How a word of ours is read from a column: through which plain value, and how that becomes the word.
macro_rules! read_through {
    ($($word:ty: $plain:ty, $read:expr;)*) => {$(
        impl<'a> FromSql<'a> for Stored<$word> {
            fn from_sql(kind: &Type, raw: &'a [u8]) -> Converted<Self> {
                let plain = <$plain as FromSql>::from_sql(kind, raw)?;
                let read: fn($plain) -> Converted<$word> = $read;
                read(plain).map(Self)
            }

            fn accepts(kind: &Type) -> bool {
                <$plain as FromSql>::accepts(kind)
            }
        }
    )*};
}

read_through! {
    Timestamp: i64, |ms| Timestamp::from_millisecond(ms).map_err(refused);
    Digest: &[u8], |bytes| Digest::from_slice(bytes).ok_or_else(|| refused("a digest"));
    DocumentId: &str, |text| DocumentId::parse(text).map_err(refused);
    EditorKey: &str, |text| EditorKey::parse(text).ok_or_else(|| refused("a key"));
    FileName: &str, |text| FileName::parse(text).map_err(refused);
    InboxNumber: i64, |number| Ok(InboxNumber(u64::try_from(number)?));
    Date: &str, |text| model::scopes::day(text).map_err(refused);
    u64: i64, |number| Ok(u64::try_from(number)?);
    u32: i64, |number| Ok(u32::try_from(number)?);
    u8: i64, |number| Ok(u8::try_from(number)?);
    i64: i64, Ok;
    bool: bool, Ok;
    String: &str, |text| Ok(text.to_owned());
}

/// How a word of ours is written: as which plain value.
macro_rules! written_as {
    ($($word:ty: $plain:ty, $write:expr;)*) => {$(
        impl ToSql for Stored<$word> {
            fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Converted<IsNull> {
                let write: fn(&$word) -> Converted<$plain> = $write;
                write(&self.0)?.to_sql(kind, out)
            }

            fn accepts(kind: &Type) -> bool {
                <$plain as ToSql>::accepts(kind)
            }

            to_sql_checked!();
        }
    )*};
}

written_as! {
    Timestamp: i64, |at| Ok(at.as_millisecond());
    Digest: Vec<u8>, |digest| Ok(digest.as_bytes().to_vec());
    InboxNumber: i64, |number| Ok(i64::try_from(number.0)?);
    Date: String, |day| Ok(day.to_string());
    u64: i64, |number| Ok(i64::try_from(*number)?);
    u32: i64, |number| Ok(i64::from(*number));
}

/// A number that somebody asks for, as it would be stored. One that no row can have finds none, instead of failing.
pub(super) fn asked(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Shorthand for storing a point in time.
pub(super) fn ms(at: Timestamp) -> Stored<Timestamp> {
    Stored(at)
}

/// Shorthand for an optional point in time.
pub(super) fn optional_ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millisecond)
}

/// A text that people or other programs chose. PostgreSQL stores no zero byte, and a save must not fail by one.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Reads one column as one of our words.
pub(super) fn get<T>(row: &Row, column: &str) -> Result<T>
where
    for<'a> Stored<T>: FromSql<'a>,
{
    row.try_get::<_, Stored<T>>(column).map(|stored| stored.0).map_err(|cause| unreadable(column, &cause))
}

/// Reads one column that may be empty.
pub(super) fn get_optional<T>(row: &Row, column: &str) -> Result<Option<T>>
where
    for<'a> Stored<T>: FromSql<'a>,
{
    row.try_get::<_, Option<Stored<T>>>(column)
        .map(|stored| stored.map(|stored| stored.0))
        .map_err(|cause| unreadable(column, &cause))
}

fn unreadable(column: &str, cause: &tokio_postgres::Error) -> LedgerError {
    let why = cause.source().map_or_else(|| cause.to_string(), ToString::to_string);
    LedgerError::damaged(format!("column `{column}`: {why}"))
}

/// Reads all rows.
pub(super) fn all<T>(rows: &[Row], read: impl Fn(&Row) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(read).collect()
}

pub(super) fn label(row: &Row, version: &str, checkpoint: &str) -> Result<Label> {
    Ok(Label { version: get(row, version)?, checkpoint: get(row, checkpoint)? })
}

pub(super) const DOCUMENT_COLUMNS: &str = "
    d.id, d.company, d.project, d.name, d.created_ms, d.head_version, d.head_checkpoint, d.head_digest, d.head_key,
    d.head_moved_ms, d.deleted_ms, b.size_bytes, c.file_type,
    (SELECT k.users FROM keys k WHERE k.document = d.id AND k.state = 'live' AND k.mode = 'edit') AS users
    FROM documents d JOIN blobs b ON b.digest = d.head_digest
    JOIN contents c ON c.document = d.id AND c.version = d.head_version AND c.checkpoint = d.head_checkpoint";

pub(super) fn document(row: &Row) -> Result<Document> {
    Ok(Document {
        id: get(row, "id")?,
        company: id(row, "company", model::CompanyId::parse)?,
        project: id(row, "project", model::ProjectId::parse)?,
        name: get(row, "name")?,
        created_at: get(row, "created_ms")?,
        head: label(row, "head_version", "head_checkpoint")?,
        head_digest: get(row, "head_digest")?,
        head_size_bytes: get(row, "size_bytes")?,
        head_file_type: get(row, "file_type")?,
        head_moved_at: get(row, "head_moved_ms")?,
        head_key: get_optional(row, "head_key")?,
        editors: get_optional::<String>(row, "users")?.map(|users| names(&users)).unwrap_or_default(),
        deleted_at: get_optional(row, "deleted_ms")?,
    })
}

pub(super) fn id<T, E: std::fmt::Debug>(
    row: &Row,
    column: &str,
    parse: impl Fn(&str) -> std::result::Result<T, E>,
) -> Result<T> {
    let text: String = get(row, column)?;
    parse(&text).map_err(|cause| LedgerError::damaged(format!("column `{column}`: {cause:?}")))
}

/// A list of user ids is stored as a JSON array; anything else is nobody.
pub(super) fn names(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}

pub(super) const CONTENT_COLUMNS: &str = "
    c.version, c.checkpoint, c.origin, c.digest, b.size_bytes, c.file_type, c.flags, c.extent, c.author_id, c.author_name,
    c.committed_ms, c.saved_ms, c.key, c.inbox, c.is_filed_beside, c.history, c.server_version, c.changes_digest, c.changes_bytes,
    c.pruned_ms, b.removals FROM contents c JOIN blobs b ON b.digest = c.digest";

pub(super) fn content(row: &Row) -> Result<Content> {
    let origin: String = get(row, "origin")?;
    Ok(Content {
        label: label(row, "version", "checkpoint")?,
        origin: Origin::parse(&origin)
            .ok_or_else(|| LedgerError::damaged(format!("the origin `{origin}` of a content")))?,
        blob: blob(row)?,
        author: author(row)?,
        committed_at: get(row, "committed_ms")?,
        saved_at: get_optional(row, "saved_ms")?,
        key: get_optional(row, "key")?,
        inbox: get_optional(row, "inbox")?,
        is_filed_beside: get(row, "is_filed_beside")?,
        history: get_optional(row, "history")?,
        server_version: get_optional(row, "server_version")?,
        changes: get_optional(row, "changes_digest")?.zip(get_optional(row, "changes_bytes")?),
        pruned_at: get_optional(row, "pruned_ms")?,
    })
}

pub(super) const KEPT_COLUMNS: &str = "
    k.number, k.document, k.kind, k.reason, k.digest, b.size_bytes, k.file_type, k.flags, k.extent, k.author_id, k.author_name,
    k.kept_ms, k.key, k.inbox, k.settled_ms, k.settled_as, k.pruned_ms, b.removals
    FROM kept k JOIN blobs b ON b.digest = k.digest";

pub(super) fn kept(row: &Row) -> Result<KeptCopy> {
    let (kind, reason): (String, String) = (get(row, "kind")?, get(row, "reason")?);
    Ok(KeptCopy {
        number: get(row, "number")?,
        document: get_optional(row, "document")?,
        keeping: Keeping::parse(&kind, &reason)
            .ok_or_else(|| LedgerError::damaged(format!("the reason `{reason}` of a kept copy")))?,
        blob: blob(row)?,
        key: get_optional(row, "key")?,
        inbox: get_optional(row, "inbox")?,
        author: author(row)?,
        kept_at: get(row, "kept_ms")?,
        settled: get_optional(row, "settled_ms")?.zip(get_optional(row, "settled_as")?),
        pruned_at: get_optional(row, "pruned_ms")?,
    })
}

fn blob(row: &Row) -> Result<BlobFacts> {
    Ok(BlobFacts {
        digest: get(row, "digest")?,
        size_bytes: get(row, "size_bytes")?,
        file_type: get(row, "file_type")?,
        flags: get(row, "flags")?,
        extent: extent(row)?,
        removals: get(row, "removals")?,
    })
}

/// How much a content holds. What cannot be read is as good as not counted.
pub(super) fn extent(row: &Row) -> Result<Option<Extent>> {
    let text: Option<String> = get_optional(row, "extent")?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// The same for writing.
pub(super) fn extent_text(extent: Option<&Extent>) -> Option<String> {
    extent.and_then(|extent| serde_json::to_string(extent).ok())
}

fn author(row: &Row) -> Result<Author> {
    Ok(Author::new(get::<String>(row, "author_id")?, get::<String>(row, "author_name")?))
}

/// A blob, as the walk over everything sees it.
pub(super) fn blob_record(row: &Row) -> Result<BlobRecord> {
    Ok(BlobRecord {
        digest: get(row, "digest")?,
        size_bytes: get(row, "size_bytes")?,
        is_going: get::<String>(row, "state")? == "deleting",
        removals: get(row, "removals")?,
    })
}
