"""What one may ask of the books while they are being built; nothing here changes them.

A book side is stock locate * 2 + (0 for bids, 1 for asks). Prices are in units of 0.0001; 0 shares say that there is
nothing. Users' own functions have the same questions in `photonlab.books`.
"""

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import book_views, order_indices
from photonlab.kernels.book import AFTER, BEFORE, FIRST, SHARES, word_at
from photonlab.machine.jit import kernel

_0, _1 = np.uint64(0), np.uint64(1)


@kernel(inner=True)
def best(book, side):
    """Return price and shares of the best level of a side, 0 and 0 if it is empty."""
    level = book_views.best_level(book, side)
    if level == _0:
        return _0, _0
    return book_views.price_of(book, level, side), book.pairs[books.volume_at(level)]


@kernel(inner=True)
def bid(book, locate):
    """Return price and shares of the best bid of an instrument, 0 and 0 if there is none."""
    return best(book, np.uint64(locate) << _1)


@kernel(inner=True)
def ask(book, locate):
    """Return price and shares of the best offer of an instrument, 0 and 0 if there is none."""
    return best(book, (np.uint64(locate) << _1) | _1)


@kernel(inner=True)
def level(book, side, rank):
    """Return price and shares of a side's level by rank, 0 for the best; 0 and 0 if there are not so many."""
    one, left = book_views.best_level(book, np.uint64(side)), np.uint64(rank)
    while one != _0 and left != _0:
        one = book_views.level_after(book, one)
        left -= _1
    if one == _0:
        return _0, _0
    return book_views.price_of(book, one, np.uint64(side)), book.pairs[books.volume_at(one)]


@kernel(inner=True)
def depth(book, side, levels):
    """Return the shares in the best `levels` levels of a side."""
    one, left, total = book_views.best_level(book, np.uint64(side)), np.uint64(levels), _0
    while one != _0 and left != _0:
        total += book.pairs[books.volume_at(one)]
        one = book_views.level_after(book, one)
        left -= _1
    return total


@kernel(inner=True)
def _node_of(book, reference):
    entry = order_indices.entry_of(book.index, reference)
    return order_indices.node_at(book.index, entry, reference)


@kernel(inner=True)
def order(book, reference):
    """Return side, price and open shares of an order, and whether it is live; all are 0 if not."""
    node = _node_of(book, np.uint64(reference))
    where = books.level_of(book, node)
    if where == _0:
        return _0, _0, _0, False
    side = np.uint64(book.words[word_at(where) + books.SIDE])
    return side, book_views.price_of(book, where, side), np.uint64(book.words[word_at(node) + SHARES]), True


@kernel(inner=True)
def queue_ahead(book, reference):
    """Return orders and shares that trade before an order at its price; 0 and 0 at the head, or if it is not live."""
    node = _node_of(book, np.uint64(reference))
    where, orders, shares = books.level_of(book, node), _0, _0
    if where != _0:
        node = np.uint64(book.words[word_at(node) + BEFORE])
        while node != where:
            orders += _1
            shares += np.uint64(book.words[word_at(node) + SHARES])
            node = np.uint64(book.words[word_at(node) + BEFORE])
    return orders, shares


@kernel(inner=True)
def first_in_queue(book, side):
    """Return the reference of the order that trades next on a side, and whether there is one."""
    where = book_views.best_level(book, np.uint64(side))
    if where == _0:
        return _0, False
    return order_indices.reference_of(book.index, np.uint64(book.words[word_at(where) + FIRST])), True


@kernel(inner=True)
def next_in_queue(book, reference):
    """Return the reference of the order behind another one at the same price, and whether there is one."""
    node = _node_of(book, np.uint64(reference))
    where = books.level_of(book, node)
    if where == _0:
        return _0, False
    node = np.uint64(book.words[word_at(node) + AFTER])
    if node == where:
        return _0, False
    return order_indices.reference_of(book.index, node), True
