"""The three documents that LibreOffice turns into everything else: a text, a workbook and a presentation.

Guarantees: written here, so nobody else's words or pictures are in the corpus.
Does not do: use much of the format; a heading, a list, a table, a picture, a formula, a note are what differs on disk.
"""

import base64
import struct
import zlib

from parts import sentences

NAMES = ("office", "style", "text", "table", "draw", "presentation", "number", "fo", "svg")
NS = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in NAMES)
for short, long in [
    ("fo", "xsl-fo-compatible"),
    ("svg", "svg-compatible"),
    ("draw", "drawing"),
    ("number", "datastyle"),
]:
    NS = NS.replace(f"xmlns:{short}:1.0", f"xmlns:{long}:1.0")
NS += ' xmlns:xlink="http://www.w3.org/1999/xlink"'


def png(width=16, height=16):
    """A picture of our own: a checkerboard."""
    rows = b"".join(b"\0" + bytes(255 * ((x // 4 + y // 4) % 2) for x in range(width)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def flat(kind, body):
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document {NS} office:version="1.3" '
        f'office:mimetype="application/vnd.oasis.opendocument.{kind}"><office:body>{body}</office:body>'
        "</office:document>"
    ).encode()


def text():
    image = base64.b64encode(png()).decode()
    frame = (
        '<text:p><draw:frame draw:name="checks" text:anchor-type="as-char" svg:width="1cm" svg:height="1cm">'
        f"<draw:image><office:binary-data>{image}</office:binary-data></draw:image></draw:frame></text:p>"
    )
    note = (
        '<text:p>A note<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation>'
        "<text:note-body><text:p>Überall, 到处, везде.</text:p></text:note-body></text:note> and a "
        '<text:a xlink:type="simple" xlink:href="https://example.org/">link</text:a>.</text:p>'
    )
    cells = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{row * column}</text:p></table:table-cell>" for column in range(1, 4))
        + "</table:table-row>"
        for row in range(1, 4)
    )
    columns = '<table:table-column table:number-columns-repeated="3"/>'
    table = f'<table:table table:name="Products">{columns}{cells}</table:table>'
    items = "".join(f"<text:list-item><text:p>{line}</text:p></text:list-item>" for line in sentences(6))
    paragraphs = "".join(f"<text:p>{line}</text:p>" for line in sentences(30))
    return flat(
        "text",
        f'<office:text><text:h text:outline-level="1">Report</text:h>{note}<text:list>{items}</text:list>'
        f"{table}{frame}{paragraphs}</office:text>",
    )


def workbook():
    rows = "".join(
        f'<table:table-row><table:table-cell office:value-type="string"><text:p>{line}</text:p></table:table-cell>'
        f'<table:table-cell office:value-type="float" office:value="{row * 1.5}"/>'
        f'<table:table-cell table:formula="of:=[.B{row}]*2" office:value-type="float" office:value="{row * 3}"/>'
        "</table:table-row>"
        for row, line in enumerate(sentences(40), 1)
    )
    sheets = f'<table:table table:name="Costs">{rows}</table:table><table:table table:name="Пусто"/>'
    return flat("spreadsheet", f"<office:spreadsheet>{sheets}</office:spreadsheet>")


def presentation():
    box = (
        '<draw:frame svg:width="20cm" svg:height="3cm" svg:x="2cm" svg:y="{top}cm"><draw:text-box>'
        "<text:p>{line}</text:p></draw:text-box></draw:frame>"
    )
    pages = "".join(
        f'<draw:page draw:name="page{page}">'
        + "".join(box.format(top=2 + 4 * at, line=line) for at, line in enumerate(sentences(3 + page)[page:]))
        + "</draw:page>"
        for page in range(1, 4)
    )
    return flat("presentation", f"<office:presentation>{pages}</office:presentation>")


def drawing():
    shapes = (
        '<draw:rect svg:width="4cm" svg:height="3cm" svg:x="2cm" svg:y="2cm"/>'
        '<draw:ellipse svg:width="3cm" svg:height="3cm" svg:x="8cm" svg:y="2cm"/>'
    )
    return flat("graphics", f'<office:drawing><draw:page draw:name="page1">{shapes}</draw:page></office:drawing>')
