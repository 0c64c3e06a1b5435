"""The latency scorecard by message class, from samples of single messages: histograms, table, chart (claim R2)."""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.ticker import NullFormatter

from photonlab.lab.judge import claims
from photonlab.lab.measure import histogram
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.machine import clock
from photonlab.machine.jit import kernel
from photonlab.systems.experiments.scorecard import CLASSES, TimedPass

NAMES = tuple(CLASSES)
BOUND = 100_000
"""Largest number of ticks with a bucket of its own: some 40 µs."""

STATISTICS = ("avg", "min", "p50", "p90", "p99", "p99.9", "max")
_8, _255 = np.uint64(8), np.uint64(255)


@dataclass(frozen=True)
class Scorecard:
    """Samples of every message of a day, by class.

    Attributes
    ----------
    day : photonlab.lab.studies.day.Day
    histograms : dict of str to photonlab.lab.measure.histogram.Histogram
        In ticks, all runs together.
    medians : dict of str to list of int
        Median of each class in each run, in ticks.
    rate, floor
        The clock's, of `photonlab.machine.clock`.
    timed_s, runs
        Sum of all samples of all messages in seconds, and how often the day was replayed.
    checksum : int
        Of the books afterwards, equal in all runs.
    """

    day: object
    histograms: dict
    medians: dict
    rate: clock.Calibration
    floor: clock.Floor
    timed_s: float
    runs: int
    checksum: int

    def summary(self, name) -> histogram.Summary:
        """Count, mean, extremes and percentiles of a class, in ticks."""
        return histogram.summary(self.histograms[name], floor=self.floor.ticks)

    def ns(self, name) -> dict:
        """The statistics of a class in ns by their names; None for what must not be printed."""
        summary = self.summary(name)
        found = {"avg": summary.mean, "min": summary.least, "max": summary.most}
        found = {key: value if value is not None and value > self.floor.ticks else None for key, value in found.items()}
        found |= {one.name: one.value if one.supported else None for one in summary.percentiles}
        return {key: None if found[key] is None else self.rate.ns(found[key]) for key in STATISTICS}

    def rows(self, name) -> list:
        """Arguments of `record` for every statistic of a class."""
        summary = self.summary(name)
        reasons = {one.name: one.why for one in summary.percentiles}
        below = "no samples" if not summary.count else f"at or below the clock's floor ({self.floor.ns:.1f} ns)"
        return [self._row(name, key, value, reasons.get(key) or below) for key, value in self.ns(name).items()]

    def all_rows(self) -> list:
        """Arguments of `record` for every statistic of every class."""
        return [row for name in NAMES for row in self.rows(name)]

    def _row(self, name, statistic, value, why):
        row = {"statistic": statistic, "variant": name, "value": value, "unit": "ns"}
        note = f"{self.day.name}, {self.runs} runs, timer included ({self.floor.empty_median_ns:.1f} ns for nothing)"
        if value is not None and statistic == "p50":
            row |= {"low": self.rate.ns(min(self.medians[name])), "high": self.rate.ns(max(self.medians[name]))}
        return row | {"note": note if value is not None else why}


@kernel
def _fold(spans, kinds, wanted, into):
    """Count the samples of one class.

    Parameters
    ----------
    spans : ndarray of uint64
        Ticks << 8 | type byte.
    kinds : ndarray of uint8, shape (256,)
        By type byte, the number of its class.
    wanted : int64
        The class.
    into : Histogram
    """
    for i in range(spans.size):
        if kinds[spans[i] & _255] == wanted:
            histogram.add(into, spans[i] >> _8)


def measure(day, runs) -> Scorecard:
    """Replay a day with a clock round every message.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    runs : int
        Replays; the first one is not counted, as it compiles and warms up.
    """
    kinds = np.full(256, len(NAMES), np.uint8)
    for number, types in enumerate(CLASSES.values()):
        kinds[[ord(type_) for type_ in types]] = number
    timed = TimedPass(day.data)
    histograms = {name: histogram.empty(BOUND) for name in NAMES}
    medians, checksums, total = {name: [] for name in NAMES}, set(), 0
    for run in range(runs + 1):
        timed.prepare()
        checksums.add(timed())
        if run == 0:
            continue
        total += int((timed.spans >> _8).sum())
        for number, name in enumerate(NAMES):
            found = histogram.empty(BOUND)
            _fold(timed.spans, kinds, number, found)
            histogram.merge(histograms[name], found)
            medians[name].append(histogram.percentile(found, 50).value or 0)
    assert len(checksums) == 1, "the clock does not change the books"
    rate, floor = clock.calibrate(), clock.floor()
    return Scorecard(day, histograms, medians, rate, floor, rate.ns(total) / 1e9, runs, checksums.pop())


