"""Writes compound files (MS-CFB), the container of older Office and of encrypted packages.

Guarantees: version 3 with sectors of 512 bytes or version 4 with 4096; streams below 4096 bytes go to the mini stream,
as the standard wants it.
Does not do: storages within storages, files beyond the 109 table sectors of the header, nor, in `streams_last`, a table
or directory of more than one sector.
"""

import struct

MAGIC = bytes.fromhex("d0cf11e0a1b11ae1")
FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
MINI_BELOW, MINI_BYTES = 4096, 64
# Where the header says which sectors come first.
HEAD_FIELDS = {"table": 76, "directory": 48, "mini table": 60}


def padded(data, size):
    return data + bytes(-len(data) % size)


def entry(name, kind, start, size, child=FREE, right=FREE):
    """A directory entry; siblings hang to the right of each other, which is a tree, if an ugly one."""
    units = (name + "\0").encode("utf-16-le")
    out = units.ljust(64, b"\0") + struct.pack("<HBB", len(units), kind, 1)
    out += struct.pack("<III", FREE, right, child) + bytes(36)
    return out + struct.pack("<IQ", start, size)


def table_of(numbers, size):
    """Numbers of sectors; what is left of the last sector is free."""
    data = b"".join(struct.pack("<I", number) for number in numbers)
    return data + b"\xff" * (-len(data) % size)


class Writer:
    def __init__(self, sector_bytes):
        self.size = sector_bytes
        self.sectors = []
        self.table = []

    def add(self, data):
        """Appends a stream; says where its chain begins."""
        if not data:
            return END
        first = len(self.sectors)
        data = padded(data, self.size)
        count = len(data) // self.size
        self.sectors += [data[at * self.size : (at + 1) * self.size] for at in range(count)]
        self.table += [first + at + 1 for at in range(count - 1)] + [END]
        return first


def compound(streams, sector_bytes=512):
    """A compound file of (name, bytes) pairs."""
    writer = Writer(sector_bytes)
    mini, mini_table, placed = b"", [], []
    for name, data in streams:
        if len(data) >= MINI_BELOW:
            placed.append((name, writer.add(data), len(data)))
            continue
        first, count = len(mini_table), -(-len(data) // MINI_BYTES)
        mini += padded(data, MINI_BYTES)
        mini_table += [first + at + 1 for at in range(count - 1)] + [END] if count else []
        placed.append((name, first if count else END, len(data)))
    mini_at = writer.add(mini)
    mini_table_at = writer.add(table_of(mini_table, sector_bytes))
    entries = [entry("Root Entry", 5, mini_at, len(mini), child=1 if placed else FREE)]
    for number, (name, start, size) in enumerate(placed, 1):
        entries.append(entry(name, 2, start, size, right=number + 1 if number < len(placed) else FREE))
    blank = bytes(68) + struct.pack("<III", FREE, FREE, FREE) + bytes(48)
    per_sector = sector_bytes // 128
    entries += [blank] * (-len(entries) % per_sector)
    directory_at = writer.add(b"".join(entries))
    return finish(writer, directory_at, len(entries) // per_sector, mini_table_at, len(mini_table))


def finish(writer, directory_at, directory_sectors, mini_table_at, mini_count):
    per_sector = writer.size // 4
    table_sectors = 1
    while table_sectors * per_sector < len(writer.sectors) + table_sectors:
        table_sectors += 1
    table_at = len(writer.sectors)
    numbers = writer.table + [TABLE] * table_sectors
    table = table_of(numbers, writer.size)
    is_wide = writer.size == 4096
    header = MAGIC + bytes(16) + struct.pack("<HHHHH", 0x3E, 4 if is_wide else 3, 0xFFFE, 12 if is_wide else 9, 6)
    header += bytes(6) + struct.pack(
        "<IIIII", directory_sectors if is_wide else 0, table_sectors, directory_at, 0, MINI_BELOW
    )
    header += struct.pack("<IIII", mini_table_at, 1 if mini_count else 0, END, 0)
    header += b"".join(struct.pack("<I", table_at + at) for at in range(table_sectors)).ljust(436, b"\xff")
    return padded(header, writer.size) + b"".join(writer.sectors) + table


def streams_last(streams):
    """The same file with table and directory first, so that what is cut off at the end is of the streams."""
    whole = compound(streams)
    sectors = [whole[at : at + 512] for at in range(512, len(whole), 512)]
    ahead = [at for at in HEAD_FIELDS.values() if struct.unpack_from("<I", whole, at)[0] < len(sectors)]
    first = [struct.unpack_from("<I", whole, at)[0] for at in ahead]
    order = first + [at for at in range(len(sectors)) if at not in first]
    place = {old: new for new, old in enumerate(order)}
    moved = [FREE] * 128
    for old, following in enumerate(struct.unpack("<128I", sectors[-1])[: len(sectors)]):
        moved[place[old]] = place.get(following, following)
    header, directory = bytearray(whole[:512]), bytearray(
        sectors[struct.unpack_from("<I", whole, HEAD_FIELDS["directory"])[0]]
    )
    for at in ahead:
        struct.pack_into("<I", header, at, place[struct.unpack_from("<I", whole, at)[0]])
    for at in range(0, 512, 128):
        start, size = struct.unpack_from("<II", directory, at + 116)
        if directory[at + 66] == 5 and size or size >= MINI_BELOW:
            struct.pack_into("<I", directory, at + 116, place[start])
    changed = {"table": struct.pack("<128I", *moved), "directory": bytes(directory)}
    by_sector = {struct.unpack_from("<I", whole, HEAD_FIELDS[name])[0]: data for name, data in changed.items()}
    return bytes(header) + b"".join(by_sector.get(old, sectors[old]) for old in order)
