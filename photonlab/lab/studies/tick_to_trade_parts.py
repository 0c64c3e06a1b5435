"""The parts of a round from tick to trade: by stamps in rounds, and the engine's own by batches of ticks at hand."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.measure import intervals, timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.studies.trade_core import Work
from photonlab.machine import clock
from photonlab.systems.tick_to_trade import engine as engines
from photonlab.systems.tick_to_trade import parts, ticks

STAGES = ("tick on its way", *parts.PARTS, "order handed over", "order on its way")
ENGINE = slice(1, 1 + len(parts.PARTS))
"""Which of the stages are the engine's."""

LENGTH = 4096
WHOLE, STAMPED = "whole", "whole, with stamps"
_VARIANTS = {"decode": parts.Decoding, "book": parts.Booking, "decide": parts.Deciding, WHOLE: engines.Engine,
             STAMPED: lambda books, state: parts.stamped(engines.Engine(books, state))}  # fmt: skip


@dataclass(frozen=True)
class Parts:
    """What the engine's parts cost by batches.

    Attributes
    ----------
    comparison : Comparison
        Of engines that end after a part of their work, of the whole one, and of the whole one with stamps.
    """

    comparison: Comparison

    def adds(self, part) -> intervals.Interval:
        """What a part adds to those before it, ns a tick; below zero where parts overlap wholly."""
        names = ["decode", "book", "decide", WHOLE]
        at = parts.PARTS.index(part)
        series = self.comparison[names[at]].per_op
        return intervals.median_of_differences(series - self.comparison[names[at - 1]].per_op if at else series)

    def rows(self) -> list[dict]:
        """Arguments of `record`: ns that each part adds."""
        note = f"what it adds to the parts before it; {self.comparison.note}"
        return [{"variant": part, **self.adds(part)._asdict(), "unit": "ns", "note": note} for part in parts.PARTS]

    @property
    def stamping(self) -> float:
        """How many times as long a tick takes with stamps."""
        return self.comparison.ratio(STAMPED, WHOLE).value


def measure(rounds) -> Parts:
    """Take ticks that call for an order with engines that end after each part of their work, in turn.

    Parameters
    ----------
    rounds : int
    """
    data = ticks.as_bytes(ticks.crossing(LENGTH)[0])
    works = {}
    for name, variant in _VARIANTS.items():
        works[name] = Work(data)
        works[name].engine = variant(*works[name].engine)
    return Parts(timing.compare(works, rounds=max(rounds, 3), ops=LENGTH))


def engine_table(measured, stages) -> pd.DataFrame:
    """Lay out what each part of the engine takes: by batches, and by stamps in rounds of each transport timed so.

    Parameters
    ----------
    measured : Parts
    stages : dict of str to ndarray
        As of `tick_to_trade.Found`.
    """
    empty, rows = clock.floor().empty_median_ns, []
    for at, part in enumerate(parts.PARTS):
        adds = measured.adds(part)
        row = {"part": part, "adds, by batches [ns]": adds.value, "95 %": f"{adds.low:.1f} to {adds.high:.1f}"}
        rows.append(row | {f"{name} [ns]": max(ns[ENGINE][at] - empty, 0.0) for name, ns in stages.items()})
    whole = {"part": WHOLE, "adds, by batches [ns]": float(np.median(measured.comparison[WHOLE].per_op)), "95 %": ""}
    total = {f"{name} [ns]": max(ns[ENGINE].sum() - len(parts.PARTS) * empty, 0.0) for name, ns in stages.items()}
    return pd.DataFrame([*rows, whole | total])


def engine_sentence(measured, stages) -> str:
    """Say which part of the engine costs most, and what stamping does to it."""
    costs, empty = {part: measured.adds(part).value for part in parts.PARTS}, clock.floor().empty_median_ns
    largest = max(costs, key=costs.get)
    whole = float(np.median(measured.comparison[WHOLE].per_op))
    text = (
        f"By batches a tick takes {whole:.1f} ns, and most is added by **{largest}** ({costs[largest]:.1f} ns). With "
        f"stamps between the parts it takes **{measured.stamping:.1f} times** as long: a stamp waits until all before "
        f"it is done, and reads {empty:.1f} ns where nothing is, so that parts of a few ns are "
        "told apart by batches only."
    )
    if not stages:
        return text
    name, ns = next(iter(stages.items()))
    here = ns[ENGINE].sum() - len(parts.PARTS) * empty
    loop = float(np.median(measured.comparison[STAMPED].per_op)) - (len(parts.PARTS) + 1) * empty
    text += f" In rounds by {name} its parts take {here:.0f} ns, net of the clock, "
    if here < 1.2 * loop:
        return f"{text}no more than in the loop with stamps ({loop:.0f} ns)."
    return (
        f"{text}against {loop:.0f} ns in the loop with stamps: between two ticks the system's own code has had the "
        "caches and the branch predictor, which a loop over ticks at hand keeps warm."
    )


def table(found) -> pd.DataFrame:
    """Lay out the median of each part of a round in ns, as stamped.

    Parameters
    ----------
    found : photonlab.lab.studies.tick_to_trade.Found
    """
    if not found.stages:
        return pd.DataFrame([{"transport": "none", "why": found.label or "no transport was asked for"}])
    return pd.DataFrame(
        [
            {"transport": name} | {f"{stage} [ns]": float(ns) for stage, ns in zip(STAGES, stages, strict=True)}
            for name, stages in found.stages.items()
        ]
    )


def chart(found):
    """Draw the parts of a round as stacked bars, one a transport; parts below zero are left out."""
    fig, axes = plt.subplots(figsize=(6.4, 0.5 * max(len(found.stages), 1) + 1.7))
    colours = dict(zip(STAGES, (*COLOURS, MUTED), strict=True))
    for place, stages in enumerate(found.stages.values()):
        left = 0.0
        for stage, ns in zip(STAGES, stages, strict=True):
            width = max(float(ns), 0.0)
            axes.barh(place, width, left=left, color=colours[stage], label=None if place else stage)
            left += width
    axes.set_yticks(range(len(found.stages)), list(found.stages))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("median time of the parts of a round [ns]")
    axes.set_ylabel("transport")
    if found.stages:
        fig.legend(loc="outside upper center", ncols=4, fontsize=8)
    return fig


def sentence(found) -> str:
    """Say how little of a round is the engine's, and what sending is."""
    if not found.stages:
        return "No parts of a round were timed."
    name, ns = next(iter(found.stages.items()))
    own, stamps = ns[ENGINE].sum(), len(parts.PARTS) * clock.floor().empty_median_ns
    return (
        f"Of a round by {name} the engine, which decodes, updates the book, decides and encodes, has "
        f"{100 * own / ns.sum():.1f} % ({own:.0f} ns, of which {stamps:.0f} ns are the clock's own). Handing "
        f"the order over takes {ns[-2]:,.0f} ns: over loopback that call does the receiver's share of TCP as well."
    )
