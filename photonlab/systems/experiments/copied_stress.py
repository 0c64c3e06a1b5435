"""A ring of anybody's own under stress: what was copied in must come out whole, once, and in its order.

As `ring_stress` does with the house's ring in place, here by copies: batches of all sizes, long pauses on either side,
words that are mixed anew for each message. The first message that is not the one due is kept, so that the reason can be
named.
"""

from dataclasses import dataclass

import numpy as np

from photonlab.kernels.ring_variants import fetch, put
from photonlab.machine.atomics import plain_load, plain_store, store_release
from photonlab.machine.jit import kernel
from photonlab.systems import spin
from photonlab.systems.experiments.ring_stress import loiter, mixed
from photonlab.systems.spin import given_up, meet

_0, _1 = np.uint64(0), np.uint64(1)
_EIGHT, _HIGH = np.uint64(8), np.uint64(32)
MESSAGES, WRONG, DUE, CAME, EXCESS = 0, 1, 2, 3, 11
"""What the reader leaves in its report (ndarray of uint64, shape (12,)): messages, wrong ones, the number of the one
that was due when the first wrong one came, the 8 words of that one, and how many came if more than were asked for."""
_CAME = np.uint64(CAME)


@kernel
def pour(queue, flags, count, most, seed, report):
    """Put in `count` messages of 8 words in batches of 1 to `most`, as a generator seeded with `seed` has it."""
    if not meet(flags, _0):
        return
    sent, spins, dice = _0, _0, mixed(seed)
    while sent < count:
        dice = mixed(dice + seed)
        wanted = min(_1 + (dice >> _HIGH) % most, count - sent)
        for i in range(wanted):
            for j in range(_EIGHT):
                plain_store(queue.source, i * _EIGHT + j, mixed(((sent + i) << _EIGHT) + j))
        taken = put(queue, wanted)
        if taken > wanted:
            report[EXCESS] = taken
            store_release(flags, spin.STOP, np.uint64(spin.ENDED))
            break
        if taken == _0:
            if given_up(flags, spins):
                break
            spins += _1
            continue
        spins = _0
        sent += taken
        loiter(flags, dice)
    report[MESSAGES] = sent


@kernel
def drain(queue, flags, count, most, seed, report):
    """Fetch `count` messages in batches of 1 to `most`, and compare each with the one due."""
    if not meet(flags, _1):
        return
    got, spins, dice = _0, _0, mixed(seed + _1)
    while got < count:
        dice = mixed(dice + seed)
        wanted = _1 + (dice >> _HIGH) % most
        there = fetch(queue, wanted)
        if there > wanted:
            report[EXCESS] = there
            store_release(flags, spin.STOP, np.uint64(spin.ENDED))
            break
        if there == _0:
            if given_up(flags, spins):
                break
            spins += _1
            continue
        spins = _0
        for i in range(there):
            right = True
            for j in range(_EIGHT):
                word = plain_load(queue.into, i * _EIGHT + j)
                right = right and word == mixed(((got + i) << _EIGHT) + j)
            if not right:
                if report[WRONG] == _0:
                    report[DUE] = got + i
                    for j in range(_EIGHT):
                        report[_CAME + j] = queue.into[i * _EIGHT + j]
                report[WRONG] += _1
        got += there
        if report[WRONG] != _0:  # what comes after it would all be wrong
            store_release(flags, spin.STOP, np.uint64(spin.ENDED))
            break
        loiter(flags, dice)
    report[MESSAGES] = got


@dataclass(frozen=True)
class Outcome:
    """What became of the messages of one ring.

    Attributes
    ----------
    sent, got, wrong : int
        Messages; wrong ones are not what was due.
    reason : str
        What went wrong first; empty if nothing did.
    """

    sent: int
    got: int
    wrong: int
    reason: str


def words_of(number) -> np.ndarray:
    """Return the 8 words of a message (uint64)."""
    return _mix((np.uint64(number) << _EIGHT) + np.arange(8, dtype=np.uint64))


def _mix(numbers):
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return numbers ^ (numbers >> np.uint64(29))


def told(came, due, count) -> str:
    """Say what a message is that is not the one due.

    Parameters
    ----------
    came : ndarray of uint64, shape (8,)
    due, count : int
        Its number, and how many messages were sent.
    """
    known = _mix(np.arange(count, dtype=np.uint64) << _EIGHT)
    found = np.flatnonzero(known == came[0])
    if not found.size or (words_of(int(found[0])) != came).any():
        return f"where message {due:,} was due came words never sent together: it was torn, or not yet written"
    number = int(found[0])
    if number < due:
        return f"message {number:,} came again where {due:,} was due"
    return f"message {number:,} came where {due:,} was due: messages were lost, or overtaken"


def stress(queue, count, most, seed=1, seconds=10.0) -> Outcome:
    """Send messages from one thread to another through a ring of 8 words a message.

    Parameters
    ----------
    queue : NamedTuple
        With `put` and `fetch`.
    count, most, seed : int
        Messages, the largest batch, and what batches and pauses follow from.
    seconds : float
        Deadline.

    Raises
    ------
    photonlab.machine.system.PlacementError
        Two threads cannot spin here.
    """
    sent, got = np.zeros(12, np.uint64), np.zeros(12, np.uint64)
    number, most, seed = np.uint64(count), np.uint64(most), np.uint64(seed)
    try:
        spin.together(
            lambda flags: pour(queue, flags, number, most, seed, sent),
            lambda flags: drain(queue, flags, number, most, seed, got),
            seconds,
        )
        late = ""
    except spin.LostPartnerError:
        late = (
            f"after {seconds:g} s {int(sent[MESSAGES]):,} of {count:,} messages had gone in and "
            f"{int(got[MESSAGES]):,} come out: messages were lost, or a side never sees the other's index (read it by "
            "load_acquire)"
        )
    wrong = int(got[WRONG])
    if sent[EXCESS] or got[EXCESS]:
        verb = "push took" if sent[EXCESS] else "pop gave"
        reason = f"{verb} {int(max(sent[EXCESS], got[EXCESS])):,} messages at once, more than it was asked to"
    elif wrong:
        reason = told(got[CAME : CAME + 8], int(got[DUE]), count)
    else:
        reason = late
    return Outcome(int(sent[MESSAGES]), int(got[MESSAGES]), wrong, reason)
