"""The noise gauge: how quiet the machine was while a notebook ran, from what it says before, after and meanwhile.

Two probes of a twentieth of a second frame each notebook: a spinning thread looks for gaps in its own time (hiccups:
the system or the host had something else to do) and for the length of a cycle (a clock that drifts: throttling, turbo).
What the system counts on its own, stolen time and
tasks that waited for a CPU, is read at both ends, round every cell (`Cells`), and round every timed run
(`photonlab.lab.measure.timing`). Nothing runs while the notebook measures: a watching thread would itself disturb.
"""

import os
import time
from dataclasses import asdict, dataclass

import numpy as np

from photonlab.machine import clock, system
from photonlab.machine.jit import kernel

PROBE_SECONDS = 0.05
GAP_NS = 10_000
"""A spinning thread that misses so many nanoseconds did not have the CPU."""
LIMITS = {"disturbed": 0.1, "contended": 0.1, "stolen": 0.01, "hiccups": 0.02, "drift": 0.05}
"""Shares beyond which a machine is called noisy, in one place: of rounds in turn that were disturbed (taken again or
kept), of the cells' time in cells that were, of all CPUs' time, of the probes' time, of a cycle's length."""
WAITED = 0.02
"""Share of a cell's time for which its thread may wait for a CPU before the cell counts as disturbed."""
LEAST_NS = 100_000_000
"""Shorter cells are not looked at: the system counts stolen time in steps of 10 ms."""
WORDS = {
    "disturbed": "{share:.0%} of the rounds in turn were disturbed ({retaken:,} taken again, {kept:,} kept)",
    "contended": "cells that were disturbed take {share:.0%} of the time of all",
    "stolen": "{share:.1%} of the time was stolen by the host",
    "hiccups": "a spinning thread lost {share:.1%} of its time to gaps of {gap} µs and more",
    "drift": "the length of a cycle changed by {share:.0%}",
}

_0, _1 = np.uint64(0), np.uint64(1)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_STEPS = np.uint64(2_000)


@kernel
def probe(until, gap):
    """Spin, and note gaps and the fastest turn.

    Parameters
    ----------
    until, gap : uint64
        Ticks: when to end, and what counts as a gap.

    Returns
    -------
    lost, gaps, fastest : uint64
        Ticks in gaps, how many, and the least ticks for a chain of 2,000 steps of two cycles.
    """
    lost, gaps, fastest, word = _0, _0, ~_0, until
    before = clock.ticks()
    while before < until:
        i = _0
        while i < _STEPS:
            word = (word + _STEP) ^ i
            i += _1
        now = clock.ticks()
        took = now - before
        fastest = min(fastest, took + (word & _0))
        if took > gap:
            lost += took
            gaps += _1
        before = now
    return lost, gaps, fastest


@dataclass(frozen=True)
class Noise:
    """What was found.

    Attributes
    ----------
    stolen : float or None
        Share of the CPUs' time that the host gave to others; None where the system does not count it.
    hiccups : float
        Share of the probes' time in gaps.
    gaps : int
        How many.
    drift : float
        Change of the length of a cycle from the first probe to the last, as a share.
    waited : float or None
        Share of the time in which some task had to wait for a CPU, ours included (pressure stall information); None
        where the system does not count it. Shown and not complained of: a notebook with more threads than CPUs makes
        its own.
    """

    stolen: float | None
    hiccups: float
    gaps: int
    drift: float
    waited: float | None = None

    def as_dict(self) -> dict:
        """Return it as plain values, rounded to what they are worth."""
        return {name: value if value is None else round(value, 5) for name, value in asdict(self).items()}


class Gauge:
    """A block under observation: ``with Gauge() as gauge: …``; afterwards ``gauge.noise``."""

    noise: Noise | None = None

    def __enter__(self):
        self._first = _probed()
        self._began, self._stolen, self._waited = time.monotonic_ns(), system.steal_ns(), system.pressure_ns()
        return self

    def __exit__(self, *_):
        wall, stolen, waited = time.monotonic_ns() - self._began, system.steal_ns(), system.pressure_ns()
        last = _probed()
        share = _share(stolen, self._stolen, wall * (os.cpu_count() or 1))
        lost, gaps = self._first[0] + last[0], self._first[1] + last[1]
        drift = abs(last[2] / self._first[2] - 1)
        self.noise = Noise(share, lost / (2 * PROBE_SECONDS), gaps, drift, _share(waited, self._waited, wall))


