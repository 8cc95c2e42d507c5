//! The signed configuration an editor opens with.
//!
//! Guarantees: the token holds exactly what the page is given, so nothing can be raised in the browser; an edit
//! configuration always has a callback URL (without one the server deletes the edits when the last editor leaves).

use jiff::Timestamp;
use model::EditorKey;
use model::keys::Mode;
use serde_json::{Value, json};
use url::Url;

use super::tokens::Tokens;

/// What somebody may do in the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Edit or view.
    pub mode: Mode,
}

/// A document that is about to be opened.
#[derive(Debug, Clone)]
pub struct Opened<'a> {
    /// The key to open under.
    pub key: &'a EditorKey,
    /// The name shown.
    pub title: &'a str,
    /// The type of the bytes at `source`.
    pub file_type: &'a str,
    /// Where the server fetches the content.
    pub source: Url,
    /// Where it reports.
    pub callback: Url,
    /// Who opens: id and name.
    pub user: (&'a str, &'a str),
    /// What they may do.
    pub rights: Rights,
}

/// A configuration for `DocsAPI.DocEditor`, with its token.
#[derive(Debug, Clone)]
pub struct EditorConfiguration(pub Value);

impl EditorConfiguration {
    /// Builds and signs a configuration.
    pub fn new(opened: &Opened<'_>, tokens: &Tokens, now: Timestamp, seconds: i64) -> Self {
        let may_edit = opened.rights.mode == Mode::Edit;
        let mut config = json!({
            "documentType": document_type(opened.file_type),
            "type": "desktop",
            "document": {
                "fileType": opened.file_type,
                "key": opened.key.as_str(),
                // The server's own limit.
                "title": opened.title.chars().take(128).collect::<String>(),
                "url": opened.source.as_str(),
                "permissions": {
                    "edit": may_edit, "comment": may_edit, "review": may_edit, "fillForms": may_edit,
                    "download": true, "print": true, "copy": true,
                },
            },
            "editorConfig": {
                "mode": opened.rights.mode.as_str(),
                "user": { "id": opened.user.0, "name": opened.user.1 },
                "customization": { "autosave": true, "forcesave": true, "macros": false },
            },
        });
        if may_edit {
            config["editorConfig"]["callbackUrl"] = json!(opened.callback.as_str());
        }
        let token = tokens.sign(&config, now, seconds);
        config["token"] = json!(token);
        Self(config)
    }
}

/// Which editor a type opens in.
pub fn document_type(file_type: &str) -> &'static str {
    match file_type {
        "xlsx" | "xlsm" | "xltx" | "xltm" | "xls" | "xlt" | "xlsb" | "ods" | "ots" | "fods" | "csv" => "cell",
        "pptx" | "pptm" | "potx" | "potm" | "ppsx" | "ppsm" | "ppt" | "pps" | "pot" | "odp" | "otp"
        | "fodp" => "slide",
        "pdf" | "oform" | "docxf" => "pdf",
        _ => "word",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Secret, Secrets};

    fn build(mode: Mode) -> (Value, Value) {
        let tokens =
            Tokens::new(&Secrets { current: Secret::parse(&"s".repeat(40)).unwrap(), previous: None });
        let now = Timestamp::from_second(1_794_770_000).unwrap();
        let key = EditorKey::parse("prod_12345_edit_1.k").unwrap();
        let opened = Opened {
            key: &key,
            title: "report.docx",
            file_type: "docx",
            source: Url::parse("http://saveguard/stream/12345?token=x").unwrap(),
            callback: Url::parse("http://saveguard/callback/12345").unwrap(),
            user: ("u1", "Ann"),
            rights: Rights { mode },
        };
        let config = EditorConfiguration::new(&opened, &tokens, now, 300).0;
        let claims = tokens.verify(config["token"].as_str().unwrap(), now).unwrap();
        (config, claims)
    }

    #[test]
    fn the_token_says_what_the_page_says() {
        for mode in [Mode::Edit, Mode::View] {
            let (config, claims) = build(mode);

            for part in ["document", "editorConfig", "documentType"] {
                assert_eq!(config[part], claims[part], "{part}");
            }
            // The server refuses tokens with these at the top.
            assert!(["url", "payload", "key"].iter().all(|name| claims.get(name).is_none()));
        }
    }

    #[test]
    fn editors_have_a_callback_and_viewers_have_none() {
        let (edit, _) = build(Mode::Edit);
        let (view, _) = build(Mode::View);

        assert_eq!(edit["editorConfig"]["callbackUrl"], "http://saveguard/callback/12345");
        assert!(view["editorConfig"].get("callbackUrl").is_none());
        assert_eq!(view["document"]["permissions"]["edit"], false);
    }
}
