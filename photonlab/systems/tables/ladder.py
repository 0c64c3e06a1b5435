"""The best levels of each book side as last written, so that a change costs only the ranks that it moves.

A side's ladder has, for each of n ranks: its key turned round (`NO_KEY` - key: the higher, the better, 0 for no level),
its shares, and the level's handle, each n words in a row; and a word that marks it as stale, for who reads it seldom.
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
def update(book, ladders, levels, side, key):
    """Bring a side's ladder up to date at one key, where a message may have changed, made or ended a level.

    What lies at better keys must be up to date. Of two keys take first that from which the message took.

    Parameters
    ----------
    book : Book
    ladders : ndarray of uint64
    levels : uint64
        Ranks of a ladder.
    side, key : uint64

    Returns
    -------
    bool
        Whether any rank is another one now.
    """
    base, turned = ladder_at(side, levels), NO_KEY - key
    rank = _0
    for k in range(levels):  # all of them: where to stop nobody can predict
        rank += np.uint64(ladders[base + np.uint64(k)] > turned)
    if rank == levels:
        return False
    if ladders[base + rank] != turned:
        _insert(book, ladders, levels, side, rank)
        return True
    level = ladders[base + _2 * levels + rank]
    at = books.word_at(level)
    if np.uint64(book.words[at + books.FIRST]) == level or np.uint64(book.words[at + books.KEY]) != key:
        _remove(book, ladders, levels, side, rank)  # its queue is empty, or it serves as another level now
        return True
    shares = book.pairs[books.volume_at(level)]
    changed = ladders[base + levels + rank] != shares
    ladders[base + levels + rank] = shares
    return changed


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
def _insert(book, ladders, levels, side, rank):
    """Make room for a new level at a rank, and write it."""
    base = ladder_at(side, levels)
    part = base
    while part < base + _3 * levels:
        k = levels - _1
        while k > rank:
            ladders[part + k] = ladders[part + k - _1]
            k -= _1
        part += levels
    _set(book, ladders, base, levels, rank, _level_of(book, ladders, base, levels, side, rank))


@kernel(**_COLD)
def _remove(book, ladders, levels, side, rank):
    """Close the gap that a level left at a rank, and write the one that moves up to the last rank."""
    base, last = ladder_at(side, levels), levels - _1
    part = base
    while part < base + _3 * levels:
        k = rank
        while k < last:
            ladders[part + k] = ladders[part + k + _1]
            k += _1
        part += levels
    _set(book, ladders, base, levels, last, _level_of(book, ladders, base, levels, side, last))


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
