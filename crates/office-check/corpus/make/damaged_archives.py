"""Archives that are cut, changed or contradict themselves. All are refused.

Guarantees: each is a whole package but for what its row says. Does not do: touch the markup inside.
"""

import pathlib
import struct

from archive import STORED, WIDE, Entry, Zip, deflate, pack, record, wide_extra
from parts import docx, odt, pptx, xlsx
from recipe import refuse

CORPUS = pathlib.Path(__file__).resolve().parent.parent
DOCX = docx()
MAIN = "word/document.xml"
# What is no archive that can be opened is no document either.
NO_END = "zip-directory wrong-container"


def whole(name):
    return (CORPUS / name).read_bytes()


def archive(file, findings, how, why, data, kind="docx"):
    refuse(f"damaged/{file}", kind, findings, how, why, data)


def entries(parts=None, **changes):
    """The parts as entries; the main part is changed."""
    made = [Entry(name, data) for name, data in parts or DOCX]
    for key, value in changes.items():
        setattr(made[-1], key, value)
    return made


def both(**changes):
    made = entries()
    made[-1].both(**changes)
    return Zip(made).bytes()


def locally(**changes):
    return Zip(entries(local=changes)).bytes()


# Cut off.
CUT = "half a download"
for percent in (1, 25, 50, 75, 90, 99):
    archive(
        f"cut-at-{percent}-percent.docx",
        NO_END,
        f"`whole/report.docx`, the first {percent} %",
        CUT,
        lambda percent=percent: (lambda data: data[: len(data) * percent // 100])(whole("whole/report.docx")),
        "zip",
    )
for file, source in [
    ("cut-in-half.xlsx", "whole/openpyxl.xlsx"),
    ("cut-in-half.pptx", "whole/slides.pptx"),
    ("cut-in-half.odt", "whole/report.odt"),
    ("cut-in-half.epub", "whole/report.epub"),
]:
    archive(
        file,
        NO_END,
        f"`{source}`, the first half",
        CUT,
        lambda source=source: (lambda data: data[: len(data) // 2])(whole(source)),
        "zip",
    )
archive(
    "cut-last-byte.docx",
    NO_END,
    "`whole/report.docx` without its last byte",
    CUT,
    lambda: whole("whole/report.docx")[:-1],
    "zip",
)
archive("cut-end-record.docx", NO_END, "without the end record", CUT, lambda: pack(DOCX)[:-22], "zip")
archive(
    "cut-directory.docx",
    NO_END,
    "without directory and end record",
    CUT,
    lambda: pack(DOCX).split(b"PK\x01\x02")[0],
    "zip",
)
archive(
    "cut-behind-inner-package.docx",
    "wrong-container zip-data",
    "cut right behind a package that is stored inside",
    "the end record there is that of the inner package",
    lambda: cut_behind_inner(),
    "zip",
)
archive(
    "cut-second-of-two.docx",
    "wrong-container zip-data",
    "a whole package, and the first half of another behind it",
    "the second was to rule, and it is not whole",
    lambda: pack(xlsx()) + pack(DOCX)[:1000],
    "zip",
)
archive(
    "cut-comment.docx",
    "wrong-container zip-data",
    "an archive comment that is cut off",
    "its end is missing",
    lambda: pack(DOCX, comment=b"a comment of forty bytes, more or less..")[:-20],
    "zip",
)
archive(
    "begins-late.docx",
    "wrong-container",
    "without the first 100 bytes",
    "the end of a download only",
    lambda: pack(DOCX)[100:],
    "unknown",
)


def cut_behind_inner():
    inner = pack(xlsx())
    data = Zip([*entries(), Entry("word/embeddings/a.xlsx", inner, STORED)]).bytes()
    return data[: data.index(inner) + len(inner)]


# Changed bytes.
archive(
    "flipped-bit.docx",
    "zip-data",
    "a bit of the main part's deflated data flipped",
    "a bad disk",
    lambda: flipped(pack(DOCX), 200),
)
archive(
    "flipped-bit-stored.docx",
    "zip-data",
    "a bit of the stored main part flipped, in a tag",
    "a bad disk",
    lambda: Zip([Entry(name, data, STORED, body=data.replace(b"</w:p>", b"</w:q>", 1)) for name, data in DOCX]).bytes(),
)
archive(
    "zeros-inside.xlsx",
    "zip-data",
    "64 zeros over the sheet's data",
    "a sector that was never written",
    lambda: zeros(pack(xlsx()), b"xl/worksheets/sheet1.xml", 64),
    "xlsx",
)
archive(
    "wrong-checksum.docx",
    "zip-data",
    "another checksum for the main part",
    "APPNOTE 4.4.7: other bytes than were written",
    lambda: both(crc=0x12345678),
)
archive(
    "wrong-checksum-picture.docx",
    "zip-data",
    "another checksum for a picture",
    "no part may change unseen",
    lambda: Zip([Entry("word/media/a.png", b"picture" * 9).both(crc=1), *entries()]).bytes(),
)
archive(
    "longer-than-said.docx",
    "zip-data",
    "the main part inflates to more than is said",
    "APPNOTE 4.4.9",
    lambda: both(size=len(DOCX[-1][1]) - 1),
)
archive(
    "shorter-than-said.docx",
    "zip-data",
    "the main part inflates to less than is said",
    "APPNOTE 4.4.9",
    lambda: both(size=len(DOCX[-1][1]) + 1),
)
archive(
    "four-gigabytes-said.docx",
    "high-ratio zip-data",
    "the main part is said to have 4 GB",
    "a lie, or damage",
    lambda: both(size=WIDE, extra=wide_extra(2**32 + 5), version=45),
)
archive(
    "bytes-behind-deflate.docx",
    "zip-data",
    "bytes behind the end of the deflated data",
    "they belong to nobody",
    lambda: Zip(entries(body=deflate(DOCX[-1][1]) + b"more")).bytes(),
)
archive(
    "deflate-cut.docx",
    "zip-data",
    "deflated data without its end",
    "RFC 1951: no last block",
    lambda: Zip(entries(body=deflate(DOCX[-1][1])[:-9])).bytes(),
)
archive(
    "no-deflate.docx",
    "zip-data",
    "bytes that are no deflate",
    "RFC 1951, 3.2.3: the reserved block type",
    lambda: Zip(entries(body=b"\xff" * 200)).bytes(),
)


def flipped(data, behind):
    at = data.index(MAIN.encode()) + len(MAIN) + behind
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def zeros(data, name, count):
    at = data.index(name) + len(name) + 100
    return data[:at] + bytes(count) + data[at + count :]


# Headers that are missing or contradict the directory.
SAYS = "APPNOTE 4.3.12: the directory repeats what the header says; readers would differ"
archive(
    "header-gone.docx", "zip-header", "the main part's header overwritten", "APPNOTE 4.3.7", lambda: zeroed_header()
)
archive(
    "header-other-name.docx",
    "zip-header",
    "another name in the header",
    SAYS,
    lambda: locally(name=b"word/documenu.xml"),
)
archive("header-other-method.docx", "zip-header", "another method in the header", SAYS, lambda: locally(method=0))
archive("header-other-size.docx", "zip-header", "another size in the header", SAYS, lambda: locally(size=17))
archive("header-other-checksum.docx", "zip-header", "another checksum in the header", SAYS, lambda: locally(crc=17))
archive(
    "header-says-encrypted.docx",
    "zip-header",
    "only the header says that it is encrypted",
    SAYS,
    lambda: locally(flags=1),
)
archive(
    "header-elsewhere.docx",
    "wrong-container zip-data",
    "the directory leads into the middle of the data",
    "APPNOTE 4.4.16",
    lambda: Zip(entries(central=dict(offset=700))).bytes(),
    "zip",
)
archive(
    "descriptor-wrong.docx",
    "zip-data",
    "a descriptor with another checksum",
    "APPNOTE 4.3.9",
    lambda: Zip([entry.streamed() for entry in entries()[:-1]] + [bad_descriptor()]).bytes(),
)
archive(
    "descriptor-missing.docx",
    "zip-data",
    "no descriptor where one must be",
    "APPNOTE 4.3.9",
    lambda: Zip([*entries()[:-1], no_descriptor()]).bytes(),
)


def zeroed_header():
    data = pack(DOCX)
    at = data.index(MAIN.encode()) - 30
    return data[:at] + bytes(30) + data[at + 30 :]


def bad_descriptor():
    entry = entries()[-1].streamed()
    entry.behind = entry.behind[:4] + b"\1\2\3\4" + entry.behind[8:]
    return entry


def no_descriptor():
    entry = entries()[-1].streamed()
    entry.behind = b""
    return entry


# What Office cannot read.
archive(
    "method-99.docx",
    "zip-method",
    "method 99 (AES)",
    "ECMA-376-2, B.3: stored and deflated only",
    lambda: both(method=99),
)
archive(
    "method-deflate64.docx",
    "zip-method",
    "method 9",
    "ECMA-376-2, B.3: stored and deflated only",
    lambda: both(method=9),
)
archive(
    "method-lzma.xlsx",
    "zip-method",
    "method 14 for the sheet",
    "ECMA-376-2, B.3: stored and deflated only",
    lambda: Zip([entry.both(method=14) if "sheet1" in entry.name else entry for entry in entries(xlsx())]).bytes(),
    "xlsx",
)
archive(
    "encrypted-entry.docx",
    "zip-method",
    "the main part encrypted by the ZIP layer",
    "ECMA-376-2, B.3: not allowed",
    lambda: both(flags=1),
)
archive(
    "patch.docx",
    "zip-method",
    "the main part is a patch",
    "APPNOTE 4.4.4, bit 5: for another file",
    lambda: both(flags=1 << 5),
)

# A directory that contradicts itself.
archive(
    "count-too-large.docx",
    NO_END,
    "the end record says seven entries",
    "APPNOTE 4.4.22",
    lambda: pack(DOCX, count=7),
    "zip",
)
archive(
    "count-too-small.docx",
    NO_END,
    "the end record says two entries of three",
    "an entry would be hidden",
    lambda: pack(DOCX, count=2),
    "zip",
)
archive(
    "many-disks.docx",
    NO_END,
    "the end record says disk 3",
    "ECMA-376-2, B.2: one disk",
    lambda: pack(DOCX, disk=3),
    "zip",
)
archive(
    "directory-elsewhere.docx",
    NO_END,
    "the end record leads beyond the file",
    "APPNOTE 4.4.24",
    lambda: pack(DOCX, directory_at=10**6),
    "zip",
)
archive(
    "directory-record-broken.docx",
    NO_END,
    "a record of the directory without its signature",
    "APPNOTE 4.3.12",
    lambda: swap_last(pack(DOCX), b"PK\x01\x02", b"PK\x01\x00"),
    "zip",
)
archive(
    "zip64-end-broken.docx",
    NO_END,
    "a zip64 end record that is gone",
    "APPNOTE 4.3.14",
    lambda: pack(DOCX, zip64=True).replace(b"PK\x06\x06", b"PK\0\0"),
    "zip",
)


def swap_last(data, old, new):
    at = data.rindex(old)
    return data[:at] + new + data[at + len(old) :]


# Entries that share bytes.
SHARED = "David Fifield, A better zip bomb: no honest writer does it"
archive(
    "overlap-same-header.docx",
    "wrong-container zip-overlap",
    "two names for one header",
    SHARED,
    lambda: Zip([*entries(), Entry("word/again.xml", b"", body=b"", central=dict(offset=0, packed=0, size=0))]).bytes(),
    "zip",
)
archive(
    "overlap-quoted.docx",
    "wrong-container zip-overlap",
    "34 KB that would inflate to 2.7 GB: each entry quotes the next header",
    SHARED,
    lambda: quoted(250, 11_000_000),
    "zip",
)
archive(
    "overlap-half.xlsx",
    "wrong-container zip-overlap",
    "an entry that reaches into the next",
    SHARED,
    lambda: Zip([Entry("a.bin", b"x" * 40, STORED).both(packed=90, size=90), *entries(xlsx())]).bytes(),
    "zip",
)


def quoted(count, kernel_bytes):
    """Every entry is a stored block that quotes the next header, and the last is the kernel."""
    packed = deflate(bytes(kernel_bytes), 9)
    names = [f"{at:03}.xml".encode() for at in range(count)]
    headers, body, size = [], packed, kernel_bytes
    for at in reversed(range(count)):
        header = (
            b"PK\x03\x04"
            + struct.pack("<HHHIIIIHH", 20, 0, 8, 0x00210000, 0, len(body), size, len(names[at]), 0)
            + names[at]
        )
        headers.append((names[at], len(body), size, header))
        block = b"\0" + struct.pack("<HH", len(header), len(header) ^ 0xFFFF) + header
        body, size = block + body, size + len(header)
    out, records = b"", []
    for at, (name, packed_bytes, inflated_bytes, header) in enumerate(reversed(headers)):
        out += header if at == 0 else b"\0" + struct.pack("<HH", len(header), len(header) ^ 0xFFFF) + header
        entry = Entry(
            name, b"", body=b"", central=dict(packed=packed_bytes, size=inflated_bytes, offset=len(out) - len(header))
        )
        records.append(entry)
    out += packed
    directory = b"".join(record(entry, 0) for entry in records)
    return out + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(out), 0)


# A part that decides what the document is, twice.
TWICE = "ECMA-376-2, 6.2.2.3: part names are unique; readers would open different documents"
archive(
    "twice-main.docx",
    "ambiguous-part duplicate-name",
    "the main part twice",
    TWICE,
    lambda: pack([*DOCX, (MAIN, b"<other/>")]),
)
archive(
    "twice-types.docx",
    "ambiguous-part duplicate-name other-kind",
    "the content types twice",
    TWICE,
    lambda: pack([DOCX[0], ("[Content_Types].xml", pptx()[0][1]), *DOCX[1:]]),
    "opc",
)
archive(
    "twice-relationships.xlsx",
    "ambiguous-part duplicate-name other-kind",
    "the package's relationships twice",
    TWICE,
    lambda: pack([*xlsx(), ("_rels/.rels", DOCX[1][1])]),
    "opc",
)
archive(
    "twice-content.odt",
    "ambiguous-part duplicate-name",
    "`content.xml` twice",
    TWICE,
    lambda: pack([*odt(), ("content.xml", b"<other/>")]),
    "odt",
)
