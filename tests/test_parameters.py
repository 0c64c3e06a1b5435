"""Parameters keep the types that their notebook declares, and profiles and overrides set them (trap 25)."""

from pathlib import Path

import nbformat
import pytest

from photonlab import paths
from photonlab.errors import UserError
from photonlab.lab.publish import execution, parameters, profiles

FIXTURES = Path(__file__).parent / "notebooks"
LIMITS = {name: {"limits": {"cell_seconds": 60}} for name in profiles.NAMES}
READ_ALL = 'count = 3\nrate = 0.5\nsymbol = "AAPL"\nitch = ""\nfast = True\nsizes = [1, 8]'


def write_notebook(path, *cells):
    """A notebook of code cells; the first is the parameters cell."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    if cells:
        book.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(book, path)
    return path


@pytest.mark.parametrize("text", ["010", "NAN", "1e6", "True", "None", "", "a,b", "'x'", "inf"])
def test_text_stays_text(text):
    assert parameters.fit("symbol", "AAPL", text) == text


@pytest.mark.parametrize(
    ("default", "text", "expected"),
    [
        (1, "1e6", 1_000_000),
        (1, "1_000", 1000),
        (1, "-5", -5),
        (1, "010", 10),
        (1, str(2**63 + 1), 2**63 + 1),
        (1.0, "1e-3", 0.001),
        (1.0, "2", 2.0),
        (1.0, 2, 2.0),
        (True, "off", False),
        ([1, 2], "4", [4]),
        ([1, 2], "1e3, 2", [1000, 2]),
        (["a"], "010,NAN", ["010", "NAN"]),
        ([], "x", ["x"]),
    ],
)
def test_values_that_fit(default, text, expected):
    value = parameters.fit("x", default, text)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("default", "value"),
    [
        (1, "1.5"), (1, "NAN"), (1, "inf"), (1, ""), (1, "0x10"), (1, "1e400"), (1, 1.0), (1, True), (1, [1]),
        (1.0, "nan"), (1.0, "inf"), (1.0, "x"), (1.0, True), (True, "maybe"), (True, 1), ("a", 1), ("a", None),
        ([1], "1,x"), ([1], 1), ([1], [1.5]),
    ],
)  # fmt: skip
def test_values_that_do_not_fit(default, value):
    with pytest.raises(UserError, match=r"^x: expected"):
        parameters.fit("x", default, value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a = 1\nb = 2 * a", "b is derived"),
        ("import os", "only 'name = literal'"),
        ("a = b = 1", "only 'name = literal'"),
        ("a, b = 1, 2", "only 'name = literal'"),
        ("a += 1", "only 'name = literal'"),
        ("a: int", "only 'name = literal'"),
        ("print(1)", "only 'name = literal'"),
        ("a = None", "neither"),
        ("a = {'x': 1}", "neither"),
        ("a = [1, 'x']", "neither"),
        ("a = 1\na = 2", "set twice"),
        ("a = (", "not Python"),
        ("a = 10**6", "derived"),
        ("a = f'{1}'", "derived"),
    ],
)
def test_the_parameters_cell_holds_literals_only(tmp_path, source, words):
    with pytest.raises(UserError, match=words):
        parameters.declared(write_notebook(tmp_path / "book.ipynb", source))


def test_declarations_are_those_that_papermill_sees():
    import papermill

    seen = papermill.inspect_notebook(FIXTURES / "green.ipynb")
    assert list(parameters.declared(FIXTURES / "green.ipynb")) == list(seen)


def test_a_misspelt_or_untagged_parameter_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(UserError, match="no parameter 'cuont'; it has: count"):
        execution.run_notebook(FIXTURES / "green.ipynb", {"cuont": 1}, tmp_path / "out")
    with pytest.raises(UserError, match="0 cells have the tag"):
        execution.run_notebook(FIXTURES / "red-untagged.ipynb", {"count": 1}, tmp_path / "out")
    with pytest.raises(UserError, match="double is derived"):
        execution.run_notebook(FIXTURES / "red-derived.ipynb", {}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\x00\x01", '{"nbformat": 4, "cells": 3}'])
def test_a_file_that_is_no_notebook(tmp_path, content):
    path = tmp_path / "book.ipynb"
    path.write_text(content)
    with pytest.raises(UserError, match=r"book\.ipynb: "):
        parameters.declared(path)


# --------------------------------------------------------------------------------------------------- profiles


def test_the_profiles_of_the_project_fit_its_notebooks():
    """Every entry names a notebook and a parameter that exist, with a value of the declared type."""
    notebooks = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    names = {path.stem for path in notebooks}
    for name, profile in profiles.load().items():
        assert set(profile) - {"limits"} <= names, name
        profiles.resolve(name, notebooks)
        assert profiles.cell_seconds(name) > 0


def test_overrides_win_over_the_profile(tmp_path):
    book = write_notebook(tmp_path / "02-book.ipynb", READ_ALL)
    mine = LIMITS | {"smoke": {"02-book": {"count": 7, "symbol": "X"}}}
    given = profiles.overrides(["02.count=1e3", "02-book.symbol=010", "02.rate=1", "02.rate=2"])
    got = profiles.resolve("smoke", [book], given=given, profiles=mine)
    assert got == {"02-book": {"count": 1000, "symbol": "010", "rate": 2.0}}


def test_itch_goes_to_every_notebook_that_can_read_a_file(tmp_path):
    reads = write_notebook(tmp_path / "reads.ipynb", READ_ALL)
    other = write_notebook(tmp_path / "other.ipynb", "n = 1")
    file = tmp_path / "day.itch"
    got = profiles.resolve("quick", [reads, other], itch=file, profiles=LIMITS)
    assert got == {"reads": {"itch": str(file)}, "other": {}}
    with pytest.raises(UserError, match="--itch: none of other"):
        profiles.resolve("quick", [other], itch=file, profiles=LIMITS)


@pytest.mark.parametrize("text", ["", "x", "x=1", "=1", ".x=1", "x.=1", "02.count"])
def test_override_of_another_form(text):
    with pytest.raises(UserError, match="not of the form"):
        profiles.overrides([text])


def test_names_may_be_cut_short_while_they_are_clear():
    stems = ["01-parser", "02-order-book", "02-other"]
    assert profiles.match("01", stems) == "01-parser"
    assert profiles.match("02-order-book.ipynb", stems) == "02-order-book"
    for word in ("02", "03", ""):
        with pytest.raises(UserError, match="notebook '"):
            profiles.match(word, stems)


def test_damaged_profiles(tmp_path):
    file = tmp_path / "profiles.toml"
    file.write_text("smoke = [")
    with pytest.raises(UserError, match=r"profiles\.toml"):
        profiles.load(file)
    file.write_text("[smoke.limits]\ncell_seconds = 1")
    with pytest.raises(UserError, match="expected smoke, quick, full"):
        profiles.load(file)
