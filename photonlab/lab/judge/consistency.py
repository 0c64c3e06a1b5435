"""Claims that their source contradicts: judged by arithmetic on the published figures, without a measurement."""

from photonlab.lab.judge.claims import Check, Claim, Published
from photonlab.lab.judge.rows import Part, figure
from photonlab.lab.judge.rules import HOLDS, INCONSISTENT


def near(one: float, two: float, tolerance: float) -> bool:
    """Whether two positive figures agree within the factor `tolerance`."""
    return one <= two * tolerance and two <= one * tolerance


def levels_needed(base: int, size: int) -> int:
    """Levels of a `base`-ary tree that hold `size` leaves: the smallest k with base**k >= size, in integers."""
    if base < 2:
        raise ValueError(f"a tree of {base} children does not grow")
    levels, leaves = 0, 1
    while leaves < size:
        leaves *= base
        levels += 1
    return levels


def judge_quotient(claim: Claim, check: Check) -> list[Part]:
    """Rule ``quotient``: one of the figures `over` divided by `under` must give `gives` (unit, tolerance)."""
    given, under = _figure(claim, check["gives"]), _figure(claim, check["under"])
    over = [_figure(claim, name) for name in check["over"]]
    results = [entry.value / under.value for entry in over]
    agree = any(near(result, given.value, check["tolerance"]) for result in results)
    sums = " and ".join(
        f"{figure(entry.value)} / {figure(under.value)} = {figure(result, check['unit'])}"
        for entry, result in zip(over, results, strict=True)
    )
    reason = f"Published as {figure(given.value, given.unit)}, but by the same source's figures {sums}."
    if agree:
        reason = f"Published as {figure(given.value, given.unit)}, and {sums} agrees."
    return [_part(check, agree, reason, given, results[0])]


def judge_equal(claim: Claim, check: Check) -> list[Part]:
    """Rule ``equal``: the figures of two variants of one statistic must agree within `tolerance`."""
    one, two = (_figure(claim, check["statistic"], name) for name in check["variants"])
    agree = near(one.value, two.value, check["tolerance"])
    reason = (
        f"The same source gives {figure(one.value, one.unit)} ({one.variant})"
        f" and {figure(two.value, two.unit)} ({two.variant}):"
        f" {figure(max(one.value, two.value) / min(one.value, two.value))} times apart."
    )
    return [_part(check, agree, reason, one, two.value)]


def judge_ceiling(claim: Claim, check: Check) -> list[Part]:
    """Rule ``ceiling``: the figures of `variants` must lie below that of the variant `ceiling`."""
    limit = _figure(claim, check["statistic"], check["ceiling"])
    above = [
        entry
        for entry in (_figure(claim, check["statistic"], name) for name in check["variants"])
        if entry.value >= limit.value
    ]
    if not above:
        return [
            _part(
                check, True, f"All published figures lie below {figure(limit.value, limit.unit)}.", limit, limit.value
            )
        ]
    named = ", ".join(f"{entry.variant} {figure(entry.value, entry.unit)}" for entry in above)
    reason = f"The {limit.variant} says below {figure(limit.value, limit.unit)}, the same source's table says {named}."
    return [_part(check, False, reason, limit, max(entry.value for entry in above))]


def judge_levels(claim: Claim, check: Check) -> list[Part]:
    """Rule ``levels``: a tree of `base` children over `size` leaves must need as many levels as `gives` says."""
    base, size, given = (_figure(claim, check[name]) for name in ("base", "size", "gives"))
    needed = levels_needed(int(base.value), int(size.value))
    holds = int(base.value) ** needed
    reason = (
        f"Published with {figure(given.value)} levels; {needed} levels of {figure(base.value)} children hold"
        f" {figure(holds)}, and {figure(size.value)} are needed."
    )
    return [_part(check, needed == given.value, reason, given, needed)]


RULES = {"quotient": judge_quotient, "equal": judge_equal, "ceiling": judge_ceiling, "levels": judge_levels}
"""Rules on published figures by name: (claim, check) to parts."""


def _figure(claim: Claim, statistic: str, variant: str = "") -> Published:
    entry = claim.figure(statistic, variant)
    if entry is None:
        raise ValueError(f"claim {claim.id}: nothing is published as {statistic} {variant}")
    return entry


def _part(check: Check, agree: bool, reason: str, entry: Published, value: float) -> Part:
    word = HOLDS if agree else INCONSISTENT
    return Part(
        word, reason, entry.statistic, entry.variant, entry.value, value, check.get("unit", entry.unit), rule=check.rule
    )
