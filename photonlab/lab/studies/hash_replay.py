"""What a hash policy is worth end to end: the same book, its orders found by the paged index or by a hashed one."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels import open_table, pool
from photonlab.kernels.order_index import OrderIndex
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS
from photonlab.machine import residency
from photonlab.systems.experiments import map_work
from photonlab.systems.experiments.passes import BookPass
from photonlab.systems.replayer import Replayer

PAGED = "paged (default)"
_NONE = np.zeros(0, np.uint64)


class PolicyPass(BookPass):
    """The full book's pass, on an order index of one's choice, looking ahead.

    Parameters
    ----------
    data
        See `photonlab.systems.experiments.passes.Pass`.
    policy : str
        See `photonlab.kernels.order_indices.make_index`.
    """

    def __init__(self, data, policy):
        super().__init__(data, look_ahead=True)
        self.policy = policy

    def _fresh(self):
        self.replayer = Replayer(look_ahead=True, capacity={"policy": self.policy})
        self.replayer.feed(b"")  # compile, or load, outside the time
        return self.replayer.feed_state


@dataclass(frozen=True)
class EndToEnd:
    """Replays of a day on several order indices, in turn.

    Attributes
    ----------
    day : photonlab.lab.studies.day.Day
    comparison : Comparison
        By index, ns a message.
    probes : dict of str to (float, int)
        By hashed index: slots looked at on average and at most in searches for the orders that are live in the end.
    memory : dict of str to int
        Bytes that the index had touched in the end.
    checksum : str
        Of the books, which are the same for all.
    """

    day: object
    comparison: Comparison
    probes: dict
    memory: dict
    checksum: str

    def ratio(self, name) -> dict:
        """Arguments of `record`: time of the replay with that index over that with the paged one."""
        if self.day.too_short:
            return {"value": None, "unit": "×", "note": self.day.too_short}
        return self.comparison.ratio(name, PAGED).row

    def rows(self) -> list[dict]:
        """Arguments of `record` for claim R5: slots looked at by the searches of each hashed index."""
        note = "searches for the orders that are live in the end"
        return [
            {
                "statistic": "probe length",
                "variant": f"{name}, in the book, {self.day.name} day",
                "value": average,
                "unit": "1",
                "note": f"{note}, longest {longest}",
            }
            for name, (average, longest) in self.probes.items()
        ]

    def times(self) -> list[dict]:
        """Arguments of `record`: time of the replay on each hashed index over that on the paged one."""
        return [
            {"statistic": "replay time", "variant": f"{name} / paged, {self.day.name} day"} | self.ratio(name)
            for name in self.probes
        ]


def measure(day, policies, rounds) -> EndToEnd:
    """Replay a day on each index in turn.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    policies : list of str
        Hash policies beside the paged index.
    rounds : int

    Raises
    ------
    ChecksumError
        If the books differ.
    """
    passes = {policy or PAGED: PolicyPass(day.data, policy) for policy in ("", *policies)}
    compared = timing.compare(
        passes,
        rounds=rounds,
        ops=day.messages,
        setup={name: one.prepare for name, one in passes.items()},
        retakes=rounds // 2,
    )
    checksums = {name: one.replayer.checksum() for name, one in passes.items()}
    if len(set(checksums.values())) > 1:
        raise timing.ChecksumError(f"the order index changed the books: {checksums}")
    probes, memory = {}, {}
    for name, one in passes.items():
        index = one.state.book.index
        memory[name] = residency.resident_bytes(residency.footprint(index))
        if not isinstance(index, OrderIndex):
            probes[name] = _probes(index)
        one.state = one.replayer = None
    return EndToEnd(day, compared, probes, memory, checksums[PAGED])


def _probes(index):
    """Search for every live reference of a hashed index."""
    size = int(index.table.state[open_table.SIZE])
    rows = index.table.entries[2 * size : 4 * size].reshape(-1, 2)
    live = np.ascontiguousarray(rows[rows[:, 1] != 0, 0])
    assert live.size == int(index.nodes.state[pool.LIVE])
    tally = np.zeros(map_work.TALLY_WORDS, np.uint64)
    tally[0] = size
    map_work.work(index.table, map_work.PROBE, live, _NONE, np.uint64(0), tally)
    return int(tally[map_work.LOOKED]) / max(live.size, 1), int(tally[map_work.LONGEST])


def table(measured):
    """Lay out the replays.

    Parameters
    ----------
    measured : list of EndToEnd

    Returns
    -------
    DataFrame
    """
    rows = []
    for one in measured:
        for name in one.comparison.variants:
            reading, ratio = one.comparison.reading(name), one.comparison.ratio(name, PAGED)
            average, longest = one.probes.get(name, (None, None))
            rows.append(
                {
                    "order index": f"{name}, {one.day.name} day",
                    "M msg/s": None if reading.ns is None else 1e3 / reading.ns,
                    "time over paged": ratio.value,
                    "95 %": ratio.why or f"{ratio.low:.3f}–{ratio.high:.3f}",
                    "average probes": average,
                    "longest": longest,
                    "index [MiB]": one.memory[name] / 2**20,
                }
            )
    frame = pd.DataFrame(rows)
    frame["longest"] = pd.Series([row["longest"] for row in rows], dtype=object)
    return frame


def chart(measured):
    """Draw messages a second by index and day.

    Parameters
    ----------
    measured : list of EndToEnd

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots(figsize=(5.8, 3.0))
    names = list(measured[0].comparison.variants)
    height = 0.8 / len(measured)
    for number, (one, colour) in enumerate(zip(measured, COLOURS, strict=False)):
        readings = [one.comparison.reading(name) for name in names]
        rates = [0 if reading.ns is None else 1e3 / reading.ns for reading in readings]
        places = np.arange(len(names)) + height * (number - (len(measured) - 1) / 2)
        axes.barh(places, rates, height=0.9 * height, color=colour, label=f"{one.day.name} day")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("million messages a second, full book")
    axes.set_ylabel("order index")
    axes.legend()
    return fig


def sentence(one):
    """Say what the policies are worth in a replay.

    Parameters
    ----------
    one : EndToEnd

    Returns
    -------
    str
        Markdown.
    """
    if one.day.too_short:
        return f"No time is recorded: {one.day.too_short}."
    parts = []
    for name in one.probes:
        row = one.ratio(name)
        if row["value"] is not None:
            parts.append(f"{row['value']:.2f} with {name} ({row['low']:.2f} to {row['high']:.2f})")
    if not parts:
        why = "; ".join(dict.fromkeys(one.ratio(name)["note"] for name in one.probes)) or "no policy was chosen"
        return f"Nothing can be said of the {one.day.name} day: {why}."
    return f"On the {one.day.name} day a replay takes, relative to the paged index, {', '.join(parts)} times as long."
