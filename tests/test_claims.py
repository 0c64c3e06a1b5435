import re
import tomllib

import pytest

from photonlab import paths
from photonlab.lab.judge import claims, consistency, judging

EXPECTED = {"T": 12, "R": 14, "P": 14, "F": 10, "S": 11, "A": 7, "M": 4}
IDS = [f"{letter}{number}" for letter, count in EXPECTED.items() for number in range(1, count + 1)]
DESIGN = paths.ROOT.parent / "shared" / "design" / "claims.md"
LEDGER = claims.load()


def test_no_claim_is_dropped_and_none_invented():
    assert [claim.id for claim in LEDGER] == IDS


def design_rows():
    rows = re.findall(r"^\| ([TRPFSAM]\d+) \| (.*) \| (.*) \| (.*) \|$", DESIGN.read_text(encoding="utf-8"), re.M)
    return {row[0]: row[1:] for row in rows}


@pytest.mark.skipif(not DESIGN.is_file(), reason="the list of claims is not beside the project")
def test_ledger_has_every_row_of_the_design():
    assert list(design_rows()) == IDS


@pytest.mark.skipif(not DESIGN.is_file(), reason="the list of claims is not beside the project")
@pytest.mark.parametrize("name", IDS)
def test_kind_is_that_of_the_design(name):
    said, kinds = design_rows()[name][2], set(claims.by_id()[name].kind.split(" + "))
    wanted = {kind for kind in claims.KINDS if re.search(rf"(?<!not )\b{kind}\b", said)}
    if name == "T12":  # judged by a limit, where there is such a card at all
        wanted = {"absolute", "direction"}
    if name == "R12":  # "consistency" comes first; the rest of the cell is its arithmetic
        wanted = {"consistency"}
    if name == "P5":  # its refutation varies the cause
        wanted = {"ratio", "mechanism"}
    if name == "R6":
        wanted = {"absolute"}
    assert kinds == wanted


def numbers(text):
    found = re.findall(r"(?<![\w.^])\d[\d,]*(?:\.\d+)?", text)
    return {float(one.replace(",", "")) for one in found}


SCALES = (1, 1e3, 1e-3, 100)  # the design may say µs where the ledger says ns


@pytest.mark.skipif(not DESIGN.is_file(), reason="the list of claims is not beside the project")
@pytest.mark.parametrize("name", [name for name in IDS if claims.by_id()[name].published])
def test_every_published_figure_stands_in_the_design(name):
    said = numbers(" ".join(design_rows()[name]))
    implied = {0, 1, 2, 5}  # none, one, "two modes", cores of a map: words there, figures here
    for entry in claims.by_id()[name].published:
        for value in (entry.value, entry.upto):
            near = any(abs(value - scale * one) <= 1e-9 * value for one in said for scale in SCALES) if value else True
            known = SOURCE_ONLY.get(name, set())
            assert near or value in implied or value in known, f"{name}: {entry}"


SOURCE_ONLY = {
    "T9": {5},
    "R4": {410, 619, 474, 618, 620},
    "R12": {2097152, 64},
    "P6": {2.3059},
    "S6": {98.07, 35.87, 1.07},
    "S3": {3.05},
    "S4": {98.07},
    "S5": {98.07},
    "F6": {8451.11},
    "T4": {2330, 2430},
    "T6": {2330},
    "T12": {1000},
    "R3": {423285709},
}
"""Figures of the sources that the design's row does not repeat."""


def test_sources_are_named_and_every_claim_says_where():
    assert tuple(claims.sources()) == claims.SOURCES
    for claim in LEDGER:
        assert claim.source.endswith(".txt") and claim.section and claim.conditions
        assert len(claim.title) > 20 and not claim.title.endswith(".")


