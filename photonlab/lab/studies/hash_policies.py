"""Probes by policy: how they spread, on which streams of references, and where each policy breaks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.judge import claims
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.studies.hash_workload import FIBONACCI, FIND, IDENTITY, OPEN, SPLITMIX, UNORDERED
from photonlab.systems.experiments import map_work, maps
from photonlab.systems.experiments import reference_streams as streams

# -- the spread of probes ------------------------------------------------------------------------------------


def spread_chart(found):
    """Draw which share of the workload's searches looks at how many slots or more.

    Parameters
    ----------
    found : photonlab.lab.studies.hash_workload.Workload

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots()
    for place, name in enumerate(found.probes):
        colour, dashes = COLOURS[place % len(COLOURS)], ("-", "--", ":")[place // len(COLOURS) % 3]
        counts = found.probes[name][: map_work.PROBES_SHOWN].astype(np.float64)
        share = counts[::-1].cumsum()[::-1] / counts.sum()
        looked = np.arange(map_work.PROBES_SHOWN)
        there = (looked >= 1) & (share > 0)
        axes.plot(looked[there], 100 * share[there], color=colour, linestyle=dashes, label=name,
                  drawstyle="steps-post")  # fmt: skip
    axes.set_yscale("log")
    axes.set_xscale("log")
    axes.set_xlabel("slots looked at, or more")
    axes.set_ylabel("share of searches [%]")
    axes.legend(ncols=2)
    return fig


# -- identity and its misses ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collapse:
    """Searches in vain in a block of successive references under identity, ended after so many slots at most.

    Attributes
    ----------
    comparison : Comparison
        By bound, ns a search.
    tallies : dict of str to ndarray
        By bound (see `map_work`).
    expected : float
        Slots that a search in vain without a bound looks at on average, from where the empty slots are.
    """

    comparison: Comparison
    tallies: dict
    expected: float

    @property
    def searches(self) -> int:
        """Searches a call."""
        return int(self.tallies[NO_BOUND][map_work.SEARCHES])

    @property
    def slot_ns(self) -> float:
        """Time a slot at the largest bound."""
        name = list(self.tallies)[-2]
        tally = self.tallies[name]
        ns = self.comparison.reading(name).ns or 0.0
        return ns * int(tally[map_work.SEARCHES]) / int(tally[map_work.LOOKED])

    @property
    def extrapolated_ns(self) -> float:
        """Time of a search in vain without a bound, from the largest bound's time a slot."""
        return self.slot_ns * self.expected


NO_BOUND = "none"


def collapse(live, searches, bounds, rounds, seed) -> Collapse:
    """Search for what is not there, with bounds and without, in turn.

    Parameters
    ----------
    live, searches : int
        References in the table, searches in vain a call.
    bounds : list of int
        Slots at most, ascending.
    rounds, seed : int
    """
    keys = streams.sequential(live)
    one = maps.Flat(IDENTITY, slots=1 << (2 * live - 1).bit_length())
    one.insert(keys)
    absent = streams.misses(keys, searches, seed)
    names = {f"{bound:,}": bound for bound in bounds} | {NO_BOUND: 1 << 62}
    compared = timing.compare(
        {name: lambda bound=bound: one.bounded(absent, bound) for name, bound in names.items()},
        rounds=rounds, ops=searches, same_checksums=False, retakes=rounds // 2,
    )  # fmt: skip
    tallies = {name: one.probes(absent, bound) for name, bound in names.items()}
    expected = int(tallies[NO_BOUND][map_work.LOOKED]) / searches
    return Collapse(compared, tallies, expected)


def collapse_table(found):
    """Lay out the bounds.

    Parameters
    ----------
    found : Collapse

    Returns
    -------
    DataFrame
    """
    rows = []
    for name, tally in found.tallies.items():
        searches = int(tally[map_work.SEARCHES])
        rows.append(
            {
                "bound [slots]": name,
                "slots looked at": int(tally[map_work.LOOKED]) / searches,
                "ended by the bound [%]": 100 * int(tally[map_work.UNDECIDED]) / searches,
                "ns a search": found.comparison.reading(name).ns,
            }
        )
    return pd.DataFrame(rows)


def collapse_sentence(found):
    """Say what the bound hides, and whether the extrapolation agrees with what was measured without it.

    Parameters
    ----------
    found : Collapse

    Returns
    -------
    str
        Markdown.
    """
    bound = list(found.tallies)[-2]
    measured = found.comparison.reading(NO_BOUND).ns
    if measured is None or not found.slot_ns:
        return f"Nothing can be said: {found.comparison.reading(NO_BOUND).text}."
    hit = 100 * int(found.tallies[bound][map_work.UNDECIDED]) / int(found.tallies[bound][map_work.SEARCHES])
    return (
        f"With {bound} slots as the bound, {hit:.0f} % of the searches in vain end undecided, and a slot costs "
        f"{found.slot_ns:.2f} ns. A search without a bound looks at {found.expected:,.0f} slots on average, hence "
        f"**{found.extrapolated_ns / 1e3:,.1f} µs** by extrapolation; a small sample without a bound took "
        f"**{measured / 1e3:,.1f} µs** ({found.searches:,} searches). A hundred million of them, on a busy day, would "
        f"take {1e8 * measured / 3600e9:,.1f} hours."
    )


# -- sentences on the workload -------------------------------------------------------------------------------


def effect_chart(found):
    """Draw published and measured ratios to Fibonacci of the claims' maps, by operation.

    Parameters
    ----------
    found : photonlab.lab.studies.hash_workload.Workload

    Returns
    -------
    matplotlib.figure.Figure
    """
    published = {(one.statistic, one.variant): one.value for one in claims.by_id()["F4"].published}
    own = [name for name in found.runs if name not in OPEN]
    fig, axes = plt.subplots(figsize=(5.8, 3.4 + len(own)))
    bars = [
        (f"{job}, {name}", published[job, name] / published[job, FIBONACCI], found.ratio(job, ours, FIBONACCI)["value"])
        for job in ("insert", "find", "churn")
        for name, ours in ((IDENTITY, IDENTITY), ("splitmix64", "splitmix64"), ("unordered_map", UNORDERED))
    ]
    bars += [
        (f"{job}, {name}", None, found.ratio(job, name, FIBONACCI)["value"])
        for name in own
        for job in ("insert", "find", "churn")
    ]
    for place, (_, there, here) in enumerate(bars):
        for value, shift, colour in ((there, -0.2, COLOURS[1]), (here, 0.2, COLOURS[0])):
            if value is not None:
                axes.barh(place + shift, value - 1, left=1, height=0.36, color=colour)
                axes.annotate(f"{value:,.3g}" if value < 1000 else f"{value:,.0f}", (max(value, 1), place + shift),
                              xytext=(3, 0), textcoords="offset points", va="center", color=MUTED,
                              fontsize=8)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(0.05, 1e6)
    axes.axvline(1, color=MUTED, linewidth=1)
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars], fontsize=8.5)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time over that of Fibonacci (blue: here, orange: published)")
    axes.set_ylabel("operation and map")
    return fig


