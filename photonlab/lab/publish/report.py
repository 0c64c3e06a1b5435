"""The page: verdicts first, then the machine, then each notebook; one HTML file that needs nothing beside it.

It is built from the files of a run's folder and from nothing else, so equal results give equal bytes.
"""

import html
import json
from pathlib import Path

import jinja2
import nbformat
from markupsafe import Markup

from photonlab.lab.judge import claims, results, verdicts
from photonlab.lab.judge.rows import figure
from photonlab.lab.measure import noise
from photonlab.lab.publish import page_check, preparing, rundir
from photonlab.lab.publish.sections import TEMPLATES, ReportError, prose, section
from photonlab.lab.publish.tables import MISSING

__all__ = ["ReportError", "build", "judged", "machine", "write"]

APPENDIX = sorted((TEMPLATES.parent / "appendix").glob("*.md"))
"""Texts behind the notebooks: how experiments mislead, how to prepare a machine."""

TITLE = "Published claims about low-latency market data, put to the test"
LEAD = (
    "Four public write-ups say how fast a feed handler, an order book, a ring, a pool and a tick-to-trade path can be. "
    "Here each of their claims meets kernels written in Python and compiled by Numba, measured on the machine below."
)
KINDS = {
    "holds": "good",
    "holds in direction": "good",
    "does not hold here": "bad",
    "too close to call": "open",
    "inconsistent as published": "odd",
    "shown beside": "info",
    "new result": "info",
}
"""Verdict → the colour of its badge; the others have none. The word is always there too."""

SOME = 3
"""So many published figures stand in the table where the verdict names none."""

NBSP = "\N{NO-BREAK SPACE}"
DEPTH = 3
"""Headings of a notebook down to this level (of Markdown) stand in the table of contents."""


def machine():
    """Ask the machine what it is.

    Returns
    -------
    dict of str to dict
        Part → name → value.
    """
    from photonlab.machine import fingerprint

    return fingerprint.collect()


def judged(folder):
    """Judge the rows of a run.

    Parameters
    ----------
    folder : pathlib.Path

    Returns
    -------
    list of photonlab.lab.judge.verdicts.Verdict
        One for each claim of the ledger.
    """
    return verdicts.judge(claims.load(), results.read(folder))


def write(folder, facts):
    """Write verdicts.json and report.html into the folder of a run.

    Parameters
    ----------
    folder : pathlib.Path
        With machine.json, notebooks/ and results.
    facts : dict
        The run's facts.

    Raises
    ------
    ReportError
        Something that the page cannot show; there is no report.html then.
    """
    rundir.write_json(folder / "verdicts.json", [verdict.as_dict() for verdict in judged(folder)])
    rundir.write_text(folder / "report.html", build(folder, facts))


def build(folder, facts=None):
    """Build the page.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of a run.
    facts : dict, optional
        The run's facts; default: those in the folder.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    ReportError
        What `page_check.problems` finds, or an output that cannot be shown.
    """
    folder = Path(folder)
    facts = rundir.read_facts(folder) if facts is None else facts
    sections = [
        section(name, nbformat.read(folder / "notebooks" / f"{name}.ipynb", 4), _disturbed(entry))
        for name, entry in facts["notebooks"].items()
    ]
    texts = [] if facts.get("only") else [prose(path.stem, path.read_text(encoding="utf-8")) for path in APPENDIX]
    about = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
    ledger = claims.by_id()
    shown = [v for v in judged(folder) if not facts.get("only") or v.notebook in facts["notebooks"]]
    rows = results.read(folder)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    text = environment.get_template("page.html.j2").render(
        title=TITLE,
        lead=LEAD,
        css=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        facts=_headline(facts, about),
        counts=_counts(shown),
        groups=_groups(shown, ledger, sections),
        machine=[(part, [(name, _text(value)) for name, value in values.items()]) for part, values in about.items()],
        sections=[_on_page(one, rows[rows["notebook"] == one.name], {v.claim for v in shown}) for one in sections],
        texts=[{"name": one.name, "title": Markup(one.title), "body": Markup(one.body)} for one in texts],
        effects=preparing.effects(rows, about, facts),
        noise=_noise(facts),
        limits={name: f"{100 * limit:g}{NBSP}%" for name, limit in noise.LIMITS.items()},
        sources=[letter for letter in claims.sources() if any(v.claim.rstrip("0123456789") == letter for v in shown)],
        run=facts["run"],
        version=facts["photonlab"],
        profile=facts["profile"],
        input=facts["input"],
        notebooks=[_made(name, entry) for name, entry in facts["notebooks"].items()],
    )
    found = page_check.problems(text)
    if found:
        raise ReportError("; ".join(found[:5]))
    return text


def write_failure(folder, facts, details=""):
    """Write a report.html that says which notebook failed and why, and shows nothing else.

    Parameters
    ----------
    folder : pathlib.Path
    facts : dict
        The run's facts, with `failure`.
    details : str
        The traceback.
    """
    done = {path.stem for path in (folder / "notebooks").glob("*.ipynb")}
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    text = environment.get_template("failed.html.j2").render(
        css=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        failure=facts["failure"],
        details=details,
        run=facts["run"],
        version=facts["photonlab"],
        profile=facts["profile"],
        finished=[name for name in facts["notebooks"] if name in done],
        waiting=[name for name, entry in facts["notebooks"].items() if name not in done and not entry.get("begun")],
    )
    rundir.write_text(folder / "report.html", text)


def _noise(facts):
    """What to say at the top about a noisy machine, by notebook."""
    found = {
        name: noise.complaints(entry.get("noise") or {}, entry.get("rounds"))
        for name, entry in facts["notebooks"].items()
    }
    return [(name, "; ".join(words)) for name, words in found.items() if words]


