"""The replay's loop with calls into functions of the user's own: on every event, every change of a best price, in time.

The functions are compiled by Numba and reached by their address, so the loop is compiled once for each type of state
that they keep, and not for each function.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import book_queries, order_indices, price_tree
from photonlab.machine.bits import load_be16, load_be32, load_be48, load_be64, load_u8
from photonlab.machine.handles import make_handle
from photonlab.machine.jit import kernel
from photonlab.systems import message_loop
from photonlab.systems.batch import (
    ADD,
    ADDED_PRICE,
    ADDED_SHARES,
    BATCH,
    CLASS_SHIFT,
    DELETE,
    EXECUTE,
    MORE,
    NEW_PRICE,
    NEW_REFERENCE,
    NEW_SHARES,
    OFFSET,
    REFERENCE,
    REPLACE,
    SKIP,
    TAKEN_SHARES,
    entry_at,
    frame,
    look_ahead,
    side_of,
)
from photonlab.systems.message_loop import FULL

# Words of an event
(
    TIME, LOCATE, TYPE, SEQUENCE, SIDE, REF, PRICE, SHARES, NEW_REF, BID, BID_SHARES, ASK, ASK_SHARES,
    OLD_BID, OLD_BID_SHARES, OLD_ASK, OLD_ASK_SHARES,
) = (np.uint64(i) for i in range(17))  # fmt: skip
EVENT_WORDS = 17

_0, _1 = np.uint64(0), np.uint64(1)
_BATCH = np.uint64(BATCH)
_P, _Q = np.uint64(ord("P")), np.uint64(ord("Q"))
_TIME_AT = np.uint64(5)  # of 6 bytes, in every message

# Words of `clock`
NEXT, EVERY, LAST, SEEN, END = (np.uint64(i) for i in range(5))
NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)

# Bits of `calls`
ON_EVENT, ON_BBO, ON_TIME = (np.uint64(i) for i in (1, 2, 4))


class Calls(NamedTuple):
    """What is called, and what the calls are told.

    Attributes
    ----------
    which : ndarray of uint64, shape (1,)
        `ON_EVENT`, `ON_BBO` and `ON_TIME`, or-ed.
    event : ndarray of uint64, shape (EVENT_WORDS,)
        See `photonlab.event`.
    clock : ndarray of uint64, shape (5,)
        The next time to call at, the step of the grid, the time of the last message, messages so far, the last time to
        call at.
    books : ndarray of uint64, shape (words,)
        Handle of the books (`photonlab.machine.handles`).
    """

    which: np.ndarray
    event: np.ndarray
    clock: np.ndarray
    books: np.ndarray


def make_calls(book, on_event, on_bbo, every=0, start=0, end=0) -> Calls:
    """Return the state of the calls before the first message.

    Parameters
    ----------
    book : Book
    on_event, on_bbo : bool
    every : int
        Nanoseconds between calls on time; 0 for none.
    start, end : int
        Nanoseconds since midnight of the first of these, and after which there is none.
    """
    which = (ON_EVENT if on_event else _0) | (ON_BBO if on_bbo else _0) | (ON_TIME if every else _0)
    clock = np.array([start if every else NEVER, every, 0, 0, end], np.uint64)
    return Calls(np.array([which], np.uint64), np.zeros(EVENT_WORDS, np.uint64), clock, make_handle(book))


@kernel(inner=True)
def _note_touch(event, book, locate, at):
    """Write best bid and offer of an instrument from word `at` on."""
    event[at], event[at + _1] = book_queries.bid(book, locate)
    event[at + np.uint64(2)], event[at + np.uint64(3)] = book_queries.ask(book, locate)


@kernel(inner=True)
def _describe(event, book, data, at, what, entry):
    """Fill in what a message says of an order, and what the order was before it."""
    event[LOCATE] = load_be16(data, at + _1)
    event[TYPE] = load_u8(data, at)
    event[SIDE] = event[REF] = event[PRICE] = event[SHARES] = event[NEW_REF] = _0
    if what - EXECUTE <= REPLACE - EXECUTE:
        reference = load_be64(data, at + REFERENCE)
        event[REF] = reference
        side, price, _, live = book_queries.order(book, reference)
        if live:
            event[LOCATE], event[SIDE], event[PRICE] = side >> _1, side & _1, price
        if what < DELETE:
            event[SHARES] = load_be32(data, at + TAKEN_SHARES)
        elif what == REPLACE:
            event[NEW_REF] = load_be64(data, at + NEW_REFERENCE)
            event[SHARES], event[PRICE] = load_be32(data, at + NEW_SHARES), load_be32(data, at + NEW_PRICE)
    elif what == ADD or event[TYPE] == _P:  # a trade against an order that was not shown has the layout of an order
        event[REF] = load_be64(data, at + REFERENCE)
        event[SIDE] = side_of(data, at) & _1
        event[SHARES], event[PRICE] = load_be32(data, at + ADDED_SHARES), load_be32(data, at + ADDED_PRICE)
    elif event[TYPE] == _Q:
        event[SHARES], event[PRICE] = load_be64(data, at + REFERENCE), load_be32(data, at + np.uint64(27))


@kernel(inner=True)
def _moved(event):
    """Whether a best price or its shares are others than before."""
    return (
        event[BID] != event[OLD_BID]
        or event[BID_SHARES] != event[OLD_BID_SHARES]
        or event[ASK] != event[OLD_ASK]
        or event[ASK_SHARES] != event[OLD_ASK_SHARES]
    )


@kernel(inner=True)
def _strike(calls, on_time, state):
    """Call at the next time of the grid, and move on."""
    clock = calls.clock
    calls.event[TIME] = clock[NEXT]
    on_time(calls.books, calls.event, state)
    clock[NEXT] += clock[EVERY]
    if clock[NEXT] > clock[END]:
        clock[NEXT] = NEVER


@kernel
def finish(feed, calls, on_time, state):
    """Call at the times up to that of the last message: nothing will happen at them any more."""
    while calls.clock[NEXT] <= calls.clock[LAST]:
        calls.event[SEQUENCE] = calls.clock[SEEN]
        _strike(calls, on_time, state)


@kernel
def replay(feed, calls, on_event, on_bbo, on_time, state, data, begin, end):
    """Apply the whole messages of a chunk as `message_loop.replay` does, and call.

    Parameters
    ----------
    feed : message_loop.Feed
    calls : Calls
    on_event, on_bbo, on_time : function of (ndarray of uint64, ndarray of uint64, state)
        Compiled, and given by address; what `calls` does not name is never called.
    state : any
        Handed on.
    data : ndarray of uint8
    begin, end : uint64

    Returns
    -------
    at, outcome : uint64
        See `message_loop.replay`.
    """
    batch, book, event, clock = feed.batch, feed.book, calls.event, calls.clock
    which = calls.which[_0]
    at, outcome, count = begin, MORE, _1
    while count != _0 and outcome == MORE:
        if not books.make_room(book, _BATCH):
            return at, FULL
        changes = order_indices.changes_of(book.index)
        count, gone, come, replaced, at, outcome = frame(
            batch, feed.counts, feed.anomalies, book.index, book.tree.sides, data, at, end
        )
        if feed.session[message_loop.SELECTED] != _0:
            message_loop._select(feed, data, count)
        look_ahead(batch, book, data, end, gone, come, replaced)
        i = _0
        while i < count:
            message = batch.messages[i]
            offset, what, entry = message & OFFSET, message >> CLASS_SHIFT, batch.entries[i]
            i += _1
            clock[SEEN] += _1
            if what == SKIP:
                continue
            time = load_be48(data, offset + _TIME_AT)
            clock[LAST] = max(clock[LAST], time)
            while time > clock[NEXT]:
                event[SEQUENCE] = clock[SEEN] - _1
                _strike(calls, on_time, state)
            if order_indices.changes_of(book.index) != changes:
                entry = entry_at(book.index, data, offset, end)
            if which & (ON_EVENT | ON_BBO) == _0:
                message_loop.apply(feed, data, offset, what, entry)
                continue
            _describe(event, book, data, offset, what, entry)
            event[TIME], event[SEQUENCE] = time, clock[SEEN]
            _note_touch(event, book, event[LOCATE], OLD_BID)
            message_loop.apply(feed, data, offset, what, entry)
            _note_touch(event, book, event[LOCATE], BID)
            if which & ON_EVENT != _0:
                on_event(calls.books, event, state)
            if which & ON_BBO != _0 and _moved(event):
                on_bbo(calls.books, event, state)
    if price_tree.crowded(book.tree):
        price_tree.sweep(book.tree)
    return at, outcome
