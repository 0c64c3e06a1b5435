"""What framing, decoding and the book cost: loops with one stage more each, taken in turn (claim F3)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels.framing import walk
from photonlab.lab.judge import claims
from photonlab.lab.measure import intervals, timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS
from photonlab.systems.experiments.attribution import decode_for_book
from photonlab.systems.experiments.passes import BookPass

STAGES = ("framing", "decoding", "book")
_LOOPS = ("framing", "framing and decoding", "whole replay")


@dataclass(frozen=True)
class Stages:
    """The three loops on one day.

    Attributes
    ----------
    day : photonlab.lab.studies.day.Day
    comparison : Comparison
        Of the loops `_LOOPS`.
    """

    day: object
    comparison: Comparison

    @property
    def costs(self) -> np.ndarray:
        """What each stage adds in each round, ns a message, shape (3, rounds); negative if stages overlap wholly."""
        framing, decoding, whole = (self.comparison[name].per_op for name in _LOOPS)
        return np.stack([framing, decoding - framing, whole - decoding])

    def time(self, stage) -> dict:
        """Arguments of `record`: ns a message of a stage, or of "total"."""
        series = self.comparison["whole replay"].per_op if stage == "total" else self.costs[STAGES.index(stage)]
        return self._row(series, "ns")

    def share(self, stage) -> dict:
        """Arguments of `record`: a stage's share of the whole in %."""
        series = 100 * self.costs[STAGES.index(stage)] / self.comparison["whole replay"].per_op
        return self._row(series, "%")

    def _row(self, series, unit):
        if self.day.too_short:
            return {"value": None, "unit": unit, "note": self.day.too_short}
        found = intervals.median_of_differences(series)._asdict()
        return {**found, "unit": unit, "note": f"{self.day.name}; {self.comparison.note}"}


def measure(day, rounds) -> Stages:
    """Take the three loops in turn.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    rounds : int
    """
    book = BookPass(day.data)

    def replayed():
        book()
        return book.replayer.messages

    loops = {
        "framing": lambda: int(walk(day.data, 0)[0]),
        "framing and decoding": lambda: int(decode_for_book(day.data, 0)[0]),
        "whole replay": replayed,
    }
    setup = {"whole replay": book.prepare}
    return Stages(day, timing.compare(loops, rounds=rounds, ops=day.messages, setup=setup, retakes=rounds // 2))


def table(measured):
    """Lay out the stages of one or more days beside the published ones.

    Parameters
    ----------
    measured : list of Stages

    Returns
    -------
    DataFrame
    """
    published = claims.by_id()["F3"]
    rows = []
    for stage in (*STAGES, "total"):
        row = {"stage": stage}
        for one in measured:
            time = one.time(stage)
            told = None if time["value"] is None else f"{time['value']:.2f} ({time['low']:.2f} to {time['high']:.2f})"
            row[f"{one.day.name} [ns]"] = told
            row[f"{one.day.name} [%]"] = 100.0 if stage == "total" else one.share(stage)["value"]
        row["published [ns]"] = published.figure("time", stage).value
        row["published [%]"] = 100.0 if stage == "total" else published.figure("share", stage).value
        rows.append(row)
    return pd.DataFrame(rows)


def chart(measured):
    """Draw the shares as stacked bars, published ones last.

    Parameters
    ----------
    measured : list of Stages

    Returns
    -------
    matplotlib.figure.Figure
    """
    published = claims.by_id()["F3"]
    bars = [(one.day.name, [one.share(stage)["value"] or 0.0 for stage in STAGES]) for one in measured]
    bars.append(("published", [published.figure("share", stage).value for stage in STAGES]))
    fig, axes = plt.subplots(figsize=(5.8, 0.55 * len(bars) + 1.3))
    for place, (_, shares) in enumerate(bars):
        left = 0.0
        for stage, share, colour in zip(STAGES, shares, (COLOURS[4], COLOURS[2], COLOURS[0]), strict=True):
            width = max(share, 0.0)
            axes.barh(place, width, left=left, color=colour, label=stage if place == 0 else None)
            if width > 6:
                axes.text(left + width / 2, place, f"{share:.0f}", ha="center", va="center", color="white", fontsize=9)
            left += width
    axes.set_yticks(range(len(bars)), [name for name, _ in bars])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("share of the time of a message [%]")
    axes.set_ylabel("day")
    fig.legend(loc="outside upper center", ncols=3)
    return fig


def sentence(one):
    """Say where the time of a message goes on one day, and whether decoding is a small part of it.

    Parameters
    ----------
    one : Stages

    Returns
    -------
    str
        Markdown.
    """
    if one.day.too_short:
        return f"Nothing can be said of the {one.day.name} day: {one.day.too_short}."
    time = {stage: one.time(stage)["value"] for stage in (*STAGES, "total")}
    share = {stage: one.share(stage)["value"] for stage in STAGES}
    largest = max(share, key=share.get)
    published = claims.by_id()["F3"].figure("share", "book").value
    return (
        f"On the {one.day.name} day a message takes {time['total']:.1f} ns: {time['framing']:.1f} ns for framing, "
        f"{time['decoding']:.1f} ns more with its fields, {time['book']:.1f} ns more with the book. The "
        f"largest part is **{'the book' if largest == 'book' else largest}** with {share[largest]:.0f} %; of the "
        f"published replay the book is {published:.0f} %. A slower book has a larger share: "
        "a share is no merit by itself."
    )
