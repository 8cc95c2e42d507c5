//! Writes archives field by field.

use std::io::Write as _;

/// What a local header or a record of the directory says of an entry.
#[derive(Clone)]
pub(super) struct Header {
    pub(super) name: Vec<u8>,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) deflated: u32,
    pub(super) size: u32,
    pub(super) extra: Vec<u8>,
    pub(super) version: u16,
    pub(super) time: u32,
}

/// An entry, whose two headers can be made to differ.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) local: Header,
    pub(super) central: Header,
    pub(super) body: Vec<u8>,
    /// The descriptor, or anything else.
    pub(super) behind: Vec<u8>,
    pub(super) host: u8,
    pub(super) attributes: u32,
    pub(super) disk: u16,
    /// The offset to write instead of the true one.
    pub(super) offset: Option<u32>,
}

/// How many bits a descriptor has for a size: 32 or 64.
#[derive(Clone, Copy)]
pub(super) enum Sizes {
    Short,
    Long,
}

impl Part {
    pub(super) fn stored(name: &str, data: &[u8]) -> Self {
        Self::of(name, data, data.to_vec(), 0)
    }

    pub(super) fn deflated(name: &str, data: &[u8]) -> Self {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(data).unwrap();
        Self::of(name, data, encoder.finish().unwrap(), 8)
    }

    fn of(name: &str, data: &[u8], body: Vec<u8>, method: u16) -> Self {
        let header = Header {
            name: name.as_bytes().to_vec(),
            flags: 0,
            method,
            crc: crc32fast::hash(data),
            deflated: u32::try_from(body.len()).unwrap(),
            size: u32::try_from(data.len()).unwrap(),
            extra: Vec::new(),
            version: 20,
            time: 0,
        };
        let central = header.clone();
        let behind = Vec::new();
        Self { local: header, central, body, behind, host: 0, attributes: 0, disk: 0, offset: None }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Moves sizes and checksum behind the bytes.
    pub(super) fn streamed(mut self, signature: &[u8], sizes: Sizes) -> Self {
        let Header { crc, deflated, size, .. } = self.central;
        self.behind = [signature, &crc.to_le_bytes()].concat();
        for value in [deflated, size] {
            match sizes {
                Sizes::Long => self.behind.extend(u64::from(value).to_le_bytes()),
                Sizes::Short => self.behind.extend(value.to_le_bytes()),
            }
        }
        (self.local.crc, self.local.deflated, self.local.size) = (0, 0, 0);
        self.local.flags |= 8;
        self.central.flags |= 8;
        self
    }
}

pub(super) struct Zip {
    pub(super) parts: Vec<Part>,
    pub(super) before: Vec<u8>,
    /// Whether offsets count the bytes before.
    pub(super) is_absolute: bool,
    pub(super) comment: Vec<u8>,
    pub(super) after: Vec<u8>,
    /// Bytes between the directory's last record and its end, counted as its own.
    pub(super) directory_tail: Vec<u8>,
    /// Bytes between the directory and the end record.
    pub(super) gap: Vec<u8>,
    pub(super) is_reversed: bool,
    pub(super) is_zip64: bool,
    pub(super) entries: Option<u16>,
    pub(super) disk: u16,
}

impl Zip {
    pub(super) fn of(parts: Vec<Part>) -> Self {
        Self {
            parts,
            before: Vec::new(),
            is_absolute: false,
            comment: Vec::new(),
            after: Vec::new(),
            directory_tail: Vec::new(),
            gap: Vec::new(),
            is_reversed: false,
            is_zip64: false,
            entries: None,
            disk: 0,
        }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = self.before.clone();
        let origin = if self.is_absolute { 0 } else { out.len() };
        let mut records = Vec::new();
        for part in &self.parts {
            let offset = part.offset.unwrap_or(u32::try_from(out.len() - origin).unwrap());
            records.push(record(part, offset));
            out.extend(local(&part.local));
            out.extend(&part.body);
            out.extend(&part.behind);
        }
        if self.is_reversed {
            records.reverse();
        }
        let directory_at = out.len() - origin;
        let directory = [records.concat(), self.directory_tail.clone()].concat();
        out.extend(&directory);
        out.extend(&self.gap);
        self.end(&mut out, origin, [directory_at, directory.len()]);
        out.extend(&self.comment);
        out.extend(&self.after);
        out
    }

    fn end(&self, out: &mut Vec<u8>, origin: usize, [at, len]: [usize; 2]) {
        let entries = self.entries.unwrap_or(u16::try_from(self.parts.len()).unwrap());
        let mut narrow = (entries, u32::try_from(len).unwrap(), u32::try_from(at).unwrap());
        if self.is_zip64 {
            let wide_at = (out.len() - origin) as u64;
            out.extend(b"PK\x06\x06");
            out.extend(44_u64.to_le_bytes());
            out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            for value in [u64::from(entries), u64::from(entries), len as u64, at as u64] {
                out.extend(value.to_le_bytes());
            }
            out.extend(b"PK\x06\x07\0\0\0\0");
            out.extend(wide_at.to_le_bytes());
            out.extend(1_u32.to_le_bytes());
            narrow = (u16::MAX, u32::MAX, u32::MAX);
        }
        out.extend(b"PK\x05\x06");
        for value in [self.disk, 0, narrow.0, narrow.0] {
            out.extend(value.to_le_bytes());
        }
        out.extend(narrow.1.to_le_bytes());
        out.extend(narrow.2.to_le_bytes());
        out.extend(u16::try_from(self.comment.len()).unwrap().to_le_bytes());
    }
}

fn local(header: &Header) -> Vec<u8> {
    let mut out = b"PK\x03\x04".to_vec();
    shared(&mut out, header);
    out.extend(&header.name);
    out.extend(&header.extra);
    out
}

fn record(part: &Part, offset: u32) -> Vec<u8> {
    let header = &part.central;
    let mut out = b"PK\x01\x02".to_vec();
    out.extend([63, part.host]);
    shared(&mut out, header);
    let comment = b"of the entry";
    out.extend(u16::try_from(comment.len()).unwrap().to_le_bytes());
    out.extend(part.disk.to_le_bytes());
    out.extend([0, 0]);
    out.extend(part.attributes.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend(&header.name);
    out.extend(&header.extra);
    out.extend(comment);
    out
}

fn shared(out: &mut Vec<u8>, header: &Header) {
    for value in [header.version, header.flags, header.method] {
        out.extend(value.to_le_bytes());
    }
    for value in [header.time, header.crc, header.deflated, header.size] {
        out.extend(value.to_le_bytes());
    }
    for value in [header.name.len(), header.extra.len()] {
        out.extend(u16::try_from(value).unwrap().to_le_bytes());
    }
}

/// An extra field.
pub(super) fn extra(kind: u16, values: &[u64]) -> Vec<u8> {
    let mut out = kind.to_le_bytes().to_vec();
    out.extend(u16::try_from(values.len() * 8).unwrap().to_le_bytes());
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    out
}

/// Text that deflates to something between a tenth and a half.
pub(super) fn text(lines: usize) -> Vec<u8> {
    let line =
        |at: usize| format!("<c r=\"A{at}\"><v>{}</v></c>\n", at.wrapping_mul(2_654_435_761) % 100_003);
    (0..lines).map(line).collect::<String>().into_bytes()
}

/// An honest package of three parts.
pub(super) fn package() -> Vec<Part> {
    vec![
        Part::deflated("[Content_Types].xml", b"<Types/>"),
        Part::stored("word/media/image1.png", b"not really a picture"),
        Part::deflated("word/document.xml", &text(30)),
    ]
}