def test_experiments_of_this_issue_are_built_and_later_ones_say_where_they_belong():
    built = {"00-machine": {"M1", "M2", "M3"}, "01-parser": {"F2"}}
    built["02-order-book"] = {"R1", "R2", "R3", "R4", "R5", "R6", "R12", "R13", "R14", "F1", "F3", "F9", "F10"}
    built["04-pool"] = {"A1", "A2", "A3", "A4", "A5", "A6", "A7", "R7", "R9"}
    built["05-ring"] = {*(f"S{n}" for n in range(1, 12)), "P8", "P9", "M4"}
    built["06-feed"] = {f"P{n}" for n in range(1, 15) if n not in (8, 9)}
    built["07-tick-to-trade"] = {*(f"T{n}" for n in range(1, 10)), "T11"}
    built["08-instruments"] = {"T10", "T12"}
    found = {name: {claim.id for claim in LEDGER if claim.built and claim.notebook == name} for name in built}
    assert found == built
    later = {claim.notebook for claim in LEDGER if not claim.built}
    assert later == set()


def test_every_rule_is_known_and_every_rule_is_used():
    used = {check.rule for claim in LEDGER for check in claim.checks}
    assert used == set(judging.RULES) | set(consistency.RULES)


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)
def test_checks_name_figures_that_are_published(claim):
    measured = [check for check in claim.checks if check.rule in judging.RULES]
    assert bool(judging.wanted(claim)) == bool(measured)  # raises where a check names a figure that is not there
    if "consistency" in claim.kind:
        assert not measured
    if "ratio" in claim.kind:
        assert {check.rule for check in claim.checks} & {"ratio", "direction", "bound", "shares"}


def test_scorecard_is_complete():
    table = claims.by_id()["R2"].published
    names = {(entry.statistic, entry.variant) for entry in table}
    types, columns = (
        ("Add", "Execute", "Cancel", "Delete", "Replace"),
        ("avg", "min", "p50", "p90", "p99", "p99.9", "max"),
    )
    assert names == {(column, one) for column in columns for one in types} and len(table) == 35
    assert claims.by_id()["R2"].figure("max", "Add").value == 7_599_842


def test_figure_of_a_quotient_is_derived_where_it_is_not_published():
    hashes = claims.by_id()["F4"]
    assert hashes.figure("find", "identity / Fibonacci").value == pytest.approx(8451.11 / 3.52)
    assert claims.by_id()["F5"].figure("find", "identity / Fibonacci").value == 2399
    assert hashes.figure("find", "identity / nothing") is None
    assert hashes.figure("nothing", "identity") is None


def test_published_counts_of_the_day_stand_to_their_total():
    entries = {entry.variant: entry.value for entry in claims.by_id()["R3"].published}
    total = entries.pop("all messages")
    assert sum(entries.values()) == 417_079_760 < total == 423_285_709


ENTRY = {
    "id": "R1",
    "section": "s",
    "title": "t",
    "kind": "exact",
    "conditions": "",
    "notebook": "n",
    "built": True,
    "published": [{"statistic": "x", "value": 1, "unit": "1"}],
    "check": [{"rule": "exact", "statistic": "x"}],
}


def ledger(tmp_path, *entries):
    lines = ['[source.R]\nfile = "r.txt"\n']
    for entry in entries:
        lines.append("[[claim]]")
        for key, value in entry.items():
            text = str(value).replace("'", '"').replace("True", "true").replace('": ', '" = ')
            lines.append(
                f"{key} = " + (f'"{value}"' if isinstance(value, str) else re.sub(r'"(\w+)" =', r"\1 =", text))
            )
    path = tmp_path / "claims.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    tomllib.loads(path.read_text(encoding="utf-8"))
    return path


def test_ledger_of_the_test_is_itself_good(tmp_path):
    assert claims.load(ledger(tmp_path, ENTRY))[0].id == "R1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "guess"}, "unknown kind"),
        ({"id": "Z1"}, "letter of a source"),
        ({"id": "Rx"}, "letter of a source"),
        ({"verdict": "holds"}, "does not know"),
        ({"check": []}, "no check"),
        ({"published": [{"statistic": "x", "value": "much", "unit": "1"}]}, "not a number"),
    ],
)
def test_bad_entries_are_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        claims.load(ledger(tmp_path, ENTRY | change))


def test_missing_field_is_refused(tmp_path):
    with pytest.raises(ValueError, match="lacks \\['notebook'\\]"):
        claims.load(ledger(tmp_path, {key: value for key, value in ENTRY.items() if key != "notebook"}))


def test_repeated_id_is_refused(tmp_path):
    with pytest.raises(ValueError, match="twice"):
        claims.load(ledger(tmp_path, ENTRY, ENTRY))
