"""How far searches in an order map go on the references of a day: probes counted, not estimated (claim R5)."""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import hashing
from photonlab.kernels.framing import PREFIX
from photonlab.kernels.hashing import Map
from photonlab.kernels.itch import LENGTH_BY_TYPE, offset_of
from photonlab.machine.bits import load_be16, load_be32, load_be64, load_u8
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array

SEARCHES, PROBES, LONGEST, MEMBERS = range(4)
_0, _1 = np.uint64(0), np.uint64(1)
_SEARCHES, _PROBES, _LONGEST, _MEMBERS = (np.uint64(i) for i in range(4))
_A, _F, _E, _C, _X, _D, _U = (np.uint64(ord(letter)) for letter in "AFECXDU")
_REFERENCE, _SHARES, _LESS, _NEW, _NEW_SHARES = (
    np.uint64(offset_of(kind, name))
    for kind, name in (
        ("A", "order_reference_number"),
        ("A", "shares"),
        ("E", "executed_shares"),
        ("U", "new_order_reference_number"),
        ("U", "shares"),
    )
)
_LENGTHS = LENGTH_BY_TYPE.astype(np.uint64)


class Probing(NamedTuple):
    """What a day's searches came to.

    Attributes
    ----------
    map : Map
        Live references → open shares + 1.
    tally : ndarray of uint64, shape (4,)
        Searches, slots looked at by all of them, by the longest, and members at most.
    """

    map: Map
    tally: np.ndarray

    @property
    def average(self) -> float:
        """Slots looked at a search; 1 when every one ended at home."""
        return int(self.tally[PROBES]) / max(int(self.tally[SEARCHES]), 1)

    @property
    def longest(self) -> int:
        """Slots that the longest search looked at."""
        return int(self.tally[LONGEST])

    @property
    def load(self) -> float:
        """Share of the slots in use when most were; the table may have been smaller before."""
        return int(self.tally[MEMBERS]) / int(self.map.state[hashing.SIZE])


@kernel(inner=True)
def _search(state, key):
    """Count the search for a key, and return its value."""
    tally = state.tally
    looked = hashing.probes(state.map, key)
    tally[_SEARCHES] += _1
    tally[_PROBES] += looked
    tally[_LONGEST] = max(tally[_LONGEST], looked)
    return hashing.find(state.map, key)


@kernel(inner=True)
def _put(state, key, shares):
    """Search and insert a new key, and note how many members there are."""
    _search(state, key)
    hashing.insert(state.map, key, shares + _1)
    state.tally[_MEMBERS] = max(state.tally[_MEMBERS], state.map.state[hashing.USED])


@kernel
def drive(state, data):
    """Keep the live references of a feed in the map: a search for each reference that a message names.

    Parameters
    ----------
    state : Probing
    data : ndarray of uint8
        From a length prefix on.
    """
    at, size = _0, np.uint64(data.size)
    while at + np.uint64(PREFIX) <= size:
        length = load_be16(data, at)
        at += np.uint64(PREFIX)
        if length == _0 or at + length > size:
            break
        kind = load_u8(data, at)
        if length == _LENGTHS[kind]:
            if kind in (_A, _F):
                _put(state, load_be64(data, at + _REFERENCE), load_be32(data, at + _SHARES))
            elif kind in (_E, _C, _X, _D, _U):
                _reduce(state, data, at, kind)
        at += length


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _reduce(state, data, at, kind):
    """Search for the order that a message names, and take it out when nothing of it is left."""
    reference = load_be64(data, at + _REFERENCE)
    there = _search(state, reference)
    if there == _0:
        return
    if kind in (_E, _C, _X):
        less = load_be32(data, at + _LESS)
        if less + _1 < there:
            hashing.insert(state.map, reference, there - less)
            return
    hashing.remove(state.map, reference)
    if kind == _U:
        _put(state, load_be64(data, at + _NEW), load_be32(data, at + _NEW_SHARES))


def probe_day(data, *, slots=1 << 24, initial=1 << 10) -> Probing:
    """Keep a day's live references in a map, and count the probes.

    Parameters
    ----------
    data : bytes-like or ndarray of uint8
    slots, initial : int
        Slots that the map may grow to and begins with; a map that begins with all of them never grows (as in claim R1's
        source, with 2^24). It doubles when it is half full.

    Returns
    -------
    Probing
    """
    state = Probing(hashing.make_map(slots, initial), np.zeros(4, np.uint64))
    drive(state, as_bytes_array(data))
    return state


@kernel
def survey(table, tally):
    """Search for every member of a map once.

    Parameters
    ----------
    table : Map
    tally : ndarray of uint64, shape (4,)
        As in `Probing`; added to.
    """
    size = table.state[hashing.SIZE]
    for slot in range(size, size + size):
        word = slot + slot
        if table.entries[word + _1] != _0:
            looked = hashing.probes(table, table.entries[word])
            tally[_SEARCHES] += _1
            tally[_PROBES] += looked
            tally[_LONGEST] = max(tally[_LONGEST], looked)
            tally[_MEMBERS] += _1


def probe_members(table: Map) -> Probing:
    """Count the probes of a search for each member that a map has now, such as an order index's directory."""
    state = Probing(table, np.zeros(4, np.uint64))
    survey(table, state.tally)
    return state
