"""What LibreOffice writes of our sources, in every format it has a filter for, and with passwords.

Guarantees: every file is as LibreOffice left it. Needs `soffice` and, for passwords, Debian's python3-uno.
Does not do: give the same bytes twice; LibreOffice writes the time into its files. So these are made once and kept.
"""

import pathlib
import subprocess
import tempfile

import sources
from parts import sentences
from recipe import accept

SOURCES = {
    "report": ("fodt", sources.text),
    "costs": ("fods", sources.workbook),
    "slides": ("fodp", sources.presentation),
    "shapes": ("fodg", sources.drawing),
    "page": (
        "html",
        lambda: ("<html><body>" + "".join(f"<p>{line}" for line in sentences(20)) + "</body></html>").encode(),
    ),
    "list": ("csv", lambda: "\n".join(line.replace(": ", ",") for line in sentences(20)).encode()),
    "blank": ("fodt", lambda: sources.flat("text", "<office:text/>")),
    "blank-book": (
        "fods",
        lambda: sources.flat("spreadsheet", '<office:spreadsheet><table:table table:name="A"/></office:spreadsheet>'),
    ),
    "blank-slides": (
        "fodp",
        lambda: sources.flat("presentation", "<office:presentation><draw:page/></office:presentation>"),
    ),
}

# Name, kind, LibreOffice's filter where the extension alone would mean another one.
WANTED = [
    *[
        ("report", end, kind, name)
        for end, kind, name in [
            ("docx", "docx", ""),
            ("docm", "docm", "MS Word 2007 XML VBA"),
            ("dotx", "dotx", "MS Word 2007 XML Template"),
            ("odt", "odt", ""),
            ("ott", "odt", ""),
            ("fodt", "fodt", ""),
            ("doc", "doc", ""),
            ("rtf", "rtf", ""),
            ("pdf", "pdf", ""),
            ("epub", "epub", ""),
            ("html", "html", ""),
            ("txt", "txt", ""),
        ]
    ],
    *[
        ("costs", end, kind, name)
        for end, kind, name in [
            ("xlsx", "xlsx", "Calc MS Excel 2007 XML"),
            ("xlsm", "xlsm", "Calc MS Excel 2007 VBA XML"),
            ("ods", "ods", ""),
            ("ots", "ods", ""),
            ("fods", "fods", ""),
            ("xls", "xls", ""),
            ("csv", "csv", ""),
            ("pdf", "pdf", ""),
            ("html", "html", ""),
        ]
    ],
    *[
        ("slides", end, kind, name)
        for end, kind, name in [
            ("pptx", "pptx", ""),
            ("pptm", "pptm", "Impress MS PowerPoint 2007 XML VBA"),
            ("potx", "potx", ""),
            ("ppsx", "pptx", "Impress MS PowerPoint 2007 XML AutoPlay"),
            ("odp", "odp", ""),
            ("otp", "odp", ""),
            ("fodp", "fodp", ""),
            ("pdf", "pdf", ""),
        ]
    ],  # .ppt is in `odd_files`, without its picture of 440 KB
    ("shapes", "odg", "odg", ""),
    ("page", "docx", "docx", "MS Word 2007 XML"),
    ("page", "odt", "odt", "writer8"),
    ("list", "xlsx", "xlsx", ""),
    ("list", "ods", "ods", ""),
    ("blank", "docx", "docx", ""),
    ("blank", "odt", "odt", ""),
    ("blank", "doc", "doc", ""),
    ("blank", "rtf", "rtf", ""),
    ("blank-book", "xlsx", "xlsx", ""),
    ("blank-book", "ods", "ods", ""),
    ("blank-book", "xls", "xls", ""),
    ("blank-slides", "pptx", "pptx", ""),
    ("blank-slides", "odp", "odp", ""),
]

# Name, extension, kind and filter of what gets a password. What is encrypted as a whole does not show its kind.
LOCKED = [
    ("report", "odt", "odt", "writer8"),
    ("report", "docx", "encrypted", "MS Word 2007 XML"),
    ("report", "doc", "doc", "MS Word 97"),
    ("costs", "ods", "ods", "calc8"),
    ("costs", "xlsx", "encrypted", "Calc MS Excel 2007 XML"),
    ("costs", "xls", "xls", "MS Excel 97"),
    ("slides", "pptx", "encrypted", "Impress MS PowerPoint 2007 XML"),
    ("slides", "odp", "odp", "impress8"),
]


def convert(name, end, output_filter):
    source_end, source = SOURCES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"{name}.{source_end}")
        path.write_bytes(source())
        target = f"{end}:{output_filter}" if output_filter else end
        more = ["--infilter=HTML (StarWriter)"] if source_end == "html" else []
        subprocess.run(
            [
                "soffice",
                "--headless",
                f"-env:UserInstallation=file://{folder}/profile",
                *more,
                "--convert-to",
                target,
                "--outdir",
                f"{folder}/out",
                str(path),
            ],
            check=True,
            capture_output=True,
            timeout=180,
        )
        return pathlib.Path(folder, "out", f"{name}.{end}").read_bytes()


def lock(name, end, output_filter):
    source_end, source = SOURCES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"{name}.{source_end}")
        path.write_bytes(source())
        script = pathlib.Path(__file__).with_name("lock_with_uno.py")
        subprocess.run(
            ["/usr/bin/python3", str(script), str(path), f"{folder}/locked.{end}", output_filter],
            check=True,
            timeout=180,
        )
        return pathlib.Path(folder, f"locked.{end}").read_bytes()


# What is counted holds nothing; LibreOffice's own header is text in a sheet.
EMPTY = {"blank.docx", "blank.odt", "blank-book.ods", "blank-slides.pptx", "blank-slides.odp"}
for name, end, kind, output_filter in WANTED:
    accept(
        f"whole/{name}.{end}",
        kind,
        f"LibreOffice, from `sources.py`{': ' + output_filter if output_filter else ''}",
        "what a program writes",
        lambda name=name, end=end, by=output_filter: convert(name, end, by),
        "no-content" if f"{name}.{end}" in EMPTY else "",
    )
for name, end, kind, output_filter in LOCKED:
    accept(
        f"whole/{name}-locked.{end}",
        kind,
        f"LibreOffice with a password: {output_filter}",
        "a password is nobody's fault",
        lambda name=name, end=end, by=output_filter: lock(name, end, by),
    )
