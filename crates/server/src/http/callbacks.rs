//! `POST /callback/{document}`: where the Document Server reports.
//!
//! Verifies, hands over to `saving`, turns the reply into what the server understands. The document in the path counts
//! for nothing: the signed key is the only address.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use model::callbacks::Answer;
use model::problems::Code;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument, to_document_server};
use crate::app::App;
use crate::editors::onlyoffice::{CallbackRefused, TokenRefused, read_callback};
use crate::room::space;
use crate::saving::{Reply, accept, names_a_document};
use crate::telemetry;

/// A history of ten thousand entries comes three times in one request: plain, in the token, and in the header.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The server sends its callback in one go.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// What the Document Server sends. Only what the token says counts.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what the editors' side reads")]
struct CallbackBody {
    /// All of this, signed. It may be in the header instead.
    token: Option<String>,
    /// The editor key.
    key: Option<String>,
    /// What happened, by the Document Server's numbers.
    status: Option<i32>,
    /// Where the result is.
    url: Option<String>,
    /// Who is inside.
    users: Option<Vec<String>>,
}

/// What the Document Server understands.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `to_document_server` says")]
struct CallbackAnswer {
    /// 0: it may forget its copy. 1: it keeps it.
    #[schema(maximum = 1)]
    error: u32,
}

/// A callback of the Document Server.
#[utoipa::path(
    post, path = "/callback/{document}", tag = "document server",
    params(("document" = String, Path, description = "For people who read logs; the signed key decides")),
    request_body(content = CallbackBody, description = "As the Document Server sends it, with its token"),
    responses(
        (status = 200, description = "`{\"error\":0}` stored, `{\"error\":1}` kept aside and announced", body = CallbackAnswer),
        (status = 408, description = "API_004: the body took too long", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "DOC_004: the token is missing or forged", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "DOC_003, DOC_004, DOC_005: repeat", body = ProblemDocument, content_type = "application/problem+json"),
    )
)]
pub(super) async fn receive(
    State(app): State<Arc<App>>,
    Path(document): Path<String>,
    request: Request,
) -> Response {
    let received = app.awake.came();
    let (parts, body) = request.into_parts();
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let header = &app.config.document_server.jwt_header;
    let callback = match read_callback(&app.tokens, header, (&parts.headers, &body), app.now()) {
        Ok(callback) => callback,
        Err(refused) => return refuse(&refused),
    };
    let (status, key) = (callback.status, callback.key.clone());
    tracing::debug!(status, document, "a callback arrived");
    let reply = accept(&app, callback, received).await;
    steps::reached("save.answering");
    telemetry::callback_answered(status, word_for(reply), received.elapsed());
    match reply {
        Reply::Answer(Answer::TryAgain) if !names_a_document(&app, &key).await => {
            Problem::nobodys_key().into_response()
        }
        Reply::Answer(Answer::TryAgain) if !space(&app).takes_saves() => Problem::no_room().into_response(),
        reply => to_document_server(reply),
    }
}

async fn read_body(body: Body) -> Result<bytes::Bytes, Problem> {
    match tokio::time::timeout(BODY_TIME_MAX, axum::body::to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Problem::too_large(BODY_BYTES_MAX as u64)),
        Err(_) => Err(Problem::new(
            http::StatusCode::REQUEST_TIMEOUT,
            Code::BadRequest,
            "The request took too long.",
            "Send it in one go.",
        )),
    }
}

fn refuse(refused: &CallbackRefused) -> Response {
    telemetry::callback_answered(0, "refused", Duration::ZERO);
    if *refused == CallbackRefused::Token(TokenRefused::Expired) {
        telemetry::alert("clock-skew");
        tracing::error!("a callback is signed rightly but expired: compare the clocks");
    } else {
        tracing::warn!(reason = %refused, "a callback was refused");
    }
    Problem::from(refused.clone()).into_response()
}

fn word_for(reply: Reply) -> &'static str {
    match reply {
        Reply::Answer(answer) => answer.as_str(),
        Reply::Close => "closed",
    }
}
