"""Rounds from tick to trade by each transport, taken in turn: percentiles, ratios, parts of one (claims T2–T6, T11).

The exchange times each round by the processor's clock, from before it hands a tick over until it has all of the order.
"""

import contextlib
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.errors import UserError
from photonlab.lab.measure import intervals, percentiles
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.machine import clock, system
from photonlab.systems.tick_to_trade import apart
from photonlab.systems.tick_to_trade import run as runs
from photonlab.systems.transports import kinds, preload

BLOCKING, UNIX, SQPOLL, MULTICAST = "TCP blocking", "AF_UNIX", "io_uring SQPOLL", "multicast in, TCP out"
SPINNING, MEMORY = "TCP spinning", "shared memory"
MOVED = "TCP spinning, moved onto AF_UNIX by preload"
PERCENTILES = (50, 90, 99, "99.9")
_FAMILIES = (kinds.TCP, kinds.MULTICAST)


@dataclass
class Rounds:
    """What was seen of one transport.

    Attributes
    ----------
    spans : list of ndarray of uint64
        Ticks of each round, run by run.
    where, why : str
        Placement; why there is nothing.
    waited : int
        ns for which threads waited for a CPU, in all runs.
    """

    spans: list = field(default_factory=list)
    where: str = ""
    why: str = ""
    waited: int = 0

    def ns(self, percent) -> float | None:
        """A percentile over all runs, None where the samples do not support it."""
        if not self.spans:
            return None
        found = percentiles.of_samples(np.concatenate(self.spans), percent)
        return None if found.why else clock.calibrate().ns(found.value)

    def each(self, percent) -> np.ndarray:
        """A percentile of each run in ns."""
        return np.array([clock.calibrate().ns(percentiles.of_samples(one, percent).value) for one in self.spans])

    def time(self, percent=50) -> dict:
        """Arguments of `record`: ns of a round, with the interval over the runs."""
        if self.ns(percent) is None:
            return {"value": None, "unit": "ns", "note": self.why or "too few samples"}
        found = intervals.median(self.each(percent))
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "ns", "note": self.where}

    def jitter(self, percent=99) -> dict:
        """Arguments of `record`: a high percentile over the median."""
        if self.ns(percent) is None:
            return {"value": None, "unit": "×", "note": self.why or "too few samples"}
        found = intervals.median(self.each(percent) / self.each(50))
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "×", "note": self.where}


@dataclass(frozen=True)
class Found:
    """Rounds of every transport.

    Attributes
    ----------
    of : dict of str to Rounds
    stages : dict of str to ndarray
        Median ns of each part of a round.
    label : str
    """

    of: dict
    stages: dict
    label: str

    def ratio(self, over, under) -> dict:
        """Arguments of `record`: ratio of two medians, run by run."""
        one, other = self.of[over], self.of[under]
        if not one.spans or not other.spans:
            return {"value": None, "unit": "×", "note": f"{over}: {one.why}" if one.why else f"{under}: {other.why}"}
        pairs = min(len(one.spans), len(other.spans))
        found = intervals.ratio(one.each(50)[:pairs], other.each(50)[:pairs])
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "×", "note": other.where}

    def fastest_other(self) -> str | None:
        """Name of the fastest transport over AF_INET without a thread that polls."""
        medians = {
            name: one.ns(50)
            for name, one in self.of.items()
            if one.spans and name != MOVED and kinds.KINDS[name].family in _FAMILIES and not kinds.KINDS[name].polled
        }
        return min(medians, key=medians.get, default=None)

    def floor(self) -> dict:
        """Arguments of `record`: the fastest other transport over AF_INET against SQPOLL (claim T6)."""
        other = self.fastest_other()
        if other is None:
            return {"value": None, "unit": "×", "note": "nothing ran over AF_INET"}
        row = self.ratio(other, SQPOLL)
        return row if row["value"] is None else row | {"note": f"{other}; {row['note']}"}


def refused() -> str:
    """Return why nothing can be measured here, or an empty text."""
    if why := kinds.refused(kinds.KINDS[SPINNING]):
        return why
    return "" if len(system.allowed_cpus()) > 1 else "engine and exchange need a CPU each, and there is one"


class Bench:
    """An exchange for all rounds of a notebook, and an engine of its own with an exchange of its own, both preloaded.

    Parameters
    ----------
    most : int
        Rounds of a run at most, warm-up included.

    Attributes
    ----------
    why : str
        Why nothing can be measured, if so.
    exchange : Exchange
    moved : Apart or None
    why_not_moved : str
        Why there is no `moved`.
    """

    def __init__(self, most):
        self.why, self._opened = refused(), contextlib.ExitStack()
        self.moved, self.why_not_moved = None, self.why
        if self.why:
            return
        with contextlib.ExitStack() as opened:
            library, about = preload.library()
            if library:
                self.moved = opened.enter_context(apart.Apart(most + 1, preload.environment(library)))
            self.why_not_moved = "" if library else about
            self.exchange = opened.enter_context(runs.Exchange(most + 1))
            if self.moved:
                self.moved.wait()
            if self.moved and not self.moved.preloaded:
                self.moved, self.why_not_moved = None, "the system does not preload the library"
            self._opened = opened.pop_all()

    def close(self):
        """End the processes."""
        self._opened.close()


