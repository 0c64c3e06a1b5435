"""What the notebook on the pool records, draws and says: right whichever way the figures fall."""

from dataclasses import replace

import numpy as np
import pytest

from photonlab.lab.judge import claims, judging
from photonlab.lab.measure import percentiles
from photonlab.lab.measure.comparison import Comparison, Timed
from photonlab.lab.publish import figures
from photonlab.lab.studies import (
    malloc_trial,
    pool_allocators,
    pool_cost,
    pool_orders,
    pool_pages,
    pool_tail,
    pool_walk,
)
from photonlab.machine import clock, libc

GLIBC = bool(libc.provider().glibc)


def compared(**series):
    """A comparison whose variants took these ns an operation in each round; double underscores are ", "."""
    names = {name: name.replace("__", ", ").replace("_", " ") for name in series}
    timed = {
        names[name]: Timed(names[name], 1, 1_000_000, np.array(values) * 1e6, 0.0, 1.0, 7, 0.0)
        for name, values in series.items()
    }
    return Comparison(timed, len(next(iter(series.values()))), 0, 0, "")


@pytest.fixture(autouse=True)
def style():
    figures.use_style()


def checked(fig):
    figures._check_labels(fig, "a-figure")


# -- cost ----------------------------------------------------------------------------------------------------


