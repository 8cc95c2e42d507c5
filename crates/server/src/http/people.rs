//! People around a document: whom an editor offers (`onRequestUsers`), and who was mentioned (`onRequestSendNotify`).
//!
//! Mentions are written down and in the audit trail. Nobody is written to from here: whoever hands mentions out reads them
//! from the ledger in order (`ledger::History::mentions`).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use ledger::history::{NewMention, Person};
use model::access::Permission;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{JsonBody, PathOf, QueryOf};
use crate::app::App;

/// People that are offered: who worked on the document, then who did something in its company last.
const PEOPLE_MAX: u32 = 500;
/// People mentioned at once.
const EMAILS_MAX: usize = 100;
/// The longest address there is.
const EMAIL_BYTES_MAX: usize = 254;
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
const ACTION_LINK_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum UsersKind {
    /// To be mentioned in a comment.
    Mention,
    /// To be allowed to change protected parts.
    Protect,
    /// To be shown beside their work.
    Info,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UsersQuery {
    /// What for: `mention`, `protect` or `info`.
    #[param(inline)]
    kind: UsersKind,
    /// Only these ids, separated by commas.
    ids: Option<String>,
}

/// The object for `setUsers`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsersView {
    /// What for, as it was asked.
    c: UsersKind,
    /// Who worked on the document, then who did something in the company, last first.
    users: Vec<UserView>,
}

/// Somebody the company knows.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UserView {
    /// The id the host application knows.
    id: String,
    /// The name they last saved under, else their id.
    name: String,
    /// Their address, if their id is one: Saveguard knows no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
}

impl From<Person> for UserView {
    fn from(person: Person) -> Self {
        let email = Some(&person.id).filter(|id| is_address(id)).cloned();
        Self { email, id: person.id, name: person.name }
    }
}

/// People for an editor's lists: those who worked on the document or did something in its company.
#[utoipa::path(get, path = "/api/v1/documents/{document}/users", tag = "history", security(("bearer" = [])),
    params(("document" = String, Path), UsersQuery),
    responses((status = 200, body = UsersView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_users(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<UsersQuery>,
) -> Result<Json<UsersView>, Problem> {
    let document = session.document(&app, &document, Permission::Comment).await?;
    let mut people = app.ledger.people(&document.id, PEOPLE_MAX).await?;
    if let Some(ids) = query.ids {
        let wanted: Vec<&str> = ids.split(',').map(str::trim).collect();
        people.retain(|person| wanted.contains(&person.id.as_str()));
    }
    Ok(Json(UsersView { c: query.kind, users: people.into_iter().map(Into::into).collect() }))
}

/// People were mentioned in a comment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MentionWish {
    /// Their addresses: 1 to 100.
    #[schema(min_items = 1, max_items = 100)]
    emails: Vec<String>,
    /// What was written: at most 16 KiB.
    #[serde(default)]
    message: String,
    /// Where in the document, as the editor gave it. Put into a later configuration it leads there.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    action_link: Option<serde_json::Value>,
}

/// A mention that was written down.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MentionView {
    /// Its number.
    number: u64,
}

/// Writes down that people were mentioned.
#[utoipa::path(post, path = "/api/v1/documents/{document}/mentions", tag = "history", security(("bearer" = [])),
    params(("document" = String, Path)), request_body = MentionWish,
    responses((status = 201, body = MentionView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn mention_people(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    JsonBody(wish): JsonBody<MentionWish>,
) -> Result<(StatusCode, Json<MentionView>), Problem> {
    let document = session.document(&app, &document, Permission::Comment).await?;
    let mention = NewMention {
        document: document.id,
        by: session.author(),
        emails: wish.emails,
        message: wish.message,
        action_link: wish.action_link.filter(|link| !link.is_null()).map(|link| link.to_string()),
        at: app.now(),
    };
    refuse_strange(&mention)?;
    let number = app.ledger.note_mention(&mention).await?;
    Ok((StatusCode::CREATED, Json(MentionView { number })))
}

fn refuse_strange(mention: &NewMention) -> Result<(), Problem> {
    let is_countable = (1..=EMAILS_MAX).contains(&mention.emails.len());
    if !is_countable || !mention.emails.iter().all(|email| is_address(email)) {
        return Err(Problem::bad_request("A mention needs 1 to 100 e-mail addresses."));
    }
    let link_bytes = mention.action_link.as_ref().map_or(0, String::len);
    if mention.message.len() > MESSAGE_BYTES_MAX || link_bytes > ACTION_LINK_BYTES_MAX {
        return Err(Problem::bad_request("A message and its link are at most 16 KiB each."));
    }
    Ok(())
}

/// Enough to be one: whoever writes to it finds out. No control characters, so that it cannot become a second header.
fn is_address(text: &str) -> bool {
    let parts = text.split_once('@');
    let is_plain =
        !text.chars().any(|each| each.is_control() || each.is_whitespace() || ",;<>\"".contains(each));
    text.len() <= EMAIL_BYTES_MAX
        && is_plain
        && parts.is_some_and(|(who, at)| !who.is_empty() && !at.is_empty() && !at.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_word_with_an_at() {
        assert!(is_address("ann@example.org") && is_address("ann+x@localhost"));
        for strange in
            ["", "ann", "@example.org", "ann@", "a@b@c", "a b@c", "a@b\r\nbcc: x@y", "a@b,c@d", "<a@b>"]
        {
            assert!(!is_address(strange), "{strange:?}");
        }
    }
}
