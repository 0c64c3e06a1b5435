"""A ring under stress: batches of all sizes, long pauses on either side, indices that run through 2^64.

    python -m photonlab.systems.experiments.ring_stress --seconds 60

Each message carries its number, mixed anew for each of its words, and the reader compares every word with what must
come next: nothing may be lost, repeated, reordered or torn. Exit code 1 if anything was.
"""

import argparse
import itertools
import sys
import time
from dataclasses import dataclass

import numpy as np

from photonlab.errors import UserError
from photonlab.kernels import ring as rings
from photonlab.machine.atomics import load_acquire, plain_load, plain_store
from photonlab.machine.jit import kernel
from photonlab.systems import spin
from photonlab.systems.spin import given_up, meet

_0, _1 = np.uint64(0), np.uint64(1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT, _LOW = np.uint64(29), np.uint64(0xFF)
MESSAGES, CHECKSUM, WRONG, EDGES = 0, 1, 2, 3
"""What each side leaves in its report (ndarray of uint64, shape (4,)): messages, sum of all words, wrong words, and how
often the ring was full (or empty) for it."""

SLOTS, WORDS, APART = (1, 2, 16, 256, 4096), (1, 8, 9, 16), (1, rings.GRANULE_WORDS)


@kernel(inner=True)
def mixed(number):
    """Return a word in which every bit depends on the number."""
    number = (number ^ (number >> _SHIFT)) * _GOLDEN
    return number ^ (number >> _SHIFT)


@kernel(inner=True)
def loiter(flags, dice):
    """Once in about 256 times do nothing for up to some µs, so that the other side comes to the end of the ring."""
    if dice & _LOW == _0:
        for _ in range((dice >> np.uint64(8)) & np.uint64(0x3FF)):
            load_acquire(flags, spin.STOP)


@kernel
def pour(ring, flags, count, most, seed, report):
    """Write `count` messages in batches of 1 to `most`, as a generator seeded with `seed` has it."""
    if not meet(flags, _0):
        return
    sent, total, edges, spins, dice = _0, _0, _0, _0, mixed(seed)
    while sent < count:
        dice = mixed(dice + _GOLDEN)
        wanted = min(_1 + (dice >> np.uint64(32)) % most, count - sent)
        free = rings.room(ring, wanted)
        edges += np.uint64(free < wanted and spins == _0)
        if free == _0:
            if given_up(flags, spins):
                break
            spins += _1
            continue
        first, spins = rings.head(ring), _0
        for i in range(free):
            place = rings.slot(ring, first + i)
            for j in range(ring.slot_words):
                word = mixed(((sent + i) << np.uint64(8)) + j)
                plain_store(ring.words, place + j, word)
                total += word
        rings.publish(ring, free)
        sent += free
        loiter(flags, dice)
    report[MESSAGES], report[CHECKSUM], report[EDGES] = sent, total, edges


@kernel
def drain(ring, flags, count, most, seed, report):
    """Read `count` messages in batches of 1 to `most`, and compare each word with what must come next."""
    if not meet(flags, _1):
        return
    got, total, wrong, edges, spins, dice = _0, _0, _0, _0, _0, mixed(seed + _1)
    while got < count:
        dice = mixed(dice + _GOLDEN)
        there = rings.waiting(ring, _1 + (dice >> np.uint64(32)) % most)
        if there == _0:
            edges += np.uint64(spins == _0)
            if given_up(flags, spins):
                break
            spins += _1
            continue
        first, spins = rings.tail(ring), _0
        for i in range(there):
            place = rings.slot(ring, first + i)
            for j in range(ring.slot_words):
                word = plain_load(ring.words, place + j)
                total += word
                wrong += np.uint64(word != mixed(((got + i) << np.uint64(8)) + j))
        rings.release(ring, there)
        got += there
        loiter(flags, dice)
    report[MESSAGES], report[CHECKSUM], report[WRONG], report[EDGES] = got, total, wrong, edges


@dataclass(frozen=True)
class Stressed:
    """What became of the messages of one ring, or in sum of several.

    Attributes
    ----------
    sent, got : int
        Messages.
    wrong : int
        Words that were not what must come next.
    equal : bool
        Whether both sides have the same checksum.
    full, empty : int
        How often the producer found less room than it wanted, and the consumer nothing.
    wrapped : int
        Rings whose indices ran through 2^64.
    """

    sent: int
    got: int
    wrong: int
    equal: bool
    full: int
    empty: int
    wrapped: int

    @property
    def sound(self) -> bool:
        """Whether nothing was lost, repeated, reordered or torn."""
        return self.sent == self.got and not self.wrong and self.equal

    def __add__(self, other):
        sums = [a + b for a, b in zip(self._counts, other._counts, strict=True)]
        return Stressed(*sums[:3], self.equal and other.equal, *sums[3:])

    @property
    def _counts(self):
        return self.sent, self.got, self.wrong, self.full, self.empty, self.wrapped


NOTHING = Stressed(0, 0, 0, True, 0, 0, 0)


def stress(count, slots=256, words=8, apart=rings.GRANULE_WORDS, seed=1, seconds=60.0) -> Stressed:
    """Send messages through one ring, whose indices pass 2^64 half way.

    Parameters
    ----------
    count : int
        Messages, 2 or more.
    slots, words, apart : int
        Of the ring.
    seed : int
        Of batch sizes and pauses.
    seconds : float
        Deadline.
    """
    ring = rings.make_ring(slots, words, apart=apart, start=-(count // 2))
    sent, got = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
    count, most, seed = np.uint64(count), np.uint64(min(2 * slots, 512)), np.uint64(seed)
    spin.together(
        lambda flags: pour(ring, flags, count, most, seed, sent),
        lambda flags: drain(ring, flags, count, most, seed, got),
        seconds,
    )
    return Stressed(
        int(sent[MESSAGES]),
        int(got[MESSAGES]),
        int(got[WRONG]),
        sent[CHECKSUM] == got[CHECKSUM],
        int(sent[EDGES]),
        int(got[EDGES]),
        int(int(ring.words[rings.HEAD]) < int(count)),
    )


def stress_for(seconds, messages=1_000_000, seed=1) -> Stressed:
    """Stress rings of all shapes in turn, `messages` each, until the time is up; at least one.

    Parameters
    ----------
    seconds : float
    messages, seed : int
    """
    until, total = time.monotonic() + seconds, NOTHING
    for turn, (apart, words, slots) in enumerate(itertools.cycle(itertools.product(APART, WORDS, SLOTS))):
        total += stress(messages, slots, words, apart, seed + turn)
        if time.monotonic() >= until or not total.sound:
            return total


def main(arguments) -> int:
    """Stress rings, print what happened, and return the exit code."""
    parser = argparse.ArgumentParser(prog="ring_stress", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--messages", type=int, default=1_000_000, help="for each ring")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        found = stress_for(options.seconds, options.messages, options.seed)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"{found.sent:,} messages sent, {found.got:,} received, {found.wrong:,} words wrong, "
        f"checksums {'equal' if found.equal else 'DIFFERENT'}; "
        f"full {found.full:,} times, empty {found.empty:,} times, indices wrapped in {found.wrapped:,} rings"
    )
    return 0 if found.sound else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
