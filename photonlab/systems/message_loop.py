"""The replay's inner loop: framed messages, a batch at a time, applied to the books by the ITCH 5.0 rules.

A batch is framed, looked ahead at (`systems/batch.py` says why), and then applied message by message. Anomalies are
counted and never stop the loop; `tests/oracle/book.py` has the same rules in plain Python.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import order_indices, price_tree
from photonlab.kernels.book import Book
from photonlab.kernels.itch import SYMBOL_OFFSET_BY_TYPE
from photonlab.machine.bits import load_be16, load_be32, load_be64, load_u8
from photonlab.machine.jit import kernel
from photonlab.systems.batch import (
    ADD,
    ADDED_PRICE,
    ADDED_SHARES,
    BATCH,
    CLASS_SHIFT,
    DELETE,
    EXECUTE,
    EXECUTE_AT,
    MORE,
    NEW_PRICE,
    NEW_REFERENCE,
    NEW_SHARES,
    OFFSET,
    OTHER,
    PRINTABLE,
    REFERENCE,
    REPLACE,
    SIDE,
    SKIP,
    TAKEN_SHARES,
    Batch,
    entry_at,
    frame,
    look_ahead,
    make_batch,
    side_of,
)

LOCATES = 1 << 16

_0, _1 = np.uint64(0), np.uint64(1)
_BATCH = np.uint64(BATCH)
_COLD = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called now and then, by kernels only
_B, _H, _M, _N, _O, _P, _Q, _R, _S, _T, _h = (np.uint64(ord(c)) for c in "BHMNOPQRSTh")

NEVER = np.uint64(1 << 40)  # the key of no order: worse than that of an empty side

# How a call ended, beside what framing says
FULL = np.uint64(3)

# Words of `anomalies`, behind the two of framing
BAD_SIDE, DUPLICATE_REFERENCE, OVER_FILL, CROSSED, CROSSED_OUTSIDE_TRADING = (np.uint64(i) for i in range(2, 7))
ANOMALIES = (
    "unknown_type",
    "bad_length",
    "bad_side",
    "duplicate_reference",
    "over_fill",
    "crossed",
    "crossed_outside_trading",
)

# Bits of an instrument's `trading`: continuous when all are set
OPENED, TRADING, NOT_HALTED = np.uint8(1), np.uint8(2), np.uint8(4)
_CONTINUOUS = np.uint8(7)

# Words of `session`
MARKET_HOURS, SELECTED = np.uint64(0), np.uint64(1)
UNDECIDED, WANTED, UNWANTED = np.uint8(0), np.uint8(1), np.uint8(2)


class Feed(NamedTuple):
    """All that a replay keeps between two chunks.

    Attributes
    ----------
    book : Book
    counts : ndarray of uint64, shape (256,)
        Messages by type byte.
    unknown_reference : ndarray of uint64, shape (256,)
        By type byte, messages that name an order that is not live; nothing else came of them.
    anomalies : ndarray of uint64, shape (8,)
        See `ANOMALIES`.
    volume : ndarray of uint64, shape (65536,)
        By locate, shares traded: E, printable C, P and Q.
    names : ndarray of uint64, shape (65536,)
        By locate, the symbol's 8 bytes as a big-endian word.
    trading : ndarray of uint8, shape (65536,)
        By locate, what the feed has said on its trading.
    choice : ndarray of uint8, shape (65536,)
        By locate, whether it is wanted; looked at if symbols were chosen.
    wanted : ndarray of uint64, shape (symbols,)
        The chosen symbols.
    session : ndarray of uint64, shape (2,)
        Whether market hours have begun and not ended; whether symbols were chosen.
    batch : Batch
        Scratch.
    """

    book: Book
    counts: np.ndarray
    unknown_reference: np.ndarray
    anomalies: np.ndarray
    volume: np.ndarray
    names: np.ndarray
    trading: np.ndarray
    choice: np.ndarray
    wanted: np.ndarray
    session: np.ndarray
    batch: Batch


def make_feed(book, symbols=None) -> Feed:
    """Return a replay's state before the first message.

    Parameters
    ----------
    book : Book
    symbols : iterable of str, optional
        Keep only these instruments' books; all by default.

    Returns
    -------
    Feed
    """
    wanted = np.array([int.from_bytes(s.encode("ascii").ljust(8), "big") for s in symbols or ()], np.uint64)
    return Feed(
        book,
        np.zeros(256, np.uint64),
        np.zeros(256, np.uint64),
        np.zeros(8, np.uint64),
        np.zeros(LOCATES, np.uint64),
        np.zeros(LOCATES, np.uint64),
        np.full(LOCATES, TRADING | NOT_HALTED, np.uint8),
        np.zeros(LOCATES, np.uint8),
        wanted,
        np.array([0, symbols is not None], np.uint64),
        make_batch(),
    )


@kernel
def replay(feed, data, begin, end, ahead):
    """Apply the whole messages of a chunk.

    Parameters
    ----------
    feed : Feed
    data : ndarray of uint8
    begin, end : uint64
        Where a length prefix stands, and where the chunk ends.
    ahead : bool
        Look ahead at each batch before it is applied. False gives the same books, later.

    Returns
    -------
    at, outcome : uint64
        The offset of the first byte not consumed, and `MORE` (a whole message is no longer there), `END_OF_SESSION`
        (behind a length of zero), `IMPOSSIBLE_LENGTH` (at a prefix) or `FULL` (the books' memory is exhausted).
    """
    batch, book = feed.batch, feed.book
    at, outcome, count = begin, MORE, _1
    while count != _0 and outcome == MORE:
        if not books.make_room(book, _BATCH):
            return at, FULL
        changes = order_indices.changes_of(book.index)
        count, gone, come, replaced, at, outcome = frame(
            batch, feed.counts, feed.anomalies, book.index, book.tree.sides, data, at, end
        )
        if feed.session[SELECTED] != _0:
            _select(feed, data, count)
        if ahead:
            look_ahead(batch, book, data, end, gone, come, replaced)
        i = _0
        while i < count:
            message = batch.messages[i]
            offset, entry = message & OFFSET, batch.entries[i]
            if order_indices.changes_of(book.index) != changes:
                entry = entry_at(book.index, data, offset, end)
            apply(feed, data, offset, message >> CLASS_SHIFT, entry)
            i += _1
    if price_tree.crowded(book.tree):
        price_tree.sweep(book.tree)
    return at, outcome


@kernel(**_COLD)
def _select(feed, data, count):
    """Skip the batch's messages on instruments that were not chosen."""
    i = _0
    while i < count:
        word = feed.batch.messages[i]
        at = word & OFFSET
        kind = load_u8(data, at)
        if word >> CLASS_SHIFT != SKIP and kind != _S:
            locate = load_be16(data, at + _1)
            symbol = np.uint64(SYMBOL_OFFSET_BY_TYPE[kind])
            if symbol != _0 and (feed.choice[locate] == UNDECIDED or kind == _R):
                feed.choice[locate] = UNWANTED
                for wanted in feed.wanted:
                    if wanted == load_be64(data, at + symbol):
                        feed.choice[locate] = WANTED
            if feed.choice[locate] != WANTED:
                feed.batch.messages[i] = at | (SKIP << CLASS_SHIFT)
        i += _1


@kernel(inner=True)
def apply(feed, data, at, what, entry):
    """Apply one message of known class, given where its type byte and its reference's index entry stand.

    What takes an order away and what brings one each stand here once: a replace is the one and then the other.

    Returns
    -------
    side, old_key, new_key : uint64
        The book side; the key of the level that it took from, and that at which it brought an order, or `NEVER`.
    best : bool
        Whether it took from the best level.
    pushed : uint64
        The side + 1 of an order that went because its reference was used anew, or 0.
    """
    book = feed.book
    was_crossed, old_key, best, pushed = False, NEVER, False, _0
    if what - EXECUTE <= REPLACE - EXECUTE:
        reference = load_be64(data, at + REFERENCE)
        node = order_indices.node_at(book.index, entry, reference)
        level = books.level_of(book, node)
        if level == _0:
            feed.unknown_reference[load_u8(data, at)] += _1
            return _0, NEVER, NEVER, False, _0
        side = np.uint64(book.words[books.word_at(level) + books.SIDE])
        old_key = np.uint64(book.words[books.word_at(level) + books.KEY])
        best = book.tree.sides[price_tree.side_at(side) + price_tree.BEST_LEVEL] == level
        if what < DELETE:
            shares = load_be32(data, at + TAKEN_SHARES)
            open_shares = np.uint64(book.words[books.word_at(node) + books.SHARES])
            if what == EXECUTE or (what == EXECUTE_AT and load_u8(data, at + PRINTABLE) != _N):
                feed.volume[side >> _1] += min(shares, open_shares)
            if shares < open_shares:
                books.reduce_order(book, node, level, shares)
                return side, old_key, NEVER, best, _0
            feed.anomalies[OVER_FILL] += np.uint64(shares > open_shares)
        elif what == REPLACE:
            was_crossed = books.crossed(book, side)
        books.remove_order(book, entry, node, level, reference)
        if what != REPLACE:
            return side, old_key, NEVER, best, _0
        reference = load_be64(data, at + NEW_REFERENCE)
        shares, price = load_be32(data, at + NEW_SHARES), load_be32(data, at + NEW_PRICE)
        entry = order_indices.entry_of(book.index, reference)
    elif what == ADD:
        reference = load_be64(data, at + REFERENCE)
        letter = load_u8(data, at + SIDE)
        side = side_of(data, at)
        if letter != _B and letter != _S:
            feed.anomalies[BAD_SIDE] += _1
            return _0, NEVER, NEVER, False, _0
        if book.tree.sides[price_tree.side_at(side) + price_tree.NAME] == _0:
            _name(feed.names, book.tree.sides, data, at, side)
        shares, price = load_be32(data, at + ADDED_SHARES), load_be32(data, at + ADDED_PRICE)
    else:
        if what == OTHER:
            _other(feed.volume, feed.trading, feed.names, feed.session, data, at)
        return _0, NEVER, NEVER, False, _0

    node = order_indices.node_at(book.index, entry, reference)
    if books.level_of(book, node) != _0:  # the exchange's last word stands
        pushed = np.uint64(book.words[books.word_at(books.level_of(book, node)) + books.SIDE]) + _1
        was_crossed = was_crossed or books.crossed(book, side)
        feed.anomalies[DUPLICATE_REFERENCE] += _1
        _remove(book, entry, node, reference)
        entry = order_indices.entry_of(book.index, reference)
    record = price_tree.side_at(side)
    empty = book.tree.sides[record + price_tree.BEST_LEVEL] == _0  # a side that never had an order has no key either
    old = price_tree.NO_KEY if empty else book.tree.sides[record + price_tree.BEST_KEY]
    if books.add_order(book, entry, reference, side, shares, price) and books.crossed(book, side) and not was_crossed:
        # the keys of the two sides complement each other: crossed if they add up to less than 2^32
        other = book.tree.sides[price_tree.side_at(side ^ _1) + price_tree.BEST_KEY]
        if old >= price_tree.NO_KEY or old + other >= price_tree.NO_KEY:
            continuous = feed.session[MARKET_HOURS] != _0 and feed.trading[side >> _1] == _CONTINUOUS
            feed.anomalies[CROSSED if continuous else CROSSED_OUTSIDE_TRADING] += _1
    return side, old_key, books.key_of(side, price), best, pushed


@kernel(**_COLD)
def _remove(book, entry, node, reference):
    books.remove_order(book, entry, node, books.level_of(book, node), reference)


@kernel(**_COLD)
def _name(names, sides, data, at, side):
    """Take an instrument's symbol from its first order, unless the directory gave one."""
    sides[price_tree.side_at(side) + price_tree.NAME] = _1
    if names[side >> _1] == _0:
        names[side >> _1] = load_be64(data, at + np.uint64(24))


@kernel(**_COLD)
def _other(volume, trading, names, session, data, at):
    """Messages that change no book but are about trading: S, R, H, h, P and Q."""
    kind = load_u8(data, at)
    locate = load_be16(data, at + _1)
    if kind == _P:
        volume[locate] += load_be32(data, at + np.uint64(20))
    elif kind == _Q:
        volume[locate] += load_be64(data, at + np.uint64(11))
        if load_u8(data, at + np.uint64(39)) == _O:
            trading[locate] |= OPENED
    elif kind == _R:
        names[locate] = load_be64(data, at + np.uint64(11))
    elif kind == _H:
        if load_u8(data, at + np.uint64(19)) == _T:
            trading[locate] |= TRADING
        else:
            trading[locate] &= ~TRADING
    elif kind == _h:
        if load_u8(data, at + np.uint64(20)) == _H:
            trading[locate] &= ~NOT_HALTED
        else:
            trading[locate] |= NOT_HALTED
    elif kind == _S:
        event = load_u8(data, at + np.uint64(11))
        if event == _Q:
            session[MARKET_HOURS] = _1
        elif event == _M:
            session[MARKET_HOURS] = _0
