"""The engine: the bytes of a tick in, books updated, and the bytes of an order out if two venues' books cross.

A tick at one venue that leaves its bid above the other venue's offer (or its offer below the other's bid) by the edge
shows that the other venue's quote is late: the order takes that quote, at its price, for what both show, at once or
not at all. What it takes is taken off the touch as well, so that no quote is taken twice; the venue's next word about
that side sets it right. A venue that lost ticks is not traded on, nor on the strength of its quotes, until `resume`.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64

from photonlab.errors import UserError
from photonlab.kernels import level_book
from photonlab.kernels.level_book import CHANGE, DELETE, NEW, OVERLAY, SIZE_MASK, LevelBooks
from photonlab.kernels.sbe import fields
from photonlab.machine import bits
from photonlab.machine.jit import kernel
from photonlab.systems.tick_to_trade import messages, parts
from photonlab.systems.tick_to_trade.messages import BUY, IMMEDIATE, LIMIT, ORDER_FRAMING, ORDER_HEADER, TICK_HEADER
from photonlab.systems.tick_to_trade.parts import BEGUN, BOOKED, DECIDED, DECODED, ENCODED, mark, reaches

NEXT, LATE, ORDER_NUMBER, EDGE, INSTRUMENTS, SEEN = (np.uint64(n) for n in (0, 2, 4, 5, 6, 7))
"""Words of the state: the next sequence of each venue, whether it lost ticks, the next order's number, by how much
prices must cross, how many instruments there are, and what an engine has seen that ends after a part of its work."""

TICKS, SENT, REPEATED, LOST, UNKNOWN_TEMPLATE, UNKNOWN_SECURITY, BAD_ENTRY, EMPTY_LEVEL = (
    np.uint64(n) for n in range(8, 16)
)
"""Words of the state that count: ticks applied, orders, ticks that had been there before, ticks that never came,
messages of another template, entries for an instrument or with a level, side or action that there is none of, and
changes of levels that were empty."""

COUNTERS = {
    "ticks": TICKS, "orders": SENT, "repeated": REPEATED, "lost": LOST, "unknown template": UNKNOWN_TEMPLATE,
    "unknown security": UNKNOWN_SECURITY, "bad entry": BAD_ENTRY, "empty level": EMPTY_LEVEL,
}  # fmt: skip

NOT_FRAMED, BAD_LENGTH, BAD_BLOCK, BAD_VENUE, NO_ROOM = (-65536 * n for n in range(1, 6))
"""What `on_tick` returns instead of bytes when a stream cannot be read on; `WHY` says it in words."""

WHY = {
    NOT_FRAMED: "no message begins here: its framing is not 0xCAFE",
    BAD_LENGTH: "a message is shorter than its own header",
    BAD_BLOCK: "a block or group does not fit into its message",
    BAD_VENUE: f"a venue other than 0 to {messages.VENUES - 1}",
    NO_ROOM: "no room for the orders that a message may call for",
}

MOST_ORDERS = 255
"""Orders that one message can call for at most: one an entry."""

_0, _1, _2, _4, _10, _16, _32 = (np.uint64(n) for n in (0, 1, 2, 4, 10, 16, 32))
_FRAME, _DIMENSION = np.uint64(messages.FRAME), np.uint64(messages.DIMENSION)
_ROOT_AT = np.uint64(messages.FRAME + messages.HEADER)
_LEAST_ROOT, _LEAST_ENTRY = np.uint64(messages.LEAST_ROOT), np.uint64(messages.LEAST_ENTRY)
_ORDER_SIZE, _WORDS, _MARK, _CHAR = (
    np.uint64(n) for n in (messages.ORDER_SIZE, level_book.WORDS, messages.FRAMED, ord("0"))
)
_MASK16, _MASK32 = np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)


class Engine(NamedTuple):
    """An engine's state.

    Attributes
    ----------
    books : LevelBooks
    state : uint64[16]
        See the constants of this module.
    """

    books: LevelBooks
    state: np.ndarray


mark.kernels[Engine] = parts.nothing_marked
parts.close.kernels[Engine] = parts.nothing_closed
reaches.kernels[Engine] = parts.everything


def make_engine(instruments=1, *, edge=1, first_sequence=1, huge=True) -> Engine:
    """Make an engine with empty books.

    Parameters
    ----------
    instruments : int
        Securities are numbered from 0.
    edge : int
        By how much prices must cross, in units of 10⁻⁹; at least 1.
    first_sequence : int
        Of each venue's ticks.
    huge : bool
        Ask for pages of 2 MiB for the books.

    Raises
    ------
    UserError
        For less than one instrument, or an edge below 1.
    """
    if not 1 <= instruments <= 1 << 24 or not 1 <= edge < 1 << 62:
        raise UserError(f"an engine needs 1 to {1 << 24} instruments and an edge of at least 1: {instruments}, {edge}")
    engine = Engine(level_book.make_level_books(instruments, huge=huge), np.zeros(16, np.uint64))
    reset(engine, edge=edge, first_sequence=first_sequence)
    return engine


def reset(engine, *, edge=None, first_sequence=1):
    """Empty the books and the counters; the edge stays unless another is given."""
    edge = int(engine.state[EDGE]) if edge is None else edge
    level_book.clear(engine.books)
    engine.state[:] = 0
    engine.state[NEXT : NEXT + _2] = first_sequence
    engine.state[ORDER_NUMBER] = 1
    engine.state[EDGE], engine.state[INSTRUMENTS] = edge, engine.books.words.size // level_book.WORDS


def resume(engine, venue, next_sequence):
    """Trade on a venue again whose books were made good after lost ticks."""
    engine.state[NEXT + np.uint64(venue)] = next_sequence
    engine.state[LATE + np.uint64(venue)] = 0


def counters(engine) -> dict:
    """Return the counts by name."""
    return {name: int(engine.state[word]) for name, word in COUNTERS.items()}


@kernel(inner=True)
def on_tick(engine, data, begin, end, out, room):
    """Take one message from a buffer: update the books, and build orders where they cross.

    Parameters
    ----------
    engine : Engine
    data : uint8[n]
        Bytes received; those from `begin` to `end` are there.
    begin, end : uint64
    out : uint8[m]
        Orders are written here from `room` on, of which the last ORDER_SIZE bytes may be written without being sent.
    room : uint64
        Offset in `out`.

    Returns
    -------
    following : uint64
        Offset behind the message; `begin` if none was taken.
    sent : int64
        Bytes of orders that must be sent, 0 for none. From -1 to -65535, with nothing taken: at least so many bytes
        are missing. Below: an error, one of `WHY`; nothing was changed.
    """
    mark(engine, BEGUN)
    state = engine.state
    there = end - begin
    if there < _ROOT_AT:
        return begin, int64(there) - int64(_ROOT_AT) if there < _4 else _short(data, begin, there)
    length = fields.get(data, begin, messages.LENGTH)
    if fields.get(data, begin, messages.ENCODING) != _MARK:
        return begin, int64(NOT_FRAMED)
    if length > there:
        return begin, int64(there) - int64(length)
    if length < _ROOT_AT:
        return begin, int64(BAD_LENGTH)
    following = begin + length
    header = bits.load_le64(data, begin + _FRAME)
    if (header >> _16) & _MASK32 != TICK_HEADER:
        state[UNKNOWN_TEMPLATE] += _1
        return following, int64(0)
    root = begin + _ROOT_AT
    block = header & _MASK16
    dimension = root + block
    if block < _LEAST_ROOT or dimension + _DIMENSION > following:
        return begin, int64(BAD_BLOCK)
    stride, count = fields.get(data, dimension, messages.ENTRY_LENGTH), fields.get(data, dimension, messages.ENTRIES)
    entry = dimension + _DIMENSION
    stop = entry + count * stride
    if stop > following or stride < _LEAST_ENTRY:
        return begin, int64(BAD_BLOCK)
    venue = fields.get(data, root, messages.VENUE)
    if venue > _1:
        return begin, int64(BAD_VENUE)
    if room + count * _ORDER_SIZE > uint64(out.size) or room + _ORDER_SIZE > uint64(out.size):
        return begin, int64(NO_ROOM)
    sequence, expected = fields.get(data, root, messages.SEQUENCE), state[NEXT + venue]
    if sequence != expected:
        if sequence < expected:
            state[REPEATED] += _1
            return following, int64(0)
        state[LOST] += sequence - expected
        state[LATE + venue] = _1
    state[NEXT + venue] = sequence + _1
    state[TICKS] += _1
    time = fields.get(data, root, messages.TIME)
    late = state[LATE] | state[LATE + _1]
    put = room
    while entry < stop:
        put += _apply(engine, data, entry, venue, time, sequence, late, out, put)
        entry += stride
    return following, int64(put - room)


@kernel(inner=True)
def _short(data, begin, there):
    """Return what to say of a message of which less than the header is there."""
    if fields.get(data, begin, messages.ENCODING) != _MARK:
        return int64(NOT_FRAMED)
    length = fields.get(data, begin, messages.LENGTH)
    return int64(there) - int64(length) if length >= _ROOT_AT else int64(BAD_LENGTH)


@kernel(inner=True)
def _apply(engine, data, entry, venue, time, sequence, late, out, put):
    """Apply one entry, write the order that it may call for, and return that order's size or 0."""
    state, words = engine.state, engine.books.words
    security = fields.get(data, entry, messages.SECURITY)
    level = fields.get(data, entry, messages.LEVEL) - _1
    action, offer = fields.get(data, entry, messages.ACTION), fields.get(data, entry, messages.SIDE) - _CHAR
    size = fields.get(data, entry, messages.SIZE)
    if security >= state[INSTRUMENTS]:
        state[UNKNOWN_SECURITY] += _1
        return _0
    gone = uint64((action - DELETE) <= OVERLAY - DELETE - _1)  # DELETE, DELETE_THRU and DELETE_FROM need no size
    if level >= _10 or offer > _1 or action > OVERLAY or (gone == _0 and size - _1 >= _MASK32 >> _1):
        state[BAD_ENTRY] += _1
        return _0
    base = security * _WORDS
    side = (venue << _1) + offer
    price = fields.get(data, entry, messages.PRICE)
    size_and_orders = size | (fields.get(data, entry, messages.ORDERS) << _32)
    mark(engine, DECODED)
    if not reaches(engine, BOOKED):
        state[SEEN] ^= base + side + level + action + price + size_and_orders + time
        return _0
    if action > DELETE:
        if action != OVERLAY:
            level_book.delete_many(words, base, side, level, action)
            return _0
        action = CHANGE
    before = level_book.update(words, base, side, level, action, price, size_and_orders)
    state[EMPTY_LEVEL] += uint64(action != NEW) & uint64(before == _0)
    mark(engine, BOOKED)
    if not reaches(engine, DECIDED):
        return _0
    return _decide(engine, base, venue, offer, security, time, sequence, late, out, put)


