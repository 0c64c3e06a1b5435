"""What the way from the socket to the consumer costs, and where the time goes (claims P1, P2, P4, P7 and P13)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.measure import histogram, intervals, percentiles
from photonlab.lab.publish.figures import COLOURS
from photonlab.lab.studies import feed_runs
from photonlab.lab.studies.ring_turns import empty_chart
from photonlab.machine import clock
from photonlab.systems.feed.consumer import LONGEST_BATCH

PERCENTILES = (50, 95, 99, "99.9")
PARSE, TOTAL, BATCHED = "parse", "socket to consumer", "consumer in batches of 256"


@dataclass(frozen=True)
class Filled:
    """Rounds with a full socket, by packets of a call.

    Attributes
    ----------
    taken : ndarray of uint64
        Ticks of each message from the look at its packet to its publication, of the widest batch.
    totals : dict of int to Histogram
        Ticks from the receiving call's return until the consumer had the message, all rounds.
    batched : Histogram or None
        The same where the consumer takes up to 256 events at once, by the widest batch.
    means, costs : dict of int to list of float
        ns of each round: mean of those ticks; from call to call, a packet.
    edges : list of (float, float)
        Mean ns of first and last packet of a full call, of each round.
    places : ndarray of float
        Mean ns by place in the call, all rounds.
    lost : int
        Packets that were lost by the socket or the ring, in all rounds.
    why : str
    """

    taken: np.ndarray
    totals: dict
    batched: object
    means: dict
    costs: dict
    edges: list
    places: np.ndarray
    lost: int
    why: str = ""

    def series(self, which, batch) -> dict:
        """Arguments of `record`: the median round of a series, with its interval."""
        values = getattr(self, which).get(batch)
        if not values:
            return {"value": None, "unit": "ns", "note": self.why or "no rounds"}
        found = intervals.median(values)
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "ns", "note": feed_runs.where()}

    def place_ratio(self) -> dict:
        """Arguments of `record`: last packet of a full call over the first."""
        if not self.edges:
            return {"value": None, "unit": "×", "note": self.why or "no rounds"}
        first, last = np.array(self.edges).T
        found = intervals.ratio(last, first)
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "×", "note": feed_runs.where()}

    def percentile(self, what, percent) -> dict:
        """Arguments of `record`: a percentile in ns, None with the reason where there is no support for it."""
        if self.why:
            return {"value": None, "unit": "ns", "note": self.why}
        if what == PARSE:
            found = percentiles.of_samples(self.taken, percent)
        else:
            from_ = self.batched if what == BATCHED else self.totals[max(self.totals)]
            found = histogram.percentile(from_, percent)
        if found.why or found.value is None:
            above = "" if found.above is None else f"above {clock.calibrate().ns(found.above):,.0f} ns"
            return {"value": None, "unit": "ns", "note": found.why or above}
        return {"value": clock.calibrate().ns(found.value), "unit": "ns", "note": feed_runs.where()}


def measure(messages, batches, rounds, seed) -> Filled:
    """Fill the socket and empty it again, by each batch in turn.

    Parameters
    ----------
    messages : int
        Of a round, one a packet: as many as the socket's buffer takes.
    batches : list of int
    rounds, seed : int
    """
    if why := feed_runs.refused():
        return Filled(np.zeros(0, np.uint64), {}, None, {}, {}, [], np.zeros(0), 0, why)
    data, ns, widest = feed_runs.day(messages, seed), clock.calibrate().ns, max(batches)
    means, costs = {n: [] for n in batches}, {n: [] for n in batches}
    totals, taken, edges, lost, batched = {}, [], [], 0, None
    counts, sums = np.zeros(256), np.zeros(256)
    for _ in range(rounds):
        for batch, at_once in [*((n, 1) for n in batches), (widest, LONGEST_BATCH)]:
            run = feed_runs.filled(data, batch, at_once)
            lost += run.received.counters["kernel_drops"] + run.received.counters["ring_drops"]
            total = run.consumer.total
            if at_once != 1:
                batched = _merged(batched, total)
                continue
            totals[batch] = _merged(totals.get(batch), total)
            means[batch].append(ns(int(total.totals[2]) / int(total.totals[1])))
            costs[batch].append(_from_call_to_call(run.events))
            if batch == widest:
                taken.append(run.events.taken)
                seen, ticks = run.consumer.by_place()
                counts, sums = counts + seen, sums + ticks
                edges.append((ns(ticks[0] / seen[0]), ns(ticks[batch - 1] / seen[batch - 1])))
    places = sums[:widest] / np.maximum(counts[:widest], 1) / clock.calibrate().ticks_per_ns
    return Filled(np.concatenate(taken), totals, batched, means, costs, edges, places, lost)


def _merged(into, other):
    if into is None:
        return other
    histogram.merge(into, other)
    return into


def _from_call_to_call(events) -> float:
    """Return ns a packet from the first call's return to the last one's."""
    before_last = int(np.argmax(events.received == events.received[-1]))
    return clock.calibrate().ns(int(events.received[-1] - events.received[0]) / max(before_last, 1))


def report(found) -> pd.DataFrame:
    """Lay out percentiles of each part of the way in ns."""
    return pd.DataFrame(
        [
            {"what": what} | {f"p{p} [ns]": found.percentile(what, p)["value"] for p in PERCENTILES}
            for what in (PARSE, TOTAL, BATCHED)
        ]
    )


def table(found) -> pd.DataFrame:
    """Lay out what batches do: latency of a message, and what a packet costs."""
    rows = [
        {
            "packets a call": str(batch),
            "latency, mean [ns]": found.series("means", batch)["value"],
            "from call to call, a packet [ns]": found.series("costs", batch)["value"],
        }
        for batch in found.means
    ]
    return pd.DataFrame(rows or [{"packets a call": "none", "why": found.why}])


def chart(found):
    """Draw latency over the place in the call."""
    if found.why:
        return empty_chart(found.why)
    fig, axes = plt.subplots(figsize=(6.4, 3.6))
    axes.plot(np.arange(found.places.size), found.places, color=COLOURS[0], linewidth=1.6)
    axes.set_xlabel("place of the packet in its call")
    axes.set_ylabel("mean latency [ns]")
    axes.set_ylim(bottom=0)
    return fig


def sentence(found) -> str:
    """Say whether time in the batch explains the latency."""
    if found.why:
        return f"Nothing was measured: {found.why}."
    ratio, few, many = found.place_ratio(), min(found.means), max(found.means)
    one, other = found.series("means", few), found.series("means", many)
    grows = (
        "latency grows with the batch"
        if other["low"] > one["high"]
        else "latency falls with the batch"
        if other["high"] < one["low"]
        else "the two cannot be told apart"
    )
    place = (
        "who comes last in a call waits longer than who comes first"
        if ratio["low"] > 1
        else "who comes last in a call does not wait longer"
        if ratio["high"] < 1
        else "first and last of a call cannot be told apart"
    )
    return (
        f"With {few} packet a call a message takes {one['value']:,.0f} ns on average, with {many} "
        f"{other['value']:,.0f} ns: {grows}. The last packet of a call takes **{ratio['value']:.2f} times** as long as "
        f"the first ({ratio['low']:.2f} to {ratio['high']:.2f}): {place}. Packets lost on the way: {found.lost}."
    )


@dataclass(frozen=True)
class Waiting:
    """Ticks from when messages were due until they were published, by how the receiver waits, each round.

    Attributes
    ----------
    late : dict of str to list of ndarray
    why : str
    """

    late: dict
    why: str = ""

    def ratio(self, over, under) -> dict:
        """Arguments of `record`: ratio of medians, round by round."""
        if self.why or not self.late[over] or not self.late[under]:
            return {"value": None, "unit": "×", "note": self.why or "packets were lost in every round"}
        one, other = ([float(np.median(each)) for each in self.late[name]] for name in (over, under))
        pairs = min(len(one), len(other))
        found = intervals.ratio(one[:pairs], other[:pairs])
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "×", "note": feed_runs.where()}


MODES = {"spinning": "spin", "poll": "poll", "blocking": "block"}


def measure_waiting(messages, rate, rounds, seed) -> Waiting:
    """Send at a fixed rate to receivers that wait in different ways, in turn."""
    late = {name: [] for name in MODES}
    if why := feed_runs.refused():
        return Waiting(late, why)
    data = feed_runs.day(messages, seed)
    for _ in range(rounds):
        for name, mode in MODES.items():
            run = feed_runs.paced(data, mode, pacing={"rate": rate})
            if run.events.received.size == messages:
                late[name].append(np.maximum(feed_runs.late(run, rate), 1))
    return Waiting(late)


def waiting_table(found) -> pd.DataFrame:
    """Lay out percentiles by how the receiver waits."""
    rows = []
    for name, late in found.late.items():
        row = {"receiver": name}
        for percent in PERCENTILES:
            one = percentiles.of_samples(np.concatenate(late), percent) if late else None
            row[f"p{percent} [ns]"] = None if one is None or one.why else clock.calibrate().ns(one.value)
        rows.append(row)
    return pd.DataFrame(rows)


def waiting_sentence(found) -> str:
    """Say whether spinning is faster than blocking."""
    row = found.ratio("blocking", "spinning")
    if row["value"] is None:
        return f"Blocking and spinning were not compared: {row['note']}."
    verdict = (
        "spinning is faster"
        if row["low"] > 1
        else "blocking is faster: whoever sleeps leaves its CPU to others that want it"
        if row["high"] < 1
        else "the two cannot be told apart"
    )
    return f"Blocking takes **{row['value']:.2f} times** as long ({row['low']:.2f} to {row['high']:.2f}): {verdict}."
