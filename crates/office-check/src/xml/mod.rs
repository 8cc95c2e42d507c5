//! Is this XML well-formed? A streaming checker for XML 1.0 (fifth edition) with namespaces.
//!
//! A document passes four steps: [`encoding`] tells the encoding by the first bytes, [`declaration`] reads the label and
//! the rest becomes UTF-8, [`scanner`] checks the grammar, and what a chunk cuts is kept for the next one here.
//!
//! Guarantees: what a conforming parser must refuse is refused; memory is bounded by [`XmlLimits`] whatever comes; the
//! time is linear in the input; no panic and no recursion; the first fault does not depend on the chunks.
//! Not its business: document types (always a fault, nothing is expanded), schemas, and whether a part makes sense.

mod attributes;
mod characters;
mod declaration;
mod encoding;
mod fault;
mod limits;
mod namespaces;
mod open;
mod reference;
mod scanner;
mod tag;
mod visitor;

pub(crate) use fault::{XmlFault, XmlFaultKind};
pub(crate) use limits::XmlLimits;
pub(crate) use visitor::{Element, Visitor};

use encoding::{Decoder, Encoding, SNIFF_BYTES, Sniffed};
use scanner::Scanner;

/// Bytes that are decoded at once; their UTF-8 is at most three times as long.
const DECODE_BYTES: usize = 8 * 1024;

/// What is put behind a kept piece at least, so that it is rarely read twice.
const JOIN_BYTES: usize = 64;

/// A buffer that one long tag has blown up beyond this is given back.
const KEPT_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first bytes are being collected.
    Sniffing,
    /// The declaration is being collected, if there is one.
    Declaration,
    Document,
}

/// Checks one document that comes in chunks of any size.
#[derive(Debug)]
pub(crate) struct XmlChecker<V: Visitor> {
    visitor: V,
    scanner: Scanner,
    stage: Stage,
    sniffed: Sniffed,
    decoder: Decoder,
    decoded: String,
    /// What was not consumed yet: the end of the last chunk.
    kept: Vec<u8>,
    /// How long the kept piece must be before it is worth another look. It doubles, so the work stays linear.
    worth_bytes: usize,
    tag_bytes_max: usize,
    fault: Option<XmlFault>,
}

impl<V: Visitor> XmlChecker<V> {
    pub(crate) fn new(limits: &XmlLimits, visitor: V) -> Self {
        let sniffed = Sniffed { encoding: Encoding::Utf8, mark_bytes: 0 };
        Self {
            visitor,
            scanner: Scanner::new(limits),
            stage: Stage::Sniffing,
            sniffed,
            decoder: Decoder::new(Encoding::Utf8),
            decoded: String::new(),
            kept: Vec::new(),
            worth_bytes: 0,
            tag_bytes_max: limits.tag_bytes_max,
            fault: None,
        }
    }

