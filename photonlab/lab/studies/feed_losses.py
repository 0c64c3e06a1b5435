"""What a feed loses, and whether it says so: drops, unknown types, slow readers, two lines; and the clocks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from photonlab.lab.measure import histogram, intervals, timing
from photonlab.lab.studies import feed_runs
from photonlab.machine import clock, udp
from photonlab.systems.feed.faults import Faults
from photonlab.systems.replayer import Replayer

SPEEDS = (1, 10, 100)
PLANTED = Faults(0.02, 0.01, 0.01)
_OPEN = 34_200_000_000_000  # 9:30 in ns: where a day is densest
_BOTH = {"batch": 1, "buffer": 1 << 19}
_SLOW = {"hold": 50e-6}


@dataclass(frozen=True)
class Loss:
    """What one reader lost.

    Attributes
    ----------
    reader : str
    sent, missing : int
        Messages (one a packet); numbers that never came.
    dropped : int or None
        Packets that the socket had no room for, as the system counts them; None if it does not say.
    ends : int
        Of the packets that end the session, and have no number, those that never came: no message is missing then.
    """

    reader: str
    sent: int
    missing: int
    dropped: int | None
    ends: int = 0

    @property
    def percent(self) -> float:
        """Share of messages that were lost."""
        return 100 * self.missing / self.sent

    @property
    def disagreement(self) -> int | None:
        """By how much the system's count and that of numbers and ends differ; None if it does not count."""
        return None if self.dropped is None else abs(self.missing + self.ends - self.dropped)


def refused() -> str:
    """Return why there is no feed here."""
    return "" if udp.available() else "no recvmmsg here"


def measure_loss(messages, rate, seed) -> list[Loss]:
    """Send to a keen reader, and to one that holds back 50 µs after each packet; nothing else differs."""
    if feed_runs.refused():
        return []
    data, found = feed_runs.day(messages, seed), []
    for name, options in (("keen reader", {}), ("slow reader", _SLOW)):
        run = feed_runs.paced(data, pacing={"rate": rate}, **_BOTH, **options)
        missing, (left, dropped) = sum(count for _, count in run.received.gaps), run.left
        found.append(
            Loss(name, run.sent.messages, missing, dropped, run.sent.ends - run.received.stream["ends"] - left)
        )
    return found


def loss_table(found) -> pd.DataFrame:
    """Lay out what each reader lost by both counts."""
    rows = [
        {
            "reader": one.reader,
            "sent": one.sent,
            "missing by number": one.missing,
            "ends missing": one.ends,
            "dropped by the socket": one.dropped,
            "lost [%]": one.percent,
        }
        for one in found
    ]
    return pd.DataFrame(rows or [{"reader": "none", "why": feed_runs.refused()}])


def loss_rows(found) -> list[dict]:
    """Arguments of `record`."""
    why = feed_runs.refused()
    shares = {one.reader: one.percent for one in found}
    rows = [
        {"statistic": "loss", "variant": name, "value": shares.get(name), "unit": "%", "note": why}
        for name in ("slow reader", "keen reader")
    ]
    apart, counted = None, all(one.dropped is not None for one in found)
    if found and counted:
        apart = sum(one.disagreement for one in found)
    why = why or ("" if counted else "the system does not say what its sockets lose")
    return [*rows, {"statistic": "disagreement of the loss counters", "value": apart, "unit": "1", "note": why}]


def loss_sentence(found) -> str:
    """Say what was lost and whether the counters agree."""
    if not found:
        return f"Nothing was measured: {feed_runs.refused()}."
    keen, slow = found
    apart = None if None in (keen.dropped, slow.dropped) else keen.disagreement + slow.disagreement
    agree = (
        "and the system does not say what its sockets lose"
        if apart is None
        else "and both counts agree to the packet"
        if apart == 0
        else f"and the two counts differ by {apart:,} packets"
    )
    return f"The slow reader lost **{slow.percent:.1f} %**, the keen one {keen.percent:.2f} %, {agree}."


@dataclass(frozen=True)
class Fidelity:
    """Whether the books are those of the replay, and what is said where they cannot be.

    Attributes
    ----------
    rows : list of dict
        Of each arrangement: name, messages applied, missing, ring drops, books equal, said to be incomplete.
    uncounted : int or None
        Unknown messages that were planted and not counted.
    why : str
    """

    rows: list
    uncounted: int | None
    why: str = ""

    @property
    def ring_drops(self) -> int | None:
        """Of all arrangements."""
        return sum(row["ring drops"] for row in self.rows) if self.rows else None


def measure_fidelity(messages, rate, seed) -> Fidelity:
    """Run all three parts together, without loss, with loss on one line, and on both; then with unknown types."""
    if why := refused():
        return Fidelity([], None, why)
    data, rows = feed_runs.day(messages, seed), []
    replayed = Replayer(capacity=feed_runs.CAPACITY)
    replayed.feed(data)
    replayed.close()
    wanted = replayed.digest()
    plans = {"one line": (1, ()), "loss on one of two": (2, (PLANTED, Faults())), "loss on both": (2, (PLANTED,) * 2)}
    for name, (count, planted) in plans.items():
        run = feed_runs.together(data, count, planted=planted, rate=rate)
        rows.append(
            {
                "arrangement": name,
                "messages": run.consumer.counters["messages"],
                "missing": sum(gap for _, gap in run.received.gaps),
                "ring drops": run.received.counters["ring_drops"],
                "books equal": "yes" if run.consumer.books.digest() == wanted else "no",
                "said to be incomplete": "yes" if run.consumer.incomplete else "no",
            }
        )
    starts, strange = feed_runs.offsets(data), data.copy()
    chosen = starts[7::50]
    strange[chosen + 2] = ord("z")
    run = feed_runs.together(strange, rate=rate)
    return Fidelity(rows, abs(chosen.size - run.received.counters["unknown"]))


