"""The slot pool: numbers of fixed-size slots, handed out and taken back in constant time, linked by 32-bit indices.

The pool knows no memory: a slot number indexes whatever arrays its owner keeps. Slot 0 is never handed out and means
"none". Slots that came back are handed out again first (last in, first out: they are the ones still in cache), then
fresh ones upwards.

A loop that does little else than take and give may hold the pool's state in registers meanwhile:

    held = hold(pool)
    slot, held = take_held(pool, held)
    held = give_held(pool, held, slot)
    put_down(pool, held)
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


class Held(NamedTuple):
    """The state of a pool in registers; three uint64."""

    free: int
    """First free slot."""
    fresh: int
    """First slot never handed out."""
    live: int
    """Slots in use."""


@kernel(inner=True)
def hold(pool):
    """Return the pool's state. Until it is put down, the pool in memory is out of date."""
    return Held(pool.state[FREE], pool.state[FRESH], pool.state[LIVE])


@kernel(inner=True)
def put_down(pool, held):
    """Write the state back."""
    pool.state[FREE] = held.free
    pool.state[FRESH] = held.fresh
    pool.state[LIVE] = held.live


@kernel(inner=True)
def take_held(pool, held):
    """Return a free slot as uint64 (0 if there is none) and the state afterwards; as `take`."""
    slot = held.free
    if slot != _0:
        return slot, Held(np.uint64(pool.links[slot]), held.fresh, held.live + _1)
    slot = held.fresh
    if slot >= pool.state[CAPACITY]:
        return _0, held
    return slot, Held(_0, slot + _1, held.live + _1)


@kernel(inner=True)
def give_held(pool, held, slot):
    """Take a slot back, and return the state afterwards; as `give`."""
    pool.links[slot] = held.free
    return Held(slot, held.fresh, held.live - _1)


@kernel
def refill(pool, order):
    """Make all slots free, to be handed out in a given order.

    Parameters
    ----------
    pool : Pool
    order : ndarray of uint32, shape (capacity - 1,)
        Every slot from 1 on, once.
    """
    links, state = pool.links, pool.state
    following = _0
    for i in range(order.size):
        slot = np.uint64(order[np.uint64(order.size) - _1 - np.uint64(i)])
        links[slot] = following
        following = slot
    state[FREE] = following
    state[FRESH] = state[CAPACITY]
    state[LIVE] = _0


@kernel
def clear(pool):
    """Make all slots free and fresh: handed out upwards from 1."""
    pool.state[FREE] = _0
    pool.state[FRESH] = _1
    pool.state[LIVE] = _0
