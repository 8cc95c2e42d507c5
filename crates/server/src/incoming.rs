//! Bytes that came in, from wherever: checked as they are, and described for the ledger.
//!
//! Guarantees: what is checked is what is stored (both read the same spool); checking runs off the async threads.

use ledger::documents::BlobFacts;
use office_check::{Hint, Limits, Report, Severity};
use vault::{Spooled, VaultError};

/// Why bytes could not be checked. It passes: try again.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The spool cannot be read.
    #[error("the spool cannot be read")]
    Spool(#[source] VaultError),
    /// The check was interrupted.
    #[error("the check was interrupted")]
    Interrupted,
}

/// Checks spooled bytes.
pub(crate) async fn check(spooled: Spooled, hint: Hint) -> Result<Report, CheckError> {
    let checked = tokio::task::spawn_blocking(move || {
        spooled.reader().map(|reader| office_check::check(reader, hint, &Limits::default()))
    });
    checked.await.map_err(|_| CheckError::Interrupted)?.map_err(CheckError::Spool)
}

/// What the ledger writes down about bytes in the vault.
pub(crate) fn blob_facts(spooled: &Spooled, report: &Report) -> BlobFacts {
    let told = report.findings.iter().filter(|finding| finding.code.severity() != Severity::Note);
    let mut flags: Vec<&str> = told.map(|finding| finding.code.as_str()).collect();
    flags.dedup();
    BlobFacts {
        digest: spooled.digest,
        size_bytes: spooled.size_bytes,
        file_type: report.kind.to_string(),
        flags: flags.join(","),
    }
}