def fidelity_table(found) -> pd.DataFrame:
    """Lay out the arrangements."""
    return pd.DataFrame(found.rows or [{"arrangement": "none", "why": found.why}])


def fidelity_sentence(found) -> str:
    """Say whether books can be relied on, or that it is said where not."""
    if not found.rows:
        return f"Nothing was run: {found.why}."
    honest = all((row["books equal"] == "yes") != (row["said to be incomplete"] == "yes") for row in found.rows)
    text = (
        "Books are equal to the replay's wherever nothing is missing, and said to be incomplete wherever something is."
        if honest
        else "**Books and what is said of them do not agree.**"
    )
    return f"{text} The ring dropped {found.ring_drops}; unknown messages not counted: {found.uncounted}."


def measure_rates(messages, seconds, seed) -> list[dict]:
    """Send a stretch of a day at 1, 10 and 100 times its own clock, and compare times.

    *reached* is the stretch by its own clock over the time that it took, *kept* that over the speed asked for.
    """
    if why := refused():
        return [{"speed": f"{speed}×", "reached [×]": None, "kept [×]": None, "why": why} for speed in SPEEDS]
    data = feed_runs.day(messages, seed)
    starts = feed_runs.offsets(data)
    stamps = feed_runs.stamps(data, starts)
    rows = []
    for speed in SPEEDS:
        first = int(np.searchsorted(stamps, _OPEN))
        behind = int(np.searchsorted(stamps, stamps[first] + np.uint64(seconds * speed * 1e9))) + 1
        behind = min(max(behind, first + 2), starts.size - 1)
        span = int(stamps[behind - 1] - stamps[first]) / 1e9 / speed
        run = feed_runs.paced(data[starts[first] : starts[behind]], "poll", pacing={"speed": speed})
        late = histogram.percentile(run.sent.errors, 50, beyond=0)
        rows.append(
            {
                "speed": f"{speed}×",
                "packets": behind - first,
                "asked [s]": span,
                "taken [s]": run.sent.seconds,
                "reached [×]": speed * span / run.sent.seconds,
                "kept [×]": span / run.sent.seconds,
                "late, p50 [ns]": None if late.value is None else 64 * late.value,
            }
        )
    return rows


def rate_table(rows) -> pd.DataFrame:
    """Lay out what was asked and kept."""
    return pd.DataFrame(rows)


def rate_sentence(rows) -> str:
    """Say whether the rates were kept to a hundredth."""
    if rows[0]["kept [×]"] is None:
        return f"Nothing was sent: {rows[0]['why']}."
    missed = [row["speed"] for row in rows if abs(row["kept [×]"] - 1) > 0.01]
    return "All rates are kept to 1 %." if not missed else f"Not kept to 1 %: {', '.join(missed)}."


def measure_scan(rounds):
    """Time four percentiles of a histogram of 10,001 buckets (claim P12)."""
    filled = histogram.empty()
    histogram.add_all(filled, np.random.default_rng(1).integers(200, 9000, 100_000).astype(np.uint64))
    scan = {"percentile scan": lambda: sum(int(histogram.percentile(filled, p).value) for p in (50, 95, 99, "99.9"))}
    return timing.compare(scan, rounds=rounds, ops=1)


def measure_clocks(rounds) -> dict[str, list[float]]:
    """Return ns of a read by rdtscp, by clock_gettime through libc, and by a system call, of each of some series."""
    found: dict[str, list[float]] = {}
    keys = {"ticks_end()": "rdtscp", "through libc": "clock_gettime", "by a system call": "system call"}
    for _ in range(rounds):
        for cost in clock.costs(rounds=3):
            for words, name in keys.items():
                if words in cost.how:
                    found.setdefault(name, []).append(cost.ns)
    return found


def clock_ratio(found, over, under) -> dict:
    """Arguments of `record`: ratio of two reads."""
    if over not in found or under not in found:
        return {"value": None, "unit": "×", "note": "no such call here"}
    row = intervals.ratio(found[over], found[under])
    return {"value": row.value, "low": row.low, "high": row.high, "unit": "×"}


def clock_cost(found, name) -> dict:
    """Arguments of `record`: ns of one read."""
    if name not in found:
        return {"value": None, "unit": "ns", "note": "no such call here"}
    row = intervals.median(found[name])
    return {"value": row.value, "low": row.low, "high": row.high, "unit": "ns"}


def clock_sentence(found) -> str:
    """Say whether clock_gettime enters the kernel."""
    row = clock_ratio(found, "system call", "clock_gettime")
    if row["value"] is None:
        return f"The clocks were not compared: {row['note']}."
    enters = "so it does not enter the kernel" if row["low"] > 1.5 else "so it may well enter the kernel"
    return (
        f"By a real system call `clock_gettime` costs **{row['value']:.1f} times** as much as through libc, {enters}."
    )
