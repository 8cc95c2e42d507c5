//! The ZIP layer: every entry is inflated within the limits and its checksum compared.

use std::io::{Read, Seek};

use zip::ZipArchive;

use crate::{Code, Finding, Kind, Limits};

/// Longest content-types part we look into to tell what a package holds.
const CONTENT_TYPES_BYTES_MAX: u64 = 1024 * 1024;

/// Checks all entries; says what the package holds.
pub(crate) fn check<R: Read + Seek>(reader: &mut R, limits: &Limits, findings: &mut Vec<Finding>) -> Kind {
    let mut archive = match ZipArchive::new(reader) {
        Ok(archive) => archive,
        Err(cause) => {
            findings.push(Finding::whole(
                Code::BrokenContainer,
                format!("the container cannot be read: {cause}"),
            ));
            return Kind::Zip;
        }
    };
    if archive.len() > limits.entries_max {
        let message =
            format!("the container has {} entries, more than {}", archive.len(), limits.entries_max);
        findings.push(Finding::whole(Code::OverLimit, message));
        return Kind::Zip;
    }
    let mut left_bytes = limits.inflated_bytes_max;
    for at in 0..archive.len() {
        match inflate(&mut archive, at, left_bytes) {
            Ok(bytes) => left_bytes -= bytes,
            Err(finding) => {
                let is_limit = finding.code == Code::OverLimit;
                findings.push(finding);
                if is_limit {
                    break;
                }
            }
        }
    }
    kind_of(&mut archive)
}

/// Inflates one entry to nowhere; the reader compares the checksum at its end.
fn inflate<R: Read + Seek>(archive: &mut ZipArchive<R>, at: usize, left_bytes: u64) -> Result<u64, Finding> {
    let mut entry = archive
        .by_index(at)
        .map_err(|cause| Finding::of_part(Code::BrokenEntry, format!("entry {at}"), cause.to_string()))?;
    let name = entry.name().map_or_else(|_| format!("entry {at}"), |name| name.into_owned());
    let mut limited = entry.by_ref().take(left_bytes.saturating_add(1));
    match std::io::copy(&mut limited, &mut std::io::sink()) {
        Ok(bytes) if bytes > left_bytes => {
            let message = "the container inflates to more than the limit".to_owned();
            Err(Finding::of_part(Code::OverLimit, name, message))
        }
        Ok(bytes) => Ok(bytes),
        Err(cause) => {
            Err(Finding::of_part(Code::BrokenEntry, name, format!("the entry is damaged: {cause}")))
        }
    }
}

fn kind_of<R: Read + Seek>(archive: &mut ZipArchive<R>) -> Kind {
    if archive.index_for_name("mimetype").is_some() {
        return Kind::Odf;
    }
    let mut types = String::new();
    let read = match archive.by_name("[Content_Types].xml") {
        Ok(entry) => entry.take(CONTENT_TYPES_BYTES_MAX).read_to_string(&mut types),
        Err(_) => return Kind::Zip,
    };
    match read {
        Ok(_) if types.contains("wordprocessingml") => Kind::Docx,
        Ok(_) if types.contains("spreadsheetml") => Kind::Xlsx,
        Ok(_) if types.contains("presentationml") => Kind::Pptx,
        _ => Kind::Zip,
    }
}
