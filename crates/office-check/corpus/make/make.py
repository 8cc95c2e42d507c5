"""Makes the corpus: `make.py [--only PREFIX]` writes the files; the table of verdicts and the README's list always.

Guarantees: a file that exists is not made again unless `--only` names it, because some programs write the time into
theirs; files of no recipe are told. Needs what README.md lists.
Does not do: check anything. The expected verdicts are in the recipes, written by people.
"""

import argparse
import importlib
import pathlib

import recipe

CORPUS = pathlib.Path(__file__).resolve().parent.parent
# In the order of the table; each adds its recipes.
MODULES = [
    "with_libreoffice",
    "with_libraries",
    "with_archivers",
    "odd_archives",
    "odd_packages",
    "odd_opendocument",
    "odd_files",
    "damaged_archives",
    "damaged_packages",
    "damaged_files",
]
LIST_BEGINS = "<!-- the list: written by make.py -->"


def write_files(only):
    for each in recipe.RECIPES:
        path = CORPUS / each.file
        is_wanted = each.file.startswith(only) if only is not None else not path.exists()
        if is_wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(each.make())
            print(f"{path.stat().st_size:>8}  {each.file}")


def write_tables():
    columns = ["file", "hint", "kind", "verdict", "findings", "why"]
    rows = [[each.file, each.hint, each.kind, each.verdict, each.findings, each.why] for each in recipe.RECIPES]
    lines = ["\t".join(row) for row in [columns, *rows]]
    (CORPUS / "verdicts.tsv").write_text("\n".join(lines) + "\n")
    readme = CORPUS / "README.md"
    text = readme.read_text().split(LIST_BEGINS)[0]
    listed = [f"| `{each.file}` | {each.how.replace('|', 'or')} |" for each in recipe.RECIPES]
    readme.write_text("\n".join([text + LIST_BEGINS, "", "| file | how |", "|---|---|", *listed]) + "\n")


def tell_strays():
    known = {each.file for each in recipe.RECIPES}
    found = {
        str(path.relative_to(CORPUS)) for kind in ("whole", "odd", "damaged") for path in (CORPUS / kind).glob("*")
    }
    for stray in sorted(found - known):
        print(f"no recipe: {stray}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", metavar="PREFIX", help="make these again, e.g. damaged/ or odd/zip64.docx")
    chosen = arguments.parse_args()
    for module in MODULES:
        importlib.import_module(module)
    write_files(chosen.only)
    write_tables()
    tell_strays()


main()
