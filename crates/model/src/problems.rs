//! The public error codes and what they mean.
//!
//! Guarantees: a code never changes its meaning, and each has a page in `docs/errors/` (tidy checks that).
//! Does not do: choose HTTP statuses. `server/src/http/answer.rs` does, in one place.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal, $title:literal;)*) => {
        /// A public error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// `DOC_001`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// `EDIT_LOCK_ACTIVE`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One line for people.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    /// Something cannot be done while people edit, or while their work is being saved.
    EditLockActive = "DOC_001", "EDIT_LOCK_ACTIVE", "The document is being edited or saved";
    /// The bytes are not a whole, safe file.
    SaveValidationFailed = "DOC_002", "SAVE_VALIDATION_FAILED", "The content failed its checks";
    /// The vault, the ledger or the spool cannot take it now. (The seed says SFTP; any store counts.)
    StoreWriteFailed = "DOC_003", "SFTP_WRITE_FAILED", "The content could not be stored";
    /// The callback's token is missing, forged or expired.
    CallbackInvalid = "DOC_004", "CALLBACK_INVALID", "The callback's token is not valid";
    /// The key says nothing we can read.
    KeyParseFailed = "DOC_005", "KEY_PARSE_FAILED", "The document key cannot be read";
    /// The stream token is missing, forged, expired or for something else.
    StreamUnauthorized = "DOC_006", "STREAM_UNAUTHORIZED", "The stream token is not valid";
    /// A name or an id tried to leave its place.
    PathTraversal = "DOC_007", "PATH_TRAVERSAL", "The name or id is not allowed";
    /// The key is spent, or the save belongs to another session than the current one.
    SessionConflict = "DOC_008", "SESSION_CONFLICT", "The session is not the current one";
    /// Another summary log of the registration is being submitted.
    SubmissionInProgress = "SUB_001", "SUBMISSION_IN_PROGRESS", "A submission is in progress";
    /// A newer summary log took the place of this one.
    LogSuperseded = "SUB_002", "NEWER_LOG_UPLOADED", "A newer summary log has been uploaded";
    /// The records moved since the preview.
    PreviewStale = "SUB_003", "PREVIEW_STALE", "The records changed since the preview";
    /// There is no preview that can be confirmed.
    NoPreview = "SUB_004", "NO_PREVIEW", "The summary log cannot be submitted";
    /// The registration has no template.
    NoTemplate = "SUB_005", "NO_TEMPLATE", "The registration has no template";
    /// The notice of an outside uploader cannot be trusted, or names other bytes.
    NoticeInvalid = "SUB_006", "NOTICE_INVALID", "The notice is not valid";
    /// A warning asks a question that whoever submits has to answer.
    WarningUnanswered = "SUB_007", "WARNING_UNANSWERED", "A warning has to be answered first";
    /// No such thing, or none this caller may know of.
    NotFound = "API_001", "NOT_FOUND", "There is no such thing here";
    /// No token, or not a valid one.
    Unauthorized = "API_002", "UNAUTHORIZED", "A valid token is needed";
    /// The token is valid but does not allow this.
    Forbidden = "API_003", "FORBIDDEN", "The token does not allow this";
    /// The request cannot be understood.
    BadRequest = "API_004", "BAD_REQUEST", "The request is not right";
    /// More bytes than the limit.
    TooLarge = "API_005", "TOO_LARGE", "The request is too large";
    /// It exists already.
    AlreadyExists = "API_006", "ALREADY_EXISTS", "It exists already";
    /// The service is shutting down or overloaded.
    Unavailable = "API_007", "UNAVAILABLE", "The service cannot do this now";
    /// The head is another one than the caller saw, or they did not say which they saw.
    PreconditionFailed = "API_009", "PRECONDITION_FAILED", "The document changed meanwhile";
    /// A fault of ours.
    Internal = "API_008", "INTERNAL", "Something failed on our side";
    /// A company has as much as it may.
    QuotaExceeded = "API_010", "QUOTA_EXCEEDED", "The company's quota is used up";
    /// Too many wrong share links or passwords were tried.
    TooManyAttempts = "API_011", "TOO_MANY_ATTEMPTS", "Too many attempts";
    /// The share link has a password, and the request does not have the right one.
    PasswordNeeded = "API_012", "PASSWORD_NEEDED", "The password is missing or wrong";
    /// The text of a template has mistakes.
    TemplateNotValid = "SUB_020", "TEMPLATE_NOT_VALID", "The template has mistakes";
    /// A version of a template is there, with another text.
    TemplateVersionTaken = "SUB_021", "TEMPLATE_VERSION_TAKEN", "The version of the template is taken";
    /// An assigned template does not exist, or only in retired versions.
    TemplateNotAvailable = "SUB_022", "TEMPLATE_NOT_AVAILABLE", "The template is not available";
    /// More of something than is kept of it.
    TooMany = "SUB_023", "TOO_MANY", "There are too many of these already";
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_unique() {
        let codes: std::collections::HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let names: std::collections::HashSet<_> = Code::ALL.iter().map(|code| code.name()).collect();

        assert_eq!((codes.len(), names.len()), (Code::ALL.len(), Code::ALL.len()));
    }
}
