"""Verdicts as tables and as a sentence: by source, those that disagree, those that stayed open."""

import pandas as pd

from photonlab.lab.judge import claims, verdicts
from photonlab.lab.judge.rows import figure
from photonlab.lab.publish.tables import MISSING

AGREE = ("holds", "holds in direction")
DISAGREE = ("does not hold here", "inconsistent as published")
OPEN = ("cannot be measured here", "too close to call")
UNSAID = ("not run", "not built yet")
BESIDE = ("shown beside", "new result")


def sentence(judged):
    """Say in a sentence how the claims fared, whichever way they fell.

    Parameters
    ----------
    judged : list of photonlab.lab.judge.verdicts.Verdict

    Returns
    -------
    str
        Markdown.
    """
    words = [verdict.verdict for verdict in judged]
    agree, disagree, left, unsaid, beside = (
        sum(words.count(word) for word in kinds) for kinds in (AGREE, DISAGREE, OPEN, UNSAID, BESIDE)
    )
    if not agree + disagree + left + beside:
        return f"None of the {len(judged)} claims was put to the test in this run."
    parts = [f"**{agree}** agree at least in direction", f"**{disagree}** disagree or contradict themselves"]
    parts += [f"**{left}** stayed open"] if left else []
    parts += [f"**{beside}** are shown beside the published figures"] if beside else []
    parts += [f"**{unsaid}** took no part in this run"] if unsaid else []
    return f"Of {len(judged)} claims, {', '.join(parts[:-1])} and {parts[-1]}."


def by_source(judged):
    """Count the verdicts of each source.

    Parameters
    ----------
    judged : list of photonlab.lab.judge.verdicts.Verdict

    Returns
    -------
    pandas.DataFrame
        A row for each source and one for all; a column for each verdict that occurs, and one for all.
    """
    words = [word for word in verdicts.WORDS if any(verdict.verdict == word for verdict in judged)]
    rows = []
    for letter, source in claims.sources().items():
        own = [verdict.verdict for verdict in judged if verdict.claim[0] == letter]
        rows.append([f"{letter}: {source['name']}", *(own.count(word) for word in words), len(own)])
    frame = pd.DataFrame(rows, columns=["Source", *words, "claims"])
    frame.loc[len(frame)] = ["All", *frame.iloc[:, 1:].sum()]
    return frame


def everything(judged):
    """Lay out all verdicts.

    Parameters
    ----------
    judged : list of photonlab.lab.judge.verdicts.Verdict

    Returns
    -------
    pandas.DataFrame
    """
    return _frame(judged, tuple(verdicts.WORDS))


def disagreeing(judged):
    """Lay out the claims that do not hold here or contradict themselves, with the reason.

    Parameters
    ----------
    judged : list of photonlab.lab.judge.verdicts.Verdict

    Returns
    -------
    pandas.DataFrame
    """
    return _frame(judged, DISAGREE, reason=True)


def unmeasured(judged):
    """Lay out the claims that stayed open, with the reason.

    Parameters
    ----------
    judged : list of photonlab.lab.judge.verdicts.Verdict

    Returns
    -------
    pandas.DataFrame
    """
    return _frame(judged, OPEN, reason=True)


def interval(verdict):
    """Write the measured figure of a verdict with its interval.

    Parameters
    ----------
    verdict : photonlab.lab.judge.verdicts.Verdict

    Returns
    -------
    str
    """
    if verdict.value is None:
        return MISSING
    text = figure(verdict.value, verdict.unit)
    if verdict.low is None or verdict.high is None:
        return text
    return f"{text} ({figure(verdict.low)} to {figure(verdict.high)})"


def _frame(judged, words, reason=False):
    ledger = claims.by_id()
    rows = [
        [
            verdict.claim,
            ledger[verdict.claim].title,
            MISSING if verdict.published is None else figure(verdict.published, verdict.unit),
            interval(verdict),
            verdict.verdict,
            verdict.reason,
        ]
        for verdict in judged
        if verdict.verdict in words
    ]
    frame = pd.DataFrame(rows, columns=["Claim", "Statement", "Published", "Here", "Verdict", "Reason"])
    return frame if reason else frame.drop(columns="Reason")