def test_costs_of_all_sources():
    costs = pool_cost.measure(3_000, 500, [16, 100], 3, 1)
    assert {one.checksum for one in costs.fill.variants.values()} == {3_000}
    assert [one["pool"].checksum for one in costs.cycles.values()] == [1 << 17, 131_100]
    pages = -(-3_000 * 64 // 4096)
    assert costs.faults[pool_cost.UNTOUCHED] >= pages
    # The process is watched, and the interpreter may have a fault of its own: never in three fills out of three.
    fills = [costs, *(pool_cost.measure(3_000, 500, [16], 3, 1) for _ in range(2))]
    assert min(one.faults[pool_cost.POOL] for one in fills) == 0
    assert len(pool_cost.fill_table(costs)) == 5 and len(pool_cost.cycle_table(costs)) == 10
    assert set(costs.churn.variants) == {"pool", "malloc"}
    assert "page faults against" in costs.fill_row("malloc", "pool")["note"]
    assert "batches of 100" in pool_cost.sentence(costs)
    checked(pool_cost.chart(costs))


def test_a_mean_that_cannot_be_told_has_a_reason():
    at_floor = compared(malloc=[1e-7] * 3, pool=[1e-7] * 3)
    costs = pool_cost.Costs(10, at_floor, at_floor, {}, {"malloc": None, "pool": 0})
    assert costs.fill_row("malloc", "pool")["value"] is None
    assert "at or below the floor" in pool_cost.sentence(costs)


def test_the_arena_is_put_to_the_test(monkeypatch):
    assert pool_cost.arena_exists() == 1
    monkeypatch.setattr(pool_cost.arena, "allot", lambda *_: 0)
    assert pool_cost.arena_exists() == 0


# -- other allocators ----------------------------------------------------------------------------------------


def test_allocators_that_are_not_there_say_so():
    found = {"nothing": {"why": "no library of nothing that could be preloaded was found"}}
    assert pool_allocators.measure([], 1, 1, 1, 3, 1) == {}
    assert pool_allocators.sentence({}) == "No other allocator was asked for."
    rows = pool_allocators.rows(found)
    assert len(rows) == 4 and all(row["value"] is None and "nothing" in row["note"] for row in rows)
    assert "cannot be measured here" in pool_allocators.sentence(found) and len(pool_allocators.table(found)) == 1


def test_a_preloaded_allocator_must_be_the_one_that_answers(monkeypatch):
    monkeypatch.setattr(libc, "preloadable", lambda name: "libother.so.9")
    monkeypatch.setattr(malloc_trial, "run", lambda *preload, **wanted: {"library": "/lib/libc.so.6"})
    found = pool_allocators.measure(["other"], 1, 1, 1, 3, 1)
    assert found["other"] == {"why": "libother.so.9 was preloaded, but /lib/libc.so.6 answers malloc"}


@pytest.mark.skipif(not libc.preloadable("jemalloc"), reason="no libjemalloc here")
def test_a_preloaded_allocator_is_measured():
    found = pool_allocators.measure(["jemalloc"], 2_000, 1_000, 64, 3, 1)
    assert "jemalloc" in found["jemalloc"]["library"]
    assert all(found["jemalloc"][work]["value"] for work in malloc_trial.WORK)
    assert "median step" in pool_allocators.sentence(found)


def test_a_trial_that_fails_is_a_reason():
    assert "ended with status" in malloc_trial.run(trial="no such trial")["why"]


# -- tail ----------------------------------------------------------------------------------------------------


def test_tail_in_batches_or_singly_but_never_below_the_floor():
    tail = pool_tail.measure(20_000, 3)
    for name in ("malloc", "pool"):
        for percent in (50, 99, "99.9"):
            row = tail.row(name, percent)
            assert row["value"] is None or row["value"] > clock.floor().ns
            assert row["value"] is not None or row["note"]
    row = tail.ratio_row()
    assert row["value"] is None or row["low"] <= row["value"] <= row["high"]
    assert row["note"] and pool_tail.sentence(tail) and len(pool_tail.table(tail)) >= 4


def tail_of(malloc, pool, batch=1, why=""):
    single = {
        name: tuple(percentiles.of_samples(np.full(100_000, 50 if name == "malloc" else 5), p, floor=10)
                    for p in pool_tail.PERCENTS) for name in ("malloc", "pool")
    }  # fmt: skip
    return pool_tail.Tail(batch, single, single, {"malloc": malloc, "pool": pool}, len(malloc), 100_000, why)


def test_ratio_of_the_tails_is_taken_by_runs():
    tail = tail_of([100.0, 120.0, 110.0], [10.0, 10.0, 10.0], batch=8)
    row = tail.ratio_row()
    assert row["value"] == pytest.approx(11.0) and "batches of 8" in row["note"]
    assert tail.own_row("pool")["value"] == pytest.approx(10.0)
    assert "**110.0 times**" in pool_tail.sentence(tail) and "single ones" in pool_tail.sentence(tail)
    assert tail.row("pool", 50)["value"] is None and "floor" in tail.row("pool", 50)["note"]
    assert "p50 of pool" in pool_tail.notes(tail)


def test_a_refused_tail_has_no_ratio():
    tail = tail_of([], [], why="p99.9: too few")
    assert tail.ratio_row()["value"] is None is tail.own_row("malloc")["value"]
    assert "too few" in pool_tail.sentence(tail)
    short = pool_tail.measure(2_000, 3)
    assert short.ratio_row()["value"] is None and short.ratio_row()["note"], "125 batches do not make a p99.9"


# -- evidence ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        ([0, 0, 0], []),
        ([0, 100, 0], [1]),
        ([10, 100, 90, 20, 0, 0, 5, 0], [1, 6]),
        ([100, 90, 95, 80], [0]),
        ([100, 40, 100, 0], [0, 2]),
        ([1000, 0, 1, 0], [0]),
        ([50, 0, 60, 100, 0, 9], [0, 3, 5]),
    ],
)
def test_modes(bins, expected):
    assert pool_tail.modes(bins) == expected


def test_digest_and_its_histogram():
    rate = clock.calibrate().ticks_per_ns
    spans = (np.array([40] * 97 + [500, 3000, 3000]) * rate).astype(np.uint64)
    faults, breaks = np.zeros(100, np.uint64), np.zeros(100, np.uint64)
    faults[98:], breaks[99] = 1, 4096
    found = malloc_trial.digest(spans, faults, breaks)
    assert found["median"] == pytest.approx(40, rel=0.05)
    assert [found[name] for name in ("slow", "slow with a fault", "slow with growth", "faults", "growths")] == [
        3, 2, 1, 2, 1
    ]  # fmt: skip
    assert sum(found["bins"]) == 100
    assert malloc_trial.histogram([0.0, 1.0, 1e12])[0] == 2 and malloc_trial.histogram([1e12])[-1] == 1
    assert malloc_trial.log_bin([pool_tail.bin_ns(7)]).tolist() == [7]


