"""Runs side by side: what travels, ratios with their intervals, and a page that needs nothing from outside."""

import json
import math
import shutil

import pandas as pd
import pytest

from photonlab import cli, paths
from photonlab.errors import UserError
from photonlab.lab.judge import claims
from photonlab.lab.publish import compare, page_check, rundir
from tests import browser

REFERENCE = paths.DATA / "reference" / "quick"
needs_chromium = pytest.mark.skipif(browser.CHROMIUM is None, reason="chromium is missing: .ci/run installs it")


@pytest.fixture
def other(tmp_path):
    """The reference run as another machine would have had it: one ratio turned round, one figure twice as large."""
    folder = tmp_path / "other"
    shutil.copytree(REFERENCE, folder)
    frame = pd.read_csv(folder / "results.csv", keep_default_na=False, dtype=str).astype(object)
    turned = (frame["claim"] == "R8") & (frame["variant"] == "modulo / mask")
    frame.loc[turned, ["value", "low", "high"]] = ["0.5", "0.4", "0.6"]
    larger = (frame["claim"] == "F3") & (frame["value"] != "")
    frame.loc[larger, "value"] = frame.loc[larger, "value"].astype(float).mul(2).astype(str)
    frame.to_csv(folder / "results.csv", index=False)
    machine = json.loads((folder / "machine.json").read_text())
    machine["processor"]["model"] = "Another CPU"
    rundir.write_json(folder / "machine.json", machine)
    return folder


def test_what_travels():
    assert compare.travels(["holds", "holds in direction"]) == compare.TRAVELS
    assert compare.travels(["does not hold here", "inconsistent as published"]) == compare.TRAVELS
    assert compare.travels(["holds", "does not hold here", "too close to call"]) == compare.SPLITS
    assert compare.travels(["holds", "too close to call"]) == compare.UNSURE
    assert compare.travels(["holds", "not run"]) == compare.UNSURE
    assert compare.travels(["shown beside", "shown beside"]) == compare.BESIDE


def test_ratios_carry_their_intervals():
    def row(value, low=math.nan, high=math.nan, unit="ns"):
        return {"value": value, "low": low, "high": high, "unit": unit}

    found = compare.ratio(row(6.0, 5.0, 8.0), row(2.0, 1.0, 4.0))
    assert (found.value, found.low, found.high) == (3.0, 1.25, 8.0)
    assert compare.ratio(row(6.0), row(2.0)).low is None
    assert compare.ratio(row(6.0), row(2.0, unit="µs")) is None
    for bad in (None, math.nan, 0.0, -1.0):
        assert compare.ratio(row(bad), row(2.0)) is None


def test_two_runs(other):
    runs = compare.read([REFERENCE, other])
    groups = {row["claim"]: row for group in compare.lay_out(runs) for row in group["rows"]}
    assert set(groups) == set(claims.by_id())
    assert groups["R8"]["travels"] == compare.SPLITS
    assert [cell["verdict"] for cell in groups["R8"]["cells"]] == ["holds", "does not hold here"]
    page = compare.build([REFERENCE, other, REFERENCE])
    assert page_check.problems(page) == [] and "Another CPU" in page and "hold in one and not in another" in page
    assert page == compare.build([REFERENCE, other, REFERENCE])
    far = compare.figures(runs)[0]
    assert far["key"][:1] == ("R8",), "the farthest from the first run comes first"


def test_the_command(other, tmp_path, capsys):
    out = tmp_path / "new" / "page.html"
    assert cli.main(["compare", str(REFERENCE), str(other), "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out) and out.read_text().startswith("<!DOCTYPE html>")
    facts = rundir.read_facts(other)
    rundir.write_json(other / rundir.MARKER, facts | {"status": "failed", "failure": "03 failed in cell 2: x"})
    for arguments, words in (
        ([REFERENCE], "needs two runs or more"),
        ([REFERENCE, tmp_path / "none"], "no such folder"),
        ([REFERENCE, tmp_path], "not the folder of a photonlab run"),
        ([REFERENCE, other], "this run failed: 03 failed in cell 2"),
    ):
        assert cli.main(["compare", *map(str, arguments), "--out", str(out)]) == 2
        said = capsys.readouterr().err
        assert words in said and said.count("\n") == 1
    (other / "results.csv").unlink()
    rundir.write_json(other / rundir.MARKER, facts)
    with pytest.raises(UserError, match="the run is not whole"):
        compare.read([REFERENCE, other])


@needs_chromium
def test_in_a_browser(other, tmp_path):
    page = tmp_path / "compare.html"
    page.write_text(compare.build([REFERENCE, other]))
    shown = "[...document.querySelectorAll('.claim')].filter(r => r.getClientRects().length).length"
    with browser.Browser() as chromium:
        for width in (400, 800, 1400):
            chromium.resize(width, 900)
            chromium.open(page)
            assert chromium.requests() == [page.as_uri()] and chromium.complaints() == []
            assert chromium.run("document.documentElement.scrollWidth") <= width
        assert chromium.run(shown) == len(claims.load())
        chromium.run("document.getElementById('travels-2').click(); 0")
        assert 0 < chromium.run(shown) < 20


def test_three_runs_of_which_one_lacks_a_notebook(other, tmp_path):
    """Whatever a run lacks is undecided, never a verdict; each machine is named, and what does not travel is listed."""
    third = tmp_path / "third"
    shutil.copytree(REFERENCE, third)
    frame = pd.read_csv(third / "results.csv", keep_default_na=False, dtype=str)
    frame[frame["notebook"] != "06-feed"].to_csv(third / "results.csv", index=False)
    runs = compare.read([REFERENCE, other, third])
    rows = {row["claim"]: row for group in compare.lay_out(runs) for row in group["rows"]}
    for claim in claims.load():
        words = [cell["verdict"] for cell in rows[claim.id]["cells"]]
        assert len(words) == 3 and rows[claim.id]["travels"] == compare.travels(words)
        if claim.notebook == "06-feed" and words[2] == "not run":
            assert rows[claim.id]["travels"] == compare.UNSURE and not rows[claim.id]["cells"][2]["ratio"]
    assert rows["P3"]["cells"][2]["verdict"] == "not run"
    assert rows["R8"]["travels"] == compare.SPLITS, "turned round in one of three"
    page = compare.build([REFERENCE, other, third])
    assert "<p>Not alike: " in page and '<a href="#claim-R8">R8</a> (Masking' in page
    counted = [int(word) for word in compare.sentence(runs, compare.lay_out(runs)).split() if word.isdigit()]
    assert counted[0] == sum(counted[1:2] + counted[3:]) == len(claims.load())
    assert "× [" in page and f"of {runs[0].name}" in page
