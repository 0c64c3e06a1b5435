"""The core of tick to trade by the number of instruments: working set, skew, pages, a noisy neighbour (T10)."""

import contextlib
import threading
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels import level_book
from photonlab.lab.measure import timing
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.studies.hash_scaling import caches
from photonlab.lab.studies.trade_core import Work
from photonlab.machine import clock, latency, system
from photonlab.machine.memory import huge_array
from photonlab.systems import spin, synth
from photonlab.systems.replayer import Replayer
from photonlab.systems.tick_to_trade import drive, ticks

UNIFORM, ZIPF = "uniform", "Zipf"
SMALL, HUGE = "4 KiB", "2 MiB"
ALONE, BESIDE = "alone", "beside a stream"
FIRST = UNIFORM, SMALL
"""Skew and pages of the points by which the claim is answered: the harder skew, and pages that every system gives."""

ROADMAP = 10_000
"""Instruments that the roadmap asks for."""

BESIDES = "time a tick"
BOOK_BYTES = level_book.WORDS * 8
LINES = 64 * 3
"""Bytes of the cache lines that a tick touches of its instrument: the touch, the order of its levels, a level."""


@dataclass(frozen=True)
class Instruments:
    """What was measured.

    Attributes
    ----------
    points : DataFrame
        Columns instruments, skew, pages, ns, low, high, share_huge, used (instruments that had a tick).
    hz : int
        The clock's ticks a second.
    note : str
    """

    points: pd.DataFrame
    hz: int
    note: str

    def of(self, instruments, skew, pages) -> dict:
        """Arguments of `record`: ns a tick."""
        found = self.points.query("instruments == @instruments and skew == @skew and pages == @pages")
        one = found.iloc[0]
        return {"value": _none(one.ns), "low": _none(one.low), "high": _none(one.high), "unit": "ns",
                "variant": f"L2, {instruments:,} instruments, {skew}, {pages}", "note": self.note}  # fmt: skip

    def rows(self) -> list[dict]:
        """Arguments of `record` for all points: as "cost" those that answer the claim, few books and very many."""
        counts = sorted(self.points.instruments.unique())
        telling = {counts[0], ROADMAP, counts[-1]}
        return [
            self.of(one.instruments, one.skew, one.pages)
            | {"statistic": "cost" if one.instruments in telling and (one.skew, one.pages) == FIRST else BESIDES}
            for one in self.points.itertuples()
        ]


def _none(value):
    return None if value is None or np.isnan(value) else float(value)


def chosen(instruments, count, skew, seed):
    """Return which instrument each tick is for: all alike, or the k-th in weight 1/k, spread over the numbers."""
    rng = np.random.default_rng(seed)
    if skew == UNIFORM:
        return rng.integers(0, instruments, count).astype(np.uint32)
    weights = 1 / np.arange(1, instruments + 1)
    drawn = rng.choice(instruments, count, p=weights / weights.sum())
    return rng.permutation(instruments)[drawn].astype(np.uint32)


def measure(counts, count, rounds, seed) -> Instruments:
    """Run as many ticks through books of more and more instruments, four ways in turn at each number.

    Parameters
    ----------
    counts : list of int
        Instruments.
    count, rounds, seed : int
        Ticks of a stream; rounds; seed of the order flow.
    """
    rows, notes = [], []
    for instruments in counts:
        works, used = {}, {}
        for skew in (UNIFORM, ZIPF):
            which = chosen(instruments, count, skew, seed)
            data = ticks.as_bytes(ticks.flow(which, seed))
            used[skew] = np.unique(which).size
            for pages in (SMALL, HUGE):
                works[skew, pages] = Work(data, instruments, huge=pages == HUGE)
        named = {f"{skew}, {pages}": work for (skew, pages), work in works.items()}
        compared = timing.compare(named, rounds=rounds, ops=count)
        notes.append(compared.disturbed)
        for (skew, pages), work in works.items():
            reading = compared.reading(f"{skew}, {pages}")
            share = latency.huge_share(work.engine.books.words)
            rows.append((instruments, skew, pages, reading.ns, reading.low, reading.high, share, used[skew]))
    columns = ["instruments", "skew", "pages", "ns", "low", "high", "share_huge", "used"]
    note = f"{rounds} rounds in turn of {count:,} ticks"
    note += f", {sum(notes)} disturbed and kept" if sum(notes) else ""
    if share is not None:
        note += f"; of the largest books {100 * share:.0f} % lay in pages of 2 MiB where they were asked for"
    return Instruments(pd.DataFrame(rows, columns=columns), clock.calibrate().hz, note)


