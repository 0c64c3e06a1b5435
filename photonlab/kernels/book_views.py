"""Looking into the books without changing them: best prices, depth, queues, a digest of everything.

Nothing here is on the replay's hot path. Arrays for the answers are the caller's.
"""

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import order_indices, price_tree
from photonlab.kernels.book import CHAIN, FIRST, KEY, LEVEL, PLACE, SHARES, word_at
from photonlab.machine.jit import kernel

_0, _1 = np.uint64(0), np.uint64(1)
_SIDES = np.uint64(1 << 17)

# Columns of a level's row
PRICE, VOLUME, ORDERS = (np.uint64(i) for i in range(3))


@kernel(inner=True)
def level_after(book, level):
    """Return the next worse level of a side, 0 at the end."""
    at = word_at(level)
    following = np.uint64(book.words[at + CHAIN])
    if following != _0:
        return following
    place = price_tree.next_block(book.tree, np.uint64(book.words[at + PLACE]))
    return np.uint64(book.tree.children[place]) if place != _0 else _0


@kernel(inner=True)
def best_level(book, side):
    """Return the best level of a side, 0 if it is empty."""
    return book.tree.sides[price_tree.side_at(side) + price_tree.BEST_LEVEL]


@kernel(inner=True)
def price_of(book, level, side):
    """Return a level's price."""
    return books.key_of(side, np.uint64(book.words[word_at(level) + KEY]))


@kernel(inner=True)
def orders_in(book, level):
    """Return the length of a level's queue."""
    orders, node = _0, np.uint64(book.words[word_at(level) + FIRST])
    while node != level:
        orders += _1
        node = np.uint64(book.words[word_at(node) + books.AFTER])
    return orders


@kernel
def depth(book, side, rows):
    """Write the best levels of one side, best first.

    Parameters
    ----------
    book : Book
    side : uint64
        Stock locate * 2 + (0 bids, 1 asks).
    rows : ndarray of uint64, shape (n, 3)
        Takes price, shares and orders of up to n levels.

    Returns
    -------
    uint64
        Levels written; with n = 0, how many there are.
    """
    count, level = _0, best_level(book, side)
    limit = np.uint64(rows.shape[0])
    while level != _0 and (limit == _0 or count < limit):
        if limit != _0:
            rows[count, PRICE] = price_of(book, level, side)
            rows[count, VOLUME] = book.pairs[books.volume_at(level)]
            rows[count, ORDERS] = orders_in(book, level)
        count += _1
        level = level_after(book, level)
    return count


@kernel
def queue(book, side, rows):
    """Write the orders of one side, best price first and each level in the order of its queue.

    Parameters
    ----------
    book : Book
    side : uint64
    rows : ndarray of uint64, shape (n, 3)
        Takes price, order reference and open shares; n = 0 only counts.

    Returns
    -------
    uint64
        Orders on that side.
    """
    count, level = _0, best_level(book, side)
    limit = np.uint64(rows.shape[0])
    while level != _0:
        node = np.uint64(book.words[word_at(level) + FIRST])
        while node != level:
            if count < limit:
                rows[count, _0] = price_of(book, level, side)
                rows[count, _1] = order_indices.reference_of(book.index, node)
                rows[count, np.uint64(2)] = book.words[word_at(node) + SHARES]
            count += _1
            node = np.uint64(book.words[word_at(node) + books.AFTER])
        level = level_after(book, level)
    return count


@kernel
def best_prices(book, rows):
    """Write the best bid and offer of every instrument that has one.

    Parameters
    ----------
    book : Book
    rows : ndarray of uint64, shape (65536, 5)
        Takes a bit for each side that is not empty (1 bid, 2 ask), then price and shares of the bid and of the ask.
    """
    side = _0
    while side < _SIDES:
        level = best_level(book, side)
        if level != _0:
            column = _1 + ((side & _1) << _1)
            rows[side >> _1, _0] |= _1 << (side & _1)
            rows[side >> _1, column] = price_of(book, level, side)
            rows[side >> _1, column + _1] = book.pairs[books.volume_at(level)]
        side += _1


@kernel(inner=True)
def mix(state, word):
    """Return a state that depends on every bit of what went in, in order (the splitmix64 finaliser of their sum)."""
    z = state + word + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def fold(state, values):
    """Return a digest of a uint64 array, continued from `state`."""
    for value in values:
        state = mix(state, value)
    return state


@kernel(inner=True)
def digest_side(book, side, state):
    """Return a digest of a side, its levels and orders, continued from `state`; an empty side leaves it as it is."""
    level = best_level(book, side)
    if level != _0:
        state = mix(state, side)
    while level != _0:
        state = mix(state, price_of(book, level, side))
        node = np.uint64(book.words[word_at(level) + FIRST])
        while node != level:
            state = mix(state, order_indices.reference_of(book.index, node))
            state = mix(state, np.uint64(book.words[word_at(node) + SHARES]))
            node = np.uint64(book.words[word_at(node) + books.AFTER])
        level = level_after(book, level)
    return state


@kernel
def digest(book):
    """Return a 64-bit digest of all books: every side, level and order in its place, however memory is laid out."""
    state, side = _0, _0
    while side < _SIDES:
        state = digest_side(book, side, state)
        side += _1
    return state


@kernel
def faults(book):
    """Return how many levels, links, volumes or index entries contradict each other: 0 in a sound book (for tests)."""
    bad, side, orders, levels = _0, _0, _0, _0
    while side < _SIDES:
        level, last_key, first = best_level(book, side), _0, True
        while level != _0:
            at = word_at(level)
            key = np.uint64(book.words[at + KEY])
            bad += np.uint64(not first and key <= last_key) + np.uint64(np.uint64(book.words[at + books.SIDE]) != side)
            first, last_key = False, key
            levels += _1
            volume, before, node = _0, level, np.uint64(book.words[at + FIRST])
            bad += np.uint64(node == level)
            while node != level:
                word = word_at(node)
                volume += np.uint64(book.words[word + SHARES])
                bad += np.uint64(np.uint64(book.words[word + books.BEFORE]) != before)
                bad += np.uint64(np.uint64(book.words[word + LEVEL]) != level)
                reference = order_indices.reference_of(book.index, node)
                entry = order_indices.entry_of(book.index, reference)
                bad += np.uint64(order_indices.node_at(book.index, entry, reference) != node)
                orders += _1
                before, node = node, np.uint64(book.words[word + books.AFTER])
            bad += np.uint64(np.uint64(book.words[at + books.LAST]) != before)
            bad += np.uint64(volume != book.pairs[books.volume_at(level)])
            level = level_after(book, level)
        side += _1
    bad += np.uint64(orders != book.tally[books.ORDERS]) + np.uint64(levels != book.tally[books.LEVELS])
    return bad
