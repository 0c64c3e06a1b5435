"""Runs side by side: verdicts, figures and their ratios, and which claims travel from machine to machine."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
from markupsafe import Markup

from photonlab.errors import UserError
from photonlab.lab.judge import claims, results, verdicts
from photonlab.lab.judge.rows import figure
from photonlab.lab.publish import page_check, rundir
from photonlab.lab.publish.report import KINDS
from photonlab.lab.publish.sections import TEMPLATES, ReportError
from photonlab.lab.publish.summary import AGREE, DISAGREE, UNSAID
from photonlab.lab.publish.tables import MISSING

TRAVELS, SPLITS, UNSURE, BESIDE = "travels", "does not travel", "undecided", "shown beside"
KIND_OF = {TRAVELS: "good", SPLITS: "bad", UNSURE: "open", BESIDE: "info"}


@dataclass(frozen=True)
class Run:
    """One run that takes part.

    Attributes
    ----------
    name : str
        Of its folder, or of that with its parent's where two would be the same.
    facts, machine : dict
    judged : dict of str to photonlab.lab.judge.verdicts.Verdict
        By claim.
    rows : dict of tuple to dict
        By claim, statistic and variant.
    """

    name: str
    facts: dict
    machine: dict
    judged: dict = field(repr=False)
    rows: dict = field(repr=False)

    @property
    def cpu(self) -> str:
        """What the machine calls its processor."""
        parts = self.machine.values()
        return next((str(part[key]) for part in parts for key in part if key.lower() in ("model", "cpu")), "unknown")


def read(folders) -> list[Run]:
    """Read the runs.

    Parameters
    ----------
    folders : list of path-like
        Two or more.

    Raises
    ------
    UserError
        There are fewer, one is no run, or one has failed.
    """
    folders = [Path(folder) for folder in folders]
    if len(folders) < 2:
        raise UserError("a comparison needs two runs or more")
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = ["/".join(folder.resolve().parts[-2:]) for folder in folders]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
    return [_read(folder, name) for folder, name in zip(folders, names, strict=True)]


def _read(folder, name):
    facts = rundir.read_facts(folder)
    if facts.get("status") == "failed":
        raise UserError(f"{folder}: this run failed: {facts.get('failure', 'no reason is known')}")
    try:
        frame = results.read(folder)
        machine = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{folder}: the run is not whole: {error}") from None
    judged = {one.claim: one for one in verdicts.judge(claims.load(), frame)}
    rows = {(row["claim"], row["statistic"], row["variant"]): row for row in frame.to_dict("records")}
    return Run(name, facts, machine, judged, rows)


@dataclass(frozen=True)
class Ratio:
    """A figure of one run over that of another, with the interval that both intervals leave."""

    value: float
    low: float | None
    high: float | None

    @property
    def text(self) -> str:
        """As the page shows it."""
        if self.low is None:
            return figure(self.value, "×")
        return f"{figure(self.value, '×')} [{figure(self.low)}, {figure(self.high)}]"


def ratio(over, under) -> Ratio | None:
    """Divide two figures, each with value, low, high and unit; None where they cannot be divided.

    Parameters
    ----------
    over, under : mapping
    """
    numbers = [one["value"] for one in (over, under)]
    if over["unit"] != under["unit"] or any(not _there(number) or number <= 0 for number in numbers):
        return None
    ends = [over["low"], over["high"], under["low"], under["high"]]
    if all(_there(end) and end > 0 for end in ends):
        return Ratio(numbers[0] / numbers[1], ends[0] / ends[3], ends[1] / ends[2])
    return Ratio(numbers[0] / numbers[1], None, None)


def _there(number):
    return number is not None and not math.isnan(number)


def travels(words) -> str:
    """Say whether a claim fares alike everywhere.

    Parameters
    ----------
    words : list of str
        Its verdicts.
    """
    if any(word in UNSAID for word in words):
        return UNSURE
    if all(word in AGREE for word in words) or all(word in DISAGREE for word in words):
        return TRAVELS
    if any(word in AGREE for word in words) and any(word in DISAGREE for word in words):
        return SPLITS
    if all(word not in AGREE and word not in DISAGREE and word in KINDS and KINDS[word] == "info" for word in words):
        return BESIDE
    return UNSURE


def lay_out(runs) -> list[dict]:
    """Lay out the claims by source: what each run says, ratios to the first run, whether it travels."""
    ledger, groups = claims.by_id(), []
    for letter, source in claims.sources().items():
        rows = []
        for claim in [one for one in ledger if one.rstrip("0123456789") == letter]:
            verdicts_here = [run.judged[claim] for run in runs]
            first = _as_row(verdicts_here[0])
            cells = []
            for one in verdicts_here:
                against = ratio(_as_row(one), first) if one is not verdicts_here[0] else None
                cells.append(
                    {
                        "verdict": one.verdict, "kind": KINDS.get(one.verdict, "none"),
                        "value": MISSING if one.value is None else figure(one.value, one.unit),
                        "ratio": against.text if against else "",
                    }
                )  # fmt: skip
            word = travels([one.verdict for one in verdicts_here])
            rows.append({"claim": claim, "title": ledger[claim].title, "cells": cells, "travels": word,
                         "kind": KIND_OF[word]})  # fmt: skip
        groups.append({"letter": letter, "name": f"{letter}: {source['name']}", "rows": rows})
    return groups


def _as_row(verdict):
    what = (verdict.statistic, verdict.variant)
    return {"value": verdict.value, "low": verdict.low, "high": verdict.high, "unit": f"{verdict.unit} {what}"}


def figures(runs) -> list[dict]:
    """Lay out every figure that the first run and another one have, with their ratio, the farthest from 1 first."""
    found = []
    for key, row in runs[0].rows.items():
        others = [run.rows.get(key) for run in runs[1:]]
        ratios = [ratio(other, row) if other else None for other in others]
        if any(ratios):
            worst = max(abs(math.log(one.value)) for one in ratios if one)
            texts = [figure(row["value"], row["unit"])]
            texts += [one.text if one else MISSING for one in ratios]
            found.append((worst, {"key": key, "texts": texts}))
    return [one for _, one in sorted(found, key=lambda pair: (-pair[0], str(pair[1]["key"])))]


def sentence(runs, groups) -> str:
    """Count how many claims travel."""
    words = [row["travels"] for group in groups for row in group["rows"]]
    alike, apart, beside, open_ = (words.count(word) for word in (TRAVELS, SPLITS, BESIDE, UNSURE))
    return (
        f"Of {len(words)} claims, {alike} fare alike in all {len(runs)} runs, {apart} hold in one and not in another, "
        f"{beside} are shown beside, and {open_} are undecided: they were left open, or took no part, in a run."
    )


def build(folders) -> str:
    """Build the page.

    Parameters
    ----------
    folders : list of path-like

    Returns
    -------
    str
        HTML.

    Raises
    ------
    UserError
        See `read`.
    """
    runs = read(folders)
    groups = lay_out(runs)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    text = environment.get_template("compare.html.j2").render(
        css=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        runs=runs,
        groups=groups,
        figures=figures(runs),
        sentence=sentence(runs, groups),
        apart=[row for group in groups for row in group["rows"] if row["travels"] == SPLITS],
        words=list(KIND_OF.items()),
    )
    found = page_check.problems(text)
    if found:
        raise ReportError("; ".join(found[:5]))
    return text
