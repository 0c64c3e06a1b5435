"""What is said of figures whose threads had no core of their own (claim M4), and the ring under stress."""

from dataclasses import dataclass

import pandas as pd

from photonlab.errors import UserError
from photonlab.kernels.ring import make_ring
from photonlab.kernels.ring_variants import HOUSE, MAKERS, added
from photonlab.lab.publish.figures import number
from photonlab.lab.studies import ring_turns
from photonlab.lab.studies.ring_turns import SLOTS, Across, Stopwatch, Stream
from photonlab.machine import system
from photonlab.systems import spin
from photonlab.systems.experiments import copied_stress, ring_stress

PINNED, FREE = "pinned", "not pinned"
LONG = 10 * SLOTS
"""As many messages or more: on one CPU a ring's fill would be written, and then read, without any waiting."""


@dataclass(frozen=True)
class Trial:
    """One placement.

    Attributes
    ----------
    placement : str
    ns : float or None
        A message, one at a time; None where the run was refused.
    label : str
        What stands beside the figure, or the reason of the refusal.
    sound : bool
        Whether that is what must stand there.
    """

    placement: str
    ns: float | None
    label: str
    sound: bool


def trials(messages) -> list[Trial]:
    """Send messages one at a time from threads that are pinned, that are not, and that have only one CPU.

    Parameters
    ----------
    messages : int
    """
    found = []
    for pinning in (True, False):
        watch = Stopwatch(pinning)
        name = "each on a CPU of its own" if pinning else "not pinned"
        why = ring_turns.refused()
        if why:
            found.append(Trial(name, None, f"refused: {why}", True))
            continue
        stream = Stream(watch, make_ring(SLOTS), messages, 1)
        stream()
        begin = watch.ns
        stream()
        sound = not watch.unlabelled and (pinning or watch.label.startswith("indicative"))
        found.append(Trial(name, (watch.ns - begin) / messages, watch.label or "none needed", sound))
    try:
        with system.pinned(system.choose_cpus(1), strict=True):
            why = ring_turns.refused()
        found.append(Trial("both on one CPU", None, f"refused: {why}" if why else "nothing", bool(why)))
    except system.PlacementError as error:
        found.append(Trial("both on one CPU", None, f"not tried: {error}", True))
    return found


def measure_pinning(messages, rounds) -> Across:
    """Send messages one at a time from threads that are pinned, and from threads that are not, in turn.

    Parameters
    ----------
    messages, rounds : int
        Few messages do: two threads that the system puts on one CPU take a thousand times as long.
    """
    why = ring_turns.refused()
    if why:
        return ring_turns.nothing(why)
    watch, messages = Stopwatch(), max(messages, LONG)
    stream = Stream(watch, make_ring(SLOTS), messages, 1)

    def work(pinning):
        def run():
            watch.pinning = pinning
            return stream()

        return run

    try:
        return ring_turns.in_turn({PINNED: work(True), FREE: work(False)}, watch, messages, rounds)
    except spin.LostPartnerError as error:
        return ring_turns.nothing(str(error))


def pinning_sentence(found) -> str:
    """Say what it changes that each thread has a CPU of its own."""
    row = found.ratio(FREE, PINNED)
    if row["value"] is None:
        return f"What pinning changes cannot be told: {row['note']}."
    side = "longer" if row["low"] > 1 else "less long" if row["high"] < 1 else "not clearly longer or less long"
    far = " The system put both on one CPU at times, where one waits for the other's time slice." * (row["high"] > 20)
    return (
        f"From threads that are not pinned a message takes {side}: **{number(row['value'])} times** the time "
        f"({number(row['low'])} to {number(row['high'])}).{far}"
    )


def table(found) -> pd.DataFrame:
    """Lay out what stands beside a figure by placement."""
    return pd.DataFrame(
        {"threads": one.placement, "ns a message": one.ns, "what is said of it": one.label} for one in found
    )


def unlabelled(found, measured) -> int:
    """Count figures across cores without the label that they need.

    Parameters
    ----------
    found : list of Trial
    measured : list of Across
        All that was measured across cores.
    """
    return sum(not one.sound for one in found) + sum(one.unlabelled for one in measured)


def stress(seconds, messages, seed):
    """Stress rings of all shapes for a while; None with the reason where two threads cannot spin.

    Parameters
    ----------
    seconds : float
    messages : int
        For each ring.
    seed : int

    Returns
    -------
    tuple of (photonlab.systems.experiments.ring_stress.Stressed or None, str)
    """
    try:
        return ring_stress.stress_for(seconds, messages, seed), ""
    except (system.PlacementError, spin.LostPartnerError) as error:
        return None, str(error)


def stress_sentence(found, why) -> str:
    """Say what became of the messages."""
    if found is None:
        return f"The ring was not put under stress: {why}."
    harm = "nothing was lost, repeated, reordered or torn" if found.sound else "**the ring failed**"
    return (
        f"Of {found.sent:,} messages {found.got:,} arrived, with {found.wrong:,} wrong words and "
        f"{'equal' if found.equal else 'different'} checksums: {harm}. {found.full:,} times the ring had too little "
        f"room, {found.empty:,} times it was empty, and in {found.wrapped:,} "
        f"ring{'' if found.wrapped == 1 else 's'} the indices ran through 2^64."
    )


def stress_row(found, why) -> dict:
    """Arguments of `record`: messages that were lost, repeated, reordered or torn, at least."""
    if found is None:
        return {"value": None, "unit": "1", "note": why}
    harmed = abs(found.sent - found.got) + found.wrong + (not found.equal)
    return {"value": int(harmed), "unit": "1", "note": f"of {found.sent:,} messages"}


def stress_added(messages, seed) -> dict:
    """Stress each ring that somebody added; empty where there is none, or two threads cannot spin.

    Parameters
    ----------
    messages : int
        For each ring.
    seed : int

    Returns
    -------
    dict of str to photonlab.systems.experiments.copied_stress.Outcome

    Raises
    ------
    UserError
        One lost, repeated, reordered or tore a message.
    """
    found = {}
    for name in () if ring_turns.refused() else [kind for kind in added().values() if kind not in HOUSE]:
        found[name] = copied_stress.stress(MAKERS[name](SLOTS), messages, 512, seed, seconds=60.0)
        if found[name].reason:
            raise UserError(f"ring {name!r} failed under stress: {found[name].reason}")
    return found


def added_sentence(found) -> str:
    """Say what became of the messages of added rings; an empty text if there are none."""
    return " ".join(f"Through the ring {name!r} went {one.got:,} messages, none harmed." for name, one in found.items())
