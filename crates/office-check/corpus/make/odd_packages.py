"""Packages that are unusual and right, or wrong in what no program minds. All are taken.

Guarantees: each differs from a small package in what its row says; the archive is a plain one.
Does not do: hold much text; what a document says is nobody's business here.
"""

from archive import pack
from parts import (
    BOOK,
    DECLARATION,
    OFFICE,
    OOXML,
    STRICT,
    WORD,
    changed,
    content_types,
    docx,
    odt,
    pptx,
    relationships,
    sentences,
    word_body,
    xlsx,
)
from recipe import accept, flag
from sources import png

SMALL = "a small package, "
MAIN = "word/document.xml"
MS = "application/vnd.ms-"


def package(file, how, why, parts, kind="docx", findings=""):
    accept(f"odd/{file}", kind, SMALL + how, why, lambda: pack(parts()), findings)


# What the main part can be.
for end, parts, content_type in [
    ("docm", docx, MS + "word.document.macroEnabled.main+xml"),
    ("dotx", docx, OOXML + "wordprocessingml.template.main+xml"),
    ("dotm", docx, MS + "word.template.macroEnabledTemplate.main+xml"),
    ("xlsm", xlsx, MS + "excel.sheet.macroEnabled.main+xml"),
    ("xltx", xlsx, OOXML + "spreadsheetml.template.main+xml"),
    ("xltm", xlsx, MS + "excel.template.macroEnabled.main+xml"),
    ("xlam", xlsx, MS + "excel.addin.macroEnabled.main+xml"),
    ("pptm", pptx, MS + "powerpoint.presentation.macroEnabled.main+xml"),
    ("potx", pptx, OOXML + "presentationml.template.main+xml"),
    ("potm", pptx, MS + "powerpoint.template.macroEnabled.main+xml"),
    ("ppsx", pptx, OOXML + "presentationml.slideshow.main+xml"),
    ("ppsm", pptx, MS + "powerpoint.slideshow.macroEnabled.main+xml"),
]:
    more = [("bin", "application/vnd.ms-office.vbaProject")] if "macro" in content_type else []
    package(
        f"small.{end}",
        f"main part of the type `{content_type}`",
        "ECMA-376-1 and MS-OFFMACRO2",
        lambda parts=parts, content_type=content_type, more=more: with_macros(parts(content_type=content_type), more),
        end,
        "no-content" if parts is pptx else "",
    )


def with_macros(parts, more):
    if not more:
        return parts
    types = parts[0][1].replace(b"</Types>", f'<Default Extension="bin" ContentType="{more[0][1]}"/></Types>'.encode())
    return [("[Content_Types].xml", types), *parts[1:], ("vbaProject.bin", bytes(range(256)))]


def xlsb():
    return [
        ("[Content_Types].xml", content_types([("/xl/workbook.bin", MS + "excel.sheet.binary.macroEnabled.main")])),
        ("_rels/.rels", relationships((OFFICE + "/officeDocument", "xl/workbook.bin"))),
        ("xl/workbook.bin", bytes([0x83, 1, 0, 0x84, 1, 0])),
    ]


def vsdx():
    visio = "http://schemas.microsoft.com/visio/2010/relationships/document"
    return [
        ("[Content_Types].xml", content_types([("/visio/document.xml", MS + "visio.drawing.main+xml")])),
        ("_rels/.rels", relationships((visio, "visio/document.xml"))),
        ("visio/document.xml", b'<VisioDocument xmlns="http://schemas.microsoft.com/office/visio/2012/main"/>'),
    ]


package("small.xlsb", "a workbook of binary parts", "MS-XLSB: the main part is no XML", xlsb, "xlsb")
package("small.vsdx", "a drawing", "MS-VSDX", vsdx, "vsdx")

