"""The rules of judgement on measured rows: find published and measured figures, judge them, and word the reason.

One function a rule, named in the ledger as in `RULES`; each takes the claim, the check with its parameters and the
claim's rows, and returns one part a figure. The judgement itself is in `photonlab.lab.judge.rules`.
"""

from photonlab.lab.judge import rules
from photonlab.lab.judge.claims import Check, Claim
from photonlab.lab.judge.rows import (
    Part,
    Row,
    called,
    ends,
    entries_of,
    figure,
    measured,
    named,
    part,
    published_text,
    unit_of,
    unmeasured,
    with_interval,
)
from photonlab.lab.judge.rules import BESIDE, CLOSE, DIRECTION, FAILS, HOLDS, NEW, UNMEASURED


def judge_exact(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``exact``: statistic, variants (all published ones by default), tolerance, relative."""
    parts = []
    for entry in entries_of(claim, check):
        row = measured(claim, check, rows, entry.statistic, entry.variant, entry.unit)
        if isinstance(row, Part):
            parts.append(row)
            continue
        word = rules.exact(entry.value, row.value, check.get("tolerance", 0.0), check.get("relative", 0.0))
        says = "equal to" if row.value == entry.value else "as good as equal to" if word == HOLDS else "not"
        reason = f"{named(entry)} is {figure(row.value, row.unit)} here, {says} the published {published_text(entry)}."
        parts.append(part(check, word, reason, row, entry.value))
    return parts


def judge_ratio(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``ratio``: statistic, variant ``"a / b"``, tolerance, only."""
    statistic, variant = check["statistic"], check["variant"]
    entry = claim.figure(statistic, variant)
    if entry is None:
        raise ValueError(f"claim {claim.id}: no published {statistic} of {variant} to compare with")
    row = measured(claim, check, rows, statistic, variant, entry.unit)
    if isinstance(row, Part):
        return [row]
    tolerance, only = check.get("tolerance", 1.5), check.get("only", False)
    word = rules.ratio(entry.value, row.value, row.low, row.high, upto=entry.upto, tolerance=tolerance, only=only)
    says = {
        HOLDS: f"within a factor {tolerance:g} of",
        DIRECTION: f"the same side as, but not within a factor {tolerance:g} of,",
        CLOSE: "an interval that contains 1, against",
        FAILS: "against",
    }[word]
    reason = f"{named(entry)} is {with_interval(row)} here, {says} the published {published_text(entry)}."
    return [part(check, word, reason, row, entry.value)]


def judge_direction(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rules ``direction`` and ``effect``: statistic, variant ``"loser / winner"`` or ``"with / without"``, at_least."""
    statistic, variant, at_least = check["statistic"], check["variant"], check.get("at_least", 1.0)
    entry = claim.figure(statistic, variant)
    row = measured(claim, check, rows, statistic, variant, "×")
    if isinstance(row, Part):
        return [row]
    rule = rules.effect if check.rule == "effect" else rules.direction
    word = rule(row.value, row.low, row.high, at_least)
    says = {CLOSE: f"an interval that contains {at_least:g}", FAILS: f"not above {at_least:g}"}.get(
        word, f"above {at_least:g}"
    )
    beside = f" (published: {published_text(entry)})" if entry else ""
    reason = f"{called(statistic, variant)} is {with_interval(row)} here, {says}{beside}."
    return [part(check, word, reason, row, entry.value if entry else None)]


def judge_bound(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``bound``: statistic, variant, at_most and/or at_least, unit where nothing was published."""
    statistic, variant = check["statistic"], check.get("variant", "")
    entry = claim.figure(statistic, variant)
    unit = entry.unit if entry else check.get("unit", "×" if " / " in variant else "")
    row = measured(claim, check, rows, statistic, variant, unit)
    if isinstance(row, Part):
        return [row]
    word = rules.bound(row.value, check.get("at_most"), check.get("at_least"))
    limits = [
        f"at {side} {figure(check[f'at_{side}'], row.unit)}"
        for side in ("most", "least")
        if f"at_{side}" in check.parameters
    ]
    says = " and ".join(limits)
    beside = f" (published: {published_text(entry)})" if entry else ""
    reason = (
        f"{called(statistic, variant)} is {with_interval(row)} here, {'' if word == HOLDS else 'not '}{says}{beside}."
    )
    return [part(check, word, reason, row, entry.value if entry else None)]


def judge_order(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``order``: statistic, order (a list of variants, published ties as a list within it), tie (a factor)."""
    statistic = check["statistic"]
    groups = [[group] if isinstance(group, str) else list(group) for group in check["order"]]
    found = [
        [measured(claim, check, rows, statistic, name, unit_of(claim, statistic, name)) for name in group]
        for group in groups
    ]
    absent = [row for group in found for row in group if isinstance(row, Part)]
    if absent:
        return absent
    word = rules.order([[(row.value, *ends(row)) for row in group] for group in found], check.get("tie", 1.25))
    says = {DIRECTION: "as published", CLOSE: "neighbours too close to tell apart", FAILS: "not as published"}[word]
    here = ", ".join(f"{row.variant} {figure(row.value, row.unit)}" for group in found for row in group)
    published = " < ".join(" ≈ ".join(group) for group in groups)
    last = found[-1][-1]
    entry = claim.figure(statistic, last.variant)
    reason = f"The order of {statistic} is {says} ({published}): here {here}."
    return [part(check, word, reason, last, entry.value if entry else None)]


def judge_trend(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``trend``: statistic, variants in the order of the cause, rising."""
    statistic, names = check["statistic"], check["variants"]
    found = [measured(claim, check, rows, statistic, name, "") for name in names]
    absent = [row for row in found if isinstance(row, Part)]
    if absent:
        return absent
    word = rules.trend([ends(row) for row in found], check["rising"])
    says = {HOLDS: "follows", CLOSE: "does not clearly follow", FAILS: "does not follow"}[word]
    here = ", ".join(f"{row.variant} {figure(row.value, row.unit)}" for row in found)
    reason = (
        f"{called(statistic, '')} {says} its cause ({'rising' if check['rising'] else 'falling'} expected): {here}."
    )
    return [part(check, word, reason, found[-1], None)]


def judge_shares(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``shares``: statistic, variants, tolerance (a factor)."""
    wanted = entries_of(claim, check)
    found = [measured(claim, check, rows, entry.statistic, entry.variant, entry.unit) for entry in wanted]
    absent = [row for row in found if isinstance(row, Part)]
    if absent:
        return absent
    tolerance = check.get("tolerance", 1.5)
    word = rules.shares([entry.value for entry in wanted], [row.value for row in found], tolerance)
    says = {
        HOLDS: f"all within a factor {tolerance:g}",
        DIRECTION: "in the same order",
        FAILS: "in another order or size",
    }[word]
    pairs = ", ".join(
        f"{row.variant} {figure(row.value, row.unit)} (published {published_text(entry)})"
        for row, entry in zip(found, wanted, strict=True)
    )
    largest = max(range(len(found)), key=lambda index: wanted[index].value)
    return [part(check, word, f"Shares {says}: {pairs}.", found[largest], wanted[largest].value)]


def judge_day(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``day``: counts true of one day's file only; statistic, variants, total (the variant of all messages).

    Another input can neither confirm nor refute them: then the deviation of its mix is reported.
    """
    names = [*check["variants"], check["total"]]
    entries = [claim.figure(check["statistic"], name) for name in names]
    found = [measured(claim, check, rows, entry.statistic, entry.variant, entry.unit) for entry in entries]
    absent = [row for row in found if isinstance(row, Part)]
    if absent:
        return absent
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
        return [part(check, FAILS if wrong else HOLDS, reason, total, total_entry.value)]
    here, there = sum(row.value for row, _ in pairs), sum(entry.value for _, entry in pairs)
    apart = max(abs(row.value / here - entry.value / there) for row, entry in pairs) if here else 1.0
    reason = (
        f"The input is another one ({total.value:,.0f} messages, not {total_entry.value:,.0f}), so the counts of that"
        f" day are out of reach; the shares of its types differ by at most {100 * apart:.2f} percentage points."
    )
    return [part(check, UNMEASURED, reason, total, total_entry.value)]


def judge_beside(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``beside``: statistic (one or several), also (variants that only we measured). Never pass or fail."""
    parts = []
    statistics = [check["statistic"]] if isinstance(check["statistic"], str) else check["statistic"]
    for statistic in statistics:
        entries = [entry for entry in claim.published if entry.statistic == statistic]
        for entry in entries:
            row = measured(claim, check, rows, statistic, entry.variant, entry.unit)
            if isinstance(row, Part):
                parts.append(row)
                continue
            reason = f"{named(entry)}: {with_interval(row)} here beside {published_text(entry)} there."
            parts.append(part(check, BESIDE, reason, row, entry.value))
        for variant in check.get("also", []):
            row = measured(claim, check, rows, statistic, variant, entries[0].unit)
            if not isinstance(row, Part):
                row = part(check, BESIDE, f"{called(statistic, variant)}: {with_interval(row)} here.", row, None)
            parts.append(row)
    return parts


def judge_new(claim: Claim, check: Check, rows: list[Row]) -> list[Part]:
    """Rule ``new``: a figure that nobody published; statistic."""
    found = [row for row in rows if row.statistic == check["statistic"]]
    if not found:
        return [measured(claim, check, rows, check["statistic"], "", "")]
    parts = []
    for row in found:
        name = called(row.statistic, row.variant)
        if row.value is None:
            parts.append(unmeasured(check, row))
        else:
            parts.append(part(check, NEW, f"{name} is {with_interval(row)} here; nothing was published.", row, None))
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


def wanted(claim: Claim) -> list[tuple[str, str, str]]:
    """The rows that a notebook must record for a claim: (statistic, variant, unit), unit "" where any will do.

    A variant ``"a / b"`` is one row with its interval; two rows `a` and `b` do instead.
    """
    checks = (check for check in claim.checks if check.rule in RULES)
    parts = (part for check in checks for part in RULES[check.rule](claim, check, []))
    return list(dict.fromkeys((part.statistic, part.variant, part.unit) for part in parts))
