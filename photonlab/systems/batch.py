"""A batch of messages: framed, classed, and their cache misses sent for before anyone needs what they bring.

Applying a message touches its order, the order's level and its neighbours in the queue, or the place of its price, the
level there and the last order in its queue: each found only through the one before. Message by message these misses
would be waited for one after the other. So a batch is framed first, and then each step is taken for the whole batch
before the next one: the memory serves the misses of up to 64 messages side by side. No step branches on the type of a
message, which nobody can predict: `frame` writes lists instead.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import order_indices, price_tree
from photonlab.kernels.itch import LENGTH_BY_TYPE
from photonlab.machine.bits import load_be16, load_be32, load_be64, load_u8, prefetch
from photonlab.machine.jit import kernel

BATCH = 64
LONGEST = 1450  # no message may be longer: a MoldUDP64 packet in an Ethernet frame carries no more

_0, _1, _2, _8, _56 = (np.uint64(i) for i in (0, 1, 2, 8, 56))
_BATCH, _LONGEST = np.uint64(BATCH), np.uint64(LONGEST)
_AHEAD = np.uint64(1536)  # bytes of input to ask for beforehand
OFFSET, CLASS_SHIFT = np.uint64((1 << 56) - 1), _56

# What a message is to the book
SKIP, ADD, EXECUTE, EXECUTE_AT, CANCEL, DELETE, REPLACE, OTHER = (np.uint64(i) for i in range(8))
_CLASSES = {"A": ADD, "F": ADD, "E": EXECUTE, "C": EXECUTE_AT, "X": CANCEL, "D": DELETE, "U": REPLACE}

# uint32[256]: length << 8 | class of each known type, 0 for an unknown one
SHAPE = np.array(
    [int(n) << 8 | int(_CLASSES.get(chr(t), OTHER)) if n else 0 for t, n in enumerate(LENGTH_BY_TYPE)], np.uint32
)
_SELL = np.uint64(ord("S"))

# Where a message has what, in bytes from its type
REFERENCE, SIDE, ADDED_SHARES, ADDED_PRICE, TAKEN_SHARES, PRINTABLE, NEW_REFERENCE, NEW_SHARES, NEW_PRICE = (
    np.uint64(i) for i in (11, 19, 20, 32, 19, 31, 19, 27, 31)
)
_REFERENCE_END, _PRICE_END = np.uint64(19), np.uint64(36)

# How framing ended
MORE, END_OF_SESSION, IMPOSSIBLE_LENGTH = (np.uint64(i) for i in range(3))
WHOLE = np.uint64(255)  # it goes on: there was a whole message

# Words of `anomalies` that framing counts
UNKNOWN_TYPE, BAD_LENGTH = np.uint64(0), np.uint64(1)


class Batch(NamedTuple):
    """Scratch for up to `BATCH` messages.

    Attributes
    ----------
    messages : ndarray of uint64, shape (BATCH,)
        Offset of the type byte | class << 56.
    entries : ndarray of uint64, shape (BATCH,)
        The entry of its reference in the order index.
    places : ndarray of uint64, shape (BATCH,)
        The place of its price in the price tree, as far as it is known.
    gone, come, replaced : ndarray of uint64, shape (BATCH,)
        Numbers of the messages that take from an order, that bring one, and that do both.
    """

    messages: np.ndarray
    entries: np.ndarray
    places: np.ndarray
    gone: np.ndarray
    come: np.ndarray
    replaced: np.ndarray


def make_batch() -> Batch:
    """Return scratch for a batch."""
    return Batch(*(np.zeros(BATCH, np.uint64) for _ in Batch._fields))


@kernel(inner=True)
def side_of(data, at):
    """Return the book side of the add order message at `at`; a side that is neither counts as bids here."""
    return (load_be16(data, at + _1) << _1) | np.uint64(load_u8(data, at + SIDE) == _SELL)


@kernel(inner=True)
def walk_on(counts, anomalies, data, at, end):
    """Walk over the message whose length prefix, 2 bytes, stands at `at`: count it, class it, ask for what follows.

    Returns
    -------
    message, what : uint64
        Offset of its type byte, and its class; `SKIP` for one of unknown type or wrong length.
    following, outcome : uint64
        Where the next prefix stands, and `WHOLE`; or where the walk ends and why: `MORE`, `END_OF_SESSION` or
        `IMPOSSIBLE_LENGTH`, with nothing counted.
    """
    length = load_be16(data, at)
    following = at + _2 + length
    if length == _0:
        return at, SKIP, following, END_OF_SESSION
    if following > end:
        return at, SKIP, at, IMPOSSIBLE_LENGTH if length > _LONGEST else MORE
    message = at + _2
    prefetch(data, message + _AHEAD)
    kind = load_u8(data, message)
    shape = np.uint64(SHAPE[kind])
    what = shape & np.uint64(255)
    if shape >> _8 != length:
        if length > _LONGEST:
            return at, SKIP, at, IMPOSSIBLE_LENGTH
        anomalies[UNKNOWN_TYPE if shape == _0 else BAD_LENGTH] += _1
        what = SKIP
    counts[kind] += _1
    return message, what, following, WHOLE


@kernel(inner=True)
def frame(batch, counts, anomalies, index, sides, data, at, end):
    """Walk up to `BATCH` messages from a length prefix at `at`: count and class each, ask for what it refers to.

    Returns
    -------
    count, gone, come, replaced : uint64
        Messages in the batch and in its lists.
    at, outcome : uint64
        Where it stopped, and why: `MORE`, `END_OF_SESSION` or `IMPOSSIBLE_LENGTH`.
    """
    count, gone, come, replaced, outcome = _0, _0, _0, _0, MORE
    while count < _BATCH and at + _2 <= end:
        message, what, at, ended = walk_on(counts, anomalies, data, at, end)
        if ended != WHOLE:
            outcome = ended
            break
        entry = entry_at(index, data, message, end)
        order_indices.ask_for(index, entry)
        prefetch(sides, price_tree.side_at(side_of(data, message) if message + _PRICE_END <= end else _0))
        batch.messages[count] = message | (what << _56)
        batch.entries[count] = entry
        batch.gone[gone] = count
        gone += np.uint64(what - EXECUTE <= REPLACE - EXECUTE)
        batch.come[come] = count
        come += np.uint64(what == ADD) | np.uint64(what == REPLACE)
        batch.replaced[replaced] = count
        replaced += np.uint64(what == REPLACE)
        count += _1
    return count, gone, come, replaced, at, outcome


@kernel(inner=True)
def entry_at(index, data, at, end):
    """Return the index entry of bytes 11 to 18 of the message at `at`, whatever they are, or 0 past the end."""
    if at + _REFERENCE_END > end:
        return _0
    return order_indices.entry_of(index, load_be64(data, at + REFERENCE))


@kernel(inner=True)
def look_ahead(batch, book, data, end, gone, come, replaced):
    """Ask for everything that applying the batch will touch."""
    words, children = book.words, book.tree.children
    k = _0
    while k < gone:  # the orders
        i = batch.gone[k]
        reference = load_be64(data, (batch.messages[i] & OFFSET) + REFERENCE)
        node = order_indices.node_at(book.index, batch.entries[i], reference)
        prefetch(words, books.word_at(node))
        batch.gone[k] = node
        k += _1
    k = _0
    while k < come:  # the nodes with the places of prices; a replace's is not known yet, what is read for it is in vain
        i = batch.come[k]
        at = batch.messages[i] & OFFSET
        place = _0
        if at + _PRICE_END <= end:
            side = side_of(data, at)
            position = books.position_of(side, load_be32(data, at + ADDED_PRICE))
            place = price_tree.leaf_at(book.tree, side, position)
            prefetch(children, place)
        batch.places[i] = place
        k += _1
    k = _0
    while k < come:  # those places themselves
        i = batch.come[k]
        at = batch.messages[i] & OFFSET
        place = np.uint64(children[batch.places[i]])
        if at + _PRICE_END <= end:
            place = price_tree.place_in(place, books.position_of(side_of(data, at), load_be32(data, at + ADDED_PRICE)))
        prefetch(children, place)
        prefetch(book.tree.bits, place >> np.uint64(6))
        batch.places[i] = place
        k += _1
    k = _0
    while k < gone:  # the orders' levels and neighbours
        at = books.word_at(batch.gone[k])
        prefetch(words, books.word_at(np.uint64(words[at + books.LEVEL])))
        prefetch(words, books.word_at(np.uint64(words[at + books.BEFORE])))
        prefetch(words, books.word_at(np.uint64(words[at + books.AFTER])))
        k += _1
    k = _0
    while k < come:  # the levels at the prices
        prefetch(words, books.word_at(np.uint64(children[batch.places[batch.come[k]]])))
        k += _1
    k = _0
    while k < replaced:  # the place of a replace's price: its side is the old order's
        i = batch.replaced[k]
        at = batch.messages[i] & OFFSET
        node = order_indices.node_at(book.index, batch.entries[i], load_be64(data, at + REFERENCE))
        side = np.uint64(words[books.word_at(books.level_of(book, node)) + books.SIDE])
        position = books.position_of(side, load_be32(data, at + NEW_PRICE))
        place = price_tree.place_in(price_tree.find_leaf(book.tree, side, position), position)
        prefetch(children, place)
        batch.places[i] = place
        k += _1
    k = _0
    while k < gone:  # the places of the orders' levels, should they become empty
        level = books.word_at(np.uint64(words[books.word_at(batch.gone[k]) + books.LEVEL]))
        place = np.uint64(words[level + books.PLACE])
        prefetch(children, place)
        prefetch(book.tree.bits, place >> np.uint64(6))
        k += _1
    k = _0
    while k < come:  # the last orders in those levels' queues
        level = books.word_at(np.uint64(children[batch.places[batch.come[k]]]))
        prefetch(words, books.word_at(np.uint64(words[level + books.LAST])))
        k += _1