# Where the main part is, and how that is said.
package(
    "main-elsewhere.docx",
    "main part `wtf/Thing.xml`",
    "ECMA-376-2, 6.5: only relationships say where it is",
    lambda: docx(name="wtf/Thing.xml"),
)
package("main-in-the-root.docx", "main part in the root folder", "ECMA-376-2, 6.5", lambda: docx(name="d.xml"))
package(
    "target-absolute.docx",
    "an absolute target",
    "ECMA-376-2, 6.5.3.4: targets are references",
    lambda: docx(target="/" + MAIN),
)
package(
    "target-with-dots.docx",
    "a target with `./` and `../`",
    "RFC 3986, 5.2.4",
    lambda: docx(target="./docProps/../word/./document.xml"),
)
package(
    "target-with-backslash.docx",
    "a target with a backslash",
    "written by some generators; there is no other part it could mean",
    lambda: docx(target="word\\document.xml"),
)
package(
    "target-percent-encoded.docx",
    "main part `word/my%20text.xml`, named so everywhere",
    "ECMA-376-2, 6.2.2.2: part names keep their escapes",
    lambda: docx(name="word/my%20text.xml"),
)
package(
    "target-percent-encoded-once.docx",
    "target `word/my%20text.xml`, entry `word/my text.xml`",
    "against ECMA-376-2, 7.3.4, and there is no other part it could mean",
    lambda: renamed("word/my%20text.xml", "word/my text.xml"),
)
package(
    "target-in-letters.docx",
    "target `word/bücher.xml`, entry `word/b%C3%BCcher.xml`",
    "ECMA-376-2, 6.2.2.2 and 7.3.4: targets are IRIs, names of entries are ASCII",
    lambda: renamed("word/bücher.xml", "word/b%C3%BCcher.xml"),
)
package(
    "type-by-default.xlsx",
    "the main type as a default for `xml`",
    "ECMA-376-2, 7.2.3.2: defaults count for every part",
    lambda: changed(
        xlsx(),
        {
            "[Content_Types].xml": content_types([], [("xml", BOOK)]).replace(
                b'<Default Extension="xml" ContentType="application/xml"/>', b""
            )
        },
    ),
    "xlsx",
)
package(
    "type-in-other-letters.docx",
    "content types in capitals",
    "RFC 2045: types are compared without case",
    lambda: docx(content_type=WORD.upper()),
)
BY_HAND = f"""<?xml version='1.0'?>
<!-- by hand -->
<Relationships\txmlns='http://schemas.openxmlformats.org/package/2006/relationships'>
  <Relationship
   Type = '{OFFICE}/officeDocument'
   Id='a'  Target='word/document.xml' ></Relationship>
</Relationships>
""".replace("\n", "\r\n")
package(
    "single-quotes.docx",
    "relationships in single quotes, with comments and line ends",
    "XML 1.0",
    lambda: changed(docx(), {"_rels/.rels": BY_HAND.encode()}),
)
package(
    "prefixed-relationships.docx",
    "relationships and types with a prefix",
    "Namespaces in XML",
    lambda: [(name, prefixed(data) if name != MAIN else data) for name, data in docx()],
)


def renamed(target, entry):
    parts = docx(name=target)
    return [*parts[:2], (entry, parts[2][1])]


def prefixed(data):
    text = data.decode().replace("xmlns=", "xmlns:p=")
    for name in ("Types", "Default", "Override", "Relationships", "Relationship"):
        text = text.replace(f"<{name} ", f"<p:{name} ").replace(f"</{name}>", f"</p:{name}>")
    return text.encode()


# Strict packages.
def strict(parts):
    swap = [
        (OFFICE, STRICT),
        (
            "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
            "http://purl.oclc.org/ooxml/wordprocessingml/main",
        ),
        ("http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://purl.oclc.org/ooxml/spreadsheetml/main"),
        (
            "http://schemas.openxmlformats.org/presentationml/2006/main",
            "http://purl.oclc.org/ooxml/presentationml/main",
        ),
    ]
    out = []
    for name, data in parts:
        for transitional, other in swap:
            data = data.replace(transitional.encode(), other.encode())
        out.append((name, data))
    return out


