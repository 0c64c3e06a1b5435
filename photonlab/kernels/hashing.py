"""The order map: open addressing with linear probing in a power-of-two table, and deletion by backward shift.

A key is any 64-bit integer, so that no reference is stolen as a marker; a value is any 64-bit integer but 0, which
marks an empty slot. The home slot of a key is the *high* bits of its product with 2^64/phi (Fibonacci hashing, Knuth
TAOCP 3, 6.4): masking the low bits of such a product would lose what distinguishes multiples of a power of two.
Deletion moves later members of the run back, so no tombstone is ever left and every survivor stays reachable, across
the end of the table too.

The table doubles when it is half full. A table of s slots lives in rows s to 2s of one reserved array, so growing
needs no second array and no pointer: rows that were never used cost address space only.
"""

from typing import NamedTuple

import numpy as np

from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
_0, _1, _2, _64 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(64)

SIZE, SHIFT, USED, LIMIT, LARGEST = (np.uint64(i) for i in range(5))


class Map(NamedTuple):
    """A map from uint64 keys to non-zero uint64 values.

    Attributes
    ----------
    entries : ndarray of uint64, shape (4 * largest,)
        Pairs of key and value; slot i of a table of s slots is at words 2 (s + i) and 2 (s + i) + 1.
    state : ndarray of uint64, shape (5,)
        Slots now, 64 - log2 of that, members, members at which the table doubles, slots at most.
    """

    entries: np.ndarray
    state: np.ndarray


def make_map(largest=1 << 24, initial=1 << 10, load=0.5) -> Map:
    """Return an empty map.

    Parameters
    ----------
    largest : int
        Slots that it may grow to, a power of two; reserves 32 bytes of address space each.
    initial : int
        Slots to begin with, a power of two, at least 2.
    load : float
        Share of the slots in use at which it doubles; below 1.

    Returns
    -------
    Map
    """
    if initial < 2 or initial & (initial - 1) or largest & (largest - 1) or initial > largest:
        raise ValueError(f"map sizes must be powers of two with 2 <= initial <= largest, not {initial} and {largest}")
    if not 0 < load < 1:
        raise ValueError(f"load must be between 0 and 1, not {load}")
    state = np.zeros(5, np.uint64)
    state[SIZE] = initial
    state[SHIFT] = 64 - (initial.bit_length() - 1)
    state[LIMIT] = max(min(int(initial * load), initial - 1), 1)
    state[LARGEST] = largest
    return Map(huge_array(4 * largest, np.uint64), state)


@kernel(forceinline=True)
def slot_of(table, key):
    """Return the word index of the entry that holds `key`, or of the empty entry where its search ends."""
    entries = table.entries
    size = table.state[SIZE]
    mask = size - _1
    slot = (key * _GOLDEN) >> table.state[SHIFT]
    word = (size + slot) << _1
    while entries[word + _1] != _0 and entries[word] != key:
        slot = (slot + _1) & mask
        word = (size + slot) << _1
    return word


@kernel(forceinline=True)
def find(table, key):
    """Return the value of `key`, or 0."""
    return table.entries[slot_of(table, key) + _1]


@kernel
def insert(table, key, value):
    """Set the value of `key`; return False, and change nothing, if it is new and the table is full and cannot grow."""
    state = table.state
    word = slot_of(table, key)
    if table.entries[word + _1] == _0:
        if state[USED] >= state[LIMIT]:
            if state[SIZE] < state[LARGEST]:
                _double(table)
                word = slot_of(table, key)
            elif state[USED] + _1 >= state[SIZE]:  # one slot stays empty, so that every search ends
                return False
        state[USED] += _1
        table.entries[word] = key
    table.entries[word + _1] = value
    return True


@kernel
def remove(table, key):
    """Take `key` out and return its value, or 0 if it was not there."""
    entries, state = table.entries, table.state
    word = slot_of(table, key)
    value = entries[word + _1]
    if value == _0:
        return value
    size = state[SIZE]
    mask = size - _1
    hole = (word >> _1) - size
    slot = hole
    while True:
        slot = (slot + _1) & mask
        word = (size + slot) << _1
        if entries[word + _1] == _0:
            break
        home = (entries[word] * _GOLDEN) >> state[SHIFT]
        if ((slot - home) & mask) >= ((slot - hole) & mask):  # the hole lies on this member's way from home
            gap = (size + hole) << _1
            entries[gap] = entries[word]
            entries[gap + _1] = entries[word + _1]
            hole = slot
    gap = (size + hole) << _1
    entries[gap + _1] = _0
    state[USED] -= _1
    return value


@kernel
def _double(table):
    """Move all members to a table of twice the slots."""
    entries, state = table.entries, table.state
    size = state[SIZE]
    state[SIZE] = size << _1
    state[SHIFT] -= _1
    state[LIMIT] = min(state[LIMIT] << _1, state[SIZE] - _1)
    old = size
    while old < size << _1:
        word = old << _1
        old += _1
        if entries[word + _1] != _0:
            new = slot_of(table, entries[word])
            entries[new] = entries[word]
            entries[new + _1] = entries[word + _1]


@kernel
def probes(table, key):
    """Return how many slots a search for `key` looks at: 1 when it ends at home."""
    state = table.state
    home = (key * _GOLDEN) >> state[SHIFT]
    slot = (slot_of(table, key) >> _1) - state[SIZE]
    return ((slot - home) & (state[SIZE] - _1)) + _1
