"""The core of tick to trade: parse, book, decide, order. One tick in batches and singly (claims T1, T8)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.measure import allocation, histogram, timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.machine import clock
from photonlab.systems.tick_to_trade import drive, engine, messages, ticks

BATCH = 64
"""Ticks a batch: some thousand cycles, against which a read of the clock is small."""

LENGTH = 4096
"""Ticks of a stream, taken again and again: they lie in the second cache, as a receive buffer in use does."""

CROSSING, FLOW = "every tick calls for an order", "order flow"
PERCENTILES = (50, 90, 99, "99.9")


@dataclass(frozen=True)
class Distribution:
    """Times of batches, or of single ticks.

    Attributes
    ----------
    name : str
    batch : int
    summary : photonlab.lab.measure.histogram.Summary
        In the clock's ticks a batch, the reads of the clock included.
    counts : uint64 array
        The histogram's buckets.
    """

    name: str
    batch: int
    summary: histogram.Summary
    counts: np.ndarray


@dataclass(frozen=True)
class Core:
    """What the core costs.

    Attributes
    ----------
    comparison : Comparison
        Of the streams of ticks, in turn, by the system's clock.
    distributions : tuple of Distribution
    floor : photonlab.machine.clock.Floor
    hz : int
        The clock's ticks a second.
    """

    comparison: Comparison
    distributions: tuple
    floor: clock.Floor
    hz: int

    def of(self, name, batch) -> Distribution:
        """Return a distribution."""
        return next(one for one in self.distributions if (one.name, one.batch) == (name, batch))

    def net(self, one, percent) -> float | None:
        """The clock's ticks for one tick at a percentile, less what an empty region reads; None if unsupported."""
        found = next(p for p in one.summary.percentiles if p.name == f"p{percent}")
        if found.value is None or found.why:
            return None
        empty = self.floor.empty_median_ns * self.hz / 1e9
        return max(found.value - empty, 0.0) / one.batch

    def row(self, percent, name=CROSSING) -> dict:
        """Arguments of `record`: the clock's ticks for one tick in batches, at a percentile."""
        value = self.net(self.of(name, BATCH), percent)
        note = f"clock ticks at {self.hz / 1e9:.3f} GHz, batches of {BATCH}, {self._samples(name)}"
        return {"value": value, "unit": "cycles", "note": note}

    def time(self, name=CROSSING) -> dict:
        """Arguments of `record`: ns for one tick at the median of batches."""
        value = self.net(self.of(name, BATCH), 50)
        note = f"batches of {BATCH}, {self._samples(name)}"
        return {"value": None if value is None else value * 1e9 / self.hz, "unit": "ns", "note": note}

    def jitter(self, name=CROSSING) -> dict:
        """Arguments of `record`: p99 over p50 of batches."""
        low, high = (self.net(self.of(name, BATCH), percent) for percent in (50, 99))
        note = f"batches of {BATCH}, {self._samples(name)}"
        return {"value": high / low if low and high else None, "unit": "×", "note": note}

    def _samples(self, name):
        return f"{self.of(name, BATCH).summary.count:,} batches"


