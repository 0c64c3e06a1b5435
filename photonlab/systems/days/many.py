"""A run over many days: what is done stays done, what fails is tried again, one summary says how all of it ended."""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from photonlab.errors import UserError
from photonlab.systems.days import cluster, local
from photonlab.systems.days import unit as units

SUMMARY = "summary"


@dataclass
class Task:
    """A unit, and which attempt at it is the next."""

    unit: units.Unit
    attempt: int = 1


def run(paths, out, *, shards=1, workers=None, scheduler=None, attempts=3, progress=None, **options) -> pd.DataFrame:
    """Turn many days into tables, side by side.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files, or folders of files.
    out : path-like
        The folder that gets a folder for each day, and ``summary.parquet`` and ``summary.csv`` with a row for each.
    shards : int
        Parts by instrument that each day is divided into; each is a unit of its own.
    workers : int, optional
        Local processes; as many as this process may use cores, by default.
    scheduler : str, optional
        Address of a Dask scheduler whose workers do it in their place.
    attempts : int
        At each unit; only what may end otherwise the next time is tried again: a killed worker, an error of the system.
    progress : callable, optional
        Called with (units ended, units in all).
    **options
        Of `photonlab.tables`: which tables, which symbols and so on.

    Returns
    -------
    DataFrame
        A row for each unit in the order of their names: name, status ("done", "done before" or "failed"), error,
        attempt, worker, seconds, and the facts of the replay.

    Raises
    ------
    UserError
        If there is no such file, or another run is working on `out`.
    """
    out = Path(out)
    every = units.find(paths, shards, options)
    out.mkdir(parents=True, exist_ok=True)
    with _alone(out):
        units.clean(out)
        rows = {one.name: _row(record, "done before") for one in every if (record := units.done(one, out))}
        tasks = [Task(one) for one in every if one.name not in rows]
        if progress:
            progress(len(rows), len(every))
        if tasks:
            count = min(workers or _cores(), len(tasks))
            work = cluster.run(tasks, out, scheduler) if scheduler else local.run(tasks, out, count)
            again = None
            with contextlib.closing(work), contextlib.suppress(StopIteration):
                while True:
                    task, good, answer, worth = work.send(again)
                    again = not good and worth and task.attempt < attempts
                    if again:
                        task.attempt += 1
                        continue
                    row = (
                        _row(answer, "done") if good else {"status": "failed", "error": answer, "attempt": task.attempt}
                    )
                    rows[task.unit.name] = {"name": task.unit.name} | row
                    if progress:
                        progress(len(rows), len(every))
        units.clean(out)  # of workers that were killed
        frame = pd.DataFrame([rows[one.name] for one in every])
        _write(frame, out)
    return frame


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _row(record, status):
    facts = {key: value for key, value in record["summary"].items() if not isinstance(value, dict | list)}
    odd = record["summary"].get("anomalies", {})
    shared = {"name": record["name"], "status": status, "error": "", "attempt": record["attempt"]}
    return shared | {"worker": record["worker"], "seconds": record["seconds"]} | facts | odd


def _write(frame, out):
    for ending, write in ((".parquet", frame.to_parquet), (".csv", frame.to_csv)):
        new = out / f"{units.UNFINISHED}{SUMMARY}{ending}"
        write(new, index=False)
        new.rename(out / f"{SUMMARY}{ending}")


@contextlib.contextmanager
def _alone(out):
    with (out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{out}: another run is working on it") from None
        yield
