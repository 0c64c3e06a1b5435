"""What notebook 07-tick-to-trade says of its measurements: prose that reads right both ways, refusals, percentiles."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from photonlab.lab.studies import tick_to_trade as study
from photonlab.lab.studies import tick_to_trade_parts as parts
from photonlab.lab.studies import tick_to_trade_placement as placement
from photonlab.machine import clock
from photonlab.systems.transports import kinds


def rounds(ns, tail=1.0, runs=3, count=2000):
    """Return rounds of one time, of which 2 in 100 take `tail` times as long."""
    spans = np.full(count, ns * clock.calibrate().ticks_per_ns)
    spans[: count // 50] *= tail
    return study.Rounds([np.round(spans * (1 + 0.001 * i)).astype(np.uint64) for i in range(runs)], "CPU 0 and 1")


def found(**times):
    of = {name: study.Rounds(why="io_uring is refused: not permitted") for name in (*kinds.KINDS, study.MOVED)}
    return study.Found(of | {name: rounds(ns) for name, ns in times.items()}, {}, "")


def test_a_percentile_is_that_of_all_runs_and_its_interval_that_over_the_runs():
    one = rounds(5000, tail=3)
    assert one.ns(50) == pytest.approx(5005, rel=1e-3)
    assert one.ns(99) == pytest.approx(15015, rel=1e-3)
    row = one.time()
    assert row["low"] <= row["value"] <= row["high"] < 5020
    assert one.jitter()["value"] == pytest.approx(3, rel=1e-3)


def test_the_floor_of_a_tcp_traversal_is_settled_whichever_way_it_falls():
    def text(spinning):
        return study.sentence(found(**{study.SPINNING: spinning, study.SQPOLL: 9000, study.BLOCKING: 40000}))

    assert "SQPOLL is not the floor" in text(5000)
    assert "nothing else over AF_INET is faster than SQPOLL; TCP spinning comes next" in text(12000)
    assert "cannot be told apart" in text(9000)


def test_without_a_ring_the_rows_say_why_and_the_rest_stands():
    some = found(**{study.SPINNING: 5000, study.BLOCKING: 40000, study.UNIX: 4000})
    assert "cannot be said here: io_uring SQPOLL: io_uring is refused: not permitted" in study.sentence(some)
    assert some.floor()["value"] is None
    assert some.of[study.SQPOLL].jitter() == {"value": None, "unit": "×", "note": "io_uring is refused: not permitted"}
    assert some.ratio(study.BLOCKING, study.UNIX)["value"] == pytest.approx(10, rel=1e-3)
    table = study.table(some.of)
    assert list(table["transport"][:3]) == [study.UNIX, study.SPINNING, study.BLOCKING]
    assert set(table["where"][3:]) == {"io_uring is refused: not permitted"}
    plt.close(study.chart(some))


def test_where_nothing_can_be_measured_everything_says_so(monkeypatch):
    monkeypatch.setattr(study, "refused", lambda: "these calls are Linux's")
    bench = study.Bench(10)
    nothing, placed = study.measure(bench, 10, 1, 1, []), placement.measure(bench, 10, 1, 1)
    assert study.sentence(nothing) == "Nothing was measured: these calls are Linux's."
    assert study.moved_sentence(nothing) == "Nothing was moved: these calls are Linux's."
    said = placement.threads_sentence(placement.threads(bench, 10, 1, 1))
    assert said == "No thread was placed: these calls are Linux's."
    assert placement.rate_sentence(placement.at_rate(bench, [5], 10, 1)) == placement.sentence(placed)
    assert placement.sentence(placed) == "Nothing was measured: these calls are Linux's."
    assert placement.effect(placed)["note"] == nothing.floor()["note"].replace(
        "nothing ran over AF_INET", "these calls are Linux's"
    )
    assert placement.rate_table(placement.at_rate(bench, [5], 10, 1))["rounds"].sum() == 0
    plt.close(study.chart(nothing))
    plt.close(parts.chart(nothing))
    assert parts.sentence(nothing) == "No parts of a round were timed."
    assert parts.table(nothing)["why"][0] == "these calls are Linux's"
    bench.close()


def test_sharing_a_core_is_judged_by_the_tails():
    some = {name: rounds(5000, tail) for name, tail in ((placement.OWN, 1.1), (placement.SHARED, 4.4))}
    some |= {placement.WAITING: rounds(60000), placement.TOGETHER: rounds(4000)}
    assert placement.effect(some)["value"] == pytest.approx(4, rel=1e-2)
    assert "**4.00 times**" in placement.sentence(some)


def test_moving_a_program_is_judged_against_plain_tcp_and_against_af_unix():
    def text(moved):
        return study.moved_sentence(found(**{study.SPINNING: 10_000, study.UNIX: 5_000, study.MOVED: moved}))

    assert "**2.00 times** as long" in text(5_000)
    assert "no dearer than a program written for it" in text(5_000)
    assert "dearer, by less than a tenth, than a program" in text(5_300)
    assert "**1.25 times** as long" in text(8_000)
    assert ", dearer than a program written for it" in text(8_000)
    assert found(**{study.SQPOLL: 9_000, study.MOVED: 4_000}).fastest_other() is None


def test_without_a_compiler_the_row_says_so(monkeypatch):
    monkeypatch.setattr(study.preload, "library", lambda: (None, "no C compiler found (looked for cc)"))
    bench = study.Bench(30)
    try:
        some = study.measure(bench, 10, 1, 1, [study.SPINNING])
        placed = placement.threads(bench, 20, 2, 10)
    finally:
        bench.close()
    assert some.of[study.MOVED].why == "no C compiler found (looked for cc)"
    assert study.moved_sentence(some) == "Nothing was moved: no C compiler found (looked for cc)."
    assert some.of[study.SPINNING].spans[0].shape == (10,)
    assert some.stages[study.SPINNING].shape == (len(parts.STAGES),)
    plt.close(parts.chart(some))
    assert "the engine, which decodes" in parts.sentence(some)
    if not some.of[study.SQPOLL].why:
        assert placed[placement.THREAD_THERE].spans[0].shape == (20,)
        assert placed[placement.THREAD_AGAINST].spans[0].shape == (10,)
        assert "**SQ thread on" in placement.threads_sentence(placed)


def test_what_the_parts_of_the_engine_add_is_the_whole():
    measured = parts.measure(3)
    adds = [row["value"] for row in measured.rows()]
    whole = float(np.median(measured.comparison[parts.WHOLE].per_op))
    assert sum(adds) == pytest.approx(whole, rel=0.3)
    table = parts.engine_table(measured, {study.SPINNING: np.arange(7.0)})
    assert list(table["part"]) == [*parts.parts.PARTS, parts.WHOLE]
    assert "most is added by **" in parts.engine_sentence(measured, {})
    slow, fast = (parts.engine_sentence(measured, {study.SPINNING: np.full(7, ns)}) for ns in (1e6, 0.0))
    assert "has had the caches" in slow
    assert "no more than in the loop" in fast


def test_stalls_are_told_from_the_tail_of_rounds_at_a_fixed_rate():
    calm = {0: rounds(5000, 1.2), 1000: rounds(5100, 1.2)}
    assert "few rounds fall into a stall" in placement.rate_sentence(calm)
    assert "stalls hold up rounds" in placement.rate_sentence(calm | {9000: rounds(5200, 9)})
    assert "too few rounds" in placement.rate_sentence({0: rounds(5000, count=60), 7: rounds(5000, count=60, runs=1)})
