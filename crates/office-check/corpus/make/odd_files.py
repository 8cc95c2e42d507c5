"""Texts, pages and compound files that are unusual and right. All are taken.

Guarantees: each is what its row says. Does not do: packages; `odd_archives` and `odd_packages` do.
"""

import io

import olefile

import sources
from archive import pack
from compound import compound, streams_last
from parts import sentences, xlsx
from recipe import accept, flag
from with_libreoffice import convert

LINES = sentences(20)
TEXT = "\n".join(LINES) + "\n"
TABLE = "\n".join(f"{at};{line.replace(';', ',')};äöü" for at, line in enumerate(LINES)) + "\n"


def text(file, how, why, data, kind="txt", findings=""):
    accept(f"odd/{file}", kind, how, why, lambda: data() if callable(data) else data, findings)


ANY = "any bytes are a text"
text("latin1.txt", "text in Latin-1", ANY, (TEXT + "äöü").encode("latin-1"))
text("utf16.txt", "text in UTF-16 with a mark", ANY, ("\ufeff" + TEXT).encode("utf-16-le"))
text(
    "utf16-table.csv",
    "a table in UTF-16 with tabs, as Excel writes it",
    "Excel: Unicode text",
    ("\ufeff" + TABLE.replace(";", "\t")).encode("utf-16-le"),
    "csv",
)
text("semicolons.csv", "a table with semicolons", "half of the world writes it so", TABLE.encode(), "csv")
text(
    "quoted.csv",
    "a table with quotes and line ends inside of cells",
    "RFC 4180",
    b'a,b\r\n"one\r\ntwo, three","x ""y"" z"\r\n1,2\r\n',
    "txt",
)
text("one-line.csv", "one line without an end", "RFC 4180", b"a,b,c", "txt")
text("old-mac.txt", "lines that end with carriage returns", ANY, TEXT.replace("\n", "\r").encode())
text("json.txt", "JSON", ANY, b'{"error":0}')
text("zeros.txt", "text with zeros", ANY, TEXT.encode() + bytes(10) + b"\n", "unknown")
text(
    "mark.html",
    "HTML behind a byte order mark and white space",
    "HTML",
    b"\xef\xbb\xbf \r\n<!DOCTYPE html><p>x",
    "html",
)
text("page.xml", "XML of some kind", "that is all the name says", b'<?xml version="1.0"?><a><b/></a>', "xml")
text(
    "letter.mht",
    "a page in MIME",
    "browsers write it",
    b"MIME-Version: 1.0\r\nContent-Type: multipart/related\r\n\r\n",
    "txt",
)
flag(
    "odd/empty.txt", "unknown", "empty-text", "no bytes", "a text may be empty, and it may be an accident", lambda: b""
)
flag(
    "odd/empty.csv", "unknown", "empty-text", "no bytes", "a table may be empty, and it may be an accident", lambda: b""
)

# Flat OpenDocument.
FLAT = sources.flat("text", "<office:text><text:p>x</text:p></office:text>")
text("mark.fodt", "a flat text with a byte order mark", "XML 1.0", b"\xef\xbb\xbf" + FLAT, "fodt")
text(
    "windows-lines.fods",
    "a flat workbook with carriage returns",
    "XML 1.0",
    lambda: sources.workbook().replace(b"><", b">\r\n<"),
    "fods",
)
text(
    "flat-named.odt",
    "a flat text under the name of a package",
    "a text under the name of one; LibreOffice opens it",
    FLAT,
    "fodt",
)
flag(
    "odd/huge-repetition.fods",
    "fods",
    "huge-repetition",
    "a flat workbook with 999,999,999 cells in a row",
    "readers without a bound run out of memory",
    lambda: sources.flat(
        "spreadsheet",
        "<office:spreadsheet><table:table><table:table-row>"
        '<table:table-cell table:number-columns-repeated="999999999"/></table:table-row></table:table>'
        "</office:spreadsheet>",
    ),
)

