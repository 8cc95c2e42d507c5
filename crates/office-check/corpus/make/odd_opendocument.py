"""OpenDocument packages and books that are unusual and right, or wrong in what no program minds. All are taken.

Guarantees: each differs from a small package in what its row says; the archive is a plain one.
Does not do: flat documents; `odd_files` does.
"""

from archive import pack
from odd_packages import SMALL, package
from parts import ODF, changed, manifest, odf_content, odp, ods, odt, sentences, sheet_body, text_body
from recipe import flag

package(
    "no-manifest.odt",
    "without a manifest",
    "ODF 1.3 part 2, 3.2 wants one; the document itself is whole",
    lambda: changed(odt(), {"META-INF/manifest.xml": None}),
    "odt",
)
package(
    "no-mimetype.ods",
    "without `mimetype`",
    "ODF 1.3 part 2, 3.3: it should be there, not shall",
    lambda: changed(ods(), {"mimetype": None}),
    "ods",
)
package(
    "mimetype-with-newline.odt",
    "a line end behind the type",
    "written with `echo`; the document itself is whole",
    lambda: changed(odt(), {"mimetype": (ODF + "text\n").encode()}),
    "odt",
)
for end, kind, name in [
    ("ott", "odt", "text-template"),
    ("odm", "odt", "text-master"),
    ("ots", "ods", "spreadsheet-template"),
    ("otp", "odp", "presentation-template"),
]:
    body = {"odt": text_body(), "ods": sheet_body(), "odp": "<office:presentation/>"}[kind]
    package(
        f"small.{end}",
        f"type `{name}`",
        "ODF 1.3 part 2, appendix",
        lambda name=name, body=body: odt(odf_content(body), ODF + name),
        kind,
        "no-content" if kind == "odp" else "",
    )
package("small.odp", "a presentation without pages", "that is a document", odp, "odp", "no-content")
package(
    "full-height.ods",
    "a row repeated 1,048,576 times",
    "LibreOffice writes it for the empty rest of a sheet",
    lambda: ods(sheet_body('<table:table-row table:number-rows-repeated="1048576"/>')),
    "ods",
)
package(
    "macros.odt",
    "macros of OpenOffice, with document types",
    "OpenOffice and LibreOffice write them so",
    lambda: [
        *odt(),
        (
            "Basic/script-lc.xml",
            b'<?xml version="1.0"?>\n<!DOCTYPE library:libraries '
            b'PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" '
            b'"libraries.dtd">\n<library:libraries xmlns:library="l"/>',
        ),
    ],
    "odt",
    "careless-part",
)
package(
    "formula-inside.odt",
    "a formula with a document type",
    "OpenOffice writes them so",
    lambda: [
        *odt(),
        (
            "Object 1/content.xml",
            b'<?xml version="1.0"?>\n<!DOCTYPE math:math PUBLIC "-//OpenOffice.org//DTD Modified W3C MathML 1.01//EN" '
            b'"math.dtd">\n<math:math xmlns:math="m"/>',
        ),
    ],
    "odt",
    "careless-part",
)
SUN_TYPE = '<!DOCTYPE office:document-content PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "office.dtd">'


def sun():
    content = (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + SUN_TYPE + "<office:document-content "
        'xmlns:office="http://openoffice.org/2000/office" xmlns:text="http://openoffice.org/2000/text" '
        'office:class="text"><office:body>'
        + "".join(f"<text:p>{line}</text:p>" for line in sentences(20))
        + "</office:body></office:document-content>"
    )
    listed = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE manifest:manifest PUBLIC "-//OpenOffice.org//DTD Manifest '
        '1.0//EN" "Manifest.dtd"><manifest:manifest xmlns:manifest="http://openoffice.org/2001/manifest">'
        '<manifest:file-entry manifest:media-type="application/vnd.sun.xml.writer" manifest:full-path="/"/>'
        "</manifest:manifest>"
    )
    return [
        ("mimetype", b"application/vnd.sun.xml.writer"),
        ("content.xml", content.encode()),
        ("META-INF/manifest.xml", listed.encode()),
    ]


package(
    "staroffice.sxw",
    "a text of OpenOffice.org 1, whose every part has a document type",
    "the older standard has them, and LibreOffice and ONLYOFFICE open it",
    sun,
    "odf",
    "careless-part",
)


def locked_whole():
    secret = (
        '<manifest:file-entry manifest:full-path="encrypted-package" manifest:size="4096" manifest:media-type="'
        f'{ODF}text"><manifest:encryption-data><manifest:algorithm '
        'manifest:algorithm-name="http://www.w3.org/2009/xmlenc11#aes256-gcm"/>'
        "</manifest:encryption-data></manifest:file-entry>"
    )
    noise = bytes((at * 167 + at // 7 * 31) % 256 for at in range(4096))
    return [
        ("mimetype", (ODF + "text").encode()),
        ("encrypted-package", noise),
        ("META-INF/manifest.xml", manifest(ODF + "text", secret)),
    ]


package(
    "locked-whole.odt",
    "encrypted as LibreOffice 24.8 does it: one part, no content",
    "ODF 1.4: a password is nobody's fault",
    locked_whole,
    "odt",
)


def epub():
    container = (
        b'<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        b'<rootfiles><rootfile full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    ncx = b'<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "ncx-2005-1.dtd"><ncx xmlns="n"/>'
    page = b'<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><body>&nbsp;</body></html>'
    return [
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", container),
        ("a.opf", b"<package/>"),
        ("toc.ncx", ncx),
        ("page.xhtml", page),
    ]


package(
    "small.epub", "a book with document types, as books have them", "EPUB 2.0.1, OPF", epub, "epub", "careless-part"
)

flag(
    "odd/huge-repetition.ods",
    "ods",
    "huge-repetition",
    SMALL + "a row repeated 999,999,999 times",
    "no program has so many rows, and readers without a bound run out of memory",
    lambda: pack(ods(sheet_body('<table:table-row table:number-rows-repeated="999999999"/>'))),
)
