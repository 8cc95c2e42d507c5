//! Who may open what: the configuration a browser brings, against the token that vouches for it.
//!
//! Guarantees: with tokens on, only what the token says counts; the closing codes are the real server's (4005
//! expired, 4006 bad or incomplete token, 4004 altered permissions or a token made for something else); a browser
//! may lower itself to viewing, never raise itself; a session token opens nothing but its own session.
//!
//! Does not know whether the key can be opened just now; the machine does.

use serde_json::Value;

use crate::machine::{ConnId, Open, Restore, Source};
use crate::tokens::{Secret, SessionTokens, TokenTrouble, verify};

/// What the checks need to know.
#[derive(Clone, Debug)]
pub struct Policy {
    pub tokens_required: bool,
    pub inbox: Secret,
    pub sessions: SessionTokens,
}

/// Why somebody is turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("turned away with code {code}: {description}")]
pub struct Refusal {
    pub code: u16,
    pub description: String,
}

impl Refusal {
    fn token(trouble: TokenTrouble) -> Refusal {
        match trouble {
            TokenTrouble::Expired => Refusal { code: 4005, description: "token:jwt expired".to_owned() },
            TokenTrouble::Invalid(why) => Refusal { code: 4006, description: format!("token:{why}") },
        }
    }

    fn incomplete() -> Refusal {
        Refusal { code: 4006, description: "token:".to_owned() }
    }

    pub(crate) fn denied() -> Refusal {
        Refusal { code: 4004, description: "access deny".to_owned() }
    }
}

/// What a client says when it opens: the `auth` message of the real editor.
#[derive(Clone, Debug, Default)]
pub struct Greeting {
    pub key: String,
    pub user_id: String,
    pub user_name: String,
    pub permissions: Option<Value>,
    pub mode: Option<String>,
    pub callback: Option<String>,
    pub url: Option<String>,
    pub file_type: Option<String>,
    pub co_editing_mode: Option<String>,
    pub token_open: Option<String>,
    pub token_session: Option<String>,
    pub session: Option<String>,
    pub last_other_save_ms: u64,
    pub wants_document: bool,
    /// The key of the version before, when a version of the history is opened.
    pub history_key: Option<String>,
}

impl Greeting {
    /// What a browser makes of the configuration a page hands to the editor.
    pub fn of_config(config: &Value) -> Greeting {
        let text = |path: &str| config.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let user_name = text("/editorConfig/user/name").unwrap_or_else(|| "Anonymous".to_owned());
        Greeting {
            key: text("/document/key").unwrap_or_default(),
            user_id: id_text(config.pointer("/editorConfig/user/id"))
                .unwrap_or_else(|| "anonymous".to_owned()),
            user_name,
            permissions: config.pointer("/document/permissions").filter(|value| value.is_object()).cloned(),
            mode: text("/editorConfig/mode"),
            callback: text("/editorConfig/callbackUrl"),
            url: text("/document/url"),
            file_type: text("/document/fileType"),
            co_editing_mode: text("/editorConfig/coEditing/mode"),
            token_open: text("/token"),
            wants_document: true,
            ..Greeting::default()
        }
    }

    /// The `auth` message of the real editor.
    pub fn of_message(message: &Value) -> Greeting {
        let text = |path: &str| message.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let first = text("/user/firstname").zip(text("/user/lastname"));
        let name = first.map(|(first, last)| format!("{first} {last}")).or_else(|| text("/user/username"));
        Greeting {
            key: text("/docid").unwrap_or_default(),
            user_id: id_text(message.pointer("/user/id")).unwrap_or_else(|| "anonymous".to_owned()),
            user_name: name.unwrap_or_else(|| "Anonymous".to_owned()),
            permissions: message.pointer("/permissions").filter(|value| value.is_object()).cloned(),
            mode: text("/mode"),
            callback: text("/documentCallbackUrl").filter(|url| !url.is_empty()),
            url: text("/openCmd/url"),
            file_type: text("/openCmd/format"),
            co_editing_mode: text("/coEditingMode"),
            token_open: text("/jwtOpen"),
            token_session: text("/jwtSession"),
            session: text("/sessionId"),
            last_other_save_ms: message.pointer("/lastOtherSaveTime").and_then(Value::as_u64).unwrap_or(0),
            wants_document: message.pointer("/openCmd").is_some_and(Value::is_object),
            history_key: text("/openCmd/id"),
        }
    }
}

