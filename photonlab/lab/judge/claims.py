"""The ledger of published claims: ``data/claims.toml`` read into records that are checked once.

Every claim that the whitepaper puts to the test is one entry: where it was published, what it says in our words, the
published figures with their units, which notebook tests it, and the checks (rule and parameters) that turn measured
rows into a verdict. The rules are in `photonlab.lab.judge.judging` and `photonlab.lab.judge.consistency`.
"""

import functools
import math
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from photonlab import paths

LEDGER = paths.DATA / "claims.toml"

KINDS = ("exact", "ratio", "direction", "absolute", "mechanism", "consistency", "new result", "feature")
"""Kinds of claim; ``feature`` (something exists) is judged as exact."""

SOURCES = ("T", "R", "P", "F", "S", "A", "M")


@dataclass(frozen=True)
class Published:
    """One published figure.

    Attributes
    ----------
    statistic, variant : str
        What the figure is ("p50") and of what ("Add"); a measured row with the same pair stands beside it.
    value : float
        The figure; with `upto`, the lower end of a published range.
    unit : str
        Unit of the figure ("ns", "M msg/s", "×", "%", "1" for a plain number).
    upto : float or None
        The upper end of a published range.
    """

    statistic: str
    variant: str
    value: float
    unit: str
    upto: float | None = None


@dataclass(frozen=True)
class Check:
    """One test of a claim: the name of a rule and its parameters, as they stand in the ledger."""

    rule: str
    parameters: dict = field(default_factory=dict)

    def __getitem__(self, name: str):
        return self.parameters[name]

    def get(self, name: str, default=None):
        """Parameter `name`, or `default` where the ledger leaves it out."""
        return self.parameters.get(name, default)


@dataclass(frozen=True)
class Claim:
    """One published claim.

    Attributes
    ----------
    id : str
        For example ``"R2"``; the letter is the source.
    source, section : str
        File of the write-up and the section of it that makes the claim.
    title : str
        The statement, in our words.
    kind : str
        One of `KINDS`, or several joined by " + ".
    published : tuple of Published
        The published figures.
    conditions : str
        Machine and circumstances under which they were published, and what ours does differently.
    notebook : str
        Name (without ``.ipynb``) of the notebook whose rows judge the claim.
    built : bool
        Whether that experiment exists already.
    checks : tuple of Check
        The rules that judge it; the worst outcome is the verdict.
    """

    id: str
    source: str
    section: str
    title: str
    kind: str
    published: tuple[Published, ...]
    conditions: str
    notebook: str
    built: bool
    checks: tuple[Check, ...]

    @property
    def rule(self) -> str:
        """Names of the rules, joined by " + "."""
        return " + ".join(dict.fromkeys(check.rule for check in self.checks))

    @property
    def parameters(self) -> list[dict]:
        """Parameters of each check, in the order of the ledger."""
        return [dict(check.parameters) for check in self.checks]

    def figure(self, statistic: str, variant: str = "") -> Published | None:
        """The published figure of a pair (statistic, variant).

        A variant of the form ``"a / b"`` that is not in the ledger itself is the quotient of its two parts' figures.

        Returns
        -------
        Published or None
            None where the source gives no such figure.
        """
        for entry in self.published:
            if entry.statistic == statistic and entry.variant == variant:
                return entry
        if " / " in variant:
            over, under = (self.figure(statistic, part) for part in variant.split(" / ", 1))
            if over and under and over.upto is None and under.upto is None:
                return Published(statistic, variant, over.value / under.value, "×")
        return None


@functools.cache
def load(path: Path = LEDGER) -> tuple[Claim, ...]:
    """Read the ledger, in its order.

    Raises
    ------
    ValueError
        An entry is incomplete, repeated, of an unknown kind, or not a number where a number belongs.
    """
    document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    sources = document["source"]
    claims = tuple(_claim(entry, sources) for entry in document["claim"])
    seen = set()
    for claim in claims:
        if claim.id in seen:
            raise ValueError(f"claim {claim.id} stands in the ledger twice")
        seen.add(claim.id)
    return claims


def by_id(path: Path = LEDGER) -> dict[str, Claim]:
    """The ledger as a dictionary from id to claim."""
    return {claim.id: claim for claim in load(path)}


def sources(path: Path = LEDGER) -> dict[str, dict]:
    """The write-ups by letter: ``file``, ``name``, ``machine`` and ``language`` of each."""
    return tomllib.loads(Path(path).read_text(encoding="utf-8"))["source"]


def _claim(entry: dict, sources: dict) -> Claim:
    name = entry.get("id", "without id")
    wanted = {"id", "section", "title", "kind", "conditions", "notebook", "built", "check"}
    lacking = sorted(key for key in wanted if key not in entry)
    surplus = sorted(set(entry) - wanted - {"published"})
    if lacking or surplus:
        raise ValueError(f"claim {name}: lacks {lacking}, does not know {surplus}")
    if name[0] not in sources or not name[1:].isdigit():
        raise ValueError(f"claim {name}: an id is the letter of a source and a number")
    unknown = [kind for kind in entry["kind"].split(" + ") if kind not in KINDS]
    if unknown:
        raise ValueError(f"claim {name}: unknown kind {unknown}, known are {KINDS}")
    if not entry["check"]:
        raise ValueError(f"claim {name}: nothing would judge it, it has no check")
    return Claim(
        id=name,
        source=sources[name[0]]["file"],
        section=entry["section"],
        title=entry["title"],
        kind=entry["kind"],
        published=tuple(_published(name, one) for one in entry.get("published", [])),
        conditions=entry["conditions"],
        notebook=entry["notebook"],
        built=entry["built"],
        checks=tuple(Check(one["rule"], {k: v for k, v in one.items() if k != "rule"}) for one in entry["check"]),
    )


def _published(name: str, entry: dict) -> Published:
    figure = Published(
        statistic=entry["statistic"],
        variant=entry.get("variant", ""),
        value=entry["value"],
        unit=entry["unit"],
        upto=entry.get("upto"),
    )
    for number in (figure.value, figure.upto):
        if number is not None and (isinstance(number, bool | str) or not math.isfinite(number)):
            raise ValueError(f"claim {name}: published {figure.statistic} {figure.variant} is {number!r}, not a number")
    return figure
