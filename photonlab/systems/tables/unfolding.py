"""Rows of depth from the steps that `tables/steps.py` writes: each instrument's levels as they are after each.

Rows are gathered, 16 at a time, where they stay in the nearest cache, in lines of one column each. When 16 are
together the lines go past the cache to their columns: memory is written once, and not read before.
"""

from typing import NamedTuple

import numpy as np

from photonlab.machine import lines
from photonlab.machine.bits import load_le32, load_le64, store_le16, store_le32, store_le64
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array
from photonlab.systems.message_loop import LOCATES
from photonlab.systems.tables import steps
from photonlab.systems.tables.columns import STEP_WORDS

TILE = 16
_0, _1, _2, _3, _4, _5, _8 = (np.uint64(i) for i in (0, 1, 2, 3, 4, 5, 8))
_TILE, _SIDE, _RANK, _KIND = np.uint64(TILE), np.uint64(0x1FFFF), np.uint64(0x7F), np.uint64(0x7F)
_STEP = np.uint64(8 * STEP_WORDS)
FILLED, CHANGED = _0, _1
"""Words of `state`: rows of the tile, and whether what the steps since the last row's end said was news."""


class Unfolding(NamedTuple):
    """What is kept between two blocks of steps.

    Attributes
    ----------
    now : ndarray of uint64, shape (3 * levels * 65536,)
        By locate: prices of the bids, of the asks (4 bytes each), shares of the bids, of the asks (8 bytes).
    tile : ndarray of uint64, shape (48 * levels + 40,)
        Lines of 64 bytes: one for each rank's prices in 16 rows, bids' first; two for each rank's shares; two each for
        numbers and times; half a one for locates.
    state : ndarray of uint64, shape (2,)
    """

    now: np.ndarray
    tile: np.ndarray
    state: np.ndarray


def make_unfolding(levels) -> Unfolding:
    """Return what is kept, of no order yet."""
    return Unfolding(
        huge_array(3 * levels * LOCATES, np.uint64), huge_array(48 * levels + 40, np.uint64), np.zeros(2, np.uint64)
    )


@kernel
def unfold(kept, words, begin, end, levels, memory, starts, row, room):
    """Make rows of steps.

    Parameters
    ----------
    kept : Unfolding
    words : ndarray of uint8
        Steps.
    begin, end, levels : uint64
        Steps to begin with and to end before.
    memory : ndarray of uint64
        What has the columns.
    starts : ndarray of uint64, shape (3 + 4 * levels,)
        Offset in memory, in bytes and a multiple of 64, of each column.
    row, room : uint64
        Row of the columns to begin with, and to end before: multiples of 16.

    Returns
    -------
    step, row : uint64
        The first step not taken: `end`, or there is no room left; and the first row not written.
    """
    state, step = kept.state, begin
    filled, changed = state[FILLED], state[CHANGED]
    while step < end and row < room:
        at = step * _STEP
        head = load_le64(words, at + steps.HEAD_AT)
        changed |= _take(kept.now, levels, head, load_le64(words, at + steps.SHARES_AT))
        step += _1
        if head & steps.ENDS != _0:
            if changed != _0:
                locate = (head >> steps.SIDE_AT & _SIDE) >> _1
                _put(kept, levels, filled, locate, load_le64(words, at), load_le64(words, at + _8))
                filled += _1
                if filled == _TILE:
                    _pass_on(kept.tile, levels, memory, starts, row)
                    filled, row = _0, row + _TILE
            changed = _0
    state[FILLED], state[CHANGED] = filled, changed
    return step, row


@kernel
def flush(kept, levels, memory, starts, row):
    """Write the rows that are fewer than 16; return how many. There must be room for 16."""
    filled = kept.state[FILLED]
    if filled != _0:
        _pass_on(kept.tile, levels, memory, starts, row)
    kept.state[FILLED] = _0
    return filled


@kernel(inner=True)
def _take(now, levels, head, shares):
    """Bring an instrument's levels up to date; return whether that changed any."""
    side, rank = head >> steps.SIDE_AT & _SIDE, head >> steps.RANK_AT & _RANK
    kind, price = head >> steps.KIND_AT & _KIND, head & np.uint64(0xFFFFFFFF)
    base = (side >> _1) * levels * np.uint64(24)
    prices = base + ((side & _1) * levels << _2)
    amounts = base + (levels << _3) + ((side & _1) * levels << _3)
    if kind == steps.SET:
        old, had = load_le32(now, prices + (rank << _2)), load_le64(now, amounts + (rank << _3))
        store_le32(now, prices + (rank << _2), price)
        store_le64(now, amounts + (rank << _3), shares)
        return np.uint64((old != price) | (had != shares))
    k, last = rank, levels - _1
    if kind == steps.REMOVED:
        while k < last:
            store_le32(now, prices + (k << _2), load_le32(now, prices + (k + _1 << _2)))
            store_le64(now, amounts + (k << _3), load_le64(now, amounts + (k + _1 << _3)))
            k += _1
    else:
        k = last
        while k > rank:
            store_le32(now, prices + (k << _2), load_le32(now, prices + (k - _1 << _2)))
            store_le64(now, amounts + (k << _3), load_le64(now, amounts + (k - _1 << _3)))
            k -= _1
    store_le32(now, prices + (k << _2), price)
    store_le64(now, amounts + (k << _3), shares)
    return _1


@kernel(inner=True)
def _put(kept, levels, j, locate, number, ns):
    """Write an instrument's levels as row j of the tile."""
    now, tile = kept.now, kept.tile
    base, to = locate * levels * np.uint64(24), j << _2
    for r in range(levels << _1):
        rank = np.uint64(r)
        store_le32(tile, to + (rank << np.uint64(6)), load_le32(now, base + (rank << _2)))
    base, to = base + (levels << _3), (levels << np.uint64(7)) + (j << _3)
    for r in range(levels << _1):
        rank = np.uint64(r)
        store_le64(tile, to + (rank << np.uint64(7)), load_le64(now, base + (rank << _3)))
    to = levels * np.uint64(384) + (j << _3)
    store_le64(tile, to, number)
    store_le64(tile, to + np.uint64(128), ns)
    store_le16(tile, levels * np.uint64(384) + np.uint64(256) + (j << _1), locate)


@kernel(inner=True)
def _pass_on(tile, levels, memory, starts, row):
    """Write the tile's 16 rows to their columns."""
    head = np.uint64(48) * levels
    for c in range(_2):  # numbers and times
        column, line = np.uint64(c), head + (np.uint64(c) << _4)
        to = (starts[column] >> _3) + row
        lines.stream_line(tile, line, memory, to)
        lines.stream_line(tile, line + _8, memory, to + _8)
    to = (starts[_2] >> _3) + (row >> _2)
    for k in range(_4):
        memory[to + np.uint64(k)] = tile[head + np.uint64(32) + np.uint64(k)]
    for s in range(_2):
        side = np.uint64(s)
        column = _3 + side * (levels << _1)
        for r in range(levels):
            rank = side * levels + np.uint64(r)
            lines.stream_line(tile, rank << _3, memory, (starts[column + np.uint64(r)] >> _3) + (row >> _1))
            line = (levels << _4) + (rank << _4)
            to = (starts[column + levels + np.uint64(r)] >> _3) + row
            lines.stream_line(tile, line, memory, to)
            lines.stream_line(tile, line + _8, memory, to + _8)
