"""The walk along a list of nodes: in order, as malloc strewed them, and shuffled, by working set (claims A4 and A5)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels import block_pool, list_walk
from photonlab.lab.judge import claims
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED, number
from photonlab.lab.studies import working_sets
from photonlab.machine import latency, libc
from photonlab.systems.experiments import allocators

IN_ORDER, ALONE, SCATTERED = "pool in order", "malloc without decoys", "malloc scattered"
HOLES, SHUFFLED = "malloc from holes", "pool shuffled"
CHASE = "DRAM latency"
SMALLEST, LARGEST = 16, 128
"""Bytes of the decoys that lie between malloc's nodes."""

CHASES = 4
"""Timed chases that come once round the whole cycle."""

WALKED = 1 << 16
"""Nodes that a timed walk comes past, at least: short lists are walked again and again."""


@dataclass(frozen=True)
class Nodes:
    """Nodes somewhere in memory.

    Attributes
    ----------
    words : ndarray of uint32
        As for `photonlab.kernels.list_walk`.
    places : ndarray of uint32, shape (n,)
        In the order of allocation.
    """

    words: np.ndarray
    places: np.ndarray

    @property
    def steps(self) -> np.ndarray:
        """Bytes from each node to the next."""
        return np.diff(self.places.astype(np.int64)) * 4

    def linked(self, count) -> np.uint64:
        """Link the first `count` nodes; return the place of the first."""
        list_walk.link(self.words, self.places[:count])
        return np.uint64(self.places[0])


class Heap:
    """Nodes from malloc, until `close`; with decoys between them, and from the holes of a used heap after `reuse`."""

    def __init__(self, count, seed, decoys=True):
        self.rng = np.random.default_rng(seed)
        self.taken, self.decoys = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        if decoys:
            sizes = self.rng.integers(SMALLEST, LARGEST + 1, count).astype(np.uint32)
            allocators.malloc_fill_with_decoys(self.taken, self.decoys, sizes)
        else:
            allocators.malloc_fill(self.taken)

    def nodes(self) -> Nodes:
        """Return the nodes as they lie, in the order of allocation."""
        if not self.taken.all():
            raise MemoryError("malloc had no memory for the nodes")
        base = int(self.taken.min()) - block_pool.BLOCK_BYTES
        span = int(self.taken.max()) - base + block_pool.BLOCK_BYTES
        if span >= 1 << 34:
            raise MemoryError(f"malloc strewed the nodes over {span / 2**30:.0f} GiB: too far for 32-bit places")
        return Nodes(libc.window(base, span), ((self.taken - np.uint64(base)) >> np.uint64(2)).astype(np.uint32))

    def reuse(self):
        """Free all nodes at random, as orders die, and allocate as many again."""
        self.taken = self.rng.permutation(self.taken)
        allocators.free_all(self.taken)
        allocators.malloc_fill(self.taken)

    def close(self):
        """Free everything."""
        allocators.free_all(self.taken)
        allocators.free_all(self.decoys)
        libc.trim()


@dataclass(frozen=True)
class Walks:
    """Walks through lists of one length.

    Attributes
    ----------
    count : int
        Nodes.
    comparison : Comparison
        Times a node, and of the pointer chase a step where it was taken in turn.
    """

    count: int
    comparison: Comparison

    def row(self, over, under) -> dict:
        """Arguments of `record`: ratio of two walks."""
        row = self.comparison.ratio(over, under).row
        return row if row["value"] is None else row | {"note": f"{self.count:,} nodes; {self.comparison.note}"}


@dataclass(frozen=True)
class Layouts:
    """What was measured.

    Attributes
    ----------
    walks : list of Walks
        Ascending; the last one has all nodes and the pointer chase in turn.
    steps : dict of str to ndarray of int64
        Bytes from a node to the next, by layout.
    chase_bytes : int
        Working set of the pointer chase.
    why : dict of str to str
        Layouts that could not be had.
    """

    walks: list
    steps: dict
    chase_bytes: int
    why: dict

    def row(self, over, under) -> dict:
        """Arguments of `record`: ratio of two walks through all nodes, or why there is none."""
        if over in self.why:
            return {"value": None, "unit": "×", "note": self.why[over]}
        return self.walks[-1].row(over, under)

    def time(self, name) -> dict:
        """Arguments of `record`: ns a node of a walk through all nodes, or why there is none."""
        if name in self.why:
            return {"value": None, "unit": "ns", "note": self.why[name]}
        return self.walks[-1].comparison.reading(name).row


