"""How long one dependent load takes, by the size of what is being walked through and by the size of its pages.

A walk follows links from one cache line to the next. The links form a single cycle through all lines in a random
order (Sattolo's algorithm, seeded), so that no load can begin before the last one has arrived, and no prefetcher can
guess it. The time of a step is the latency of whichever level of the memory holds the lines, plus that of finding the
page (claim A5).
"""

from typing import NamedTuple

import numpy as np

from photonlab.machine import clock
from photonlab.machine.clock import elapsed, ticks_begin, ticks_end
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array
from photonlab.machine.system import Watch, read_text

LINE_BYTES = 64
WORDS = LINE_BYTES // 8


class Walk(NamedTuple):
    """Lines linked into one cycle, and where the walk through them stands."""

    lines: np.ndarray
    """uint64; word 0 of each line is the index of the word to go to next."""
    position: np.ndarray
    """uint64, shape (1,)"""
    clocked: np.ndarray
    """uint64, shape (1,): ticks of the last walk."""


class Latency(NamedTuple):
    """The latency found for one working set and one size of pages."""

    working_set: int
    """Bytes walked through."""
    pages: str
    """"small" or "huge", as asked for."""
    huge_share: float | None
    """Share of the memory that the system really backed by huge pages; None where it does not tell."""
    ns: tuple[float, ...]
    """ns a step, one for each round."""
    visited: int
    """Checksum: the lines found on one full cycle, which must be all of them; -1 where it was not walked whole."""
    disturbed: str
    """What kept the thread waiting in a round although it was taken again, or an empty text."""

    @property
    def median(self) -> float:
        """Median of the rounds, ns a step."""
        return float(np.median(self.ns))


@kernel
def link_lines(lines, seed):
    """Link all lines into one cycle in random order (Sattolo 1986); the generator is splitmix64.

    Parameters
    ----------
    lines : ndarray of uint64, shape (n * 8,)
        Word 0 of each line is overwritten.
    seed : uint64
        Equal seeds give equal cycles on every machine.
    """
    words = np.uint64(WORDS)
    count = np.uint64(lines.size) // words
    for i in range(count):
        lines[np.uint64(i) * words] = np.uint64(i) * words
    state = np.uint64(seed)
    for left in range(count):
        last = count - np.uint64(1) - np.uint64(left)
        if last > np.uint64(0):
            state += np.uint64(0x9E3779B97F4A7C15)
            mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
            # the high half of a 32 by 32 bit product: a number below `last`, without a division
            other = ((mixed >> np.uint64(32)) * last) >> np.uint64(32)
            a, b = last * words, other * words
            lines[a], lines[b] = lines[b], lines[a]


@kernel
def walk(lines, position, clocked, steps):
    """Follow the links for some steps, from where the last walk stopped.

    Parameters
    ----------
    lines, position, clocked : ndarray of uint64
        As in `Walk`; `position` and `clocked` are updated.
    steps : int64
        At least so many that the span is far above the clock's floor.
    """
    at = position[0]
    before = ticks_begin()
    for _ in range(steps):
        at = lines[at]
    position[0] = at
    clocked[0] = elapsed(before, ticks_end())


@kernel
def walk_each(lines, position, spans, steps):
    """Time every walk of some steps by itself, as a latency measurement of single operations would.

    Parameters
    ----------
    lines, position : ndarray of uint64
        As in `Walk`.
    spans : ndarray of uint64, shape (n,)
        Receives the ticks of n walks.
    steps : int64
        Of each walk; may be one.
    """
    for i in range(spans.size):
        at = position[0]
        before = ticks_begin()
        for _ in range(steps):
            at = lines[at]
        position[0] = at
        spans[i] = elapsed(before, ticks_end())


@kernel
def cycle_length(lines, position):
    """Return after how many steps a walk from `position` is back there; one more than there are lines if it is not."""
    start = position[0]
    at = lines[start]
    steps = np.uint64(1)
    while at != start and steps <= np.uint64(lines.size) // np.uint64(WORDS):
        at = lines[at]
        steps += np.uint64(1)
    return steps


