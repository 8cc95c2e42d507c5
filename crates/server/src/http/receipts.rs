//! Receipts of submissions: what a submitter can show, signed by us.
//!
//! A receipt is readable JSON, and beside it a token: the same JSON as base64, a point, and its HMAC-SHA256 with a key derived from the API
//! secret for this one purpose. The token is what counts.
//!
//! Guarantees: whoever changes a byte of it is found out, also in the readable part; a receipt outlives one change of the secret.
//! Does not do: prove anything to somebody without the secret. The entry of the audit trail it names does.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use ledger::logs::{LogSource, SubmissionReceipt, SummaryLog};
use model::access::Permission;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{JsonBody, PathOf};
use super::summary_logs::{PreviewStatsView, log_of, scope_of};
use crate::app::App;
use crate::config::Config;
use crate::opening::derive;

const PURPOSE: &str = "submission receipt";

/// Signs receipts, and knows its own.
pub(crate) struct Receipts {
    keys: Vec<Vec<u8>>,
}

impl Receipts {
    pub(crate) fn new(config: &Config) -> Self {
        Self { keys: config.api.secrets.all().map(|secret| derive(secret.as_bytes(), PURPOSE)).collect() }
    }

    fn sign(&self, text: &str) -> String {
        let body = URL_SAFE_NO_PAD.encode(text);
        let key = self.keys.first().map(Vec::as_slice).unwrap_or_default();
        let signature = mac(key, &body).map(|mac| mac.finalize().into_bytes()).unwrap_or_default();
        format!("{body}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// What a receipt says, if we signed it: a token, or the whole JSON with the token in it.
    pub(crate) fn verify(&self, receipt: &str) -> Option<Value> {
        let whole: Option<Value> = serde_json::from_str(receipt).ok();
        let token = whole.as_ref().map_or(Some(receipt.trim()), |whole| whole["token"].as_str())?;
        let said = self.read(token)?;
        let is_the_same = whole.is_none_or(|whole| whole["receipt"] == said);
        is_the_same.then_some(said)
    }

    fn read(&self, token: &str) -> Option<Value> {
        let (body, signature) = token.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let is_ours = |key: &Vec<u8>| mac(key, body).is_some_and(|mac| mac.verify_slice(&signature).is_ok());
        if !self.keys.iter().any(is_ours) {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()
    }
}

fn mac(key: &[u8], text: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text.as_bytes());
    Some(mac)
}

/// What can be shown for a submission.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubmissionReceiptView {
    /// What is certified.
    receipt: CertifiedView,
    /// The same, signed. Keep it; `POST /api/v1/receipts/verify` and `saveguard receipt verify` check it.
    token: String,
}

/// What a receipt certifies.
#[derive(Debug, Serialize, ToSchema)]
struct CertifiedView {
    /// The summary log.
    log: String,
    /// Who handed in.
    organisation: String,
    /// For what.
    registration: String,
    /// Under which licence.
    accreditation: Option<String>,
    /// What the file was called; none if it undid a submission.
    file_name: Option<String>,
    /// The SHA-256 of the file.
    sha256: Option<String>,
    /// Its length.
    size_bytes: Option<u64>,
    /// The submission it undid.
    undoes: Option<u64>,
    /// The template it was read by.
    template: String,
    /// The template's version.
    template_version: String,
    /// When it was validated.
    #[serde(rename = "validatedAt")]
    #[schema(value_type = Option<String>, format = DateTime)]
    validated_at: Option<Timestamp>,
    /// What it did.
    stats: Option<PreviewStatsView>,
    /// The number of the submission in its registration.
    submission: Option<u64>,
    /// When it was submitted.
    #[schema(value_type = Option<String>, format = DateTime)]
    submitted_at: Option<Timestamp>,
    /// The id of who confirmed it.
    submitted_by: Option<String>,
    /// The entry of the audit trail that tells of it.
    audit: Option<AuditEntryView>,
}

/// An entry of the audit trail, for `saveguard audit verify --expect`.
#[derive(Debug, Serialize, ToSchema)]
struct AuditEntryView {
    /// Its chain.
    chain: String,
    /// Its number in the chain.
    sequence: u64,
    /// Its hash.
    hash: String,
}

impl From<SubmissionReceipt> for CertifiedView {
    fn from(receipt: SubmissionReceipt) -> Self {
        let SummaryLog { id, scope, accreditation, template, template_version, source, .. } = receipt.log;
        let (file_name, blob, undoes) = match source {
            LogSource::Workbook { name, blob, .. } => (Some(name), Some(blob), None),
            LogSource::Undo(sequence) => (None, None, Some(sequence)),
        };
        Self {
            log: id.to_string(),
            organisation: scope.organisation.to_string(),
            registration: scope.registration.to_string(),
            accreditation: accreditation.map(|id| id.to_string()),
            file_name,
            sha256: blob.as_ref().map(|blob| blob.digest.to_string()),
            size_bytes: blob.map(|blob| blob.size_bytes),
            undoes,
            template,
            template_version,
            validated_at: receipt.log.validated_at,
            stats: receipt.log.stats.map(PreviewStatsView::from),
            submission: receipt.log.commit.map(|(sequence, _)| sequence),
            submitted_at: receipt.log.commit.map(|(_, at)| at),
            submitted_by: receipt.log.submitted_by.map(|who| who.id),
            audit: receipt.act.map(|(entry, hash)| AuditEntryView {
                chain: entry.chain,
                sequence: entry.sequence,
                hash: hash.to_string(),
            }),
        }
    }
}

/// The signed receipt of a summary log that was submitted.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}/receipt", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path)),
    responses((status = 200, body = SubmissionReceiptView),
        (status = 404, description = "API_001: there is no such log, or it is not submitted", body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_submission_receipt(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
) -> Result<Json<SubmissionReceiptView>, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::View)?;
    let log = log_of(&app, &scope, &log).await?;
    let receipt = app.ledger.submission_receipt(&scope, &log.id).await?.ok_or_else(Problem::not_found)?;
    let receipt = CertifiedView::from(receipt);
    let text = serde_json::to_string(&receipt).map_err(|cause| Problem::store(&cause))?;
    Ok(Json(SubmissionReceiptView { receipt, token: Receipts::new(&app.config).sign(&text) }))
}

/// A receipt to be checked.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ReceiptToCheck {
    /// The token of the receipt.
    token: String,
    /// The readable part, if it is to be compared.
    #[schema(value_type = Option<Object>)]
    receipt: Option<serde_json::Map<String, Value>>,
}

