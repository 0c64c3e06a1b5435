"""Keeps a run as the reference that the repository carries: its rows, its machine, its facts and its charts.

Run as ``python -m photonlab.lab.publish.reference out/quick``, or by ``make reference``.
"""

import shutil
import sys
from pathlib import Path

from photonlab import paths
from photonlab.errors import UserError
from photonlab.lab.publish import rundir

KEPT = ("results.csv", "machine.json", rundir.MARKER)
PROFILE = "quick"


def keep(run, folder=paths.DATA / "reference" / PROFILE, figures=paths.ROOT / "figures") -> list[str]:
    """Copy what is kept of a run, and remove charts that it no longer has.

    Parameters
    ----------
    run, folder, figures : path-like
        The run's folder; where rows and facts go; where charts go.

    Returns
    -------
    list of str
        Names of the files that are kept.

    Raises
    ------
    UserError
        It is no whole run of all notebooks under the profile of the reference, by a synthetic day.
    """
    run, folder, figures = Path(run), Path(folder), Path(figures)
    facts = rundir.read_facts(run)
    lacking = sorted({path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")} - set(facts.get("notebooks", {})))
    for wrong, why in (
        (facts.get("status") != "complete", f"its status is {facts.get('status')!r}, not 'complete'"),
        (facts.get("profile") != PROFILE, f"its profile is {facts.get('profile')!r}, not {PROFILE!r}"),
        (facts.get("input"), "its input is a file, not the synthetic day"),
        (lacking, f"it lacks {', '.join(lacking)}"),
    ):
        if wrong:
            raise UserError(f"{run}: cannot be the reference: {why}")
    charts = sorted((run / "figures").glob("*.svg"))
    sources = [run / name for name in KEPT]
    missing = [path.name for path in sources if not path.is_file()]
    if missing or not charts:
        raise UserError(f"{run}: cannot be the reference: no {', '.join(missing) or 'charts'}")
    for place in (folder, figures):
        place.mkdir(parents=True, exist_ok=True)
    for path in sources:
        shutil.copyfile(path, folder / path.name)
    for old in figures.glob("*.svg"):
        old.unlink()
    for path in charts:
        shutil.copyfile(path, figures / path.name)
    return [path.name for path in (*sources, *charts)]


if __name__ == "__main__":
    try:
        names = keep(sys.argv[1] if len(sys.argv) > 1 else paths.OUT / PROFILE)
    except UserError as error:
        sys.exit(f"photonlab: {error}")
    print(f"{len(names)} files kept")