# Rich text.
RICH = b"{\\rtf1\\ansi " + b"".join(b"{\\b " + line.encode() + b"}\\par " for line in LINES) + b"}"
text("named.doc", "rich text under the name of a document", "Word itself does it", RICH, "rtf")
text(
    "named-too.docx",
    "rich text under the name of a package",
    "a text under the name of one; LibreOffice opens it",
    RICH,
    "rtf",
)
text("braces.rtf", "rich text with escaped braces", "RTF 1.9.1", b"{\\rtf1 \\{ \\} \\\\ \\'7b}", "rtf")
text(
    "unclosed.rtf",
    "rich text that does not close its groups",
    "readers close them at the end",
    RICH[:-1],
    "rtf",
    "unbalanced",
)
text("leading-space.rtf", "rich text behind a line end", "programs pass over it", b"\r\n" + RICH, "rtf")

# PDF.
PDF = b"%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF\n"
text("small.pdf", "the smallest PDF", "ISO 32000", PDF, "pdf")
text(
    "bytes-before.pdf",
    "PDF behind 100 bytes",
    "ISO 32000, note to 7.5.2: readers look in the first 1024",
    b"\0" * 100 + PDF,
    "pdf",
)
text(
    "bytes-behind.pdf",
    "PDF with 500 bytes behind its end mark",
    "readers look in the last 1024",
    PDF + b"\0" * 500,
    "pdf",
)
flag(
    "odd/no-end-mark.pdf",
    "pdf",
    "cut-off",
    "PDF without its end mark",
    "readers repair it, and it may be cut off",
    lambda: PDF[:-7],
)
flag("odd/page-named.docx", "pdf", "other-kind", "the smallest PDF", "a whole document under another name", lambda: PDF)

# Compound files.
BODY = bytes((at * 31 + at // 11) % 256 for at in range(6000))


def slides():
    """Without its picture of itself, which is 440 KB and not compressed."""
    with olefile.OleFileIO(io.BytesIO(convert("slides", "ppt", ""))) as file:
        names = ["Current User", "PowerPoint Document", "\x05DocumentSummaryInformation"]
        return compound([(name, file.openstream(name).read()) for name in names])


text(
    "wide-sectors.doc",
    "a compound file with sectors of 4096 bytes",
    "MS-CFB 2.2, version 4",
    lambda: compound([("WordDocument", BODY), ("1Table", BODY[:500])], 4096),
    "doc",
)
text(
    "small-stream.xls",
    "a compound file whose workbook is in the mini stream",
    "MS-CFB 2.3: below 4096 bytes",
    lambda: compound([("Workbook", BODY[:3000])]),
    "xls",
)
text(
    "old-name.xls",
    "a compound file with the stream `Book`",
    "Excel 5 and 95",
    lambda: compound([("Book", BODY)]),
    "xls",
)
text(
    "streams.ppt",
    "LibreOffice's presentation, stored anew without its picture of itself",
    "what a program writes",
    slides,
    "ppt",
)
text(
    "last-sector-cut.doc",
    "a compound file whose last sector is not filled up",
    "writers do not always do it",
    lambda: streams_last([("WordDocument", BODY)])[: -(-len(BODY) % 512)],
    "doc",
)
flag(
    "odd/old-named.docx",
    "doc",
    "other-kind",
    "a compound file of Word under the newer name",
    "a whole document under another name",
    lambda: compound([("WordDocument", BODY)]),
)
flag(
    "odd/no-document.doc",
    "ole",
    "unknown-content",
    "a compound file with nothing of Office in it",
    "some other program's document",
    lambda: compound([("Contents", BODY)]),
)
flag(
    "odd/page-named.xls",
    "html",
    "other-kind",
    "HTML under the name of a workbook",
    "Excel opens it with a question",
    lambda: b"<html><table><tr><td>1</td></tr></table></html>",
)
text("table-named.xls", "a table in text under the name of a workbook", "Excel opens it", TABLE.encode(), "csv")
text(
    "xml-named.xls",
    "a workbook in XML of 2003",
    "Excel 2003 wrote it so",
    b'<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>'
    b'<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>',
    "xml",
)
text("package-named.xls", "a small workbook under the older name", "Excel opens it", lambda: pack(xlsx()), "xlsx")