package("strict.docx", "strict namespaces", "ECMA-376-1, strict conformance", lambda: strict(docx()))
package("strict.xlsx", "strict namespaces", "ECMA-376-1, strict conformance", lambda: strict(xlsx()), "xlsx")
package(
    "strict.pptx", "strict namespaces", "ECMA-376-1, strict conformance", lambda: strict(pptx()), "pptx", "no-content"
)

# How XML can be written.
BODY = word_body(sentences(40))
for name, how, main in [
    (
        "utf16-little-endian",
        "main part in UTF-16LE with a mark",
        b"\xff\xfe" + BODY.replace("UTF-8", "UTF-16").encode("utf-16-le"),
    ),
    (
        "utf16-big-endian",
        "main part in UTF-16BE with a mark",
        b"\xfe\xff" + BODY.replace("UTF-8", "UTF-16").encode("utf-16-be"),
    ),
    ("utf8-mark", "main part with a byte order mark", b"\xef\xbb\xbf" + BODY.encode()),
    ("no-declaration", "main part without a declaration", BODY.replace(DECLARATION, "").encode()),
    (
        "instructions",
        "instructions and comments around the root",
        BODY.replace("<w:document", '<?mso-application progid="Word.Document"?><!-- - --><w:document').encode()
        + b"\n<!-- after -->\n",
    ),
    ("sections", "CDATA and references", BODY.replace("<w:t>1. ", "<w:t><![CDATA[<&]]>&#x20AC;&amp;&#10;").encode()),
    ("pretty", "main part with white space everywhere", BODY.replace("><", ">\r\n\t<").encode()),
    (
        "other-prefixes",
        "main part with other prefixes",
        BODY.replace("w:", "ns0:").replace("xmlns:w=", "xmlns:ns0=").encode(),
    ),
    ("default-namespace", "main part without prefixes", BODY.replace("xmlns:w", "xmlns").replace("w:", "").encode()),
    ("declaration-1.1", "main part that says XML 1.1", BODY.replace('version="1.0"', 'version="1.1"').encode()),
]:
    why = (
        "XML 1.0, 2.8: a 1.0 processor reads any 1.x as 1.0"
        if "1.1" in name
        else "XML 1.0, ECMA-376-2, 7.1: UTF-8 and UTF-16"
    )
    package(f"xml-{name}.docx", how, why, lambda main=main: docx(main))
package(
    "no-content.docx",
    "an empty body",
    "somebody deleted everything; that is a document",
    lambda: docx(word_body([])),
    findings="no-content",
)
package(
    "no-cells.xlsx",
    "a sheet without rows",
    "somebody deleted everything; that is a document",
    lambda: xlsx(rows=0),
    "xlsx",
    "no-content",
)
package("no-slides.pptx", "no slides", "that is a document", pptx, "pptx", "no-content")
package(
    "deep.docx",
    "main part nested 200 deep",
    "tables in tables",
    lambda: docx(
        word_body(["x"]).replace("<w:p>", "<w:tbl>" * 200 + "<w:p>").replace("</w:p>", "</w:p>" + "</w:tbl>" * 200)
    ),
)
package(
    "many-attributes.docx",
    "400 attributes on an element",
    "more than Office writes, less than an attack",
    lambda: docx(word_body(["x"]).replace("<w:p>", "<w:p" + "".join(f' w:a{at}="{at}"' for at in range(400)) + ">")),
)