def _disturbed(entry):
    """Which cells of a notebook were disturbed, and by what."""
    return ((entry.get("rounds") or {}).get("cells") or {}).get("disturbed cells") or {}


def _on_page(one, rows, claimed):
    outline = [(anchor, Markup(text)) for anchor, text, level in one.toc if level < DEPTH]
    recorded = [_evidence(row, one.executions, claimed) for row in rows.to_dict("records")]
    seen = {""}
    for row in recorded:  # the first row of each claim can be linked to
        row["anchor"] = "" if row["claim"] in seen else _rows_anchor(one.name, row["claim"])
        seen.add(row["claim"])
    return {
        "name": one.name,
        "title": Markup(one.title),
        "body": Markup(_linked(one, {row["claim"] for row in recorded})),
        "outline": outline,
        "rows": recorded,
    }


def _rows_anchor(name, claim):
    return f"{name}--rows-{claim}"


def _linked(one, claims_here):
    """A section's body with a line of links below each heading, to the rows of the claims that it is about."""
    body = one.body
    for anchor in dict.fromkeys(one.places.values()):
        here = [claim for claim, place in one.places.items() if place == anchor and claim and claim in claims_here]
        links = ", ".join(f'<a href="#{_rows_anchor(one.name, claim)}">{claim}</a>' for claim in here)
        before, found, after = body.partition(f'id="{anchor}">')
        heading, end, text = after.partition("\n")
        if links and found and heading.endswith(">"):
            body = f'{before}{found}{heading}{end}<p class="evidence">Recorded rows: {links}</p>\n{text}'
    return body


def _evidence(row, executions, claimed):
    """A recorded row, with the cell that recorded it."""
    interval = ""
    if row["low"] == row["low"] and row["high"] == row["high"]:
        interval = f"{figure(row['low'])} to {figure(row['high'], row['unit'])}"
    value = figure(row["value"], row["unit"]) if row["value"] == row["value"] else MISSING
    texts = {name: row[name] or "" for name in ("claim", "statistic", "variant", "note")}
    cell = executions.get(row["cell"] or "", "")
    return texts | {"value": value, "interval": interval, "cell": cell, "linked": row["claim"] in claimed}


def _headline(facts, about):
    """The facts at the top: of the machine only its name, the rest has a section."""
    cpu = next((v for part in about.values() for name, v in part.items() if name.lower() in ("model", "cpu")), None)
    return [
        ("Machine", _text(cpu) if cpu else "unknown"),
        ("Profile", facts["profile"]),
        ("Run", f"{facts['started'].replace('T', ' ')[:16]} UTC"),
        ("Input", facts["input"] or "the synthetic day"),
    ]


def _counts(shown):
    words = [verdict.verdict for verdict in shown]
    return [(word, KINDS.get(word, "none"), words.count(word)) for word in _order() if word in words]


def _order():
    first = list(KINDS)
    return [*first, *(word for word in verdicts.WORDS if word not in first)]


def _groups(shown, ledger, sections):
    """The verdicts by source, in the order of the ledger."""
    places = {claim: anchor for one in reversed(sections) for claim, anchor in one.places.items()}
    cells = {claim: anchor for one in reversed(sections) for claim, anchor in one.cells.items()}
    here = {one.name for one in sections}
    groups = []
    for letter, source in claims.sources().items():
        rows = [_row(v, ledger[v.claim], places, cells, here) for v in shown if v.claim.rstrip("0123456789") == letter]
        if rows:
            group = {"letter": letter, "name": f"{letter}: {source['name']}", "machine": source["machine"]}
            groups.append(group | {"rows": rows})
    return groups


def _row(verdict, claim, places, cells, here):
    place = places.get(verdict.claim) or (verdict.notebook if verdict.notebook in here else "")
    interval, published, what = "", [figure(one.value, one.unit) for one in claim.published[:SOME]], ""
    if verdict.low is not None and verdict.high is not None and verdict.low < verdict.high:
        interval = f"{figure(verdict.low)} to {figure(verdict.high, verdict.unit)}"
    if verdict.published is not None:
        published = [figure(verdict.published, verdict.unit)]
        what = " ".join(part for part in (verdict.variant, verdict.statistic) if part not in ("", "value"))
    elif len(claim.published) > SOME:
        published.append("…")
    return {
        "claim": verdict.claim,
        "title": claim.title,
        "reason": verdict.reason,
        "conditions": f"Published in {claim.source}, “{claim.section}”: {claim.conditions}",
        "published": " · ".join(published).replace(" ", NBSP).replace(f"{NBSP}·{NBSP}", " · ") or MISSING,
        "what": what,
        "value": MISSING if verdict.value is None else figure(verdict.value, verdict.unit).replace(" ", NBSP),
        "interval": interval,
        "verdict": verdict.verdict,
        "kind": KINDS.get(verdict.verdict, "none"),
        "place": place,
        "cell": cells.get(verdict.claim, "") if verdict.value is not None else "",
    }


def _made(name, entry):
    """How one notebook ran: what was set, how long it took, and how quiet the machine was."""
    rounds, noise_here = entry.get("rounds") or {}, entry.get("noise") or {}
    met = noise.shares(rounds)
    shares = [met["disturbed"], met["contended"], *map(noise_here.get, ("hiccups", "stolen", "waited", "drift"))]
    counts = [rounds.get(what) for what in ("rounds", "retaken", "disturbed")]
    return {
        "name": name,
        "parameters": _parameters(entry["parameters"]),
        "counts": [MISSING if count is None else f"{count:,}" for count in counts],
        "shares": [MISSING if share is None else f"{100 * share:.1f}{NBSP}%" for share in shares],
    }


def _parameters(values):
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "none"


def _text(value):
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(inner)}" for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return html.unescape(str(value))