def evidence_of(slow=50, with_fault=48, bins=(0, 1000, 0, 50)):
    one = {"count": 1050, "median": 40.0, "slow": slow, "slow with a fault": with_fault, "slow with growth": 2}
    return {malloc_trial.AS_IT_COMES: {**one, "faults": with_fault, "growths": 2, "bins": list(bins)}}


def test_evidence_is_judged_by_its_shares():
    modes, share = pool_tail.evidence_rows(evidence_of())
    assert modes["value"] == 2 and share["value"] == pytest.approx(96.0)
    assert "**96.0 %** had a page fault" in pool_tail.evidence_sentence(evidence_of())
    _, share = pool_tail.evidence_rows(evidence_of(slow=0, with_fault=0))
    assert share["value"] is None and share["note"]
    assert "No allocation was slow" in pool_tail.evidence_sentence(evidence_of(0, 0, (0, 1000, 0, 0)))


def test_evidence_that_could_not_be_had():
    failed = {"why": "the trial ended with status 1: no"}
    assert all(row["value"] is None and "status 1" in row["note"] for row in pool_tail.evidence_rows(failed))
    assert "status 1" in pool_tail.evidence_sentence(failed) and len(pool_tail.evidence_table(failed)) == 1
    checked(pool_tail.chart(failed))
    refused = evidence_of() | {malloc_trial.TOUCHED: {"why": "malloc has no M_TOP_PAD here"}}
    assert "M_TOP_PAD" in pool_tail.evidence_table(refused)["modes [ns]"].iloc[1]


@pytest.mark.skipif(not GLIBC, reason="the settings are glibc's")
def test_evidence_from_glibc():
    """Its counts are facts of the system, not times: faults by the page, and none where all was touched."""
    count = 20_000
    found = pool_tail.evidence(count)
    assert set(found) == {
        malloc_trial.AS_IT_COMES, "pool", "pool, untouched", malloc_trial.MAPPED, malloc_trial.BIG_STEPS,
        malloc_trial.TOUCHED,
    }  # fmt: skip
    pages = count * 64 // 4096
    assert found["pool"]["faults"] == 0 and pages <= found["pool, untouched"]["faults"] <= pages + 2
    assert found[malloc_trial.AS_IT_COMES]["faults"] > pages / 2
    assert found[malloc_trial.MAPPED]["faults"] >= found[malloc_trial.MAPPED]["count"]
    assert found[malloc_trial.TOUCHED]["faults"] < pages / 10
    checked(pool_tail.chart(found))
    assert len(pool_tail.evidence_table(found)) == 6 and "the memory, not malloc" in pool_tail.evidence_sentence(found)


# -- walk ----------------------------------------------------------------------------------------------------


def test_walks_of_every_layout():
    found = pool_walk.measure(4_096, 3, 1, 3, 1)
    assert [one.count for one in found.walks] == [256, 1024, 4096]
    assert pool_walk.CHASE in found.walks[-1].comparison.variants
    assert np.median(found.steps[pool_walk.IN_ORDER]) == 64
    assert len(pool_walk.table(found)) == 6 and "dependent load in 1 MiB" in pool_walk.sentence(found)
    assert found.row(pool_walk.SHUFFLED, pool_walk.CHASE)["low"] > 0 and found.time(pool_walk.IN_ORDER)["value"] > 0
    checked(pool_walk.chart(found))


