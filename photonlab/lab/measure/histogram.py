"""What a histogram that a kernel has filled says: count, mean, extremes, and the percentiles that it supports."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from photonlab.kernels.histogram import (  # noqa: F401  (what measuring code imports from here)
    BOUND,
    Histogram,
    add,
    add_all,
    clear,
    empty,
    locate,
    merge,
    record,
)
from photonlab.lab.measure import percentiles
from photonlab.lab.measure.percentiles import Percentile, shown

PERCENTILES = (50, 90, 99, "99.9")

_COUNT, _MAX = 1, 4  # words of its totals


def percentile(
    histogram: Histogram, percent, *, beyond: int = percentiles.BEYOND, floor=None, unit: str = "ticks"
) -> Percentile:
    """A percentile by the definition of `photonlab.lab.measure.percentiles`.

    A sample in the overflow is known only to lie above the bound, unless it is the last: that is the exact maximum.

    Parameters
    ----------
    histogram : Histogram
    percent, beyond, floor, unit
        See `photonlab.lab.measure.percentiles.of_samples`.
    """
    part = percentiles.parts(percent)
    count = int(histogram.totals[_COUNT])
    rank = percentiles.nearest_rank(part, count)
    value, above = None, None
    if rank == count > 0:
        value = int(histogram.totals[_MAX])
    elif rank:
        bucket = int(locate(histogram.buckets, np.uint64(rank)))
        value, above = (bucket, None) if bucket < histogram.buckets.size else (None, histogram.buckets.size - 1)
    found = Percentile(part, rank, count, value, above)
    return percentiles.checked(found, beyond=beyond, floor=floor, unit=unit)


@dataclass(frozen=True)
class Summary:
    """What a table shows of a distribution.

    Attributes
    ----------
    count, overflow : int
        All samples, and those above the bound.
    mean : float or None
    least, most : int or None
        Exact; None for an empty distribution, which `note` then says.
    percentiles : tuple of Percentile
    floor : float or None
        The clock's floor; no figure at or below it is printed as such.
    """

    count: int
    overflow: int
    mean: float | None
    least: int | None
    most: int | None
    percentiles: tuple[Percentile, ...]
    floor: float | None = None

    @property
    def note(self) -> str:
        """Why figures are not printed, in one line; empty if all are."""
        if not self.count:
            return "no samples"
        return "; ".join(f"{one.name}: {one.why}" for one in self.percentiles if one.why)

    def cells(self, scale: float = 1.0, unit: str = "") -> dict[str, str]:
        """One row of a table, in the order of a latency scorecard.

        Parameters
        ----------
        scale : float
            Factor from ticks to the unit shown.
        unit : str
            Put after each figure; empty where the heading says it.
        """
        ends = [shown(number, scale, unit, self.floor) for number in (self.mean, self.least, self.most)]
        row = {"count": f"{self.count:,}", "avg": ends[0], "min": ends[1]}
        row |= {one.name: one.text(scale, unit) for one in self.percentiles}
        return row | {"max": ends[2], "above bound": f"{self.overflow:,}", "note": self.note}


def summary(
    histogram: Histogram,
    percents: Sequence = PERCENTILES,
    *,
    beyond: int = percentiles.BEYOND,
    floor=None,
    unit: str = "ticks",
) -> Summary:
    """Count, mean, extremes and percentiles of a histogram.

    Parameters
    ----------
    histogram : Histogram
    percents : sequence
        Percentiles to find.
    beyond, floor, unit
        See `photonlab.lab.measure.percentiles.of_samples`.
    """
    overflow, count, total, least, most = (int(number) for number in histogram.totals)
    found = tuple(percentile(histogram, one, beyond=beyond, floor=floor, unit=unit) for one in percents)
    if not count:
        return Summary(0, 0, None, None, None, found, floor)
    return Summary(count, overflow, total / count, least, most, found, floor)
