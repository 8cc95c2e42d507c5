//! Files that are one text: flat OpenDocument, rich text, PDF. Whether they end where they should.
//!
//! Guarantees: streams what it reads. Does not do: judge plain text and HTML, of which any bytes are some.

use std::io::{self, Read, Seek, SeekFrom};

use crate::odf::Body;
use crate::xml::{XmlChecker, XmlFaultKind};
use crate::{Code, Finding, Kind, Limits, read_piece};

/// PDF readers look for the end mark here.
const PDF_TAIL_BYTES: u64 = 1024;
const PIECE_BYTES: usize = 64 * 1024;

/// Checks what can be checked; says what it is.
pub(crate) fn check<R: Read + Seek>(
    reader: &mut R,
    kind: Kind,
    limits: &Limits,
    findings: &mut Vec<Finding>,
) -> io::Result<Kind> {
    match kind {
        Kind::Fodt | Kind::Fods | Kind::Fodp => check_flat(reader, limits, findings)?,
        Kind::Rtf => check_rtf(reader, findings)?,
        Kind::Pdf => check_pdf(reader, findings)?,
        _ => {}
    }
    Ok(kind)
}

fn check_flat<R: Read>(reader: &mut R, limits: &Limits, findings: &mut Vec<Finding>) -> io::Result<()> {
    let body = Body { repetitions_max: limits.repetitions_max, ..Body::default() };
    let mut checker = XmlChecker::new(&limits.xml(), body);
    let mut buffer = vec![0; PIECE_BYTES];
    let outcome = loop {
        match read_piece(reader, &mut buffer)? {
            0 => break checker.finish(),
            count => {
                if let Err(fault) = checker.feed(buffer.get(..count).unwrap_or_default()) {
                    break Err(fault);
                }
            }
        }
    };
    match outcome {
        Ok(body) if body.is_huge => {
            let message = "the sheet repeats rows or cells more often than any program can show";
            findings.push(Finding::whole(Code::HugeRepetition, message));
        }
        Ok(_) => {}
        Err(fault) => {
            let code = match fault.kind {
                XmlFaultKind::Doctype => Code::DocumentType,
                kind if kind.is_limit() => Code::HostileMarkup,
                _ => Code::BadRequiredPart,
            };
            let message = format!("the document is not well-formed: {fault}");
            findings.push(Finding { offset: Some(fault.offset), ..Finding::whole(code, message) });
        }
    }
    Ok(())
}

/// Braces must be balanced; a backslash takes the next one's meaning away. Binary data is announced by its length.
fn check_rtf<R: Read>(reader: &mut R, findings: &mut Vec<Finding>) -> io::Result<()> {
    let (mut open, mut is_escaped) = (0_u64, false);
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let count = read_piece(reader, &mut buffer)?;
        if count == 0 {
            break;
        }
        for byte in buffer.get(..count).unwrap_or_default() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'{' => open += 1,
                b'}' => open = open.saturating_sub(1),
                _ => {}
            }
        }
    }
    if open > 0 {
        // Readers close what is open; and with binary data inside nobody can count for sure.
        findings.push(Finding::whole(Code::Unbalanced, "the rich text does not end where its groups do"));
    }
    Ok(())
}

fn check_pdf<R: Read + Seek>(reader: &mut R, findings: &mut Vec<Finding>) -> io::Result<()> {
    let size_bytes = reader.seek(SeekFrom::End(0))?;
    reader.seek(SeekFrom::Start(size_bytes.saturating_sub(PDF_TAIL_BYTES)))?;
    let mut tail = Vec::new();
    reader.take(PDF_TAIL_BYTES).read_to_end(&mut tail)?;
    if !tail.windows(5).any(|window| window == b"%%EOF") {
        findings.push(Finding::whole(Code::CutOff, "the PDF has no end mark"));
    }
    Ok(())
}
