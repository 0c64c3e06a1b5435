"""Does the weaker store show? Both threads missing each other's store, counted (beside claim S10)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from photonlab.machine.memory import huge_array
from photonlab.machine.system import PlacementError
from photonlab.systems import spin
from photonlab.systems.experiments.store_buffering import WORDS, store_and_look

WEAK, STRONG = "release and acquire", "sequentially consistent"


@dataclass(frozen=True)
class Buffered:
    """How often neither thread saw the other's store.

    Attributes
    ----------
    rounds : int
    missed : dict of str to int
        By order; empty if nothing was measured.
    label : str
        What must be said of the placement.
    why : str
        Why nothing was measured.
    """

    rounds: int
    missed: dict[str, int]
    label: str = ""
    why: str = ""

    def rows(self) -> list[dict]:
        """Arguments of `record`: rounds in which both loads came before both stores, by order."""
        note = self.why or "; ".join(filter(None, (f"of {self.rounds:,} rounds", self.label)))
        return [
            {
                "statistic": "both stores missed",
                "variant": order,
                "value": self.missed.get(order),
                "unit": "1",
                "note": note,
            }
            for order in (WEAK, STRONG)
        ]


def measure(rounds) -> Buffered:
    """Let two threads store and look in as many rounds, under either order.

    Parameters
    ----------
    rounds : int

    Returns
    -------
    Buffered
    """
    missed, label = {}, ""
    for order in (WEAK, STRONG):
        words, notes = huge_array(WORDS, np.uint64, populate=True), np.zeros((2, rounds), np.uint8)

        def side(number, words=words, notes=notes, strong=order == STRONG):
            return lambda flags: store_and_look(words, np.uint64(number), strong, flags, notes[number])

        try:
            done = spin.together(side(0), side(1))
        except (PlacementError, spin.LostPartnerError) as error:
            return Buffered(rounds, {}, why=str(error))
        missed[order], label = int((notes[0] & notes[1]).sum()), done.label
    return Buffered(rounds, missed, label)


def table(found) -> pd.DataFrame:
    """Lay out the counts."""
    return pd.DataFrame(
        {"order": order, "rounds": found.rounds, "neither saw the other's store": found.missed.get(order)}
        for order in (WEAK, STRONG)
    )


def sentence(found) -> str:
    """Say whether the difference shows on this machine; Markdown."""
    if found.why:
        return f"Whether the weaker store shows cannot be tried here: {found.why}."
    weak, strong = found.missed[WEAK], found.missed[STRONG]
    if strong:
        return f"**Neither saw the other's store in {strong:,} rounds under sequential consistency, which forbids it.**"
    if not weak:
        return f"In {found.rounds:,} rounds the weaker order did not show here: allowed is not required."
    share = f"{weak:,} of {found.rounds:,} rounds ({100 * weak / found.rounds:.2g} %)"
    return (
        f"It shows: with release and acquire neither thread saw the other's store in {share}, with sequentially "
        "consistent stores in none. The ring does not need those: each side waits for what the other has published, "
        "and draws no conclusion from what it does not see."
    )
