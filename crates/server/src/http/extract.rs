//! Bodies, queries and paths, read into types; what cannot be read is a problem document like any other.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use serde::de::DeserializeOwned;

use super::answer::Problem;

/// A JSON body: an object.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let whole = Request::from_parts(parts.clone(), body);
        let bytes = Bytes::from_request(whole, state).await.map_err(JsonRejection::from)?;
        // What reads structs takes the array of their values, too; that is not our interface.
        let is_object = bytes.trim_ascii_start().starts_with(b"{");
        let again = Request::from_parts(parts, Body::from(bytes));
        let Json(read) = Json::from_request(again, state).await?;
        if is_object { Ok(Self(read)) } else { Err(Problem::bad_request("The body is not a JSON object.")) }
    }
}

/// The query.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
pub(super) struct QueryOf<T>(pub(super) T);

/// The parts of the path.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub(super) struct PathOf<T>(pub(super) T);

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        match rejection {
            JsonRejection::BytesRejection(_) => Self::too_large(super::routes::JSON_BYTES_MAX as u64),
            JsonRejection::MissingJsonContentType(_) => Self::not_json(),
            rejection => Self::bad_request(rejection.body_text()),
        }
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}
