"""The input of the order-book notebooks: synthetic days or a file, its mix of messages, and replays of it repeated."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from photonlab.errors import UserError
from photonlab.kernels.framing import refuse_zero_prefixes, walk
from photonlab.lab.judge import claims
from photonlab.lab.publish.notebook import input_file
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import synth
from photonlab.systems.experiments.scorecard import CLASSES
from photonlab.systems.replayer import Replayer

_BYTES_A_MESSAGE = 40  # prefix included; few feeds have longer ones on average


FEWEST = 100_000
"""A day of fewer messages is over before a comparison of replays could tell much but the cost of calling them."""


@dataclass(frozen=True)
class Day:
    """A day, or the beginning of one, in memory.

    Attributes
    ----------
    name : str
        For tables and charts: "small", "wide", or a file's name.
    about : str
        A sentence about it, in Markdown.
    data : ndarray of uint8
    messages : int
        Whole ones.
    """

    name: str
    about: str
    data: np.ndarray
    messages: int

    @property
    def too_short(self) -> str:
        """Why no time is recorded of a replay of this day; empty if one is."""
        if self.messages >= FEWEST:
            return ""
        return f"the input has {self.messages:,} messages; a comparison of replays needs {FEWEST:,} or more"


def days(itch, small, wide, seed, most_messages):
    """Load the input of a notebook.

    Parameters
    ----------
    itch : str
        Path of a file of ITCH 5.0, plain or gzipped; empty for two synthetic days.
    small, wide : int
        Messages of the synthetic days whose books stay in the caches and do not.
    seed : int
    most_messages : int
        About how many messages of a file are used: each is replayed many times.

    Returns
    -------
    tuple of Day
        The small and the wide one; for a file the same day twice.

    Raises
    ------
    UserError
        If there is no such file, or no whole message in it.
    """
    path = input_file(itch)
    if path is not None:
        one = _from_file(path, most_messages)
        return one, one
    return tuple(_synthetic(preset, count, seed) for preset, count in (("small", small), ("wide", wide)))


def _synthetic(preset, messages, seed):
    path = synth.cached(preset, messages, seed)
    truth = synth.Truth.read(synth.truth_path(path))
    about = (
        f"**{preset}**: {truth.messages:,} messages of {truth.instruments:,} instruments, "
        f"{truth.peak_live_orders:,} live orders at most, seed {seed}"
    )
    return Day(preset, about, np.fromfile(path, np.uint8), truth.messages)


def _from_file(path: Path, most_messages: int) -> Day:
    limit = most_messages * _BYTES_A_MESSAGE
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    if zipped:
        with gzip.open(path, "rb") as file:
            data = np.frombuffer(bytearray(file.read(limit)), np.uint8)
    else:
        data = np.fromfile(path, np.uint8, count=limit)
    data = as_bytes_array(data)
    refuse_zero_prefixes(data)
    messages = int(walk(data, 0)[0])
    if not messages:
        raise UserError(f"{path}: no whole message of ITCH 5.0 behind its length")
    part = "the beginning of " if data.size == limit else ""
    return Day(path.name, f"{part}the file {path.name}: {messages:,} messages", data, messages)


def mix(counts):
    """Return the messages of each published class, and of all types together.

    Parameters
    ----------
    counts : dict of str to int
        By type.

    Returns
    -------
    dict of str to int
        By the variants of claim R3.
    """
    found = {name: sum(counts.get(type_, 0) for type_ in types) for name, types in CLASSES.items()}
    return found | {"all messages": sum(counts.values())}


def mix_table(found):
    """Lay a mix beside the published one.

    Parameters
    ----------
    found : dict of str to int
        Of `mix`.

    Returns
    -------
    DataFrame
        One row a class: counts and shares here and there.
    """
    published = {entry.variant: entry.value for entry in claims.by_id()["R3"].published}
    rows = []
    for name, count in found.items():
        here, there = 100 * count / max(found["all messages"], 1), 100 * published[name] / published["all messages"]
        types = " and ".join(CLASSES.get(name, ""))
        rows.append((f"{name} ({types})" if types else name, count, here, int(published[name]), there, here - there))
    columns = ["class", "messages here", "share here [%]", "published", "published share [%]", "difference [points]"]
    return pd.DataFrame(rows, columns=columns)


def mix_sentence(found):
    """Say how far a mix is from the published one.

    Parameters
    ----------
    found : dict of str to int
        Of `mix`.

    Returns
    -------
    str
        Markdown.
    """
    if not found["all messages"]:
        return "There was no message."
    frame = mix_table(found)
    classes = frame[frame["class"] != "all messages"]
    far = classes.loc[classes["difference [points]"].abs().idxmax()]
    return (
        f"The share farthest from the published one is that of {far['class']}: {far['share here [%]']:.2f} % here, "
        f"{far['published share [%]']:.2f} % there, {abs(far['difference [points]']):.2f} points apart."
    )


def outcomes(day, chunks, runs):
    """Replay a day several times, whole and in chunks, and note the checksum of all books and counters each time.

    Parameters
    ----------
    day : Day
    chunks : list of int
        Sizes in bytes.
    runs : int
        Times that the whole day is replayed in one piece.

    Returns
    -------
    DataFrame
        Columns replayed, chunks, checksum (of every order's place and shares, every counter and volume).
    """
    rows = []
    for run in range(runs):
        rows.append((f"whole, run {run + 1}", 1, _checksum(day.data, day.data.size, True)))
    rows.append(("whole, without looking ahead", 1, _checksum(day.data, day.data.size, False)))
    for size in chunks:
        rows.append((f"in chunks of {size:,} bytes", -(-day.data.size // size), _checksum(day.data, size, True)))
    return pd.DataFrame(rows, columns=["replayed", "chunks", "checksum"])


def _checksum(data, chunk, look_ahead):
    replayer = Replayer(look_ahead=look_ahead)
    for begin in range(0, data.size, chunk):
        replayer.feed(data[begin : begin + chunk])
    replayer.close()
    return replayer.checksum()
