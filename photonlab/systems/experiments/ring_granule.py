"""Two threads, two counters, and nothing varied but the bytes between them: what cores take from each other at once."""

import numpy as np

from photonlab.machine import clock
from photonlab.machine.atomics import fetch_add_relaxed, load_acquire, store_release
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array
from photonlab.systems import spin
from photonlab.systems.spin import meet

_0, _1 = np.uint64(0), np.uint64(1)
_CHUNK = 32
_DONE = np.uint64(48)  # a word of the flags on a line of its own
LARGEST = 4096
"""Bytes between the counters, at most."""


@kernel
def count_up(words, at, flags, side, steps, report):
    """Increment ``words[at]`` atomically: side 0 `steps` times, side 1 until side 0 has done so.

    Parameters
    ----------
    words : ndarray of uint64
    at, side, steps : uint64
    flags : ndarray of uint64
        Of `photonlab.systems.spin.together`.
    report : ndarray of uint64, shape (2,)
        Receives ticks and increments.
    """
    if not meet(flags, side):
        return
    begin, done = clock.ticks_begin(), _0
    while done < steps if side == _0 else load_acquire(flags, _DONE) == _0:
        for _ in range(_CHUNK):
            fetch_add_relaxed(words, at, _1)
        done += np.uint64(_CHUNK)
        if load_acquire(flags, spin.STOP) != _0:
            break
    report[0] = clock.elapsed(begin, clock.ticks_end())
    report[1] = done
    if side == _0:
        store_release(flags, _DONE, _1)


class Counters:
    """Two counters, `separation` bytes apart, the first at the start of a page."""

    def __init__(self, separation, steps):
        if not 8 <= separation <= LARGEST or separation % 8:
            raise ValueError(f"counters lie 8, 16, … {LARGEST} bytes apart, not {separation}")
        self.words = huge_array(1024, np.uint64, populate=True)
        self.at, self.steps = np.uint64(separation // 8), np.uint64(steps)
        self.reports = np.zeros((2, 2), np.uint64)

    def run(self, together=spin.together) -> spin.Together:
        """Count once; `ticks` and `increments` then hold the sums of both threads.

        Parameters
        ----------
        together : callable
            What runs two sides.
        """
        self.words[:] = 0
        run = together(
            lambda flags: count_up(self.words, _0, flags, _0, self.steps, self.reports[0]),
            lambda flags: count_up(self.words, self.at, flags, _1, self.steps, self.reports[1]),
        )
        counted = [int(self.words[0]), int(self.words[int(self.at)])]
        if counted != self.reports[:, 1].tolist():
            raise AssertionError(f"increments were lost: {counted} of {self.reports[:, 1].tolist()}")
        return run

    @property
    def ticks(self) -> int:
        """Of both threads."""
        return int(self.reports[:, 0].sum())

    @property
    def increments(self) -> int:
        """Of both threads."""
        return int(self.reports[:, 1].sum())
