//! From what happened to what the caller is told: every status and every public word is chosen here.
//!
//! Guarantees: a problem document has a code, a title, a detail and what to do next, and nothing of the inner cause;
//! the cause is logged once, here, with an id that the caller gets too. `docs/status-codes.md` is this file for people.

use std::borrow::Cow;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use model::callbacks::Answer;
use model::names::NameRefused;
use model::operations::{Operation, Refusal};
use model::problems::Code;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::answer_submissions::refusal;
use crate::changing::ChangeError;
use crate::comparing::CompareError;
use crate::editors::FetchError;
use crate::editors::onlyoffice::{CallbackRefused, TokenRefused};
use crate::opening::{OpenError, StreamRefused};
use crate::pruning::PruneError;
use crate::saving::Reply;
use crate::sharing::ShareError;
use crate::telemetry::report;

const PAGES: &str = "https://github.com/saveguard/saveguard/blob/main/docs/errors";

/// An error on its way out.
#[derive(Debug, Clone)]
pub struct Problem {
    id: Uuid,
    status: StatusCode,
    code: Code,
    detail: Cow<'static, str>,
    next: &'static str,
    retry_after_seconds: Option<u32>,
}

/// An error as RFC 9457 describes it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProblemDocument {
    /// A page about this code.
    #[serde(rename = "type")]
    kind: String,
    /// What went wrong, in general.
    title: &'static str,
    /// The HTTP status.
    #[schema(example = 409)]
    status: u16,
    /// The code: stable, documented.
    #[schema(example = "DOC_001")]
    code: &'static str,
    /// The code as a name.
    #[schema(example = "EDIT_LOCK_ACTIVE")]
    name: &'static str,
    /// What went wrong, this time.
    detail: Cow<'static, str>,
    /// What to do next.
    next: &'static str,
    /// This very occurrence, as it stands in the log.
    #[schema(example = "urn:uuid:018f3b1e-6c1d-7cc3-8a54-8f2b4f5d9a10")]
    instance: String,
}

impl Problem {
    /// A problem with its words.
    pub fn new(
        status: StatusCode,
        code: Code,
        detail: impl Into<Cow<'static, str>>,
        next: &'static str,
    ) -> Self {
        Self { id: Uuid::now_v7(), status, code, detail: detail.into(), next, retry_after_seconds: None }
    }

