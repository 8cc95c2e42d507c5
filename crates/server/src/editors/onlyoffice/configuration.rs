//! The signed configuration an editor opens with.
//!
//! Guarantees: the token holds exactly what the page is given, so nothing can be raised in the browser; an edit
//! configuration always has a callback URL (without one the server deletes the edits when the last editor leaves). Whoever
//! comments, reviews or fills in forms opens an editing session too, and is told what not to do by the permissions.

use jiff::Timestamp;
use model::EditorKey;
use model::keys::Mode;
use model::operations::Rights;
use serde_json::{Value, json};
use url::Url;

use super::tokens::Tokens;

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
        let mut config = json!({
            "documentType": document_type(opened.file_type),
            "type": "desktop",
            "document": {
                "fileType": opened.file_type,
                "key": opened.key.as_str(),
                // The server's own limit.
                "title": opened.title.chars().take(128).collect::<String>(),
                "url": opened.source.as_str(),
                "permissions": permissions(&opened.rights),
            },
            "editorConfig": {
                "mode": opened.rights.mode.as_str(),
                "user": { "id": opened.user.0, "name": opened.user.1 },
                "customization": { "autosave": true, "forcesave": true, "macros": false },
            },
        });
        if opened.rights.mode == Mode::Edit {
            config["editorConfig"]["callbackUrl"] = json!(opened.callback.as_str());
        }
        let token = tokens.sign(&config, now, seconds);
        config["token"] = json!(token);
        Self(config)
    }
}

/// All of them are named: what is not named is allowed.
fn permissions(rights: &Rights) -> Value {
    json!({
        "edit": rights.may_edit,
        "comment": rights.may_comment,
        "review": rights.may_review,
        "fillForms": rights.may_fill,
        // These change the document for everybody.
        "modifyFilter": rights.may_edit,
        "modifyContentControl": rights.may_edit,
        "protect": rights.may_edit,
        "download": rights.switches.may_download,
        "print": rights.switches.may_print,
        "copy": rights.switches.may_copy,
    })
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
    use model::access::Role;
    use model::operations::{Audience, Operation, Switches, rights_for};

    fn build(rights: Rights) -> (Value, Value) {
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
            rights,
        };
        let config = EditorConfiguration::new(&opened, &tokens, now, 300).0;
        let claims = tokens.verify(config["token"].as_str().unwrap(), now).unwrap();
        (config, claims)
    }

    #[test]
    fn the_token_says_what_the_page_says() {
        for rights in [Rights::EDIT, Rights::VIEW] {
            let (config, claims) = build(rights);

            for part in ["document", "editorConfig", "documentType"] {
                assert_eq!(config[part], claims[part], "{part}");
            }
            // The server refuses tokens with these at the top.
            assert!(["url", "payload", "key"].iter().all(|name| claims.get(name).is_none()));
        }
    }

    #[test]
    fn editors_have_a_callback_and_viewers_have_none() {
        let (edit, _) = build(Rights::EDIT);
        let (view, _) = build(Rights::VIEW);

        assert_eq!(edit["editorConfig"]["callbackUrl"], "http://saveguard/callback/12345");
        assert!(view["editorConfig"].get("callbackUrl").is_none());
        assert_eq!(view["document"]["permissions"]["edit"], false);
    }

    #[test]
    fn every_operation_is_told_as_permissions_and_mode() {
        // edit, comment, review, fillForms
        let table = [
            (Operation::View, "view", [false, false, false, false]),
            (Operation::Comment, "edit", [false, true, false, false]),
            (Operation::Review, "edit", [false, true, true, false]),
            (Operation::Fill, "edit", [false, false, false, true]),
            (Operation::Edit, "edit", [true, true, true, true]),
        ];
        let off = Switches { may_download: false, may_print: false, may_copy: false };
        for (operation, mode, expected) in table {
            for switches in [Switches::ON, off] {
                let rights = rights_for(Role::Editor, operation, Audience::OneUser, switches).unwrap();
                let (config, claims) = build(rights);

                let told = &claims["document"]["permissions"];
                assert_eq!(
                    ["edit", "comment", "review", "fillForms"].map(|name| &told[name] == true),
                    expected
                );
                let is_on = switches == Switches::ON;
                assert!(
                    ["download", "print", "copy"].iter().all(|name| told[name] == is_on),
                    "{operation:?}"
                );
                assert_eq!(claims["editorConfig"]["mode"], mode);
                assert_eq!(claims["editorConfig"].get("callbackUrl").is_some(), mode == "edit");
                assert_eq!(config["document"]["permissions"], *told);
            }
        }
    }
}
