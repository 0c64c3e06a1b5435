"""Nearest-rank percentiles in integers: the one definition that everything here uses.

The p-th percentile of n sorted samples is the sample of rank ceil(p / 100 * n), counted from 1. In floating point
ceil(99.9 / 100 * 1000) is 1000, where the right rank is 999; so percentiles are whole parts of 100,000 here ("99.9" is
99,900), and ranks come from integer division.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

PARTS = 100_000
"""Parts of a whole: percentiles are exact to a thousandth of a percent."""

BEYOND = 10
"""Samples that must lie beyond a percentile for it to be printed: fewer would let a handful of outliers set it."""


@dataclass(frozen=True)
class Percentile:
    """One percentile of one distribution.

    Attributes
    ----------
    parts : int
        Which one, in parts of 100,000.
    rank, count : int
        Its rank from 1, and the number of samples; both 0 for an empty distribution.
    value : int or None
        The sample of that rank; None if there is none, or if it is known only to lie above `above`.
    above : int or None
        The bound that the sample lies above, where a histogram kept no more of it.
    why : str
        Empty, or the reason for which the value must not be printed.
    floor : float or None
        The clock's floor, if the value is at or below it.
    """

    parts: int
    rank: int
    count: int
    value: int | None
    above: int | None = None
    why: str = ""
    floor: float | None = None

    @property
    def name(self) -> str:
        """As in a heading: "p99.9"."""
        return f"p{_percent(self.parts)}"

    @property
    def supported(self) -> bool:
        """Whether the value may be printed."""
        return not self.why

    def text(self, scale: float = 1.0, unit: str = "") -> str:
        """For a table: the value times `scale`, "> bound" in the overflow, "≤ floor", "–" if unsupported."""
        if self.why and self.floor is None:
            return "–"
        if self.value is None:
            return "> " + shown(self.above, scale, unit)
        return shown(self.value, scale, unit, self.floor)


def parts(percent) -> int:
    """A percentile as parts of 100,000, exactly.

    Parameters
    ----------
    percent : str, int, float or Fraction
        From 0 to 100; a float is taken as the decimal that it is written as (99.9 is 999/1000).

    Raises
    ------
    ValueError
        Out of range, or finer than a thousandth of a percent.

    Examples
    --------
    >>> parts(99.9), parts("50"), parts(100)
    (99900, 50000, 100000)
    """
    exact = (percent if isinstance(percent, Fraction) else Fraction(str(percent))) * PARTS / 100
    if exact.denominator != 1 or not 0 <= exact <= PARTS:
        raise ValueError(f"percentile {percent}: from 0 to 100, in steps of 0.001")
    return int(exact)


def nearest_rank(parts_: int, count: int) -> int:
    """The rank, from 1 to `count`, of a percentile given in parts; 0 if there is no sample."""
    if count == 0:
        return 0
    return max(1, -(-parts_ * count // PARTS))


def unsupported(rank: int, count: int, *, beyond: int = BEYOND) -> str:
    """Why `count` samples do not support the percentile of that rank; empty if they do.

    The extremes (p0 and p100) are facts and not estimates: do not ask for them.
    """
    if count == 0:
        return "no samples"
    left = count - rank
    if left < beyond:
        return f"{count:,} samples leave {left:,} beyond it, {beyond} are needed"
    return ""


def below_floor(value: int | None, floor, unit: str = "ticks") -> str:
    """Why the clock does not support a value; empty if it does, or if no `floor` was given."""
    if floor is None or value is None or value > floor:
        return ""
    return f"at or below the clock's floor ({floor:g} {unit})"


def of_samples(samples, percent, *, beyond: int = BEYOND, floor=None, unit: str = "ticks") -> Percentile:
    """A percentile of an array of integers.

    Parameters
    ----------
    samples : array of int, shape (n,)
        In any order; n may be 0.
    percent : str, int or float
        See `parts`.
    beyond : int
        See `unsupported`; 0 prints whatever there is.
    floor : number, optional
        The clock's floor in the unit of the samples.
    unit : str
        Of samples and floor, for the reason.

    Raises
    ------
    TypeError
        The samples are no integers.
    """
    samples = np.asarray(samples)
    if samples.size and samples.dtype.kind not in "iu":
        raise TypeError(f"percentiles are taken of integers (ticks, ns), not of {samples.dtype}")
    part = parts(percent)
    rank = nearest_rank(part, samples.size)
    value = int(np.partition(samples, rank - 1)[rank - 1]) if rank else None
    return checked(Percentile(part, rank, samples.size, value), beyond=beyond, floor=floor, unit=unit)


def checked(percentile: Percentile, *, beyond: int = BEYOND, floor=None, unit: str = "ticks") -> Percentile:
    """The same percentile with the reason, if any, for which it must not be printed."""
    extreme = percentile.parts in (0, PARTS) and percentile.count > 0
    why = "" if extreme else unsupported(percentile.rank, percentile.count, beyond=beyond)
    low = "" if why else below_floor(percentile.value, floor, unit)
    return replace(percentile, why=why or low, floor=floor if low else None)


def shown(number, scale: float = 1.0, unit: str = "", floor=None) -> str:
    """A number of ticks times `scale`, for a table: "–" for None, "≤ floor" at or below the floor."""
    if number is None:
        return "–"
    if floor is not None and number <= floor:
        return "≤ " + shown(floor, scale, unit)
    scaled = number * scale
    text = f"{scaled:,.0f}" if scaled >= 1000 or float(scaled).is_integer() else f"{scaled:,.1f}"
    return f"{text} {unit}".strip()


def _percent(parts_: int) -> str:
    whole, rest = divmod(parts_, 1000)
    return str(whole) if not rest else f"{whole}.{rest:03d}".rstrip("0")
