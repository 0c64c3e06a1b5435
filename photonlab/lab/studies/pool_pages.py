"""Small and huge pages under the pool, and memory touched beforehand or not, with the faults (claims R7 and A7)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from photonlab.kernels import block_pool, list_walk
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.studies.pool_cost import PoolFill, count_text, faults_of
from photonlab.machine import latency
from photonlab.systems.experiments import allocators

SMALL, HUGE = "4 KB pages", "2 MB pages"
PAGES = {SMALL: False, HUGE: True}
CHURN, SHUFFLED_WALK, WALK = "blocks replaced at random", "walk, shuffled", "walk, in order"
UNTOUCHED, TOUCHED = "untouched", "pre-faulted"

BACKED = 0.5
"""Share of the memory that must lie in huge pages for a comparison to be one of pages."""


@dataclass(frozen=True)
class Pages:
    """The same work on both sizes of pages.

    Attributes
    ----------
    works : dict of str to Comparison
        By kind of work: times a step or node, of `SMALL` and `HUGE`.
    backed : dict of str to (float or None)
        Share of the blocks' memory that lies in huge pages, by what was asked for.
    faults : dict of str to (int or None)
        Page faults in touching all of it once.
    """

    works: dict
    backed: dict
    faults: dict

    def row(self, work=CHURN) -> dict:
        """Arguments of `record` for claim R7."""
        share = self.backed[HUGE]
        if share is not None and share < BACKED:
            return {"value": None, "unit": "×", "note": f"only {100 * share:.0f} % of the memory got huge pages"}
        row = self.works[work].ratio(SMALL, HUGE).row
        asked = "" if share is None else f"{100 * share:.0f} % in huge pages where asked for; "
        return row if row["value"] is None else row | {"note": f"{work}; {asked}{self.works[work].note}"}


class _Used:
    """A pool with all but one of its blocks in use, linked in shuffled order, and the work to be done with it."""

    def __init__(self, count, huge, seed):
        rng = np.random.default_rng(seed)
        self.blocks = block_pool.make_blocks(count + 1, huge=huge)
        self.live = np.zeros(count, np.uint32)
        allocators.pool_fill(self.blocks, self.live)
        self.count, self.live = count, rng.permutation(self.live)
        self.victims = rng.integers(0, count, count // 4).astype(np.uint32)

    def churn(self):
        return int(allocators.pool_churn(self.blocks, self.live, self.victims))

    def link(self, order):
        """Link all blocks anew; from then on `walk` follows them."""
        places = order * np.uint32(block_pool.BLOCK_WORDS)
        list_walk.link(self.blocks.words, places)
        self.first = np.uint64(places[0])

    def walk(self):
        total, seen = list_walk.walk(self.blocks.words, self.first, np.uint64(self.count + 1))
        return int(total) + int(seen)


def measure_pages(count, rounds, seed) -> Pages:
    """Replace blocks at random, and walk along them, on both sizes of pages in turn.

    Parameters
    ----------
    count, rounds, seed : int
    """
    pools = {name: _Used(count, huge, seed) for name, huge in PAGES.items()}
    for one in pools.values():
        one.churn()  # from now on each block holds the step of the pass before
    steps = min(one.victims.size for one in pools.values())
    churns = {name: one.churn for name, one in pools.items()}
    works = {CHURN: timing.compare(churns, rounds=3 * rounds, ops=steps)}  # a tenth as long as the walks
    forward = block_pool.hand_out_order("forward", count, seed)
    for work, order in ((SHUFFLED_WALK, block_pool.hand_out_order("shuffled", count, seed)), (WALK, forward)):
        for one in pools.values():
            one.link(order)
        walks = {name: one.walk for name, one in pools.items()}
        works[work] = timing.compare(walks, rounds=rounds, ops=count, retakes=rounds // 2)
    backed = {name: latency.huge_share(one.blocks.words) for name, one in pools.items()}
    faults = {name: faults_of(PoolFill(count, touched=False, huge=huge)) for name, huge in PAGES.items()}
    return Pages(works, backed, faults)


def page_table(found) -> pd.DataFrame:
    """Lay out the work on both sizes of pages."""
    rows = []
    for work, compared in found.works.items():
        ratio = compared.ratio(SMALL, HUGE)
        rows.append(
            {
                "work": work,
                f"{SMALL} [ns]": compared.reading(SMALL).ns,
                f"{HUGE} [ns]": compared.reading(HUGE).ns,
                "ratio": ratio.value,
                "95 %": ratio.why or f"{ratio.low:.2f}–{ratio.high:.2f}",
            }
        )
    return pd.DataFrame(rows)


def page_sentence(found) -> str:
    """Say what huge pages are worth to the pool, where they were had."""
    row = found.row()
    if row["value"] is None:
        return f"Nothing can be said of huge pages: {row['note']}."
    walk, ordered = found.row(SHUFFLED_WALK), found.row(WALK)
    text = f"Replacing blocks at random takes **{row['value']:.2f} times** as long on 4 KiB pages as on 2 MiB pages "
    text += f"({row['low']:.2f} to {row['high']:.2f})"
    for name, one in (("a shuffled walk", walk), ("a walk in order", ordered)):
        if one["value"] is not None:
            text += f", {name} {one['value']:.2f} times ({one['low']:.2f} to {one['high']:.2f})"
    faults = f"{count_text(found.faults[SMALL])} against {count_text(found.faults[HUGE])}"
    return text + f". Touching the memory once is {faults} page faults."


@dataclass(frozen=True)
class FirstPass:
    """Fills of a pool on memory touched beforehand or not, on both sizes of pages.

    Attributes
    ----------
    comparison : Comparison
        Times a block; variants such as "untouched, 4 KB pages".
    faults : dict of str to (int or None)
        Page faults in one fill.
    """

    comparison: Comparison
    faults: dict

    def row(self, pages=SMALL) -> dict:
        """Arguments of `record` for claim A7: a fill of untouched memory over one of memory touched beforehand."""
        cold, warm = f"{UNTOUCHED}, {pages}", f"{TOUCHED}, {pages}"
        row = self.comparison.ratio(cold, warm).row
        faults = f"{count_text(self.faults[cold])} page faults against {count_text(self.faults[warm])}"
        return row if row["value"] is None else row | {"note": f"{pages}: {faults}; {self.comparison.note}"}


def measure_first_pass(count, rounds) -> FirstPass:
    """Fill new pools, touched beforehand and not, on both sizes of pages in turn.

    Parameters
    ----------
    count, rounds : int
    """
    works = {}
    for pages, huge in PAGES.items():
        works[f"{UNTOUCHED}, {pages}"] = PoolFill(count, touched=False, huge=huge)
        works[f"{TOUCHED}, {pages}"] = _TouchedAnew(count, huge)
    setup = {name: work.prepare for name, work in works.items()}
    compared = timing.compare(works, rounds=rounds, ops=count, setup=setup, retakes=rounds // 2)
    return FirstPass(compared, {name: faults_of(work) for name, work in works.items()})


class _TouchedAnew(PoolFill):
    """A pool on new memory each time, like the untouched one, but touched before the clock starts."""

    def __init__(self, count, huge):
        super().__init__(count, touched=True, huge=huge)

    def prepare(self):
        self.blocks = None
        self.blocks = block_pool.make_blocks(self.count, huge=self.huge, populate=True)


def first_pass_table(found) -> pd.DataFrame:
    """Lay out the fills: ns a block and page faults."""
    rows = []
    for name in found.comparison.variants:
        state, pages = name.split(", ")
        ratio = found.comparison.ratio(name, f"{TOUCHED}, {pages}")
        rows.append(
            {
                "memory": name,
                "ns a block": found.comparison.reading(name).ns,
                "over pre-faulted": ratio.value if state == UNTOUCHED else None,
                "95 %": ratio.why or f"{ratio.low:.2f}–{ratio.high:.2f}" if state == UNTOUCHED else "",
                "page faults": found.faults[name],
            }
        )
    return pd.DataFrame(rows)


def first_pass_sentence(found) -> str:
    """Say what touching memory beforehand takes off the first pass, for each size of pages."""
    parts = []
    for pages in PAGES:
        row = found.row(pages)
        if row["value"] is None:
            parts.append(f"nothing can be said of {pages}, because {row['note']}")
            continue
        faults = tuple(count_text(found.faults[f"{state}, {pages}"]) for state in (UNTOUCHED, TOUCHED))
        parts.append(
            f"with {pages} a fill of untouched memory takes **{row['value']:.1f} times** as long "
            f"({row['low']:.1f} to {row['high']:.1f}), with {faults[0]} page faults against {faults[1]}"
        )
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + ". The faults are moved to before the pass, not avoided."
