//! What [`super::answer`] is for everything about submissions: statuses and words of the `SUB_` codes.

use http::StatusCode;
use ledger::LedgerError;
use model::problems::Code;

use super::answer::Problem;
use crate::opening::OpenError;
use crate::registering::Mistake;
use crate::submitting::{SubmissionError, told_of};

/// More mistakes than this help nobody at once; the rest is counted.
const MISTAKES_MAX: usize = 100;

/// What the ledger refuses only here; anything else comes back.
pub(super) fn refusal(error: LedgerError) -> Result<Problem, LedgerError> {
    match error {
        LedgerError::NoTemplate { template } => Ok(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            Code::TemplateNotAvailable,
            format!("There is no version of the template `{template}` that is not retired."),
            "Add the template first, or assign another one; GET /api/v1/templates lists them.",
        )),
        LedgerError::TooMany { what, limit } => Ok(Problem::new(
            StatusCode::CONFLICT,
            Code::TooMany,
            format!("There are at most {limit} {what}; nothing was added."),
            "Remove what is not needed any more, or begin a new registration.",
        )),
        LedgerError::Reversed(reversed) => {
            Ok(Problem::bad_request(format!("The days do not fit: {reversed}.")))
        }
        error => Err(error),
    }
}

/// A template that cannot be used.
pub(super) fn template_not_valid(mistakes: &[Mistake]) -> Problem {
    let shown: Vec<String> = mistakes.iter().take(MISTAKES_MAX).map(ToString::to_string).collect();
    let more = match mistakes.len().saturating_sub(MISTAKES_MAX) {
        0 => String::new(),
        more => format!("\nand {more} more"),
    };
    let detail = format!("The template has mistakes, nothing was added:\n{}{more}", shown.join("\n"));
    let next = "Correct all of them and send it again; `saveguard template check` tells the same.";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, Code::TemplateNotValid, detail, next)
}

/// A version that is there, with another text.
pub(super) fn template_version_taken(what: &str) -> Problem {
    let detail = format!("{what} is here already, with another text; it stays as it is.");
    let next = "Give the changed template a new version; records say under which version they came.";
    Problem::new(StatusCode::CONFLICT, Code::TemplateVersionTaken, detail, next)
}

impl From<SubmissionError> for Problem {
    fn from(error: SubmissionError) -> Self {
        let conflict = |code, detail: &'static str, next| Self::new(StatusCode::CONFLICT, code, detail, next);
        match error {
            SubmissionError::NotFound => Self::not_found(),
            SubmissionError::NoTemplate => {
                let next =
                    "Ask whoever looks after the installation to assign a template that is not retired.";
                conflict(Code::NoTemplate, "The registration has no template to read a workbook by.", next)
            }
            SubmissionError::InProgress => {
                let next = "Wait until it is done; it takes seconds.";
                conflict(Code::SubmissionInProgress, "A submission is in progress. Please wait.", next)
                    .retry_after(2)
            }
            SubmissionError::Superseded => {
                let next = "Look at the newer one and submit that.";
                conflict(Code::LogSuperseded, "A newer summary log has been uploaded", next)
            }
            SubmissionError::Stale { by } => {
                let detail = format!("{} The preview is being computed again.", told_of(by.as_deref()));
                let next = "Look at the new preview, and confirm it again.";
                Self::new(StatusCode::CONFLICT, Code::PreviewStale, detail, next).retry_after(1)
            }
            SubmissionError::NotValidated { state } => Self::new(
                StatusCode::CONFLICT,
                Code::NoPreview,
                format!("The summary log is {}; only a validated one can be submitted.", state.as_str()),
                "Wait until it is validated, or correct the workbook and upload it again.",
            ),
            SubmissionError::Unanswered { warning } => Self::new(
                StatusCode::CONFLICT,
                Code::WarningUnanswered,
                format!(
                    "The workbook has the warning {warning}, and nobody said that it is right all the same."
                ),
                "Look at the problems of the log. If all is meant so, submit it with ?despite= and the code of the warning.",
            ),
            SubmissionError::OtherBytes => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::NoticeInvalid,
                "The stored file is not the one the notice names, or is not there.",
                "Store the file first; then send the notice with its SHA-256.",
            ),
            SubmissionError::TooLarge { limit_bytes } => Self::too_large(limit_bytes),
            SubmissionError::BrokenOff => OpenError::BrokenOff.into(),
            SubmissionError::NoRoom => Self::no_room(),
            SubmissionError::Ledger(cause) => cause.into(),
            SubmissionError::Vault(cause) => Self::store(&cause),
            cause @ (SubmissionError::Read(_)
            | SubmissionError::Scanner { .. }
            | SubmissionError::Interrupted) => Self::store(&cause),
        }
    }
}