def table(found) -> pd.DataFrame:
    """Lay out ns a tick by number of instruments, with the working set; cycles of the clock for uniform, 4 KiB."""
    rows = []
    for instruments, part in found.points.groupby("instruments", sort=True):
        row = {"instruments": instruments, "books [KiB]": instruments * BOOK_BYTES / 1024}
        for one in part.itertuples():
            row[f"{one.skew}, {one.pages}"] = one.ns
        row["cycles"] = part[(part["skew"] == UNIFORM) & (part.pages == SMALL)].ns.iloc[0] * found.hz / 1e9
        rows.append(row)
    return pd.DataFrame(rows)


def chart(found):
    """Draw ns a tick over the books' size, with the caches' sizes."""
    fig, axes = plt.subplots()
    styles = {SMALL: "-", HUGE: "--"}
    for skew, colour in zip((UNIFORM, ZIPF), COLOURS, strict=False):
        for pages, style in styles.items():
            part = found.points[(found.points["skew"] == skew) & (found.points.pages == pages)]
            size = part.instruments * BOOK_BYTES
            axes.plot(size, part.ns.astype(float), style, color=colour, marker="o", label=f"{skew}, pages of {pages}")
    axes.set_xscale("log")
    axes.set_ylim(0)
    counts = sorted(found.points.instruments.unique())
    shown = [n for n in counts if n == counts[-1] or counts[-1] / n > 3]  # labels that do not lie on each other
    axes.set_xticks([n * BOOK_BYTES for n in shown], [f"{n:,}\n{_size(n * BOOK_BYTES)}" for n in shown], fontsize=8)
    axes.minorticks_off()
    for level, size in caches().items():
        if counts[0] * BOOK_BYTES <= size <= counts[-1] * BOOK_BYTES:
            axes.axvline(size, color=MUTED, linewidth=1, linestyle=":")
            axes.annotate(level, (size, 0), xycoords=("data", "axes fraction"), xytext=(3, 5),
                          textcoords="offset points", color=MUTED, fontsize=9)  # fmt: skip
    axes.set_xlabel("instruments, and the size of all their books")
    axes.set_ylabel("ns a tick")
    axes.legend()
    return fig


def _size(count):
    return f"{count / 2**20:.1f} MiB" if count >= 1 << 20 else f"{count / 1024:.0f} KiB"


def sentence(found) -> str:
    """Say what ten thousand instruments cost more than ten, and what skew and pages do."""
    counts = sorted(found.points.instruments.unique())
    few, many = (found.of(n, UNIFORM, SMALL)["value"] for n in (counts[0], counts[-1]))
    zipf, huge = found.of(counts[-1], ZIPF, SMALL)["value"], found.of(counts[-1], UNIFORM, HUGE)["value"]
    if None in (few, many, zipf, huge):
        return "Some of the times are too short to be told from nothing."
    return (
        f"A tick takes {few:.1f} ns with {counts[0]:,} instruments and **{many:.1f} ns with {counts[-1]:,}** "
        f"({many / few:.2f} times as long), whose books are {_size(counts[-1] * BOOK_BYTES)}; by Zipf's law, with "
        f"few instruments busy, {zipf:.1f} ns; in pages of 2 MiB {huge:.1f} ns."
    )


@dataclass
class Neighbour:
    """A thread on a core of its own that reads memory through and through, on and off.

    Attributes
    ----------
    words : uint64 array
        What it reads: several times the largest cache.
    cpu : int or None
        Its CPU.
    """

    words: np.ndarray
    cpu: int | None
    flag: np.ndarray = field(default_factory=lambda: np.zeros(8, np.uint64))
    thread: threading.Thread | None = None

    def start(self):
        """Begin, unless it has begun."""
        if self.thread is None:
            self.flag[0] = 0
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()

    def stop(self):
        """End, and wait for the end."""
        if self.thread is not None:
            self.flag[0] = 1
            self.thread.join()
            self.thread = None

    def _run(self):
        if self.cpu is not None:
            system.pin([self.cpu])
        drive.stream(self.words, self.flag)


@dataclass(frozen=True)
class Contention:
    """Ticks alone and beside a core that streams memory.

    Attributes
    ----------
    points : DataFrame
        Columns instruments, alone, beside (ns a tick), ratio, low, high.
    label : str
        Of the placement.
    why : str
        Why there is nothing, if so.
    """

    points: pd.DataFrame
    label: str
    why: str = ""

    def rows(self) -> list[dict]:
        """Arguments of `record`."""
        if self.why:
            return [{"statistic": BESIDES, "value": None, "unit": "×", "variant": "beside a stream / alone",
                     "note": self.why}]  # fmt: skip
        return [
            {"statistic": BESIDES, "value": _none(one.ratio), "low": _none(one.low), "high": _none(one.high),
             "unit": "×", "note": self.label,
             "variant": f"L2, {one.instruments:,} instruments, beside a stream / alone"}
            for one in self.points.itertuples()
        ]  # fmt: skip


