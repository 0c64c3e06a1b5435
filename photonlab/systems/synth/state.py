"""The state of the generator between two calls of its kernel: a NamedTuple of arrays, and what the columns mean."""

from typing import NamedTuple

import numpy as np

# words of the day, in `Day.word`
(
    RANDOM, TIME, PHASE, EVENT, DRAWN, LEFT, TO_GO, FRESH, SENT, TOTAL, DONE, RAMP_FROM, RAMP_TO, FALL_FROM,
    PLATEAU, AT_END, LIVE, PEAK, ADD_LEFT, ATTRIBUTED_LEFT, DELETE_LEFT, FULL_LEFT, PART_LEFT, MATCH, LAST,
    CROSS_LEFT, CROSS_INSTRUMENT, CROSS_TYPE, CROSS_SIDE, CROSS_PRICE, CROSS_SHARES, CHANNELS, MATCHES_KNOWN,
    NEXT, AFTER_NEXT,
) = range(35)  # fmt: skip
"""RANDOM the generator's state · TIME in ns · PHASE, EVENT the next ones · DRAWN, LEFT random messages of the phase ·
TO_GO all messages of the phase left · FRESH the phase has sent nothing yet · SENT, TOTAL messages of the day ·
RAMP_FROM … AT_END the course of the live orders · …_LEFT quotas · MATCH the last match number · LAST the instrument of
the last order · CROSS_… the cross under way (LEFT −1: none) · NEXT, AFTER_NEXT instruments of the orders to come"""

CHANNELS_LIMIT = 8
KEPT = 64
"""Skipped references remembered per channel, and recent match numbers."""

NEXT_REFERENCE = 40
"""A word a channel, before scaling."""
SKIPPED = NEXT_REFERENCE + CHANNELS_LIMIT
"""`KEPT` words a channel."""
MATCHES = SKIPPED + CHANNELS_LIMIT * KEPT
"""`KEPT` pairs: recent match numbers (0: broken already) and their instruments."""
SENT_OF = MATCHES + 2 * KEPT
"""256 words: messages by type."""
WORDS = SENT_OF + 256

# columns of a phase in `Day.phase`; the quotas by class of `quotas` follow
BEGIN, END, EVENTS, QUOTA = range(4)

# columns of an instrument in `Day.table`, int64
SYMBOL, DEPTH, ACTIVE, _, DEEP, _, VOLUME = range(7)
"""SYMBOL eight characters as a big-endian integer · DEPTH its share of the live orders, times 2^32 · ACTIVE, DEEP two
columns each, alias tables of activity and of depth · VOLUME shares traded, printable"""

# columns of an instrument in `Day.instrument`: 16 int32, one cache line
(
    ANCHOR, STEP, LOW, HIGH, FAIR, BID, ASK, COUNT, BASE, CAPACITY, HALF, SCALE, SHIFT, HALTED, CHANNEL, STUB_BID,
) = range(16)  # fmt: skip
"""BID, ASK best ticks (−1 and `WINDOW`: none) · COUNT live orders · BASE, CAPACITY its nodes · SHIFT softness of the
control of live orders · HALTED bits: 1 by trading state, 2 by operational halt · STUB_BID raw price of tick 0"""

# columns of an order's node in `Day.node`: 8 int32, half a cache line
SHARES, TICK, SIDE, BEFORE, BEHIND, PLACE, LOW_WORD, HIGH_WORD = range(8)
"""BEFORE, BEHIND neighbours in the queue (−1: none) · PLACE its position in `Day.live` · LOW_WORD, HIGH_WORD of
the reference"""

FIRST, FINAL = 0, 1  # of a queue, in `Day.queue`
BUY, SELL = np.int64(0), np.int64(1)


class Day(NamedTuple):
    """All that the kernel reads and writes.

    Attributes
    ----------
    word : ndarray of int64, shape (WORDS,)
    phase : ndarray of int64, shape (phases, 3 + classes)
        Begin and end in ns, events, random messages to come by class.
    event : ndarray of int64, shape (events, 5)
        Phase, random messages of the phase before it, kind, instrument, argument.
    instrument : ndarray of int32, shape (instruments, 16)
    table : ndarray of int64, shape (instruments, 7)
    queue : ndarray of int32, shape (instruments, WINDOW, 2)
        First and final node of each tick, or −1.
    node : ndarray of int32, shape (nodes, 8)
    live : ndarray of int32, shape (nodes,)
        From an instrument's base: its COUNT live nodes, oldest first by and large, then its free ones.

    Notes
    -----
    Few arrays, as each costs every call between kernels its pointers and sizes, in compile time too.
    """

    word: np.ndarray
    phase: np.ndarray
    event: np.ndarray
    instrument: np.ndarray
    table: np.ndarray
    queue: np.ndarray
    node: np.ndarray
    live: np.ndarray
