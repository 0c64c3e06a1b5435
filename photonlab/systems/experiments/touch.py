"""One instrument's book on an array of prices, whose best price is searched level by level or by bitmap (F9, F10).

A small book from end to end, as the source of these claims has it: framing, decoding, an order map, and for each side
one slot for each price that there can be, in raw units of 0.0001 while quotes move by 0.01. When the last order at the
best price goes, the next best has to be found: linearly, over the slots from there on, or by the bitmap of
`photonlab.kernels.bitmap`. Everything else is the same, so the ratio of two runs is the effect end to end.

Prices beyond the array (stub quotes at 199,999.99 for one) are counted and kept out of the levels: that such a
book loses them is one reason why the project's own book has another structure.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import bitmap, hashing, pool
from photonlab.kernels.bitmap import NONE, Bitmap
from photonlab.kernels.framing import AHEAD, PREFIX
from photonlab.kernels.hashing import Map
from photonlab.kernels.itch import IS_ORDER, LENGTH_BY_TYPE, offset_of
from photonlab.kernels.pool import Pool
from photonlab.machine.bits import load_be16, load_be32, load_be64, load_u8, prefetch
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array, huge_array
from photonlab.systems.experiments.passes import Pass, fold

PRICES = 1 << 21
"""Slots of a side: prices from 0 to 209.7151."""

UPDATES, EXAMINED, LONGEST, IN_VAIN, EXAMINED_IN_VAIN, WORDS, BEYOND, TOUCHED, MESSAGES = range(9)
"""Words of `TouchBook.tally`: searches for a new best price, levels that they examined, most in one of them, searches
that found none, levels that those examined, words of the bitmap read, orders at prices beyond the array, a checksum of
all best prices, messages. A search by bitmap counts as one level examined, also when it finds that there is none."""

_0, _1, _63 = np.uint64(0), np.uint64(1), np.uint64(63)
_UPDATES, _EXAMINED, _LONGEST, _IN_VAIN, _EXAMINED_IN_VAIN, _WORDS, _BEYOND, _TOUCHED, _MESSAGES = (
    np.uint64(i) for i in range(9)
)
_PRICES, _NOWHERE = np.uint64(PRICES), np.uint64(0xFFFFFFFF)
_BID, _ASK = np.uint64(0), np.uint64(1)
_SHARES_WORD, _PRICE_WORD, _SIDE_WORD, _SHIFT = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(2)

_LENGTHS = LENGTH_BY_TYPE.astype(np.uint64)
_A, _F, _E, _C, _X, _D, _U, _S = (np.uint64(ord(letter)) for letter in "AFECXDUS")
_LOCATE = np.uint64(1)
_REFERENCE, _SIDE, _SIZE, _PRICE = (
    np.uint64(offset_of("A", name)) for name in ("order_reference_number", "buy_sell_indicator", "shares", "price")
)
_LESS = np.uint64(offset_of("E", "executed_shares"))
_NEW, _NEW_SIZE, _NEW_PRICE = (
    np.uint64(offset_of("U", name)) for name in ("new_order_reference_number", "shares", "price")
)


class TouchBook(NamedTuple):
    """One instrument's book.

    Attributes
    ----------
    map : Map
        Order reference → slot.
    slab : Pool
    orders : ndarray of uint32, shape (4 * slots,)
        Open shares, raw price (all ones beyond the array), side (0 for bids), unused.
    bids, asks : ndarray of uint32, shape (PRICES,)
        Orders at each price: what a linear search looks at.
    volumes : ndarray of uint64, shape (2 * PRICES,)
        Open shares at each price, bids first.
    bid_bits, ask_bits : Bitmap
        Prices with an order; used by the search by bitmap only.
    best : ndarray of uint64, shape (2,)
        Best bid and ask, `bitmap.NONE` for an empty side.
    tally : ndarray of uint64, shape (9,)
    """

    map: Map
    slab: Pool
    orders: np.ndarray
    bids: np.ndarray
    asks: np.ndarray
    volumes: np.ndarray
    bid_bits: Bitmap
    ask_bits: Bitmap
    best: np.ndarray
    tally: np.ndarray


def make_touch_book(slots=1 << 20) -> TouchBook:
    """Return an empty book with room for `slots` - 1 orders (a power of two)."""
    return TouchBook(
        hashing.make_map(2 * slots, min(2 * slots, 1024)),
        pool.make_pool(slots),
        huge_array(4 * slots, np.uint32),
        huge_array(PRICES, np.uint32),
        huge_array(PRICES, np.uint32),
        huge_array(2 * PRICES, np.uint64),
        bitmap.make_bitmap(PRICES),
        bitmap.make_bitmap(PRICES),
        np.full(2, NONE, np.uint64),
        np.zeros(9, np.uint64),
    )


@kernel
def run(book, data, by_bitmap):
    """Apply all whole messages, whatever their locate.

    Parameters
    ----------
    book : TouchBook
    data : ndarray of uint8
        Of one instrument, see `only`.
    by_bitmap : bool
        How a new best price is searched.
    """
    size, position = np.uint64(data.size), _0
    while position + np.uint64(PREFIX) <= size:
        length = load_be16(data, position)
        at = position + np.uint64(PREFIX)
        if length == _0 or at + length > size:
            break
        prefetch(data, position + np.uint64(AHEAD))
        kind = load_u8(data, at)
        if _LENGTHS[kind] == length:
            _apply(book, data, at, kind, by_bitmap)
        book.tally[_MESSAGES] += _1
        position = at + length


@kernel(inner=True)
def _apply(book, data, at, kind, by_bitmap):
    """Apply a message of a known type."""
    if kind in (_A, _F):
        side = np.uint64(load_u8(data, at + _SIDE) == _S)
        shares, price = load_be32(data, at + _SIZE), load_be32(data, at + _PRICE)
        _add(book, load_be64(data, at + _REFERENCE), side, shares, price, by_bitmap)
    elif IS_ORDER[kind] != 0:
        reference = load_be64(data, at + _REFERENCE)
        slot = hashing.find(book.map, reference)
        if slot == _0:
            return
        word = slot << _SHIFT
        side, price = np.uint64(book.orders[word + _SIDE_WORD]), np.uint64(book.orders[word + _PRICE_WORD])
        shares = np.uint64(book.orders[word + _SHARES_WORD])
        if kind in (_E, _C, _X):
            less = load_be32(data, at + _LESS)
            if less < shares:
                book.orders[word + _SHARES_WORD] = shares - less
                if price != _NOWHERE:
                    book.volumes[price + side * _PRICES] -= less
                return
        hashing.remove(book.map, reference)
        pool.give(book.slab, slot)
        if price != _NOWHERE:
            book.volumes[price + side * _PRICES] -= shares
            _leave(book, side, price, by_bitmap)
        if kind == _U:
            shares, price = load_be32(data, at + _NEW_SIZE), load_be32(data, at + _NEW_PRICE)
            _add(book, load_be64(data, at + _NEW), side, shares, price, by_bitmap)


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _add(book, reference, side, shares, price, by_bitmap):
    """Bring an order; without room, or with a reference in use, nothing happens."""
    if hashing.find(book.map, reference) != _0:
        return
    slot = pool.take(book.slab)
    if slot == _0:
        return
    hashing.insert(book.map, reference, slot)
    word = slot << _SHIFT
    book.orders[word + _SHARES_WORD] = shares
    book.orders[word + _SIDE_WORD] = side
    if price >= _PRICES:
        book.orders[word + _PRICE_WORD] = _NOWHERE
        book.tally[_BEYOND] += _1
        return
    book.orders[word + _PRICE_WORD] = price
    book.volumes[price + side * _PRICES] += shares
    best = book.best[side]
    if side == _BID:
        book.bids[price] += np.uint32(1)
        if by_bitmap and book.bids[price] == 1:
            bitmap.insert(book.bid_bits, price)
        if best == NONE or price > best:
            book.best[side] = price
    else:
        book.asks[price] += np.uint32(1)
        if by_bitmap and book.asks[price] == 1:
            bitmap.insert(book.ask_bits, price)
        if best == NONE or price < best:
            book.best[side] = price


@kernel(inner=True)
def _leave(book, side, price, by_bitmap):
    """Take an order off a level, and search the next best price if it was the best one's last."""
    tally, found, read = book.tally, NONE, _0
    if side == _BID:
        left = book.bids[price] - np.uint32(1)
        book.bids[price] = left
        if left != 0:
            return
        if by_bitmap:
            bitmap.remove(book.bid_bits, price)
        if price != book.best[side]:
            return
        if price != _0:
            if by_bitmap:
                found, read = bitmap.at_or_below(book.bid_bits, price - _1)
            else:
                found, read = bitmap.linear_at_or_below(book.bids, price - _1)
    else:
        left = book.asks[price] - np.uint32(1)
        book.asks[price] = left
        if left != 0:
            return
        if by_bitmap:
            bitmap.remove(book.ask_bits, price)
        if price != book.best[side]:
            return
        if by_bitmap:
            found, read = bitmap.at_or_above(book.ask_bits, price + _1)
        else:
            found, read = bitmap.linear_at_or_above(book.asks, price + _1)
    book.best[side] = found
    examined = read
    if by_bitmap:  # it looks at words of bits, and then at the level that they point to
        examined = _1
        tally[_WORDS] += read
    tally[_UPDATES] += _1
    tally[_EXAMINED] += examined
    tally[_LONGEST] = max(tally[_LONGEST], examined)
    if found == NONE:
        tally[_IN_VAIN] += _1
        tally[_EXAMINED_IN_VAIN] += examined
    tally[_TOUCHED] = tally[_TOUCHED] * np.uint64(31) + found