def _share(after, before, of):
    return None if after is None or before is None else (after - before) / max(of, 1)


def _probed():
    """Return seconds lost, gaps, and ticks of the fastest chain in one probe."""
    hz = clock.calibrate().hz
    probe(np.uint64(0), np.uint64(1))  # compile, or load
    until = np.uint64(_now() + int(PROBE_SECONDS * hz))
    lost, gaps, fastest = probe(until, np.uint64(GAP_NS * hz / 1e9))
    return int(lost) / hz, int(gaps), float(fastest)


@kernel
def _ticks():
    return clock.ticks()


def _now():
    return int(_ticks())


class Cells:
    """What became of the CPUs while each cell of a notebook ran, by two reads of the system's counters a cell.

    Parameters
    ----------
    usage, now : callable
        The system's account of this thread, and a clock in ns; for tests.

    Attributes
    ----------
    disturbed : dict of str to str
        Number of a cell's execution → what disturbed it.
    """

    def __init__(self, usage=system.usage, now=time.monotonic_ns):
        self._usage, self._now, self._before = usage, now, None
        self.ns = self.disturbed_ns = 0
        self.disturbed = {}

    def begin(self, *_):
        """A cell begins."""
        self._before = self._now(), self._usage()

    def end(self, cell):
        """It has ended."""
        if self._before is None:
            return
        (began, before), self._before = self._before, None
        wall, used = self._now() - began, self._usage().since(before)
        if wall < LEAST_NS:
            return
        self.ns += wall
        stolen = (used.steal_ns or 0) / (wall * (os.cpu_count() or 1))
        waited = (used.waiting_ns or 0) / wall
        words = [f"the host took {stolen:.1%} of the CPUs' time"] if stolen > LIMITS["stolen"] else []
        words += [f"its thread waited for a CPU for {waited:.1%} of it"] if waited > WAITED else []
        self.disturbed.pop(cell, None)
        if words:
            self.disturbed_ns += wall
            self.disturbed[cell] = " and ".join(words)

    def as_dict(self) -> dict:
        """Return it as plain values: seconds of all cells and of disturbed ones, and which were."""
        seconds = {"seconds": self.ns, "disturbed seconds": self.disturbed_ns}
        return {name: round(ns / 1e9, 2) for name, ns in seconds.items()} | {"disturbed cells": self.disturbed}


def shares(rounds) -> dict:
    """Return which shares of a notebook's rounds, and of its time, were disturbed; None where nothing was timed.

    Parameters
    ----------
    rounds : dict
        Counts of rounds, and under "cells" what `Cells.as_dict` gives.
    """
    taken = rounds.get("rounds", 0) + rounds.get("retaken", 0)
    cells = rounds.get("cells") or {}
    return {
        "disturbed": (rounds.get("retaken", 0) + rounds.get("disturbed", 0)) / taken if taken else None,
        "contended": cells["disturbed seconds"] / cells["seconds"] if cells.get("seconds") else None,
    }


def complaints(noise, rounds=None) -> list[str]:
    """Say what of a notebook's noise is beyond the limits.

    Parameters
    ----------
    noise : dict
        As `Noise.as_dict` gives it.
    rounds : dict, optional
        As for `shares`.

    Returns
    -------
    list of str
    """
    rounds = rounds or {}
    found = noise | shares(rounds)
    more = {"gap": GAP_NS // 1000, "retaken": rounds.get("retaken", 0), "kept": rounds.get("disturbed", 0)}
    return [
        WORDS[name].format(share=found[name], **more)
        for name, limit in LIMITS.items()
        if found.get(name) is not None and found[name] > limit
    ]
