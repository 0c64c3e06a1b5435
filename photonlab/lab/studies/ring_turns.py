"""Works of two spinning threads, taken in turn like any other: timed by their own kernels, on the core that does them.

A thread takes longer to start than most of these works last, so the time comes from the clock that the kernel read
at its start, which both sides wait for, and at its last message. What disturbs a round is looked for in both threads.
"""

import time
from dataclasses import dataclass

import numpy as np
from matplotlib import pyplot as plt

from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import MUTED
from photonlab.machine import clock, system
from photonlab.machine.memory import huge_array
from photonlab.systems import spin
from photonlab.systems.experiments import ring_loops
from photonlab.systems.experiments.ring_loops import CALLS, MESSAGES, TICKS, TOTAL

NO_MESSAGES = "no messages passed"
SLOTS = 1024


def refused() -> str:
    """Return why two threads cannot spin here, in the words of the probe; an empty text if they can."""
    try:
        spin.placement()
    except system.PlacementError as error:
        return str(error)
    return ""


def where() -> str:
    """Say where two threads spin, or why they do not."""
    why = refused()
    if why:
        return f"refused ({why})"
    cpus, label = spin.placement()
    return "; ".join(filter(None, (f"pinned to CPU {cpus[0]} and CPU {cpus[1]}" if cpus else "", label)))


@dataclass(frozen=True)
class Across:
    """What was measured between two cores, or why nothing was.

    Attributes
    ----------
    comparison : Comparison or None
    label : str
        What must be said of the placement.
    why : str
        The reason for which there is no comparison.
    """

    comparison: Comparison | None
    label: str
    why: str = ""
    unlabelled: int = 0

    def ratio(self, over, under) -> dict:
        """Arguments of `record`: ratio of two times a message."""
        if self.comparison is None:
            return {"value": None, "unit": "×", "note": self.why}
        row = self.comparison.ratio(over, under).row
        return row if row["value"] is None else row | {"note": self.note}

    def time(self, name) -> dict:
        """Arguments of `record`: ns a message."""
        if self.comparison is None:
            return {"value": None, "unit": "ns", "note": self.why}
        row = self.comparison.reading(name).row
        return row if row["value"] is None else row | {"note": self.note}

    def ns(self, name) -> float | None:
        """Median ns a message."""
        return self.time(name)["value"]

    def interval(self, over, under) -> str:
        """95 % interval of a ratio, for a table."""
        row = self.ratio(over, under)
        return row["note"] if row["value"] is None else f"{row['low']:.2f}–{row['high']:.2f}"

    @property
    def note(self) -> str:
        """For a table: rounds, disturbances and placement."""
        if self.comparison is None:
            return self.why
        return "; ".join(filter(None, (self.comparison.note, self.label)))


class Stopwatch:
    """A clock that moves only by what works add to it, with the account of the threads that did them."""

    def __init__(self, pinning=True):
        self.pinning = pinning
        self.ns, self.label, self.unlabelled = 0.0, "", 0
        self._usage = system.Usage(*(0,) * 6)

    def __call__(self) -> int:
        """Return ns since it was made."""
        return int(self.ns)

    def usage(self) -> system.Usage:
        """Return the counters of all threads so far."""
        return self._usage

    def run(self, first, second) -> spin.Together:
        """Run two sides together, and keep what became of their threads."""
        done = spin.together(first, second, pinning=self.pinning)
        pairs = zip(self._usage, done.usage, strict=True)
        self._usage = system.Usage(*(None if a is None or b is None else a + b for a, b in pairs))
        self.label = done.label
        self.unlabelled += int(not done.label and len(set(done.cpus)) < 2)
        return done

    def add(self, ticks):
        """Let time pass."""
        self.ns += clock.calibrate().ns(ticks)