/// Checks the token with which a socket connects, before anything is said.
pub fn may_connect(
    policy: &Policy,
    session: Option<&str>,
    open: Option<&str>,
    now_s: u64,
) -> Result<(), Refusal> {
    let checked = match (session, open) {
        (Some(token), _) => policy.sessions.verify(token, now_s),
        (None, Some(token)) => verify(token, &policy.inbox, now_s),
        (None, None) if policy.tokens_required => {
            Err(TokenTrouble::Invalid("jwt must be provided".to_owned()))
        }
        (None, None) => return Ok(()),
    };
    checked.map(drop).map_err(Refusal::token)
}

/// Lets somebody open, or not.
pub fn admit(
    policy: &Policy,
    mut greeting: Greeting,
    (conn, base_url): (ConnId, &str),
    now_s: u64,
) -> Result<Open, Refusal> {
    may_connect(policy, greeting.token_session.as_deref(), greeting.token_open.as_deref(), now_s)?;
    let mut known = None;
    let vouched = greeting.token_session.is_some() || greeting.token_open.is_some();
    if let Some(token) = greeting.token_session.clone() {
        let claims = policy.sessions.verify(&token, now_s).map_err(Refusal::token)?;
        known = Some(take_session(&mut greeting, &claims)?);
    } else if let Some(token) = greeting.token_open.clone() {
        let claims = verify(&token, &policy.inbox, now_s).map_err(Refusal::token)?;
        take_claims(&mut greeting, &claims)?;
    }
    if !is_key(&greeting.key) {
        return Err(Refusal::denied());
    }
    let restore = match (&greeting.session, known) {
        (Some(session), Some(known)) => Some(Restore {
            session: session.clone(),
            index: known.index,
            closed: known.closed,
            since_ms: known.since_ms,
            last_other_save_ms: greeting.last_other_save_ms,
            wants_document: greeting.wants_document,
        }),
        _ => None,
    };
    let view = !is_edit_mode(greeting.permissions.as_ref(), greeting.mode.as_deref())
        || known.is_some_and(|known| known.view);
    let file_type = greeting.file_type.unwrap_or_default().to_ascii_lowercase();
    let source = greeting.url.map(|url| Source { url, file_type, vouched });
    Ok(Open {
        conn,
        key: greeting.key,
        user_id: greeting.user_id,
        user_name: greeting.user_name.chars().take(255).collect(),
        view,
        live_viewer: greeting.co_editing_mode.as_deref() == Some("fast"),
        callback: greeting.callback,
        source,
        base_url: base_url.to_owned(),
        permissions: greeting.permissions,
        restore,
    })
}

/// What a session token says beyond the greeting.
#[derive(Clone, Copy)]
struct Known {
    index: u32,
    closed: bool,
    view: bool,
    since_ms: u64,
}

fn take_session(greeting: &mut Greeting, claims: &Value) -> Result<Known, Refusal> {
    let number = |path: &str| claims.pointer(path).and_then(Value::as_u64);
    let flag = |path: &str| claims.pointer(path).and_then(Value::as_bool).unwrap_or(false);
    let key = claims.pointer("/document/key").and_then(Value::as_str).ok_or_else(Refusal::denied)?;
    key.clone_into(&mut greeting.key);
    greeting.permissions = claims.pointer("/document/permissions").filter(|value| value.is_object()).cloned();
    greeting.user_id = id_text(claims.pointer("/editorConfig/user/id")).unwrap_or_default();
    if let Some(name) = claims.pointer("/editorConfig/user/name").and_then(Value::as_str) {
        name.clone_into(&mut greeting.user_name);
    }
    Ok(Known {
        index: number("/editorConfig/user/index").and_then(|index| index.try_into().ok()).unwrap_or(0),
        closed: flag("/editorConfig/ds_isCloseCoAuthoring"),
        view: flag("/editorConfig/ds_view"),
        since_ms: number("/editorConfig/ds_sessionTimeConnect").unwrap_or(0),
    })
}

