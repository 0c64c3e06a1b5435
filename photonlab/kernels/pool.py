"""The slot pool: numbers of fixed-size slots, handed out and taken back in constant time, linked by 32-bit indices.

The pool knows no memory: a slot number indexes whatever arrays its owner keeps. Slot 0 is never handed out and means
"none". Slots that came back are handed out again first (last in, first out: they are the ones still in cache), then
fresh ones upwards.
"""

from typing import NamedTuple

import numpy as np

from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_0, _1 = np.uint64(0), np.uint64(1)

FREE, FRESH, CAPACITY, LIVE = (np.uint64(i) for i in range(4))


class Pool(NamedTuple):
    """Slots 1 to capacity - 1.

    Attributes
    ----------
    links : ndarray of uint32, shape (capacity,)
        Of a free slot: the next free one, 0 at the end.
    state : ndarray of uint64, shape (4,)
        First free slot, first slot never handed out, capacity, slots in use.
    """

    links: np.ndarray
    state: np.ndarray


def make_pool(capacity) -> Pool:
    """Return a pool of `capacity` - 1 free slots; at most 2**32."""
    if not 2 <= capacity <= 1 << 32:
        raise ValueError(f"a pool has 2 to 2**32 slots, not {capacity}")
    return Pool(huge_array(capacity, np.uint32), np.array([0, 1, capacity, 0], np.uint64))


@kernel(forceinline=True)
def take(pool):
    """Return a free slot as uint64, or 0 if there is none."""
    state = pool.state
    slot = state[FREE]
    if slot != _0:
        state[FREE] = np.uint64(pool.links[slot])
        state[LIVE] += _1
        return slot
    slot = state[FRESH]
    if slot >= state[CAPACITY]:
        return _0
    state[FRESH] = slot + _1
    state[LIVE] += _1
    return slot


@kernel(forceinline=True)
def give(pool, slot):
    """Take a slot back. Giving back a slot that is not in use breaks the pool."""
    state = pool.state
    pool.links[slot] = state[FREE]
    state[FREE] = slot
    state[LIVE] -= _1


@kernel(forceinline=True)
def left(pool):
    """Return how many slots can still be taken."""
    return pool.state[CAPACITY] - pool.state[LIVE] - _1
