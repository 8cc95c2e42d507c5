//! Editor configurations as a host hands them out, for tests and load.
//!
//! Guarantees: [`EditorConfig::signed`] carries a token whose claims mirror the configuration, as the real server
//! demands.
//!
//! Does not cover everything a configuration can hold; add to the value what is missing before signing.

use serde_json::{Value, json};

use crate::tokens::{Secret, sign};

/// A configuration in the making.
#[derive(Clone, Debug)]
pub struct EditorConfig {
    pub key: String,
    pub document_url: String,
    pub callback_url: String,
    pub user_id: String,
    pub user_name: String,
    pub file_type: String,
    pub title: String,
    /// `edit` or `view`; `None` leaves it out.
    pub mode: Option<String>,
    pub permissions: Option<Value>,
    /// End of the token's life, in seconds since 1970.
    pub expires_s: Option<u64>,
}

impl EditorConfig {
    pub fn new(key: &str, document_url: &str, callback_url: &str, user_id: &str) -> EditorConfig {
        EditorConfig {
            key: key.to_owned(),
            document_url: document_url.to_owned(),
            callback_url: callback_url.to_owned(),
            user_id: user_id.to_owned(),
            user_name: format!("User {user_id}"),
            file_type: "docx".to_owned(),
            title: "document".to_owned(),
            mode: None,
            permissions: None,
            expires_s: None,
        }
    }

    /// Without a token.
    pub fn plain(&self) -> Value {
        let document_type = match self.file_type.as_str() {
            "xlsx" | "xlsm" | "csv" | "ods" => "cell",
            "pptx" | "odp" => "slide",
            _ => "word",
        };
        let mut config = json!({
            "documentType": document_type,
            "document": {
                "fileType": self.file_type,
                "key": self.key,
                "title": format!("{}.{}", self.title, self.file_type),
                "url": self.document_url,
            },
            "editorConfig": {
                "callbackUrl": self.callback_url,
                "user": {"id": self.user_id, "name": self.user_name},
            },
        });
        if let Some(mode) = &self.mode {
            config["editorConfig"]["mode"] = json!(mode);
        }
        if let Some(permissions) = &self.permissions {
            config["document"]["permissions"] = permissions.clone();
        }
        config
    }

    /// With a token.
    pub fn signed(&self, secret: &Secret) -> Value {
        let mut config = self.plain();
        let mut claims = config.clone();
        if let Some(expires_s) = self.expires_s {
            claims["exp"] = json!(expires_s);
        }
        config["token"] = json!(sign(&claims, secret));
        config
    }
}