    pub(super) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// No such thing, or none this caller may know of: both look exactly alike.
    pub fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            Code::NotFound,
            "There is no such thing here.",
            "Check the id and your token's companies.",
        )
    }

    /// The request cannot be understood.
    pub fn bad_request(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            Code::BadRequest,
            detail,
            "Correct the request; the API description is at /api/openapi.json.",
        )
    }

    /// No valid token.
    pub fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            Code::Unauthorized,
            "The request has no valid bearer token.",
            "Send `Authorization: Bearer …` with a token of your application that has not expired, or with an API token that is not revoked.",
        )
    }

    /// The token does not allow this.
    pub fn forbidden() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            Code::Forbidden,
            "Your token's role does not allow this.",
            "Ask with a token of another role.",
        )
    }

    /// Somebody may not do this with a document.
    pub fn operation(refused: Refusal, operation: Operation) -> Self {
        let forbidden = |detail| {
            let next = "Ask for less, or with a token of another role.";
            Self::new(StatusCode::FORBIDDEN, Code::Forbidden, detail, next)
        };
        match refused {
            Refusal::RoleTooSmall => {
                forbidden(format!("Your token's role does not allow this operation: {}.", operation.as_str()))
            }
            Refusal::NotThroughLink => {
                forbidden(format!("No share link allows this operation: {}.", operation.as_str()))
            }
            Refusal::WhileEdited => ChangeError::Edited { users: Vec::new() }.into(),
            Refusal::NotInEditor => Self::bad_request("This is not done in an editor."),
        }
    }

    /// A guest has to come in before they take something away.
    pub fn ticket_needed() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            Code::Forbidden,
            "The request has no valid ticket of this share link.",
            "Open the link first, and send the ticket you get.",
        )
    }

    /// The caller must say which head they saw.
    pub fn precondition_required() -> Self {
        Self::new(
            StatusCode::PRECONDITION_REQUIRED,
            Code::PreconditionFailed,
            "The request does not say which content it replaces.",
            "Send If-Match with the ETag of the content you saw.",
        )
    }

    /// Stopping or overloaded.
    pub fn unavailable(detail: &'static str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, detail, "Try again in a moment.")
            .retry_after(2)
    }

    /// The path is there, and is not called like this.
    pub fn method_not_allowed() -> Self {
        let next = "Use one of the methods in the header `Allow`.";
        let detail = "This path does not know the method.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, Code::BadRequest, detail, next)
    }

    /// A body that is not marked as JSON.
    pub fn not_json() -> Self {
        let next = "Send JSON, with `Content-Type: application/json`.";
        let detail = "The body is not marked as JSON.";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::BadRequest, detail, next)
    }

    /// Too many bytes.
    pub fn too_large(limit_bytes: u64) -> Self {
        let detail = format!("The request is larger than {limit_bytes} bytes.");
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            Code::TooLarge,
            detail,
            "Send less, or raise the limit in the configuration.",
        )
    }

    /// The store cannot take it now.
    pub fn store(error: &dyn std::error::Error) -> Self {
        let detail = "The store cannot do this now; nothing was changed.";
        let next = "Try again in a moment; `saveguard doctor` names the cause.";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::StoreWriteFailed, detail, next);
        tracing::error!(problem.id = %problem.id, error = %report(error), "a request failed on the store");
        problem.retry_after(2)
    }

    /// Too little room on the disk.
    pub fn no_room() -> Self {
        let detail = "There is too little room left on the disk; nothing was stored.";
        let next =
            "Somebody who looks after the installation has to make room; then it works again by itself.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::StoreWriteFailed, detail, next).retry_after(30)
    }

    /// A name that is not allowed.
    pub fn name(refused: NameRefused) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            Code::PathTraversal,
            format!("The name is not allowed: {refused}."),
            "Choose a plain file name.",
        )
    }

    /// An id that is not allowed.
    pub fn id(refused: &model::ids::NotAnId) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::PathTraversal, format!("{refused}."), "Choose a plain id.")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let document = ProblemDocument {
            kind: format!("{PAGES}/{}.md", self.code),
            title: self.code.title(),
            status: self.status.as_u16(),
            code: self.code.as_str(),
            name: self.code.name(),
            detail: self.detail,
            next: self.next,
            instance: self.id.urn().to_string(),
        };
        let mut response = (self.status, Json(document)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Edited { users } => {
                let who = match users.len() {
                    0 => "The Document Server holds changes of it that nobody saved yet.".to_owned(),
                    1 => "One person is editing it.".to_owned(),
                    count => format!("{count} people are editing it."),
                };
                let next = "Try again when they have closed it; opening it brings unsaved changes back.";
                Self::new(StatusCode::CONFLICT, Code::EditLockActive, who, next)
            }
            ChangeError::BeingSaved => OpenError::BeingSaved.into(),
            ChangeError::ServerAway => OpenError::ServerAway.into(),
            ChangeError::HeadMoved { .. } => Self::new(
                StatusCode::PRECONDITION_FAILED,
                Code::PreconditionFailed,
                "The document is not what you saw any more.",
                "Read it again, look at what changed, and send your change with its ETag.",
            ),
            ChangeError::NotFound => Self::not_found(),
            ChangeError::Name(refused) => Self::name(refused),
            ChangeError::NotWhole { reason } => OpenError::NotWhole { reason }.into(),
            ChangeError::TooLarge { limit_bytes } => Self::too_large(limit_bytes),
            ChangeError::BrokenOff => OpenError::BrokenOff.into(),
            ChangeError::NoRoom => Self::no_room(),
            ChangeError::Check(cause) => Self::store(&cause),
            ChangeError::Store(cause) => Self::store(&cause),
            ChangeError::Ledger(cause) => cause.into(),
        }
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NotFound { .. } => Self::not_found(),
            OpenError::BeingSaved => Self::new(
                StatusCode::CONFLICT,
                Code::EditLockActive,
                "The document is being saved right now.",
                "Try again in a few seconds; the newest version will open.",
            )
            .retry_after(3),
            OpenError::DamagedThere => Self::new(
                StatusCode::CONFLICT,
                Code::EditLockActive,
                "The Document Server holds unsaved changes of this document beside a damaged file; what is typed now could not be saved.",
                "Somebody who looks after the installation has to take the damaged file away: see docs/how-to/when-something-went-wrong.md.",
            ),
            OpenError::ServerAway => Self::unavailable(
                "The Document Server cannot be reached, and only it knows whether unsaved work is left.",
            ),
            OpenError::NotWhole { reason } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::SaveValidationFailed,
                format!("The file is not whole: {reason}."),
                "Upload the file again from its source.",
            ),
            OpenError::Exists { what } => Self::new(
                StatusCode::CONFLICT,
                Code::AlreadyExists,
                format!("{what} exists already."),
                "Choose another id, or use the existing one.",
            ),
            OpenError::OverQuota(exceeded) => Self::new(
                StatusCode::CONFLICT,
                Code::QuotaExceeded,
                format!("The company may keep no more than {exceeded}; nothing was stored."),
                "Ask whoever looks after the installation for a larger quota.",
            ),
            OpenError::TooLarge { limit_bytes } => Self::too_large(limit_bytes),
            OpenError::BrokenOff => Self::bad_request("The upload broke off."),
            OpenError::NoRoom => Self::no_room(),
            OpenError::Fetch(cause) => cause.into(),
            OpenError::Stream(refused) => refused.into(),
            OpenError::Check(cause) => Self::store(&cause),
            OpenError::Ledger(cause) => Self::store(&cause),
            OpenError::Vault(cause) => Self::store(&cause),
        }
    }
}

