"""The rules that judge measured rows against published figures, one small pure function a kind.

The functions in the first half know numbers only and return one of the verdict words; the second half finds the
numbers in ledger and rows, and words the reason. A rule's parameters stand in the ledger, beside the claim.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from photonlab.lab.claims import Check, Claim, Published

HOLDS = "holds"
DIRECTION = "holds in direction"
FAILS = "does not hold here"
CLOSE = "too close to call"
UNMEASURED = "cannot be measured here"
BESIDE = "shown beside"
NEW = "new result"
MISSING = "not run"


@dataclass(frozen=True)
class Row:
    """One row of results, with None for numbers that are not there."""

    claim: str
    notebook: str
    statistic: str
    variant: str
    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    note: str = ""

    @classmethod
    def of(cls, record: Mapping) -> "Row":
        """From a mapping with the columns of the results; NaN becomes None."""
        numbers = {name: _absent(record.get(name)) for name in ("value", "low", "high")}
        texts = {name: record.get(name) or "" for name in ("claim", "notebook", "statistic", "variant", "unit", "note")}
        return cls(**texts, **numbers)


@dataclass(frozen=True)
class Part:
    """The outcome of one check on one figure."""

    verdict: str
    reason: str
    statistic: str = ""
    variant: str = ""
    published: float | None = None
    value: float | None = None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    rule: str = ""
    optional: bool = False


# ------------------------------------------------------------------------------------------------ numbers to words


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


# ------------------------------------------------------------------------------------------------ rows and reasons


def judge_exact(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``exact``: statistic, variants (all published ones by default), tolerance, relative."""
    parts = []
    for entry in _entries(claim, check):
        row = _measured(claim, check, rows, entry.statistic, entry.variant, entry.unit)
        if isinstance(row, Part):
            parts.append(row)
            continue
        word = exact(entry.value, row.value, check.get("tolerance", 0.0), check.get("relative", 0.0))
        says = "equal to" if row.value == entry.value else "as good as equal to" if word == HOLDS else "not"
        reason = f"{_name(entry)} is {figure(row.value, row.unit)} here, {says} the published {_published(entry)}."
        parts.append(_part(check, word, reason, row, entry.value))
    return parts