@kernel(inner=True)
def _decide(engine, base, venue, offer, security, time, sequence, late, out, put):
    """Write the order that takes the other venue's quote, and return its size if it must be sent, else 0.

    The order is written in any case: that costs less than guessing wrong whether to.
    """
    state, words = engine.state, engine.books.words
    mine = base + (venue << _2) + (offer << _1)
    other = base + ((venue ^ _1) << _2) + ((offer ^ _1) << _1)
    limit, quoted = words[other], words[other + _1]
    high, low = (limit, words[mine]) if offer != _0 else (words[mine], limit)
    shown, there = words[mine + _1] & SIZE_MASK, quoted & SIZE_MASK
    quantity = min(shown, there)
    crossed = uint64(int64(high) >= int64(low)) & uint64(high - low >= state[EDGE])
    fires = crossed & uint64(quantity != _0) & (late ^ _1)
    number = state[ORDER_NUMBER]
    state[ORDER_NUMBER] = number + fires
    state[SENT] += fires
    words[other + _1] = quoted - quantity * fires
    mark(engine, DECIDED)
    if not reaches(engine, ENCODED):
        state[SEEN] ^= limit
        return _ORDER_SIZE * fires
    bits.store_le32(out, put, ORDER_FRAMING)
    bits.store_le64(out, put + _FRAME, ORDER_HEADER)
    block = put + _ROOT_AT
    fields.put(out, block, messages.ORDER_ID, number)
    fields.put(out, block, messages.ORDER_PRICE, limit)
    fields.put(out, block, messages.ORDER_TIME, time)
    fields.put(out, block, messages.ORDER_SECURITY, security)
    fields.put(out, block, messages.ORDER_QUANTITY, quantity)
    fields.put(out, block, messages.ORDER_TICK, sequence)
    fields.put(out, block, messages.ORDER_VENUE, venue ^ _1)
    fields.put(out, block, messages.ORDER_SIDE, BUY + offer)
    fields.put(out, block, messages.ORDER_TYPE, LIMIT)
    fields.put(out, block, messages.ORDER_FORCE, IMMEDIATE)
    mark(engine, ENCODED)
    return _ORDER_SIZE * fires


@kernel
def run(engine, data, begin, end, out):
    """Take all messages of a buffer; the orders stand one behind the other in `out`.

    Parameters
    ----------
    engine, data, begin, end, out
        As of `on_tick`.

    Returns
    -------
    following : uint64
        Offset behind the last message taken.
    written : uint64
        Bytes of orders in `out`.
    outcome : int64
        0 if the buffer ends with a message; else what `on_tick` says of the rest: bytes that are missing, or an error.
    """
    at, written = uint64(begin), _0
    while at < end:
        at, sent = on_tick(engine, data, at, uint64(end), out, written)
        if sent < 0:
            return at, written, sent
        written += uint64(sent)
    return at, written, int64(0)
