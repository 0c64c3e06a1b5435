"""What notebook 07-tick-to-trade says of its measurements: prose that reads right both ways, refusals, percentiles."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from photonlab.lab.studies import tick_to_trade as study
from photonlab.lab.studies import tick_to_trade_placement as placement
from photonlab.machine import clock
from photonlab.systems.transports import kinds


def rounds(ns, tail=1.0, runs=3, count=2000):
    """Return rounds of one time, of which 2 in 100 take `tail` times as long."""
    spans = np.full(count, ns * clock.calibrate().ticks_per_ns)
    spans[: count // 50] *= tail
    return study.Rounds([np.round(spans * (1 + 0.001 * i)).astype(np.uint64) for i in range(runs)], "CPU 0 and 1")


def found(**times):
    of = {name: study.Rounds(why="io_uring is refused: not permitted") for name in kinds.KINDS}
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
    for module in (study, placement):
        monkeypatch.setattr(module, "refused", lambda: "these calls are Linux's")
    nothing, placed = study.measure(10, 1, 1, []), placement.measure(10, 1, 1)
    assert study.sentence(nothing) == "Nothing was measured: these calls are Linux's."
    assert placement.sentence(placed) == "Nothing was measured: these calls are Linux's."
    assert placement.effect(placed)["note"] == nothing.floor()["note"].replace(
        "nothing ran over AF_INET", "these calls are Linux's"
    )
    assert placement.rate_table(placement.at_rate([5], 10, 1))["rounds"].sum() == 0
    plt.close(study.chart(nothing))
    assert study.stage_sentence(nothing) == "No parts of a round were timed."


def test_sharing_a_core_is_judged_by_the_tails():
    some = {name: rounds(5000, tail) for name, tail in ((placement.OWN, 1.1), (placement.SHARED, 4.4))}
    some |= {placement.WAITING: rounds(60000), placement.TOGETHER: rounds(4000)}
    assert placement.effect(some)["value"] == pytest.approx(4, rel=1e-2)
    assert "**4.00 times**" in placement.sentence(some)
