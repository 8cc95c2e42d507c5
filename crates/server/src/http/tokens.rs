//! API tokens over HTTP: make, list, revoke.
//!
//! Guarantees: for admins only, who see and touch tokens of their own companies and nothing of others; nobody hands out more
//! than they have; a token is in the answer that makes it and nowhere else.
//! Does not do: make or verify tokens ([`crate::callers`]).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use ledger::callers::{ApiToken, Revocation};
use model::access::{Companies, Opens, Organisations, Permission, Role, may_manage, may_operate};
use model::{CompanyId, OrganisationId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::companies::company_id;
use super::extract::{JsonBody, PathOf, QueryOf};
use crate::app::App;
use crate::callers::{Wish, check, issue};

const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 1000;
/// Read at once from the ledger, which knows nothing of who may see what.
const LEDGER_PAGE: u32 = 1000;
/// The word for all companies.
const ALL: &str = "*";

/// An API token. The token itself is not kept and cannot be shown.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenView {
    /// Its number.
    number: u64,
    /// What people call it.
    #[schema(example = "nightly export")]
    name: String,
    /// What its bearer is.
    #[schema(example = "viewer")]
    role: &'static str,
    /// Whose data its bearer may touch; `*` means all companies.
    companies: Vec<String>,
    /// For which organisations its bearer acts; `*` means all.
    organisations: Vec<String>,
    /// The id of who made it.
    created_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Until when it counts; for ever if `null`.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// When it was last used, to the hour.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Timestamp>,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
}

impl From<ApiToken> for TokenView {
    fn from(token: ApiToken) -> Self {
        Self {
            number: token.number,
            name: token.name,
            role: token.role.as_str(),
            companies: match token.companies {
                Companies::All => vec![ALL.to_owned()],
                Companies::Only(ids) => ids.iter().map(ToString::to_string).collect(),
            },
            organisations: match token.organisations {
                Organisations::All => vec![ALL.to_owned()],
                Organisations::Only(ids) => ids.iter().map(ToString::to_string).collect(),
            },
            created_by: token.created_by,
            created_at: token.created_at,
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
            revoked_at: token.revoked_at,
        }
    }
}

/// An id, or `*` for all of them, which stands alone.
#[derive(ToSchema)]
#[schema(pattern = r"^(\*|[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63})$")]
#[allow(dead_code, reason = "describes what is read as text")]
struct IdOrAll(String);

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewToken {
    /// What people call it: 1 to 200 characters, no control characters.
    #[schema(
        example = "nightly export",
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\s\x00-\x1F\x7F-\x9F][^\x00-\x1F\x7F-\x9F]*$"
    )]
    name: String,
    /// What its bearer is: viewer, commenter, editor, submitter, regulator or admin.
    #[schema(example = "viewer", pattern = "^(viewer|commenter|editor|submitter|regulator|admin)$")]
    role: String,
    /// Whose data its bearer may touch; `["*"]` for all companies. May be left out if there are organisations.
    #[serde(default)]
    #[schema(value_type = Vec<IdOrAll>, example = json!(["acme"]))]
    companies: Vec<String>,
    /// For which organisations its bearer acts; `["*"]` for all.
    #[serde(default)]
    #[schema(value_type = Vec<IdOrAll>)]
    organisations: Vec<String>,
    /// After how many days it expires; never if not set.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 36500)]
    expires_days: Option<u32>,
}

/// A token that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MadeToken {
    /// The token, for `Authorization: Bearer …`. Shown this once.
    #[schema(example = "sg_…")]
    token: String,
    /// What is known of it from now on.
    details: TokenView,
}