    /// Checks the next chunk. After a fault every chunk has the same fault.
    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), XmlFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let fed = if self.stage == Stage::Sniffing { self.start(chunk) } else { self.bytes(chunk) };
        self.fault = fed.err();
        fed
    }

    /// The document ends here. Gives the visitor back if it is well-formed.
    pub(crate) fn finish(mut self) -> Result<V, XmlFault> {
        self.feed(&[])?;
        if self.stage == Stage::Sniffing {
            self.sniff()?;
        }
        if self.stage == Stage::Declaration {
            let is_begun = !self.kept.is_empty() || self.decoder.has_half();
            let kind = if is_begun { XmlFaultKind::Truncated } else { XmlFaultKind::Empty };
            return Err(self.fault_at_end(kind));
        }
        self.settle()?;
        if !self.kept.is_empty() || self.decoder.has_half() {
            return Err(self.fault_at_end(XmlFaultKind::Truncated));
        }
        match self.scanner.missing() {
            Some(kind) => Err(self.fault_at_end(kind)),
            None => Ok(self.visitor),
        }
    }

    fn fault_at_end(&self, kind: XmlFaultKind) -> XmlFault {
        XmlFault { kind, offset: self.scanner.position().saturating_add(self.kept.len() as u64) }
    }

    fn start(&mut self, chunk: &[u8]) -> Result<(), XmlFault> {
        let missing = SNIFF_BYTES.saturating_sub(self.kept.len());
        let (first, rest) = chunk.split_at_checked(missing).unwrap_or((chunk, &[]));
        self.kept.extend_from_slice(first);
        if self.kept.len() < SNIFF_BYTES {
            return Ok(());
        }
        self.sniff()?;
        self.bytes(rest)
    }

    fn sniff(&mut self) -> Result<(), XmlFault> {
        let start = std::mem::take(&mut self.kept);
        self.sniffed = encoding::sniff(&start);
        if self.sniffed.encoding == Encoding::Utf32 {
            return Err(self.fault_at_end(XmlFaultKind::UnsupportedEncoding));
        }
        self.decoder = Decoder::new(self.sniffed.encoding);
        self.stage = Stage::Declaration;
        if self.sniffed.mark_bytes > 0 {
            self.scanner.pass('\u{FEFF}'.len_utf8());
        }
        self.bytes(start.get(self.sniffed.mark_bytes..).unwrap_or_default())
    }

    /// Bytes in the encoding of the document.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), XmlFault> {
        let mut rest = bytes;
        if self.decoder.encoding == Encoding::Utf8 {
            rest = self.declaration(rest)?;
        }
        // The declaration may just have changed the encoding of what follows it.
        if self.decoder.encoding == Encoding::Utf8 {
            return self.document(rest);
        }
        for piece in rest.chunks(DECODE_BYTES) {
            let mut decoded = std::mem::take(&mut self.decoded);
            decoded.clear();
            let is_decodable = self.decoder.decode(piece, &mut decoded).is_ok();
            let rest = self.declaration(decoded.as_bytes())?;
            self.document(rest)?;
            self.decoded = decoded;
            if !is_decodable {
                self.settle()?;
                return Err(self.fault_at_end(XmlFaultKind::NotUtf8));
            }
        }
        Ok(())
    }

    /// Collects the declaration, if it is not behind us; says what follows it.
    fn declaration<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], XmlFault> {
        let mut rest = bytes;
        while self.stage == Stage::Declaration
            && let Some((first, others)) = rest.split_first()
        {
            self.kept.push(*first);
            rest = others;
            match declaration::begins_with_declaration(&self.kept) {
                Some(false) => {
                    self.stage = Stage::Document;
                    let start = std::mem::take(&mut self.kept);
                    self.document(&start)?;
                }
                Some(true) if *first == b'>' => self.declared()?,
                Some(true) if self.kept.len() >= self.tag_bytes_max => {
                    let offset = self.scanner.position();
                    return Err(XmlFault { kind: XmlFaultKind::TagTooLong, offset });
                }
                _ => {}
            }
        }
        Ok(rest)
    }

    fn declared(&mut self) -> Result<(), XmlFault> {
        let declaration = std::mem::take(&mut self.kept);
        let fault = |kind, at| XmlFault { kind, offset: self.scanner.position().saturating_add(at as u64) };
        let label = declaration::encoding_label(&declaration)
            .map_err(|at| fault(XmlFaultKind::BadDeclaration, at))?;
        if let Some(label) = label {
            let declared = self.sniffed.declared(label);
            self.decoder.encoding = declared.ok_or(fault(XmlFaultKind::UnsupportedEncoding, 0))?;
        }
        self.scanner.pass(declaration.len());
        self.stage = Stage::Document;
        Ok(())
    }

    /// UTF-8 behind the declaration.
    fn document(&mut self, bytes: &[u8]) -> Result<(), XmlFault> {
        let mut rest = bytes;
        while !self.kept.is_empty() {
            if rest.is_empty() {
                return Ok(());
            }
            rest = self.join(rest)?;
        }
        let used = self.scanner.scan(rest, &mut self.visitor)?;
        self.kept.extend_from_slice(rest.get(used..).unwrap_or_default());
        self.worth_bytes = self.kept.len() * 2;
        Ok(())
    }

    /// Puts some bytes behind the kept piece and looks at it again; says what is left of the bytes.
    fn join<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], XmlFault> {
        let before = self.kept.len();
        let (joined, others) = bytes.split_at_checked(before.max(JOIN_BYTES)).unwrap_or((bytes, &[]));
        self.kept.extend_from_slice(joined);
        if self.kept.len() < self.worth_bytes {
            return Ok(others);
        }
        let used = self.scanner.scan(&self.kept, &mut self.visitor)?;
        if used < before {
            self.kept.drain(..used);
            self.worth_bytes = self.kept.len() * 2;
            return Ok(others);
        }
        self.kept.clear();
        self.kept.shrink_to(KEPT_BYTES);
        Ok(bytes.get(used - before..).unwrap_or_default())
    }

    /// Looks at the kept piece, worth it or not.
    fn settle(&mut self) -> Result<(), XmlFault> {
        let used = self.scanner.scan(&self.kept, &mut self.visitor)?;
        self.kept.drain(..used);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
