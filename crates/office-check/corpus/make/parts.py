"""The smallest whole documents of each kind, as lists of (name, bytes), to be changed in one place at a time.

Guarantees: each opens in LibreOffice and in the library of its kind.
Does not do: pack them; `archive` does.
"""

TYPES_NS = "http://schemas.openxmlformats.org/package/2006/content-types"
RELS_NS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = "http://purl.oclc.org/ooxml/officeDocument/relationships"
OOXML = "application/vnd.openxmlformats-officedocument."
ODF = "application/vnd.oasis.opendocument."
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

WORD = OOXML + "wordprocessingml.document.main+xml"
BOOK = OOXML + "spreadsheetml.sheet.main+xml"
DECK = OOXML + "presentationml.presentation.main+xml"


def sentences(count):
    """Text that deflates to about a third, the same each time."""
    words = "minutes budget garden river window letter north paper seven copper winter harbour".split()
    number, lines = 7, []
    for line in range(count):
        number = (number * 1103515245 + 12345) % 2**31
        lines.append(f"{line + 1}. The {words[number % 12]} and the {words[number // 12 % 12]}: {number % 99991}.")
    return lines


def content_types(overrides, defaults=()):
    known = [("rels", "application/vnd.openxmlformats-package.relationships+xml"), ("xml", "application/xml")]
    lines = [f'<Default Extension="{end}" ContentType="{kind}"/>' for end, kind in [*known, *defaults]]
    lines += [f'<Override PartName="{name}" ContentType="{kind}"/>' for name, kind in overrides]
    return (DECLARATION + f'<Types xmlns="{TYPES_NS}">' + "".join(lines) + "</Types>").encode()


def relationships(*targets):
    """Each is (type, target), or (type, target, more attributes)."""
    lines = []
    for number, (kind, target, *more) in enumerate(targets, 1):
        lines.append(f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"{" ".join(["", *more])}/>')
    return (DECLARATION + f'<Relationships xmlns="{RELS_NS}">' + "".join(lines) + "</Relationships>").encode()


def word_body(paragraphs, namespace="http://schemas.openxmlformats.org/wordprocessingml/2006/main"):
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    return DECLARATION + f'<w:document xmlns:w="{namespace}"><w:body>{body}<w:sectPr/></w:body></w:document>'


def docx(main=None, content_type=WORD, name="word/document.xml", target=None):
    main = word_body(sentences(40)) if main is None else main
    return [
        ("[Content_Types].xml", content_types([("/" + name, content_type)])),
        ("_rels/.rels", relationships((OFFICE + "/officeDocument", target or name))),
        (name, main.encode() if isinstance(main, str) else main),
    ]


def xlsx(content_type=BOOK, rows=30):
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    book = (
        DECLARATION + f'<workbook xmlns="{main}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>'
    )
    cells = "".join(
        f'<row r="{row}"><c r="A{row}" t="inlineStr"><is><t>{text}</t></is></c>'
        f'<c r="B{row}"><v>{row * 7919 % 997}</v></c></row>'
        for row, text in enumerate(sentences(rows), 1)
    )
    sheet = DECLARATION + f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
    return [
        (
            "[Content_Types].xml",
            content_types(
                [
                    ("/xl/workbook.xml", content_type),
                    ("/xl/worksheets/sheet1.xml", OOXML + "spreadsheetml.worksheet+xml"),
                ]
            ),
        ),
        ("_rels/.rels", relationships((OFFICE + "/officeDocument", "xl/workbook.xml"))),
        ("xl/workbook.xml", book.encode()),
        ("xl/_rels/workbook.xml.rels", relationships((OFFICE + "/worksheet", "worksheets/sheet1.xml"))),
        ("xl/worksheets/sheet1.xml", sheet.encode()),
    ]


def pptx(content_type=DECK):
    """A presentation without slides."""
    main = "http://schemas.openxmlformats.org/presentationml/2006/main"
    deck = (
        DECLARATION + f'<p:presentation xmlns:p="{main}"><p:sldSz cx="9144000" cy="6858000"/>'
        '<p:notesSz cx="6858000" cy="9144000"/></p:presentation>'
    )
    return [
        ("[Content_Types].xml", content_types([("/ppt/presentation.xml", content_type)])),
        ("_rels/.rels", relationships((OFFICE + "/officeDocument", "ppt/presentation.xml"))),
        ("ppt/presentation.xml", deck.encode()),
    ]


ODF_NS = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
)


def odf_content(body):
    declaration = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return (
        declaration + f'<office:document-content {ODF_NS} office:version="1.3"><office:body>{body}</office:body>'
        "</office:document-content>"
    )


def text_body(count=40):
    return "<office:text>" + "".join(f"<text:p>{text}</text:p>" for text in sentences(count)) + "</office:text>"


def sheet_body(rows="", count=20):
    rows += "".join(
        '<table:table-row><table:table-cell office:value-type="string">'
        f"<text:p>{text}</text:p></table:table-cell></table:table-row>"
        for text in sentences(count)
    )
    return f'<office:spreadsheet><table:table table:name="Sheet1">{rows}</table:table></office:spreadsheet>'


def manifest(media_type, more=""):
    namespace = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<manifest:manifest xmlns:manifest="{namespace}" '
        f'manifest:version="1.3"><manifest:file-entry manifest:full-path="/" manifest:media-type="{media_type}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        f"{more}</manifest:manifest>"
    ).encode()


def odt(content=None, media_type=ODF + "text"):
    content = odf_content(text_body()) if content is None else content
    return [
        ("mimetype", media_type.encode()),
        ("content.xml", content.encode() if isinstance(content, str) else content),
        ("META-INF/manifest.xml", manifest(media_type)),
    ]


def ods(body=None):
    return odt(odf_content(sheet_body() if body is None else body), ODF + "spreadsheet")


def odp():
    return odt(odf_content("<office:presentation/>"), ODF + "presentation")


def changed(parts, changes):
    """The parts with some replaced (`{name: data}`); `None` drops one, and a new name is added."""
    kept = [(name, changes.get(name, data)) for name, data in parts]
    known = {name for name, _ in parts}
    added = [(name, data) for name, data in changes.items() if name not in known]
    return [(name, data) for name, data in kept + added if data is not None]
