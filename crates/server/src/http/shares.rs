//! Share links over HTTP, for members: make, list, revoke.
//!
//! Guarantees: whoever may share the document makes, sees and revokes its links, and makes none that allows more than they
//! may do; a token is in the answer that makes it and nowhere else. Does not do: what guests see ([`super::guests`]).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use ledger::shares::Share;
use model::access::Permission;
use model::sharing::{Allows, DownloadSwitch, may_share};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{JsonBody, PathOf, QueryOf};
use crate::app::App;
use crate::sharing::{Wish, create, link_of, revoke};

const PAGE_DEFAULT: u32 = 100;
const PAGE_MAX: u32 = 1000;

/// What a share link allows.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AllowsWord {
    /// Reading.
    View,
    /// Reading and commenting.
    Comment,
    /// Editing.
    Edit,
}

impl From<AllowsWord> for Allows {
    fn from(word: AllowsWord) -> Self {
        match word {
            AllowsWord::View => Self::View,
            AllowsWord::Comment => Self::Comment,
            AllowsWord::Edit => Self::Edit,
        }
    }
}

impl From<Allows> for AllowsWord {
    fn from(allows: Allows) -> Self {
        match allows {
            Allows::View => Self::View,
            Allows::Comment => Self::Comment,
            Allows::Edit => Self::Edit,
        }
    }
}

/// A share link. Its token is not kept and cannot be shown.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ShareView {
    /// Its number.
    number: u64,
    /// What it opens.
    document: String,
    /// What people call it; may be empty.
    #[schema(example = "for the auditors")]
    label: String,
    /// What it allows.
    allows: AllowsWord,
    /// Whether its guests may download and print.
    may_download: bool,
    /// Whether it asks for a password.
    has_password: bool,
    /// The id of who made it.
    created_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Until when it counts; for ever if `null`.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    /// How many guests came through it.
    uses: u64,
    /// When the last one did.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Timestamp>,
}

impl From<Share> for ShareView {
    fn from(share: Share) -> Self {
        Self {
            number: share.number,
            document: share.document.to_string(),
            label: share.label,
            allows: share.allows.into(),
            may_download: share.download == DownloadSwitch::On,
            has_password: share.password.is_some(),
            created_by: share.created_by,
            created_at: share.created_at,
            expires_at: share.expires_at,
            revoked_at: share.revoked_at,
            uses: share.uses,
            last_used_at: share.last_used_at,
        }
    }
}

fn yes() -> bool {
    true
}

/// A share link to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewShareLink {
    /// What it allows.
    allows: AllowsWord,
    /// What people call it: up to 200 characters, no control characters.
    #[serde(default)]
    #[schema(max_length = 200, pattern = r"^[^\x00-\x1F\x7F-\x9F]*$")]
    label: String,
    /// A password its guests must know: 6 characters or more.
    #[serde(default)]
    #[schema(min_length = 6, max_length = 256)]
    password: Option<String>,
    /// After how many hours it expires; never if not set.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 87600)]
    expires_hours: Option<u32>,
    /// Whether its guests may download and print.
    #[serde(default = "yes")]
    may_download: bool,
}

/// A share link that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MadeShare {
    /// The token. Shown this once.
    #[schema(example = "sgl_…")]
    token: String,
    /// The address to give away; the token is a part of it.
    url: String,
    /// What is known of it from now on.
    details: ShareView,
}

/// Makes a share link. Its token is shown this once.
#[utoipa::path(post, path = "/api/v1/documents/{document}/shares", tag = "shares", security(("bearer" = [])),
    params(("document" = String, Path)), request_body = NewShareLink,
    responses((status = 201, body = MadeShare),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn create_share(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    JsonBody(new): JsonBody<NewShareLink>,
) -> Result<(StatusCode, [(header::HeaderName, HeaderValue); 1], Json<MadeShare>), Problem> {
    let document = session.document(&app, &document, Permission::Share).await?;
    let allows = Allows::from(new.allows);
    if !may_share(session.0.role, allows) {
        return Err(Problem::forbidden());
    }
    let wish = Wish {
        document: document.id,
        allows,
        download: if new.may_download { DownloadSwitch::On } else { DownloadSwitch::Off },
        label: new.label,
        password: new.password,
        expires_hours: new.expires_hours,
    };
    let (token, share) = create(&app, wish, session.author()).await?;
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    let made = MadeShare { url: link_of(&app.config, &token), token, details: share.into() };
    Ok((StatusCode::CREATED, no_store, Json(made)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ShareQuery {
    /// After this number: the last one of the page before.
    after: Option<u64>,
    /// At most so many: 1 to 1000, else 100.
    limit: Option<u32>,
}

/// The share links of a document, oldest first, page by page; revoked and expired ones too.
#[utoipa::path(get, path = "/api/v1/documents/{document}/shares", tag = "shares", security(("bearer" = [])),
    params(("document" = String, Path), ShareQuery),
    responses((status = 200, body = [ShareView]), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_shares(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<ShareQuery>,
) -> Result<Json<Vec<ShareView>>, Problem> {
    let document = session.document(&app, &document, Permission::Share).await?;
    let after = query.after.unwrap_or(0);
    let limit = query.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let shares = app.ledger.shares(&document.id, after, limit).await?;
    Ok(Json(shares.into_iter().map(ShareView::from).collect()))
}

/// Revokes a share link. It opens nothing any more, and guests who are inside are asked to leave; what they save is still taken.
#[utoipa::path(delete, path = "/api/v1/documents/{document}/shares/{number}", tag = "shares", security(("bearer" = [])),
    params(("document" = String, Path), ("number" = u64, Path)),
    responses((status = 204, description = "It is revoked"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn revoke_share(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((document, number)): PathOf<(String, u64)>,
) -> Result<StatusCode, Problem> {
    // A link of a deleted document is revoked, too: it would open again with the document.
    let document = session.document_or_deleted(&app, &document, Permission::Share).await?;
    let share = app.ledger.share(number).await?;
    let share = share.filter(|share| share.document == document.id).ok_or_else(Problem::not_found)?;
    revoke(&app, share.number, session.author()).await?;
    Ok(StatusCode::NO_CONTENT)
}
