//! `document.url`: the content a key was issued on, for the Document Server only.
//!
//! Guarantees: a token of its own (purpose, document, key, version, expiry), signed with a key derived for nothing else;
//! a source of somebody who may not download is served to the Document Server only, which signs its request: the link stands in a
//! configuration that a browser can read; the bytes are those of the pinned version; once the key is spent nothing is served, because whatever the server
//! would open then would be edited beside the current session.

use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use ledger::documents::Content;
use model::keys::Mode;
use model::opening::{KeySpent, SourceRuling, rule_on_source};
use model::operations::Rights;
use model::saves::KeyStanding;
use model::{Digest, DocumentId, EditorKey, Label};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::OpenError;
use crate::app::App;
use crate::config::Config;

/// What is streamed: the source of an editor.
const SOURCE: &str = "stream";
/// What is streamed: the record of the changes of a version.
const CHANGES: &str = "changes";

/// Why a source is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamRefused {
    /// The token is missing, forged, expired or for something else.
    #[error("the stream token is not valid for this document")]
    Token,
    /// The key is spent: its session is over.
    #[error("the session of this key is over")]
    Spent,
}

/// What a stream token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    /// This document.
    pub document: DocumentId,
    /// Under this key.
    pub key: EditorKey,
    /// This content.
    pub label: Label,
    /// To these.
    pub readers: Readers,
}

/// To whom a source is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Whoever has the token.
    Anybody,
    /// The Document Server, whose request is signed.
    DocumentServer,
}

impl Readers {
    /// Those of a source that is opened with these rights.
    pub(super) fn of(rights: &Rights) -> Self {
        if rights.switches.may_download { Self::Anybody } else { Self::DocumentServer }
    }

    /// Who asks: the Document Server signs the address it fetches, and the token is a part of that.
    pub(crate) fn asking(app: &App, signed: Option<&str>, token: &str) -> Self {
        let claims = signed.and_then(|signed| app.tokens.verify(signed, app.now()).ok());
        let url = claims.as_ref().and_then(|claims| claims["payload"]["url"].as_str());
        let is_for_this = url.is_some_and(|url| !token.is_empty() && url.contains(token));
        if is_for_this { Self::DocumentServer } else { Self::Anybody }
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    purpose: String,
    document: String,
    key: String,
    version: String,
    exp: i64,
    /// Absent in tokens that an older Saveguard made.
    #[serde(default)]
    server_only: bool,
}

/// Issues and verifies stream tokens.
pub struct StreamTokens {
    purpose: &'static str,
    signing: EncodingKey,
    verifying: Vec<DecodingKey>,
}

impl StreamTokens {
    /// For the sources of editors.
    pub fn new(config: &Config) -> Self {
        Self::for_purpose(config, SOURCE)
    }

    /// For records of changes.
    pub fn for_changes(config: &Config) -> Self {
        Self::for_purpose(config, CHANGES)
    }

    /// Derives the keys: a stream token can never pass for another token, nor another token for it.
    fn for_purpose(config: &Config, purpose: &'static str) -> Self {
        let keys: Vec<Vec<u8>> =
            config.api.secrets.all().map(|secret| derive(secret.as_bytes(), purpose)).collect();
        Self {
            purpose,
            signing: EncodingKey::from_secret(keys.first().map(Vec::as_slice).unwrap_or_default()),
            verifying: keys.iter().map(|key| DecodingKey::from_secret(key)).collect(),
        }
    }

    /// A token for the Document Server.
    pub fn issue(&self, streamed: &Streamed, now: Timestamp, life: Duration) -> String {
        let claims = Claims {
            purpose: self.purpose.to_owned(),
            document: streamed.document.to_string(),
            key: streamed.key.to_string(),
            version: streamed.label.to_string(),
            server_only: streamed.readers == Readers::DocumentServer,
            exp: now.as_second().saturating_add(i64::try_from(life.as_secs()).unwrap_or(i64::MAX)),
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.signing).unwrap_or_default()
    }

