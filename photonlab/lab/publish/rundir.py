"""The folder of a run: built aside, put in place in one step, and never in the place of anything else."""

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

from photonlab.errors import UserError

MARKER = "run.json"
"""What makes a folder that of a run: the run's facts, with the key `photonlab`."""


def read_facts(folder):
    """Read the facts of a run.

    Parameters
    ----------
    folder : pathlib.Path

    Returns
    -------
    dict

    Raises
    ------
    UserError
        There is no such folder, or it is not that of a run.
    """
    folder = Path(folder)
    if not folder.exists():
        raise UserError(f"{folder}: no such folder")
    try:
        facts = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        facts = None
    if not isinstance(facts, dict) or "photonlab" not in facts:
        raise UserError(f"{folder}: not the folder of a photonlab run")
    return facts


def rounds_file(folder, name):
    """Return where a notebook's count of timed rounds lies.

    Parameters
    ----------
    folder : pathlib.Path
        The run's.
    name : str
        The notebook's.

    Returns
    -------
    pathlib.Path
    """
    return Path(folder) / "rows" / f"{name}.rounds.json"


def read_rounds(folder, name):
    """Read a notebook's count of timed rounds: comparisons, rounds, retaken, disturbed, cells; empty if it kept none.

    Parameters
    ----------
    folder : pathlib.Path
    name : str

    Returns
    -------
    dict of str to int or dict
    """
    path = rounds_file(folder, name)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write_json(path, content):
    """Write JSON that equal content makes equal, and that is never half there.

    Parameters
    ----------
    path : pathlib.Path
    content : object
    """
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path, text):
    """Write a text file that is never half there.

    Parameters
    ----------
    path : pathlib.Path
    text : str
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    partial.replace(path)


@contextmanager
def building(out):
    """Give a folder to build a run in, and put it in the place of `out` at the end.

    It is put in place after the block ends, and also after a call of the yielded function `keep` and an exception: a
    run that failed takes the place of an older one, so that no stale page is left. Otherwise it is removed, and `out`
    stays as it was.

    Parameters
    ----------
    out : pathlib.Path
        Absent, empty, or the folder of an earlier run.

    Yields
    ------
    tuple of (pathlib.Path, callable)
        The folder beside `out`, and `keep`.

    Raises
    ------
    UserError
        Something else lies at `out`.
    """
    out = Path(out).absolute()
    check_place(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    _sweep(out)
    partial, kept = out.with_name(f".{out.name}.partial-{os.getpid()}"), []
    partial.mkdir()
    try:
        yield partial, lambda: kept.append(True)
    except BaseException:
        if kept:
            _publish(partial, out)
        raise
    else:
        _publish(partial, out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_place(out):
    """Refuse a place where something lies that is not a run.

    Parameters
    ----------
    out : pathlib.Path
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UserError(f"{out}: is not a folder")
    if out.is_dir() and any(out.iterdir()):
        try:
            read_facts(out)
        except UserError as error:
            raise UserError(f"{out}: holds something else than a photonlab run; not replaced") from error


def _publish(partial, out):
    old = out.with_name(f".{out.name}.old-{os.getpid()}")
    if out.exists():
        out.rename(old)
    partial.rename(out)
    shutil.rmtree(old, ignore_errors=True)


def _sweep(out):
    """Remove what drivers that were killed have left."""
    for kind in ("partial", "old"):
        for left in out.parent.glob(f".{out.name}.{kind}-*"):
            owner = left.name.rpartition("-")[2]
            if owner.isdigit() and not _alive(int(owner)):
                shutil.rmtree(left, ignore_errors=True)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
