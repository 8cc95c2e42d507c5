//! An outside uploader: it puts a workbook here under its SHA-256, and then tells whose it is.
//!
//! Guarantees: no token opens these two routes, the signature alone does; bytes that are not those that were announced are not kept; the same
//! upload id again finds the log of the first notice, and another file under it is refused.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use ledger::documents::Author;
use ledger::logs::{LogSource, SummaryLog};
use model::names::FileName;
use model::{AccreditationId, Digest, OrganisationId, RegistrationId, Scope};
use serde::Deserialize;
use utoipa::ToSchema;

use super::address::ClientAddress;
use super::answer::{Problem, ProblemDocument};
use super::extract::PathOf;
use super::routes::JSON_BYTES_MAX;
use super::signatures::require_signature;
use super::summary_logs::{SummaryLogView, accepted, new_log_id};
use crate::app::App;
use crate::submitting::{Stored, SubmissionError, Upload, put_bytes, upload_stored};

/// Longest id of an upload, in bytes.
const UPLOAD_ID_BYTES_MAX: usize = 200;

fn digest_of(text: &str) -> Result<Digest, Problem> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let digest = Digest::parse_hex(text).filter(|_| is_plain);
    digest.ok_or_else(|| Problem::bad_request("A SHA-256 has 64 digits of 0-9 and a-f."))
}

/// Puts a workbook here, under its SHA-256: its bytes are the body. For an outside uploader, before its notice.
///
/// Signed with `submitting.notice_secret`: the header `saveguard-signature: t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 of `SECONDS.SHA256`.
/// Bytes that no notice names within ten minutes are listed among the orphans.
#[utoipa::path(put, path = "/api/v1/uploads/{sha256}", tag = "submissions", params(("sha256" = String, Path, pattern = "^[0-9a-f]{64}$"),
        ("saveguard-signature" = String, Header, description = "t=SECONDS,v1=HEX")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 204, description = "It is here"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "SUB_006: the signature does not count", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "SUB_006: the bytes have another SHA-256", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn put_upload(
    State(app): State<Arc<App>>,
    PathOf(sha256): PathOf<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    require_signature(&app, &headers, sha256.as_bytes())?;
    put_bytes(&app, digest_of(&sha256)?, body.into_data_stream()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An outside uploader tells that a file is here, and whose it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UploadNotice {
    /// The uploader's id of the upload; the same one again is the same upload.
    #[schema(min_length = 1, max_length = 200)]
    upload_id: String,
    /// Who hands in.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    organisation: String,
    /// For what.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    registration: String,
    /// Under which licence.
    #[schema(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    accreditation: Option<String>,
    /// What the file is called.
    #[schema(min_length = 1, max_length = 1024, example = "returns-march.xlsx")]
    name: String,
    /// The SHA-256 of its bytes.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    sha256: String,
    /// How many bytes it has.
    size_bytes: Option<u64>,
}

/// Tells that a file is here and becomes a summary log.
///
/// Signed with `submitting.notice_secret`: the header `saveguard-signature: t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 of `SECONDS.BODY`.
#[utoipa::path(post, path = "/api/v1/upload-notices", tag = "submissions", request_body = UploadNotice,
    params(("saveguard-signature" = String, Header, description = "t=SECONDS,v1=HEX")),
    responses((status = 202, body = SummaryLogView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "SUB_006: the signature does not count", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "SUB_001: a submission is in progress; SUB_005: no template", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "SUB_006: the file is not here, or is another one", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn receive_notice(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let body = body.map_err(|_| Problem::too_large(JSON_BYTES_MAX as u64))?;
    require_signature(&app, &headers, &body)?;
    let no_notice = |cause| Problem::bad_request(format!("The body is no notice: {cause}."));
    let notice: UploadNotice = serde_json::from_slice(&body).map_err(no_notice)?;
    let stored = Stored { digest: digest_of(&notice.sha256)?, size_bytes: notice.size_bytes };
    let who = Author::new("outside-uploader", "Outside uploader").calling_from(address);
    let new = upload_of(notice, who)?;
    let log = upload_stored(&app, new, stored).await?;
    require_same_file(&log, stored.digest)?;
    Ok(accepted(StatusCode::ACCEPTED, log))
}

fn upload_of(notice: UploadNotice, who: Author) -> Result<Upload, Problem> {
    if notice.upload_id.is_empty() || notice.upload_id.len() > UPLOAD_ID_BYTES_MAX {
        return Err(Problem::bad_request("An upload id has 1 to 200 bytes."));
    }
    let id = |refused: model::ids::NotAnId| Problem::id(&refused);
    let accreditation = notice.accreditation.as_deref().map(AccreditationId::parse).transpose();
    Ok(Upload {
        id: new_log_id(None)?,
        scope: Scope {
            organisation: OrganisationId::parse(&notice.organisation).map_err(id)?,
            registration: RegistrationId::parse(&notice.registration).map_err(id)?,
        },
        accreditation: accreditation.map_err(id)?,
        name: FileName::parse(&notice.name).map_err(Problem::name)?.to_string(),
        upload: Some(notice.upload_id),
        who,
    })
}

/// The upload id may have come before, with another file.
fn require_same_file(log: &SummaryLog, digest: Digest) -> Result<(), Problem> {
    match &log.source {
        LogSource::Workbook { blob, .. } if blob.digest == digest => Ok(()),
        _ => Err(SubmissionError::OtherBytes.into()),
    }
}
