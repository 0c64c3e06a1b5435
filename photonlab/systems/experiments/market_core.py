"""The loop of claim R1 as its source has it, rebuilt of this project's parts: what 7.14 M messages a second stands for.

It does less than a feed's book: one book for all symbols, so that prices of all instruments share their levels; `C` is
ignored, so that such an execution leaves its order too large; a level has a queue and no volume; the bitmap over the
prices is kept and never asked for the best. What it does have is here: framing, an order map of 16 bytes an entry, a
slab of orders linked by 32-bit numbers and handed out forwards, FIFO queues, a bitmap a side.

Two details differ from the source: its map masks a cut-down Murmur hash and leaves tombstones (here: Fibonacci and
backward shift), and its tree has 5 levels where 4 do (claim R12). Prices are counted in cents; all of 20,971.52 and
more share the last level, for nobody asks for a price.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import bitmap, hashing, pool
from photonlab.kernels.bitmap import Bitmap
from photonlab.kernels.framing import AHEAD, PREFIX
from photonlab.kernels.hashing import Map
from photonlab.kernels.itch import LENGTH_BY_TYPE, offset_of
from photonlab.kernels.pool import Pool
from photonlab.machine.bits import load_be16, load_be32, load_be64, load_u8, prefetch
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

PRICES = 1 << 21
_LAST_PRICE = np.uint64(PRICES - 1)
_0, _1, _2, _32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
_MASK32 = np.uint64(0xFFFFFFFF)
_CENT = np.uint64(100)

# Words of an order: neighbours in its queue, open shares, cents << 1 | side (0 for bids)
_BEFORE, _AFTER, _SHARES, _PLACE = (np.uint64(i) for i in range(4))
_ORDER_SHIFT = np.uint64(2)

_A, _F, _E, _X, _D, _U, _S = (np.uint64(ord(letter)) for letter in "AFEXDUS")
_REFERENCE, _SIDE, _SIZE, _PRICE = (
    np.uint64(offset_of("A", name)) for name in ("order_reference_number", "buy_sell_indicator", "shares", "price")
)
_LESS = np.uint64(offset_of("E", "executed_shares"))
_NEW, _NEW_SIZE, _NEW_PRICE = (
    np.uint64(offset_of("U", name)) for name in ("new_order_reference_number", "shares", "price")
)
_LENGTHS = LENGTH_BY_TYPE.astype(np.uint64)


class Core(NamedTuple):
    """The state of the loop.

    Attributes
    ----------
    map : Map
        Order reference → slot.
    slab : Pool
    orders : ndarray of uint32, shape (4 * slots,)
    ends : ndarray of uint64, shape (2 * PRICES,)
        By cents << 1 | side: first slot of the queue << 32 | last slot; 0 where there is none.
    bids, asks : Bitmap
        Prices with a queue.
    """

    map: Map
    slab: Pool
    orders: np.ndarray
    ends: np.ndarray
    bids: Bitmap
    asks: Bitmap


def make_core(slots=1 << 24) -> Core:
    """Return an empty book.

    Parameters
    ----------
    slots : int
        Of the order map, a power of two; half as many orders find room. 2^24 in the source.
    """
    return Core(
        hashing.make_map(slots, slots, load=0.5),
        pool.make_pool(slots >> 1),
        huge_array(slots << 1, np.uint32),
        huge_array(2 * PRICES, np.uint64),
        bitmap.make_bitmap(PRICES),
        bitmap.make_bitmap(PRICES),
    )


@kernel
def run(core, data, begin):
    """Apply the whole messages of a piece of a feed.

    Parameters
    ----------
    core : Core
    data : ndarray of uint8
    begin : uint64
        Where a length prefix stands.

    Returns
    -------
    messages, position : uint64
        Messages of any type, and the offset behind the last of them.
    """
    size, position, messages = np.uint64(data.size), begin, _0
    while position + np.uint64(PREFIX) <= size:
        length = load_be16(data, position)
        following = position + length + np.uint64(PREFIX)
        if length == _0 or following > size:
            break
        prefetch(data, position + np.uint64(AHEAD))
        at = position + np.uint64(PREFIX)
        kind = load_u8(data, at)
        if _LENGTHS[kind] == length:
            _apply(core, data, at, kind)
        messages += _1
        position = following
    return messages, position


@kernel(inner=True)
def _apply(core, data, at, kind):
    """Apply a message of a known type, `C` and what changes no book excepted."""
    if kind in (_A, _F):
        side = np.uint64(load_u8(data, at + _SIDE) == _S)
        shares, price = load_be32(data, at + _SIZE), load_be32(data, at + _PRICE)
        _add(core, load_be64(data, at + _REFERENCE), side, shares, price)
    elif kind in (_E, _X, _D, _U):
        reference = load_be64(data, at + _REFERENCE)
        slot = hashing.find(core.map, reference)
        if slot == _0:
            return
        word = slot << _ORDER_SHIFT
        if kind in (_E, _X):
            shares, less = np.uint64(core.orders[word + _SHARES]), load_be32(data, at + _LESS)
            if less < shares:
                core.orders[word + _SHARES] = shares - less
                return
        side = np.uint64(core.orders[word + _PLACE]) & _1
        hashing.remove(core.map, reference)
        _leave(core, slot)
        if kind == _U:
            shares, price = load_be32(data, at + _NEW_SIZE), load_be32(data, at + _NEW_PRICE)
            _add(core, load_be64(data, at + _NEW), side, shares, price)


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _add(core, reference, side, shares, price):
    """Put an order at the end of its queue; without room, or with a reference in use, nothing happens."""
    if hashing.find(core.map, reference) != _0:
        return
    slot = pool.take(core.slab)
    if slot == _0:
        return
    hashing.insert(core.map, reference, slot)
    cents = min(price // _CENT, _LAST_PRICE)
    place, orders = (cents << _1) | side, core.orders
    word, ends = slot << _ORDER_SHIFT, core.ends[place]
    last = ends & _MASK32
    orders[word + _BEFORE] = last
    orders[word + _AFTER] = _0
    orders[word + _SHARES] = shares
    orders[word + _PLACE] = place
    if ends == _0:
        core.ends[place] = (slot << _32) | slot
        if side == _0:
            bitmap.insert(core.bids, cents)
        else:
            bitmap.insert(core.asks, cents)
    else:
        orders[(last << _ORDER_SHIFT) + _AFTER] = slot
        core.ends[place] = (ends & ~_MASK32) | slot


@kernel(inner=True)
def _leave(core, slot):
    """Take an order out of its queue and give its slot back."""
    orders, word = core.orders, slot << _ORDER_SHIFT
    place = np.uint64(orders[word + _PLACE])
    before, after = np.uint64(orders[word + _BEFORE]), np.uint64(orders[word + _AFTER])
    ends = core.ends[place]
    if before != _0:
        orders[(before << _ORDER_SHIFT) + _AFTER] = after
    else:
        ends = (after << _32) | (ends & _MASK32)
    if after != _0:
        orders[(after << _ORDER_SHIFT) + _BEFORE] = before
    else:
        ends = (ends & ~_MASK32) | before
    core.ends[place] = ends
    if ends == _0:
        if place & _1 == _0:
            bitmap.remove(core.bids, place >> _1)
        else:
            bitmap.remove(core.asks, place >> _1)
    pool.give(core.slab, slot)


def live_orders(core: Core) -> int:
    """Return how many orders there are."""
    return int(core.slab.state[pool.LIVE])


@kernel
def queue(core, place, out):
    """Write the open shares of a queue, in its order, into `out` (uint64) as far as they fit; return its length.

    Parameters
    ----------
    core : Core
    place : uint64
        Cents << 1 | side (0 for bids).
    out : ndarray of uint64
    """
    slot, count = core.ends[place] >> _32, _0
    while slot != _0:
        if count < np.uint64(out.size):
            out[count] = np.uint64(core.orders[(slot << _ORDER_SHIFT) + _SHARES])
        count += _1
        slot = np.uint64(core.orders[(slot << _ORDER_SHIFT) + _AFTER])
    return count


@kernel
def digest(core):
    """Return 64 bits that depend on every queue's length and shares and on their order."""
    total = _0
    for place in range(np.uint64(core.ends.size)):
        slot, rank = core.ends[place] >> _32, _0
        while slot != _0:
            rank += _1
            word = slot << _ORDER_SHIFT
            total += (np.uint64(core.orders[word + _SHARES]) + (place << _32)) * (rank + rank + _1)
            slot = np.uint64(core.orders[word + _AFTER])
    return total
