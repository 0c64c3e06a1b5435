"""A run is kept as the reference only if it is whole."""

import json

import pytest

from photonlab import paths
from photonlab.errors import UserError
from photonlab.lab.publish import reference, rundir

NOTEBOOKS = {path.stem: {} for path in paths.NOTEBOOKS.glob("*.ipynb")}
FACTS = {"photonlab": "1", "status": "complete", "profile": "quick", "input": "", "notebooks": NOTEBOOKS}


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "out"
    (folder / "figures").mkdir(parents=True)
    for name in ("results.csv", "machine.json", "results.parquet", "figures/a.svg", "figures/b.svg", "figures/c.png"):
        (folder / name).write_text(name)
    rundir.write_json(folder / rundir.MARKER, FACTS)
    return folder


def test_a_whole_run_is_kept_and_old_charts_go(run, tmp_path):
    rows, figures = tmp_path / "reference", tmp_path / "figures"
    figures.mkdir()
    (figures / "old.svg").write_text("old")
    kept = reference.keep(run, rows, figures)
    assert sorted(path.name for path in figures.iterdir()) == ["a.svg", "b.svg"]
    assert sorted(path.name for path in rows.iterdir()) == ["machine.json", "results.csv", "run.json"]
    assert len(kept) == 5 and (rows / "results.csv").read_text() == "results.csv"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": "failed"}, "its status is 'failed'"),
        ({"profile": "smoke"}, "its profile is 'smoke'"),
        ({"input": "day.itch"}, "its input is a file"),
        ({"notebooks": {name: {} for name in NOTEBOOKS if name != "06-feed"}}, "it lacks 06-feed"),
    ],
)
def test_what_is_no_whole_run_is_refused(run, tmp_path, change, words):
    rundir.write_json(run / rundir.MARKER, FACTS | change)
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "old.svg").write_text("old")
    with pytest.raises(UserError, match=words):
        reference.keep(run, tmp_path / "rows", figures)
    assert (figures / "old.svg").exists() and not (tmp_path / "rows").exists(), "nothing was touched"


def test_a_run_without_its_files_is_refused(run, tmp_path):
    (run / "machine.json").unlink()
    with pytest.raises(UserError, match=r"no machine\.json"):
        reference.keep(run, tmp_path / "rows", tmp_path / "figures")


def test_the_committed_reference_is_one():
    folder = paths.DATA / "reference" / "quick"
    facts = json.loads((folder / "run.json").read_text())
    assert facts["status"] == "complete" and set(facts["notebooks"]) == set(NOTEBOOKS)
    assert all((folder / name).is_file() for name in reference.KEPT)
