"""Archives that are unusual and right: what APPNOTE allows and writers do. All are taken.

Guarantees: each differs from a plain package in what its row says. Does not do: touch the parts inside.
"""

import zlib

from archive import STORED, WIDE, Entry, Zip, deflate, extra, pack, wide_extra
from parts import docx, ods, odt, xlsx
from recipe import accept, flag


def entries(parts, **how):
    return [Entry(name, data, **how) for name, data in parts]


def each(parts, change):
    """The parts as entries, each changed."""
    return Zip([change(entry) for entry in entries(parts)]).bytes()


def widened(entry, places="both"):
    known = entry.fields()
    sizes = wide_extra(known["size"], known["packed"])
    for header in [entry.local, entry.central] if places == "both" else [getattr(entry, places)]:
        header.update(size=WIDE, packed=WIDE, extra=sizes, version=45)
    return entry


def wide_offset(entry, offset=0):
    entry.central.update(offset=WIDE, extra=wide_extra(offset))
    return entry


DOCX, SMALL = docx(), "a small package, "
A = "APPNOTE.TXT "


def archive(file, how, why, data, kind="docx", findings=""):
    accept(f"odd/{file}", kind, SMALL + how, why, data, findings)


archive(
    "zip64-everywhere.docx",
    "zip64 sizes in all headers and zip64 end records",
    A + "4.5.3 and 4.3.14: allowed for any size",
    lambda: Zip([widened(entry) for entry in entries(DOCX)], zip64=True).bytes(),
)
archive("zip64-end-only.xlsx", "zip64 end records only", A + "4.3.14", lambda: pack(xlsx(), zip64=True), "xlsx")
archive(
    "zip64-local-only.docx",
    "zip64 sizes in the local headers only",
    "what writers do that do not know sizes before",
    lambda: each(DOCX, lambda entry: widened(entry, "local")),
)
archive(
    "zip64-directory-only.docx",
    "zip64 sizes in the directory only",
    A + "4.5.3: each header by itself",
    lambda: each(DOCX, lambda entry: widened(entry, "central")),
)
archive(
    "zip64-offset-only.docx",
    "the first offset in a zip64 field",
    A + "4.5.3: only the fields that are needed",
    lambda: Zip([wide_offset(entry) if at == 0 else entry for at, entry in enumerate(entries(DOCX))]).bytes(),
)
for name, signature, size in [
    ("signed", b"PK\x07\x08", "<I"),
    ("unsigned", b"", "<I"),
    ("signed-wide", b"PK\x07\x08", "<Q"),
    ("unsigned-wide", b"", "<Q"),
]:
    archive(
        f"descriptor-{name}.docx",
        f"descriptors, {name}",
        A + "4.3.9.3: the signature is optional; 4.3.9.2: wide sizes",
        lambda signature=signature, size=size: each(DOCX, lambda entry: entry.streamed(signature, size)),
    )
