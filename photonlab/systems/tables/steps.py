"""What changes depth, written step by step while the feed is replayed; `tables/unfolding.py` makes rows of the steps.

A row of n levels is 16 n bytes and more, of which a message changes one rank or moves some. So the replay writes that
alone, 32 bytes, and the thread that delivers tables keeps the levels as they are and writes the rows. To know a rank
the replay keeps for each side, in halves of words: of n ranks, with room for a multiple of 16, the keys turned round
(2^32 - 1 - key: the higher, the better), and then the levels' handles, 0 where there is none.

A step's words: the message's number, its time, the head (price, side from bit 32, rank from bit 49, kind from bit 56,
and bit 63 if a row ends with it), the shares.
"""

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import book_views
from photonlab.machine import lines
from photonlab.machine.bits import load_le64, prefetch_write, store_le64
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array
from photonlab.systems.message_loop import LOCATES
from photonlab.systems.tables.columns import DEPTH

_0, _1, _5, _8, _15, _16 = (np.uint64(i) for i in (0, 1, 5, 8, 15, 16))
_MASK32 = np.uint64(0xFFFFFFFF)
_COLD = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

SIDE_AT, RANK_AT, KIND_AT = np.uint64(32), np.uint64(49), np.uint64(56)
SET, INSERTED, REMOVED = (np.uint64(i) for i in range(3))
ENDS = np.uint64(1 << 63)
_AHEAD = np.uint64(512)  # bytes
HEAD_AT, SHARES_AT = np.uint64(16), np.uint64(24)


def make_ranks(levels) -> np.ndarray:
    """Return the ranks of all sides, of no order yet: uint32, of shape (2 * 65536 * 2 * levels rounded up to 16,)."""
    return huge_array(4 * LOCATES * (-(-levels // 16) * 16), np.uint32)


@kernel(inner=True)
def span(levels):
    """Return the halves of a side's keys, and of its handles."""
    return (levels + _15) & ~_15


@kernel(inner=True)
def update(book, rows, ranks, levels, side, key, ns, number, ends):
    """Write what changed on a side at one key, where a message may have changed, made or ended a level.

    What lies at better keys must be up to date. Of two keys take first that from which the message took.

    Parameters
    ----------
    book : Book
    rows : Rows
    ranks : ndarray of uint32
        Of all sides.
    levels, side, key, ns, number : uint64
    ends : uint64
        `ENDS` if a row ends with it, or 0.

    Returns
    -------
    bool
        Whether there was a step; not so if the key is none of the best.
    """
    room = span(levels)
    base, turned = side * (room << _1), _MASK32 - key
    rank, part = _0, _0
    while part < room:
        rank += lines.count_above(ranks, base + part, turned)
        part += _16
    if rank >= levels:
        return False
    handles = base + room
    level = np.uint64(ranks[handles + rank])
    if level == _0 or np.uint64(ranks[base + rank]) != turned:
        _insert(book, rows, ranks, levels, side, rank, ns, number, ends)
        return True
    at = books.word_at(level)
    if np.uint64(book.words[at + books.FIRST]) == level or np.uint64(book.words[at + books.KEY]) != key:
        # its queue is empty, or it serves as another level now
        _remove(book, rows, ranks, levels, side, rank, ns, number, ends)
    else:
        price, shares = books.key_of(side, key), book.pairs[books.volume_at(level)]
        _write(rows, side, SET | ends >> KIND_AT, rank, price, shares, ns, number)
    return True


@kernel(inner=True)
def _write(rows, side, kind, rank, price, shares, ns, number):
    """Write a step; what ends a row is a bit of its kind."""
    step = rows.counts[DEPTH]
    to = rows.at[rows.first[DEPTH]] + (step << _5)
    prefetch_write(rows.memory, to + _AHEAD)  # the other thread had this memory last
    store_le64(rows.memory, to, number)
    store_le64(rows.memory, to + _8, ns)
    store_le64(rows.memory, to + HEAD_AT, price | side << SIDE_AT | rank << RANK_AT | kind << KIND_AT)
    store_le64(rows.memory, to + SHARES_AT, shares)
    rows.counts[DEPTH] = step + _1
    if step + _1 >= rows.limits[DEPTH]:
        rows.full[_0] = _1


@kernel(inner=True)
def end_row(rows):
    """Have the row end with the last step."""
    at = rows.at[rows.first[DEPTH]] + ((rows.counts[DEPTH] - _1) << _5) + HEAD_AT
    store_le64(rows.memory, at, load_le64(rows.memory, at) | ENDS)


@kernel(inner=True)
def _read(book, rows, ranks, levels, side, kind, rank, changed, ns, number):
    """Read the level that belongs at a rank, given those before it, and write the step, of the rank that changed."""
    base = side * (span(levels) << _1)
    handles = base + span(levels)
    if rank == _0:
        level = book_views.best_level(book, side)
    else:
        before = np.uint64(ranks[handles + rank - _1])
        level = book_views.level_after(book, before) if before != _0 else _0
    turned, price, shares = _0, _0, _0
    if level != _0:
        key = np.uint64(book.words[books.word_at(level) + books.KEY])
        turned, price, shares = _MASK32 - key, books.key_of(side, key), book.pairs[books.volume_at(level)]
    ranks[base + rank], ranks[handles + rank] = turned, level
    _write(rows, side, kind, changed, price, shares, ns, number)


@kernel(**_COLD)
def fill(book, rows, ranks, levels, side, ns, number):
    """Read a side's levels anew and write them all, whatever there was; no row ends."""
    rank = _0
    while rank < levels:
        _read(book, rows, ranks, levels, side, SET, rank, rank, ns, number)
        rank += _1


@kernel(**_COLD)
def _insert(book, rows, ranks, levels, side, rank, ns, number, ends):
    """Make room for a new level at a rank, and read it."""
    part = side * (span(levels) << _1)
    for _ in range(2):
        k = part + levels - _1
        while k > part + rank:
            ranks[k] = ranks[k - _1]
            k -= _1
        part += span(levels)
    _read(book, rows, ranks, levels, side, INSERTED | ends >> KIND_AT, rank, rank, ns, number)


@kernel(**_COLD)
def _remove(book, rows, ranks, levels, side, rank, ns, number, ends):
    """Close the gap that a level left at a rank, and read the one that moves up to the last rank."""
    part = side * (span(levels) << _1)
    for _ in range(2):
        k, last = part + rank, part + levels - _1
        while k < last:
            ranks[k] = ranks[k + _1]
            k += _1
        part += span(levels)
    _read(book, rows, ranks, levels, side, REMOVED | ends >> KIND_AT, levels - _1, rank, ns, number)