/// Takes over what the token vouches for.
fn take_claims(greeting: &mut Greeting, claims: &Value) -> Result<(), Refusal> {
    let text = |path: &str| claims.pointer(path).and_then(Value::as_str).map(str::to_owned);
    if claims.get("version").is_some() {
        return take_history(greeting, claims);
    }
    let key = text("/document/key").ok_or_else(Refusal::incomplete)?;
    let permissions = claims.pointer("/document/permissions").filter(|value| value.is_object());
    if greeting.permissions.is_some() && permissions.is_none() {
        return Err(Refusal::incomplete());
    }
    let url = text("/document/url").ok_or_else(Refusal::incomplete)?;
    let callback = text("/editorConfig/callbackUrl");
    if greeting.callback.is_some() && callback.is_none() {
        return Err(Refusal::incomplete());
    }
    let mode = text("/editorConfig/mode");
    if greeting.mode.as_deref().is_some_and(|mode| mode != "view") && mode.is_none() {
        return Err(Refusal::incomplete());
    }
    if permissions.is_some() && greeting.permissions.as_ref() != permissions {
        return Err(Refusal::denied());
    }
    if ["url", "payload", "key"].iter().any(|name| claims.get(name).is_some()) {
        return Err(Refusal::denied());
    }
    greeting.key = key;
    greeting.url = Some(url);
    greeting.callback = callback.or_else(|| greeting.callback.take());
    greeting.file_type = text("/document/fileType").or_else(|| greeting.file_type.take());
    if greeting.mode.as_deref() != Some("view") {
        greeting.mode = mode.or_else(|| greeting.mode.take());
    }
    greeting.co_editing_mode =
        text("/editorConfig/coEditing/mode").or_else(|| greeting.co_editing_mode.take());
    if let Some(id) = id_text(claims.pointer("/editorConfig/user/id")) {
        greeting.user_id = id;
    }
    if let Some(name) = text("/editorConfig/user/name") {
        greeting.user_name = name;
    }
    if let Some(group) = text("/editorConfig/user/group") {
        greeting.user_name = format!("{group}\u{a0}{}", greeting.user_name);
    }
    Ok(())
}

/// A version of the history: always to view; the version before it, if that is what is shown.
fn take_history(greeting: &mut Greeting, claims: &Value) -> Result<(), Refusal> {
    let text = |path: &str| claims.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let previous = text("/previous/key").zip(text("/previous/url"));
    let wants_previous =
        previous.as_ref().is_some_and(|(key, _)| greeting.history_key.as_deref() == Some(key));
    let version = text("/key").zip(text("/url"));
    let (key, url) = previous.filter(|_| wants_previous).or(version).ok_or_else(Refusal::incomplete)?;
    greeting.mode = Some("view".to_owned());
    greeting.co_editing_mode = Some("strict".to_owned());
    greeting.callback = None;
    greeting.file_type = text("/fileType").or_else(|| greeting.file_type.take());
    greeting.key = key;
    greeting.url = Some(url);
    Ok(())
}

/// An editor is whoever may do more than look.
fn is_edit_mode(permissions: Option<&Value>, mode: Option<&str>) -> bool {
    if mode == Some("view") {
        return false;
    }
    let Some(permissions) = permissions else { return true };
    let granted = |name: &str| permissions.get(name) == Some(&Value::Bool(true));
    permissions.get("edit") != Some(&Value::Bool(false))
        || granted("review")
        || granted("comment")
        || granted("fillForms")
}

/// The alphabet of keys; the limit of 128 is the host's to keep, the real server takes longer ones.
pub fn is_key(key: &str) -> bool {
    const LENGTH_MAX: usize = 240;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._=".contains(&byte);
    !key.is_empty() && key.len() <= LENGTH_MAX && key.bytes().all(allowed)
}

