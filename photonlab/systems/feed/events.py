"""What passes from receiver to consumer: one message, or one gap, in a slot of 64 bytes.

    bytes 0-7     ticks when the call that received it returned
    bytes 8-10    ticks from the look at it to its publication, at most 2^24 - 1
    byte 11       its packet's place in the call's batch, at most 255
    byte 12       bytes of the message; 0 for a gap
    byte 13       the low bits of its sequence number
    bytes 14-63   the message as it came, from its type on; of a gap its first number, the number behind it, and why

The longest message of ITCH 5.0 has 50 bytes: each fits whole, so the books' own decoder reads it, once. The sequence
number follows from the one before and the gaps; its low bits are there to check that.
"""

import numpy as np

from photonlab.machine.bits import load_le64, load_u8, store_le16, store_le32, store_le64, store_u8
from photonlab.machine.jit import kernel

MESSAGE = np.uint64(14)
LONGEST = np.uint64(50)
SLOT_WORDS = 8
NEVER_CAME, NO_ROOM, NO_MESSAGE = (np.uint64(i) for i in range(3))
"""Why a number has no message here: the feed did not bring it; the ring was full; it is none of ITCH 5.0, by length."""

_0, _1 = np.uint64(0), np.uint64(1)
_FIRST, _BEHIND, _WHY = (np.uint64(i) for i in (16, 24, 32))
_DELTA = np.uint64(0xFFFFFF)


@kernel(inner=True)
def write_head(words, slot, received, taken, place, length, sequence):
    """Write what stands before the message, and nothing of the message.

    Parameters
    ----------
    words : ndarray of uint64
        The ring's.
    slot : uint64
        Offset of the slot in bytes.
    received, taken : uint64
        Ticks when it was received, and ticks that it took.
    place, length, sequence : uint64
    """
    store_le64(words, slot, received)
    store_le32(words, slot + np.uint64(8), min(taken, _DELTA) | (min(place, np.uint64(255)) << np.uint64(24)))
    store_le16(words, slot + np.uint64(12), length | ((sequence & np.uint64(255)) << np.uint64(8)))


@kernel(inner=True)
def write_message(words, slot, data, at, length):
    """Copy a message's bytes; what stands behind it in `data` is copied too where there is enough of it."""
    to = slot + MESSAGE
    if at + LONGEST <= np.uint64(data.size):
        store_le16(words, to + np.uint64(48), load_le64(data, at + np.uint64(42)) >> np.uint64(48))
        for i in range(6):
            step = np.uint64(i * 8)
            store_le64(words, to + step, load_le64(data, at + step))
    else:
        for i in range(length):
            store_u8(words, to + np.uint64(i), np.uint64(data[at + np.uint64(i)]))


@kernel(inner=True)
def write_gap(words, slot, received, first, behind, why):
    """Write that messages are missing."""
    write_head(words, slot, received, _0, _0, _0, first)
    store_le64(words, slot + _FIRST, first)
    store_le64(words, slot + _BEHIND, behind)
    store_le64(words, slot + _WHY, why)


@kernel(inner=True)
def read_gap(words, slot):
    """Return the first number of a gap, the number behind it, and why."""
    return load_le64(words, slot + _FIRST), load_le64(words, slot + _BEHIND), load_le64(words, slot + _WHY)


@kernel(inner=True)
def read_head(words, slot):
    """Return ticks received, ticks taken, place in the batch, length, and low bits of the sequence number."""
    word = load_le64(words, slot + np.uint64(8))
    place, length = (word >> np.uint64(24)) & np.uint64(255), load_u8(words, slot + np.uint64(12))
    return load_le64(words, slot), word & _DELTA, place, length, (word >> np.uint64(40)) & np.uint64(255)
