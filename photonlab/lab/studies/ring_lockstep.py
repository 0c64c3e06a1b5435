"""Messages handed over one by one, an answer awaited each time: latency of a ring and of a bare ping-pong (claim S3).

Half of a round trip is the way of one message. For batches, what a round trip takes longer than the answer's way is the
time until a whole batch has been read.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels.ring_variants import MAKERS, added
from photonlab.lab.measure import histogram
from photonlab.lab.publish.figures import COLOURS
from photonlab.lab.studies import ring_turns
from photonlab.lab.studies.ring_turns import Across, Lockstep, PingPong, Stopwatch
from photonlab.machine import clock

WORD, LINE = "ping-pong of a word", "ping-pong of a line"
RING, SEQUENCED, UNCACHED = "ring", "sequenced ring", "ring without copies of indices"
_KINDS = {RING: "ring", SEQUENCED: "sequenced", UNCACHED: "uncached"}
NAMES = (WORD, LINE, *_KINDS)
SLOTS = 64


@dataclass(frozen=True)
class Handed:
    """Messages handed over one by one.

    Attributes
    ----------
    across : Across
        Times one way, and of a whole round trip for batches of more than one.
    batches : list of int
    counts : dict of str to Histogram
        One way in ticks, all rounds.
    added : tuple of str
        Rings that somebody added, and the house's own with the same copies before them.
    """

    across: Across
    batches: list
    counts: dict
    added: tuple = ()

    def time(self, batch) -> dict:
        """Arguments of `record`: ns until a batch has been read."""
        one = self.across.time(RING)
        if batch == 1 or one["value"] is None:
            return one
        row = self.across.time(_batch(batch))
        return row | {end: row[end] - one["value"] for end in ("value", "low", "high")}


def _batch(batch) -> str:
    return f"round trip of {batch}"


class _Counted(Lockstep):
    """A lockstep that keeps a histogram of what it saw."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.counts = histogram.empty()

    def __call__(self) -> int:
        total = super().__call__()
        _count(self.counts, self.spans)
        return total


class _CountedPingPong(PingPong):
    """A ping-pong that keeps a histogram of what it saw."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.counts = histogram.empty()

    def __call__(self) -> int:
        total = super().__call__()
        _count(self.counts, self.spans)
        return total


def _count(counts, spans):
    histogram.add_all(counts, spans[1:] >> np.uint64(1))  # the first has the start in it


def measure(calls, batches, rounds) -> Handed:
    """Hand messages over in each kind of ring, and numbers without one, in turn.

    Parameters
    ----------
    calls : int
        Round trips of a run.
    batches : list of int
        Of the ring as it is; 1 is always taken.
    rounds : int
    """
    why = ring_turns.refused()
    if why:
        return Handed(ring_turns.nothing(why), list(batches), {})
    watch = Stopwatch()
    works = {WORD: _CountedPingPong(watch, calls, to=32), LINE: _CountedPingPong(watch, calls, to=32, line=True)}
    works |= {name: _Counted(watch, MAKERS[kind], calls, slots=SLOTS) for name, kind in (_KINDS | added()).items()}
    for batch in batches:
        if batch > 1:
            slots = max(SLOTS, 2 * batch)
            works[_batch(batch)] = Lockstep(watch, MAKERS["ring"], max(calls // batch, 100), batch, slots=slots)
    ops = {name: int(work.spans.size) for name, work in works.items()}
    across = ring_turns.in_turn(works, watch, ops, rounds)
    counts = {name: works[name].counts for name in (*NAMES, *added())}
    return Handed(across, list(batches), counts, tuple(added()))


def table(found) -> pd.DataFrame:
    """Lay out the way of one message: ns, over the ping-pong of a line, and percentiles in ticks of the clock."""
    if found.across.comparison is None:
        return pd.DataFrame([{"handed over": "nothing", "why": found.across.why}])
    rows = []
    for name, counts in found.counts.items():
        seen = histogram.summary(counts)
        rows.append(
            {
                "handed over by": name,
                "ns one way": found.across.ns(name),
                "over a line": found.across.ratio(name, LINE)["value"],
                "95 %": found.across.interval(name, LINE),
                **{f"{one.name} [ticks]": one.text() for one in seen.percentiles},
                "max [ticks]": seen.most,
                "samples": seen.count,
            }
        )
    return pd.DataFrame(rows)


def chart(found):
    """Draw the distribution of one way in ticks of the clock, for the ping-pong and the rings."""
    if found.across.comparison is None:
        return ring_turns.empty_chart(found.across.why)
    fig, axes = plt.subplots(figsize=(5.8, 3.8))
    shown = {name: found.counts[name] for name in (LINE, SEQUENCED, RING, *found.added)}
    top = max(_upper(counts) for counts in shown.values())
    width = max(top // 60, round(clock.floor().granularity_ticks))  # narrower bins would show the clock's steps
    for colour, (name, counts) in zip(COLOURS, shown.items(), strict=False):
        buckets = counts.buckets[: top // width * width].reshape(-1, width).sum(axis=1)
        axes.stairs(100 * buckets / counts.totals[1], np.arange(buckets.size + 1) * width, color=colour, label=name,
                    linewidth=1.6)  # fmt: skip
    axes.set_xlabel(f"one way [ticks of {clock.name()}]")
    axes.set_ylabel("share of messages [%]")
    axes.set_ylim(bottom=0)
    axes.legend()
    return fig


def _upper(counts):
    """Twice the 99th percentile of a histogram, or its bound."""
    seen = int(np.searchsorted(np.cumsum(counts.buckets), 0.99 * float(counts.totals[1])))
    return min(int(1.25 * seen) + 1, counts.buckets.size)


def sentence(found) -> str:
    """Say how much longer than a bare ping-pong each ring takes to hand over a message."""
    if found.across.comparison is None:
        return f"Nothing was handed over: {found.across.why}."
    line, rows = found.across.time(LINE), {name: found.across.ratio(name, LINE) for name in (RING, SEQUENCED)}
    if line["value"] is None or None in [row["value"] for row in rows.values()]:
        return "Nothing can be said: too short to be told."
    ring, own = rows[RING], rows[SEQUENCED]
    word = found.across.ratio(LINE, WORD)
    return (
        f"Handed over bare, a line of 64 bytes takes {line['value']:.0f} ns one way ({word['value']:.2f} times a "
        f"single word). The ring takes **{ring['value']:.2f} times** as long ({ring['low']:.2f} to "
        f"{ring['high']:.2f}): its reader waits for the index and then for the slot, one cache line after the other. "
        f"With the message's number in the slot itself only one line passes: **{own['value']:.2f} times** "
        f"({own['low']:.2f} to {own['high']:.2f})."
    )
