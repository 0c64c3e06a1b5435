"""What finding a slot costs before memory is asked: mask against modulo (R8), finaliser against finaliser (R10)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from photonlab.kernels.chained import next_prime
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.systems.experiments import hash_cost

SIZE = 1 << 24
"""Slots of the table that claim R8 speaks of; a size that the compiler does not know."""

MASK, MODULO, PRIME = "mask", "modulo", "modulo by a prime"
FULL, SHORT, SPLITMIX = "full finaliser", "cut-down finaliser", "splitmix64"
_CHAINS = {
    MASK: (hash_cost.MASK, SIZE),
    MODULO: (hash_cost.MODULO, SIZE),
    PRIME: (hash_cost.MODULO, next_prime(SIZE)),
    FULL: (hash_cost.MURMUR, SIZE),
    SHORT: (hash_cost.SHORT_MURMUR, SIZE),
    SPLITMIX: (hash_cost.SPLITMIX64, SIZE),
}


@dataclass(frozen=True)
class Costs:
    """Chains of dependent steps, the bare chain subtracted, and independent steps.

    Attributes
    ----------
    dependent, independent : Comparison
        Net ns a step.
    cycle_ns : float
        Length of a cycle: the bare chain takes two a step.
    """

    dependent: Comparison
    independent: Comparison
    cycle_ns: float

    def cycles(self, name) -> float | None:
        """Net cycles of a step in the dependent chain; None at the floor."""
        ns = self.dependent.reading(name).ns
        return None if ns is None else ns / self.cycle_ns


def measure(steps, rounds) -> Costs:
    """Time the chains in turn, the bare one beside each.

    Parameters
    ----------
    steps : int
        Of each chain.
    rounds : int
    """
    count = np.uint64(steps)

    def run(kernel, what, number):
        return lambda: int(kernel(what, count, np.uint64(number)) & np.uint64((1 << 52) - 1))

    bare = run(hash_cost.chain, hash_cost.BARE, SIZE)
    dependent = timing.compare(
        {name: run(hash_cost.chain, *arguments) for name, arguments in _CHAINS.items()},
        rounds=rounds, ops=steps, empty=bare, same_checksums=False, retakes=rounds // 2,
    )  # fmt: skip
    loose = run(hash_cost.independent, hash_cost.BARE, SIZE)
    independent = timing.compare(
        {name: run(hash_cost.independent, *_CHAINS[name]) for name in (MASK, MODULO, PRIME)} | {"neither": loose},
        rounds=rounds, ops=steps, same_checksums=False, retakes=rounds // 2,
    )  # fmt: skip
    alone = timing.measure(bare, repeats=rounds, ops=steps)
    reading = alone.reading()
    return Costs(dependent, independent, (reading.ns or reading.floor_ns) / hash_cost.BARE_CYCLES)


def table(costs):
    """Lay out the chains.

    Parameters
    ----------
    costs : Costs

    Returns
    -------
    DataFrame
    """
    rows = []
    for name in _CHAINS:
        reading, loose = costs.dependent.reading(name), costs.independent.variants.get(name)
        rows.append(
            {
                "step": name,
                "net [ns]": reading.ns,
                "95 %": f"{reading.low:.3g}–{reading.high:.3g}" if reading.ns is not None else reading.text,
                "net [cycles]": costs.cycles(name),
                "independent, loop included [ns]": None if loose is None else costs.independent.reading(name).ns,
            }
        )
    return pd.DataFrame(rows)


def sentence(costs):
    """Say what a mask and a modulo cost here.

    Parameters
    ----------
    costs : Costs

    Returns
    -------
    str
        Markdown.
    """
    mask, modulo, ratio = costs.cycles(MASK), costs.cycles(MODULO), costs.dependent.ratio(MODULO, MASK)
    if ratio.value is None or mask is None or modulo is None:
        return f"The chains could not be told from the bare one: {ratio.why}."
    loose = costs.independent.ratio(MODULO, MASK)
    apart = "" if loose.value is None else f"; where steps do not wait for each other, {loose.value:.1f} times the loop"
    return (
        f"Where the next step waits for it, a mask takes {mask:.2f} cycles and a modulo of 64 bits **{modulo:.1f}**: "
        f"{ratio.value:.1f} times as much ({ratio.low:.1f} to {ratio.high:.1f}){apart}. A cycle is "
        f"{costs.cycle_ns:.3f} ns here, from {hash_cost.BARE_CYCLES} cycles for a step of the bare chain."
    )
