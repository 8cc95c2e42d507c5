//! Between rows and our words: one place that knows how each value is stored.
//!
//! Guarantees: a value that cannot be read back as what it must be is reported as damage, never guessed.

use jiff::Timestamp;
use jiff::civil::Date;
use model::checking::Extent;
use model::names::FileName;
use model::versions::Origin;
use model::{Digest, DocumentId, EditorKey, InboxNumber, Label};
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};

use crate::documents::{Author, BlobFacts, Content, Document, Keeping, KeptCopy};
use crate::trail::BlobRecord;
use crate::{LedgerError, Result};

/// A value as it is stored; the wrapper keeps SQL out of `model`.
#[derive(Debug, Clone)]
pub(super) struct Stored<T>(pub(super) T);

fn refused<T: std::fmt::Debug>(what: T) -> FromSqlError {
    FromSqlError::Other(format!("{what:?} cannot be read").into())
}

impl FromSql for Stored<Timestamp> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Timestamp::from_millisecond(value.as_i64()?).map(Self).map_err(refused)
    }
}

impl ToSql for Stored<Timestamp> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(Value::Integer(self.0.as_millisecond())))
    }
}

impl FromSql for Stored<Digest> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Digest::from_slice(value.as_blob()?).map(Self).ok_or_else(|| refused("a digest"))
    }
}

impl ToSql for Stored<Digest> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
    }
}

impl FromSql for Stored<DocumentId> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        DocumentId::parse(value.as_str()?).map(Self).map_err(refused)
    }
}

impl FromSql for Stored<EditorKey> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        EditorKey::parse(value.as_str()?).map(Self).ok_or_else(|| refused("a key"))
    }
}

impl FromSql for Stored<FileName> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        FileName::parse(value.as_str()?).map(Self).map_err(refused)
    }
}

impl FromSql for Stored<InboxNumber> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        u64::column_result(value).map(|number| Self(InboxNumber(number)))
    }
}

impl ToSql for Stored<InboxNumber> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let number =
            i64::try_from(self.0.0).map_err(|cause| rusqlite::Error::ToSqlConversionFailure(cause.into()))?;
        Ok(ToSqlOutput::Owned(Value::Integer(number)))
    }
}

impl FromSql for Stored<Date> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        model::scopes::day(value.as_str()?).map(Self).map_err(refused)
    }
}

impl ToSql for Stored<Date> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(Value::Text(self.0.to_string())))
    }
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

/// Reads one column as one of our words.
pub(super) fn get<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    Stored<T>: FromSql,
{
    row.get::<_, Stored<T>>(column).map(|stored| stored.0)
}

/// Reads one column that may be empty.
pub(super) fn get_optional<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>>
where
    Stored<T>: FromSql,
{
    row.get::<_, Option<Stored<T>>>(column).map(|stored| stored.map(|stored| stored.0))
}

pub(super) fn label(row: &Row<'_>, version: &str, checkpoint: &str) -> rusqlite::Result<Label> {
    Ok(Label { version: row.get(version)?, checkpoint: row.get(checkpoint)? })
}

pub(super) const DOCUMENT_COLUMNS: &str = "
    d.id, d.company, d.project, d.name, d.created_ms, d.head_version, d.head_checkpoint, d.head_digest, d.head_key,
    d.head_moved_ms, d.deleted_ms, b.size_bytes, c.file_type,
    (SELECT k.users FROM keys k WHERE k.document = d.id AND k.state = 'live' AND k.mode = 'edit') AS users
    FROM documents d JOIN blobs b ON b.digest = d.head_digest
    JOIN contents c ON c.document = d.id AND c.version = d.head_version AND c.checkpoint = d.head_checkpoint";

pub(super) fn document(row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        id: get(row, "id")?,
        company: id(row, "company", model::CompanyId::parse)?,
        project: id(row, "project", model::ProjectId::parse)?,
        name: get(row, "name")?,
        created_at: get(row, "created_ms")?,
        head: label(row, "head_version", "head_checkpoint")?,
        head_digest: get(row, "head_digest")?,
        head_size_bytes: row.get("size_bytes")?,
        head_file_type: row.get("file_type")?,
        head_moved_at: get(row, "head_moved_ms")?,
        head_key: get_optional(row, "head_key")?,
        editors: row.get::<_, Option<String>>("users")?.map(|users| names(&users)).unwrap_or_default(),
        deleted_at: get_optional(row, "deleted_ms")?,
    })
}

