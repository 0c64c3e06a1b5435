"""Levels examined for a new best price, linearly and by bitmap, and what that is worth end to end (F9, F10, R12)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels import bitmap
from photonlab.lab.judge import claims
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.systems.experiments import touch

LINEAR, BITMAP = "linear", "bitmap"
FEWEST = 10_000
"""Messages of an instrument from which a comparison of its replays tells more than the cost of calling them."""


@dataclass(frozen=True)
class TouchSearch:
    """The busiest instruments of a day, each in a book of its own, by both searches.

    Attributes
    ----------
    comparisons : dict of int to Comparison
        By locate.
    tallies : dict of str to ndarray of int64, shape (instruments, words of `touch.TouchBook.tally`)
        By search.
    """

    comparisons: dict
    tallies: dict

    def total(self, search, word) -> int:
        """A counter of `photonlab.systems.experiments.touch` summed over the instruments."""
        return int(sum(tally[word] for tally in self.tallies[search]))

    def examined(self, search, in_vain=True) -> float | None:
        """Levels examined a search, with or without the searches that found none; None without a search."""
        searches, levels = self.total(search, touch.UPDATES), self.total(search, touch.EXAMINED)
        if not in_vain:
            searches -= self.total(search, touch.IN_VAIN)
            levels -= self.total(search, touch.EXAMINED_IN_VAIN)
        return levels / searches if searches else None

    def row(self, search) -> dict:
        """Arguments of `record` for claim F9."""
        value = self.examined(search)
        why = "no best price went away" if self.comparisons else "no instrument's prices fit the array"
        note = why if value is None else f"{self.total(search, touch.UPDATES):,} searches"
        return {"statistic": "levels examined", "variant": search, "value": value, "unit": "1", "note": note}

    @property
    def effect(self) -> dict:
        """Arguments of `record` for claim F10: time by linear search over time by bitmap, of the busiest instrument."""
        if not self.comparisons:
            return {"value": None, "unit": "×", "note": "no instrument's prices fit the array"}
        messages = self.tallies[BITMAP][0][touch.MESSAGES]
        if messages < FEWEST:
            note = f"the busiest instrument has {messages:,} messages; a comparison needs {FEWEST:,} or more"
            return {"value": None, "unit": "×", "note": note}
        return next(iter(self.comparisons.values())).ratio(LINEAR, BITMAP).row


def measure(day, instruments, rounds) -> TouchSearch:
    """Replay the busiest instruments, each alone, by both searches in turn.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    instruments : int
    rounds : int
    """
    comparisons, tallies = {}, {LINEAR: [], BITMAP: []}
    for locate in touch.busiest(day.data, instruments):
        data = touch.day_of(day.data, locate)
        passes = {search: touch.TouchPass(data, by_bitmap=search == BITMAP) for search in tallies}
        comparisons[locate] = timing.compare(
            passes,
            rounds=rounds,
            ops=passes[BITMAP].messages,
            setup={search: one.prepare for search, one in passes.items()},
            retakes=rounds // 2,
        )
        for search, one in passes.items():
            tallies[search].append([int(word) for word in one.state.tally])
    return TouchSearch(comparisons, tallies)


def table(found):
    """Lay out the searches of each instrument: levels and words a search, ns a message.

    Parameters
    ----------
    found : TouchSearch

    Returns
    -------
    DataFrame
    """
    rows = []
    for i, (locate, compared) in enumerate(found.comparisons.items()):
        linear, by_bitmap = found.tallies[LINEAR][i], found.tallies[BITMAP][i]
        searches = max(linear[touch.UPDATES], 1)
        ratio = compared.ratio(LINEAR, BITMAP)
        rows.append(
            {
                "locate": str(locate),
                "messages": linear[touch.MESSAGES],
                "searches": linear[touch.UPDATES],
                "in vain": linear[touch.IN_VAIN],
                "levels, linear": linear[touch.EXAMINED] / searches,
                "longest": linear[touch.LONGEST],
                "words, bitmap": by_bitmap[touch.WORDS] / searches,
                "linear [ns]": compared.reading(LINEAR).ns,
                "bitmap [ns]": compared.reading(BITMAP).ns,
                "ratio": ratio.value,
                "95 %": ratio.why or f"{ratio.low:.2f}–{ratio.high:.2f}",
            }
        )
    return pd.DataFrame(rows)


def chart(found):
    """Draw levels examined a search on a logarithmic scale, here and as published.

    Parameters
    ----------
    found : TouchSearch

    Returns
    -------
    matplotlib.figure.Figure
    """
    published = claims.by_id()["F9"]
    words = found.total(BITMAP, touch.WORDS) / max(found.total(BITMAP, touch.UPDATES), 1)
    bars = [
        ("linear, published", published.figure("levels examined", LINEAR).value, COLOURS[1]),
        ("linear, here", found.examined(LINEAR), COLOURS[0]),
        ("linear, here, without\nsearches in vain", found.examined(LINEAR, in_vain=False), COLOURS[0]),
        ("bitmap, published", published.figure("levels examined", BITMAP).value, COLOURS[1]),
        ("bitmap, here", found.examined(BITMAP), COLOURS[0]),
        ("bitmap, here,\nwords of bits read", words or None, COLOURS[5]),
    ]
    fig, axes = plt.subplots(figsize=(5.8, 3.2))
    for place, (_, value, colour) in enumerate(bars):
        if value is not None:
            axes.barh(place, value - 0.5, left=0.5, color=colour)
            axes.annotate(f"{value:,.4g}" if value < 1000 else f"{value:,.0f}", (value, place), xytext=(3, 0),
                          textcoords="offset points", va="center", color=MUTED, fontsize=9)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(0.5, 2e7)
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars], fontsize=8.5)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("levels examined for a new best price (bar from 0.5)")
    axes.set_ylabel("search")
    return fig


def sentence(found):
    """Say what the linear search comes to, how much of it is in vain, and what the bitmap is worth end to end.

    Parameters
    ----------
    found : TouchSearch

    Returns
    -------
    str
        Markdown.
    """
    searches = found.total(LINEAR, touch.UPDATES)
    if not searches:
        return f"Nothing to search: {found.row(LINEAR)['note']}."
    vain, levels = found.total(LINEAR, touch.IN_VAIN), found.total(LINEAR, touch.EXAMINED)
    messages = found.total(LINEAR, touch.MESSAGES)
    share = 100 * found.total(LINEAR, touch.EXAMINED_IN_VAIN) / max(levels, 1)
    words = found.total(BITMAP, touch.WORDS) / searches
    with_success = found.examined(LINEAR, in_vain=False)
    text = (
        f"A best price went away in {searches:,} of {messages:,} messages ({100 * searches / messages:.2f} %). The "
        f"linear search then looked at **{found.examined(LINEAR):,.0f}** levels on average. "
    )
    if vain and with_success is not None:
        text += (
            f"But {share:.1f} % of these steps belong to the {vain:,} searches on a side that had become empty, which "
            f"run to the end of the array; where there was a next best price, it was {with_success:,.0f} levels away. "
        )
    text += (
        f"The bitmap points to one level, and reads {words:.2f} words to find it: steps of another kind, so 1.00 is a "
        "count and not a cost. "
    )
    row = found.effect
    if row["value"] is None:
        return text + f"End to end: {row['note']}."
    published = claims.by_id()["F10"].figure("end to end", "linear / bitmap").value
    side = "more" if row["low"] > 1 else "less" if row["high"] < 1 else "neither more nor less"
    return text + (
        f"End to end the book of the busiest instrument takes {side} time with the linear search: "
        f"**{row['value']:.3f}×** ({row['low']:.3f} to {row['high']:.3f}), where {published:g}× was published."
    )


def floors(members, bits, rounds, seed) -> Comparison:
    """Time insertion, search and removal in bitmaps of 4 and of 5 floors over 2^21 prices (claim R12).

    Parameters
    ----------
    members : int
        Prices that have a level all the time.
    bits : int
        Prices put in, searched from and taken out again in a call.
    rounds, seed : int
    """
    rng = np.random.default_rng(seed)
    places = rng.permutation(touch.PRICES)[: members + bits].astype(np.uint64)
    loops = {}
    for count in (4, 5):
        one = bitmap.make_bitmap(touch.PRICES, count)
        for place in places[:members]:
            bitmap.insert(one, place)
        loops[f"{count} floors"] = _churn(one, places[members:])
    return timing.compare(loops, rounds=rounds, ops=bits)


def _churn(one, bits):
    return lambda: int(bitmap.churn(one, bits)[0] >> np.uint64(1))
