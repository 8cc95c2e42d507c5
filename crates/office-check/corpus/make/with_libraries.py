"""What the libraries write that people generate documents with: python-docx, openpyxl, XlsxWriter, python-pptx, odfpy,
msoffcrypto-tool, rust_xlsxwriter.

Guarantees: every file is as its library left it. Does not do: pin their versions; README.md says which they were.
"""

import io
import pathlib
import subprocess
import tempfile

import docx
import msoffcrypto.format.ooxml
import odf.opendocument
import odf.table
import odf.text
import openpyxl
import openpyxl.chart
import pptx
import xlsxwriter

from archive import pack
from parts import sentences
from parts import xlsx as small_xlsx
from recipe import accept
from sources import png


def saved(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word(with_more=False):
    document = docx.Document()
    document.add_heading("Report", 1)
    for line in sentences(30):
        document.add_paragraph(line)
    if with_more:
        document.add_picture(io.BytesIO(png()))
        document.add_table(3, 3).cell(1, 1).text = "середина"
        document.add_page_break()
    return saved(document)


def book(write_only=False, with_chart=False):
    workbook = openpyxl.Workbook(write_only=write_only)
    sheet = workbook.create_sheet("Costs") if write_only else workbook.active
    for row, line in enumerate(sentences(60), 1):
        sheet.append([line, row, row / 7, f"=B{row}*2"])
    if with_chart:
        chart = openpyxl.chart.LineChart()
        chart.add_data(openpyxl.chart.Reference(sheet, min_col=2, min_row=1, max_row=60))
        sheet.add_chart(chart, "F2")
    return saved(workbook)


def book_of_xlsxwriter(zip64=False, options=None):
    out = io.BytesIO()
    workbook = xlsxwriter.Workbook(out, options or {})
    if zip64:
        workbook.use_zip64()
    sheet = workbook.add_worksheet()
    for row, line in enumerate(sentences(60)):
        sheet.write(row, 0, line)
        sheet.write_number(row, 1, row * 1.25)
    sheet.write_comment("A1", "a note, which Excel keeps as VML")
    workbook.close()
    return out.getvalue()


def deck():
    presentation = pptx.Presentation()
    for number in range(2):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = f"Slide {number + 1}"
        slide.placeholders[1].text = "\n".join(sentences(4))
    return saved(presentation)


def text_of_odfpy():
    document = odf.opendocument.OpenDocumentText()
    for line in sentences(30):
        document.text.addElement(odf.text.P(text=line))
    return saved(document)


def sheet_of_odfpy():
    document = odf.opendocument.OpenDocumentSpreadsheet()
    table = odf.table.Table(name="Costs")
    for line in sentences(20):
        row, cell = odf.table.TableRow(), odf.table.TableCell(valuetype="string")
        cell.addElement(odf.text.P(text=line))
        row.addElement(cell)
        table.addElement(row)
    document.spreadsheet.addElement(table)
    return saved(document)


def locked(data):
    out = io.BytesIO()
    msoffcrypto.format.ooxml.OOXMLFile(io.BytesIO(data)).encrypt("secret", out)
    return out.getvalue()


def book_of_rust():
    """A program that is thrown away again."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "src").mkdir()
        (root / "Cargo.toml").write_text(
            '[package]\nname = "book"\nversion = "0.1.0"\nedition = "2021"\n'
            '[dependencies]\nrust_xlsxwriter = "0.80"\n'
        )
        (root / "src/main.rs").write_text("""
fn main() -> Result<(), rust_xlsxwriter::XlsxError> {
    let mut book = rust_xlsxwriter::Workbook::new();
    let sheet = book.add_worksheet();
    for row in 0..60 {
        sheet.write_string(row, 0, &format!("row {row} of sixty"))?;
        sheet.write_number(row, 1, f64::from(row) * 1.25)?;
    }
    book.save("book.xlsx")
}
""")
        subprocess.run(["cargo", "run", "--quiet", "-j1"], cwd=folder, check=True, timeout=500)
        return (root / "book.xlsx").read_bytes()


WHY = "what a library writes"
accept("whole/python-docx.docx", "docx", "python-docx: a heading and paragraphs", WHY, word)
accept("whole/python-docx-picture.docx", "docx", "python-docx: a picture and a table", WHY, lambda: word(True))
accept("whole/openpyxl.xlsx", "xlsx", "openpyxl: strings, numbers, formulas", WHY, book)
accept("whole/openpyxl-streamed.xlsx", "xlsx", "openpyxl in write-only mode", WHY, lambda: book(write_only=True))
accept("whole/openpyxl-chart.xlsx", "xlsx", "openpyxl: a chart", WHY, lambda: book(with_chart=True))
accept("whole/xlsxwriter.xlsx", "xlsx", "XlsxWriter: with a comment, so with VML", WHY, book_of_xlsxwriter)
accept(
    "whole/xlsxwriter-zip64.xlsx",
    "xlsx",
    "XlsxWriter with `use_zip64`",
    "zip64 where it is not needed is allowed",
    lambda: book_of_xlsxwriter(zip64=True),
)
accept(
    "whole/xlsxwriter-constant-memory.xlsx",
    "xlsx",
    "XlsxWriter with `constant_memory`",
    WHY,
    lambda: book_of_xlsxwriter(options={"constant_memory": True}),
)
accept("whole/rust-xlsxwriter.xlsx", "xlsx", "rust_xlsxwriter 0.80, a program of ten lines", WHY, book_of_rust)
accept("whole/python-pptx.pptx", "pptx", "python-pptx: two slides of its own template", WHY, deck)
accept("whole/odfpy.odt", "odt", "odfpy: paragraphs", WHY, text_of_odfpy)
accept("whole/odfpy.ods", "ods", "odfpy: a sheet", WHY, sheet_of_odfpy)
accept(
    "whole/msoffcrypto.docx",
    "encrypted",
    "msoffcrypto-tool: agile encryption of a document of python-docx",
    "encrypted as a whole: nobody can look inside without the password",
    lambda: locked(word()),
)
accept(
    "whole/msoffcrypto.xlsx",
    "encrypted",
    "msoffcrypto-tool: agile encryption of a workbook of openpyxl",
    "encrypted as a whole",
    lambda: locked(book()),
)
accept(
    "odd/small-stream-outside.xlsx",
    "encrypted",
    "msoffcrypto-tool: a package of less than 4096 bytes",
    "the stream is whole, if where MS-CFB wants a large one",
    lambda: locked(pack(small_xlsx())),
)
