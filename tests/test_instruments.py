"""The studies of the trading core: what they measure is complete, says why where there is nothing, and adds up."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from photonlab.kernels import histogram
from photonlab.lab.publish import figures
from photonlab.lab.studies import bypass, instruments, trade_core
from photonlab.machine import system
from photonlab.systems.tick_to_trade import drive, ticks


@pytest.fixture(scope="module")
def core():
    return trade_core.measure(2000, 3)


@pytest.fixture(scope="module")
def found():
    return instruments.measure([2, 50], 1000, 3, 1)


def test_batches_and_single_ticks_are_all_counted(core):
    for one in core.distributions:
        assert one.summary.count == 3 * (2000 // one.batch)
        assert one.counts.sum() + one.summary.overflow == one.summary.count
    assert set(core.comparison.variants) == {trade_core.CROSSING, trade_core.FLOW}
    assert {timed.checksum for timed in core.comparison.variants.values()} == {2000}


def test_the_clock_is_taken_off_once_a_batch(core):
    one = core.of(trade_core.CROSSING, trade_core.BATCH)
    bare = replace(core, floor=core.floor._replace(empty_median_ns=0.0))
    empty = core.floor.empty_median_ns * core.hz / 1e9
    assert bare.net(one, 50) - core.net(one, 50) == pytest.approx(empty / trade_core.BATCH)
    far = replace(core, floor=core.floor._replace(empty_median_ns=1e12))
    assert far.net(one, 50) == 0


def test_the_core_s_rows_table_chart_and_sentence(core):
    assert core.row(50)["value"] > 0 and core.time()["unit"] == "ns"
    assert core.row(50)["value"] == pytest.approx(core.time()["value"] * core.hz / 1e9)
    low, high = core.row(50)["value"], core.row(99)["value"]
    assert high is None or core.jitter()["value"] == pytest.approx(high / low)
    assert len(trade_core.table(core)) == 4
    figures.use_style()
    assert trade_core.chart(core).axes and trade_core.sentence(core)
    none = replace(core, distributions=tuple(replace(d, summary=empty_summary()) for d in core.distributions))
    assert none.row(50)["value"] is None and none.jitter()["value"] is None
    assert "Nothing" in trade_core.sentence(none)


def empty_summary():
    return trade_core.histogram.summary(histogram.empty(), trade_core.PERCENTILES)


def test_the_proof_is_clean_and_counts():
    assert trade_core.proof_row(trade_core.proof())["value"] == 0


def test_spans_cover_whole_batches_only():
    work, spans = trade_core.Work(ticks.as_bytes(ticks.crossing(10)[0])), histogram.empty()
    assert drive.spans(work.engine, work.data, work.out, np.uint64(4), np.uint64(3), spans) == 30
    assert spans.totals[1] == 6
    assert work() == work() == 10


def test_every_number_of_instruments_is_measured_four_ways(found):
    assert len(found.points) == 8 and len(found.rows()) == 8
    assert len({row["variant"] for row in found.rows()}) == 8
    assert found.points.groupby("instruments").used.max().to_dict() == {2: 2, 50: 50}
    assert len(instruments.table(found)) == 2 and instruments.sentence(found)
    figures.use_style()
    assert instruments.chart(found).axes


def test_zipf_is_skewed_and_uniform_is_not():
    for skew, low, high in ((instruments.UNIFORM, 0.005, 0.02), (instruments.ZIPF, 0.15, 0.25)):
        drawn = np.bincount(instruments.chosen(100, 20_000, skew, 1), minlength=100) / 20_000
        assert low < drawn.max() < high and drawn.size == 100


def test_contention_has_a_row_for_each_or_says_why(monkeypatch):
    measured = instruments.contention([3], 500, 3, 1, 1)
    assert len(measured.rows()) == 1 and len(instruments.contention_table(measured)) == 1
    assert instruments.contention_sentence(measured)

    def refuse():
        raise system.PlacementError("one CPU")

    monkeypatch.setattr(instruments.spin, "placement", refuse)
    none = instruments.contention([3], 500, 3, 1, 1)
    assert none.rows()[0]["value"] is None and none.rows()[0]["note"] == "one CPU"
    assert "one CPU" in instruments.contention_sentence(none)
    assert "one CPU" in instruments.contention_table(none).to_string()


def test_full_books_are_replayed():
    full = instruments.full_books([2], 2000, 3, 1)
    assert full.ns.iloc[0] > 0 and len(instruments.full_rows(full)) == len(instruments.full_table(full)) == 1


def test_the_probe_sees_what_is_there_and_what_is_not(tmp_path):
    bare = bypass.probe(tmp_path)
    assert not bare.enough.any() and "Solarflare" in bypass.reason(bare)
    assert bypass.row(bare)["value"] is None
    driver = tmp_path / "drivers" / "sfc"
    driver.mkdir(parents=True)
    device = tmp_path / "sys/class/net/eth0/device"
    device.mkdir(parents=True)
    (device / "driver").symlink_to(driver)
    (tmp_path / "dev/vfio").mkdir(parents=True)
    (tmp_path / "dev/vfio/7").touch()
    pages = tmp_path / "proc/sys/vm"
    pages.mkdir(parents=True)
    (pages / "nr_hugepages").write_text("64\n")
    rich = bypass.probe(tmp_path)
    assert rich.enough.tolist() == [True, True, True, True, False, False]
    assert "eth0 (sfc)" in bypass.table(rich)["found here"].tolist()[0]
    assert "second machine" in bypass.reason(pd.DataFrame(rich.assign(enough=True)))


def test_the_rows_that_answer_the_claim_are_few_books_and_very_many():
    points = instruments.pd.DataFrame(
        [
            (n, skew, pages, 10.0 + n, 9.0, 99_999.0, None, n)
            for n in (10, 300, 10_000, 20_000)
            for skew in (instruments.UNIFORM, instruments.ZIPF)
            for pages in (instruments.SMALL, instruments.HUGE)
        ],
        columns=["instruments", "skew", "pages", "ns", "low", "high", "share_huge", "used"],
    )
    rows = instruments.Instruments(points, 1, "").rows()
    assert [row["value"] for row in rows if row["statistic"] == "cost"] == [20.0, 10_010.0, 20_010.0]
    assert len(rows) == 16


def test_more_instruments_cost_books_of_single_orders_what_the_sentence_says():
    found = instruments.full_books([2, 20], 2000, 3, 1)
    found["ns"] = [40.0, 60.0]
    assert "**60.0 ns with 20** (1.50 times as long)" in instruments.full_sentence(found)
    assert instruments.full_sentence(found[:1]) == "A message takes 40.0 ns with 2 instruments."
    assert {row["statistic"] for row in instruments.full_rows(found)} == {"time a message"}
    found["ns"] = [None, None]
    assert "too short" in instruments.full_sentence(found)
