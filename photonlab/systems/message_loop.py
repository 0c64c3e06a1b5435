"""The replay's inner loop: framed messages, a batch at a time, applied to the books by the ITCH 5.0 rules.

A batch goes through the loop in passes. The first walks the length prefixes, counts and checks, and asks the memory
for each message's order and for the place of its price. The second, made when the books are larger than the cache, asks
for the levels and for the orders' neighbours. The last applies the messages, whose cache misses have been served side
by side by then.

Anomalies are counted and never stop the loop; `tests/oracle/book.py` says the same in plain
Python.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import order_index, price_tree
from photonlab.kernels.book import Book
from photonlab.kernels.itch import LENGTH_BY_TYPE, SYMBOL_OFFSET_BY_TYPE
from photonlab.machine.bits import load_be16, load_be32, load_be64, load_u8, prefetch
from photonlab.machine.jit import kernel

BATCH = 64
LONGEST = 1450  # no message may be longer: a MoldUDP64 packet in an Ethernet frame carries no more
LOCATES = 1 << 16

_0, _1, _2, _6 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(6)
_8, _56 = np.uint64(8), np.uint64(56)
_BATCH, _LONGEST = np.uint64(BATCH), np.uint64(LONGEST)
_WIDEST = np.uint64(36)  # bytes of a message that the look-ahead reads, whatever its type
_AHEAD = np.uint64(1536)  # bytes of input to ask for beforehand
_MASK32 = np.uint64(0xFFFFFFFF)
_OFFSET = np.uint64((1 << 56) - 1)

_COLD = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called now and then, by kernels only

# What a message is to the book
SKIP, ADD, EXECUTE, EXECUTE_AT, CANCEL, DELETE, REPLACE, OTHER = (np.uint64(i) for i in range(8))
_CLASSES = {"A": ADD, "F": ADD, "E": EXECUTE, "C": EXECUTE_AT, "X": CANCEL, "D": DELETE, "U": REPLACE}

# uint32[256]: length << 8 | class of each known type, 0 for an unknown one
SHAPE = np.array(
    [int(n) << 8 | int(_CLASSES.get(chr(t), OTHER)) if n else 0 for t, n in enumerate(LENGTH_BY_TYPE)], np.uint32
)
_B, _H, _M, _N, _O, _P, _Q, _R, _S, _T, _h = (np.uint64(ord(c)) for c in "BHMNOPQRSTh")

# How a call ended
MORE, END_OF_SESSION, IMPOSSIBLE_LENGTH, FULL = (np.uint64(i) for i in range(4))

# Words of `anomalies`
UNKNOWN_TYPE, BAD_LENGTH, BAD_SIDE, DUPLICATE_REFERENCE, OVER_FILL, CROSSED, CROSSED_OUTSIDE_TRADING = (
    np.uint64(i) for i in range(7)
)
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
    batch, entries, places : ndarray of uint64, shape (BATCH,)
        Scratch, of each message in the batch: offset | class << 56; its reference's entry in the index; its price's
        place in the tree, if it is an add order.
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
    batch: np.ndarray
    entries: np.ndarray
    places: np.ndarray


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
        np.zeros(BATCH, np.uint64),
        np.zeros(BATCH, np.uint64),
        np.zeros(BATCH, np.uint64),
    )


@kernel
def replay(feed, data, begin, end, look_ahead):
    """Apply the whole messages of a chunk.

    Parameters
    ----------
    feed : Feed
    data : ndarray of uint8
    begin, end : uint64
        Where a length prefix stands, and where the chunk ends.
    look_ahead : bool
        Make the pass that looks ahead to levels and neighbours: it pays when they are out of cache.

    Returns
    -------
    at, outcome : uint64
        The offset of the first byte not consumed, and `MORE` (a whole message is no longer there), `END_OF_SESSION`
        (behind a length of zero), `IMPOSSIBLE_LENGTH` (at a prefix) or `FULL` (the books' memory is exhausted).
    """
    at, outcome, count = begin, MORE, _1
    while count != _0 and outcome == MORE:
        if not books.room(feed.book, _BATCH):
            price_tree.sweep(feed.book.tree)
            if not books.room(feed.book, _BATCH):
                return at, FULL
        changes = feed.book.index.recent[order_index.CHANGES]
        count, at, outcome = _frame(feed, data, at, end)
        if feed.session[SELECTED] != _0:
            _select(feed, data, count)
        if look_ahead:
            _look_ahead(feed, data, count)
        i = _0
        while i < count:
            word = feed.batch[i]
            at_message = word & _OFFSET
            entry = feed.entries[i]
            if feed.book.index.recent[order_index.CHANGES] != changes:
                entry = _entry(feed.book.index, data, at_message, end)
            apply(feed, data, at_message, word >> _56, entry)
            i += _1
    if price_tree.crowded(feed.book.tree):
        price_tree.sweep(feed.book.tree)
    return at, outcome


@kernel(inner=True)
def _frame(feed, data, at, end):
    """Walk up to `BATCH` messages: count each, note where it begins and its class, ask for its order and its level.

    Whatever the type, bytes 11 to 18 are taken for a reference, and bytes 19 and 32 to 35 for side and price: a look-up
    in vain costs less than a branch on the type, which nobody can predict.
    """
    count, index, tree = _0, feed.book.index, feed.book.tree
    while count < _BATCH and at + _2 <= end:
        length = load_be16(data, at)
        following = at + _2 + length
        if length == _0:
            return count, following, END_OF_SESSION
        if following > end:
            if length > _LONGEST:
                return count, at, IMPOSSIBLE_LENGTH
            break
        at += _2
        prefetch(data, at + _AHEAD)
        kind = load_u8(data, at)
        shape = np.uint64(SHAPE[kind])
        what = shape & np.uint64(255)
        if shape >> _8 != length:
            if length > _LONGEST:
                return count, at - _2, IMPOSSIBLE_LENGTH
            feed.anomalies[UNKNOWN_TYPE if shape == _0 else BAD_LENGTH] += _1
            what = SKIP
        feed.counts[kind] += _1
        entry, place = _0, _0
        if at + _WIDEST <= end:
            reference = load_be64(data, at + np.uint64(11))
            entry = order_index.entry_of(index, reference)
            prefetch(feed.book.words, books.word_at(order_index.node_at(index, entry, reference)))
            side = (load_be16(data, at + _1) << _1) | np.uint64(load_u8(data, at + np.uint64(19)) == _S)
            key = books.key_of(side, load_be32(data, at + np.uint64(32)))
            place = price_tree.place_in(price_tree.recent_leaf(tree, side, key), key)
            prefetch(tree.children, place)
        elif at + np.uint64(19) <= end:
            entry = order_index.entry_of(index, load_be64(data, at + np.uint64(11)))
        feed.batch[count] = at | (what << _56)
        feed.entries[count] = entry
        feed.places[count] = place
        count += _1
        at = following
    return count, at, MORE


@kernel(inner=True)
def _look_ahead(feed, data, count):
    """Ask for each message's level and for its order's neighbours in the queue, once more without asking for its type."""
    book = feed.book
    words, i = book.words, _0
    while i < count:
        prefetch(words, books.word_at(np.uint64(book.tree.children[feed.places[i]])))
        at = feed.batch[i] & _OFFSET
        if feed.entries[i] != _0:
            node = order_index.node_at(book.index, feed.entries[i], load_be64(data, at + np.uint64(11)))
            at = books.word_at(node)
            prefetch(words, books.word_at(np.uint64(words[at + books.LEVEL])))
            prefetch(words, books.word_at(np.uint64(words[at + books.BEFORE])))
            prefetch(words, books.word_at(np.uint64(words[at + books.AFTER])))
        i += _1


@kernel(inner=True)
def _entry(index, data, at, end):
    """Return the index entry of the reference of the message at `at`, or 0 if it is too short to have one."""
    if at + np.uint64(19) > end:
        return _0
    return order_index.entry_of(index, load_be64(data, at + np.uint64(11)))


@kernel(**_COLD)
def _select(feed, data, count):
    """Skip the batch's messages on instruments that were not chosen."""
    i = _0
    while i < count:
        word = feed.batch[i]
        at = word & _OFFSET
        kind = load_u8(data, at)
        if word >> _56 != SKIP and kind != _S:
            locate = load_be16(data, at + _1)
            symbol = np.uint64(SYMBOL_OFFSET_BY_TYPE[kind])
            if symbol != _0 and (feed.choice[locate] == UNDECIDED or kind == _R):
                feed.choice[locate] = UNWANTED
                for wanted in feed.wanted:
                    if wanted == load_be64(data, at + symbol):
                        feed.choice[locate] = WANTED
            if feed.choice[locate] != WANTED:
                feed.batch[i] = at | (SKIP << _56)
        i += _1


@kernel(inner=True)
def apply(feed, data, at, what, entry):
    """Apply one message of known class, given where its type byte and its reference's index entry stand.

    What takes an order away and what brings one each stand here once: a replace is the one and then the other.
    """
    book = feed.book
    was_crossed = False
    if what - EXECUTE <= REPLACE - EXECUTE:
        reference = load_be64(data, at + np.uint64(11))
        node = order_index.node_at(book.index, entry, reference)
        level = books.level_of(book, node)
        if level == _0:
            feed.unknown_reference[load_u8(data, at)] += _1
            return
        side = np.uint64(book.words[books.word_at(level) + books.SIDE])
        if what < DELETE:
            shares = load_be32(data, at + np.uint64(19))
            open_shares = np.uint64(book.words[books.word_at(node) + books.SHARES])
            if what == EXECUTE or (what == EXECUTE_AT and load_u8(data, at + np.uint64(31)) != _N):
                feed.volume[side >> _1] += min(shares, open_shares)
            if shares < open_shares:
                books.reduce_order(book, node, level, shares)
                return
            feed.anomalies[OVER_FILL] += np.uint64(shares > open_shares)
        elif what == REPLACE:
            was_crossed = books.crossed(book, side)
        books.remove_order(book, entry, node, level, reference)
        if what != REPLACE:
            return
        reference = load_be64(data, at + np.uint64(19))
        shares, price = load_be32(data, at + np.uint64(27)), load_be32(data, at + np.uint64(31))
        entry = order_index.entry_of(book.index, reference)
    elif what == ADD:
        reference = load_be64(data, at + np.uint64(11))
        letter = load_u8(data, at + np.uint64(19))
        side = (load_be16(data, at + _1) << _1) | np.uint64(letter == _S)
        if letter != _B and letter != _S:
            feed.anomalies[BAD_SIDE] += _1
            return
        if book.tree.sides[price_tree.side_at(side) + price_tree.NAME] == _0:
            _name(feed.names, book.tree.sides, data, at, side)
        shares, price = load_be32(data, at + np.uint64(20)), load_be32(data, at + np.uint64(32))
    else:
        if what == OTHER:
            _other(feed.volume, feed.trading, feed.names, feed.session, data, at)
        return

    node = order_index.node_at(book.index, entry, reference)
    if books.level_of(book, node) != _0:  # the exchange's last word stands
        was_crossed = was_crossed or books.crossed(book, side)
        feed.anomalies[DUPLICATE_REFERENCE] += _1
        _remove(book, entry, node, reference)
        entry = order_index.entry_of(book.index, reference)
    record = price_tree.side_at(side)
    empty = book.tree.sides[record + price_tree.BEST_LEVEL] == _0  # a side that never had an order has no key either
    old = price_tree.NO_KEY if empty else book.tree.sides[record + price_tree.BEST_KEY]
    if books.add_order(book, entry, reference, side, shares, price) and books.crossed(book, side) and not was_crossed:
        # the keys of the two sides complement each other: crossed if they add up to less than 2^32
        other = book.tree.sides[price_tree.side_at(side ^ _1) + price_tree.BEST_KEY]
        if old >= price_tree.NO_KEY or old + other >= price_tree.NO_KEY:
            continuous = feed.session[MARKET_HOURS] != _0 and feed.trading[side >> _1] == _CONTINUOUS
            feed.anomalies[CROSSED if continuous else CROSSED_OUTSIDE_TRADING] += _1


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