@kernel
def activity(data, messages, beyond):
    """Count order messages by locate, and those that bring an order at a price beyond the array.

    Parameters
    ----------
    data : ndarray of uint8
    messages, beyond : ndarray of uint64, shape (65536,)
        Added to.
    """
    size, at = np.uint64(data.size), _0
    while at + np.uint64(PREFIX) <= size:
        length = load_be16(data, at)
        at += np.uint64(PREFIX)
        if length == _0 or at + length > size:
            break
        kind = load_u8(data, at)
        if _LENGTHS[kind] == length and IS_ORDER[kind] != 0:
            locate = load_be16(data, at + _LOCATE)
            messages[locate] += _1
            if kind in (_A, _F, _U):
                price = load_be32(data, at + (_NEW_PRICE if kind == _U else _PRICE))
                beyond[locate] += np.uint64(price >= _PRICES)
        at += length


@kernel
def only(data, locate, out):
    """Copy the messages of one instrument with their prefixes; return the bytes that they take.

    Parameters
    ----------
    data : ndarray of uint8
    locate : uint64
    out : ndarray of uint8
        Nothing is written beyond its end.
    """
    size, at, to = np.uint64(data.size), _0, _0
    while at + np.uint64(PREFIX) + np.uint64(3) <= size:
        length = load_be16(data, at)
        following = at + np.uint64(PREFIX) + length
        if length == _0 or following > size:
            break
        if length >= np.uint64(3) and load_be16(data, at + np.uint64(PREFIX) + _LOCATE) == locate:
            if to + following - at <= np.uint64(out.size):
                for i in range(following - at):
                    out[to + i] = data[at + i]
            to += following - at
        at = following
    return to


