"""The replay's loop for a part of the instruments: all messages are framed and counted, the chosen ones are applied.

What is not chosen costs its framing only. No step branches on the choice, which nobody can predict: the place of a
message in the batch is written to again if it was not wanted.
"""

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import order_indices, price_tree
from photonlab.machine.bits import load_be16, load_u8, prefetch
from photonlab.machine.jit import kernel
from photonlab.systems.batch import (
    ADD,
    BATCH,
    CLASS_SHIFT,
    EXECUTE,
    MORE,
    OFFSET,
    REPLACE,
    SKIP,
    WHOLE,
    entry_at,
    look_ahead,
    side_of,
    walk_on,
)
from photonlab.systems.message_loop import FULL, WANTED, apply

_0, _1, _2, _3 = (np.uint64(i) for i in range(4))
_BATCH = np.uint64(BATCH)
_PRICE_END = np.uint64(36)
_S = np.uint64(ord("S"))


@kernel(inner=True)
def _frame(feed, data, at, end):
    """Walk the messages until `BATCH` of them are chosen: count all, class the chosen ones.

    Returns
    -------
    count, at, outcome : uint64
        Messages in the batch, and where and why it stopped, as `batch.frame` does.
    """
    batch, count, outcome = feed.batch, _0, MORE
    while count < _BATCH and at + _2 <= end:
        message, what, at, ended = walk_on(feed.counts, feed.anomalies, data, at, end)
        if ended != WHOLE:
            outcome = ended
            break
        locate = load_be16(data, message + _1) if message + _3 <= end else _0
        batch.messages[count] = message | (what << CLASS_SHIFT)
        wanted = np.uint64(feed.choice[locate] == WANTED) | np.uint64(load_u8(data, message) == _S)
        count += np.uint64(what != SKIP) & wanted
    return count, at, outcome


@kernel(inner=True)
def list_batch(batch, index, sides, data, end, count):
    """Ask for what the batch's messages refer to, and list them by what they do; returns the lengths of the lists."""
    gone, come, replaced, i = _0, _0, _0, _0
    while i < count:
        message = batch.messages[i] & OFFSET
        what = batch.messages[i] >> CLASS_SHIFT
        entry = entry_at(index, data, message, end)
        order_indices.ask_for(index, entry)
        prefetch(sides, price_tree.side_at(side_of(data, message) if message + _PRICE_END <= end else _0))
        batch.entries[i] = entry
        batch.gone[gone] = i
        gone += np.uint64(what - EXECUTE <= REPLACE - EXECUTE)
        batch.come[come] = i
        come += np.uint64(what == ADD) | np.uint64(what == REPLACE)
        batch.replaced[replaced] = i
        replaced += np.uint64(what == REPLACE)
        i += _1
    return gone, come, replaced


@kernel
def replay(feed, data, begin, end):
    """Apply a chunk's whole messages on the instruments whose `feed.choice` is WANTED; count all.

    Parameters
    ----------
    feed : message_loop.Feed
    data : ndarray of uint8
    begin, end : uint64

    Returns
    -------
    at, outcome : uint64
        See `message_loop.replay`.
    """
    batch, book = feed.batch, feed.book
    at, outcome, before = begin, MORE, end
    while at != before and outcome == MORE:
        if not books.make_room(book, _BATCH):
            return at, FULL
        changes = order_indices.changes_of(book.index)
        before = at
        count, at, outcome = _frame(feed, data, at, end)
        gone, come, replaced = list_batch(batch, book.index, book.tree.sides, data, end, count)
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
