"""What it costs to have functions of one's own called inside the replay, and what two of them find."""

import inspect
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.systems.calling import CallingReplayer
from photonlab.systems.experiments import order_flow
from photonlab.systems.replayer import Replayer

NONE, EMPTY_BBO, EMPTY_EVENT, FLOW, PLACES = (
    "no call", "nothing, on best prices", "nothing, on every event", "order-flow imbalance", "places in queues",
)  # fmt: skip
MOST = 100_000


class Pass:
    """A replay of a day with calls, prepared before it is timed."""

    def __init__(self, data, make):
        self.data, self.make = data, make
        self.calls, self.replayer = 0, None
        self.prepare()

    def prepare(self):
        """Begin anew."""
        self.replayer = None
        self.replayer = self.make()
        self.replayer.feed(b"")

    def __call__(self):
        """Replay; return the messages."""
        self.replayer.feed(self.data)
        return self.replayer.messages


@dataclass(frozen=True)
class OwnCode:
    """What was measured.

    Attributes
    ----------
    day : photonlab.lab.studies.day.Day
    comparison : Comparison
        ns a message.
    imbalance : order_flow.Imbalance
    places : order_flow.Places
    symbol : str
        The busiest instrument, whose imbalance is kept by time.
    changes : int
        Changes of a best price: calls of a function on best prices.
    """

    day: object
    comparison: Comparison
    imbalance: order_flow.Imbalance
    places: order_flow.Places
    symbol: str
    changes: int

    def rows(self) -> list[dict]:
        """Arguments of `record`: time of the replay with calls over that without, and ns a call."""
        rows = []
        for name in self.comparison.variants:
            if name != NONE:
                row = {"value": None, "unit": "×", "note": self.day.too_short}
                row = row if self.day.too_short else self.comparison.ratio(name, NONE).row
                rows.append({"statistic": "replay time with calls", "variant": f"{name} / {NONE}"} | row)
        return rows

    def correlation(self) -> float | None:
        """Return the correlation of imbalance and change of the middle price by interval; None if it has none."""
        kept = self.imbalance.rows[: int(self.imbalance.state[1])]
        moves = np.diff(kept[:, 2])
        flow = np.diff(kept[:, 1])
        if len(moves) < 10 or not moves.any() or not flow.any():
            return None
        return float(np.corrcoef(flow, moves)[0, 1])


def measure(day, every, rounds) -> OwnCode:
    """Replay a day with each function in turn.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    every : str
        Interval of the imbalance.
    rounds : int

    Raises
    ------
    ChecksumError
        If the replays differ.
    """
    plain = Replayer()
    plain.feed(day.data)
    locate = int(plain.feed_state.volume.argmax())
    symbol = int(plain.feed_state.names[locate]).to_bytes(8, "big").decode("latin-1").rstrip()
    kept = {}

    def with_flow():
        kept["flow"] = order_flow.make_imbalance(locate, MOST)
        return CallingReplayer(
            on_bbo=order_flow.add_flow, on_time=order_flow.keep_flow, every=every, state=kept["flow"]
        )

    def with_places():
        kept["places"] = order_flow.make_places()
        return CallingReplayer(on_event=order_flow.note_place, state=kept["places"])

    def counted():
        kept["count"] = np.zeros(1, np.uint64)
        return CallingReplayer(on_bbo=order_flow.count, state=kept["count"])

    nothing = order_flow.do_nothing
    passes = {
        NONE: Pass(day.data, Replayer),
        EMPTY_BBO: Pass(day.data, counted),
        EMPTY_EVENT: Pass(day.data, lambda: CallingReplayer(on_event=nothing, state=np.zeros(1, np.uint64))),
        FLOW: Pass(day.data, with_flow),
        PLACES: Pass(day.data, with_places),
    }
    compared = timing.compare(
        passes, rounds=rounds, ops=day.messages, setup={name: one.prepare for name, one in passes.items()},
        retakes=rounds // 2,
    )  # fmt: skip
    checksums = {one.replayer.checksum() for one in passes.values()}
    if len(checksums) > 1:
        raise timing.ChecksumError(f"a call changed the books: {checksums}")
    passes[FLOW].replayer.close()
    return OwnCode(day, compared, kept["flow"], kept["places"], symbol, int(kept["count"][0]))


def source(function) -> str:
    """Return a function as it stands, as Markdown."""
    return f"```python\n{inspect.getsource(function.py_func)}```"


def table(found):
    """Lay out what the calls cost.

    Parameters
    ----------
    found : OwnCode

    Returns
    -------
    DataFrame
    """
    rows, base = [], found.comparison.reading(NONE).ns
    for name in found.comparison.variants:
        reading, ratio = found.comparison.reading(name), found.comparison.ratio(name, NONE)
        calls = 0 if name == NONE else found.changes if name in (EMPTY_BBO, FLOW) else found.day.messages
        rows.append(
            {
                "called": name,
                "calls a message": calls / found.day.messages,
                "M msg/s": 1e3 / reading.ns,
                "time over no call": ratio.value,
                "95 %": f"{ratio.low:.3f}–{ratio.high:.3f}",
                "ns a message more": reading.ns - base,
            }
        )
    return pd.DataFrame(rows)


def chart(found):
    """Draw where orders joined their queues.

    Parameters
    ----------
    found : OwnCode

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots(figsize=(5.8, 3.0))
    joined = found.places.joined.astype(np.float64)
    total = max(joined.sum(), 1)
    axes.bar(np.arange(joined.size), 100 * joined / total, color=COLOURS[0])
    axes.set_yscale("log")
    axes.set_xlabel(f"orders already in the queue ({order_flow.DEEPEST - 1}: or more)")
    axes.set_ylabel("share of orders that join [%]")
    axes.axhline(1, color=MUTED, linewidth=0.5)
    return fig


def sentence(found):
    """Say what the calls cost and found.

    Parameters
    ----------
    found : OwnCode

    Returns
    -------
    str
        Markdown.
    """
    if found.day.too_short:
        cost = f"No time is recorded: {found.day.too_short}."
    else:
        flow, places = (found.comparison.ratio(name, NONE) for name in (FLOW, PLACES))
        cost = (
            f"With the imbalance of all instruments the replay takes {flow.value:.2f} times as long ({flow.low:.2f} to "
            f"{flow.high:.2f}), with the places of all orders {places.value:.2f} times ({places.low:.2f} to "
            f"{places.high:.2f})."
        )
    executed, joined = found.places.executed, found.places.joined
    total = int(executed.sum())
    behind = f"{100 * int(executed[1:].sum()) / total:.1f} %" if total else "none"
    first = f"{100 * int(joined[0]) / max(int(joined.sum()), 1):.0f} %"
    related = found.correlation()
    moved = "" if related is None else (
        f" For {found.symbol}, the busiest, imbalance and change of the middle price in the same interval have a "
        f"correlation of {related:.2f}."
    )  # fmt: skip
    return (
        f"{cost} Of the orders that join a best price, {first} find an empty queue; of {total:,} executions in part, "
        f"{behind} were of an order that was not first in its queue.{moved}"
    )
