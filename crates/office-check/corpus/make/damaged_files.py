"""What is no document at all, and texts and compound files that are not whole. All are refused.

Guarantees: each is what its row says. Does not do: packages; `damaged_archives` and `damaged_packages` do.
"""

import gzip
import pathlib
import struct

import sources
from archive import pack
from compound import compound, streams_last
from odd_files import BODY, TABLE
from parts import docx, sentences
from recipe import refuse
from sources import png

CORPUS = pathlib.Path(__file__).resolve().parent.parent


def file(name, kind, findings, how, why, data):
    refuse(f"damaged/{name}", kind, findings, how, why, data if callable(data) else lambda: data)


# Answers of servers that were saved as documents.
ANSWER = "an answer of a server, saved as if it were the document"
PAGE = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body></html>\r\n"
LOGIN = b"<!DOCTYPE html>\n<html lang=en><form action=/login><input name=user></form>"
DENIED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'
)
for end, data, kind, how in [
    ("docx", PAGE, "html", "an error page of nginx"),
    ("xlsx", LOGIN, "html", "a login page"),
    ("pptx", DENIED, "xml", "an error of an object store"),
    ("odt", b'{"error":-4,"message":"not found"}', "txt", "JSON"),
    ("pdf", PAGE, "html", "an error page of nginx"),
    ("rtf", LOGIN, "html", "a login page"),
    ("epub", PAGE, "html", "an error page"),
    ("ods", b"Not Found", "txt", "two words"),
    ("xlsb", b"<html></html>", "html", "an empty page"),
]:
    file(f"answer.{end}", kind, "wrong-container", how, ANSWER, data)

# Nothing, or something else.
for end in ("docx", "xlsx", "pptx", "odt", "ods", "odp", "doc", "pdf", "rtf", "epub", "vsdx"):
    file(f"empty.{end}", "unknown", "empty", "no bytes", "a save that never came", b"")
