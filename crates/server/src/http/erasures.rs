//! Erasing personal values over HTTP.
//!
//! Guarantees: only admins who act for the organisation erase, only columns a template calls personal, and with a reason, which is in the audit
//! trail. Does not do: bring anything back.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::access::Permission;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{JsonBody, PathOf};
use super::records::registered;
use crate::app::App;
use crate::recording::{EraseWish, erase};

/// Records named at once; of more, all of their kind or several calls.
const KEYS_MAX: usize = 10_000;
/// Longest reason, in characters.
const REASON_CHARACTERS_MAX: usize = 500;

/// What is to be erased.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ErasureWish {
    /// The kind of record.
    kind: String,
    /// The keys of the records. Leave it out, and set `all`, for all of the kind.
    #[serde(default)]
    keys: Vec<String>,
    /// All records of the kind.
    #[serde(default)]
    all: bool,
    /// The columns; the template calls each of them personal.
    #[schema(min_items = 1)]
    columns: Vec<String>,
    /// Why, for the audit trail. Not the value.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// What was erased.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErasedView {
    /// Versions and staged rows in which something was erased.
    contents: u64,
    /// Problems whose quoted value was erased.
    problems: u64,
}

/// Erases personal values from every version of records. It cannot be undone.
///
/// Versions, their order and hashes stay. The workbooks that were brought are kept as they are.
#[utoipa::path(post, path = "/api/v1/organisations/{organisation}/registrations/{registration}/records/erase", tag = "records",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path)), request_body = ErasureWish,
    responses((status = 200, body = ErasedView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn erase_values(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
    JsonBody(wish): JsonBody<ErasureWish>,
) -> Result<Json<ErasedView>, Problem> {
    let scope = registered(&app, &session, (&organisation, &registration), Permission::Administer).await?;
    let reason = wish.reason.trim();
    if reason.is_empty() || reason.chars().count() > REASON_CHARACTERS_MAX {
        return Err(Problem::bad_request("A reason has 1 to 500 characters."));
    }
    let keys: BTreeSet<String> = wish.keys.into_iter().collect();
    if keys.is_empty() != wish.all || keys.len() > KEYS_MAX {
        return Err(Problem::bad_request("Name 1 to 10,000 `keys`, or say `all`."));
    }
    let wish = EraseWish {
        scope,
        kind: wish.kind,
        keys: (!wish.all).then_some(keys),
        columns: wish.columns.into_iter().collect(),
        reason: reason.to_owned(),
        who: session.author(),
    };
    // Once begun it goes on, although the caller may hang up.
    let erasing = tokio::spawn(async move { erase(&app, wish).await });
    let erased = erasing.await.map_err(|cause| Problem::store(&cause))??;
    Ok(Json(ErasedView { contents: erased.contents, problems: erased.problems }))
}
