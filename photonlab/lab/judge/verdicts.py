"""From rows and ledger to verdicts: nobody types one.

Each claim's checks are judged by their rules (`photonlab.lab.judge.judging` for measured rows,
`photonlab.lab.judge.consistency` for arithmetic on the published figures), and the worst outcome is the claim's
verdict: a claim holds only if all of it holds, one refuted part refutes it, and an unknown part leaves it open.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import pandas as pd

from photonlab.lab.judge import claims as ledger
from photonlab.lab.judge import consistency, judging
from photonlab.lab.judge.rows import Part, Row, called, sentence
from photonlab.lab.judge.rules import BESIDE, NOT_BUILT, NOT_RUN, UNMEASURED

WORDS = (
    "shown beside",
    "new result",
    "holds",
    "holds in direction",
    "too close to call",
    "not built yet",
    "not run",
    "cannot be measured here",
    "does not hold here",
    "inconsistent as published",
)
"""All verdicts, from best to worst: the worst part of a claim decides. "not run" is a claim whose notebook took no
part in this run, "not built yet" one whose experiment does not exist; neither says anything about the claim."""

FEW = 4
"""So many figures shown beside are still named in the reason."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one claim.

    Attributes
    ----------
    claim : str
        Id in the ledger.
    verdict : str
        One of `WORDS`.
    statistic, variant : str
        Which figure decided.
    published, value : float or None
        That figure as published and as measured here; None where there is none.
    unit : str
        Unit of both, and of low and high.
    low, high : float or None
        Ends of the measured 95 % interval.
    notebook : str
        The notebook that tests the claim.
    reason : str
        Sentences, with figures, that say why; one for each part of the claim.
    parts : tuple of Part
        All parts of the claim in the order of the ledger.
    """

    claim: str
    verdict: str
    statistic: str
    variant: str
    published: float | None
    value: float | None
    unit: str
    low: float | None
    high: float | None
    notebook: str
    reason: str
    parts: tuple[Part, ...] = ()

    def as_dict(self) -> dict:
        """The verdict as a dictionary that JSON can hold, its parts included."""
        return asdict(self)


def judge(claims: Iterable[ledger.Claim] | None, rows: pd.DataFrame | Iterable[Mapping]) -> list[Verdict]:
    """Judge claims by the rows of one run.

    Parameters
    ----------
    claims : iterable of Claim or None
        Usually ``claims.load()``, which None stands for.
    rows : DataFrame or iterable of mappings
        Tidy rows as `photonlab.lab.judge.results` collects them.

    Returns
    -------
    list of Verdict
        One a claim, in the order of `claims`.

    Raises
    ------
    ValueError
        A row has another unit than the published figure that it stands for.
    """
    table = rows_of(rows)
    return [judge_one(claim, table) for claim in (ledger.load() if claims is None else claims)]


def judge_one(claim: ledger.Claim, rows: list[Row]) -> Verdict:
    """Judge one claim; `rows` may hold those of other claims too."""
    own = [row for row in rows if row.claim == claim.id]
    here = [row for row in own if row.notebook == claim.notebook]
    own = here or own  # another notebook may show the claim again: it judges only where the claim's own did not run
    parts = [part for check in claim.checks for part in _parts(claim, check, own)]
    return _combined(claim, parts)


def rows_of(rows: pd.DataFrame | Iterable[Mapping]) -> list[Row]:
    """Rows as records, with None for the missing numbers of a table."""
    records = rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
    return [Row.of(record) for record in records]


def worst(words: Iterable[str]) -> str:
    """The worst of some verdicts, in the order of `WORDS`."""
    return max(words, key=WORDS.index)


def _parts(claim: ledger.Claim, check: ledger.Check, rows: list[Row]) -> list[Part]:
    if check.rule in consistency.RULES:
        return consistency.RULES[check.rule](claim, check)
    if check.rule not in judging.RULES:
        raise ValueError(f"claim {claim.id}: no rule is called {check.rule!r}")
    if not rows:
        if claim.built:
            return [Part(NOT_RUN, f"Notebook {claim.notebook} recorded nothing for this claim in this run.")]
        return [Part(NOT_BUILT, f"The experiment belongs to notebook {claim.notebook}, which does not exist yet.")]
    return judging.RULES[check.rule](claim, check, rows)


def _combined(claim: ledger.Claim, parts: list[Part]) -> Verdict:
    counted = [part for part in parts if not part.optional] or parts
    # figures shown beside are no part of the statement once something else of it is judged
    judged = [part for part in counted if part.rule != "beside"] or counted
    if all(part.rule == "beside" for part in judged) and any(part.verdict == BESIDE for part in judged):
        judged = [part for part in judged if part.verdict == BESIDE]
    word = worst(part.verdict for part in judged)
    head = next(part for part in judged if part.verdict == word)
    entry = claim.figure(head.statistic, head.variant) or (claim.published[0] if claim.published else None)
    if head.statistic and head.published is None and head.value is not None:
        entry = None  # a figure of ours that nothing was published for
    return Verdict(
        claim=claim.id,
        verdict=word,
        statistic=head.statistic or (entry.statistic if entry else ""),
        variant=head.variant or (entry.variant if entry and not head.statistic else ""),
        published=entry.value if head.published is None and entry else head.published,
        value=head.value,
        unit=head.unit or (entry.unit if entry else ""),
        low=head.low,
        high=head.high,
        notebook=claim.notebook,
        reason=_reason(head, parts),
        parts=tuple(parts),
    )


def _reason(head: Part, parts: list[Part]) -> str:
    """Sentences in the order of weight: the part that decided, the others, and a few figures shown beside."""
    beside = [part for part in parts if part.verdict == BESIDE and part is not head]
    said = [head, *(part for part in parts if part is not head and part.verdict != BESIDE)]
    if len(beside) <= FEW:
        said += beside
    sentences: dict[str, list[str]] = {}
    for part in said:
        if part.verdict == UNMEASURED and part.value is None:  # one sentence for all that one probe's finding concerns
            sentences.setdefault(sentence(part.note), []).append(called(part.statistic, part.variant))
        else:
            sentences.setdefault(part.reason, [])
    text = " ".join(f"{', '.join(names)}: {words}" if names else words for words, names in sentences.items())
    return text if len(beside) <= FEW else f"{text} {len(beside)} figures are shown beside the published ones."
