//! How a callback is written into the inbox: verified fields as JSON, so that recovery can go on from the row alone.
//!
//! Guarantees: reads back what it wrote; a field added later is optional, so rows of older versions stay readable.

use jiff::Timestamp;
use model::EditorKey;
use model::callbacks::Callback;
use serde_json::{Value, json};

use crate::{LedgerError, Result};

pub(crate) fn write(callback: &Callback) -> String {
    json!({
        "key": callback.key.as_str(),
        "status": callback.status,
        "url": callback.url,
        "formsDataUrl": callback.forms_data_url,
        "changesUrl": callback.changes_url,
        "fileType": callback.file_type,
        "users": callback.users,
        "authorName": callback.author_name,
        "lastSaveMs": callback.last_save.map(Timestamp::as_millisecond),
        "sessionStartMs": callback.session_start.map(Timestamp::as_millisecond),
        "serverVersion": callback.server_version,
        "history": callback.history,
        "forceSaveType": callback.force_save_type,
        "userData": callback.user_data,
    })
    .to_string()
}

pub(crate) fn read(text: &str) -> Result<Callback> {
    let value: Value =
        serde_json::from_str(text).map_err(|_| LedgerError::damaged("a callback is not JSON"))?;
    let string = |name: &str| value[name].as_str().map(str::to_owned);
    let small = |name: &str| value[name].as_u64().and_then(|number| u8::try_from(number).ok());
    let time = |name: &str| value[name].as_i64().and_then(|at| Timestamp::from_millisecond(at).ok());
    Ok(Callback {
        key: value["key"]
            .as_str()
            .and_then(EditorKey::parse)
            .ok_or_else(|| LedgerError::damaged("a callback's key"))?,
        status: small("status").ok_or_else(|| LedgerError::damaged("a callback's status"))?,
        url: string("url"),
        forms_data_url: string("formsDataUrl"),
        changes_url: string("changesUrl"),
        file_type: string("fileType"),
        users: serde_json::from_value(value["users"].clone()).unwrap_or_default(),
        author_name: string("authorName"),
        last_save: time("lastSaveMs"),
        session_start: time("sessionStartMs"),
        server_version: string("serverVersion"),
        history: string("history"),
        force_save_type: small("forceSaveType"),
        user_data: string("userData"),
    })
}

/// How many runs of changes by one author the history of a callback lists.
pub(crate) fn runs_in(callback: &Callback) -> Option<u32> {
    let runs: Vec<Value> = serde_json::from_str(callback.history.as_deref()?).ok()?;
    u32::try_from(runs.len()).ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_reads_back_as_it_was_written() {
        let callback = Callback {
            key: EditorKey::parse("prod_1_edit_1.abc").unwrap(),
            status: 6,
            url: Some("http://ds/cache/x?md5=1".to_owned()),
            forms_data_url: None,
            changes_url: Some("http://ds/cache/changes.zip?md5=2".to_owned()),
            file_type: Some("docx".to_owned()),
            users: vec!["u1".to_owned()],
            author_name: Some("User \"One\"".to_owned()),
            last_save: Timestamp::from_second(1_794_770_443).ok(),
            session_start: Timestamp::from_second(1_794_770_400).ok(),
            server_version: Some("9.3.0".to_owned()),
            history: Some("[]".to_owned()),
            force_save_type: Some(1),
            user_data: Some("job-17".to_owned()),
        };

        assert_eq!(read(&write(&callback)).unwrap(), callback);
    }

    #[test]
    fn only_key_and_status_are_needed() {
        assert!(read(r#"{"key":"k","status":2}"#).is_ok());
        assert!(read(r#"{"status":2}"#).is_err());
        assert!(read("no").is_err());
    }
}