class Stream:
    """Messages as fast as they go, in batches of up to `batch`; the time is that until the last one was read."""

    def __init__(self, watch, queue, count, batch, drain=None):
        self.watch, self.queue, self.count = watch, queue, np.uint64(count)
        self.batches = np.uint64(batch), np.uint64(drain or batch)
        self.sent, self.got = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
        self.drained = []

    def __call__(self) -> int:
        """Pass all messages; return the sum of their words."""
        give, take = self.batches
        self.watch.run(
            lambda flags: ring_loops.produce(self.queue, flags, self.count, give, self.sent),
            lambda flags: ring_loops.consume(self.queue, flags, self.count, take, self.got),
        )
        assert self.got[MESSAGES] == self.count, NO_MESSAGES
        self.watch.add(self.got[TICKS])
        self.drained.append(int(self.got[MESSAGES]) / int(self.got[CALLS]))
        return int(self.got[TOTAL])


class Lockstep:
    """A batch over, one message back; the time of `count` batches is half of that of the round trips."""

    def __init__(self, watch, make, count, batch=1, slots=SLOTS, words=8, **options):
        self.watch, self.batch, self.half = watch, np.uint64(batch), batch == 1
        self.queues = [make(slots, words, **options) for _ in range(2)]
        self.spans = huge_array(count, np.uint64, populate=True)
        self.reports = np.zeros((2, 4), np.uint64)

    def __call__(self) -> int:
        """Go to and fro; return the sum of all words that were sent back."""
        self.reports[:] = 0
        there, back = self.queues
        count = np.uint64(self.spans.size)
        self.watch.run(
            lambda flags: ring_loops.call(there, back, flags, self.batch, self.spans, self.reports[0]),
            lambda flags: ring_loops.answer(there, back, flags, self.batch, count, self.reports[1]),
        )
        assert (self.reports[:, MESSAGES] == count * self.batch).all(), NO_MESSAGES
        self.watch.add(int(self.reports[0, TICKS]) / (2 if self.half else 1))
        return int(self.reports[0, TOTAL])


class PingPong:
    """The least that two cores can do: a word (or a line of eight) goes over, another one comes back."""

    def __init__(self, watch, count, to, line=False):
        self.watch, self.to, self.line = watch, np.uint64(to), np.uint64(7 if line else 0)
        self.words = huge_array(64, np.uint64, populate=True)
        self.spans = huge_array(count, np.uint64, populate=True)
        self.reports = np.zeros((2, 4), np.uint64)

    def __call__(self) -> int:
        """Go to and fro; return how often."""
        self.words[:] = 0
        self.reports[:] = 0
        count = np.uint64(self.spans.size)
        self.watch.run(
            lambda flags: ring_loops.serve(
                self.words, np.uint64(0), self.to, self.line, flags, self.spans, self.reports[0]
            ),
            lambda flags: ring_loops.play_back(
                self.words, np.uint64(0), self.to, self.line, flags, count, self.reports[1]
            ),
        )
        assert (self.reports[:, MESSAGES] == count).all(), NO_MESSAGES
        self.watch.add(int(self.reports[0, TICKS]) / 2)
        return int(count)


class Alone:
    """Push and pop on one thread, on the CPU of the producer."""

    def __init__(self, watch, queue, count):
        self.watch, self.queue, self.count = watch, queue, np.uint64(count)
        self.cpus = system.choose_cpus(1)

    def __call__(self) -> int:
        """Pass all messages; return the sum of their words."""
        with system.pinned(self.cpus):
            before = time.perf_counter_ns()
            total = ring_loops.alone(self.queue, self.count)
            self.watch.ns += time.perf_counter_ns() - before
        return int(total)


def nothing(why) -> Across:
    """Return what there is where two threads cannot spin."""
    return Across(None, "", why)


def empty_chart(why):
    """Return a figure that says why there is no chart."""
    fig, axes = plt.subplots(figsize=(5.8, 1.2))
    axes.set_axis_off()
    axes.text(0, 0.5, f"No chart: {why}", wrap=True, color=MUTED, va="center")
    return fig


def in_turn(works, watch, ops, rounds) -> Across:
    """Take works in turn.

    Parameters
    ----------
    works : dict of str to callable
        Each adds its time to the watch.
    watch : Stopwatch
    ops : int or dict
        Messages of a call.
    rounds : int
    """
    compared = timing.compare(
        works,
        rounds=rounds,
        ops=ops,
        same_checksums=False,
        batch_ns=1,
        retakes=rounds // 2,
        clock=watch,
        usage=watch.usage,
    )
    return Across(compared, watch.label, unlabelled=watch.unlabelled)
