"""Packages whose archive is whole and whose document is not, or attacks readers. All are refused.

Guarantees: each is a whole package but for what its row says. Does not do: damage archives; `damaged_archives` does.
"""

from archive import pack
from odd_opendocument import epub
from odd_packages import xlsb
from parts import (
    ODF,
    OFFICE,
    changed,
    docx,
    manifest,
    odf_content,
    ods,
    odt,
    relationships,
    sentences,
    text_body,
    word_body,
    xlsx,
)
from recipe import refuse

MAIN = "word/document.xml"
RELS = "_rels/.rels"
TYPES = "[Content_Types].xml"
BODY = word_body(sentences(10))
NO_DOCUMENT = "ECMA-376-2, 6.5: without it nobody knows what the document is"


def package(file, findings, how, why, parts, kind="docx"):
    refuse(f"damaged/{file}", kind, findings, "a small package, " + how, why, lambda: pack(parts()))


# The document is not there.
package(
    "no-types.docx",
    "not-a-package wrong-container",
    "without content types",
    "ECMA-376-2, 7.2.3: required",
    lambda: changed(docx(), {TYPES: None}),
    "zip",
)
package(
    "no-relationships.docx",
    "no-main-part other-kind",
    "without relationships",
    NO_DOCUMENT,
    lambda: changed(docx(), {RELS: None}),
    "opc",
)
package(
    "no-main-relationship.docx",
    "no-main-part other-kind",
    "without a relationship to the document",
    NO_DOCUMENT,
    lambda: changed(docx(), {RELS: relationships((OFFICE + "/extended-properties", "docProps/app.xml"))}),
    "opc",
)
package("no-main.docx", "no-main-part", "without its main part", "half a save", lambda: changed(docx(), {MAIN: None}))
package(
    "no-main.xlsx",
    "no-main-part",
    "without its main part",
    "half a save",
    lambda: changed(xlsx(), {"xl/workbook.xml": None}),
    "xlsx",
)
package(
    "main-outside.docx",
    "external-main-part other-kind",
    "whose document is on another computer",
    "it is not in the file",
    lambda: changed(
        docx(), {RELS: relationships((OFFICE + "/officeDocument", "http://example.org/d.xml", 'TargetMode="External"'))}
    ),
    "opc",
)
package(
    "no-content.odt",
    "no-main-part",
    "without content",
    "ODF 1.3 part 2, 2.2.1",
    lambda: changed(odt(), {"content.xml": None}),
    "odt",
)
package(
    "no-container.epub",
    "careless-part no-main-part",
    "without `META-INF/container.xml`",
    "EPUB OCF, 3.5.2.1",
    lambda: [
        *changed(epub(), {"META-INF/container.xml": None}),
        ("META-INF/manifest.xml", manifest("application/epub+zip")),
    ],
    "epub",
)
package(
    "twice-main.xlsb",
    "ambiguous-part duplicate-name",
    "a binary workbook whose main part is there twice",
    "readers would open different documents",
    lambda: [*xlsb(), ("xl/workbook.bin", b"other")],
    "xlsb",
)

