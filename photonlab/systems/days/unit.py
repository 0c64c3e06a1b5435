"""One unit of work: a day, or a shard of a day, from its file to a folder that is either whole or not there.

Everything is written to a folder with another name first, which gets its own name when all is in it, ``day.json``
last: a folder of that name is done, whatever was killed when. ``day.json`` says what the unit was made from and how, so
that a run with other options, or on a file that has changed, does it again.
"""

import contextlib
import json
import os
import shutil
import socket
import time
import uuid
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

from photonlab.errors import UserError
from photonlab.systems.inputs import Input
from photonlab.systems.replay import Replay, feed_all
from photonlab.systems.replayer import Replayer
from photonlab.systems.sharded import Shard

MARKER = "day.json"
UNFINISHED = ".unfinished-"
SUFFIXES = (".itch", ".itch50", ".nasdaq_itch50", ".bx_itch_50", ".psx_itch_50", "-v50.txt", ".pcap", ".pcapng")
COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class Unit:
    """What one worker does at a time.

    Attributes
    ----------
    path : str
        The file, absolute.
    name : str
        Of its folder.
    shard, shards : int
        Which part of the instruments, of how many parts.
    options : dict
        What to make of it: arguments of `photonlab.tables`, without the file and the folder; empty for none.
    """

    path: str
    name: str
    shard: int = 0
    shards: int = 1
    options: dict = field(default_factory=dict)

    def identity(self) -> dict:
        """Return what must be the same for the unit to be the same: the file as it is now, and the options."""
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise UserError(f"{self.path}: {error.strerror.lower()}") from None
        return {
            "path": self.path, "bytes": found.st_size, "modified_ns": found.st_mtime_ns, "shard": self.shard,
            "shards": self.shards, "options": json.loads(json.dumps(self.options, sort_keys=True, default=str)),
            "photonlab": metadata.version("photonlab"),
        }  # fmt: skip


def find(paths, shards=1, options=None) -> list[Unit]:
    """Return the units in files and folders, in the order of their names.

    Parameters
    ----------
    paths : path-like or iterable of path-like
        Files, or folders of which every file of a known kind is taken.
    shards : int
        Parts of each day.
    options : dict, optional

    Raises
    ------
    UserError
        If something is not there, a folder holds no day, or two days have one name.
    """
    files = []
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        path = Path(path)
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.is_file() and _is_day(one.name))
            if not inside:
                raise UserError(f"{path}: holds no day: expected files that end in {', '.join(SUFFIXES)}, or .gz, .zst")
            files += inside
        elif path.exists():
            files.append(path)
        else:
            raise UserError(f"{path}: no such file or folder")
    names = {}
    for file in files:
        other = names.setdefault(name_of(file), file)
        if other != file:
            raise UserError(f"{other} and {file} would both be called {name_of(file)}")
    return [
        Unit(
            str(file.absolute()),
            name if shards == 1 else f"{name}.{shard + 1}-of-{shards}",
            shard,
            shards,
            options or {},
        )
        for name, file in sorted(names.items())
        for shard in range(shards)
    ]


def _is_day(name):
    low = name.lower()
    return not name.startswith(".") and low.endswith(SUFFIXES + COMPRESSED)


def name_of(file) -> str:
    """Return what a day is called: its file's name without the ends that say how it is stored."""
    name = Path(file).name
    for end in COMPRESSED + SUFFIXES:
        if name.lower().endswith(end) and len(name) > len(end):
            name = name[: -len(end)]
    return name


def done(unit, out):
    """Return what a finished unit left in ``day.json``, or None if it has to be done.

    Parameters
    ----------
    unit : Unit
    out : Path

    Returns
    -------
    dict or None
    """
    try:
        known = json.loads((out / unit.name / MARKER).read_text())
    except (OSError, ValueError):
        return None
    return known if known.get("unit") == unit.identity() else None


def clean(out):
    """Remove what a killed run has left behind; nobody else may be working on `out`."""
    for left in out.glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)


def do(unit, out, attempt=1) -> dict:
    """Do one unit from the beginning to its own folder.

    Parameters
    ----------
    unit : Unit
    out : path-like
    attempt : int
        Which one this is, for the record.

    Returns
    -------
    dict
        As written to ``day.json``.
    """
    out = Path(out)
    identity, started = unit.identity(), time.time()
    place = out / f"{UNFINISHED}{unit.name}-{uuid.uuid4().hex[:8]}"
    place.mkdir(parents=True)
    try:
        summary = _work(unit, place)
        record = {
            "unit": identity, "name": unit.name, "attempt": attempt, "worker": f"{socket.gethostname()}:{os.getpid()}",
            "started": started, "seconds": time.time() - started, "summary": summary,
        }  # fmt: skip
        with (place / MARKER).open("w") as file:
            json.dump(record, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        _settle(place, out / unit.name)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return record


def attempt(fields, out, number):
    """Do a unit, and say how it ended, without an exception.

    Parameters
    ----------
    fields : dict
        As `as_task` gives them.
    out : str
    number : int
        Which attempt this is.

    Returns
    -------
    tuple of (bool, dict or str, bool)
        Whether it is done, its record or what went wrong, and whether another attempt may end otherwise.
    """
    try:
        return True, do(Unit(**fields), out, number), False
    except UserError as error:
        return False, str(error), False
    except Exception as error:
        return False, f"{type(error).__name__}: {error}", isinstance(error, OSError | MemoryError)


def _work(unit, place):
    """Do the work, into an empty folder; return the summary."""
    shard = (unit.shard, unit.shards) if unit.shards > 1 else None
    if unit.options:
        from photonlab.systems.tables.make import tables

        return tables(unit.path, out=place, shard=shard, **unit.options).summary
    with Input(unit.path) as source:
        replayer = Shard(*shard, name=source.name) if shard else Replayer(name=source.name)
        return Replay(replayer, feed_all(replayer, source)).summary()


def _settle(place, final):
    """Give a finished folder its name; what has that name is out of date and goes."""
    while True:
        with contextlib.suppress(OSError):
            place.rename(final)
            return
        old = final.with_name(f"{UNFINISHED}{final.name}-{uuid.uuid4().hex[:8]}")
        final.rename(old)
        shutil.rmtree(old, ignore_errors=True)


def as_task(unit) -> dict:
    """Return a unit as plain values, for another process."""
    return asdict(unit)
