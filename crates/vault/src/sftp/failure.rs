//! Why something did not work, by what follows from it.
//!
//! Guarantees: a request without an answer is [`Failure::Lost`] and nothing else, so nobody takes an unknown outcome for a known
//! one. Words name requests, never files.

use std::io;

use russh_sftp::client::error::Error;
use russh_sftp::protocol::{Status, StatusCode};

/// What came of a request.
pub(crate) type Outcome<T> = Result<T, Failure>;

#[derive(Debug)]
pub(crate) enum Failure {
    /// No answer: the connection is of no use any more, and nobody knows whether it was done.
    Lost { request: &'static str, cause: String },
    /// There is no such file or folder.
    Missing,
    /// The server said no. SFTP has one word for most reasons, "Failure": whoever needs to know looks.
    Refused { request: &'static str, cause: String },
    /// It is known not to have been done, for a reason on our side or before anything was sent.
    Ours(io::Error),
}

impl Failure {
    /// From what the library says of a request.
    pub(crate) fn of(request: &'static str) -> impl Fn(Error) -> Self {
        move |error| match error {
            Error::Status(status) => Self::from_status(request, &status),
            Error::Timeout => Self::Lost { request, cause: "no answer in time".to_owned() },
            other => Self::Lost { request, cause: other.to_string() },
        }
    }

    pub(crate) fn from_status(request: &'static str, status: &Status) -> Self {
        match status.status_code {
            StatusCode::NoSuchFile => Self::Missing,
            StatusCode::NoConnection | StatusCode::ConnectionLost => {
                Self::Lost { request, cause: status.error_message.clone() }
            }
            code if status.error_message.is_empty() => Self::Refused { request, cause: code.to_string() },
            _ => Self::Refused { request, cause: status.error_message.clone() },
        }
    }

    pub(crate) fn ours(words: impl Into<String>) -> Self {
        Self::Ours(io::Error::other(words.into()))
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost { request, cause } => Self::new(
                io::ErrorKind::ConnectionAborted,
                format!("the SFTP server did not answer the request to {request}: {cause}"),
            ),
            Failure::Missing => {
                Self::new(io::ErrorKind::NotFound, "the SFTP server has no such file or folder")
            }
            Failure::Refused { request, cause } => {
                Self::other(format!("the SFTP server refused to {request}: {cause}"))
            }
            Failure::Ours(cause) => cause,
        }
    }
}

/// What is missing is `None`.
pub(crate) fn if_there<T>(outcome: Outcome<T>) -> Outcome<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Missing) => Ok(None),
        Err(failure) => Err(failure),
    }
}
