"""What a block costs from the pool, from the arena and from malloc, on average (claims A1 and A6).

Three kinds of work: a *fill* hands out many blocks and keeps them, which is when a heap grows; a *cycle* hands out a
batch and takes it back; *churn* replaces blocks at random among many live ones. Each block's first word is written.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels import arena, block_pool, pool
from photonlab.lab.judge import claims
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, INK, MUTED
from photonlab.machine import libc
from photonlab.machine.system import Watch
from photonlab.systems.experiments import allocators, own_blocks

MALLOC, POOL, ARENA, BARE = "malloc", "pool", "arena", "bare loop"
KEPT, UNTOUCHED, IN_MEMORY = "malloc, memory kept", "pool, untouched", "pool, state in memory"
TAKEN = (MALLOC, POOL, ARENA, BARE, KEPT, UNTOUCHED, IN_MEMORY)
ADDED = {}
"""Allocators that somebody added, by name; see `photonlab.lab.studies.own_allocator`."""
CYCLE_OPS = 1 << 17
"""Blocks handed out and taken back in a timed call of cycles, or more."""


class MallocFill:
    """Blocks from malloc: from a heap given back to the system before each fill, or from one that kept its memory."""

    def __init__(self, count, kept=False):
        self.taken, self.kept = np.zeros(count, np.uint64), kept

    def prepare(self):
        """Free the blocks of the last fill."""
        allocators.free_all(self.taken)
        if not self.kept:
            libc.trim()

    def __call__(self):
        """Fill once; return how many blocks there were."""
        return int(allocators.malloc_fill(self.taken))

    def close(self):
        """Leave the heap as it was found."""
        allocators.free_all(self.taken)
        libc.trim()


class PoolFill:
    """Blocks from a pool whose memory was touched when it was made, or from a new one each time."""

    def __init__(self, count, *, touched=True, huge=False):
        self.count, self.touched, self.huge = count, touched, huge
        self.taken = np.zeros(count, np.uint32)
        self.blocks = block_pool.make_blocks(count, huge=huge, populate=touched)

    def prepare(self):
        """Make all blocks free and fresh."""
        if self.touched:
            pool.clear(self.blocks.pool)
        else:
            self.blocks = None  # two of them at a time would be too much
            self.blocks = block_pool.make_blocks(self.count, huge=self.huge, populate=False)

    def __call__(self):
        """Fill once; return how many blocks there were."""
        return int(allocators.pool_fill(self.blocks, self.taken))


class ArenaFill:
    """Blocks from an arena whose memory was touched when it was made, and which is emptied after each fill."""

    def __init__(self, count):
        self.taken = np.zeros(count, np.uint32)
        self.arena = arena.make_arena(count * block_pool.BLOCK_BYTES)

    def prepare(self):
        """Nothing is left of the last fill."""

    def __call__(self):
        """Fill once; return how many blocks there were."""
        return int(allocators.arena_cycles(self.arena, self.taken, 1))


@dataclass(frozen=True)
class Costs:
    """What was measured.

    Attributes
    ----------
    count : int
        Blocks of a fill, and live blocks of the churn.
    fill, churn : Comparison
    cycles : dict of int to Comparison
        By blocks in a batch.
    faults : dict of str to (int or None)
        Page faults in one fill of each variant.
    """

    count: int
    fill: Comparison
    churn: Comparison
    cycles: dict
    faults: dict

    def fill_row(self, over, under) -> dict:
        """Arguments of `record`: ratio of the means of a fill."""
        row = self.fill.ratio(over, under).row
        faults = f"{count_text(self.faults[over])} page faults against {count_text(self.faults[under])}"
        return (
            row if row["value"] is None else row | {"note": f"{self.count:,} blocks kept; {faults}; {self.fill.note}"}
        )


def count_text(count) -> str:
    """Write a count that the system may not give."""
    return "unknown" if count is None else f"{count:,}"


def faults_of(work) -> int | None:
    """Count the page faults of one prepared call."""
    work.prepare()
    with Watch() as watched:
        work()
    return watched.usage.minor_faults


def measure_fill(count, rounds, names=None) -> tuple[Comparison, dict]:
    """Fill from several sources in turn.

    Parameters
    ----------
    count, rounds : int
    names : sequence of str, optional
        Variants; default: all of this house's, and those that somebody added.

    Returns
    -------
    tuple of (Comparison, dict)
        Times a block, and page faults of one fill by variant.
    """
    names = (MALLOC, KEPT, POOL, UNTOUCHED, ARENA, *ADDED) if names is None else names
    makers = {
        MALLOC: lambda: MallocFill(count),
        KEPT: lambda: MallocFill(count, kept=True),
        POOL: lambda: PoolFill(count),
        UNTOUCHED: lambda: PoolFill(count, touched=False),
        ARENA: lambda: ArenaFill(count),
    } | {name: lambda own=own: own.fill(count) for name, own in ADDED.items()}
    works = {name: makers[name]() for name in names}
    setup = {name: work.prepare for name, work in works.items()}
    compared = timing.compare(works, rounds=rounds, ops=count, setup=setup, retakes=rounds)
    faults = {name: faults_of(work) for name, work in works.items()}
    for work in works.values():
        if isinstance(work, MallocFill):
            work.close()
    return compared, faults


def measure_cycles(batch, rounds, names=None) -> Comparison:
    """Hand out and take back batches from several sources in turn, beside the bare loop.

    Parameters
    ----------
    batch, rounds : int
    names : sequence of str, optional
        Variants; default: all of this house's, and those that somebody added.
    """
    names = (POOL, IN_MEMORY, ARENA, MALLOC, *ADDED, BARE) if names is None else names
    cycles = -(-CYCLE_OPS // batch)
    ops = np.uint64(batch * cycles)
    slots, addresses = np.zeros(batch, np.uint32), np.zeros(batch, np.uint64)
    held, stored = block_pool.make_blocks(batch), block_pool.make_blocks(batch)
    memory = arena.make_arena(batch * block_pool.BLOCK_BYTES)
    links = np.arange(1, batch + 2, dtype=np.uint32)
    links[batch] = 1  # from block to block, as the free list of a new pool, and round
    one = np.uint64(1)
    loops = {
        POOL: lambda: int(allocators.pool_cycles(held, slots, cycles)),
        IN_MEMORY: lambda: int(allocators.pool_cycles_in_memory(stored, slots, cycles)),
        ARENA: lambda: int(allocators.arena_cycles(memory, slots, cycles)),
        MALLOC: lambda: int(allocators.malloc_cycles(addresses, cycles)),
        # whole rounds of the cycle of links end where they began
        BARE: lambda: int(ops) if allocators.bare_cycles(links, held.words, one, ops) == one else 0,
    }
    for name, own in ADDED.items():
        mine = own.blocks(batch)
        loops[name] = lambda mine=mine: int(own_blocks.cycles(mine, addresses, cycles))
    return timing.compare({name: loops[name] for name in names}, rounds=rounds, ops=int(ops))


def measure_churn(live, steps, rounds, seed) -> Comparison:
    """Replace blocks at random among `live` ones, from the pool and from malloc in turn.

    Parameters
    ----------
    live, steps, rounds, seed : int
    """
    victims = np.random.default_rng(seed).integers(0, live, steps).astype(np.uint32)
    blocks = block_pool.make_blocks(live + 1)
    slots, addresses = np.zeros(live, np.uint32), np.zeros(live, np.uint64)
    allocators.pool_fill(blocks, slots)
    allocators.malloc_fill(addresses)
    loops = {
        POOL: lambda: int(allocators.pool_churn(blocks, slots, victims)),
        MALLOC: lambda: int(allocators.malloc_churn(addresses, victims)),
    }
    for name, own in ADDED.items():
        mine, places = own.blocks(live + 1), np.zeros(live, np.uint64)
        own_blocks.fill(mine, places)
        loops[name] = lambda mine=mine, places=places: int(own_blocks.churn(mine, places, victims))
    for loop in loops.values():
        loop()  # from now on each block holds the step of the pass before
    compared = timing.compare(loops, rounds=rounds, ops=steps)
    allocators.free_all(addresses)
    libc.trim()
    return compared


def measure(count, live, batches, rounds, seed) -> Costs:
    """Measure all three kinds of work.

    Parameters
    ----------
    count, live, rounds, seed : int
    batches : list of int
        Sizes of batches for the cycles.
    """
    fill, faults = measure_fill(count, rounds)
    cycles = {batch: measure_cycles(batch, rounds) for batch in batches}
    return Costs(count, fill, measure_churn(live, min(live, 1 << 18), rounds, seed), cycles, faults)


def fill_table(costs) -> pd.DataFrame:
    """Lay out the fills: ns a block, ratio to the pool, page faults."""
    rows = []
    for name in costs.fill.variants:
        ratio = costs.fill.ratio(name, POOL)
        rows.append(
            {
                "blocks from": name,
                "ns a block": costs.fill.reading(name).text,
                "over the pool": ratio.value,
                "95 %": ratio.why or f"{ratio.low:.2f}–{ratio.high:.2f}",
                "page faults": costs.faults[name],
                "blocks handed out": costs.fill[name].checksum,
            }
        )
    return pd.DataFrame(rows)


def cycle_table(costs) -> pd.DataFrame:
    """Lay out the cycles: ns a block handed out and taken back, over the bare loop, by the size of the batch."""
    rows = []
    for batch, compared in costs.cycles.items():
        for name in compared.variants:
            ratio = compared.ratio(name, BARE)
            rows.append(
                {
                    "blocks from": name,
                    "batch": batch,
                    "ns a block": compared.reading(name).ns,
                    "over the bare loop": ratio.value,
                    "95 %": ratio.why or f"{ratio.low:.2f}–{ratio.high:.2f}",
                }
            )
    return pd.DataFrame(rows)


def chart(costs):
    """Draw ns a block for all kinds of work, with what was published.

    Parameters
    ----------
    costs : Costs

    Returns
    -------
    matplotlib.figure.Figure
    """
    batch, cycles = next(iter(costs.cycles.items()))
    kinds = {"fill": costs.fill, f"batches of {batch:,}": cycles, "churn": costs.churn}
    bars = [(kind, name, compared) for kind, compared in kinds.items() for name in compared.variants]
    published = {name: claims.by_id()["A1"].figure("mean", name).value for name in (POOL, MALLOC)}
    fig, axes = plt.subplots(figsize=(5.8, 0.3 * len(bars) + 1.4))
    for place, (kind, name, compared) in enumerate(bars):
        reading = compared.reading(name)
        colour = COLOURS[1] if name.startswith(MALLOC) else MUTED if name == BARE else COLOURS[0]
        colour = COLOURS[2] if name in ADDED else colour
        value = reading.ns or reading.floor_ns
        axes.barh(place, value - 0.3, left=0.3, color=colour, alpha=0.55 if "," in name else 1)
        text = f"{value:.3g}"
        if kind == "fill" and name in published:
            axes.plot([published[name]], [place], "D", color=INK, markersize=5)
            text += f" (published: {published[name]:g})"
        axes.annotate(text, (max(value, published.get(name, 0) if kind == "fill" else 0), place), xytext=(6, 0),
                      textcoords="offset points", va="center", color=MUTED, fontsize=9)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(0.3, 30 * max((one.reading(name).ns or 1) for _, name, one in bars))
    axes.set_yticks(range(len(bars)), [f"{name}: {kind}" for kind, name, _ in bars], fontsize=8.5)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("ns a block (bar from 0.3)")
    axes.set_ylabel("source and work")
    return fig


def sentence(costs) -> str:
    """Say what malloc costs over the pool, where that comes from, and how near the pool is to the bare loop."""
    row, steady = costs.fill_row(MALLOC, POOL), costs.churn.ratio(MALLOC, POOL)
    if row["value"] is None or steady.value is None:
        return f"Nothing can be said: {row['note'] or steady.why}."
    kept = costs.fill.ratio(KEPT, POOL)
    text = (
        f"In a fill of {costs.count:,} blocks malloc takes **{row['value']:.1f} times** as long as the pool "
        f"({row['low']:.1f} to {row['high']:.1f}), with {count_text(costs.faults[MALLOC])} page faults against "
        f"{count_text(costs.faults[POOL])}. "
    )
    if kept.value is not None:
        text += f"Where the heap kept its memory from the last fill, it is {kept.value:.1f} times. "
    text += f"When blocks are replaced at random among many, it is **{steady.value:.1f} times**. "
    bare = {batch: compared.ratio(POOL, BARE) for batch, compared in costs.cycles.items()}
    told = [f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f}) in batches of {batch:,}" for batch, one in bare.items()
            if one.value is not None]  # fmt: skip
    if told:
        text += (
            "Handing out a block and taking it back costs the pool "
            f"{' and '.join(told)} times a bare loop of one dependent load and one store."
        )
    return text


def arena_exists(count=1000) -> int:
    """Put an arena to the test (claim A6): distinct aligned blocks within it, then none, and all of them again.

    Returns
    -------
    int
        1 if it is what it claims to be, else 0.
    """
    size = np.uint64(block_pool.BLOCK_BYTES)
    one = arena.make_arena(count * block_pool.BLOCK_BYTES)
    offsets = [int(arena.allot(one, size, size)) for _ in range(count + 1)]
    arena.rewind(one, np.uint64(0))
    again = int(arena.allot(one, size, size))
    expected = [*range(0, count * block_pool.BLOCK_BYTES, block_pool.BLOCK_BYTES), int(arena.FULL)]
    return int(offsets == expected and again == 0)