def contention(counts, count, rounds, seed, mib) -> Contention:
    """Run ticks alone, and while another core reads `mib` MiB through and through, in turn.

    Parameters
    ----------
    counts : list of int
    count, rounds, seed, mib : int
    """
    try:
        cpus, label = spin.placement()
    except system.PlacementError as error:
        return Contention(pd.DataFrame(), "", str(error))
    neighbour = Neighbour(huge_array(mib << 17, np.uint64, populate=True), cpus[1] if cpus else None)
    neighbour.flag[0] = 1
    drive.stream(neighbour.words, neighbour.flag)  # compiled before the clock runs
    rows = []
    with system.pinned([cpus[0]]) if cpus else contextlib.nullcontext():
        for instruments in counts:
            data = ticks.as_bytes(ticks.flow(chosen(instruments, count, UNIFORM, seed), seed))
            work = Work(data, instruments)
            try:
                compared = timing.compare(
                    {ALONE: work, BESIDE: work.__call__}, rounds=rounds, ops=count,
                    setup={ALONE: neighbour.stop, BESIDE: neighbour.start},
                )  # fmt: skip
            finally:
                neighbour.stop()
            ratio = compared.ratio(BESIDE, ALONE)
            times = [compared.reading(name).ns for name in (ALONE, BESIDE)]
            rows.append((instruments, *times, ratio.value, ratio.low, ratio.high))
    columns = ["instruments", "alone", "beside", "ratio", "low", "high"]
    return Contention(pd.DataFrame(rows, columns=columns), label or f"{mib} MiB streamed on CPU {neighbour.cpu}")


def contention_table(found) -> pd.DataFrame:
    """Lay out ns a tick alone and beside."""
    if found.why:
        return pd.DataFrame([{"contention": "none measured", "why": found.why}])
    return pd.DataFrame(
        {
            "instruments": one.instruments,
            "books [KiB]": one.instruments * BOOK_BYTES / 1024,
            "alone [ns]": one.alone,
            "beside a stream [ns]": one.beside,
            "beside / alone": one.ratio,
            "95 %": f"{one.low:.2f} to {one.high:.2f}",
        }
        for one in found.points.itertuples()
    )


def contention_sentence(found) -> str:
    """Say what the neighbour costs."""
    if found.why:
        return f"Nothing can be said of contention: {found.why}."
    *_, many = few, *_ = list(found.points.itertuples())
    return (
        f"Beside a core that streams memory a tick takes **{few.ratio:.2f} times** as long with {few.instruments:,} "
        f"instruments and **{many.ratio:.2f} times** with {many.instruments:,} ({found.label}). What books in the "
        "first cache lose is what the two processors share besides memory: cores that are siblings share everything."
    )


def full_books(counts, messages, rounds, seed) -> pd.DataFrame:
    """Replay days of as many messages in books of single orders (L3), by number of instruments.

    Parameters
    ----------
    counts : list of int
    messages, rounds, seed : int

    Returns
    -------
    DataFrame
        Columns instruments, ns (a message), low, high, note.
    """
    rows = []
    for instruments in counts:
        day, _ = synth.generate(messages, seed, instruments=instruments)

        def replay(day=day):
            with_books = Replayer()
            with_books.feed(day)
            return int(with_books.messages)

        compared = timing.compare({"L3": replay}, rounds=rounds, ops=messages)
        reading = compared.reading("L3")
        rows.append((instruments, reading.ns, reading.low, reading.high, compared.note))
    return pd.DataFrame(rows, columns=["instruments", "ns", "low", "high", "note"])


def full_rows(found) -> list[dict]:
    """Arguments of `record` for L3."""
    return [
        {"statistic": "time a message", "value": _none(one.ns), "low": _none(one.low), "high": _none(one.high),
         "unit": "ns", "variant": f"L3, {one.instruments:,} instruments", "note": f"replay of ITCH; {one.note}"}
        for one in found.itertuples()
    ]  # fmt: skip


def full_sentence(found) -> str:
    """Say what more instruments cost books of single orders."""
    few, many = found.iloc[0], found.iloc[-1]
    if _none(few.ns) is None or _none(many.ns) is None:
        return "Some of the times are too short to be told from nothing."
    if len(found) == 1:
        return f"A message takes {few.ns:.1f} ns with {few.instruments:,} instruments."
    return (
        f"A message takes {few.ns:.1f} ns with {few.instruments:,} instruments and **{many.ns:.1f} ns with "
        f"{many.instruments:,}** ({many.ns / few.ns:.2f} times as long): besides the instruments' books, their "
        "orders are spread over more memory too."
    )


def full_table(found) -> pd.DataFrame:
    """Lay out ns a message of L3 books."""
    return found.rename(columns={"ns": "ns a message"}).drop(columns="note")
