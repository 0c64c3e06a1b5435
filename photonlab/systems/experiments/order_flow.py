"""Two functions such as a user would write, to be called inside the replay: order-flow imbalance, and places in queues.

They are compiled by `numba.njit`, as a user's own are: nothing here is known to the replay. (Outside the package the
two imports are ``from photonlab import books, event``.)
"""

from typing import NamedTuple

import numba
import numpy as np

from photonlab.kernels import book_handle as books
from photonlab.systems import called_loop as event
from photonlab.systems.message_loop import LOCATES

DEEPEST = 64


class Imbalance(NamedTuple):
    """Order-flow imbalance of all instruments, and that of one of them in time.

    Attributes
    ----------
    flow : ndarray of int64, shape (65536,)
        By locate, since the beginning.
    rows : ndarray of int64, shape (most, 3)
        Of the chosen instrument at each point of the grid: time, its flow so far, twice the middle of its best prices.
    state : ndarray of uint64, shape (2,)
        The chosen locate, rows written.
    """

    flow: np.ndarray
    rows: np.ndarray
    state: np.ndarray


def make_imbalance(locate, most) -> Imbalance:
    """Return the state before the first message.

    Parameters
    ----------
    locate, most : int
        The instrument of which rows are kept, and how many at most.
    """
    return Imbalance(np.zeros(LOCATES, np.int64), np.zeros((most, 3), np.int64), np.array([locate, 0], np.uint64))


@numba.njit
def add_flow(handle, now, kept):
    """Add what one change of the best prices says (Cont, Kukanov and Stoikov 2014, equation 2); call on_bbo."""
    flow = np.int64(0)
    if now[event.BID_SHARES] != 0 and now[event.BID] >= now[event.OLD_BID]:
        flow += np.int64(now[event.BID_SHARES])
    if now[event.OLD_BID_SHARES] != 0 and now[event.BID] <= now[event.OLD_BID]:
        flow -= np.int64(now[event.OLD_BID_SHARES])
    if now[event.ASK_SHARES] != 0 and (now[event.OLD_ASK_SHARES] == 0 or now[event.ASK] <= now[event.OLD_ASK]):
        flow -= np.int64(now[event.ASK_SHARES])
    if now[event.OLD_ASK_SHARES] != 0 and (now[event.ASK_SHARES] == 0 or now[event.ASK] >= now[event.OLD_ASK]):
        flow += np.int64(now[event.OLD_ASK_SHARES])
    kept.flow[now[event.LOCATE]] += flow


@numba.njit
def keep_flow(handle, now, kept):
    """Write a row of the chosen instrument; call on_time."""
    row, locate = kept.state[1], kept.state[0]
    bid, bid_shares = books.bid(handle, locate)
    ask, ask_shares = books.ask(handle, locate)
    if row < np.uint64(len(kept.rows)) and bid_shares != 0 and ask_shares != 0:
        kept.rows[row, 0] = np.int64(now[event.TIME])
        kept.rows[row, 1] = kept.flow[locate]
        kept.rows[row, 2] = np.int64(bid + ask)
        kept.state[1] += np.uint64(1)


class Places(NamedTuple):
    """Where orders stood in their queues.

    Attributes
    ----------
    joined : ndarray of uint64, shape (DEEPEST,)
        Orders that joined a best price, by the number of orders before them.
    executed : ndarray of uint64, shape (DEEPEST,)
        Executions, by the number of orders that were before the executed one, which stays until the call.
    """

    joined: np.ndarray
    executed: np.ndarray


def make_places() -> Places:
    """Return the state before the first message."""
    return Places(np.zeros(DEEPEST, np.uint64), np.zeros(DEEPEST, np.uint64))


@numba.njit
def note_place(handle, now, kept):
    """Count where an order joins, and where one that is executed in part stands; call on_event."""
    kind = now[event.TYPE]
    if kind == 65 or kind == 70:  # A, F
        best = now[event.ASK] if now[event.SIDE] else now[event.BID]
        if now[event.PRICE] == best:
            orders, _ = books.queue_ahead(handle, now[event.REF])
            kept.joined[min(orders, np.uint64(DEEPEST - 1))] += np.uint64(1)
    elif kind == 69 or kind == 67:  # E, C
        _, _, _, live = books.order(handle, now[event.REF])
        if live:
            orders, _ = books.queue_ahead(handle, now[event.REF])
            kept.executed[min(orders, np.uint64(DEEPEST - 1))] += np.uint64(1)


@numba.njit
def do_nothing(handle, now, kept):
    """Be called."""


@numba.njit
def count(handle, now, kept):
    """Count the calls."""
    kept[0] += np.uint64(1)
