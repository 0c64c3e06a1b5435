"""Every execution that release and acquire allow of a small ring, and of flawed ones: what a test run cannot show."""

from dataclasses import dataclass

import pandas as pd

from photonlab.lab.studies.ring_sanitizer import change
from photonlab.systems.experiments import model_check
from photonlab.systems.experiments.model_check import Outcome
from photonlab.systems.experiments.ring_flaws import FLAWS, SOUND


@dataclass(frozen=True)
class Checked:
    """The ring as it is, and each flawed one, on two machines.

    Attributes
    ----------
    weak, strong : dict of str to Outcome
        By name of the ring: loads may take what the order allows; loads take the newest store.
    """

    weak: dict[str, Outcome]
    strong: dict[str, Outcome]

    @property
    def ring(self):
        """What was gone through: slots, messages, batch."""
        return self.weak[SOUND].ring


def measure(slots=2, messages=5, words=2, batch=2) -> Checked:
    """Go through all executions.

    Parameters
    ----------
    slots, messages, words, batch : int
        Of the small ring; the number of states grows steeply with each.

    Returns
    -------
    Checked
    """
    bits = max((2 * slots).bit_length(), 3)  # the indices wrap around within a few messages
    found = []
    for strong in (False, True):
        rings = {name: model_check.Ring(slots, words, messages, batch, bits, name, strong) for name in (SOUND, *FLAWS)}
        found.append({name: model_check.check(ring) for name, ring in rings.items()})
    return Checked(*found)


def table(found) -> pd.DataFrame:
    """Lay out, for each ring, the states and the shortest executions that go wrong."""
    return pd.DataFrame(
        {
            "ring": name,
            "change": change(name),
            "states": weak.states,
            "data race": _after(weak.race),
            "wrong word": _after(weak.wrong),
            "wrong word, loads take the newest": _after(found.strong[name].wrong),
        }
        for name, weak in found.weak.items()
    )


def sentence(found) -> str:
    """Say whether the ring is right in all executions, and which flaws are found; Markdown."""
    ring, sound = found.ring, found.weak[SOUND]
    what = (
        f"{ring.messages} messages of {ring.words} words through {ring.slots} slots, up to {ring.batch} at a time, "
        f"with indices of {ring.bits} bits that wrap around on the way"
    )
    holds = (
        f"In every execution of the ring as it is ({sound.states:,} states: {what}) each word is the message's, no two "
        "accesses race, and the end can be reached from every state."
        if sound.sound
        else f"**The ring as it is fails** ({what})."
    )
    flawed = {name: one for name, one in found.weak.items() if name != SOUND}
    caught = [name for name, one in flawed.items() if not one.sound]
    hidden = [name for name in caught if found.strong[name].sound]
    racing = [name for name in caught if flawed[name].race and not flawed[name].wrong]
    race = (
        f" With {' and '.join(racing)} the model finds the race and no wrong word: it carries out no load after a "
        "later store, which the order would allow."
        if racing
        else ""
    )
    return (
        f"{holds} {'All' if len(caught) == len(flawed) else f'{len(caught)} of'} {len(flawed)} flaws are found. "
        f"{len(hidden)} of them do not show where every load takes the newest store: they are wrong only by what a "
        f"weaker machine, or a compiler, may do.{race}"
    )


def trace(found, name) -> str:
    """Tell the shortest execution of a flawed ring that goes wrong, step by step; Markdown.

    Parameters
    ----------
    found : Checked
    name : str
        Of a ring.

    Returns
    -------
    str
    """
    outcome = found.weak[name]
    steps = outcome.wrong or outcome.race
    if steps is None:
        return f"No execution of the {name} goes wrong."
    return f"*{name}*, the shortest way to a {'wrong word' if outcome.wrong else 'data race'}:\n\n" + "\n".join(
        f"{number}. {step}" for number, step in enumerate(steps, 1)
    )


def _after(steps):
    return "none" if steps is None else f"after {len(steps)} steps"