def measure(bench, rounds, taken, warm_up, staged, seconds=60.0) -> Found:
    """Make rounds by each transport, in turn.

    Parameters
    ----------
    bench : Bench
    rounds, taken : int
        Rounds of a run, and runs of each transport.
    warm_up : int
        Rounds before those that count, in each run.
    staged : list of str
        Transports of which the parts of a round are timed too, in a run of its own.
    seconds : float
        Deadline of a run.
    """
    found, stages = {name: Rounds(why=bench.why) for name in kinds.KINDS} | {MOVED: Rounds(why=bench.why_not_moved)}, {}
    if bench.why:
        return Found(found, {}, bench.why)
    place = runs.place()
    plan = [(name, bench.exchange, kind) for name, kind in kinds.KINDS.items()]
    plan.insert(list(kinds.KINDS).index(UNIX) + 1, (MOVED, bench.moved, kinds.KINDS[SPINNING]))
    for _ in range(taken):
        for name, exchange, kind in plan:
            if not found[name].why:
                _take(found[name], exchange, kind, rounds, warm_up, place, seconds)
    for name in staged:
        if not found[name].why:
            trip = bench.exchange.run(kinds.KINDS[name], rounds, warm_up=warm_up, stages=True, seconds=seconds)
            stages[name] = np.median(trip.stages, axis=0) / clock.calibrate().ticks_per_ns
    return Found(found, stages, place.label)


def _take(into, exchange, kind, rounds, warm_up, place, seconds):
    try:
        trip = exchange.run(kind, rounds, warm_up=warm_up, placement=place, seconds=seconds)
    except UserError as error:
        if exchange.process.poll() is not None:
            raise
        into.spans, into.why = [], str(error)
        return
    into.spans.append(trip.spans)
    into.where = place.text(kind)
    into.waited += trip.usage.waiting_ns or 0


def table(found) -> pd.DataFrame:
    """Lay out the percentiles of each transport, fastest first; those that could not be had last, with the reason."""
    rows = []
    for name, one in found.items():
        row = {"transport": name} | {f"p{percent} [ns]": one.ns(percent) for percent in PERCENTILES}
        row["p99 / p50"] = one.jitter()["value"]
        rows.append(row | {"rounds": sum(map(len, one.spans)), "where": one.where or one.why})
    frame = pd.DataFrame(rows)
    return frame.sort_values("p50 [ns]", na_position="last", kind="stable").reset_index(drop=True)


def chart(found, names=(MEMORY, UNIX, MOVED, SPINNING, SQPOLL, "io_uring", BLOCKING)):
    """Draw which share of rounds took longer than a time, both axes logarithmic."""
    fig, axes = plt.subplots(figsize=(6.4, 4))
    for colour, name in zip((*COLOURS[:2], MUTED, *COLOURS[2:]), names, strict=True):
        if found.of[name].spans:
            times = np.sort(np.concatenate(found.of[name].spans)) / clock.calibrate().ticks_per_ns
            at = np.unique(np.geomspace(1, times.size, 400).astype(int)) - 1  # from the slowest
            style = {"linestyle": "--", "linewidth": 1.2} if name == MOVED else {"linewidth": 1.6}
            axes.step(times[::-1][at], (at + 1) / times.size, where="post", color=colour, label=name, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("time of a round [ns]")
    axes.set_ylabel("share of rounds that took longer")
    for share, text in ((0.5, "p50"), (0.01, "p99"), (0.001, "p99.9")):
        axes.axhline(share, color=MUTED, linewidth=0.8, linestyle=":")
        axes.annotate(text, (1, share), xycoords=("axes fraction", "data"), xytext=(2, -3),
                      textcoords="offset points", color=MUTED, fontsize=9)  # fmt: skip
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    return fig


def moved_sentence(found) -> str:
    """Say what moving an unmodified program onto AF_UNIX gains, and what the library costs."""
    one = found.of[MOVED]
    if not one.spans:
        return f"Nothing was moved: {one.why}."
    plain, native = found.ratio(SPINNING, MOVED), found.ratio(MOVED, UNIX)
    cost = (
        "no dearer than"
        if native["low"] <= 1
        else "dearer, by less than a tenth, than"
        if native["value"] < 1.1
        else "dearer than"
    )
    return (
        f"The program of {SPINNING}, moved by a preloaded library, takes {one.ns(50):,.0f} ns: plain TCP takes "
        f"**{plain['value']:.2f} times** as long ({plain['low']:.2f} to {plain['high']:.2f}). Against {UNIX} it is "
        f"{native['value']:.2f} times ({native['low']:.2f} to {native['high']:.2f}), {cost} a program written for it: "
        "the library acts where sockets are bound, connected and asked for their names, and not where bytes go."
    )


def sentence(found) -> str:
    """Say which transport is fastest, and settle whether SQPOLL is the floor of AF_INET."""
    rows = {name: one.ns(50) for name, one in found.of.items() if one.spans}
    if not rows:
        return f"Nothing was measured: {found.label}."
    best = min(rows, key=rows.get)
    text = f"Fastest is **{best}** with {rows[best]:,.0f} ns at the median."
    floor, other = found.floor(), found.fastest_other()
    if floor["value"] is None:
        return f"{text} Whether SQPOLL is the floor of AF_INET cannot be said here: {floor['note']}."
    verdict = (
        f"so SQPOLL is not the floor of a TCP traversal: {other} needs no thread of the system's, and is faster"
        if floor["high"] < 1
        else f"so nothing else over AF_INET is faster than SQPOLL; {other} comes next"
        if floor["low"] > 1
        else f"so {other} and SQPOLL cannot be told apart"
    )
    return (
        f"{text} Over AF_INET, {other} takes {floor['value']:.2f} times what SQPOLL takes ({floor['low']:.2f} to "
        f"{floor['high']:.2f}), {verdict}. {_cores()}"
    )


def _cores() -> str:
    cpus = len(system.allowed_cpus())
    if runs.place().own:
        return f"There are {cpus} CPUs, so that the SQ thread has one of its own."
    return (
        f"With {cpus} CPUs the SQ thread has none of its own: it shares the exchange's, which therefore waits in its "
        "calls instead of spinning. That is too few to judge what SQPOLL does on the five cores of the source."
    )
