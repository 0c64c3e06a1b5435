"""Rounds from tick to trade by each transport, taken in turn: percentiles, ratios, parts of one (claims T2–T6, T11).

The exchange times each round by the processor's clock, from before it hands a tick over until it has all of the order.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.errors import UserError
from photonlab.lab.measure import intervals, percentiles
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.machine import clock, system
from photonlab.systems.tick_to_trade import run as runs
from photonlab.systems.transports import kinds

BLOCKING, UNIX, SQPOLL, MULTICAST = "TCP blocking", "AF_UNIX", "io_uring SQPOLL", "multicast in, TCP out"
SPINNING, MEMORY = "TCP spinning", "shared memory"
PERCENTILES = (50, 90, 99, "99.9")
STAGES = ("tick on its way", "engine", "order handed over", "order on its way")
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
        if not self.spans:
            return {"value": None, "unit": "×", "note": self.why}
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
            if one.spans and kinds.KINDS[name].family in _FAMILIES and not kinds.KINDS[name].polled
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


def measure(rounds, taken, warm_up, staged, seconds=60.0) -> Found:
    """Make rounds by each transport, in turn.

    Parameters
    ----------
    rounds, taken : int
        Rounds of a run, and runs of each transport.
    warm_up : int
        Rounds before those that count, in each run.
    staged : list of str
        Transports of which the parts of a round are timed too, in a run of its own.
    seconds : float
        Deadline of a run.
    """
    found, stages = {name: Rounds() for name in kinds.KINDS}, {}
    if why := refused():
        return Found({name: Rounds(why=why) for name in kinds.KINDS}, {}, why)
    place = runs.place()
    with runs.Exchange(rounds + warm_up + 1) as exchange:
        for _ in range(taken):
            for name, kind in kinds.KINDS.items():
                if not found[name].why:
                    _take(found[name], exchange, kind, rounds, warm_up, place, seconds)
        for name in staged:
            if not found[name].why:
                trip = exchange.run(kinds.KINDS[name], rounds, warm_up=warm_up, stages=True, seconds=seconds)
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


def chart(found, names=(MEMORY, UNIX, SPINNING, SQPOLL, "io_uring", BLOCKING)):
    """Draw which share of rounds took longer than a time, both axes logarithmic."""
    fig, axes = plt.subplots(figsize=(6.4, 4))
    for colour, name in zip(COLOURS, names, strict=False):
        if found.of[name].spans:
            times = np.sort(np.concatenate(found.of[name].spans)) / clock.calibrate().ticks_per_ns
            at = np.unique(np.geomspace(1, times.size, 400).astype(int)) - 1  # from the slowest
            axes.step(times[::-1][at], (at + 1) / times.size, where="post", color=colour, label=name, linewidth=1.6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("time of a round [ns]")
    axes.set_ylabel("share of rounds that took longer")
    for share, text in ((0.5, "p50"), (0.01, "p99"), (0.001, "p99.9")):
        axes.axhline(share, color=MUTED, linewidth=0.8, linestyle=":")
        axes.annotate(text, (1, share), xycoords=("axes fraction", "data"), xytext=(2, -3),
                      textcoords="offset points", color=MUTED, fontsize=9)  # fmt: skip
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    return fig


def stage_table(found) -> pd.DataFrame:
    """Lay out the median of each part of a round in ns."""
    if not found.stages:
        return pd.DataFrame([{"transport": "none", "why": found.label or "no transport was asked for"}])
    return pd.DataFrame(
        [
            {"transport": name} | {f"{stage} [ns]": float(ns) for stage, ns in zip(STAGES, parts, strict=True)}
            for name, parts in found.stages.items()
        ]
    )


def stage_sentence(found) -> str:
    """Say how little of a round is the engine's."""
    if SPINNING not in found.stages:
        return "No parts of a round were timed."
    parts = found.stages[SPINNING]
    floor = clock.floor().ns
    return (
        f"Of a round by {SPINNING} the engine, which decodes, updates the book, decides and encodes, has "
        f"{100 * parts[1] / parts.sum():.1f} % ({parts[1]:.0f} ns, of which up to {floor:.0f} ns are the clock's own): "
        "too little for stamps within it to mean anything; the section on the core takes it apart by batches. Handing "
        f"the order over takes {parts[2]:,.0f} ns: over loopback that call does the receiver's share of TCP as well."
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
