"""Rows and parts of a verdict: what a rule reads and what it returns, and figures put into words."""

from collections.abc import Mapping
from dataclasses import dataclass

from photonlab.lab.judge.claims import Check, Claim, Published
from photonlab.lab.judge.rules import NOT_RUN, UNMEASURED


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
    note: str = ""
    """Why it was not measured, in the words of the probe."""
    optional: bool = False


def figure(value: float, unit: str = "") -> str:
    """A number for a reader: four significant digits, or all before the point; the unit "1" is not shown.

    Examples
    --------
    >>> figure(423285709, "1"), figure(2.3333333, "×"), figure(0.39, "1"), figure(1334.0, "ns")
    ('423,285,709', '2.333×', '0.39', '1,334 ns')
    """
    if float(value).is_integer() or abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.4g}"
    return text + ("" if unit in ("", "1") else unit if unit == "×" else f" {unit}")


def entries_of(claim: Claim, check: Check) -> list[Published]:
    """The published figures of a check's statistic and variants (all of the statistic by default)."""
    names = check.get("variants")
    entries = [
        e for e in claim.published if e.statistic == check["statistic"] and (names is None or e.variant in names)
    ]
    if not entries or (names is not None and len(entries) != len(names)):
        raise ValueError(f"claim {claim.id}: not all figures of rule {check.rule} ({check['statistic']}) are published")
    return entries


def measured(claim: Claim, check: Check, rows: list[Row], statistic: str, variant: str, unit: str) -> Row | Part:
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
        reason = f"The row {called(statistic, variant)} is missing in this run."
        return Part(
            NOT_RUN, reason, statistic, variant, unit=unit, rule=check.rule, optional=check.get("optional", False)
        )
    if row.value is None:
        return unmeasured(check, row)
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
    (low, high), (under_low, under_high) = ends(over), ends(under)
    if min(under.value, under_low) <= 0:
        note = f"{under.variant} is {figure(under.value, under.unit)}, which cannot be divided by"
        return Row(claim.id, over.notebook, over.statistic, variant, None, "×", note=note)
    # the widest quotient of the two intervals: wider than a paired one, never too narrow
    value = over.value / under.value
    return Row(claim.id, over.notebook, over.statistic, variant, value, "×", low / under_high, high / under_low)


def part(check: Check, word: str, reason: str, row: Row, published: float | None) -> Part:
    """The outcome of a check on a row."""
    numbers = (published, row.value, row.unit, row.low, row.high)
    return Part(word, reason, row.statistic, row.variant, *numbers, check.rule, row.note, check.get("optional", False))


def unmeasured(check: Check, row: Row) -> Part:
    """The outcome of a row that says why there is no figure."""
    return part(check, UNMEASURED, f"{called(row.statistic, row.variant)}: {sentence(row.note)}", row, None)


def unit_of(claim: Claim, statistic: str, variant: str) -> str:
    """The unit of a published figure; empty where there is none."""
    entry = claim.figure(statistic, variant)
    return entry.unit if entry else ""


def ends(row: Row) -> tuple[float, float]:
    """The interval of a row; its value stands for an end that is not there."""
    return (row.value if row.low is None else row.low, row.value if row.high is None else row.high)


def _absent(number):
    return None if number is None or number != number else number


def called(statistic: str, variant: str) -> str:
    """A pair (statistic, variant) in words."""
    return f"{statistic} ({variant})" if variant else statistic


def named(entry: Published) -> str:
    """A published figure's pair in words."""
    return called(entry.statistic, entry.variant)


def published_text(entry: Published) -> str:
    """A published figure, or range, with its unit."""
    upto = "" if entry.upto is None else f"{figure(entry.value)} to "
    return upto + figure(entry.value if entry.upto is None else entry.upto, entry.unit)


def with_interval(row: Row) -> str:
    """A measured figure with its unit and interval."""
    if row.low is None or row.high is None:
        return figure(row.value, row.unit)
    return f"{figure(row.value, row.unit)} [{figure(row.low)}, {figure(row.high)}]"


def sentence(note: str) -> str:
    """A note, closed by a full stop."""
    note = note.strip()
    return note if note.endswith(".") else note + "."