def judge_ratio(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``ratio``: statistic, variant ``"a / b"``, tolerance, only."""
    statistic, variant = check["statistic"], check["variant"]
    entry = claim.figure(statistic, variant)
    if entry is None:
        raise ValueError(f"claim {claim.id}: no published {statistic} of {variant} to compare with")
    row = _measured(claim, check, rows, statistic, variant, entry.unit)
    if isinstance(row, Part):
        return [row]
    tolerance, only = check.get("tolerance", 1.5), check.get("only", False)
    word = ratio(entry.value, row.value, row.low, row.high, upto=entry.upto, tolerance=tolerance, only=only)
    says = {
        HOLDS: f"within a factor {tolerance:g} of",
        DIRECTION: f"the same side as, but not within a factor {tolerance:g} of,",
        CLOSE: "an interval that contains 1, against",
        FAILS: "against",
    }[word]
    reason = f"{_name(entry)} is {_with_interval(row)} here, {says} the published {_published(entry)}."
    return [_part(check, word, reason, row, entry.value)]


def judge_direction(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rules ``direction`` and ``effect``: statistic, variant ``"loser / winner"`` or ``"with / without"``, at_least."""
    statistic, variant, at_least = check["statistic"], check["variant"], check.get("at_least", 1.0)
    entry = claim.figure(statistic, variant)
    row = _measured(claim, check, rows, statistic, variant, "×")
    if isinstance(row, Part):
        return [row]
    rule = effect if check.rule == "effect" else direction
    word = rule(row.value, row.low, row.high, at_least)
    says = {CLOSE: f"an interval that contains {at_least:g}", FAILS: f"not above {at_least:g}"}.get(
        word, f"above {at_least:g}"
    )
    beside = f" (published: {_published(entry)})" if entry else ""
    reason = f"{_called(statistic, variant)} is {_with_interval(row)} here, {says}{beside}."
    return [_part(check, word, reason, row, entry.value if entry else None)]


def judge_bound(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``bound``: statistic, variant, at_most and/or at_least, unit where nothing was published."""
    statistic, variant = check["statistic"], check.get("variant", "")
    entry = claim.figure(statistic, variant)
    unit = entry.unit if entry else check.get("unit", "×" if " / " in variant else "")
    row = _measured(claim, check, rows, statistic, variant, unit)
    if isinstance(row, Part):
        return [row]
    word = bound(row.value, check.get("at_most"), check.get("at_least"))
    limits = [
        f"at {side} {figure(check[f'at_{side}'], row.unit)}"
        for side in ("most", "least")
        if f"at_{side}" in check.parameters
    ]
    says = " and ".join(limits)
    beside = f" (published: {_published(entry)})" if entry else ""
    reason = (
        f"{_called(statistic, variant)} is {_with_interval(row)} here, {'' if word == HOLDS else 'not '}{says}{beside}."
    )
    return [_part(check, word, reason, row, entry.value if entry else None)]


def judge_order(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``order``: statistic, order (a list of variants, published ties as a list within it), tie (a factor)."""
    statistic = check["statistic"]
    groups = [[group] if isinstance(group, str) else list(group) for group in check["order"]]
    found = [
        [_measured(claim, check, rows, statistic, name, _unit(claim, statistic, name)) for name in group]
        for group in groups
    ]
    for row in (row for group in found for row in group):
        if isinstance(row, Part):
            return [row]
    word = order([[(row.value, *_ends(row)) for row in group] for group in found], check.get("tie", 1.25))
    says = {DIRECTION: "as published", CLOSE: "neighbours too close to tell apart", FAILS: "not as published"}[word]
    here = ", ".join(f"{row.variant} {figure(row.value, row.unit)}" for group in found for row in group)
    published = " < ".join(" ≈ ".join(group) for group in groups)
    last = found[-1][-1]
    entry = claim.figure(statistic, last.variant)
    reason = f"The order of {statistic} is {says} ({published}): here {here}."
    return [_part(check, word, reason, last, entry.value if entry else None)]


def judge_trend(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``trend``: statistic, variants in the order of the cause, rising."""
    statistic, names = check["statistic"], check["variants"]
    found = [_measured(claim, check, rows, statistic, name, "") for name in names]
    for row in found:
        if isinstance(row, Part):
            return [row]
    word = trend([_ends(row) for row in found], check["rising"])
    says = {HOLDS: "follows", CLOSE: "does not clearly follow", FAILS: "does not follow"}[word]
    here = ", ".join(f"{row.variant} {figure(row.value, row.unit)}" for row in found)
    reason = (
        f"{_called(statistic, '')} {says} its cause ({'rising' if check['rising'] else 'falling'} expected): {here}."
    )
    return [_part(check, word, reason, found[-1], None)]


def judge_shares(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``shares``: statistic, variants, tolerance (a factor)."""
    entries = _entries(claim, check)
    found = [_measured(claim, check, rows, entry.statistic, entry.variant, entry.unit) for entry in entries]
    for row in found:
        if isinstance(row, Part):
            return [row]
    tolerance = check.get("tolerance", 1.5)
    word = shares([entry.value for entry in entries], [row.value for row in found], tolerance)
    says = {
        HOLDS: f"all within a factor {tolerance:g}",
        DIRECTION: "in the same order",
        FAILS: "in another order or size",
    }[word]
    pairs = ", ".join(
        f"{row.variant} {figure(row.value, row.unit)} (published {_published(entry)})"
        for row, entry in zip(found, entries, strict=True)
    )
    largest = max(range(len(found)), key=lambda index: entries[index].value)
    return [_part(check, word, f"Shares {says}: {pairs}.", found[largest], entries[largest].value)]


def judge_day(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``day``: counts true of one day's file only; statistic, variants, total (the variant of all messages).

    Another input can neither confirm nor refute them: then the deviation of its mix is reported.
    """
    names = [*check["variants"], check["total"]]
    entries = [claim.figure(check["statistic"], name) for name in names]
    found = [_measured(claim, check, rows, entry.statistic, entry.variant, entry.unit) for entry in entries]
    for row in found:
        if isinstance(row, Part):
            return [row]
    total, total_entry = found[-1], entries[-1]
    pairs = list(zip(found[:-1], entries[:-1], strict=True))
    if total.value == total_entry.value:
        wrong = [
            f"{row.variant} {row.value:,.0f} instead of {entry.value:,.0f}"
            for row, entry in pairs
            if row.value != entry.value
        ]
        reason = (
            f"On the published day: {'; '.join(wrong)}."
            if wrong
            else f"All {total.value:,.0f} messages of the published day, each count equal."
        )
        return [_part(check, FAILS if wrong else HOLDS, reason, total, total_entry.value)]
    here, there = sum(row.value for row, _ in pairs), sum(entry.value for _, entry in pairs)
    apart = max(abs(row.value / here - entry.value / there) for row, entry in pairs) if here else 1.0
    reason = (
        f"The input is another one ({total.value:,.0f} messages, not {total_entry.value:,.0f}), so the counts of that"
        f" day are out of reach; the shares of its types differ by at most {100 * apart:.2f} percentage points."
    )
    return [_part(check, UNMEASURED, reason, total, total_entry.value)]


def judge_beside(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``beside``: statistic (one or several), also (variants that only we measured). Never pass or fail."""
    parts = []
    statistics = [check["statistic"]] if isinstance(check["statistic"], str) else check["statistic"]
    for statistic in statistics:
        entries = [entry for entry in claim.published if entry.statistic == statistic]
        for entry in entries:
            row = _measured(claim, check, rows, statistic, entry.variant, entry.unit)
            if isinstance(row, Part):
                parts.append(row)
                continue
            reason = f"{_name(entry)}: {_with_interval(row)} here beside {_published(entry)} there."
            parts.append(_part(check, BESIDE, reason, row, entry.value))
        for variant in check.get("also", []):
            row = _measured(claim, check, rows, statistic, variant, entries[0].unit)
            if not isinstance(row, Part):
                row = _part(check, BESIDE, f"{_called(statistic, variant)}: {_with_interval(row)} here.", row, None)
            parts.append(row)
    return parts


def judge_new(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``new``: a figure that nobody published; statistic."""
    found = [row for row in rows if row.statistic == check["statistic"]]
    if not found:
        return [
            _part(
                check, MISSING, f"The row {check['statistic']} is missing in this run.", None, None, check["statistic"]
            )
        ]
    parts = []
    for row in found:
        name = _called(row.statistic, row.variant)
        if row.value is None:
            parts.append(_part(check, UNMEASURED, f"{name}: {_sentence(row.note)}", row, None))
        else:
            parts.append(_part(check, NEW, f"{name} is {_with_interval(row)} here; nothing was published.", row, None))
    return parts


RULES = {
    "exact": judge_exact,
    "ratio": judge_ratio,
    "direction": judge_direction,
    "effect": judge_direction,
    "bound": judge_bound,
    "order": judge_order,
    "trend": judge_trend,
    "shares": judge_shares,
    "day": judge_day,
    "beside": judge_beside,
    "new": judge_new,
}
"""Rules on measured rows by name: (claim, check, rows of the claim) to parts."""


def figure(value: float, unit: str = "") -> str:
    """A number for a reader: separators in whole numbers, else four significant digits; the unit "1" is not shown.

    Examples
    --------
    >>> figure(423285709, "1"), figure(2.3333333, "×"), figure(0.39, "1"), figure(1334.0, "ns")
    ('423,285,709', '2.333×', '0.39', '1,334 ns')
    """
    if float(value).is_integer():
        text = f"{value:,.0f}"
    elif abs(value) >= 1000:
        text = f"{value:,.1f}"
    else:
        text = f"{value:.4g}"
    return text + ("" if unit in ("", "1") else unit if unit == "×" else f" {unit}")


# ------------------------------------------------------------------------------------------------ finding the rows


def _entries(claim: Claim, check: Check) -> list[Published]:
    names = check.get("variants")
    entries = [
        e for e in claim.published if e.statistic == check["statistic"] and (names is None or e.variant in names)
    ]
    if not entries or (names is not None and len(entries) != len(names)):
        raise ValueError(f"claim {claim.id}: not all figures of rule {check.rule} ({check['statistic']}) are published")
    return entries


def _measured(claim: Claim, check: Check, rows: list[Row], statistic: str, variant: str, unit: str) -> Row | Part:
    """The row of a pair, or the part that says why there is none; a quotient may be formed of two rows."""
    row = next((r for r in rows if r.statistic == statistic and r.variant == variant), None)
    if row is None and " / " in variant:
        over, under = (
            next((r for r in rows if r.statistic == statistic and r.variant == v), None)
            for v in variant.split(" / ", 1)
        )
        if over and under:
            row = _quotient(claim, over, under, variant)
    if row is None:
        return _part(
            check,
            MISSING,
            f"The row {_called(statistic, variant)} is missing in this run.",
            None,
            None,
            statistic,
            variant,
        )
    if row.value is None:
        return _part(check, UNMEASURED, f"{_called(statistic, variant)}: {_sentence(row.note)}", row, None)
    if unit and row.unit != unit:
        raise ValueError(
            f"claim {claim.id}: {statistic} {variant} was recorded in {row.unit!r}, the ledger has {unit!r}"
        )
    return row


def _quotient(claim: Claim, over: Row, under: Row, variant: str) -> Row:
    for one in (over, under):
        if one.value is None:
            return Row(claim.id, one.notebook, one.statistic, variant, None, "×", note=one.note)
    if over.unit != under.unit:
        raise ValueError(f"claim {claim.id}: {over.statistic} of {variant} mixes {over.unit!r} and {under.unit!r}")
    (low, high), (under_low, under_high) = _ends(over), _ends(under)
    if min(under.value, under_low) <= 0:
        note = f"{under.variant} is {figure(under.value, under.unit)}, which cannot be divided by"
        return Row(claim.id, over.notebook, over.statistic, variant, None, "×", note=note)
    # the widest quotient of the two intervals: wider than a paired one, never too narrow
    return Row(
        claim.id,
        over.notebook,
        over.statistic,
        variant,
        over.value / under.value,
        "×",
        low / under_high,
        high / under_low,
    )


def _part(
    check: Check, word: str, reason: str, row: Row | None, published, statistic: str = "", variant: str = ""
) -> Part:
    numbers = {} if row is None else {"value": row.value, "unit": row.unit, "low": row.low, "high": row.high}
    names = (statistic, variant) if row is None else (row.statistic, row.variant)
    return Part(word, reason, *names, published, **numbers, rule=check.rule, optional=check.get("optional", False))


def _unit(claim: Claim, statistic: str, variant: str) -> str:
    entry = claim.figure(statistic, variant)
    return entry.unit if entry else ""


def _ends(row: Row) -> tuple[float, float]:
    return (row.value if row.low is None else row.low, row.value if row.high is None else row.high)


def _absent(number):
    return None if number is None or number != number else number


def _called(statistic: str, variant: str) -> str:
    return f"{statistic} ({variant})" if variant else statistic


def _name(entry: Published) -> str:
    return _called(entry.statistic, entry.variant)


def _published(entry: Published) -> str:
    upto = "" if entry.upto is None else f"{figure(entry.value)} to "
    return upto + figure(entry.value if entry.upto is None else entry.upto, entry.unit)


def _with_interval(row: Row) -> str:
    if row.low is None or row.high is None:
        return figure(row.value, row.unit)
    return f"{figure(row.value, row.unit)} [{figure(row.low)}, {figure(row.high)}]"


def _sentence(note: str) -> str:
    note = note.strip()
    return note if note.endswith(".") else note + "."