archive(
    "descriptor-stored.docx",
    "stored, with descriptors",
    "Info-ZIP writes it to a pipe",
    lambda: Zip([entry.streamed() for entry in entries(DOCX, method=STORED)]).bytes(),
)
archive(
    "descriptor-known-before.docx",
    "the flag of a descriptor, sizes in the header, and no descriptor",
    "written by some libraries; everything is known twice",
    lambda: each(DOCX, lambda entry: entry.both(flags=8)),
)
archive(
    "descriptor-only-locally-flagged.docx",
    "descriptors that the directory does not know of",
    "written by some libraries",
    lambda: each(DOCX, lambda entry: (entry.streamed(), entry.central.update(flags=0))[0]),
)
archive(
    "stored.docx",
    "stored",
    "ECMA-376-2 B.3: stored and deflated are allowed",
    lambda: Zip(entries(DOCX, method=STORED)).bytes(),
)
archive(
    "stored.odt",
    "stored",
    "ODF 1.3 part 2, 2.2: stored and deflated are allowed",
    lambda: Zip(entries(odt(), method=STORED)).bytes(),
    "odt",
)
archive(
    "deflated-without-compressing.docx",
    "deflate blocks that hold the bytes as they are",
    "RFC 1951, 3.2.4",
    lambda: Zip(entries(DOCX, level=0)).bytes(),
)
archive(
    "deflated-fixed-codes.docx",
    "deflate with fixed codes",
    "RFC 1951, 3.2.6",
    lambda: Zip([Entry(name, data, body=deflate(data, 6, zlib.Z_FIXED)) for name, data in DOCX]).bytes(),
)
archive(
    "deflated-in-many-blocks.xlsx",
    "deflate flushed every 100 bytes: empty blocks in between",
    "RFC 1951, 3.2.3",
    lambda: Zip([Entry(name, data, body=flushed(data)) for name, data in xlsx()]).bytes(),
    "xlsx",
)
archive(
    "empty-part-deflated.docx",
    "a part of no bytes that is called deflated and has none",
    "written by some libraries",
    lambda: Zip([*entries(DOCX), Entry("word/empty.bin", b"", body=b"")]).bytes(),
)
archive("comment.docx", "an archive comment", A + "4.3.16", lambda: pack(DOCX, comment="mit Grüßen".encode()))
archive(
    "comment-like-an-end.docx",
    "a comment that holds the signature of an end record",
    A + "4.3.16: any bytes",
    lambda: pack(DOCX, comment=b"PK\x05\x06 is how an archive ends" + bytes(30)),
)
archive(
    "entry-comments.docx",
    "comments on entries",
    A + "4.4.18",
    lambda: each(DOCX, lambda entry: (entry.central.update(comment=b"of this entry"), entry)[1]),
)
archive(
    "trailing-newline.docx",
    "a line end behind the archive",
    "downloads through scripts add one; every reader passes over it",
    lambda: pack(DOCX, after=b"\r\n"),
    findings="trailing-bytes",
)
archive(
    "trailing-zeros.xlsx",
    "4096 zeros behind the archive",
    "the archive is whole, and findings.md does not hold it against it",
    lambda: pack(xlsx(), after=bytes(4096)),
    "xlsx",
    "trailing-bytes",
)
archive(
    "directory-in-another-order.docx",
    "the directory in reverse",
    A + "4.3.12 does not order it",
    lambda: pack(DOCX, reverse=True),
)
archive(
    "gap-before-the-end.docx",
    "bytes between directory and end record",
    "the end record says where the directory is; nothing is missing",
    lambda: pack(DOCX, gap=b"in between"),
)
archive(
    "gaps-between-entries.docx",
    "bytes between entries",
    "editors that replace entries in place leave some",
    lambda: Zip([Entry(name, data, behind=b"was longer once" * 3) for name, data in DOCX]).bytes(),
)
archive(
    "folders.docx",
    "entries for folders",
    "zip programs write them; ECMA-376-2 lets consumers ignore them",
    lambda: pack([("word/", b""), ("_rels/", b""), *DOCX]),
)
archive(
    "folders-twice.docx",
    "the same folder twice",
    "a folder says nothing, and twice as much",
    lambda: pack([("word/", b""), ("word/", b""), *DOCX]),
)
archive(
    "extra-fields.docx",
    "extra fields of other kinds, and padding that is none",
    A + "4.5.1: unknown ones are passed over",
    lambda: each(
        DOCX,
        lambda entry: (
            entry.local.update(extra=extra(0xA220, bytes(20)) + b"\0\0\0"),
            entry.central.update(extra=extra(0x5455, b"\x01\0\0\0\0") + extra(0xCAFE, b"")),
            entry,
        )[2],
    ),
)
archive(
    "unix-modes.docx",
    "modes of Unix files",
    "Info-ZIP writes them",
    lambda: each(DOCX, lambda entry: (entry.central.update(host=3, attributes=0o100644 << 16), entry)[1]),
)
archive(
    "versions.docx",
    "versions of the future in the headers",
    "nobody looks at them",
    lambda: each(DOCX, lambda entry: entry.both(version=99)),
)
archive(
    "utf8-names.docx",
    "a part with an accent in its name and the flag for it",
    A + "4.4.4, bit 11",
    lambda: Zip([*entries(DOCX), Entry("word/média/ünïcode.bin", b"x" * 99, flags=1 << 11)]).bytes(),
)
archive(
    "latin1-names.docx",
    "a part whose name is no UTF-8",
    A + "D.1: names of old programs are in some code page",
    lambda: Zip([*entries(DOCX), Entry("word/ünïcode.bin".encode("latin-1"), b"x" * 99)]).bytes(),
)
archive(
    "backslashes.docx",
    "backslashes in names",
    "written by old .NET programs; readers that ask for one slash find the other",
    lambda: pack([(name.replace("/", "\\"), data) for name, data in DOCX]),
)
archive(
    "upper-case.docx",
    "names in other letters than the package uses",
    "ECMA-376-2, 6.2.2.3: names are compared without case",
    lambda: pack([(name.upper(), data) for name, data in DOCX]),
)
archive(
    "twice-unimportant.docx",
    "a picture twice",
    "no part that decides anything; readers take either",
    lambda: pack([*DOCX, ("word/media/a.bin", b"one"), ("word/media/a.bin", b"two")]),
    findings="duplicate-name",
)
archive(
    "twice-but-for-case.xlsx",
    "an unimportant part twice but for case",
    "no part that decides anything",
    lambda: pack([*xlsx(), ("xl/media/a.bin", b"one"), ("xl/media/A.bin", b"two")]),
    "xlsx",
    "duplicate-name",
)
archive(
    "system-leftovers.docx",
    "`.DS_Store` and `__MACOSX`",
    "macOS adds them when people pack again",
    lambda: pack([*DOCX, (".DS_Store", b"\0\0\0\x01Bud1"), ("__MACOSX/word/._document.xml", b"\0\x05\x16\x07")]),
)
archive(
    "mimetype-last.odt",
    "`mimetype` last and deflated",
    "ODF 1.3 part 2, 3.3 wants it first; every program opens it",
    lambda: pack(list(reversed(odt()))),
    "odt",
)
archive(
    "mimetype-with-extra-field.ods",
    "an extra field on `mimetype`",
    "ODF 1.3 part 2, 3.3 forbids it; every program opens it",
    lambda: Zip(
        [
            Entry(name, data, STORED, local=dict(extra=extra(0xCAFE, b""))) if name == "mimetype" else Entry(name, data)
            for name, data in ods()
        ]
    ).bytes(),
    "ods",
)
archive(
    "stored-package-inside.docx",
    "a whole package stored as a part, the last before the directory",
    "embedded documents are stored often; the inner end record is not the outer one",
    lambda: Zip([*entries(DOCX), Entry("word/embeddings/a.xlsx", pack(xlsx()), STORED)]).bytes(),
)
archive(
    "signature-in-data.docx",
    "a stored part full of signatures",
    "bytes of a part are its own business",
    lambda: Zip(
        [Entry("word/a.bin", (b"PK\x03\x04PK\x01\x02PK\x05\x06" + bytes(22)) * 20, STORED), *entries(DOCX)]
    ).bytes(),
)
archive(
    "many-entries.xlsx",
    "300 parts of one byte",
    "presentations have thousands of pictures",
    lambda: pack([*xlsx(), *[(f"xl/media/{at}.bin", b"x") for at in range(300)]]),
    "xlsx",
)


