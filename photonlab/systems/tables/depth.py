"""Rows of depth: written one after the other as words, while the feed is replayed, and turned into columns by others.

A row of n levels in columns has 3 + 4 n of them, each a cache line of its own to write to. So the replay copies the
two ladders behind three words, which is one stretch of memory, and the thread that delivers tables makes columns.
"""

import numpy as np

from photonlab.kernels.price_tree import NO_KEY
from photonlab.machine.bits import load_le64, store_le16, store_le32, store_le64
from photonlab.machine.jit import kernel
from photonlab.systems.tables import ladder
from photonlab.systems.tables.columns import DEPTH, HEAD_WORDS

_0, _1, _2, _3, _8 = (np.uint64(i) for i in (0, 1, 2, 3, 8))
_MASK32 = np.uint64(0xFFFFFFFF)
_HEAD = np.uint64(HEAD_WORDS)
_TILE = np.uint64(16)  # rows turned at once: they stay in the nearest cache, and fill whole lines of each column


@kernel(inner=True)
def write_row(rows, ladders, levels, locate, ns, number):
    """Write the ladders of an instrument as a row of words: number, time, locate, the bids' words, the asks'.

    Parameters
    ----------
    rows : Rows
    ladders : ndarray of uint64
    levels, locate, ns, number : uint64
    """
    row = rows.counts[DEPTH]
    to = rows.at[rows.first[DEPTH]] + row * ((_HEAD + (levels << _2)) << _3)
    store_le64(rows.memory, to, number)
    store_le64(rows.memory, to + _8, ns)
    store_le64(rows.memory, to + (_2 << _3), locate)
    to += _HEAD << _3
    for side in range(_2):
        base = ladder.ladder_at((locate << _1) | np.uint64(side), levels)
        for k in range(_2 * levels):
            store_le64(rows.memory, to + (np.uint64(k) << _3), ladders[base + np.uint64(k)])
        to += levels << np.uint64(4)
    rows.counts[DEPTH] = row + _1
    if row + _1 >= rows.limits[DEPTH]:
        rows.full[_0] = _1


@kernel
def snapshot(book, rows, ladders, levels, cursor, ns, number):
    """Write the best levels of every instrument that has an order, from where the last call stopped.

    Parameters
    ----------
    book : Book
    rows : Rows
    ladders : ndarray of uint64
        Those that are marked as stale are read anew.
    levels : uint64
    cursor : ndarray of uint64, shape (2,)
        The next locate, 0 again when all are done; the last one.
    ns, number : uint64
        The time of the grid, and the number of the next message.

    Returns
    -------
    bool
        Whether all are done; if not, empty the table and call again.
    """
    while cursor[_0] <= cursor[_1]:
        if rows.counts[DEPTH] >= rows.limits[DEPTH]:
            return False
        locate, there = cursor[_0], False
        for parity in range(_2):
            side = (locate << _1) | np.uint64(parity)
            base = ladder.ladder_at(side, levels)
            if ladders[base + _3 * levels] != _0:
                ladder.fill(book, ladders, levels, side)
                ladders[base + _3 * levels] = _0
            there = there or ladders[base] != _0
        if there:
            write_row(rows, ladders, levels, locate, ns, number)
        cursor[_0] += _1
    cursor[_0] = _0
    return True


@kernel
def to_columns(words, begin, count, levels, memory, starts, row):
    """Turn rows of words into columns.

    Parameters
    ----------
    words : ndarray of uint8
        Rows as `write_row` writes them.
    begin, count, levels : uint64
        Rows to begin with and to turn, and their levels.
    memory : ndarray of uint8
    starts : ndarray of uint64, shape (3 + 4 * levels,)
        Offset in memory of each column, as `columns.Layout` has them.
    row : uint64
        Row of the columns to begin with.
    """
    stride = (_HEAD + (levels << _2)) << _3
    done = _0
    while done < count:
        tile = min(_TILE, count - done)
        at, to = (begin + done) * stride, row + done
        for k in range(tile):
            j = np.uint64(k)
            store_le64(memory, starts[_0] + ((to + j) << _3), load_le64(words, at + j * stride))
            store_le64(memory, starts[_1] + ((to + j) << _3), load_le64(words, at + j * stride + _8))
            store_le16(memory, starts[_2] + ((to + j) << _1), load_le64(words, at + j * stride + (_2 << _3)))
        for r in range(levels):
            rank = np.uint64(r)
            bid, bids = starts[_3 + rank], starts[_3 + levels + rank]
            ask, asks = starts[_3 + _2 * levels + rank], starts[_3 + _3 * levels + rank]
            source = at + ((_HEAD + rank) << _3)
            part = levels << _3
            for k in range(tile):
                j = np.uint64(k)
                one, place = source + j * stride, to + j
                turned = load_le64(words, one)
                store_le32(memory, bid + (place << _2), turned - np.uint64(turned != _0))
                store_le64(memory, bids + (place << _3), load_le64(words, one + part))
                turned = load_le64(words, one + _2 * part)
                store_le32(memory, ask + (place << _2), (NO_KEY - turned) & _MASK32)
                store_le64(memory, asks + (place << _3), load_le64(words, one + _3 * part))
        done += tile