impl From<ShareError> for Problem {
    fn from(error: ShareError) -> Self {
        match error {
            ShareError::Invalid(why) => Self::bad_request(why),
            ShareError::NotFound => Self::not_found(),
            ShareError::TooMany { seconds } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                Code::TooManyAttempts,
                "Too many attempts that did not succeed, or too many visits at once.",
                "Wait as long as Retry-After says, and check the link and its password.",
            )
            .retry_after(seconds),
            ShareError::Password => Self::new(
                StatusCode::FORBIDDEN,
                Code::PasswordNeeded,
                "The share link asks for a password, and this is not it.",
                "Send the password that you were given with the link.",
            ),
            ShareError::NoDownload => Self::new(
                StatusCode::FORBIDDEN,
                Code::Forbidden,
                "The share link does not allow downloads.",
                "Ask whoever gave it to you for one that does.",
            ),
            ShareError::Busy => Self::unavailable("Too many passwords are being checked right now."),
            ShareError::Ledger(cause) => cause.into(),
        }
    }
}

impl From<StreamRefused> for Problem {
    fn from(refused: StreamRefused) -> Self {
        match refused {
            StreamRefused::Token => Self::new(
                StatusCode::FORBIDDEN,
                Code::StreamUnauthorized,
                "The stream token is missing, expired, or for something else.",
                "Ask for a fresh editor configuration.",
            ),
            StreamRefused::Spent => Self::new(
                StatusCode::CONFLICT,
                Code::SessionConflict,
                "The session of this key is over; its result is stored.",
                "Ask for a fresh editor configuration: it opens the newest version.",
            ),
        }
    }
}

impl From<FetchError> for Problem {
    /// What somebody's browser sent us to fetch; nothing was changed.
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::TooLarge { limit_bytes } => Self::too_large(limit_bytes),
            FetchError::Spool(cause) => Self::store(&cause),
            FetchError::Broken { .. } => Self::unavailable("The Document Server did not deliver the file."),
            FetchError::Gone { .. } | FetchError::NotTheFile { .. } | FetchError::BadLink { .. } => {
                Self::bad_request("The link does not lead to a file of the Document Server, or not any more.")
            }
        }
    }
}

impl From<CompareError> for Problem {
    fn from(error: CompareError) -> Self {
        match error {
            CompareError::NotFound => Self::not_found(),
            CompareError::Busy => Self::unavailable("Too many contents are being compared right now."),
            CompareError::NotComparable(cause) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::BadRequest,
                format!("These contents cannot be compared: {cause}."),
                "Compare two documents, two workbooks, two presentations or two texts.",
            ),
            CompareError::Ledger(cause) => Self::store(&cause),
            CompareError::Vault(cause) => Self::store(&cause),
            CompareError::Interrupted => Self::unavailable("The comparison was interrupted."),
        }
    }
}

impl From<PruneError> for Problem {
    fn from(error: PruneError) -> Self {
        Self::store(&error)
    }
}

impl From<ledger::LedgerError> for Problem {
    fn from(error: ledger::LedgerError) -> Self {
        refusal(error).unwrap_or_else(|error| OpenError::from(error).into())
    }
}

impl From<CallbackRefused> for Problem {
    fn from(refused: CallbackRefused) -> Self {
        match refused {
            // Signed by the server, so its work is real: it must repeat, and somebody must look at the clocks.
            CallbackRefused::Token(TokenRefused::Expired) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Code::CallbackInvalid,
                "The callback's token is signed rightly but is not valid at this time.",
                "Compare the clocks of the Document Server and of Saveguard.",
            )
            .retry_after(1),
            CallbackRefused::Token(refused) => Self::new(
                StatusCode::FORBIDDEN,
                Code::CallbackInvalid,
                format!("The callback cannot be trusted: {refused}."),
                "Give the Document Server and Saveguard the same secret and header name; `saveguard doctor` tests it.",
            ),
            CallbackRefused::NoKey => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Code::KeyParseFailed,
                "The callback has no key, or one that no Document Server accepts. Nothing was fetched.",
                "Look at what sends callbacks to this address; the Document Server keeps what it could not deliver.",
            )
            .retry_after(1),
            CallbackRefused::NoStatus => Self::bad_request("The callback has no status."),
        }
    }
}

impl Problem {
    /// The key names no document of ours. Signed by the server, so it may repeat: 503.
    pub fn nobodys_key() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Code::KeyParseFailed,
            "The callback's key cannot be read, or its document is not known here. What it brings is kept aside.",
            "Check that the environment name is the one that issued the key, and look at the orphans.",
        )
        .retry_after(1)
    }
}

/// Marks a response whose connection is closed instead of being answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct CloseConnection;

/// What the Document Server is told.
pub(super) fn to_document_server(reply: Reply) -> Response {
    match reply {
        Reply::Answer(Answer::Saved) => Json(json!({ "error": 0 })).into_response(),
        Reply::Answer(Answer::NotSaved) => Json(json!({ "error": 1 })).into_response(),
        Reply::Answer(Answer::TryAgain) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Code::StoreWriteFailed,
            "The save is not stored yet.",
            "Repeat the callback; the work goes on meanwhile.",
        )
        .retry_after(1)
        .into_response(),
        Reply::Close => {
            let mut response = StatusCode::SERVICE_UNAVAILABLE.into_response();
            response.extensions_mut().insert(CloseConnection);
            response
        }
    }
}
