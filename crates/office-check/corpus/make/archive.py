"""Writes ZIP archives field by field, so that each can be odd or wrong in exactly one way.

Guarantees: what is not said is as a good writer does it; the same call gives the same bytes.
Does not do: read archives (but for `entries_of`, which takes a good one apart to be written anew).
"""

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass, field

STORED, DEFLATED = 0, 8
WIDE = 0xFFFFFFFF


def deflate(data, level=6, strategy=zlib.Z_DEFAULT_STRATEGY):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    return packer.compress(data) + packer.flush()


def extra(kind, payload):
    return struct.pack("<HH", kind, len(payload)) + payload


def wide_extra(*values):
    """The zip64 extra field (APPNOTE 4.5.3)."""
    return extra(1, b"".join(struct.pack("<Q", value) for value in values))


@dataclass
class Entry:
    name: str | bytes
    data: bytes = b""
    method: int = DEFLATED
    level: int = 6
    flags: int = 0
    body: bytes | None = None
    """What is written instead of the packed data."""
    local: dict = field(default_factory=dict)
    """Fields of the local header that differ: name, flags, method, crc, packed, size, extra, version."""
    central: dict = field(default_factory=dict)
    """The same of the directory's record, and: host, attributes, offset, disk, comment."""
    behind: bytes = b""
    """The descriptor, or anything else between this entry and the next."""
    before: bytes = b""

    def fields(self):
        name = self.name.encode() if isinstance(self.name, str) else self.name
        body = self.packed()
        return dict(
            name=name,
            flags=self.flags,
            method=self.method,
            crc=zlib.crc32(self.data),
            packed=len(body),
            size=len(self.data),
            extra=b"",
            version=20,
        )

    def packed(self):
        if self.body is not None:
            return self.body
        return self.data if self.method == STORED else deflate(self.data, self.level)

    def both(self, **changes):
        self.local.update(changes)
        self.central.update(changes)
        return self

    def streamed(self, signature=b"PK\x07\x08", size="<I"):
        """Sizes and checksum behind the bytes (APPNOTE 4.3.9)."""
        known = self.fields()
        self.behind = signature + struct.pack("<I", known["crc"])
        self.behind += struct.pack(size, known["packed"]) + struct.pack(size, known["size"])
        self.local.update(crc=0, packed=0, size=0, flags=8)
        self.central.update(flags=8)
        return self


def header(known):
    return struct.pack(
        "<HHHIIIIHH",
        known["version"],
        known["flags"],
        known["method"],
        0x00210000,
        known["crc"],
        known["packed"],
        known["size"],
        len(known["name"]),
        len(known["extra"]),
    )


def local_header(entry):
    known = entry.fields() | entry.local
    return b"PK\x03\x04" + header(known) + known["name"] + known["extra"]


def record(entry, offset):
    known = entry.fields() | dict(host=0, attributes=0, offset=offset, disk=0, comment=b"") | entry.central
    out = b"PK\x01\x02" + struct.pack("<BB", 20, known["host"]) + header(known)
    out += struct.pack("<HHHII", len(known["comment"]), known["disk"], 0, known["attributes"], known["offset"])
    return out + known["name"] + known["extra"] + known["comment"]


@dataclass
class Zip:
    entries: list
    before: bytes = b""
    absolute: bool = False
    """Whether offsets count the bytes before."""
    comment: bytes = b""
    after: bytes = b""
    gap: bytes = b""
    """Between the directory and its end record."""
    reverse: bool = False
    zip64: bool = False
    count: int | None = None
    disk: int = 0
    directory_at: int | None = None

    def bytes(self):
        out = self.before
        origin = 0 if self.absolute else len(out)
        records = []
        for entry in self.entries:
            out += entry.before
            records.append(record(entry, len(out) - origin))
            out += local_header(entry) + entry.packed() + entry.behind
        directory = b"".join(reversed(records) if self.reverse else records)
        at = len(out) - origin if self.directory_at is None else self.directory_at
        out += directory + self.gap
        return out + self.end(at, len(directory), len(out) - origin) + self.comment + self.after

    def end(self, at, size, wide_at):
        count = len(self.entries) if self.count is None else self.count
        out = b""
        if self.zip64:
            out += b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, at)
            out += b"PK\x06\x07" + struct.pack("<IQI", 0, wide_at, 1)
            count, size, at = 0xFFFF, WIDE, WIDE
        return out + b"PK\x05\x06" + struct.pack("<HHHHIIH", self.disk, 0, count, count, size, at, len(self.comment))


def pack(parts, **how):
    """An archive of (name, data) pairs."""
    return Zip([Entry(name, data) for name, data in parts], **how).bytes()


def entries_of(data):
    """The (name, data) pairs of a good archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]
