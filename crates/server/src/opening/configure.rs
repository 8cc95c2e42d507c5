//! The key and the signed configuration an editor opens with.

use std::sync::Arc;

use ledger::documents::{Author, Document, Keeping, KeptPage, Whose};
use ledger::keys::{KeyGrant, KeyRecord, Knowledge, OpenGrant, OpenRequest, ViewKey};
use model::keys::Mode;
use model::opening::ServerKnowledge;
use model::operations::Rights;
use model::{Digest, DocumentId, EditorKey, Label};
use signals::Signal;
use tokio::time::Instant;
use url::Url;

use super::OpenError;
use super::source::{Readers, StreamTokens, Streamed};
use crate::app::App;
use crate::editors::onlyoffice::{EditorConfiguration, Opened};
use crate::patience::{quiet_after, settled};
use crate::telemetry;

/// A key has few copies in quarantine, and they are the newest ones while it is live.
const KEPT_LOOKED_AT: u32 = 100;

/// A configuration, and what it opens.
#[derive(Debug, Clone)]
pub struct Configured {
    /// For `DocsAPI.DocEditor`.
    pub configuration: EditorConfiguration,
    /// The key.
    pub key: EditorKey,
    /// The content the editor starts from.
    pub base: Label,
}

/// Prepares an editor for somebody. Whoever comments, reviews or fills in forms joins the session of those who edit.
pub async fn configure(
    app: &Arc<App>,
    document: &Document,
    user: &Author,
    rights: Rights,
) -> Result<Configured, OpenError> {
    let mode = rights.mode;
    let keyed = match mode {
        Mode::Edit => edit_key(app, &document.id, user).await,
        Mode::View => view_key(app, document).await,
    };
    telemetry::opening_ended(mode.as_str(), if keyed.is_ok() { "opened" } else { "refused" });
    let (key, base) = keyed?;
    let content = app.ledger.content(&document.id, base).await?.ok_or_else(|| OpenError::NotFound {
        what: format!("content {base} of document `{}`", document.id),
    })?;
    let now = app.now();
    let readers = Readers::of(&rights);
    let streamed = Streamed { document: document.id.clone(), key: key.clone(), label: base, readers };
    let token = StreamTokens::new(&app.config).issue(&streamed, now, app.config.opening.stream_token);
    let file_type = file_type_of(document, &content.blob.file_type);
    let opened = Opened {
        key: &key,
        title: document.name.as_str(),
        file_type: &file_type,
        source: internal_url(app, &format!("stream/{}", document.id), Some(&token))?,
        callback: internal_url(app, &format!("callback/{}", document.id), None)?,
        user: (&user.id, &user.name),
        rights,
    };
    let seconds = i64::try_from(app.config.opening.config_token.as_secs()).unwrap_or(300);
    Ok(Configured { configuration: EditorConfiguration::new(&opened, &app.tokens, now, seconds), key, base })
}

/// The bytes decide; where they say nothing precise, the name does.
pub(super) fn file_type_of(document: &Document, file_type: &str) -> String {
    known_type(file_type).map_or_else(|| document.name.extension(), str::to_owned)
}

/// Kinds that their bytes tell for sure, and that the Document Server knows by the same word.
fn known_type(file_type: &str) -> Option<&str> {
    let known = [
        "docx", "docm", "dotx", "dotm", "xlsx", "xlsm", "xltx", "xltm", "xlsb", "pptx", "pptm", "potx",
        "potm", "ppsx", "ppsm", "odt", "ods", "odp", "doc", "xls", "ppt", "pdf", "rtf", "epub",
    ];
    known.contains(&file_type).then_some(file_type)
}

pub(super) fn internal_url(app: &App, path: &str, token: Option<&str>) -> Result<Url, OpenError> {
    let base = app.config.server.internal_url.as_str().trim_end_matches('/');
    let mut url =
        Url::parse(&format!("{base}/{path}")).map_err(|_| OpenError::NotFound { what: path.to_owned() })?;
    if let Some(token) = token {
        url.query_pairs_mut().append_pair("token", token);
    }
    Ok(url)
}

async fn view_key(app: &App, document: &Document) -> Result<(EditorKey, Label), OpenError> {
    let environment = &app.config.server.environment;
    let key = EditorKey::for_viewing(environment, &document.id, document.head.version, &document.head_digest);
    let view = ViewKey {
        key: key.clone(),
        document: document.id.clone(),
        base: document.head,
        base_digest: document.head_digest,
        at: app.now(),
    };
    app.ledger.note_view_key(&view).await?;
    Ok((key, document.head))
}

