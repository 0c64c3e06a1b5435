"""What the way from the socket to the consumer costs, and where the time goes (claims P1, P2, P4, P7 and P13)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.measure import histogram, intervals, percentiles
from photonlab.lab.publish.figures import COLOURS
from photonlab.lab.studies import feed_parse, feed_runs
from photonlab.lab.studies.ring_turns import empty_chart
from photonlab.machine import clock
from photonlab.systems.feed.consumer import LONGEST_BATCH

PERCENTILES = (50, 95, 99, "99.9")
TOTAL, BATCHED, SINGLY = "socket to consumer", "consumer in batches of 256", "a call for each packet (recvmsg)"


@dataclass(frozen=True)
class Filled:
    """Rounds with a full socket, by packets of a call.

    Attributes
    ----------
    parse : feed_parse.Parse
        From the look at a packet to its message's publication, of the widest batch.
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
    singly : list of float
        ns a packet of each round where each packet has a call of its own.
    """

    parse: feed_parse.Parse
    totals: dict
    batched: object
    means: dict
    costs: dict
    edges: list
    places: np.ndarray
    lost: int
    why: str = ""
    singly: list = ()

    def series(self, which, batch) -> dict:
        """Arguments of `record`: the median round of a series, with its interval."""
        values = self.singly if batch == SINGLY else getattr(self, which).get(batch)
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
        found = histogram.percentile(self.batched if what == BATCHED else self.totals[max(self.totals)], percent)
        if found.why or found.value is None:
            above = "" if found.above is None else f"above {clock.calibrate().ns(found.above):,.0f} ns"
            return {"value": None, "unit": "ns", "note": found.why or above}
        return {"value": clock.calibrate().ns(found.value), "unit": "ns", "note": feed_runs.where()}


def measure(messages, batches, rounds, seed) -> Filled:
    """Fill the socket and empty it again, by each batch in turn.

    Parameters
    ----------
    messages : int
        Of a round, one a packet: as many as the socket's buffer takes. Only whole calls of the widest batch are sent.
    batches : list of int
    rounds, seed : int
    """
    if why := feed_runs.refused():
        return Filled(feed_parse.nothing(why), {}, None, {}, {}, [], np.zeros(0), 0, why)
    widest, ns = max(batches), clock.calibrate().ns
    data = feed_runs.day(max(messages // widest, 1) * widest, seed)
    means, costs = {n: [] for n in batches}, {n: [] for n in batches}
    totals, taken, edges, lost, batched, spans, singly = {}, [], [], 0, None, [], []
    turns = [*((n, 1, {}) for n in batches), (widest, LONGEST_BATCH, {})]
    turns += [(widest, 1, {"whole": True}), (widest, 1, {"singly": True})]
    counts, sums = np.zeros(256), np.zeros(256)
    for _ in range(rounds):
        for batch, at_once, options in turns:
            run = feed_runs.filled(data, batch, at_once, **options)
            lost += run.received.counters["kernel_drops"] + run.received.counters["ring_drops"]
            total = run.consumer.total
            if "whole" in options:
                spans.append(run.spans)
                continue
            if "singly" in options:
                singly.append(_from_call_to_call(run.events))
                continue
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
    parse = feed_parse.of(np.concatenate(taken), spans, widest)
    return Filled(parse, totals, batched, means, costs, edges, places, lost, singly=singly)


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
            for what in (TOTAL, BATCHED)
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
    if found.singly:
        cost = found.series("costs", SINGLY)["value"]
        rows.append({"packets a call": SINGLY, "latency, mean [ns]": None, "from call to call, a packet [ns]": cost})
    return pd.DataFrame(rows or [{"packets a call": "none", "why": found.why}])


def chart(found):
    """Draw latency over the place in the call, and what a packet costs over the packets of a call."""
    if found.why:
        return empty_chart(found.why)
    fig, (axes, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    costs = [found.series("costs", batch) for batch in found.costs]
    low, high = ([abs(row[end] - row["value"]) for row in costs] for end in ("low", "high"))
    values = [row["value"] for row in costs]
    right.errorbar(list(found.costs), values, [low, high], color=COLOURS[0], marker="o", label="recvmmsg")
    if found.singly:
        single = found.series("costs", SINGLY)["value"]
        right.axhline(single, color=COLOURS[1], linestyle="--", label="recvmsg, one a call")
    right.set_xscale("log", base=2)
    right.set_xlabel("packets a call, at most")
    right.set_ylabel("from call to call, a packet [ns]")
    right.set_ylim(bottom=0)
    right.legend(frameon=False)
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
    granted : str
        What became of the wish for busy polling.
    """

    late: dict
    why: str = ""
    granted: str = "not asked for"

    def ratio(self, over, under) -> dict:
        """Arguments of `record`: ratio of medians, round by round."""
        if self.why or not self.late.get(over) or not self.late.get(under):
            return {"value": None, "unit": "×", "note": self.why or "packets were lost in every round"}
        one, other = ([float(np.median(each)) for each in self.late[name]] for name in (over, under))
        pairs = min(len(one), len(other))
        found = intervals.ratio(one[:pairs], other[:pairs])
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "×", "note": feed_runs.where()}


BUSY_POLL = 50
"""Microseconds of busy polling that the spinning receiver asks for."""
MODES = {
    "spinning": ("spin", BUSY_POLL),
    "spinning, no busy poll": ("spin", 0),
    "poll": ("poll", 0),
    "blocking": ("block", 0),
}


def measure_waiting(messages, rate, rounds, seed) -> Waiting:
    """Send at a fixed rate to receivers that wait in different ways, in turn."""
    late = {name: [] for name in MODES}
    if why := feed_runs.refused():
        return Waiting(late, why)
    data, granted = feed_runs.day(messages, seed), "not asked for"
    for _ in range(rounds):
        for name, (mode, busy) in MODES.items():
            run = feed_runs.paced(data, mode, pacing={"rate": rate}, busy_poll=busy)
            granted = run.granted.busy_poll if busy else granted
            if run.events.received.size == messages:
                late[name].append(np.maximum(feed_runs.late(run, rate), 1))
    return Waiting(late, granted=granted)


def waiting_table(found) -> pd.DataFrame:
    """Lay out percentiles by how the receiver waits."""
    rows = []
    for name, late in found.late.items():
        row = {"receiver": name, "SO_BUSY_POLL": found.granted if name == "spinning" else "not asked for"}
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
    text = f"Blocking takes **{row['value']:.2f} times** as long ({row['low']:.2f} to {row['high']:.2f}): {verdict}."
    alone = found.ratio("spinning, no busy poll", "spinning")
    if found.granted == "refused":
        return f"{text} `SO_BUSY_POLL` was refused by the system (it takes a privilege), so both that spin are alike."
    if alone["value"] is None:
        return text
    does = (
        "it helps even here"
        if alone["low"] > 1
        else "it does harm"
        if alone["high"] < 1
        else "by itself it does nothing here, where there is no card to poll"
    )
    return (
        f"{text} `SO_BUSY_POLL` was granted ({found.granted}); without it spinning takes {alone['value']:.2f} times as "
        f"long ({alone['low']:.2f} to {alone['high']:.2f}): {does}."
    )