/// Whether a receipt is ours.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckedReceiptView {
    /// Whether we signed it, and nothing of it was changed.
    is_ours: bool,
    /// What it certifies; absent if it is not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    receipt: Option<Value>,
}

/// Is this receipt ours, and unchanged? For anybody with a token; it says nothing but what the receipt says.
#[utoipa::path(post, path = "/api/v1/receipts/verify", tag = "submissions", security(("bearer" = [])), request_body = ReceiptToCheck,
    responses((status = 200, body = CheckedReceiptView), (status = 400, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn verify_receipt(
    State(app): State<Arc<App>>,
    _session: Session,
    JsonBody(check): JsonBody<ReceiptToCheck>,
) -> Json<CheckedReceiptView> {
    let said = Receipts::new(&app.config).read(&check.token);
    let receipt = said.filter(|said| check.receipt.is_none_or(|shown| Some(&shown) == said.as_object()));
    Json(CheckedReceiptView { is_ours: receipt.is_some(), receipt })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receipt_is_known_until_a_byte_of_it_changes() {
        let (old, new) = (derive(b"old", PURPOSE), derive(b"new", PURPOSE));
        let before = Receipts { keys: vec![old.clone()] };
        let after = Receipts { keys: vec![new.clone(), old] };
        let said = json!({ "log": "a", "submission": 7 });
        let token = before.sign(&said.to_string());
        let whole = |receipt: &Value| json!({ "receipt": receipt, "token": token }).to_string();

        assert_eq!(after.verify(&token), Some(said.clone()), "a secret that was replaced still counts");
        assert_eq!(after.verify(&whole(&said)), Some(said));
        assert_eq!(after.verify(&whole(&json!({ "log": "a", "submission": 8 }))), None);
        assert_eq!(Receipts { keys: vec![new] }.verify(&token), None);
        let mut changed = token.clone().into_bytes();
        changed[3] ^= 1;
        for strange in [String::from_utf8(changed).unwrap(), String::new(), ".".into(), format!("{token}A")] {
            assert_eq!(after.verify(&strange), None, "{strange}");
        }
    }
}
