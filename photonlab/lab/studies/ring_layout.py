"""Where the words of a ring lie: head and tail on one line or on their own, slots of one line or more (S4, P8, P9)."""

from dataclasses import dataclass

import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels.ring_variants import MAKERS
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.studies import ring_turns
from photonlab.lab.studies.ring_turns import SLOTS, Across, Lockstep, Stopwatch, Stream

STREAM, LOCKSTEP, BATCH = "stream, one at a time", "one by one, with answers", "stream, batches of 64"
WORKS = (STREAM, LOCKSTEP, BATCH)
CACHED, UNCACHED = "with copies of indices", "without copies"
_KINDS = {CACHED: "ring", UNCACHED: "uncached"}
SHARED, LINE, PAIR = 8, 64, 128
"""Bytes between head and tail: one line for both, lines of their own, pairs of lines of their own."""

SIZES = (64, 72, 96, 128)


@dataclass(frozen=True)
class Padding:
    """Rings with head and tail at several distances.

    Attributes
    ----------
    across : Across
    """

    across: Across

    def row(self, work, over, under, kind=CACHED) -> dict:
        """Arguments of `record`: ratio of the times at two distances in bytes."""
        return self.across.ratio(_padded(kind, work, over), _padded(kind, work, under))

    def time(self, work, apart, kind=CACHED) -> dict:
        """Arguments of `record`: ns a message."""
        return self.across.time(_padded(kind, work, apart))


def _padded(kind, work, apart):
    return f"{kind}; {work}; {apart}"


def _work(watch, what, make, messages, calls, words=8, **options):
    if what == LOCKSTEP:
        return Lockstep(watch, make, calls, slots=64, words=words, **options)
    return Stream(watch, make(SLOTS, words, **options), messages, 1 if what == STREAM else 64)


def measure_padding(messages, calls, rounds) -> Padding:
    """Send messages through rings whose head and tail lie 8, 64 and 128 bytes apart, in turn.

    Parameters
    ----------
    messages, calls : int
        Messages of a stream, and round trips.
    rounds : int
    """
    why = ring_turns.refused()
    if why:
        return Padding(ring_turns.nothing(why))
    watch = Stopwatch()
    works = {
        _padded(kind, what, apart): _work(watch, what, MAKERS[name], messages, calls, apart=apart // 8)
        for kind, name in _KINDS.items()
        for what in WORKS
        for apart in (SHARED, LINE, PAIR)
    }
    ops = {name: calls if LOCKSTEP in name else messages for name in works}
    return Padding(ring_turns.in_turn(works, watch, ops, rounds))


def padding_table(found) -> pd.DataFrame:
    """Lay out ns a message by distance, and one line over own lines."""
    if found.across.comparison is None:
        return pd.DataFrame([{"ring": "none", "why": found.across.why}])
    rows = []
    for kind in _KINDS:
        for work in WORKS:
            names = {apart: _padded(kind, work, apart) for apart in (SHARED, LINE, PAIR)}
            rows.append(
                {
                    "ring": kind,
                    "work": work,
                    **{f"{apart} bytes [ns]": found.across.ns(name) for apart, name in names.items()},
                    "8 bytes over 128": found.across.ratio(names[SHARED], names[PAIR])["value"],
                    "95 %": found.across.interval(names[SHARED], names[PAIR]),
                }
            )
    return pd.DataFrame(rows)


def padding_chart(found):
    """Draw one line over own lines, with intervals, by ring and work."""
    if found.across.comparison is None:
        return ring_turns.empty_chart(found.across.why)
    bars = [(kind, work, found.row(work, SHARED, PAIR, kind)) for work in WORKS for kind in _KINDS]
    fig, axes = plt.subplots(figsize=(5.8, 3.2))
    for place, (kind, _, row) in enumerate(bars):
        colour = COLOURS[0] if kind == CACHED else COLOURS[1]
        value = row["value"] or 1
        axes.plot([row["low"] or value, row["high"] or value], [place, place], color=colour, linewidth=5, alpha=0.4)
        axes.plot([value], [place], "o", color=colour)
    axes.axvline(1, color=MUTED, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(bars)), [f"{work}, {kind}" for kind, work, _ in bars], fontsize=8.5)
    axes.invert_yaxis()
    axes.set_xlabel("one line / own lines")
    axes.set_ylabel("work and ring")
    return fig


def padding_sentence(found) -> str:
    """Say where sharing a line is faster and where it is slower."""
    if found.across.comparison is None:
        return f"Nothing can be said: {found.across.why}."
    told = {"faster": [], "slower": [], "as fast": []}
    for kind in _KINDS:
        for work in WORKS:
            row = found.row(work, SHARED, PAIR, kind)
            if row["value"] is not None:
                side = "faster" if row["high"] < 1 else "slower" if row["low"] > 1 else "as fast"
                told[side].append(f"{work} {kind} ({row['value']:.2f})")
    return " ".join(
        f"Head and tail on one line are **{side}** for {'; '.join(names)}." for side, names in told.items() if names
    )


@dataclass(frozen=True)
class Slots:
    """Rings with slots of several sizes.

    Attributes
    ----------
    across : Across
    """

    across: Across

    def row(self, work, size) -> dict:
        """Arguments of `record`: time with slots of a size in bytes over that with 64."""
        return self.across.ratio(_sized(work, size), _sized(work, 64))


def _sized(work, size):
    return f"{work}; {size}"


def measure_slots(messages, calls, rounds) -> Slots:
    """Send messages that fill their slots of 64, 72, 96 and 128 bytes, in turn; parameters as of `measure_padding`."""
    why = ring_turns.refused()
    if why:
        return Slots(ring_turns.nothing(why))
    watch = Stopwatch()
    works = {
        _sized(what, size): _work(watch, what, MAKERS["ring"], messages, calls, words=size // 8)
        for what in WORKS
        for size in SIZES
    }
    ops = {name: calls if LOCKSTEP in name else messages for name in works}
    return Slots(ring_turns.in_turn(works, watch, ops, rounds))


def slot_table(found) -> pd.DataFrame:
    """Lay out ns a message by size of slot, and over slots of 64 bytes."""
    if found.across.comparison is None:
        return pd.DataFrame([{"slots": "none", "why": found.across.why}])
    return pd.DataFrame(
        {
            "work": work,
            "slot [bytes]": size,
            "ns a message": found.across.ns(_sized(work, size)),
            "over 64 bytes": found.row(work, size)["value"],
            "95 %": found.across.interval(_sized(work, size), _sized(work, 64)),
        }
        for work in WORKS
        for size in SIZES
    )


def slot_sentence(found) -> str:
    """Say what a slot that straddles lines costs."""
    latency, aligned = found.row(LOCKSTEP, 72), found.row(LOCKSTEP, 128)
    if latency["value"] is None or aligned["value"] is None:
        return f"Nothing can be said: {latency['note']}."
    batch = found.row(BATCH, 72)
    return (
        f"With slots of 72 bytes a message takes **{latency['value']:.2f} times** as long from writer to reader as "
        f"with 64 ({latency['low']:.2f} to {latency['high']:.2f}), with 128, which straddle nothing but fill two, "
        f"{aligned['value']:.2f} times. In batches, where the lines of neighbouring slots come one after the other "
        f"anyway, 72 bytes take {batch['value']:.2f} times as long as 64, for 1.12 times the bytes."
    )