def new_walk(working_set: int, *, huge: bool, seed: int) -> Walk:
    """Allocate and link the lines of a working set.

    Parameters
    ----------
    working_set : int
        Bytes, a multiple of 64 and at least two lines, below 256 GiB.
    huge : bool
        Ask for huge pages, or for small ones.
    seed : int
        Of the order.

    Returns
    -------
    Walk

    Raises
    ------
    ValueError
        For another working set.
    MemoryError
        If there is no such address space.
    """
    if working_set < 2 * LINE_BYTES or working_set % LINE_BYTES or working_set >= 1 << 38:
        raise ValueError(
            f"a working set of {working_set} bytes is not from 128 bytes to 256 GiB in lines of {LINE_BYTES}"
        )
    lines = huge_array(working_set // 8, np.uint64, huge=huge)
    link_lines(lines, np.uint64(seed))
    return Walk(lines, np.zeros(1, np.uint64), np.zeros(1, np.uint64))


def _copied(linked: Walk) -> Walk:
    """Return the same walk in small pages: copying is in order, and so much quicker than linking anew."""
    lines = huge_array(linked.lines.size, np.uint64, huge=False)
    lines[:] = linked.lines
    return Walk(lines, np.zeros(1, np.uint64), np.zeros(1, np.uint64))


def huge_share(array: np.ndarray) -> float | None:
    """Return the share of an array's memory that lies in huge pages now; None where the system does not tell."""
    begin = array.__array_interface__["data"][0]
    end = begin + array.nbytes
    resident = huge = 0
    inside = False
    for line in (read_text("/proc/self/smaps") or "").splitlines():
        fields = line.split()
        if "-" in fields[0] and not fields[0].endswith(":"):
            low, high = (int(word, 16) for word in fields[0].split("-"))
            inside = low < end and high > begin
        elif inside and fields[0] == "Rss:":
            resident += int(fields[1])
        elif inside and fields[0] == "AnonHugePages:":
            huge += int(fields[1])
    return huge / resident if resident else None


def working_sets(least: int, most: int, per_octave: int = 2) -> tuple[int, ...]:
    """Return sizes in even steps on a logarithmic scale, whole cache lines each.

    Parameters
    ----------
    least, most : int
        Bytes, both included.
    per_octave : int
        Sizes for each doubling.
    """
    octaves = np.log2(most / least)
    sizes = least * 2.0 ** np.linspace(0, octaves, round(octaves * per_octave) + 1)
    return tuple(dict.fromkeys(round(size / LINE_BYTES) * LINE_BYTES for size in sizes))


def measure(sizes, *, rounds: int = 5, steps: int = 50_000, seed: int = 1) -> list[Latency]:
    """Measure the latency of each working set with small and with huge pages, in turn.

    Parameters
    ----------
    sizes : iterable of int
        Working sets in bytes.
    rounds : int
        Walks of each kind for each working set: small, huge, small, huge, …; a walk that had to wait for a CPU is
        taken again, up to two times.
    steps : int
        Steps of a walk. A small working set is walked through many times, a large one in part; the next walk goes on
        where the last one stopped, so that it does not find its lines in a cache.
    seed : int
        Of the order.

    Returns
    -------
    list of Latency
        Two for each working set, small pages first.
    """
    found = []
    for size in sizes:
        linked = new_walk(size, huge=True, seed=seed)
        walks = {"small": _copied(linked), "huge": linked}
        times: dict[str, list[float]] = {pages: [] for pages in walks}
        disturbed: dict[str, list[str]] = {pages: [] for pages in walks}
        for one in walks.values():
            walk(*one, min(steps, size // LINE_BYTES))  # compiled, and what fits into a cache is there
        for _ in range(rounds):
            for pages, one in walks.items():
                ns, label = _quiet_walk(one, steps)
                times[pages].append(ns / steps)
                disturbed[pages].append(label)
        for pages, one in walks.items():
            whole = size // LINE_BYTES <= 2 * steps
            visited = int(cycle_length(one.lines, one.position)) if whole else -1
            label = next(filter(None, disturbed[pages]), "")
            found.append(Latency(size, pages, huge_share(one.lines), tuple(times[pages]), visited, label))
    return found


def _quiet_walk(one: Walk, steps: int, tries: int = 3) -> tuple[float, str]:
    """Walk, again if somebody else had the CPU meanwhile; return ns and what disturbed even the last try."""
    for _ in range(tries):
        with Watch() as watched:
            walk(*one, steps)
        ns = clock.calibrate().ns(one.clocked[0])
        label = watched.usage.label(tolerated_ns=int(20_000 + 0.02 * ns))
        if not label:
            break
    return ns, label


def cache_steps(caches, sizes) -> list[tuple[str, int]]:
    """Return the names and sizes of caches that lie within the range of some working sets, for the chart's marks.

    Parameters
    ----------
    caches : list of dict
        As `fingerprint.caches` gives them.
    sizes : sequence of int
        Working sets in bytes.
    """
    return [(f"L{c['level']}", c["bytes"]) for c in caches if min(sizes) <= c["bytes"] <= max(sizes)]