# A required part is not well-formed.
BAD = "XML 1.0: not well-formed, and no program opens the document without this part"
for name, how, main in [
    ("mismatched-tag", "an end tag of another element", BODY.replace("</w:p>", "</w:q>", 1)),
    ("unclosed-tag", "without its last end tag", BODY.replace("</w:document>", "")),
    ("cut", "cut in half, under a right checksum", BODY[: len(BODY) // 2]),
    ("cut-in-a-tag", "cut within a tag", BODY[: BODY.rindex("<w:sectPr") + 5]),
    ("two-roots", "two roots", BODY + "<w:again xmlns:w='w'/>"),
    ("text-behind", "text behind the root", BODY + "text"),
    (
        "unbound-prefix",
        "a prefix that is not declared",
        BODY.replace("<w:t>", "<v:t>", 1).replace("</w:t>", "</v:t>", 1),
    ),
    ("attribute-twice", "an attribute twice", BODY.replace("<w:p>", "<w:p a='1' a='2'>", 1)),
    ("unknown-entity", "an entity of HTML", BODY.replace("<w:t>", "<w:t>&nbsp;", 1)),
    ("bare-ampersand", "a bare ampersand", BODY.replace("<w:t>", "<w:t>R&D", 1)),
    ("control-character", "a control character", BODY.replace("<w:t>", "<w:t>\x0b", 1)),
    ("zero-reference", "a reference to no character", BODY.replace("<w:t>", "<w:t>&#0;", 1)),
    ("late-declaration", "a declaration behind a line end", "\n" + BODY),
]:
    package(f"main-{name}.docx", "bad-required-part", f"main part with {how}", BAD, lambda main=main: docx(main))
for name, how, main in [
    ("no-bytes", "of no bytes", b""),
    ("blanks", "of blanks", b" \r\n" * 99),
    ("zeros", "of zeros", bytes(2000)),
    ("bad-utf8", "with a broken UTF-8 character", BODY.encode().replace(b"<w:t>", b"<w:t>\xc3(", 1)),
    (
        "half-utf16",
        "in UTF-16 with half a character at its end",
        b"\xff\xfe" + BODY.replace("UTF-8", "UTF-16").encode("utf-16-le")[:-1],
    ),
    ("other-encoding", "that says UTF-16 and is UTF-8", BODY.replace("UTF-8", "UTF-16").encode()),
    ("text", "that is plain text", b"504 Gateway Time-out"),
    ("json", "that is JSON", b'{"error":-1}'),
]:
    package(f"main-{name}.docx", "bad-required-part", f"main part {how}", BAD, lambda main=main: docx(main))
package(
    "bad-types.docx",
    "bad-required-part other-kind",
    "content types that are cut off",
    BAD,
    lambda: changed(docx(), {TYPES: docx()[0][1][:-20]}),
    "opc",
)
package(
    "bad-relationships.docx",
    "bad-required-part other-kind",
    "relationships that are cut off",
    BAD,
    lambda: changed(docx(), {RELS: docx()[1][1][:-20]}),
    "opc",
)
package(
    "bad-main-relationships.docx",
    "bad-required-part",
    "relationships of the main part that are cut off",
    "Word reports damage and opens nothing",
    lambda: [*docx(), ("word/_rels/document.xml.rels", b"<Relationships")],
)
package(
    "bad-workbook.xlsx",
    "bad-required-part",
    "main part cut off",
    BAD,
    lambda: changed(xlsx(), {"xl/workbook.xml": b"<workbook>"}),
    "xlsx",
)
package(
    "bad-content.odt", "bad-required-part", "content cut off", BAD, lambda: odt(odf_content(text_body())[:-30]), "odt"
)
package(
    "bad-content.ods",
    "bad-required-part",
    "content with a bare ampersand",
    BAD,
    lambda: ods("<office:spreadsheet>R&D</office:spreadsheet>"),
    "ods",
)
package(
    "bad-manifest.odt",
    "bad-required-part",
    "a manifest that is cut off",
    BAD,
    lambda: changed(odt(), {"META-INF/manifest.xml": manifest(ODF + "text")[:-30]}),
    "odt",
)

# Attacks on readers.
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefghi", "bcdefghij"))
    + "]>"
)
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
NO_TYPE = "ECMA-376-2, 7.1.4: document types are not allowed; entity attacks need one"
PLAIN = BODY.split("?>\n")[1]
package(
    "billion-laughs.docx",
    "document-type",
    "entities that expand a billion times",
    NO_TYPE,
    lambda: docx(LAUGHS + PLAIN.replace("<w:t>", "<w:t>&j;", 1)),
)
package(
    "outside-entity.docx",
    "document-type",
    "an entity that reads a file of the server",
    NO_TYPE,
    lambda: docx(OUTSIDE + PLAIN.replace("<w:t>", "<w:t>&x;", 1)),
)
package(
    "document-type.docx",
    "document-type",
    "a main part with a document type and nothing else",
    NO_TYPE,
    lambda: docx("<!DOCTYPE w:document>" + PLAIN),
)
package(
    "document-type-in-relationships.xlsx",
    "document-type other-kind",
    "relationships with a document type",
    NO_TYPE,
    lambda: changed(
        xlsx(), {RELS: b"<!DOCTYPE Relationships SYSTEM 'http://example.org/a.dtd'>" + xlsx()[1][1].split(b"?>\n")[1]}
    ),
    "opc",
)
package(
    "document-type-in-styles.docx",
    "document-type",
    "styles with a document type",
    NO_TYPE,
    lambda: [*docx(), ("word/styles.xml", (LAUGHS + "<s>&j;</s>").encode())],
)
package(
    "document-type-in-strings.xlsx",
    "document-type",
    "strings that expand a billion times",
    NO_TYPE,
    lambda: [*xlsx(), ("xl/sharedStrings.xml", (LAUGHS + "<sst>&j;</sst>").encode())],
    "xlsx",
)
package(
    "billion-laughs.ods",
    "document-type",
    "content that expands a billion times",
    "no OpenDocument program writes one there",
    lambda: odt(LAUGHS + "<a>&j;</a>", ODF + "spreadsheet"),
    "ods",
)
ATTACK = "no program writes it; readers that recurse or compare each with each fall over"
package(
    "too-deep.docx",
    "hostile-markup",
    "main part nested 20,000 deep",
    ATTACK,
    lambda: docx("<a>" * 20_000 + "</a>" * 20_000),
)
package(
    "too-many-attributes.docx",
    "hostile-markup",
    "5,000 attributes on one element",
    ATTACK,
    lambda: docx("<a" + "".join(f" a{at}=''" for at in range(5_000)) + "/>"),
)
package(
    "too-many-namespaces.docx",
    "hostile-markup",
    "3,000 namespaces in scope",
    ATTACK,
    lambda: docx("".join(f"<a xmlns:n{at}='u'>" for at in range(3_000)) + "</a>" * 3_000),
)
package(
    "too-deep-content.odt",
    "hostile-markup",
    "content nested 20,000 deep",
    ATTACK,
    lambda: odt("<a>" * 20_000 + "</a>" * 20_000),
    "odt",
)