def measure(count=100_000, rounds=11, seed=1) -> Core:
    """Run two streams of ticks through the engine.

    Parameters
    ----------
    count : int
        Ticks of each stream in a round, or as many more as fill it up to a whole number of `LENGTH`.
    rounds : int
        Of each stream, after it was gone through once.
    seed : int
        Of the order flow.
    """
    length = min(count, LENGTH)
    turns = -(-count // length)
    streams = {CROSSING: ticks.crossing(length)[0], FLOW: ticks.flow(np.zeros(length, np.uint32), seed)}
    works = {name: Work(ticks.as_bytes(found)) for name, found in streams.items()}
    compared = timing.compare(dict(works.items()), rounds=max(rounds, 3), ops=length)
    found = []
    for name, work in works.items():
        for batch in (BATCH, 1):
            spans = histogram.empty(bound=1 << 16)
            drive.spans(work.engine, work.data, work.out, np.uint64(batch), np.uint64(rounds * turns), spans)
            floor = None if batch > 1 else clock.floor().ticks
            summary = histogram.summary(spans, PERCENTILES, floor=floor)
            found.append(Distribution(name, batch, summary, spans.buckets.copy()))
    return Core(compared, tuple(found), clock.floor(), clock.calibrate().hz)


class Work:
    """A stream of ticks and an engine for it; calling it takes all ticks and says how many were applied."""

    def __init__(self, data, instruments=1, huge=True):
        self.data = data
        self.engine = engine.make_engine(instruments, huge=huge)
        self.out = np.zeros(2 * messages.ORDER_SIZE, np.uint8)

    def __call__(self) -> int:
        """Take all ticks."""
        return int(drive.drive(self.engine, self.data, self.out))


def table(found) -> pd.DataFrame:
    """Lay out the percentiles in the clock's ticks for one tick of market data, net of the clock, by stream."""
    rows = []
    for one in found.distributions:
        row = {"stream": one.name, "measured": "singly" if one.batch == 1 else f"in batches of {one.batch}"}
        for percent in PERCENTILES:
            row[f"p{percent} [cycles]"] = found.net(one, percent)
        if one.batch > 1:
            reading = found.comparison.reading(one.name)
            row["whole stream [ns a tick]"] = reading.ns
        row["samples"] = one.summary.count
        rows.append(row)
    return pd.DataFrame(rows)


def chart(found):
    """Draw the distributions of batches, with the published median."""
    fig, axes = plt.subplots(figsize=(5.8, 3.2))
    for name, colour in zip((CROSSING, FLOW), COLOURS, strict=False):
        one = found.of(name, BATCH)
        at = np.flatnonzero(one.counts)
        empty = found.floor.empty_median_ns * found.hz / 1e9
        share = one.counts[at] / max(one.summary.count, 1)
        axes.step((at - empty) / BATCH, 100 * np.cumsum(share), where="post", color=colour, label=name)
    axes.axvline(38, color=MUTED, linestyle="--")
    axes.annotate("published", (38, 50), xytext=(4, 0), textcoords="offset points", color=MUTED, fontsize=9)
    low, high = found.net(found.of(CROSSING, BATCH), 50) or 38, found.net(found.of(FLOW, BATCH), 99) or 100
    axes.set_xlim(0, 1.6 * max(38, low, high))
    axes.set_xlabel("cycles of the clock for one tick")
    axes.set_ylabel("batches up to here [%]")
    axes.legend(loc="lower right")
    return fig


def sentence(found) -> str:
    """Say what a tick costs, and how steady that is."""
    core, jitter = found.time(), found.jitter()
    if core["value"] is None or jitter["value"] is None:
        return f"Nothing can be said of the tail: {found.of(CROSSING, BATCH).summary.note or 'no samples'}."
    cycles, flow = found.row(50)["value"], found.time(FLOW)
    text = (
        f"A tick that calls for an order takes **{core['value']:.1f} ns**, {cycles:.0f} cycles of a clock of "
        f"{found.hz / 1e9:.2f} GHz (published: 38 cycles, 12.6 ns), and p99 over p50 of batches is "
        f"**{jitter['value']:.2f}**."
    )
    if flow["value"] is not None:
        text += f" In order flow of all actions and levels it takes {flow['value']:.1f} ns."
    return text


def proof() -> allocation.Proof:
    """Prove that the trading loop allocates nothing (claim T8)."""
    data = ticks.as_bytes(ticks.crossing(1000)[0])
    return allocation.prove(drive.drive, engine.make_engine(), data, np.zeros(2 * messages.ORDER_SIZE, np.uint8))


def proof_row(proven) -> dict:
    """Arguments of `record`: allocations, in the code and while it ran."""
    value = len(proven.allocation_calls_in_code) + proven.allocations_while_running
    return {"value": value, "unit": "1", "note": f"{proven.kernel}: calls in its code and those of a run"}