fn id_text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::sign;
    use serde_json::json;

    fn policy() -> Policy {
        Policy { tokens_required: true, inbox: "in".into(), sessions: SessionTokens::new("se".into()) }
    }

    fn config() -> Value {
        json!({
            "document": {"key": "k1", "url": "http://host/doc", "fileType": "docx"},
            "editorConfig": {"callbackUrl": "http://host/cb", "user": {"id": "u1", "name": "Uma"}},
        })
    }

    fn open_with(config: &Value, claims: &Value) -> Result<Open, Refusal> {
        let mut greeting = Greeting::of_config(config);
        greeting.token_open = Some(sign(claims, &"in".into()));
        admit(&policy(), greeting, (ConnId(1), "http://ds"), 1_000)
    }

    fn code(outcome: Result<Open, Refusal>) -> u16 {
        outcome.map(|_| 0).unwrap_or_else(|refusal| refusal.code)
    }

    #[test]
    fn a_vouched_configuration_opens_as_the_token_says() {
        let open = open_with(&config(), &config()).unwrap();

        assert_eq!((open.key.as_str(), open.user_id.as_str(), open.view), ("k1", "u1", false));
        assert!(open.source.unwrap().vouched);
    }

    #[test]
    fn a_missing_or_foreign_or_expired_token_is_refused_with_its_code() {
        let greeting = Greeting::of_config(&config());
        let mut claims = config();
        claims["exp"] = json!(900);
        let mut foreign = Greeting::of_config(&config());
        foreign.token_open = Some(sign(&config(), &"other".into()));

        assert_eq!(code(admit(&policy(), greeting, (ConnId(1), ""), 1_000)), 4006);
        assert_eq!(code(admit(&policy(), foreign, (ConnId(1), ""), 1_000)), 4006);
        assert_eq!(code(open_with(&config(), &claims)), 4005);
        claims["exp"] = json!(950);
        assert_eq!(code(open_with(&config(), &claims)), 0, "sixty seconds of tolerance");
    }

    #[test]
    fn what_the_browser_passes_on_must_be_in_the_token() {
        let mut with_mode = config();
        with_mode["editorConfig"]["mode"] = json!("edit");
        let mut with_permissions = config();
        with_permissions["document"]["permissions"] = json!({"edit": true});
        let mut without_callback = config();
        without_callback["editorConfig"].as_object_mut().unwrap().remove("callbackUrl");

        assert_eq!(code(open_with(&with_mode, &config())), 4006);
        assert_eq!(code(open_with(&with_permissions, &config())), 4006);
        assert_eq!(code(open_with(&config(), &without_callback)), 4006);
        assert_eq!(code(open_with(&config(), &json!({"document": {"key": "k1"}}))), 4006);
        assert_eq!(code(open_with(&with_permissions, &with_permissions)), 0);
    }

    #[test]
    fn altered_permissions_and_tokens_for_something_else_are_denied() {
        let mut said = config();
        said["document"]["permissions"] = json!({"edit": true});
        let mut vouched = config();
        vouched["document"]["permissions"] = json!({"edit": false});
        let mut payload = config();
        payload["payload"] = json!({"url": "x"});

        assert_eq!(code(open_with(&said, &vouched)), 4004);
        assert_eq!(code(open_with(&config(), &payload)), 4004);
    }

    #[test]
    fn a_browser_may_lower_itself_to_viewing_but_not_raise_itself() {
        let mut view = config();
        view["editorConfig"]["mode"] = json!("view");

        assert!(open_with(&view, &config()).unwrap().view);
        let mut edit = config();
        edit["editorConfig"]["mode"] = json!("edit");
        assert!(open_with(&edit, &view).unwrap().view);
    }

    #[test]
    fn commenting_reviewing_and_filling_count_as_editing() {
        for right in ["comment", "review", "fillForms"] {
            let permissions = json!({"edit": false, right: true});
            assert!(is_edit_mode(Some(&permissions), None), "{right}");
        }
        assert!(!is_edit_mode(Some(&json!({"edit": false})), None));
        assert!(is_edit_mode(Some(&json!({})), Some("edit")));
        assert!(!is_edit_mode(None, Some("view")));
    }

    #[test]
    fn a_history_token_opens_the_version_or_the_one_before_to_view() {
        let claims = json!({
            "version": 3, "key": "k3", "url": "http://host/v3",
            "previous": {"key": "k2", "url": "http://host/v2"},
        });

        let this = open_with(&config(), &claims).unwrap();
        let mut greeting = Greeting::of_config(&config());
        greeting.token_open = Some(sign(&claims, &"in".into()));
        greeting.history_key = Some("k2".into());
        let before = admit(&policy(), greeting, (ConnId(1), ""), 1_000).unwrap();

        assert_eq!((this.key.as_str(), this.view), ("k3", true));
        assert_eq!((before.key.as_str(), before.source.unwrap().url.as_str()), ("k2", "http://host/v2"));
    }

    #[test]
    fn keys_have_their_alphabet() {
        assert!(is_key("prod_12345_edit_42.k7q2mz4hxw3t"));
        assert!(is_key(&"=".repeat(129)));
        assert!(!is_key("a/b") && !is_key("") && !is_key("ä"));
    }
}
