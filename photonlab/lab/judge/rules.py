"""The rules of judgement as functions of numbers alone: figures in, one of the verdict words out.

`photonlab.lab.judge.judging` finds the figures in ledger and rows and words the reasons; a rule's parameters stand
in the ledger.
"""

import itertools
from collections.abc import Sequence

HOLDS = "holds"
DIRECTION = "holds in direction"
FAILS = "does not hold here"
CLOSE = "too close to call"
UNMEASURED = "cannot be measured here"
BESIDE = "shown beside"
NEW = "new result"
NOT_RUN = "not run"
NOT_BUILT = "not built yet"
INCONSISTENT = "inconsistent as published"


def exact(published: float, value: float, tolerance: float = 0.0, relative: float = 0.0) -> str:
    """Equal, within an absolute or relative tolerance that only rounding or pacing may need."""
    return HOLDS if abs(value - published) <= max(tolerance, relative * abs(published)) else FAILS


def ratio(
    published: float,
    value: float,
    low: float | None = None,
    high: float | None = None,
    *,
    upto: float | None = None,
    tolerance: float = 1.5,
    only: bool = False,
) -> str:
    """Judge a ratio measured here against a published one.

    Parameters
    ----------
    published, upto : float
        The published ratio, or the range from `published` to `upto`.
    value, low, high : float
        The ratio measured here and its 95 % interval; without an interval the value stands for both ends.
    tolerance : float
        Factor round the published ratio within which ours counts as the same.
    only : bool
        The claim says "only so much": a larger effect refutes it instead of agreeing in direction.

    Returns
    -------
    str
        "too close to call" if the interval contains 1 (unless the claim is that the ratio is 1), "holds" within the
        factor `tolerance`, "holds in direction" on the same side of 1, else "does not hold here".
    """
    low, high = value if low is None else low, value if high is None else high
    top = published if upto is None else upto
    within = published / tolerance <= value <= top * tolerance
    if published == top == 1:
        return HOLDS if within else FAILS
    if low <= 1 <= high:
        return CLOSE
    if (value > 1) != (published > 1):
        return FAILS
    if within:
        return HOLDS
    beyond = value > top * tolerance if published > 1 else value < published / tolerance
    return FAILS if only and beyond else DIRECTION


def direction(value: float, low: float | None = None, high: float | None = None, at_least: float = 1.0) -> str:
    """Which side wins: the ratio loser / winner lies above `at_least` with its whole interval."""
    low, high = value if low is None else low, value if high is None else high
    if low <= at_least <= high:
        return CLOSE
    return DIRECTION if value > at_least else FAILS


def effect(value: float, low: float | None = None, high: float | None = None, at_least: float = 1.0) -> str:
    """A cause varied alone: the ratio with / without lies above `at_least`, so the effect follows the cause."""
    word = direction(value, low, high, at_least)
    return HOLDS if word == DIRECTION else word


def bound(value: float, at_most: float | None = None, at_least: float | None = None) -> str:
    """At most, or at least, a limit."""
    if at_most is None and at_least is None:
        raise ValueError("a bound needs at_most or at_least")
    inside = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
    return HOLDS if inside else FAILS


def step(first: Sequence[float], second: Sequence[float]) -> int:
    """Compare two intervals (low, high): 1 if the second lies wholly above the first, -1 if wholly below, else 0."""
    return int(second[0] > first[1]) - int(second[1] < first[0])


def trend(intervals: Sequence[Sequence[float]], rising: bool) -> str:
    """A series of (low, high) follows its cause: the last beyond the first, and no step clearly against it."""
    sign = 1 if rising else -1
    overall = sign * step(intervals[0], intervals[-1])
    against = any(sign * step(one, two) < 0 for one, two in itertools.pairwise(intervals))
    if overall < 0 or against:
        return FAILS
    return HOLDS if overall > 0 else CLOSE


def order(groups: Sequence[Sequence[Sequence[float]]], tie: float) -> str:
    """Groups of (value, low, high) in the published order.

    Members of one group are published as equal and must lie within the factor `tie` of each other; each member of a
    group must lie above each member of the group before. Overlapping neighbours leave it too close to call.
    """
    words = [DIRECTION]
    for group in groups:
        values = [member[0] for member in group]
        words.append(DIRECTION if max(values) <= tie * min(values) else FAILS)
    for lower, upper in itertools.pairwise(groups):
        for one in lower:
            for two in upper:
                words.append({1: DIRECTION, 0: CLOSE, -1: FAILS}[step(one[1:], two[1:])])
    return FAILS if FAILS in words else CLOSE if CLOSE in words else DIRECTION


def shares(published: Sequence[float], values: Sequence[float], tolerance: float) -> str:
    """Shares of a whole: each within the factor `tolerance`; else the same order of sizes is the direction."""
    if all(p / tolerance <= v <= p * tolerance for p, v in zip(published, values, strict=True)):
        return HOLDS
    ranked = [sorted(range(len(column)), key=column.__getitem__) for column in (published, values)]
    return DIRECTION if len(values) > 1 and ranked[0] == ranked[1] else FAILS
