"""Medians with bootstrap intervals: of a series, and of the pairwise ratios of two series taken in turn."""

from typing import NamedTuple

import numpy as np

from photonlab.lab.measure import percentiles

RESAMPLES = 1999
"""Odd, and one less than a round number: the nearest ranks of 2.5 and 97.5 % lie symmetrically, so that the interval of
b / a is exactly the inverse of that of a / b."""

SEED = 20_190_730


class Interval(NamedTuple):
    """A value with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def median(samples, seed: int = SEED) -> Interval:
    """The median of a series of positive numbers with its bootstrap interval.

    Parameters
    ----------
    samples : array of float, shape (n,)
        Positive. Of an even number the two middle ones are joined by their geometric mean, so that medians of inverses
        are inverses of medians.
    seed : int
        Of the resampling.

    Returns
    -------
    Interval
        With fewer than 6 samples the interval is little else than their range.

    Raises
    ------
    ValueError
        No samples, or one that is not a positive number.
    """
    samples = np.asarray(samples, np.float64)
    if samples.size == 0 or not np.all(np.isfinite(samples)) or samples.min() <= 0:
        raise ValueError("a median needs positive numbers")
    logs = np.log(samples)
    rng = np.random.default_rng(seed)
    drawn = np.sort(np.median(logs[rng.integers(0, logs.size, (RESAMPLES, logs.size))], axis=1))
    low, high = (drawn[percentiles.nearest_rank(percentiles.parts(p), RESAMPLES) - 1] for p in ("2.5", "97.5"))
    middle = float(np.median(logs))
    # of two middle values their mean can lie outside what resampling reaches by one rounding
    return Interval(*(float(np.exp(x)) for x in (middle, min(low, middle), max(high, middle))))


def median_of_differences(samples, seed: int = SEED) -> Interval:
    """The median of numbers that may be zero or negative, as differences are, with its bootstrap interval.

    Parameters
    ----------
    samples : ndarray of float, shape (n,)
    seed : int
        Of the resampling.

    Returns
    -------
    Interval
    """
    rng = np.random.default_rng(seed)
    drawn = np.median(samples[rng.integers(0, samples.size, (RESAMPLES, samples.size))], axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    middle = float(np.median(samples))
    return Interval(middle, min(float(low), middle), max(float(high), middle))


def ratio(numerators, denominators, seed: int = SEED) -> Interval:
    """The median of pairwise ratios, with its bootstrap interval; pairs are resampled, not their members.

    Parameters
    ----------
    numerators, denominators : array of float, shape (n,)
        Positive, taken in turn: the i-th of each belong to the same round.
    """
    numerators, denominators = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    if numerators.shape != denominators.shape:
        raise ValueError(f"pairs of {numerators.size} and {denominators.size} samples")
    return median(numerators / denominators, seed)
