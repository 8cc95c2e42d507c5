//! From the bytes of a document to UTF-8.
//!
//! Guarantees: what comes out of a decoder is the same however the input was cut; UTF-8 itself is not copied.
//! Not its business: whether UTF-8 is valid; the scanner sees every byte anyway.

/// How the bytes of a document are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Ascii,
    Latin1,
    Windows1252,
    Utf16LittleEndian,
    Utf16BigEndian,
    /// Recognised, and not read by us.
    Utf32,
}

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sniffed {
    pub(crate) encoding: Encoding,
    /// The bytes of the byte order mark.
    pub(crate) mark_bytes: usize,
}

/// As many bytes as are needed to tell encodings apart.
pub(crate) const SNIFF_BYTES: usize = 4;

/// Tells the encoding by the first bytes, or by all if there are fewer.
pub(crate) fn sniff(start: &[u8]) -> Sniffed {
    let (encoding, mark_bytes) = match start {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] | [b'<', 0, 0, 0, ..] | [0, 0, 0, b'<', ..] => {
            (Encoding::Utf32, 0)
        }
        [0xEF, 0xBB, 0xBF, ..] => (Encoding::Utf8, 3),
        [0xFF, 0xFE, ..] => (Encoding::Utf16LittleEndian, 2),
        [0xFE, 0xFF, ..] => (Encoding::Utf16BigEndian, 2),
        [b'<', 0, b'?', 0, ..] => (Encoding::Utf16LittleEndian, 0),
        [0, b'<', 0, b'?', ..] => (Encoding::Utf16BigEndian, 0),
        _ => (Encoding::Utf8, 0),
    };
    Sniffed { encoding, mark_bytes }
}

impl Sniffed {
    /// The encoding that a declaration leads to, if it fits the first bytes and we read it.
    pub(crate) fn declared(self, label: &[u8]) -> Option<Encoding> {
        let declared = match label.to_ascii_lowercase().as_slice() {
            b"utf-8" | b"utf8" => Encoding::Utf8,
            b"utf-16" | b"iso-10646-ucs-2" if self.is_utf16() => self.encoding,
            b"utf-16le" => Encoding::Utf16LittleEndian,
            b"utf-16be" => Encoding::Utf16BigEndian,
            b"us-ascii" | b"ascii" => Encoding::Ascii,
            b"iso-8859-1" | b"iso_8859-1" | b"latin1" => Encoding::Latin1,
            b"windows-1252" | b"cp1252" => Encoding::Windows1252,
            _ => return None,
        };
        let is_single_byte = matches!(declared, Encoding::Ascii | Encoding::Latin1 | Encoding::Windows1252);
        let has_choice = self.encoding == Encoding::Utf8 && self.mark_bytes == 0;
        (declared == self.encoding || (has_choice && is_single_byte)).then_some(declared)
    }

    fn is_utf16(self) -> bool {
        matches!(self.encoding, Encoding::Utf16LittleEndian | Encoding::Utf16BigEndian)
    }
}

/// Bytes that the encoding does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Undecodable;

/// Makes UTF-8, piece by piece.
#[derive(Debug)]
pub(crate) struct Decoder {
    pub(crate) encoding: Encoding,
    /// The first byte of a unit whose second has not come.
    half_unit: Option<u8>,
    /// The first unit of a pair whose second has not come.
    half_pair: Option<u16>,
}

impl Decoder {
    pub(crate) fn new(encoding: Encoding) -> Self {
        Self { encoding, half_unit: None, half_pair: None }
    }

    /// Whether a character has begun and not ended.
    pub(crate) fn has_half(&self) -> bool {
        self.half_unit.is_some() || self.half_pair.is_some()
    }

    /// Appends what the bytes mean, up to the first that mean nothing.
    pub(crate) fn decode(&mut self, bytes: &[u8], out: &mut String) -> Result<(), Undecodable> {
        for byte in bytes.iter().copied() {
            match self.encoding {
                Encoding::Ascii if byte < 0x80 => out.push(char::from(byte)),
                Encoding::Latin1 => out.push(char::from(byte)),
                Encoding::Windows1252 => out.push(from_windows_1252(byte)),
                Encoding::Utf16LittleEndian | Encoding::Utf16BigEndian => match self.half_unit.take() {
                    None => self.half_unit = Some(byte),
                    Some(first) => self.unit([first, byte], out)?,
                },
                Encoding::Ascii | Encoding::Utf8 | Encoding::Utf32 => return Err(Undecodable),
            }
        }
        Ok(())
    }

    fn unit(&mut self, bytes: [u8; 2], out: &mut String) -> Result<(), Undecodable> {
        let unit = match self.encoding {
            Encoding::Utf16BigEndian => u16::from_be_bytes(bytes),
            _ => u16::from_le_bytes(bytes),
        };
        match (self.half_pair.take(), unit) {
            (None, 0xD800..=0xDBFF) => self.half_pair = Some(unit),
            (first, _) => {
                let units = first.into_iter().chain([unit]);
                for character in char::decode_utf16(units) {
                    out.push(character.map_err(|_| Undecodable)?);
                }
            }
        }
        Ok(())
    }
}

/// The five bytes that Windows leaves open become controls of the same number, as browsers read them.
fn from_windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
    ];
    let is_special = (0x80..0xA0).contains(&byte);
    let special = HIGH.get(usize::from(byte.wrapping_sub(0x80))).copied();
    special.filter(|_| is_special).unwrap_or(char::from(byte))
}
