"""Packages that somebody unpacked and packed again: Info-ZIP, 7-Zip, bsdtar, `jar`, and Python to a pipe.

Guarantees: the parts are those of a whole document; only the archive around them differs. LibreOffice opens all of these.
Does not do: choose odd options; these are what each program does when nothing is said.
"""

import io
import pathlib
import subprocess
import tempfile
import zipfile

from archive import entries_of
from recipe import accept

CORPUS = pathlib.Path(__file__).resolve().parent.parent


def unpacked(source, folder):
    for name, data in entries_of((CORPUS / source).read_bytes()):
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def packed_by(source, *command):
    """Packs with a program that writes `out.zip`, or to a pipe."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as inside:
        unpacked(source, inside)
        target = f"{folder}/out.zip"
        names = sorted(path.name for path in pathlib.Path(inside).iterdir())
        arguments = [target if word == "OUT" else word for word in command]
        ran = subprocess.run([*arguments, *names], cwd=inside, check=True, capture_output=True, timeout=60)
        return ran.stdout if "-" in command else pathlib.Path(target).read_bytes()


class Pipe(io.RawIOBase):
    """Takes bytes and cannot go back, so sizes can only follow the data."""

    def __init__(self):
        self.taken = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.taken += data
        return len(data)


def streamed(source):
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries_of((CORPUS / source).read_bytes()):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return bytes(pipe.taken)


WHY = "unpacked and packed again by a person; LibreOffice opens it"
for name, source, kind in [
    ("docx", "whole/report.docx", "docx"),
    ("xlsx", "whole/costs.xlsx", "xlsx"),
    ("odt", "whole/odfpy.odt", "odt"),
]:
    accept(
        f"whole/infozip.{name}",
        kind,
        f"`{source}` packed again by Info-ZIP `zip -r`",
        WHY,
        lambda source=source: packed_by(source, "zip", "-qr", "OUT"),
    )
    accept(
        f"whole/7zip.{name}",
        kind,
        f"`{source}` packed again by `7z a -tzip`",
        WHY,
        lambda source=source: packed_by(source, "7z", "a", "-tzip", "OUT"),
    )
    accept(
        f"whole/bsdtar.{name}",
        kind,
        f"`{source}` packed again by `bsdtar -a -cf`",
        WHY,
        lambda source=source: packed_by(source, "bsdtar", "-a", "-cf", "OUT"),
    )
    accept(
        f"whole/jar.{name}",
        kind,
        f"`{source}` packed again by `jar cMf`",
        WHY,
        lambda source=source: packed_by(source, "jar", "cMf", "OUT"),
    )
    accept(
        f"whole/streamed.{name}",
        kind,
        f"`{source}` packed again by Python's zipfile to a pipe: descriptors",
        WHY,
        lambda source=source: streamed(source),
    )
accept(
    "whole/infozip-stored-piped.docx",
    "docx",
    "`whole/report.docx` through `zip -0r - …`: stored, to a pipe",
    WHY,
    lambda: packed_by("whole/report.docx", "zip", "-q0r", "-"),
)
