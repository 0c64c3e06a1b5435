"""The state of the generator between two calls of its kernel: a NamedTuple of arrays, and what the columns mean."""

from typing import NamedTuple

import numpy as np

# scalars of the day, in `Day.scalar`
(
    TIME, PHASE, EVENT, DRAWN, LEFT, TO_GO, FRESH, SENT, TOTAL, DONE, RAMP_FROM, RAMP_TO, FALL_FROM, PLATEAU, AT_END,
    LIVE, PEAK, ADD_LEFT, ATTRIBUTED_LEFT, DELETE_LEFT, FULL_LEFT, PART_LEFT, MATCH, LAST, CROSS_LEFT, CROSS_INSTRUMENT,
    CROSS_TYPE, CROSS_SIDE, CROSS_PRICE, CROSS_SHARES, CHANNELS, MATCHES_KNOWN,
) = range(32)  # fmt: skip
SCALARS = 32
"""TIME in ns · PHASE, EVENT the next ones · DRAWN, LEFT random messages of the phase · TO_GO all messages of the phase left ·
FRESH the phase has sent nothing yet · SENT, TOTAL messages of the day · RAMP_FROM … AT_END the course of the live orders ·
…_LEFT quotas · MATCH the last match number · LAST the instrument of the last order · CROSS_… the cross under way (LEFT −1: none)"""

# columns of an instrument in `Day.instrument`: 16 int32, one cache line
(
    ANCHOR, STEP, LOW, HIGH, FAIR, BID, ASK, COUNT, BASE, CAPACITY, HALF, SCALE, SHIFT, HALTED, CHANNEL, STUB_BID,
) = range(16)  # fmt: skip
"""BID, ASK best ticks (−1 and `WINDOW`: none) · COUNT live orders · BASE, CAPACITY its nodes · SHIFT softness of the control
of live orders · HALTED bits: 1 by trading state, 2 by operational halt · STUB_BID raw price of tick 0"""

# columns of an order's node in `Day.node`: 8 int32, half a cache line
SHARES, TICK, SIDE, BEFORE, BEHIND, PLACE = range(6)
"""BEFORE, BEHIND neighbours in the queue (−1: none) · PLACE its position in `Day.live`"""

FIRST, FINAL = 0, 1  # of a queue, in `Day.queue`
BUY, SELL = 0, 1

KEPT = 64
"""Skipped references remembered per channel, and recent match numbers."""


class Day(NamedTuple):
    """All that the kernel reads and writes.

    Attributes
    ----------
    random : ndarray of uint64, shape (1,)
    scalar : ndarray of int64, shape (SCALARS,)
    phase : ndarray of int64, shape (phases, 3)
        Begin and end in ns, events.
    quota : ndarray of int64, shape (phases, classes)
        Random messages to come.
    event : ndarray of int64, shape (events, 5)
        Phase, random messages of the phase before it, kind, instrument, argument.
    instrument : ndarray of int32, shape (instruments, 16)
    symbol : ndarray of uint64, shape (instruments,)
        Eight characters, as a big-endian integer.
    depth : ndarray of int64, shape (instruments,)
        Share of the day's live orders, times 2^32.
    active_chance, active_other, deep_chance, deep_other : ndarrays
        Alias tables of activity and of depth.
    queue : ndarray of int32, shape (instruments, WINDOW, 2)
        First and final node of each tick, or −1.
    node : ndarray of int32, shape (nodes, 8)
    reference : ndarray of int64, shape (nodes,)
    live : ndarray of int32, shape (nodes,)
        From an instrument's base: its COUNT live nodes, oldest first by and large, then its free ones.
    next_reference : ndarray of int64, shape (8,)
        By channel, before scaling.
    skipped : ndarray of int64, shape (8, KEPT)
    matches : ndarray of int64, shape (KEPT, 2)
        Recent match numbers (0: broken already) and their instruments.
    sent : ndarray of int64, shape (256,)
        Messages by type.
    volume : ndarray of int64, shape (instruments,)
        Shares traded, printable.
    """

    random: np.ndarray
    scalar: np.ndarray
    phase: np.ndarray
    quota: np.ndarray
    event: np.ndarray
    instrument: np.ndarray
    symbol: np.ndarray
    depth: np.ndarray
    active_chance: np.ndarray
    active_other: np.ndarray
    deep_chance: np.ndarray
    deep_other: np.ndarray
    queue: np.ndarray
    node: np.ndarray
    reference: np.ndarray
    live: np.ndarray
    next_reference: np.ndarray
    skipped: np.ndarray
    matches: np.ndarray
    sent: np.ndarray
    volume: np.ndarray
