"""A packed day: what its replay costs beside the unpacking alone, and beside the replay of the same day unpacked."""

import gzip
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from isal import isal_zlib

from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.studies.shards import Pass
from photonlab.machine import system
from photonlab.systems.replayer import Replayer

LEVEL = 6
MOST = 64 << 20
"""Bytes of the day that are packed at most: zlib takes seconds for so many."""

UNPACKING, PLAIN, PACKED = "unpacking alone", "replay, plain", "replay, gzip"
_READ = 1 << 18


def unpack(path) -> int:
    """Unpack a gzip file by the library that inputs use, and do nothing with the bytes; return how many."""
    size, frame = 0, isal_zlib.decompressobj(wbits=31)
    with open(path, "rb", buffering=0) as file:
        while data := file.read(_READ):
            size += len(frame.decompress(data))
    return size


@dataclass(frozen=True)
class Found:
    """What was measured.

    Attributes
    ----------
    size, stored : int
        Bytes, and bytes packed.
    messages : int
    comparison : Comparison
        ns a message.
    why_not : str
        Why the times say nothing.
    """

    size: int
    stored: int
    messages: int
    comparison: Comparison
    why_not: str

    @property
    def longer(self) -> str:
        """The longer one of the two things that a replay of a packed day does at once."""
        return max((UNPACKING, PLAIN), key=lambda name: self.comparison.reading(name).ns)

    def rows(self) -> list[dict]:
        """Arguments of `record`."""
        return [
            {"statistic": "replay time", "variant": variant}
            | (
                {"value": None, "unit": "×", "note": self.why_not}
                if self.why_not
                else self.comparison.ratio(PACKED, under).row
            )
            for variant, under in (
                (f"{PACKED} / {UNPACKING}", UNPACKING),
                (f"{PACKED} / the longer of {UNPACKING} and {PLAIN}", self.longer),
            )
        ]


def measure(day, rounds) -> Found:
    """Unpack a day, replay it packed and replay it plain, in turn, each from a file in the page cache.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    rounds : int

    Raises
    ------
    ChecksumError
        If the replays differ.
    """
    data = day.data[:MOST]
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder, "day.itch"), Path(folder, "day.itch.gz")
        plain.write_bytes(data)
        stored = packed.write_bytes(gzip.compress(data, LEVEL))
        passes = {PLAIN: Pass(plain, Replayer), PACKED: Pass(packed, Replayer)}
        messages = passes[PLAIN]()
        compared = timing.compare(
            {UNPACKING: lambda: unpack(packed)} | passes, rounds=rounds, ops=messages, same_checksums=False,
            setup={name: each.prepare for name, each in passes.items()}, retakes=rounds // 2,
        )  # fmt: skip
    checksums = {each.replayer.checksum() for each in passes.values()}
    if len(checksums) > 1:
        raise timing.ChecksumError(f"packing changed the result: {sorted(checksums)}")
    why = day.too_short
    if not why and len(system.allowed_cpus()) < 2:
        why = "this process may use 1 core, and unpacking has a thread of its own"
    return Found(len(data), stored, messages, compared, why)


def table(found):
    """Lay out the times.

    Parameters
    ----------
    found : Found

    Returns
    -------
    DataFrame
    """
    rows = []
    for name in (UNPACKING, PLAIN, PACKED):
        ratio = found.comparison.ratio(name, UNPACKING)
        rows.append(
            {
                "what": name,
                "ns a message": found.comparison.reading(name).ns,
                "MB/s unpacked": found.size / found.messages / found.comparison.reading(name).ns * 1e3,
                "times the unpacking": ratio.value,
                "95 %": f"{ratio.low:.2f}–{ratio.high:.2f}",
            }
        )
    return pd.DataFrame(rows)


def sentence(found):
    """Say what packing costs.

    Parameters
    ----------
    found : Found

    Returns
    -------
    str
        Markdown.
    """
    if found.why_not:
        return f"Not measured: {found.why_not}."
    alone, bound = (found.comparison.ratio(PACKED, under) for under in (UNPACKING, found.longer))
    return (
        f"The replay of the packed day takes **{alone.value:.2f}** times as long as unpacking alone ({alone.low:.2f} "
        f"to {alone.high:.2f}), and {bound.value:.2f} times ({bound.low:.2f} to {bound.high:.2f}) the longer one of "
        f"its two halves, which is here the {found.longer}: they run side by side on two cores."
    )