def test_a_layout_that_could_not_be_had(monkeypatch):
    def too_far(heap):
        raise MemoryError("too far for 32-bit places")

    monkeypatch.setattr(pool_walk.Heap, "nodes", too_far)
    found = pool_walk.measure(1_024, 1, 1, 3, 1)
    assert found.row(pool_walk.SCATTERED, pool_walk.IN_ORDER) == {
        "value": None, "unit": "×", "note": "too far for 32-bit places"
    }  # fmt: skip
    assert found.time(pool_walk.SCATTERED)["value"] is None and "nothing can be said" in pool_walk.sentence(found)
    checked(pool_walk.chart(found))
    pool_walk.table(found)


# -- orders and pages ----------------------------------------------------------------------------------------


def test_orders_are_all_measured():
    found = pool_orders.measure(2_048, 3, 1)
    checksums = {work: {one.checksum for one in compared.variants.values()} for work, compared in found.works.items()}
    assert all(len(one) == 1 for one in checksums.values())
    assert len(pool_orders.table(found)) == 4 and found.row("LIFO")["low"] > 0
    assert pool_orders.sentence(found).count("**") == 6
    checked(pool_orders.chart(found))


def test_what_is_said_of_reuse_follows_the_figures():
    base = compared(forward=[1.0] * 5, reverse=[2.0] * 5, shuffled=[3.0] * 5, LIFO=[4.0] * 5)
    works = dict.fromkeys((pool_orders.FILL, pool_orders.WALK, pool_orders.BOTH), base)
    for queue, word in ((2.0, "more time"), (0.5, "less time"), (1.0, "neither more nor less")):
        reuse = compared(a=[1.0] * 5, b=[queue] * 5)
        named = dict(zip((pool_orders.STACK, pool_orders.QUEUE), reuse.variants.values(), strict=True))
        found = pool_orders.Orders(10, works, replace(reuse, variants=named))
        assert f"takes {word}" in pool_orders.sentence(found)
    assert "shuffled takes **3.00 times** as long (" in pool_orders.sentence(found)


def test_pages_and_first_pass():
    found = pool_pages.measure_pages(40_000, 3, 1)
    assert len(pool_pages.page_table(found)) == 3 and found.faults[pool_pages.SMALL] > 100
    assert pool_pages.page_sentence(found)
    first = pool_pages.measure_first_pass(40_000, 3)
    assert first.faults["pre-faulted, 4 KB pages"] == 0 < first.faults["untouched, 4 KB pages"]
    assert len(pool_pages.first_pass_table(first)) == 4
    assert "page faults against 0" in first.row()["note"] + pool_pages.first_pass_sentence(first)


def test_pages_that_were_not_given_are_not_compared():
    works = {pool_pages.CHURN: compared(**{"4_KB_pages": [2.0] * 3, "2_MB_pages": [1.0] * 3})}
    for share, value in ((0.1, None), (0.9, 2.0), (None, 2.0)):
        row = pool_pages.Pages(works, {pool_pages.HUGE: share}, {}).row()
        assert row["value"] == (value if value is None else pytest.approx(value))
    assert "only 10 %" in pool_pages.Pages(works, {pool_pages.HUGE: 0.1}, {}).row()["note"]


def test_the_ledger_finds_its_rows():
    """Names of statistics and variants that the notebook records are those that the rules ask for."""
    wanted = {claim: judging.wanted(claims.by_id()[claim]) for claim in ("A3", "A4", "A5", "A7", "R7")}
    assert (f"{pool_walk.SCATTERED} / {pool_walk.IN_ORDER}" in {v for _, v, _ in wanted["A4"]}) and (
        "walk", f"{pool_walk.SHUFFLED} / {pool_walk.CHASE}", "×"
    ) in wanted["A5"]  # fmt: skip
    assert wanted["R7"] == [("time", f"{pool_pages.SMALL} / {pool_pages.HUGE}", "×")]
    assert wanted["A7"] == [("first pass", f"{pool_pages.UNTOUCHED} / {pool_pages.TOUCHED}", "×")]
    assert {row["statistic"] for row in pool_tail.evidence_rows(evidence_of())} == {s for s, _, _ in wanted["A3"]}
