"""A histogram that a kernel fills while it runs: one-tick buckets, overflow, exact minimum, maximum, count, sum.

With the default bound it is that of claim P12: 10,001 buckets, 0 to 10,000, and the overflow. What percentiles it
supports, `photonlab.lab.measure.histogram` says.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from photonlab.machine.jit import kernel

BOUND = 10_000
"""Largest value with a bucket of its own, by default."""

_OVERFLOW, _COUNT, _SUM, _MIN, _MAX = range(5)


class Histogram(NamedTuple):
    """State of a histogram, for kernels.

    Attributes
    ----------
    buckets : uint64 array, shape (bound + 1,)
        Samples of each value from 0 to the bound.
    totals : uint64 array, shape (5,)
        Samples above the bound, all samples, their sum (modulo 2**64), smallest and largest sample.
    """

    buckets: np.ndarray
    totals: np.ndarray


def empty(bound: int = BOUND) -> Histogram:
    """A histogram with buckets for 0 to `bound`."""
    if bound < 0:
        raise ValueError(f"a histogram needs a bound of 0 or more, not {bound}")
    histogram = Histogram(np.zeros(bound + 1, np.uint64), np.zeros(5, np.uint64))
    clear(histogram)
    return histogram


def clear(histogram: Histogram) -> None:
    """Forget all samples."""
    histogram.buckets[:] = 0
    histogram.totals[:] = 0
    histogram.totals[_MIN] = np.uint64(2**64 - 1)


@kernel
def add(histogram, value):
    """Count one sample.

    Parameters
    ----------
    histogram : Histogram
    value : uint64
        In ticks; a time that could come out negative must have been clamped before (`photonlab.machine.clock.elapsed`).
    """
    v = types.uint64(value)
    one = types.uint64(1)
    totals = histogram.totals
    if v < types.uint64(histogram.buckets.size):
        histogram.buckets[v] += one
    else:
        totals[0] += one
    totals[1] += one
    totals[2] += v
    if v < totals[3]:
        totals[3] = v
    if v > totals[4]:
        totals[4] = v


record = add
"""The same kernel by the name under which other rooms know it."""


@kernel
def add_all(histogram, values):
    """Count each sample of a uint64 array."""
    for i in range(values.size):
        add(histogram, values[i])


@kernel
def _merge(into, other):
    for i in range(other.buckets.size):
        into.buckets[i] += other.buckets[i]
    for k in range(3):
        into.totals[k] += other.totals[k]
    if other.totals[3] < into.totals[3]:
        into.totals[3] = other.totals[3]
    if other.totals[4] > into.totals[4]:
        into.totals[4] = other.totals[4]


def merge(into: Histogram, other: Histogram) -> None:
    """Add the samples of `other` to `into`.

    Raises
    ------
    ValueError
        The two have different bounds.
    """
    if into.buckets.size != other.buckets.size:
        raise ValueError(f"bounds {into.buckets.size - 1} and {other.buckets.size - 1} differ")
    _merge(into, other)


@kernel
def locate(buckets, rank):
    """The value of the sample of a rank: one scan of the buckets.

    Parameters
    ----------
    buckets : uint64 array, shape (n,)
    rank : uint64
        From 1.

    Returns
    -------
    uint64
        The bucket, or n if the rank lies in the overflow.
    """
    left = types.uint64(rank)
    for i in range(buckets.size):
        if buckets[i] >= left:
            return types.uint64(i)
        left -= buckets[i]
    return types.uint64(buckets.size)
