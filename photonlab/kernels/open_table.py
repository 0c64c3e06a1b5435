"""A table of open addressing with linear probing, whose hash policy and way of deleting are chosen by type.

Keys are any 64-bit integers; a value is any but 0, which marks an empty slot, and 2^64 - 1, which marks a tombstone.
Entries are pairs of key and value, four to a cache line; slots are a power of two. `kernels/hashing.py` is the map
that the house itself uses; this one exists to compare policies.

`BackwardShift` moves later members of a run into the hole, so a search ends at the first empty slot and meets nothing
dead. `Tombstones` only marks the slot; a search walks over marks, an insertion reuses the first one that it met, and
when fewer than a quarter of the slots without a member are truly empty the table is cleaned in place. A search may stop
at a tombstone of its own key: were the key alive further on, it had been put into that slot.

The table doubles when it has reached its limit and may grow: of s slots it lives in rows s to 2 s of one reserved
array. One slot is always truly empty, so that every search ends.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import hash_policies
from photonlab.kernels.hash_policies import home
from photonlab.machine.choice import by_type
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
TOMBSTONE = np.uint64(0xFFFFFFFFFFFFFFFF)

SIZE, SHIFT, USED, LIMIT, LARGEST, DEAD = (np.uint64(i) for i in range(6))
_COLD = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class BackwardShift(NamedTuple):
    """Deletion that leaves nothing behind."""


class Tombstones(NamedTuple):
    """Deletion that leaves a mark."""


DELETIONS = {"backward shift": BackwardShift(), "tombstones": Tombstones()}


class OpenTable(NamedTuple):
    """A map from uint64 keys to uint64 values.

    Attributes
    ----------
    entries : ndarray of uint64, shape (4 * largest,)
        Slot i of a table of s slots is at words 2 (s + i), the key, and 2 (s + i) + 1, the value.
    state : ndarray of uint64, shape (6,)
        Slots now, 64 - log2 of that, members, members (and tombstones) at which the table doubles, slots at most,
        tombstones. A table that cannot grow any more has all slots but one as its limit.
    policy : NamedTuple
        Of `hash_policies.POLICIES`.
    deletion : NamedTuple
        Of `DELETIONS`.
    """

    entries: np.ndarray
    state: np.ndarray
    policy: tuple
    deletion: tuple


def make_table(policy="Fibonacci", deletion="backward shift", slots=1 << 20, initial=None, load=0.5) -> OpenTable:
    """Return an empty table.

    Parameters
    ----------
    policy, deletion : str
        Names in `hash_policies.POLICIES` and `DELETIONS`.
    slots : int
        Slots that it may grow to, a power of two; reserves 32 bytes of address space each.
    initial : int, optional
        Slots to begin with, a power of two, 4 at least; all of them by default: such a table never grows, and takes
        as many members as it has slots, but one.
    load : float
        Share of the slots in use at which it doubles.

    Returns
    -------
    OpenTable
    """
    initial = slots if initial is None else initial
    if initial < 4 or initial & (initial - 1) or slots & (slots - 1) or initial > slots:
        raise ValueError(f"table sizes must be powers of two with 4 <= initial <= slots, not {initial} and {slots}")
    if not 0 < load < 1:
        raise ValueError(f"load must be between 0 and 1, not {load}")
    state = np.zeros(6, np.uint64)
    state[SIZE], state[SHIFT], state[LARGEST] = initial, 64 - (initial.bit_length() - 1), slots
    state[LIMIT] = max(int(initial * load), 1) if initial < slots else slots - 1
    entries = huge_array(4 * slots, np.uint64)
    return OpenTable(entries, state, hash_policies.POLICIES[policy], DELETIONS[deletion])


@by_type
def search_to_insert(deletion, table, key):
    """Return the word of the entry of `key`, or of the slot that it is to take."""


@by_type
def count_in(deletion, table, old):
    """Count a new member whose slot holds `old`; return False, and count nothing, at the limit."""


@by_type
def take_out(deletion, table, word):
    """Take the member at `word` out."""


@kernel(inner=True)
def vacant(value):
    """Return whether a value marks a slot without a member."""
    return value + _1 <= _1


@kernel(inner=True)
def home_of(table, key):
    """Return the home slot of a key."""
    return home(table.policy, key, table.state[SHIFT])


@kernel(inner=True)
def search_from(table, slot, key):
    """Return the word of the entry where a search for `key` that begins at its home slot ends: it is empty, or its."""
    entries, size = table.entries, table.state[SIZE]
    mask = size - _1
    word = (size + slot) << _1
    while entries[word + _1] != _0 and entries[word] != key:
        slot = (slot + _1) & mask
        word = (size + slot) << _1
    return word


@kernel(inner=True)
def find(table, key):
    """Return the value of `key`, or 0."""
    value = table.entries[search_from(table, home_of(table, key), key) + _1]
    return _0 if value == TOMBSTONE else value


@kernel(inner=True)
def find_within(table, key, bound):
    """Look at no more than `bound` slots; return the value of `key` or 0, and the slots looked at.

    A search that did not end returns 0 and `bound` + 1.
    """
    entries, size = table.entries, table.state[SIZE]
    slot, looked = home_of(table, key), _0
    while looked < bound:
        word = (size + slot) << _1
        looked += _1
        if entries[word + _1] == _0 or entries[word] == key:
            value = entries[word + _1]
            return (_0 if value == TOMBSTONE else value), looked
        slot = (slot + _1) & (size - _1)
    return _0, bound + _1


@kernel(inner=True)
def insert(table, key, value):
    """Set the value of `key`; return False, and change nothing, if it is new and the table is full and cannot grow."""
    entries = table.entries
    word = search_to_insert(table.deletion, table, key)
    old = entries[word + _1]
    if vacant(old):
        if not count_in(table.deletion, table, old):
            return _insert_at_limit(table, key, value)
        entries[word] = key
    entries[word + _1] = value
    return True


@kernel(**_COLD)
def _insert_at_limit(table, key, value):
    """Insert a new key into a table at its limit, once it is clean of tombstones and as large as it needs to be."""
    state = table.state
    if state[DEAD] != _0:
        _clean(table)
    if state[USED] >= state[LIMIT]:
        if state[SIZE] >= state[LARGEST]:
            return False
        _double(table)
    return insert_new(table, key, value)


@kernel(**_COLD)
def insert_new(table, key, value):
    """Insert a key that is not there into a table that has room and no tombstone."""
    word = search_from(table, home_of(table, key), key)
    table.entries[word] = key
    table.entries[word + _1] = value
    table.state[USED] += _1
    return True


@kernel(inner=True)
def remove(table, key):
    """Take `key` out and return its value, or 0 if it was not there."""
    return remove_from(table, home_of(table, key), key)


@kernel(inner=True)
def remove_from(table, slot, key):
    """Do as `remove`, given the key's home slot."""
    word = search_from(table, slot, key)
    value = table.entries[word + _1]
    if vacant(value):
        return _0
    take_out(table.deletion, table, word)
    table.state[USED] -= _1
    return value


