"""One day on one core and on several: the same result, and how much sooner."""

import tempfile
import threading
from dataclasses import dataclass

import numpy as np
import pandas as pd

from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.machine import system
from photonlab.systems.inputs import Input
from photonlab.systems.replay import feed_all
from photonlab.systems.replayer import Replayer
from photonlab.systems.sharded import Shards

ONE = "1 core"


class Pass:
    """A replay of a day from its file, with books made before it is timed."""

    def __init__(self, path, make):
        self.path, self.make, self.replayer = path, make, None
        self.prepare()

    def prepare(self):
        """Begin anew."""
        self.replayer = None
        self.replayer = self.make()
        self.replayer.feed(b"")

    def __call__(self):
        """Replay to the end; return the messages."""
        with Input(self.path) as source:
            feed_all(self.replayer, source)
        return self.replayer.messages


class Together:
    """A day replayed on each core at once, apart from one another: as good as dividing it could become.

    Parameters
    ----------
    passes : list of Pass
    """

    def __init__(self, passes):
        self.passes = passes

    def prepare(self):
        """Begin anew."""
        for one in self.passes:
            one.prepare()

    def __call__(self):
        """Replay all to the end; return the messages of one."""
        threads = [threading.Thread(target=one) for one in self.passes[1:]]
        for thread in threads:
            thread.start()
        messages = self.passes[0]()
        for thread in threads:
            thread.join()
        return messages


@dataclass(frozen=True)
class Found:
    """What was measured.

    Attributes
    ----------
    day : photonlab.lab.studies.day.Day
    cores : int
    comparison : Comparison or None
        ns a message; None where there are not so many cores.
    parts : list of float
        By core, its share of the live orders.
    why_not : str
        Why it was not measured.
    """

    day: object
    cores: int
    comparison: Comparison | None
    parts: list
    why_not: str

    @property
    def several(self) -> str:
        """Name of the variant on several cores."""
        return _several(self.cores)

    @property
    def ceiling(self) -> str:
        """Name of the variant that shares nothing."""
        return _ceiling(self.cores)

    @property
    def note(self) -> str:
        """How undisturbed it was, or why it was not measured."""
        return self.why_not or self.comparison.note

    def rows(self) -> list[dict]:
        """Arguments of `record`."""
        why = self.why_not or self.day.too_short
        return [
            {"statistic": "replay time", "variant": f"{ONE} / {name}"}
            | ({"value": None, "unit": "×", "note": why} if why else self.comparison.ratio(ONE, name).row)
            for name in (self.several, self.ceiling)
        ]


def _several(cores):
    return f"{cores} cores"


def _ceiling(cores):
    return f"{cores} whole days at once, each on 1 core"


def measure(day, cores, rounds) -> Found:
    """Replay a day on one core and on several, in turn.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    cores, rounds : int

    Raises
    ------
    ChecksumError
        If the results differ.
    """
    there = len(system.allowed_cpus())
    if there < cores:
        return Found(day, cores, None, [], f"this process may use {there} cores, {cores} are asked for")
    with tempfile.NamedTemporaryFile() as file:  # in the page cache: both read it as a user's file is read
        file.write(day.data)
        file.flush()
        one, several = Pass(file.name, Replayer), Pass(file.name, lambda: Shards(cores))
        apart = Together([Pass(file.name, Replayer) for _ in range(cores)])
        passes = {ONE: one, _several(cores): several, _ceiling(cores): apart}
        messages = day.messages
        compared = timing.compare(
            passes, rounds=rounds, setup={name: each.prepare for name, each in passes.items()},
            ops={name: cores * messages if each is apart else messages for name, each in passes.items()},
            retakes=rounds // 2,
        )  # fmt: skip
    shared = several.replayer
    checksums = {each.replayer.checksum() for each in (one, several, *apart.passes)}
    if len(checksums) > 1:
        raise timing.ChecksumError(f"the cores changed the result: {sorted(checksums)}")
    live = np.array([part.live_orders for part in shared.parts], float)
    return Found(day, cores, compared, (live / max(live.sum(), 1)).tolist(), "")


def table(found):
    """Lay out the replays.

    Parameters
    ----------
    found : Found

    Returns
    -------
    DataFrame
    """
    if found.why_not:
        return pd.DataFrame([{"replay": found.several, "M msg/s": None, "note": found.why_not}])
    rows = []
    for name in found.comparison.variants:
        ratio = found.comparison.ratio(ONE, name)
        rows.append(
            {
                "replay": name,
                "M msg/s": 1e3 / found.comparison.reading(name).ns,
                "times as fast": ratio.value,
                "95 %": f"{ratio.low:.2f}–{ratio.high:.2f}",
                "live orders by core [%]": ", ".join(f"{100 * part:.0f}" for part in found.parts)
                if name == found.several
                else "",
            }
        )
    return pd.DataFrame(rows)


def sentence(found):
    """Say how much sooner several cores are done.

    Parameters
    ----------
    found : Found

    Returns
    -------
    str
        Markdown.
    """
    if found.why_not or found.day.too_short:
        return f"Not measured: {found.why_not or found.day.too_short}."
    ratio, apart = (found.comparison.ratio(ONE, name) for name in (found.several, found.ceiling))
    return (
        f"On {found.several} the day is replayed **{ratio.value:.2f}** times as fast as on one ({ratio.low:.2f} to "
        f"{ratio.high:.2f}), to the same books and counters. Replays that share nothing do {apart.value:.2f} times the "
        f"work of one here ({apart.low:.2f} to {apart.high:.2f}): the ceiling."
    )