def flushed(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    pieces = [packer.compress(data[at : at + 100]) + packer.flush(zlib.Z_SYNC_FLUSH) for at in range(0, len(data), 100)]
    return b"".join(pieces) + packer.flush()


def shared_start():
    """The first entry was taken out of the directory and left in the file."""
    whole = Zip(entries([("old/part.xml", b"<gone/>" * 20), *DOCX]))
    first = len(b"PK\x03\x04" + bytes(26)) + len("old/part.xml") + len(whole.entries[0].packed())
    return Zip(whole.entries[1:], before=whole.bytes()[:first], absolute=True).bytes()


flag(
    "odd/leading-slashes.docx",
    "docx",
    "unsafe-name",
    SMALL + "names that begin with a slash",
    "readers drop the slash, and an unpacker without care would write to the root folder",
    lambda: pack([("/" + name, data) for name, data in DOCX]),
)
flag(
    "odd/name-that-climbs.docx",
    "docx",
    "unsafe-name",
    SMALL + "and an entry `../../evil.sh`",
    "opens, and an unpacker without care would write elsewhere",
    lambda: pack([*DOCX, ("../../evil.sh", b"echo")]),
)
flag(
    "odd/name-with-drive.xlsx",
    "xlsx",
    "unsafe-name",
    SMALL + "and an entry `C:\\evil.bat`",
    "opens, and an unpacker without care would write elsewhere",
    lambda: pack([*xlsx(), ("C:\\evil.bat", b"echo")]),
)
flag(
    "odd/link.docx",
    "docx",
    "unsafe-name",
    SMALL + "and a symbolic link",
    "opens, and an unpacker without care would follow it",
    lambda: Zip(
        [*entries(DOCX), Entry("word/link", b"/etc/passwd", central=dict(host=3, attributes=0o120777 << 16))]
    ).bytes(),
)
flag(
    "odd/archive-before.docx",
    "docx",
    "prepended-bytes",
    "two small packages in a row; the last rules",
    "opens as the last one (APPNOTE: the end record is searched from the end), and hides the first",
    lambda: pack(DOCX, before=pack(xlsx())),
)
flag(
    "odd/entry-taken-out.docx",
    "docx",
    "prepended-bytes",
    SMALL + "whose first entry is no longer in the directory",
    "editors that change archives in place leave it; opens, and hides bytes",
    shared_start,
)
flag(
    "odd/inflates-300-fold.docx",
    "docx",
    "high-ratio",
    SMALL + "and a part of 2 MB of spaces",
    "a blank picture can do it; worth a word",
    lambda: pack([*DOCX, ("word/media/blank.bin", b" " * 2_000_000)]),
)
