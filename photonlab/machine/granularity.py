"""In which steps does a clock advance? Its unit and its frequency do not say (claim M1); spans between reads do.

A counter that says 2.6 GHz may advance by 26 ticks a hundred million times a second, and one that says 1 GHz by 41 or
42 ticks (41.67 ns: 24 MHz, rounded). Some hardware adds one tick to a read that would repeat the last one. So the
step is not the greatest common divisor of the spans, which such a tick brings down to 1, but the distance between the
values at which spans gather, provided that nearly all of them lie there.
"""

from typing import NamedTuple

import numpy as np

_RARE = 0.001
"""A value seen in a smaller share of the spans is an interruption, not a property of the clock."""
_ROUNDING = 1.0
"""Ticks by which a span may be off its place on the lattice: both reads are rounded, and one may have been nudged."""


class Step(NamedTuple):
    """The step of a clock."""

    ticks: float
    """Distance between the values that spans take; not whole where the clock counts a slower one in a finer unit."""
    on_lattice: float
    """Share of the spans of up to 32 steps within a tick of a multiple of `ticks`: how far to trust it."""


def step_of(spans) -> Step | None:
    """Estimate the step of a clock from spans between pairs of its reads.

    Parameters
    ----------
    spans : array_like of unsigned int
        Differences of reads, with the time between the reads varied over several steps.

    Returns
    -------
    Step or None
        None when no two reads differed: the step is longer than every span.
    """
    spans = np.asarray(spans, dtype=np.uint64)
    values, counts = np.unique(spans, return_counts=True)
    nonzero = values[values > 0]
    if nonzero.size == 0:
        return None
    often = counts >= max(2, _RARE * spans.size)
    values, counts = values[often], counts[often]
    ticks = _spacing(values.astype(np.float64), counts) or float(nonzero[0])
    near = spans[spans <= 32 * ticks]  # far out, the error of the estimate adds up
    off = np.abs(near - np.round(near / ticks) * ticks)
    share = float(np.mean(off <= _ROUNDING))
    if share < 0.98:  # no lattice holds them: the clock counts every tick as far as can be told
        return Step(1.0, 1.0)
    return Step(ticks, share)


def _spacing(values, counts) -> float:
    """Return the distance between neighbouring clusters of frequent values, 0.0 where there are not two clusters."""
    if values.size < 2:
        return 0.0
    starts = np.flatnonzero(np.concatenate(([True], np.diff(values) > _ROUNDING)))
    widths = np.diff(np.append(starts, values.size))
    if widths.max() > 3:  # four neighbouring values in a row: the clock takes every value
        return 1.0
    centres = np.add.reduceat(values * counts, starts) / np.add.reduceat(counts, starts)
    if centres.size < 2:
        return 1.0
    if values[0] <= 1:  # repeated reads, whether nudged by a tick or not
        centres[0] = 0.0
    return float(np.median(np.diff(centres)))
