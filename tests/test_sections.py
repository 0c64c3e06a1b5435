"""Every section of the whitepaper has its parts: claim, test, evidence, what it means, what would change the answer."""

import ast
import itertools
import re

import nbformat
import pytest

from photonlab import paths
from photonlab.lab.judge import claims

PUBLISHED, TESTED, CHANGES = "**Published.**", "**How it is tested.**", "**What would change the answer.**"
CLAIM = re.compile(r"\b[A-Z]\d{1,2}\b")
NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("0*.ipynb"))

EXCEPTIONS = {
    ("00-machine", "The machine"): "facts, no measurement",
    ("00-machine", "Checks"): "checks of the measurement before it",
    ("01-parser", "The messages"): "what the messages are, no measurement",
    ("02-order-book", "The input"): "what goes in, no measurement",
}
"""Sections that are not about a result, and why."""

ARITHMETIC = {("02-order-book", "R4"), ("07-tick-to-trade", "T9")}
"""Claims for which the evidence is a sum in the text."""


class Section:
    """A heading and what stands below it, up to the next heading."""

    def __init__(self, notebook, level, title):
        self.notebook, self.level, self.title = notebook, level, title
        self.prose, self.code, self.below = "", "", None

    @property
    def claims(self):
        return [word for word in CLAIM.findall(self.title) if word in claims.by_id()]

    @property
    def key(self):
        return self.notebook, re.sub(r" \(claims? .*\)", "", self.title)

    def called(self, method):
        """First arguments of the calls ``nb.method(…)``."""
        calls = [node for node in ast.walk(ast.parse(self.code)) if isinstance(node, ast.Call)]
        return [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == method]


def sections_of(path):
    """The sections of a notebook, below its title."""
    found = []
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code":
            found[-1].code += cell.source + "\n"
            continue
        before, *parts = re.split(r"(?m)^(#+) (.*)$", cell.source)
        if found:
            found[-1].prose += before
        for level, title, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            found.append(Section(path.stem, len(level), title))
            found[-1].prose += text
    for one, after in itertools.pairwise(found):
        one.below = after if after.level > one.level else None
    return found[1:]


ALL = [one for path in NOTEBOOKS for one in sections_of(path) if one.code.strip() and one.key not in EXCEPTIONS]


@pytest.mark.parametrize("section", ALL, ids=lambda one: f"{one.notebook}: {one.title}")
def test_a_section_has_its_parts(section):
    if section.claims:
        assert PUBLISHED in section.prose, "the published claim"
    assert TESTED in section.prose, "how it is tested"
    closing = section.prose + (section.below.prose if section.below else "")  # or at the end of its first part
    assert CHANGES in closing, "what would change the answer"
    order = [section.prose.index(part) for part in (PUBLISHED, TESTED, CHANGES) if part in section.prose]
    assert order == sorted(order)
    assert section.called("say") or "**What it means.**" in section.prose, "what it means here"
    shown = section.called("table") or section.called("figure")
    sums = {(section.notebook, claim) for claim in section.claims} & ARITHMETIC
    assert shown or sums or len(section.called("say")) + len(section.called("record")) >= 2, "evidence"


def test_exceptions_are_needed():
    keys = {one.key for path in NOTEBOOKS for one in sections_of(path)}
    assert set(EXCEPTIONS) <= keys
    for path in NOTEBOOKS:
        for one in sections_of(path):
            parts = TESTED in one.prose and CHANGES in one.prose
            assert one.key not in EXCEPTIONS or not parts or not one.called("say"), one.title


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_claim_is_recorded_below_a_heading_that_names_it(path):
    """So the link of a verdict leads to the text about it, and not to a neighbour's."""
    everything = sections_of(path)
    named = {claim for one in everything for claim in one.claims}
    for one in everything:
        calls = [call.args[0] for call in one.called("record") if call.args]
        recorded = {arg.value for arg in calls if isinstance(arg, ast.Constant) and arg.value}
        assert recorded <= named, f"{one.title}: {sorted(recorded - named)}"


@pytest.mark.parametrize("path", [*NOTEBOOKS, paths.NOTEBOOKS / "99-verdicts.ipynb"], ids=lambda path: path.stem)
def test_a_notebook_begins_with_its_question(path):
    first = nbformat.read(path, 4).cells[0]
    assert first.cell_type == "markdown" and first.source.startswith("# ")
    text = first.source.partition("\n")[2].strip()
    assert len(text) > 100, "what is asked, and by what it is answered"