def busiest(data, count=1, most_beyond=0.1) -> list[int]:
    """Return the locates of the instruments with most order messages, of those whose prices the array holds.

    Parameters
    ----------
    data : bytes-like or ndarray of uint8
    count : int
    most_beyond : float
        Share of an instrument's order messages that may bring a price beyond the array.
    """
    messages, beyond = np.zeros(1 << 16, np.uint64), np.zeros(1 << 16, np.uint64)
    activity(as_bytes_array(data), messages, beyond)
    order = np.argsort(-messages.astype(np.int64), kind="stable")
    return [int(n) for n in order if messages[n] and beyond[n] <= most_beyond * messages[n]][:count]


def day_of(data, locate: int) -> np.ndarray:
    """Return the messages of one instrument, each behind its length."""
    data = as_bytes_array(data)
    size = int(only(data, np.uint64(locate), np.empty(0, np.uint8)))
    out = np.empty(size, np.uint8)
    only(data, np.uint64(locate), out)
    return out


class TouchPass(Pass):
    """A pass over one instrument's day with the one search or the other.

    Parameters
    ----------
    data, warm
        See `photonlab.systems.experiments.passes.Pass`.
    by_bitmap : bool
    """

    def __init__(self, data, *, by_bitmap, warm=True):
        super().__init__(data, warm=warm)
        self.by_bitmap = by_bitmap

    def _fresh(self):
        return make_touch_book()

    def __call__(self) -> int:
        """Apply the day; returns a checksum of all best prices, which both searches must agree on."""
        run(self.state, self.data, self.by_bitmap)
        tally = self.state.tally
        return fold(tally[TOUCHED] >> np.uint64(12), tally[UPDATES], *(self.state.best >> np.uint64(1)))
