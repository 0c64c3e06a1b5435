"""The best levels of each book side as last written, so that a change costs only the ranks that it moves.

A side's ladder has, for each of n ranks: its key turned round (`NO_KEY` - key: the higher, the better, 0 for no level),
its shares, and the level's handle, each n words in a row.
"""

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import book_views
from photonlab.kernels.price_tree import NO_KEY
from photonlab.machine.bits import store_le32, store_le64
from photonlab.machine.jit import kernel

_0, _1, _2, _3 = (np.uint64(i) for i in range(4))


@kernel(inner=True)
def update(book, ladders, levels, side, key, anew):
    """Bring a side's ladder up to date after a message.

    Parameters
    ----------
    book : Book
    ladders : ndarray of uint64
    levels : uint64
        Ranks of a ladder.
    side : uint64
    key : uint64
        The best key at which something changed.
    anew : bool
        Whether levels came or went.

    Returns
    -------
    bool
        Whether any rank is another one now.
    """
    base, turned = side * _3 * levels, NO_KEY - key
    rank = _0
    while rank < levels and ladders[base + rank] > turned:
        rank += _1
    if rank == levels:
        return False
    if anew:
        return fill(book, ladders, levels, side, side, rank)
    shares = book.pairs[books.volume_at(ladders[base + _2 * levels + rank])]
    changed = ladders[base + levels + rank] != shares
    ladders[base + levels + rank] = shares
    return changed


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def fill(book, ladders, levels, slot, side, rank):
    """Read a side's levels from a rank on into the ladder of a slot; return whether that changed it."""
    base = slot * _3 * levels
    changed = False
    level = _0
    if rank == _0:
        level = book_views.best_level(book, side)
    else:
        level = book_views.level_after(book, ladders[base + _2 * levels + rank - _1])
    while rank < levels:
        turned, shares = _0, _0
        if level != _0:
            turned = NO_KEY - np.uint64(book.words[books.word_at(level) + books.KEY])
            shares = book.pairs[books.volume_at(level)]
        changed = changed or turned != ladders[base + rank] or shares != ladders[base + levels + rank]
        ladders[base + rank], ladders[base + levels + rank] = turned, shares
        ladders[base + _2 * levels + rank] = level
        if level != _0:
            level = book_views.level_after(book, level)
        rank += _1
    return changed


@kernel(inner=True)
def write(rows, ladders, levels, slot, row, column):
    """Write the ladders of two slots, the bids' and the asks', to a row of depth from `column` on."""
    memory, starts = rows.memory, rows.at
    for side in range(_2):
        base = (slot + np.uint64(side)) * _3 * levels
        for k in range(levels):
            rank = np.uint64(k)
            turned = ladders[base + rank]
            price = books.key_of(np.uint64(side), NO_KEY - turned) if turned != _0 else _0
            store_le32(memory, starts[column + rank] + (row << _2), price)
            store_le64(memory, starts[column + levels + rank] + (row << _3), ladders[base + levels + rank])
        column += _2 * levels