file("zeros.docx", "unknown", "wrong-container", "4096 zeros", "a file that was never written", bytes(4096))
file(
    "noise.xlsx",
    "unknown",
    "wrong-container",
    "bytes without meaning",
    "no document",
    bytes((at * 197 + at // 5 * 89) % 256 for at in range(3000)),
)
file("picture.docx", "unknown", "wrong-container", "a picture", "no document", png())
file(
    "packed.docx",
    "unknown",
    "wrong-container",
    "a small package, packed again by gzip",
    "a download that was not unpacked",
    lambda: gzip.compress(pack(docx()), mtime=0),
)
file(
    "table.xlsx",
    "csv",
    "wrong-container",
    "a table in text",
    "no package; Excel does not open it under this name",
    TABLE.encode(),
)
file("text.docx", "txt", "wrong-container", "plain text", "no package", "\n".join(sentences(20)).encode())
file(
    "archive.docx",
    "zip",
    "not-a-package wrong-container",
    "an archive of two texts",
    "no package",
    lambda: pack([("a.txt", b"one"), ("b.txt", b"two")]),
)
file(
    "archive-of-it.docx",
    "zip",
    "not-a-package wrong-container",
    "an archive that holds a small package",
    "the document is one level down",
    lambda: pack([("report.docx", pack(docx()))]),
)
file(
    "empty-archive.docx",
    "zip",
    "not-a-package wrong-container",
    "an archive without entries",
    "no package",
    lambda: pack([]),
)
file(
    "four-bytes.docx",
    "zip",
    "wrong-container zip-directory",
    "`PK` and two more bytes",
    "half a download",
    b"PK\x03\x04",
)
file(
    "line-before.docx",
    "unknown",
    "wrong-container",
    "a small package behind a line end",
    "a script printed first; LibreOffice does not open it either",
    lambda: b"\n" + pack(docx()),
)
file(
    "program-before.docx",
    "unknown",
    "wrong-container",
    "a small package behind the start of a program",
    "a program, whatever is behind it",
    lambda: b"MZ\x90\0\x03\0\0\0" + bytes(120) + pack(docx()),
)

# Flat OpenDocument.
FLAT = sources.flat(
    "text", "<office:text>" + "".join(f"<text:p>{line}</text:p>" for line in sentences(20)) + "</office:text>"
)
file(
    "cut.fodt",
    "fodt",
    "bad-required-part",
    "a flat text, the first nine tenths",
    "half a save",
    FLAT[: len(FLAT) * 9 // 10],
)
file(
    "cut-last-tag.fods",
    "fods",
    "bad-required-part",
    "a flat workbook without its last end tag",
    "half a save",
    lambda: sources.workbook()[: -len("</office:document>")],
)
file(
    "document-type.fodt",
    "fodt",
    "document-type",
    "a flat text with a document type",
    "entity attacks need one",
    FLAT.replace(b"<office:document ", b'<!DOCTYPE a [<!ENTITY b "c">]><office:document ', 1),
)
file(
    "bad-utf8.fodt",
    "fodt",
    "bad-required-part",
    "a flat text with a broken character",
    "XML 1.0",
    FLAT.replace(b"The", b"\xff\xfe", 1),
)

# Compound files.
CUT = "half a download"
for name, source, kind in [
    ("cut.doc", "whole/report.doc", "doc"),
    ("cut.xls", "whole/costs.xls", "xls"),
    ("cut-locked.docx", "whole/report-locked.docx", "encrypted"),
]:
    file(
        name,
        "ole",
        "broken-container other-kind" if name == "cut-locked.docx" else "broken-container",
        f"`{source}`, the first half",
        CUT,
        lambda source=source: (lambda data: data[: len(data) // 2])((CORPUS / source).read_bytes()),
    )
file(
    "header-only.doc",
    "ole",
    "broken-container",
    "the header of a compound file",
    CUT,
    lambda: compound([("WordDocument", BODY)])[:512],
)
file(
    "half-header.doc",
    "ole",
    "broken-container",
    "half a header of a compound file",
    CUT,
    lambda: compound([("WordDocument", BODY)])[:200],
)
file(
    "stream-too-long.doc",
    "doc",
    "broken-container",
    "a main stream that is said to be longer than the file",
    "MS-CFB 2.6.3",
    lambda: patched(b"W\0o\0r\0d\0", 120, 10**6),
)
file(
    "stream-elsewhere.doc",
    "doc",
    "broken-container",
    "a main stream that begins behind the end",
    "MS-CFB 2.6.1",
    lambda: patched(b"W\0o\0r\0d\0", 116, 5000),
)
file(
    "directory-in-circles.doc",
    "ole",
    "broken-container",
    "a directory whose chain leads back to itself",
    "MS-CFB 2.3: chains end",
    lambda: circle(),
)
file(
    "other-byte-order.doc",
    "ole",
    "broken-container",
    "another mark for the order of bytes",
    "MS-CFB 2.2: always little endian",
    lambda: (lambda data: data[:28] + b"\xff\xfe" + data[30:])(compound([("WordDocument", BODY)])),
)
file(
    "small-stream-cut.xls",
    "xls",
    "broken-container",
    "a workbook in the mini stream, whose sectors are missing",
    "MS-CFB 2.3: the mini stream is a stream",
    lambda: streams_last([("Workbook", BODY[:3000])])[: -5 * 512],
)


def patched(name, at, value):
    data = bytearray(compound([("WordDocument", BODY)]))
    struct.pack_into("<I", data, data.index(name) + at, value)
    return bytes(data)


def circle():
    data = bytearray(compound([("WordDocument", BODY)]))
    directory = struct.unpack_from("<I", data, 48)[0]
    table = struct.unpack_from("<I", data, 76)[0]
    struct.pack_into("<I", data, (table + 1) * 512 + directory * 4, directory)
    return bytes(data)
