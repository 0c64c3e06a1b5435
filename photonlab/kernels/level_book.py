"""Books by price level (L2), updated in place as an exchange's incremental refresh tells them: new, change, delete.

A side has `DEPTH` slots for its levels, which never move. Which slot is which level stands in one word, four bits a
level: inserting or deleting a level turns a part of that word, so that each action is the same dozen of instructions
without a loop or a branch, and touches the slot that changes and nothing else. The best level of each side stands
once more on a cache line of its own: what a decision reads.

Words of an instrument, in lines of eight: the touch, price and size of bid, offer (first venue), bid, offer (second);
the four words of order, with four to spare; then 10 slots of two words (price; size, and the orders above it) a side.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64

from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

DEPTH = 10
WORDS = 96
"""Words an instrument: 768 bytes."""

NEW, CHANGE, DELETE, DELETE_THRU, DELETE_FROM, OVERLAY = (np.uint64(n) for n in range(6))

_0, _1, _2, _4, _8, _15, _20, _32 = (np.uint64(n) for n in (0, 1, 2, 4, 8, 15, 20, 32))
_LAST = np.uint64(4 * (DEPTH - 1))
_WORDS, _ORDER, _SLOTS, _DEPTH = np.uint64(WORDS), np.uint64(8), np.uint64(16), np.uint64(DEPTH)
_IN_ORDER = np.uint64(int("9876543210", 16))
SIZE_MASK = np.uint64(0xFFFFFFFF)


class LevelBooks(NamedTuple):
    """L2 books of many instruments at two venues.

    Attributes
    ----------
    words : uint64[96 * instruments]
        As the module describes them; prices are int64 in these words, an empty level is all zero.
    """

    words: np.ndarray


def make_level_books(instruments, *, huge=True) -> LevelBooks:
    """Make empty books.

    Parameters
    ----------
    instruments : int
    huge : bool
        Ask for pages of 2 MiB.
    """
    books = LevelBooks(huge_array(instruments * WORDS, np.uint64, huge=huge, populate=True))
    clear(books)
    return books


def clear(books):
    """Empty all books in place."""
    rows = books.words.reshape(-1, WORDS)
    rows[:] = 0
    rows[:, int(_ORDER) : int(_ORDER) + 4] = _IN_ORDER


@kernel(inner=True)
def turned(order, taken, put):
    """Take the four bits at bit `taken` out of a word and put them in at bit `put`, shifting those between."""
    slot = (order >> taken) & _15
    below = (_1 << taken) - _1
    rest = (order & below) | ((order >> _4) & ~below)
    below = (_1 << put) - _1
    return (rest & below) | (slot << put) | ((rest & ~below) << _4)


@kernel(inner=True)
def update(words, base, side, level, action, price, size_and_orders):
    """Apply NEW, CHANGE or DELETE to one level, and keep the touch.

    Parameters
    ----------
    words : uint64[n]
    base : uint64
        First word of the instrument.
    side : uint64
        2 * venue, + 1 for offers.
    level : uint64
        From 0, below `DEPTH`. A new level shifts those from here on down by one, and the last of ten drops out; a
        deleted one shifts those behind it up, and the last is empty.
    action : uint64
    price, size_and_orders : uint64
        The price's int64 as bits; the size in the low 32 bits.

    Returns
    -------
    uint64
        Size and orders of the level before, for CHANGE and DELETE: 0 says that there was none.
    """
    at = base + _ORDER + side
    place = level << _2
    taken = _LAST if action == NEW else place
    put = _LAST if action == DELETE else place
    order = words[at]
    slot = base + _SLOTS + side * _20 + (((order >> taken) & _15) << _1)
    keep = uint64(action != DELETE) * ~_0
    before = words[slot + _1]
    words[slot] = price & keep
    words[slot + _1] = size_and_orders & keep
    order = turned(order, taken, put)
    words[at] = order
    best = base + _SLOTS + side * _20 + ((order & _15) << _1)
    touch = base + (side << _1)
    words[touch] = words[best]
    words[touch + _1] = words[best + _1]
    return before


@kernel
def delete_many(words, base, side, level, action):
    """Apply DELETE_THRU (the best level to this one) or DELETE_FROM (this level to the last); as of `update`."""
    first = _0 if action == DELETE_THRU else level
    count = level + _1 if action == DELETE_THRU else _DEPTH - level
    for _ in range(count):
        update(words, base, side, first, DELETE, _0, _0)


@kernel
def levels_of(words, instrument, side, out):
    """Copy the levels of a side in their order: price, size and orders.

    Parameters
    ----------
    words : uint64[n]
    instrument, side : uint64
    out : int64[10, 3]
    """
    base = instrument * _WORDS
    order = words[base + _ORDER + side]
    for level in range(_DEPTH):
        slot = base + _SLOTS + side * _20 + (((order >> (level << _2)) & _15) << _1)
        out[level, _0] = int64(words[slot])
        out[level, _1] = int64(words[slot + _1] & SIZE_MASK)
        out[level, _2] = int64(words[slot + _1] >> _32)