    /// What a token allows, if it is ours, for this document, and still valid.
    pub fn verify(
        &self,
        token: &str,
        document: &DocumentId,
        now: Timestamp,
    ) -> Result<Streamed, StreamRefused> {
        let mut validation = Validation::new(Algorithm::HS256);
        // Time is judged below, by our own clock and without tolerance.
        validation.validate_exp = false;
        validation.validate_aud = false;
        let claims = self
            .verifying
            .iter()
            .find_map(|key| jsonwebtoken::decode::<Claims>(token, key, &validation).ok())
            .map(|data| data.claims)
            .filter(|claims| claims.purpose == self.purpose && claims.exp > now.as_second())
            .filter(|claims| claims.document == document.as_str())
            .ok_or(StreamRefused::Token)?;
        let key = EditorKey::parse(&claims.key).ok_or(StreamRefused::Token)?;
        let label = Label::parse(&claims.version).ok_or(StreamRefused::Token)?;
        let readers = if claims.server_only { Readers::DocumentServer } else { Readers::Anybody };
        Ok(Streamed { document: document.clone(), key, label, readers })
    }
}

/// One secret, many keys: each purpose has its own.
pub(crate) fn derive(secret: &[u8], purpose: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return Vec::new() };
    mac.update(b"saveguard ");
    mac.update(purpose.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// The content a stream token may have: the base of its key.
pub async fn source(
    app: &App,
    document: &DocumentId,
    token: &str,
    asking: Readers,
) -> Result<Content, OpenError> {
    let streamed = StreamTokens::new(&app.config).verify(token, document, app.now())?;
    if streamed.readers == Readers::DocumentServer && asking != Readers::DocumentServer {
        return Err(StreamRefused::Token.into());
    }
    let record = app.ledger.key(&streamed.key).await?.ok_or(StreamRefused::Token)?;
    let is_edit = streamed.key.parts().is_some_and(|parts| parts.mode == Mode::Edit);
    let spent = match record.standing {
        KeyStanding::Live if record.is_spent => KeySpent::Collected,
        _ if record.is_spent => KeySpent::Yes,
        _ => KeySpent::No,
    };
    match rule_on_source(spent) {
        SourceRuling::Spent => return Err(StreamRefused::Spent.into()),
        SourceRuling::Newest => return newest_of_key(app, document, &streamed.key).await,
        SourceRuling::Base => {}
    }
    let label = if app.guards.pinned_base {
        streamed.label
    } else {
        app.ledger.document(document).await?.map_or(streamed.label, |document| document.head)
    };
    let content = app.ledger.content(document, label).await?.ok_or(StreamRefused::Token)?;
    if is_edit {
        app.ledger.note_base_fetched(&streamed.key, app.now()).await?;
    }
    Ok(content)
}

/// The record of changes that a token may have.
pub async fn changes(app: &App, document: &DocumentId, token: &str) -> Result<(Digest, u64), OpenError> {
    let streamed = StreamTokens::for_changes(&app.config).verify(token, document, app.now())?;
    let content = app.ledger.content(document, streamed.label).await?;
    Ok(content.and_then(|content| content.changes).ok_or(StreamRefused::Token)?)
}

/// The head, if this key made it.
async fn newest_of_key(app: &App, document: &DocumentId, key: &EditorKey) -> Result<Content, OpenError> {
    let head = app.ledger.document(document).await?.ok_or(StreamRefused::Token)?.head;
    let content =
        app.ledger.content(document, head).await?.filter(|content| content.key.as_ref() == Some(key));
    Ok(content.ok_or(StreamRefused::Spent)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn config() -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap().to_owned();
        let variables = BTreeMap::from([("SAVEGUARD_SERVER_DATA".to_owned(), data)]);
        (folder, Config::from_sources(toml::Table::new(), variables).unwrap())
    }

    fn streamed() -> Streamed {
        Streamed {
            document: DocumentId::parse("12345").unwrap(),
            key: EditorKey::parse("prod_12345_edit_1.k").unwrap(),
            label: Label::parse("14.2").unwrap(),
            readers: Readers::DocumentServer,
        }
    }

    #[test]
    fn a_token_allows_its_own_document_until_it_expires() {
        let (_folder, config) = config();
        let tokens = StreamTokens::new(&config);
        let now = Timestamp::from_second(1_794_770_000).unwrap();
        let token = tokens.issue(&streamed(), now, Duration::from_secs(60));

        assert_eq!(tokens.verify(&token, &streamed().document, now), Ok(streamed()));
        let other = DocumentId::parse("67890").unwrap();
        assert_eq!(tokens.verify(&token, &other, now), Err(StreamRefused::Token));
        let later = Timestamp::from_second(now.as_second() + 60).unwrap();
        assert_eq!(tokens.verify(&token, &streamed().document, later), Err(StreamRefused::Token));
        assert_eq!(tokens.verify("", &streamed().document, now), Err(StreamRefused::Token));
        let for_changes = StreamTokens::for_changes(&config).verify(&token, &streamed().document, now);
        assert_eq!(for_changes, Err(StreamRefused::Token), "a token for a source opens no record of changes");
    }

    #[test]
    fn a_token_signed_with_the_api_secret_itself_is_no_stream_token() {
        let (_folder, config) = config();
        let claims = Claims {
            purpose: SOURCE.to_owned(),
            document: "12345".to_owned(),
            key: "prod_12345_edit_1.k".to_owned(),
            version: "1".to_owned(),
            exp: i64::MAX,
            server_only: false,
        };
        let key = EncodingKey::from_secret(config.api.secrets.current.as_bytes());
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key).unwrap();

        let verified = StreamTokens::new(&config).verify(&token, &streamed().document, Timestamp::UNIX_EPOCH);

        assert_eq!(verified, Err(StreamRefused::Token));
    }
}
