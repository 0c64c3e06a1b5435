"""A dense hierarchical bitmap over a fixed number of prices, and the linear search that it replaces (claims F9, R12).

The write-ups keep one slot for every price that there can be. Floor 0 has a bit a price, each floor above a bit for
each word below that is not 0; the top floor is one word. Insertion and removal climb only when a word stops or starts
being empty; a search climbs to the first word with a set bit on the right side and comes down by counting zeros.

Searches return what they found and how many words they read, so that steps are counted and not estimated. The book of
this project uses `photonlab.kernels.price_tree` instead, which needs no bound on prices.
"""

from typing import NamedTuple

import numpy as np

from photonlab.machine.bits import clz64, ctz64
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_0, _1, _63 = np.uint64(0), np.uint64(1), np.uint64(63)
_STEP = np.uint64(6)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

CHILDREN = 64
NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""What a search returns that finds nothing."""


class Bitmap(NamedTuple):
    """A set of whole numbers from 0 to size - 1.

    Attributes
    ----------
    words : ndarray of uint64
        Floor 0 first, the top floor's one word last.
    starts : ndarray of uint64, shape (floors + 1,)
        Where each floor begins in `words`, and where the last one ends.
    """

    words: np.ndarray
    starts: np.ndarray


def floors_for(size: int) -> int:
    """Return how many floors of 64 children hold `size` bits: the smallest k of at least 1 with 64**k >= size."""
    if size < 1:
        raise ValueError(f"a bitmap of {size} bits")
    return max(1, -(-(size - 1).bit_length() // 6))


def make_bitmap(size: int, floors: int = 0) -> Bitmap:
    """Return an empty set.

    Parameters
    ----------
    size : int
        Bits.
    floors : int
        As many as are needed by default; more are allowed, and hold one word each.

    Raises
    ------
    ValueError
        If so few floors do not hold so many bits.
    """
    needed = floors_for(size)
    floors = floors or needed
    if floors < needed:
        raise ValueError(f"{floors} floors of {CHILDREN} children hold fewer than {size} bits")
    counts = [max(1, -(-size // CHILDREN ** (floor + 1))) for floor in range(floors)]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    return Bitmap(huge_array(int(starts[-1]), np.uint64), starts)


@kernel(forceinline=True)
def contains(bitmap, bit):
    """Return whether a bit (uint64) is set."""
    return bitmap.words[bit >> _STEP] & (_1 << (bit & _63)) != _0


@kernel(forceinline=True)
def insert(bitmap, bit):
    """Set a bit (uint64 below the size); return the words touched."""
    words, starts = bitmap.words, bitmap.starts
    floor, touched = _0, _0
    while floor + _1 < np.uint64(starts.size):
        at = starts[floor] + (bit >> _STEP)
        old = words[at]
        words[at] = old | (_1 << (bit & _63))
        touched += _1
        if old != _0:
            break
        bit >>= _STEP
        floor += _1
    return touched


@kernel(forceinline=True)
def remove(bitmap, bit):
    """Clear a bit (uint64 below the size); return the words touched."""
    words, starts = bitmap.words, bitmap.starts
    floor, touched = _0, _0
    while floor + _1 < np.uint64(starts.size):
        at = starts[floor] + (bit >> _STEP)
        old = words[at]
        new = old & ~(_1 << (bit & _63))
        words[at] = new
        touched += _1
        if new != _0 or old == _0:
            break
        bit >>= _STEP
        floor += _1
    return touched


@kernel(forceinline=True)
def at_or_above(bitmap, bit):
    """Return the lowest set bit that is not below `bit`, or `NONE`, and the words read.

    Parameters
    ----------
    bitmap : Bitmap
    bit : uint64
        Any; above the last one nothing is found.
    """
    words, starts = bitmap.words, bitmap.starts
    floors = np.uint64(starts.size) - _1
    floor, read, at = _0, _0, bit
    while floor < floors:
        index = starts[floor] + (at >> _STEP)
        if index >= starts[floor + _1]:
            return NONE, read
        word = words[index] & (_ALL << (at & _63))
        read += _1
        if word != _0:
            at = (at & ~_63) | ctz64(word)
            while floor != _0:
                floor -= _1
                word = words[starts[floor] + at]
                read += _1
                at = (at << _STEP) | ctz64(word)
            return at, read
        at = (at >> _STEP) + _1  # this word has none: the next one on
        floor += _1
    return NONE, read


@kernel(forceinline=True)
def at_or_below(bitmap, bit):
    """Return the highest set bit that is not above `bit`, or `NONE`, and the words read.

    Parameters
    ----------
    bitmap : Bitmap
    bit : uint64
        Below 64 times the words of floor 0.
    """
    words, starts = bitmap.words, bitmap.starts
    floors = np.uint64(starts.size) - _1
    floor, read, at = _0, _0, bit
    while floor < floors:
        word = words[starts[floor] + (at >> _STEP)] & (_ALL >> (_63 - (at & _63)))
        read += _1
        if word != _0:
            at = (at & ~_63) | (_63 - clz64(word))
            while floor != _0:
                floor -= _1
                word = words[starts[floor] + at]
                read += _1
                at = (at << _STEP) | (_63 - clz64(word))
            return at, read
        at >>= _STEP
        if at == _0:
            return NONE, read
        at -= _1  # this word has none: the one before
        floor += _1
    return NONE, read


@kernel(forceinline=True)
def linear_at_or_above(levels, index):
    """Return the lowest index of a level that is not 0 and not below `index`, or `NONE`, and the levels examined.

    Parameters
    ----------
    levels : ndarray of unsigned integers, shape (size,)
        What stands at each price.
    index : uint64
    """
    size, at = np.uint64(levels.size), index
    while at < size:
        if levels[at] != 0:
            return at, at - index + _1
        at += _1
    return NONE, at - index


@kernel(forceinline=True)
def linear_at_or_below(levels, index):
    """Return the highest index of a level that is not 0 and not above `index`, or `NONE`, and the levels examined.

    Parameters
    ----------
    levels : ndarray of unsigned integers, shape (size,)
    index : uint64
        Below the size.
    """
    left = index + _1
    while left != _0:
        left -= _1
        if levels[left] != 0:
            return left, index - left + _1
    return NONE, index + _1


@kernel
def churn(bitmap, bits):
    """Put each bit in, look for the next one from it upwards, and take it out again: the work of a touch update.

    Parameters
    ----------
    bitmap : Bitmap
        Unchanged in the end, if none of the bits was in it.
    bits : ndarray of uint64

    Returns
    -------
    found : uint64
        Sum of what was found, modulo 2^64.
    touched : uint64
        Words read or written.
    """
    total, touched = _0, _0
    for i in range(np.uint64(bits.size)):
        bit = bits[i]
        touched += insert(bitmap, bit)
        found, read = at_or_above(bitmap, bit + _1)
        touched += read + remove(bitmap, bit)
        total += found
    return total, touched
