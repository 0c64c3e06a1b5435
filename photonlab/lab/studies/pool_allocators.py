"""Other allocators than the C library's, preloaded into a process of their own, against the pool."""

import pandas as pd

from photonlab.lab.publish.tables import number
from photonlab.lab.studies import malloc_trial
from photonlab.machine import libc

SYSTEM = "as the system has it"
COLUMNS = {
    "fill": "fill / pool",
    "batches": "batches / pool",
    "churn": "churn / pool",
    "walk": "walk / in order",
}


def measure(names, count, live, batch, rounds, seed) -> dict:
    """Compare the system's malloc, then each preloaded one, with the pool.

    Parameters
    ----------
    names : list of str
        Libraries as the linker knows them.
    count, live, batch, rounds, seed : int
        As for `photonlab.lab.studies.malloc_trial.cost`.

    Returns
    -------
    dict of str to dict
        By allocator, what the trial found, or {"why": reason}.
    """
    wanted = {"trial": "cost", "count": count, "live": live, "batch": batch, "rounds": rounds, "seed": seed}
    found = {SYSTEM: malloc_trial.run(**wanted)} if names else {}
    for name in names:
        library = libc.preloadable(name)
        if not library:
            found[name] = {"why": f"no library of {name} that could be preloaded was found"}
            continue
        one = malloc_trial.run(library, **wanted)
        if "why" not in one and library not in one["library"]:
            one = {"why": f"{library} was preloaded, but {one['library']} answers malloc"}
        found[name] = one
    return found


def table(found) -> pd.DataFrame:
    """Lay out each allocator's time over the pool's, by kind of work."""
    rows = []
    for name, one in found.items():
        row = {"malloc": name, "library": one.get("library", one.get("why"))}
        for work, title in COLUMNS.items():
            row[title] = _text(one[work]) if work in one else None
        rows.append(row)
    return pd.DataFrame(rows, columns=["malloc", "library", *COLUMNS.values()])


def _text(row):
    if row["value"] is None:
        return row["note"]
    return f"{number(row['value'])} ({number(row['low'])} to {number(row['high'])})"


def rows(found) -> list[dict]:
    """Arguments of `record`, one for each allocator and kind of work."""
    recorded = []
    for name, one in found.items():
        for work, title in COLUMNS.items():
            row = one.get(work) or {"value": None, "unit": "×", "note": one.get("why", "not measured")}
            variant = f"malloc ({name}), {title}"
            recorded.append({**row, "statistic": work, "variant": variant})
    return recorded


def sentence(found) -> str:
    """Say what each allocator costs over the pool, and how it lays out its blocks."""
    if not found:
        return "No other allocator was asked for."
    parts = []
    for name, one in found.items():
        if "why" in one:
            parts.append(f"{name}: cannot be measured here, because {one['why']}")
            continue
        figures = {work: one[work] for work in COLUMNS if one[work]["value"] is not None}
        told = ", ".join(f"{work} {row['value']:.2f}" for work, row in figures.items())
        walk = one["walk"]["note"]
        parts.append(f"{name}: {told}" + (f" ({walk})" if "walk" in figures else ""))
    return "Times over the pool's, of the walk over one in order. " + "; ".join(parts) + "."
