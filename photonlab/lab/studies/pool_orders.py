"""Orders in which a pool hands out its blocks, and what they are worth to whoever uses the blocks (claim R9)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels import block_pool, list_walk, pool
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS
from photonlab.systems.experiments import allocators

FORWARD = "forward"
FILL, WALK, BOTH = "hand out and write", "walk along them", "both"
STACK, QUEUE = "last in, first out", "first in, first out"


@dataclass(frozen=True)
class Orders:
    """The same work in each order.

    Attributes
    ----------
    count : int
        Blocks.
    works : dict of str to Comparison
        By kind of work, times a block: `FILL` hands out and writes all blocks, `WALK` follows them in that order.
    reuse : Comparison
        Times a block replaced at random among many, when a block that came back is handed out next (`STACK`), or
        after all others that are free (`QUEUE`).
    """

    count: int
    works: dict
    reuse: Comparison

    def row(self, order, work=BOTH) -> dict:
        """Arguments of `record`: an order's time over that of the forward one."""
        row = self.works[work].ratio(order, FORWARD).row
        return (
            row if row["value"] is None else row | {"note": f"{work}, {self.count:,} blocks; {self.works[work].note}"}
        )


class _Order:
    """A pool that hands out its blocks in one order."""

    def __init__(self, name, count, seed):
        self.order = block_pool.hand_out_order(name, count, seed)
        self.blocks = block_pool.make_blocks(count)
        self.taken = np.zeros(count, np.uint32)
        self.places = self.order * np.uint32(block_pool.BLOCK_WORDS)

    def prepare(self):
        """Make all blocks free, and link them for the walk as they will be handed out."""
        list_walk.link(self.blocks.words, self.places)
        pool.refill(self.blocks.pool, self.order)

    def fill(self):
        """Hand out and write every block; the sum of their first words when all are written."""
        return int(allocators.pool_fill(self.blocks, self.taken))

    def walk(self):
        """Follow the list."""
        total, seen = list_walk.walk(self.blocks.words, np.uint64(self.places[0]), np.uint64(self.taken.size + 1))
        return int(total) * (self.taken.size + 1) + int(seen)

    def both(self):
        """Hand out each block as the next of a list, then follow the list."""
        count = int(allocators.pool_list(self.blocks, self.taken))
        total, seen = list_walk.walk(self.blocks.words, np.uint64(self.places[0]), np.uint64(self.taken.size + 1))
        return count + int(total) * (self.taken.size + 1) + int(seen)


def measure(count, rounds, seed) -> Orders:
    """Hand out, write and walk in each order in turn.

    Parameters
    ----------
    count, rounds, seed : int
    """
    orders = {name: _Order(name, count, seed) for name in block_pool.ORDERS}
    setup = {name: one.prepare for name, one in orders.items()}
    works = {}
    for work in (FILL, WALK, BOTH):
        calls = {name: getattr(one, {FILL: "fill", WALK: "walk", BOTH: "both"}[work]) for name, one in orders.items()}
        works[work] = timing.compare(calls, rounds=rounds, ops=count, setup=setup, retakes=rounds // 2)
    return Orders(count, works, measure_reuse(count, rounds, seed))


def measure_reuse(count, rounds, seed) -> Comparison:
    """Replace blocks at random among `count` / 2 live ones, with a stack and with a queue of the other half.

    Parameters
    ----------
    count, rounds, seed : int
    """
    half = count // 2
    victims = np.random.default_rng(seed).integers(0, half, half).astype(np.uint32)
    stack, queue = block_pool.make_blocks(count), block_pool.make_blocks(count)
    on_stack, in_queue = np.zeros(half, np.uint32), np.zeros(half, np.uint32)
    allocators.pool_fill(stack, on_stack)
    allocators.pool_fill(queue, in_queue)
    free = np.arange(half + 1, count + 1, dtype=np.uint32)
    works = {
        STACK: lambda: int(allocators.pool_churn(stack, on_stack, victims)),
        QUEUE: lambda: int(allocators.queue_churn(queue.words, free, in_queue, victims)),
    }
    for work in works.values():
        work()  # from now on each block holds the step of the pass before
    return timing.compare(works, rounds=rounds, ops=half)


def table(found) -> pd.DataFrame:
    """Lay out each order: ns a block for each kind of work, and its ratio to the forward order."""
    rows = []
    for name in block_pool.ORDERS:
        ratio = found.works[BOTH].ratio(name, FORWARD)
        row = {"order": name}
        row |= {f"{work} [ns]": compared.reading(name).ns for work, compared in found.works.items()}
        rows.append(
            row | {"over forward": ratio.value, "95 %": ratio.why or f"{ratio.low:.2f}–{ratio.high:.2f}"},
        )
    return pd.DataFrame(rows)


def chart(found):
    """Draw ns a block by order and kind of work.

    Parameters
    ----------
    found : Orders

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots(figsize=(5.8, 3.0))
    works = [FILL, WALK]
    for shift, (work, colour) in enumerate(zip(works, COLOURS, strict=False)):
        readings = [found.works[work].reading(name) for name in block_pool.ORDERS]
        values = [one.ns or one.floor_ns for one in readings]
        places = np.arange(len(values)) + 0.4 * shift - 0.2
        axes.barh(places, np.array(values) - 0.5, 0.38, left=0.5, color=colour, label=work)
        for place, value in zip(places, values, strict=True):
            axes.annotate(f"{value:.3g}", (value, place), xytext=(3, 0), textcoords="offset points", va="center",
                          fontsize=9)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(0.5, 4 * max(found.works[WALK].reading(name).ns or 1 for name in block_pool.ORDERS))
    axes.set_yticks(range(len(block_pool.ORDERS)), block_pool.ORDERS)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("ns a block (bar from 0.5)")
    axes.set_ylabel("order of hand-out")
    axes.legend(loc="upper right")
    return fig


def sentence(found) -> str:
    """Say what each order costs over the forward one."""
    parts = []
    for name in block_pool.ORDERS[1:]:
        row, walk = found.row(name), found.row(name, WALK)
        if row["value"] is None or walk["value"] is None:
            parts.append(f"of {name} nothing can be said ({row['note'] or walk['note']})")
            continue
        told = "as long, as far as can be told" if row["low"] <= 1 <= row["high"] else "as long"
        parts.append(
            f"{name} takes **{row['value']:.2f} times** {told} ({row['low']:.2f} to {row['high']:.2f}; the walk alone "
            f"{walk['value']:.2f})"
        )
    text = f"Against handing out forwards, {'; '.join(parts)}."
    reuse = found.reuse.ratio(QUEUE, STACK)
    if reuse.value is None:
        return text
    side = (
        "more time" if reuse.low > 1 else "less time" if reuse.high < 1 else "neither more nor less that could be told"
    )
    return text + (
        " When blocks come and go at random, handing out the one that has been free for longest, instead of the one "
        f"that came back last, takes {side}: {reuse.value:.2f} times ({reuse.low:.2f} to {reuse.high:.2f})."
    )
