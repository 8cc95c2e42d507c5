"""What a file of the corpus is: its bytes, how they were made, and the verdict they deserve.

Guarantees: a name is given once. Verdict and findings are written down beside the recipe, by a person, from the
standards and docs/findings.md; nothing here asks office-check.
Does not do: make anything by itself; the modules beside this one call `add`.
"""

from dataclasses import dataclass
from typing import Callable

ACCEPT, FLAG, REFUSE = "accept", "flag", "refuse"


@dataclass
class Recipe:
    file: str
    hint: str
    kind: str
    verdict: str
    findings: str
    how: str
    why: str
    make: Callable[[], bytes]


RECIPES: list[Recipe] = []


def add(file, kind, verdict, findings, how, why, make, hint=None):
    """`findings` are codes with spaces between; `hint` is the extension unless it is said."""
    assert all(recipe.file != file for recipe in RECIPES), file
    codes = ",".join(sorted(findings.split())) or "-"
    extension = hint if hint is not None else file.rsplit(".", 1)[-1]
    RECIPES.append(Recipe(file, extension, kind, verdict, codes, how, why, make))


def accept(file, kind, how, why, make, findings="", hint=None):
    add(file, kind, ACCEPT, findings, how, why, make, hint)


def flag(file, kind, findings, how, why, make, hint=None):
    add(file, kind, FLAG, findings, how, why, make, hint)


def refuse(file, kind, findings, how, why, make, hint=None):
    add(file, kind, REFUSE, findings, how, why, make, hint)
