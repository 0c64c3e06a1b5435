"""Questions to the books for functions that `photonlab.replay` calls: they are handed a handle of the books.

A book side is stock locate * 2 + (0 for bids, 1 for asks). Prices are in units of 0.0001; 0 shares say that there is
nothing. The same questions on the books themselves are in `kernels/book_queries.py`.
"""

from numba.extending import intrinsic

from photonlab.kernels import book, book_queries, book_views
from photonlab.machine.handles import reading
from photonlab.machine.jit import kernel

book_of = intrinsic(reading(lambda: book.make_book(2, 2, 2)))
"""The books behind a handle (`photonlab.machine.handles`)."""


@kernel(inner=True)
def best(books, side):
    """Return price and shares of the best level of a side, 0 and 0 if it is empty."""
    return book_queries.best(book_of(books), side)


@kernel(inner=True)
def bid(books, locate):
    """Return price and shares of the best bid of an instrument, 0 and 0 if there is none."""
    return book_queries.bid(book_of(books), locate)


@kernel(inner=True)
def ask(books, locate):
    """Return price and shares of the best offer of an instrument, 0 and 0 if there is none."""
    return book_queries.ask(book_of(books), locate)


@kernel(inner=True)
def level(books, side, rank):
    """Return price and shares of a side's level by rank, 0 for the best; 0 and 0 if there are not so many."""
    return book_queries.level(book_of(books), side, rank)


@kernel(inner=True)
def depth(books, side, levels):
    """Return the shares in the best `levels` levels of a side."""
    return book_queries.depth(book_of(books), side, levels)


@kernel(inner=True)
def order(books, reference):
    """Return side, price and open shares of an order, and whether it is live; all are 0 if not."""
    return book_queries.order(book_of(books), reference)


@kernel(inner=True)
def queue_ahead(books, reference):
    """Return orders and shares that trade before an order at its price; 0 and 0 at the head, or if it is not live."""
    return book_queries.queue_ahead(book_of(books), reference)


@kernel(inner=True)
def first_in_queue(books, side):
    """Return the reference of the order that trades next on a side, and whether there is one."""
    return book_queries.first_in_queue(book_of(books), side)


@kernel(inner=True)
def next_in_queue(books, reference):
    """Return the reference of the order behind another one at the same price, and whether there is one."""
    return book_queries.next_in_queue(book_of(books), reference)


@kernel
def digest_sides(books, sides, state):
    """Return the digest of one side after another, continued from `state` (see `book_views.digest`)."""
    for side in sides:
        state = book_views.digest_side(book_of(books), side, state)
    return state