# What is missing, extra or careless without harm.
package(
    "missing-targets.docx",
    "relationships of the main part that lead nowhere",
    "programs open it without those parts",
    lambda: [
        *docx(),
        (
            "word/_rels/document.xml.rels",
            relationships((OFFICE + "/styles", "styles.xml"), (OFFICE + "/image", "media/gone.png")),
        ),
    ],
)
package(
    "outward-links.docx",
    "external relationships of the main part",
    "ECMA-376-2, 6.5.3.3: links",
    lambda: [
        *docx(),
        (
            "word/_rels/document.xml.rels",
            relationships(
                (OFFICE + "/hyperlink", "https://example.org/?a=1&amp;b=2", 'TargetMode="External"'),
                (OFFICE + "/attachedTemplate", "file:///C:/t.dotx", 'TargetMode="External"'),
            ),
        ),
    ],
)
package("no-properties.xlsx", "without document properties", "they are optional", xlsx, "xlsx")
package(
    "unknown-parts.docx",
    "parts nobody mentions",
    "ECMA-376-2: consumers ignore them",
    lambda: [*docx(), ("custom/data.json", b"{}"), ("[trash]/0000.dat", bytes(64))],
)
package(
    "careless-vml.xlsx",
    "a drawing in VML with an unclosed `<br>`",
    "Excel itself writes it",
    lambda: [
        *xlsx(),
        ("xl/drawings/vmlDrawing1.vml", b'<xml xmlns:v="urn:schemas-microsoft-com:vml"><v:shape><br></v:shape></xml>'),
    ],
    "xlsx",
    "careless-part",
)
package(
    "html-inside.docx",
    "an alternative part in HTML, with a document type",
    "ECMA-376-1, 11.3.1: altChunk",
    lambda: [*docx(), ("word/afchunk.htm", b"<!DOCTYPE html><html><p>unclosed</html>")],
    findings="careless-part",
)
package(
    "svg-inside.docx",
    "a picture in SVG with a document type",
    "drawing programs write it",
    lambda: [
        *docx(),
        (
            "word/media/image1.svg",
            b'<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd"><svg/>',
        ),
    ],
    findings="careless-part",
)
package(
    "bad-properties.docx",
    "document properties that are not well-formed",
    "Office and LibreOffice open it",
    lambda: [*docx(), ("docProps/app.xml", b"<Properties><Pages>1</Properties>")],
    findings="bad-part",
)
package(
    "bad-styles.docx",
    "styles that are cut off",
    "LibreOffice opens it; nothing but the look is lost",
    lambda: [*docx(), ("word/styles.xml", b"<w:styles xmlns:w='w'><w:style>")],
    findings="bad-part",
)
package("picture.docx", "a picture", "what documents have", lambda: [*docx(), ("word/media/image1.png", png())])
package(
    "package-inside.pptx",
    "a workbook inside",
    "embedded documents are packages",
    lambda: [*pptx(), ("ppt/embeddings/a.xlsx", pack(xlsx()))],
    "pptx",
    "no-content",
)


# What is taken with a word.
flag(
    "odd/main-of-unknown-type.docx",
    "opc",
    "other-kind unknown-content",
    SMALL + "main part of a type nobody knows",
    "a package of the future, or of another program",
    lambda: pack(docx(content_type="application/vnd.example.main+xml")),
)
flag(
    "odd/beta-of-office-12.docx",
    "docx",
    "pre-standard",
    SMALL + "relationships of a beta of Office 2007",
    "older than the standard",
    lambda: pack(
        changed(
            docx(),
            {
                "_rels/.rels": relationships(
                    ("http://schemas.microsoft.com/office/2006/relationships/officeDocument", MAIN)
                )
            },
        )
    ),
)
flag(
    "odd/book-named.docx",
    "xlsx",
    "other-kind",
    "a small workbook",
    "a whole document under another name",
    lambda: pack(xlsx()),
)
flag(
    "odd/text-named.xlsx",
    "odt",
    "other-kind",
    "a small OpenDocument text",
    "a whole document under another name",
    lambda: pack(odt()),
)
accept(
    "odd/opendocument-named.docx",
    "odt",
    "a small OpenDocument text",
    "a text under the name of one; LibreOffice opens it",
    lambda: pack(odt()),
)
accept(
    "odd/package-named.doc",
    "docx",
    "a small package",
    "Word and LibreOffice open it under the older name",
    lambda: pack(docx()),
)
accept(
    "odd/nothing-known.bin",
    "docx",
    "a small package under a name that says nothing",
    "no promise was broken",
    lambda: pack(docx()),
)
