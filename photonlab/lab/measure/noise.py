"""The noise gauge: how quiet the machine was while a notebook ran, from what it says before, after and in between.

Two probes of a twentieth of a second frame each notebook: a spinning thread looks for gaps in its own time (hiccups:
the system or the host had something else to do) and for the length of a cycle (a clock that drifts: throttling, turbo).
What the system counts on its own, stolen time and
tasks that waited for a CPU, is read at both ends. Nothing runs while the notebook measures.
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
LIMITS = {"stolen": 0.01, "hiccups": 0.02, "drift": 0.05}
"""Shares beyond which a machine is called noisy."""
WORDS = {
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


def complaints(noise) -> list[str]:
    """Say what of a notebook's noise is beyond the limits.

    Parameters
    ----------
    noise : dict
        As `Noise.as_dict` gives it.

    Returns
    -------
    list of str
    """
    return [
        WORDS[name].format(share=noise[name], gap=GAP_NS // 1000)
        for name, limit in LIMITS.items()
        if noise.get(name) is not None and noise[name] > limit
    ]