# -- deletion by backward shift --------------------------------------------------------------------------------


@kernel(inner=True)
def _search_plain(deletion, table, key):
    return search_from(table, home_of(table, key), key)


@kernel(inner=True)
def _count_members(deletion, table, old):
    used = table.state[USED]
    if used >= table.state[LIMIT]:
        return False
    table.state[USED] = used + _1
    return True


@kernel(inner=True)
def _shift_back(deletion, table, word):
    entries, size = table.entries, table.state[SIZE]
    mask = size - _1
    hole = (word >> _1) - size
    slot = hole
    while True:
        slot = (slot + _1) & mask
        word = (size + slot) << _1
        if entries[word + _1] == _0:
            break
        away = (slot - home_of(table, entries[word])) & mask
        if away >= ((slot - hole) & mask):  # the hole lies on this member's way from home
            gap = (size + hole) << _1
            entries[gap] = entries[word]
            entries[gap + _1] = entries[word + _1]
            hole = slot
    entries[((size + hole) << _1) + _1] = _0


# -- deletion by tombstones ------------------------------------------------------------------------------------


@kernel(inner=True)
def _search_tombstones(deletion, table, key):
    entries, size = table.entries, table.state[SIZE]
    mask = size - _1
    slot, mark = home_of(table, key), _0
    word = (size + slot) << _1
    while entries[word + _1] != _0 and entries[word] != key:
        if entries[word + _1] == TOMBSTONE and mark == _0:
            mark = word
        slot = (slot + _1) & mask
        word = (size + slot) << _1
    return mark if mark != _0 and vacant(entries[word + _1]) else word


@kernel(inner=True)
def _count_marks_too(deletion, table, old):
    state = table.state
    if old == TOMBSTONE:
        state[DEAD] -= _1
    elif state[USED] + state[DEAD] >= state[LIMIT]:
        return False
    state[USED] += _1
    return True


@kernel(inner=True)
def _mark(deletion, table, word):
    state = table.state
    table.entries[word + _1] = TOMBSTONE
    state[DEAD] += _1
    free = state[SIZE] - state[USED] + _1  # with the slot of the member that goes: `remove_from` counts it later
    if (free - state[DEAD]) << _2 < free:
        _clean(table)


@kernel(**_COLD)
def _clean(table):
    """Free all tombstones and put every member where a search finds it again, in place.

    The walk begins behind a truly empty slot, which no member's way from home crosses: so each member, taken out and
    put in again in turn, finds a slot among those already walked, or its own.
    """
    entries, state = table.entries, table.state
    size = state[SIZE]
    mask = size - _1
    start = _0
    while entries[((size + start) << _1) + _1] != _0:
        start += _1
    step = _1
    while step < size:
        word = (size + ((start + step) & mask)) << _1
        step += _1
        key, value = entries[word], entries[word + _1]
        if value != _0:
            entries[word + _1] = _0
            if value != TOMBSTONE:
                new = search_from(table, home_of(table, key), key)
                entries[new] = key
                entries[new + _1] = value
    state[DEAD] = _0


search_to_insert.kernels |= {BackwardShift: _search_plain, Tombstones: _search_tombstones}
count_in.kernels |= {BackwardShift: _count_members, Tombstones: _count_marks_too}
take_out.kernels |= {BackwardShift: _shift_back, Tombstones: _mark}


@kernel(**_COLD)
def _double(table):
    """Move all members to a table of twice the slots."""
    entries, state = table.entries, table.state
    size = state[SIZE]
    state[SIZE] = size << _1
    state[SHIFT] -= _1
    state[LIMIT] = state[LIMIT] << _1 if state[SIZE] < state[LARGEST] else state[SIZE] - _1
    state[DEAD] = _0
    old = size
    while old < size << _1:
        word = old << _1
        old += _1
        value = entries[word + _1]
        if not vacant(value):
            new = search_from(table, home_of(table, entries[word]), entries[word])
            entries[new] = entries[word]
            entries[new + _1] = value