def table(card):
    """Lay out the scorecard, each class beside its published row.

    Parameters
    ----------
    card : Scorecard

    Returns
    -------
    DataFrame
        Text cells in ns; "≤" at or below the floor, a dash for a percentile that too few samples support.
    """
    published = claims.by_id()["R2"]
    counts = {entry.variant: int(entry.value) for entry in claims.by_id()["R3"].published}
    rows = []
    for name in NAMES:
        cells = card.summary(name).cells(scale=1e9 / card.rate.hz)
        cells = {key: cells[key] for key in ("count", *STATISTICS)}
        rows.append({"class": name, "where": "here", **cells})
        there = {key: published.figure(key, name).value for key in STATISTICS}
        texts = {key: f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}" for key, value in there.items()}
        rows.append({"class": name, "where": "published", "count": f"{counts[name]:,}", **texts})
    return pd.DataFrame(rows)


def notes(card):
    """Say which figures are not printed and why; empty if all are."""
    found = [f"{name}: {card.summary(name).note}" for name in NAMES if card.summary(name).note]
    return "; ".join(found).replace(f"({card.floor.ticks:g} ticks)", f"({card.floor.ns:.1f} ns)")


def headline(card):
    """Hold the published headline against the table under it, and against what was measured here (claim R4).

    Parameters
    ----------
    card : Scorecard

    Returns
    -------
    str
        Markdown.
    """
    tails = {entry.variant: entry.value for entry in claims.by_id()["R4"].published}
    limit = tails.pop("headline")
    above = ", ".join(f"{name} {value:,.0f} ns" for name, value in tails.items() if value >= limit)
    text = f"The headline says p99.9 < {limit:,.0f} ns; the table under it has {above or 'nothing'} at or above that. "
    ours = {name: card.ns(name)["p99.9"] for name in NAMES}
    told = {name: value for name, value in ours.items() if value is not None}
    if not told:
        return text + "Here no p99.9 is supported by its samples."
    beyond = [f"{name} {value:,.0f} ns" for name, value in told.items() if value >= limit]
    where = f"above it are {', '.join(beyond)}" if beyond else "none lies above it"
    return text + f"Of the {len(told)} p99.9 that can be told here, {where}."


def chart(card):
    """Draw the percentiles of each class, here and as published, on a logarithmic scale.

    Parameters
    ----------
    card : Scorecard

    Returns
    -------
    matplotlib.figure.Figure
    """
    published = claims.by_id()["R2"]
    points = ("p50", "p90", "p99", "p99.9")
    ticks = [point.removeprefix("p") for point in points]
    fig, (here, there) = plt.subplots(1, 2, sharey=True, figsize=(5.8, 3.4))
    for name, colour in zip(NAMES, COLOURS, strict=False):
        ours = [np.nan if card.ns(name)[p] is None else card.ns(name)[p] for p in points]
        theirs = [published.figure(p, name).value for p in points]
        here.plot(ticks, ours, marker="o", color=colour)
        there.plot(ticks, theirs, marker="o", color=colour, linestyle="--", label=name)
    here.axhline(card.floor.ns, color=MUTED, linewidth=1)
    place = {"xytext": (0, 3), "textcoords": "offset points"}
    here.annotate("clock's floor", (0, card.floor.ns), **place, color=MUTED, fontsize=8)
    here.set_yscale("log")
    here.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    here.yaxis.set_minor_formatter(NullFormatter())
    here.set_ylabel("latency of one message [ns]")
    here.set_title(f"here, {card.day.name} day")
    there.set_title("published")
    for axes in (here, there):
        axes.set_xlabel("percentile")
    there.legend(fontsize=8, loc="lower right")
    return fig


def sentence(card, ns_a_message):
    """Say what the clock adds, how the sum of all samples stands to the throughput, and what the order of medians is.

    Parameters
    ----------
    card : Scorecard
    ns_a_message : float
        Of the throughput run on the same day, which has no clock in it.

    Returns
    -------
    str
        Markdown.
    """
    each = card.timed_s * 1e9 / (card.day.messages * card.runs)
    medians = {name: card.ns(name)["p50"] for name in NAMES}
    told = {name: value for name, value in medians.items() if value is not None}
    ranked = sorted(told, key=told.get)
    signs = [" = " if told[one] == told[two] else " < " for one, two in itertools.pairwise(ranked)] + [""]
    order = "".join(f"{name} {told[name]:.1f}{sign}" for name, sign in zip(ranked, signs, strict=False))
    lost = [name for name in NAMES if name not in told]
    text = (
        f"An empty timed region reads {card.floor.empty_median_ns:.1f} ns here at the median, and that is **in** every "
        f"figure of the table; nothing was subtracted. Taken singly, a message takes {each:.1f} ns on average, in the "
        f"throughput run {ns_a_message:.1f} ns: "
    )
    text += "fences and lone cache misses cost the difference. " if each > ns_a_message else "nothing is lost by it. "
    text += f"Medians in ns: {order}." if told else "No median is supported by clock and samples."
    return text + (f" Not supported by clock or samples: {', '.join(lost)}." if lost and told else "")