def _walk(nodes, count, order=None):
    """Return a callable that walks the first `count` nodes, linked in their own order or in another one."""
    picked = nodes if order is None else Nodes(nodes.words, nodes.places[:count][order])
    first, most = picked.linked(count), np.uint64(count + 1)
    times = -(-WALKED // count)

    def walked():
        for _ in range(times):
            total, seen = list_walk.walk(nodes.words, first, most)
        return int(total) * (count + 1) + int(seen)

    return walked, times * count


def _compare(layouts, chase, count, rounds, seed) -> Walks:
    order = np.random.default_rng(seed).permutation(count)
    works, ops, warm = {}, {}, {}
    for name, nodes in layouts.items():
        works[name], ops[name] = _walk(nodes, count, order if name == SHUFFLED else None)
    if chase is None:
        warm = dict(works)  # shorter lists are to be found in the cache that holds them, not where they were left
    else:
        ops[CHASE] = chase.lines.size // latency.WORDS // CHASES
        works[CHASE] = _chased(chase, ops[CHASE])
    options = {"rounds": rounds, "ops": ops, "setup": warm, "same_checksums": False, "retakes": rounds // 2}
    compared = timing.compare(works, **options)
    every = count * (count - 1) // 2 * (count + 1) + count
    for name in layouts:
        assert compared[name].checksum == every, f"{name}: the walk did not see every node once"
    return Walks(count, compared)


def _chased(chase, steps):
    """Return a callable that goes on with the chase, so that it finds in no cache what it needs."""

    def chased():
        latency.walk(*chase, steps)
        return steps

    return chased


def measure(count, sizes, chase_mib, rounds, seed) -> Layouts:
    """Walk lists of several lengths in each layout in turn, the longest beside a pointer chase.

    Parameters
    ----------
    count : int
        Nodes of the longest list.
    sizes : int
        Lengths, each four times the one before.
    chase_mib : int
        Working set of the pointer chase, with small pages as all nodes have.
    rounds, seed : int
    """
    ordered, mixed = (block_pool.make_blocks(count) for _ in range(2))
    places = np.arange(1, count + 1, dtype=np.uint32) * np.uint32(block_pool.BLOCK_WORDS)
    layouts, why = {IN_ORDER: Nodes(ordered.words, places)}, {}
    heaps = {ALONE: Heap(count, seed, decoys=False), SCATTERED: Heap(count, seed), HOLES: Heap(count, seed + 1)}
    heaps[HOLES].reuse()
    for name, heap in heaps.items():
        try:
            layouts[name] = heap.nodes()
        except MemoryError as error:
            why[name] = str(error)
    layouts[SHUFFLED] = Nodes(mixed.words, places)
    chase = latency.new_walk(chase_mib << 20, huge=False, seed=seed)
    assert latency.cycle_length(chase.lines, chase.position) == chase.lines.size // latency.WORDS
    lengths = [count >> 2 * step for step in reversed(range(sizes)) if count >> 2 * step >= 2]
    walks = [_compare(layouts, chase if n == count else None, n, rounds, seed) for n in lengths]
    steps = {name: nodes.steps for name, nodes in layouts.items() if name != SHUFFLED}
    for heap in heaps.values():
        heap.close()
    return Layouts(walks, steps, chase_mib << 20, why)


def measure_scattered(count, rounds, seed) -> tuple[Comparison, int]:
    """Walk along a pool in order and along nodes that this process' malloc strewed between decoys, in turn.

    Returns
    -------
    tuple of (Comparison, int)
        Times a node, and the median step of the latter in bytes.

    Raises
    ------
    MemoryError
        They lie too far apart.
    """
    heap, ordered = Heap(count, seed), block_pool.make_blocks(count)
    places = np.arange(1, count + 1, dtype=np.uint32) * np.uint32(block_pool.BLOCK_WORDS)
    nodes = heap.nodes()
    walks = _compare({IN_ORDER: Nodes(ordered.words, places), SCATTERED: nodes}, None, count, rounds, seed)
    step = int(np.median(np.abs(nodes.steps)))
    heap.close()
    return walks.comparison, step


def table(found) -> pd.DataFrame:
    """Lay out the walk through all nodes: ns a node, ratio to the pool in order, what was published, distances."""
    last, published = found.walks[-1], claims.by_id()["A4"]
    rows = []
    for name in last.comparison.variants:
        ratio, entry = last.comparison.ratio(name, IN_ORDER), published.figure("walk", name)
        steps = found.steps.get(name)
        rows.append(
            {
                "walk": name,
                "ns a node": last.comparison.reading(name).ns,
                "over in order": ratio.value,
                "95 %": ratio.why or f"{ratio.low:.2f}–{ratio.high:.2f}",
                "published [ns]": entry.value if entry else None,
                "median step [bytes]": None if steps is None else float(np.median(np.abs(steps))),
                "steps back [%]": None if steps is None else f"{100 * (steps < 0).mean():.2f}",
            }
        )
    return pd.DataFrame(rows)


def chart(found):
    """Draw ns a node by working set, with the DRAM latency.

    Parameters
    ----------
    found : Layouts

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots(figsize=(5.8, 4.4))
    sizes = [one.count * block_pool.BLOCK_BYTES for one in found.walks]
    names = [name for name in found.walks[-1].comparison.variants if name != CHASE]
    for colour, name in zip(COLOURS, names, strict=False):
        readings = [one.comparison.reading(name) for one in found.walks]
        axes.plot(sizes, [one.ns or one.floor_ns for one in readings], "o-", color=colour, label=name)
        lows, highs = [one.low or one.floor_ns for one in readings], [one.high or one.floor_ns for one in readings]
        axes.fill_between(sizes, lows, highs, color=colour, alpha=0.2, linewidth=0)
    dram = found.walks[-1].comparison.reading(CHASE)
    axes.axhline(dram.ns or dram.floor_ns, color=MUTED, linestyle=(0, (4, 3)))
    axes.annotate(f"DRAM latency {dram.text}", (0, dram.ns or dram.floor_ns), xycoords=("axes fraction", "data"),
                  xytext=(4, 4), textcoords="offset points", color=MUTED, fontsize=9)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [working_sets.size_text(size) for size in sizes], fontsize=8.5)
    axes.set_xlabel("working set: nodes of 64 bytes")
    axes.set_ylabel("ns a node")
    top = 1.6 * max(dram.ns or 1, *(one.comparison.reading(name).ns or 1 for one in found.walks for name in names))
    axes.set_ylim(top=top)
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def sentence(found) -> str:
    """Say what each layout costs, and how near the shuffled walk is to the latency of the memory."""
    shuffled, dram = found.row(SHUFFLED, IN_ORDER), found.row(SHUFFLED, CHASE)
    if shuffled["value"] is None or dram["value"] is None:
        return f"Nothing can be said: {shuffled['note'] if shuffled['value'] is None else dram['note']}."
    text = ""
    for name, called in (
        (ALONE, "nodes that malloc gave one after the other"),
        (SCATTERED, "nodes with decoys between them"),
        (HOLES, "nodes from the holes of a used heap"),
    ):
        if name in found.why:
            text += f"Of {called} nothing can be said: {found.why[name]}. "
            continue
        one, back = found.row(name, IN_ORDER), 100 * float((found.steps[name] < 0).mean())
        text += (
            f"A walk along {called} takes **{one['value']:.1f} times** as long as along the pool in order "
            f"({one['low']:.1f} to {one['high']:.1f}), in steps of {np.median(np.abs(found.steps[name])):,.0f} bytes, "
            f"{back:.1f} % of them back. "
        )
    return text + (
        f"The same memory in shuffled order takes **{number(shuffled['value'])} times** as long "
        f"({number(shuffled['low'])} to {number(shuffled['high'])}): {dram['value']:.2f} times ({dram['low']:.2f} to "
        f"{dram['high']:.2f}) the latency of a dependent load in {working_sets.size_text(found.chase_bytes)}."
    )
