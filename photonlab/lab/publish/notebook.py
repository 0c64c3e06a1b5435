"""What a notebook of the whitepaper starts with: its results file, the style of its charts, and its prose with figures.

>>> from photonlab.lab import notebook
>>> nb = notebook.start("02-order-book")
"""

import os
from dataclasses import dataclass
from pathlib import Path

from IPython import get_ipython
from IPython.display import Markdown, display

from photonlab.errors import UserError
from photonlab.lab.judge import results
from photonlab.lab.measure import noise, timing
from photonlab.lab.publish import figures, rundir, tables

_kept = []  # what runs before and after each cell of this kernel


@dataclass(frozen=True)
class Notebook:
    """A started notebook.

    Parameters
    ----------
    name : str
        Without .ipynb.
    out : pathlib.Path
        The run's folder.
    """

    name: str
    out: Path

    def record(self, claim, **row):
        """Record a row of results; see `photonlab.lab.judge.results.record`."""
        results.record(claim, **row)

    def figure(self, fig, name, alt, caption):
        """Show and keep a chart; see `photonlab.lab.publish.figures.save`."""
        figures.save(fig, name, alt, caption)

    def table(self, frame, caption, **options):
        """Show a table; see `photonlab.lab.publish.tables.table`."""
        tables.table(frame, caption, **options)

    def say(self, text):
        """Show prose that was computed from results.

        Parameters
        ----------
        text : str
            Markdown.
        """
        display(Markdown(text))


def start(name):
    """Start a notebook: forget its earlier rows, and set the style of its charts.

    Parameters
    ----------
    name : str
        The notebook's file name without .ipynb.

    Returns
    -------
    Notebook

    Raises
    ------
    ValueError
        The notebook that the driver runs has another name: its rows would be lost among those of another.
    """
    driven = os.environ.get("PHOTONLAB_NOTEBOOK")
    if os.environ.get("PHOTONLAB_RUN") and driven != name:
        raise ValueError(f"the notebook {driven} calls itself {name!r}")
    results.start(name)
    figures.use_style()
    _watch(name)
    return Notebook(name, results.out())


def _watch(name):
    """Keep beside the rows, after each cell, how many timed rounds there were, how many disturbed, and which cells."""
    shell = get_ipython()
    if shell is None:
        return
    path, before, cells = rundir.rounds_file(results.out(), name), timing.TALLY.as_dict(), noise.Cells()

    def keep(*_):
        cells.end(results.cell())
        counts = {what: count - before[what] for what, count in timing.TALLY.as_dict().items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        rundir.write_json(path, counts | {"cells": cells.as_dict()})

    while _kept:
        shell.events.unregister(*_kept.pop())
    for event in (("pre_run_cell", cells.begin), ("post_run_cell", keep)):
        shell.events.register(*event)
        _kept.append(event)


def input_file(text):
    """Check the path that a notebook got as a parameter, before any work is done.

    Parameters
    ----------
    text : str
        Empty for "none given".

    Returns
    -------
    pathlib.Path or None
        Absolute.
    """
    if not text:
        return None
    path = Path(text).resolve()
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    return path