impl NewToken {
    fn wish(self) -> Result<Wish, Problem> {
        let role = Role::parse(&self.role).ok_or_else(|| {
            Problem::bad_request("A role is viewer, commenter, editor, submitter, regulator or admin.")
        })?;
        let companies = if self.companies == [ALL] {
            Companies::All
        } else {
            Companies::Only(self.companies.iter().map(|id| company_id(id)).collect::<Result<_, _>>()?)
        };
        let organisations = if self.organisations == [ALL] {
            Organisations::All
        } else {
            let ids = self.organisations.iter().map(|id| OrganisationId::parse(id));
            Organisations::Only(ids.collect::<Result<_, _>>().map_err(|refused| Problem::id(&refused))?)
        };
        let wish = Wish { name: self.name, role, companies, organisations, expires_days: self.expires_days };
        check(&wish).map_err(Problem::bad_request)?;
        Ok(wish)
    }
}

/// Allows making this token, or not. A foreign company or organisation looks exactly like a missing one.
fn allow(session: &Session, wish: &Wish) -> Result<(), Problem> {
    match &wish.companies {
        Companies::All => session.allow_operating()?,
        Companies::Only(ids) if ids.is_empty() => session.allow_operating()?,
        Companies::Only(ids) => {
            let administer = |id: &CompanyId| session.allow(Permission::Administer, id);
            ids.iter().try_for_each(administer)?;
        }
    }
    if !may_operate(&session.0) && !session.0.organisations.contain(&wish.organisations) {
        return Err(Problem::not_found());
    }
    let opens = Opens { role: wish.role, companies: &wish.companies, organisations: &wish.organisations };
    if may_manage(&session.0, opens) { Ok(()) } else { Err(Problem::forbidden()) }
}

fn is_theirs(session: &Session, token: &ApiToken) -> bool {
    let (role, companies, organisations) = (token.role, &token.companies, &token.organisations);
    may_manage(&session.0, Opens { role, companies, organisations })
}

/// Makes an API token. It is shown this once.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", security(("bearer" = [])), request_body = NewToken,
    responses((status = 201, body = MadeToken),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "A company does not exist", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn create_token(
    State(app): State<Arc<App>>,
    session: Session,
    JsonBody(new): JsonBody<NewToken>,
) -> Result<(StatusCode, [(header::HeaderName, HeaderValue); 1], Json<MadeToken>), Problem> {
    session.allow_administering()?;
    let wish = new.wish()?;
    allow(&session, &wish)?;
    let (token, made) = issue(&app, wish, session.author()).await?;
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((StatusCode::CREATED, no_store, Json(MadeToken { token, details: made.into() })))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TokenQuery {
    /// After this number: the last one of the page before.
    after: Option<u64>,
    /// At most so many: 1 to 1000, else 100.
    limit: Option<usize>,
}

/// The API tokens of the caller's companies, oldest first, page by page; revoked ones too.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", security(("bearer" = [])), params(TokenQuery),
    responses((status = 200, body = [TokenView]), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_tokens(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(query): QueryOf<TokenQuery>,
) -> Result<Json<Vec<TokenView>>, Problem> {
    session.allow_administering()?;
    let limit = query.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let mut after = query.after.unwrap_or(0);
    let mut shown = Vec::new();
    while shown.len() < limit {
        let page = app.ledger.api_tokens(after, LEDGER_PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.number;
        shown.extend(page.into_iter().filter(|token| is_theirs(&session, token)));
    }
    shown.truncate(limit);
    Ok(Json(shown.into_iter().map(TokenView::from).collect()))
}

/// Revokes an API token. It counts for nothing from the next request on.
#[utoipa::path(delete, path = "/api/v1/tokens/{number}", tag = "tokens", security(("bearer" = [])),
    params(("number" = u64, Path)),
    responses((status = 204, description = "It is revoked"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn revoke_token(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(number): PathOf<u64>,
) -> Result<StatusCode, Problem> {
    session.allow_administering()?;
    let token = app.ledger.api_token(number).await?.ok_or_else(Problem::not_found)?;
    if !is_theirs(&session, &token) {
        return Err(Problem::not_found());
    }
    let revocation = Revocation { number, by: session.author(), at: app.now() };
    if app.ledger.revoke_api_token(&revocation).await? {
        tracing::info!(token = number, "API token {number} was revoked");
    }
    Ok(StatusCode::NO_CONTENT)
}