pub(super) fn id<T, E: std::fmt::Debug>(
    row: &Row<'_>,
    column: &str,
    parse: impl Fn(&str) -> std::result::Result<T, E>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).map_err(|cause| rusqlite::Error::ToSqlConversionFailure(format!("{cause:?}").into()))
}

/// A list of user ids is stored as a JSON array; anything else is nobody.
pub(super) fn names(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}

pub(super) const CONTENT_COLUMNS: &str = "
    c.version, c.checkpoint, c.origin, c.digest, b.size_bytes, c.file_type, c.flags, c.extent, c.author_id, c.author_name,
    c.committed_ms, c.saved_ms, c.key, c.inbox, c.is_filed_beside, c.history, c.server_version, c.changes_digest, c.changes_bytes,
    c.pruned_ms, b.removals FROM contents c JOIN blobs b ON b.digest = c.digest";

pub(super) fn content(row: &Row<'_>) -> rusqlite::Result<Content> {
    let origin: String = row.get("origin")?;
    Ok(Content {
        label: label(row, "version", "checkpoint")?,
        origin: Origin::parse(&origin).ok_or_else(|| rusqlite::Error::InvalidColumnName(origin))?,
        blob: blob(row)?,
        author: author(row)?,
        committed_at: get(row, "committed_ms")?,
        saved_at: get_optional(row, "saved_ms")?,
        key: get_optional(row, "key")?,
        inbox: get_optional(row, "inbox")?,
        is_filed_beside: row.get("is_filed_beside")?,
        history: row.get("history")?,
        server_version: row.get("server_version")?,
        changes: get_optional(row, "changes_digest")?.zip(row.get("changes_bytes")?),
        pruned_at: get_optional(row, "pruned_ms")?,
    })
}

pub(super) const KEPT_COLUMNS: &str = "
    k.number, k.document, k.kind, k.reason, k.digest, b.size_bytes, k.file_type, k.flags, k.extent, k.author_id, k.author_name,
    k.kept_ms, k.key, k.inbox, k.settled_ms, k.settled_as, k.pruned_ms, b.removals
    FROM kept k JOIN blobs b ON b.digest = k.digest";

pub(super) fn kept(row: &Row<'_>) -> rusqlite::Result<KeptCopy> {
    let (kind, reason): (String, String) = (row.get("kind")?, row.get("reason")?);
    Ok(KeptCopy {
        number: row.get("number")?,
        document: get_optional(row, "document")?,
        keeping: Keeping::parse(&kind, &reason).ok_or_else(|| rusqlite::Error::InvalidColumnName(reason))?,
        blob: blob(row)?,
        key: get_optional(row, "key")?,
        inbox: get_optional(row, "inbox")?,
        author: author(row)?,
        kept_at: get(row, "kept_ms")?,
        settled: get_optional(row, "settled_ms")?.zip(row.get("settled_as")?),
        pruned_at: get_optional(row, "pruned_ms")?,
    })
}

fn blob(row: &Row<'_>) -> rusqlite::Result<BlobFacts> {
    Ok(BlobFacts {
        digest: get(row, "digest")?,
        size_bytes: row.get("size_bytes")?,
        file_type: row.get("file_type")?,
        flags: row.get("flags")?,
        extent: extent(row)?,
        removals: row.get("removals")?,
    })
}

/// How much a content holds. What cannot be read is as good as not counted.
pub(super) fn extent(row: &Row<'_>) -> rusqlite::Result<Option<Extent>> {
    let text: Option<String> = row.get("extent")?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// The same for writing.
pub(super) fn extent_text(extent: Option<&Extent>) -> Option<String> {
    extent.and_then(|extent| serde_json::to_string(extent).ok())
}

fn author(row: &Row<'_>) -> rusqlite::Result<Author> {
    Ok(Author::new(row.get::<_, String>("author_id")?, row.get::<_, String>("author_name")?))
}

/// A blob, as the walk over everything sees it.
pub(super) fn blob_record(row: &Row<'_>) -> rusqlite::Result<BlobRecord> {
    Ok(BlobRecord {
        digest: get(row, "digest")?,
        size_bytes: row.get("size_bytes")?,
        is_going: row.get::<_, String>("state")? == "deleting",
        removals: row.get("removals")?,
    })
}

/// A lookup that may find nothing.
pub(super) fn optional<T>(found: rusqlite::Result<T>) -> Result<Option<T>> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        Err(cause) => Err(LedgerError::from(cause)),
    }
}
