"""The whole run: every notebook in order, one at a time, then the page; one folder holds what came of it."""

import os
import shutil
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from photonlab import paths
from photonlab.errors import UserError
from photonlab.lab.judge import results
from photonlab.lab.measure import noise
from photonlab.lab.publish import execution, parameters, profiles, report, rundir
from photonlab.lab.publish.execution import NotebookFailed, run_notebook

__all__ = ["NotebookFailed", "run_notebook", "run_report"]


def run_report(profile="quick", itch=None, only=None, out=None, *, given=None, notebooks=None, tell=None):
    """Run the notebooks of a profile and build the page.

    Parameters
    ----------
    profile : str
        smoke, quick or full.
    itch : str or pathlib.Path, optional
        A file of ITCH 5.0 for every notebook that can read one, in place of the synthetic day.
    only : list of str, optional
        Notebooks to run, by name or the beginning of it; default: all.
    out : str or pathlib.Path, optional
        The run's folder; default: out/<profile>, or out/<profile>-<notebooks> with `only`.
    given : dict of str to dict, optional
        Notebook → parameter → value or its text, over the profile's.
    notebooks : pathlib.Path, optional
        The folder of the notebooks; default: that of the project.
    tell : callable, optional
        Takes progress as text, with its line ends; default: standard error.

    Returns
    -------
    pathlib.Path
        The page.

    Raises
    ------
    UserError
        Before anything ran, and with `out` untouched: an unknown name, a value of the wrong type, a missing file.
    NotebookFailed
        `out` then holds what there is of this run, and a page that says which notebook failed and why, without figures.
    """
    tell = _tell if tell is None else tell
    if itch is not None:
        itch = Path(itch).resolve()
        with itch.open("rb"):
            pass
    chosen = _choose(paths.NOTEBOOKS if notebooks is None else Path(notebooks).resolve(), only)
    values = profiles.resolve(profile, chosen, given=given, itch=itch)
    seconds = profiles.cell_seconds(profile)
    for path in chosen:
        execution.check_cells(path.stem, parameters.read_notebook(path))
    if out is None:
        out = paths.OUT / "-".join([profile, *(path.stem for path in chosen if only)])
    facts = _facts(profile, itch, only, values)
    with rundir.building(out) as (folder, keep):
        rundir.write_json(folder / rundir.MARKER, facts)
        rundir.write_json(folder / "machine.json", report.machine())
        try:
            for number, path in enumerate(chosen, 1):
                tell(f"[{number}/{len(chosen)}] {path.stem} … ")
                facts["notebooks"][path.stem]["begun"] = True
                with noise.Gauge() as gauge:
                    took = run_notebook(path, values[path.stem], folder, run=facts["run"], cell_seconds=seconds)
                facts["notebooks"][path.stem] |= {
                    "seconds": round(took, 1),
                    "noise": gauge.noise.as_dict(),
                    "rounds": rundir.read_rounds(folder, path.stem),
                }
                tell(f"{took:.1f} s\n")
            results.write(folder)
            report.write(folder, facts)
        except (NotebookFailed, report.ReportError) as error:
            tell("failed\n")
            facts |= {"status": "failed", "failure": str(error)}
            rundir.write_json(folder / rundir.MARKER, facts)
            report.write_failure(folder, facts, getattr(error, "details", ""))
            keep()
            raise
        except BaseException:  # what the user sees next begins a line
            tell("\n")
            raise
        shutil.rmtree(folder / "failed", ignore_errors=True)
        facts["status"] = "complete"
        rundir.write_json(folder / rundir.MARKER, facts)
    return Path(out).absolute() / "report.html"


def _tell(text):
    sys.stderr.write(text)
    sys.stderr.flush()


def _choose(folder, only):
    every = sorted(folder.glob("*.ipynb"))
    if not every:
        raise UserError(f"{folder}: no notebooks")
    if not only:
        return every
    wanted = {profiles.match(word, [path.stem for path in every]) for word in only}
    return [path for path in every if path.stem in wanted]


def _facts(profile, itch, only, values):
    # The convention of reproducible builds: whoever wants equal files from equal results says what time it is.
    now = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    started = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "photonlab": metadata.version("photonlab"),
        "run": f"{started.replace(':', '').replace('-', '')}-{profile}",
        "profile": profile,
        "started": started,
        "status": "running",
        "input": itch.name if itch else "",
        "only": bool(only),
        "notebooks": {stem: {"parameters": set_here} for stem, set_here in values.items()},
    }
