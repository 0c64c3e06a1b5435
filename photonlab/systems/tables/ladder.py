"""The best levels of each book side as last read, for snapshots: what no message touched since need not be read again.

A side's ladder has, for each of n ranks: its key turned round (`NO_KEY` - key: the higher, the better, 0 for no level),
its shares, and the level's handle, each n words in a row; and a word that marks it as stale.
"""

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import book_views
from photonlab.kernels.price_tree import NO_KEY
from photonlab.machine.jit import kernel

_0, _1, _2, _3 = (np.uint64(i) for i in range(4))
_COLD = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@kernel(inner=True)
def ladder_at(side, levels):
    """Return the index of a side's ladder of so many levels."""
    return side * (_3 * levels + _1)


@kernel(inner=True)
def _set(book, ladders, base, levels, rank, level):
    """Write a rank; level 0 is none."""
    turned, shares = _0, _0
    if level != _0:
        turned = NO_KEY - np.uint64(book.words[books.word_at(level) + books.KEY])
        shares = book.pairs[books.volume_at(level)]
    changed = turned != ladders[base + rank] or shares != ladders[base + levels + rank]
    ladders[base + rank], ladders[base + levels + rank], ladders[base + _2 * levels + rank] = turned, shares, level
    return changed


@kernel(inner=True)
def _level_of(book, ladders, base, levels, side, rank):
    """Return the level that belongs at a rank, given those before it."""
    if rank == _0:
        return book_views.best_level(book, side)
    before = ladders[base + _2 * levels + rank - _1]
    return book_views.level_after(book, before) if before != _0 else _0


@kernel(**_COLD)
def fill(book, ladders, levels, side):
    """Read a side's levels into its ladder, whatever it had; return whether that changed it."""
    base = ladder_at(side, levels)
    changed, rank = False, _0
    while rank < levels:
        level = _level_of(book, ladders, base, levels, side, rank)
        other = _set(book, ladders, base, levels, rank, level)
        changed = changed or other
        rank += _1
    return changed
