"""Questions to the books for functions that `photonlab.replay` calls; see `photonlab.kernels.book_handle`.

>>> @numba.njit
... def widest(books, event, state):
...     price, shares = photonlab.books.bid(books, event[photonlab.event.LOCATE])
"""

from photonlab.kernels.book_handle import (
    ask,
    best,
    bid,
    depth,
    first_in_queue,
    level,
    next_in_queue,
    order,
    queue_ahead,
)

__all__ = ["ask", "best", "bid", "depth", "first_in_queue", "level", "next_in_queue", "order", "queue_ahead"]