/// Rules, does what the rule says, and rules again, until there is a key or the time is up.
async fn edit_key(
    app: &Arc<App>,
    document: &DocumentId,
    user: &Author,
) -> Result<(EditorKey, Label), OpenError> {
    let deadline = Instant::now() + app.config.opening.wait;
    let mut knowledge = None;
    // The key whose changes the server said to hold.
    let mut held: Option<KeyRecord> = None;
    loop {
        // Before the question, so that a save that settles in between is heard.
        let mut listener = app.signals.listen();
        let request = OpenRequest {
            document: document.clone(),
            random: app.random.bits(),
            knowledge: knowledge.take(),
            user: user.clone(),
            quiet_after: quiet_after(app),
            listening_since: app.listening_since(),
            at: app.now(),
        };
        match app.ledger.open_for_editing(&request).await? {
            OpenGrant::Granted(grant) => match held.take().filter(|record| record.key == grant.key) {
                // A save may have ended as its forgotten file since the server was asked, which takes its time.
                Some(record) if matches!(forgotten_file(app, &record).await?, Forgotten::Waiting) => {
                    app.signals.announce(Signal::FinishWanted(record.key)).await;
                }
                _ => return Ok(granted(document, grant)),
            },
            OpenGrant::ServerAway => return Err(OpenError::ServerAway),
            OpenGrant::AskServer(record) => {
                knowledge = ask(app, &record).await?;
                let says_held = |known: &Knowledge| known.server == ServerKnowledge::ChangesHeld;
                held = (app.guards.collector && knowledge.as_ref().is_some_and(says_held)).then_some(*record);
            }
            OpenGrant::Wait => {}
            OpenGrant::Finish(record) => app.signals.announce(Signal::FinishWanted(record.key)).await,
        }
        if knowledge.is_none() && !settled(listener.as_mut(), document, deadline).await {
            return Err(OpenError::BeingSaved);
        }
    }
}

fn granted(document: &DocumentId, grant: KeyGrant) -> (EditorKey, Label) {
    steps::reached("open.granted");
    if grant.brings_back_stranded {
        telemetry::alert("stranded-changes");
        tracing::warn!(document.id = %document, "the Document Server holds changes of document {document} that only its old key brings back: it was handed out again");
    }
    (grant.key, grant.base)
}

/// Asks about a key. Stranded changes beside a forgotten file, which has them, would count twice when the key is opened: the
/// file is collected first, and then it is asked again. If they were made on that file, the key brings back both. `None`
/// means that it is not time yet.
async fn ask(app: &App, record: &KeyRecord) -> Result<Option<Knowledge>, OpenError> {
    let asked_at = app.now();
    let mut server = app.editor.knowledge_of(&record.key).await;
    if server == ServerKnowledge::ChangesHeld && app.guards.collector {
        match forgotten_file(app, record).await? {
            Forgotten::None | Forgotten::BuiltOn => {}
            Forgotten::Waiting => {
                app.signals.announce(Signal::FinishWanted(record.key.clone())).await;
                return Ok(None);
            }
            Forgotten::Damaged => {
                // It may have become the forgotten one just now, and then the server holds nothing else any more.
                server = app.editor.knowledge_of(&record.key).await;
                if server == ServerKnowledge::ChangesHeld {
                    return Err(OpenError::DamagedThere);
                }
            }
        }
    }
    Ok(Some(Knowledge { key: record.key.clone(), saves_received: record.saves_received, server, asked_at }))
}

/// The forgotten file of a key whose changes are held.
enum Forgotten {
    None,
    /// The changes were made on it.
    BuiltOn,
    /// The collector will fetch it.
    Waiting,
    /// It did not arrive whole, and is not deleted, for it may be whole there. What arrived is in quarantine.
    Damaged,
}

async fn forgotten_file(app: &App, record: &KeyRecord) -> Result<Forgotten, OpenError> {
    let link = match app.editor.forgotten_link(&record.key).await {
        Ok(Some(link)) => link,
        Ok(None) => return Ok(Forgotten::None),
        // It said that changes are held a moment ago, and may say more in a moment.
        Err(_) => return Ok(Forgotten::Waiting),
    };
    // The collector may be luckier.
    let Ok(file) = app.editor.fetch(&link, &app.spool).await else { return Ok(Forgotten::Waiting) };
    if is_in_quarantine(app, record, &file.digest).await? {
        Ok(Forgotten::Damaged)
    } else if app.ledger.builds_on_forgotten(&record.key, &file.digest).await? {
        Ok(Forgotten::BuiltOn)
    } else {
        Ok(Forgotten::Waiting)
    }
}

async fn is_in_quarantine(app: &App, record: &KeyRecord, digest: &Digest) -> Result<bool, OpenError> {
    let page = KeptPage { of: Whose::Document(record.document.clone()), before: None, limit: KEPT_LOOKED_AT };
    let kept = app.ledger.kept_copies(&page).await?;
    Ok(kept.iter().any(|copy| {
        copy.key.as_ref() == Some(&record.key)
            && copy.blob.digest == *digest
            && matches!(copy.keeping, Keeping::Quarantine(_))
    }))
}