def sentence(found):
    """Say which map wins what.

    Parameters
    ----------
    found : photonlab.lab.studies.hash_workload.Workload

    Returns
    -------
    str
        Markdown.
    """
    parts = []
    for job in ("insert", FIND, "churn", "churn, oldest first"):
        row = found.ratio(job, found.chained, FIBONACCI)
        if row["value"] is not None:
            sure = "" if row["low"] > 1 or row["high"] < 1 else ", too close to call"
            parts.append(f"{row['value']:.2f} in {job} ({row['low']:.2f} to {row['high']:.2f}{sure})")
    name = found.chained
    why = found.ratio(FIND, name, FIBONACCI)["note"]
    text = f"Time of {name} over that of the flat table with Fibonacci hashing: {'; '.join(parts) or why}. "
    ahead = [found.ratio(job, name, "Fibonacci, looking ahead")["value"] for job in ("insert", FIND, "churn")]
    if None not in ahead:
        text += (
            f"When the table is told {map_work.AHEAD} keys beforehand what will be asked, as a replay can, the first "
            f"three are {ahead[0]:.1f}, {ahead[1]:.1f} and {ahead[2]:.1f}. A flat table's slot is known before memory "
            "is asked, a chain's node is not. "
        )
    return text + (
        f"Searches look at {found.average(FIBONACCI):.3f} slots on average with Fibonacci, "
        f"{found.average('splitmix64'):.3f} with splitmix64, {found.average(IDENTITY):,.0f} with identity."
    )


def chained_sentence(found):
    """Say in which work the flat table is faster than the chained one, and what each takes of memory (F7, F8, R11).

    Parameters
    ----------
    found : photonlab.lab.studies.hash_workload.Workload

    Returns
    -------
    str
        Markdown.
    """
    told = {"faster": [], "slower": [], "neither": []}
    for policy in (FIBONACCI, SPLITMIX):
        for job in ("insert", FIND, "churn"):
            row = found.ratio(job, found.chained, policy)
            if row["value"] is not None:
                side = "faster" if row["low"] > 1 else "slower" if row["high"] < 1 else "neither"
                told[side].append(f"{job} with {policy} ({row['value']:.2f})")
    words = {
        "faster": "The flat table is **faster** than the chained one in",
        "slower": "It is **slower** in" if told["faster"] else "The flat table is **slower** than the chained one in",
        "neither": "Too close to call is",
    }
    parts = [f"{words[side]} {', '.join(names)}." for side, names in told.items() if names]
    if not parts:
        return f"Nothing can be said of times: {found.ratio(FIND, found.chained, FIBONACCI)['note']}."
    memory = found.memory_ratio()["value"]
    return f"{' '.join(parts)} Of memory the chained one takes {memory:.2f} times as much."
