"""Plain-Python twins of percentiles, histogram and open loop: sorted lists, dictionaries and fractions."""

import math
from fractions import Fraction


def nearest_rank(percent: str, count: int) -> int:
    """Rank by the definition, in exact fractions."""
    return max(1, math.ceil(Fraction(percent) / 100 * count)) if count else 0


def percentile(samples: list[int], percent: str) -> int | None:
    """The sample of that rank; None of no samples."""
    return sorted(samples)[nearest_rank(percent, len(samples)) - 1] if samples else None


def totals(samples: list[int], bound: int) -> dict:
    """What a histogram with that bound knows of the samples."""
    buckets: dict[int, int] = {}
    for sample in samples:
        if sample <= bound:
            buckets[sample] = buckets.get(sample, 0) + 1
    return {
        "buckets": buckets,
        "overflow": sum(sample > bound for sample in samples),
        "count": len(samples),
        "sum": sum(samples),
        "least": min(samples, default=None),
        "most": max(samples, default=None),
    }


def serve(due: list[int], service: list[int]) -> list[tuple[int, int]]:
    """(taken up, finished) of each event of a single server in an open loop."""
    times, free = [], 0
    for at, cost in zip(due, service, strict=True):
        taken = max(at, free)
        free = taken + cost
        times.append((taken, free))
    return times
