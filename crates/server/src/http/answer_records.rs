//! What [`super::answer`] is for everything about records: statuses and words of what recording refuses, and of notices.

use http::StatusCode;
use model::problems::Code;

use super::answer::Problem;
use crate::recording::{EraseError, MarkingError};

impl From<EraseError> for Problem {
    fn from(error: EraseError) -> Self {
        match error {
            EraseError::NotPersonal { columns } if columns.is_empty() => {
                Self::bad_request("Name at least one column.")
            }
            EraseError::NotPersonal { columns } => Self::bad_request(format!(
                "No template of the registration calls these columns of this kind personal: {}.",
                columns.join(", ")
            )),
            EraseError::Ledger(cause) => cause.into(),
        }
    }
}

impl From<MarkingError> for Problem {
    fn from(error: MarkingError) -> Self {
        match error {
            MarkingError::NoWorkbook => Self::not_found(),
            MarkingError::Unmarkable(why) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::SaveValidationFailed,
                format!("The workbook cannot be marked: {why}."),
                "Read its problems instead, and correct the workbook you have.",
            ),
            MarkingError::Ledger(cause) => cause.into(),
            MarkingError::Vault(cause) => Self::store(&cause),
            cause @ MarkingError::Interrupted => Self::store(&cause),
        }
    }
}

/// A notice or an upload without a signature that counts.
pub(super) fn untrusted(detail: &'static str) -> Problem {
    let next = "Sign with `submitting.notice_secret`, and compare the clocks of both sides.";
    Problem::new(StatusCode::FORBIDDEN, Code::NoticeInvalid, detail, next)
}
