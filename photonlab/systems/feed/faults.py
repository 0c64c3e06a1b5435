"""Faults planted on a line of a feed, by a seed: packets that are lost, repeated, or overtaken by the next one.

What befalls a packet follows from the seed, the line and the packet's number alone, so that a run can be repeated, and
a test knows beforehand what is missing.
"""

from typing import NamedTuple

import numpy as np

from photonlab.errors import UserError
from photonlab.machine.jit import kernel

_0 = np.uint64(0)
_BITS = 21  # of each of three numbers
_MASK = np.uint64((1 << _BITS) - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOST, REPEATED, LATE, SOUND = (np.uint64(i) for i in range(4))


class Faults(NamedTuple):
    """How often what befalls the packets of a line, as shares from 0 to 1; the first that does counts."""

    lost: float = 0.0
    repeated: float = 0.0
    late: float = 0.0
    """Sent behind the next packet of the line."""


def words_of(faults, seed, line) -> np.ndarray:
    """Return faults as a kernel takes them: three bounds in units of 2^-21, and a key.

    Raises
    ------
    UserError
        A share that is none.
    """
    for name, share in faults._asdict().items():
        if not 0 <= share <= 1:
            raise UserError(f"the share of packets that are {name} is from 0 to 1, not {share}")
    bounds = [round(share * (1 << _BITS)) for share in faults]
    return np.array([*bounds, (seed * 2 + line + 1) * int(_GOLDEN) % (1 << 64)], np.uint64)


@kernel(inner=True)
def fate(faults, packet):
    """Return what befalls a packet of a number: `LOST`, `REPEATED`, `LATE` or `SOUND`."""
    word = faults[3] ^ (packet * _GOLDEN)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    if word & _MASK < faults[0]:
        return LOST
    if (word >> np.uint64(_BITS)) & _MASK < faults[1]:
        return REPEATED
    if (word >> np.uint64(2 * _BITS)) & _MASK < faults[2]:
        return LATE
    return SOUND
