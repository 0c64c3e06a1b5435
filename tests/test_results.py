import json
import math

import numpy as np
import pytest

from photonlab import lab
from photonlab.lab.judge import results


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run in which the notebook 02-order-book has begun."""
    monkeypatch.setenv("PHOTONLAB_OUT", str(tmp_path))
    monkeypatch.setenv("PHOTONLAB_RUN", "run-1")
    monkeypatch.delenv("PHOTONLAB_NOTEBOOK", raising=False)
    results.start("02-order-book")
    return tmp_path


def record(claim="R1", **changes):
    return lab.record(claim, **{"value": 7.5, "unit": "M msg/s", "statistic": "throughput"} | changes)


def test_row_is_written_at_once_and_tidy(run):
    record(variant="full book", low=7, high=8, note="pinned")
    lines = (run / "rows" / "02-order-book.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {
        "run": "run-1",
        "notebook": "02-order-book",
        "claim": "R1",
        "variant": "full book",
        "statistic": "throughput",
        "value": 7.5,
        "unit": "M msg/s",
        "low": 7,
        "high": 8,
        "note": "pinned",
        "cell": "",
    }
    assert tuple(json.loads(lines[0])) == results.COLUMNS


def test_start_forgets_an_earlier_execution(run):
    record()
    results.start("02-order-book")
    assert results.collect(run).empty


def test_collect_joins_notebooks_in_order_and_keeps_the_last_of_a_cell_run_twice(run):
    record(value=1)
    record(value=2, variant="other")
    record(value=3)
    results.start("01-parser")
    record("F2", value=0, unit="1", statistic="allocations")
    frame = results.collect(run)
    assert list(frame.columns) == list(results.COLUMNS)
    assert frame[["notebook", "variant", "value"]].values.tolist() == [
        ["01-parser", "", 0],
        ["02-order-book", "", 3],
        ["02-order-book", "other", 2],
    ]


def test_notebooks_come_in_the_order_of_their_names(run):
    for number in (7, 3, 9, 1, 8, 5, 4, 6):
        results.start(f"{number:02}-x")
        record()
    assert list(results.collect(run).notebook) == [f"{number:02}-x" for number in (1, 3, 4, 5, 6, 7, 8, 9)]


def test_collect_of_nothing_has_the_columns(tmp_path):
    assert list(results.collect(tmp_path).columns) == list(results.COLUMNS)
    assert results.write(tmp_path)[1].read_text() == ",".join(results.COLUMNS) + "\n"


def test_equal_rows_give_equal_bytes(run, tmp_path):
    record(value=423_285_709, low=0.1, note='a, "b"\nµs')
    record("R6", value=None, unit="1", statistic="IPC", note="no counters")
    files = results.write(run)
    before = [path.read_bytes() for path in files]
    copy = tmp_path / "other"
    (copy / "rows").mkdir(parents=True)
    (copy / "rows" / "02-order-book.jsonl").write_bytes((run / "rows" / "02-order-book.jsonl").read_bytes())
    assert [path.read_bytes() for path in results.write(copy)] == before
    assert [path.read_bytes() for path in results.write(run)] == before
    assert not list(run.glob("*.partial"))
    assert b"423285709,M msg/s,0.1," in before[1] and b'"a, ""b""\n' in before[1]


def test_read_gives_the_same_from_parquet_and_from_rows(run):
    record(value=1)
    record("R6", value=None, unit="1", statistic="IPC", note="no counters")
    from_rows = results.read(run)
    results.write(run)
    assert results.read(run).equals(from_rows)
    assert math.isnan(from_rows.value[1])


def test_read_of_another_folder_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="no results"):
        results.read(tmp_path)


def test_damaged_row_is_named(run):
    record()
    with (run / "rows" / "02-order-book.jsonl").open("a") as file:
        file.write('{"run": "run-1", "noteb')
    with pytest.raises(ValueError, match=r"02-order-book\.jsonl line 2"):
        results.collect(run)


@pytest.mark.parametrize("claim", ["R15", "r1", "Z1", "R", "R1 "])
def test_unknown_claim_is_refused(run, claim):
    with pytest.raises(ValueError, match="ledger"):
        record(claim)
    assert results.collect(run).empty


def test_context_without_a_claim_is_kept(run):
    record("", statistic="DRAM latency", value=180, unit="ns")
    assert results.collect(run).claim[0] == ""


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), np.float64("inf")])
@pytest.mark.parametrize("column", ["value", "low", "high"])
def test_nan_and_infinity_are_refused(run, column, value):
    with pytest.raises(ValueError, match=f"{column} is"):
        record(**{column: value})


@pytest.mark.parametrize("value", ["7", b"7", [7], {}, object()])
def test_other_than_numbers_is_refused(run, value):
    with pytest.raises(ValueError, match="not a number"):
        record(value=value)


@pytest.mark.parametrize(
    "value", [3, 3.0, True, np.uint64(3), np.int8(3), np.float32(3), np.bool_(True), 2**53, np.uint64(2**53)]
)
def test_numbers_of_all_kinds_become_plain_ones(run, value):
    assert type(record(value=value)["value"]) in (int, float)
    assert results.collect(run).value[0] == float(value)


@pytest.mark.parametrize("value", [2**53 + 1, np.uint64(2**64 - 1), -(2**53) - 1])
def test_integers_that_a_float_cannot_hold_are_refused(run, value):
    with pytest.raises(ValueError, match="2\\*\\*53"):
        record(value=value)


def test_none_needs_a_reason(run):
    with pytest.raises(ValueError, match="says why"):
        record(value=None)
    assert record(value=None, note="no counters")["value"] is None


def test_interval_the_wrong_way_round_is_refused(run):
    with pytest.raises(ValueError, match="above high"):
        record(low=2, high=1)


def test_unit_is_needed(run):
    with pytest.raises(ValueError, match="unit"):
        record(unit="")


def test_record_needs_a_notebook(monkeypatch, tmp_path):
    monkeypatch.setenv("PHOTONLAB_OUT", str(tmp_path))
    monkeypatch.delenv("PHOTONLAB_NOTEBOOK", raising=False)
    with pytest.raises(RuntimeError, match="start"):
        record()


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden"])
def test_start_refuses_a_path(monkeypatch, tmp_path, name):
    monkeypatch.setenv("PHOTONLAB_OUT", str(tmp_path))
    with pytest.raises(ValueError, match="not the name"):
        results.start(name)


def test_interactive_default_lies_in_the_project(monkeypatch):
    monkeypatch.delenv("PHOTONLAB_OUT", raising=False)
    monkeypatch.delenv("PHOTONLAB_RUN", raising=False)
    assert results.out() == results.paths.OUT / "interactive"
    assert results.run_id() == "interactive"
