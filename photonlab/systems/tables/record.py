"""The replay that writes rows: best prices, trades, depth and orders, each message seen before and after it is applied.

The loop is that of `systems/message_loop.py` with the same parts; it stops where a table is full, or where a message
lies behind the next point of a time grid, and takes up where it was. A message changes the touch only if it
took from the best level or brought an order at least as good, so that most are done with after two comparisons.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import order_indices, price_tree
from photonlab.machine.bits import (
    load_be16,
    load_be32,
    load_be48,
    load_be64,
    load_u8,
    store_le16,
    store_le32,
    store_le64,
    store_u8,
)
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array
from photonlab.systems import batch as batches
from photonlab.systems.batch import ADD, CLASS_SHIFT, EXECUTE, EXECUTE_AT, MORE, OFFSET, OTHER, REPLACE
from photonlab.systems.message_loop import FULL, LOCATES, NEVER, apply
from photonlab.systems.tables import ladder, lives, steps
from photonlab.systems.tables.columns import BBO, BROKEN, ORDERS, TRADES, Rows

_0, _1, _2, _3, _8 = (np.uint64(i) for i in (0, 1, 2, 3, 8))
_BATCH = np.uint64(batches.BATCH)
_MASK32 = np.uint64(0xFFFFFFFF)
_TIME, _TIME_END = np.uint64(5), np.uint64(11)
_B, _N, _P, _Q, _S = (np.uint64(ord(c)) for c in "BNPQS")
_COLD = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# How a call may end, beside what the replay's loop says
ROWS_FULL, GRID_POINT = np.uint64(4), np.uint64(5)

# Words of `state`
FLAGS, LEVELS, GRID, SIFTED, BASE, COUNT, DONE, CHANGES, AT, OUTCOME, CURSOR, TOP = (np.uint64(i) for i in range(12))
STATE_WORDS = 16

# Bits of FLAGS
WANTS_BBO, WANTS_TRADES, WANTS_DEPTH, WANTS_ORDERS, WANTS_GRID = (np.uint64(1 << i) for i in range(5))
NO_GRID = np.uint64((1 << 64) - 1)


class Output(NamedTuple):
    """What a replay writes to, and what it has to remember for that.

    Attributes
    ----------
    rows : Rows
    state : ndarray of uint64, shape (16,)
        What is wanted, and where in a batch the loop stopped.
    numbers : ndarray of uint64
        If messages were sifted, the number of each in the whole input.
    touch : ndarray of uint64, shape (4 * 65536,)
        By locate: bid, bid shares, ask, ask shares as last written; an empty side has the price `NO_KEY`.
    ladder : ndarray of uint64
        The best levels of each side for snapshots, see `tables/ladder.py`.
    ranks : ndarray of uint32
        The best levels of each side for steps of depth, see `tables/steps.py`.
    lives : ndarray of uint64, shape (8 * nodes,)
        What has become of each live order, see `tables/lives.py`.
    """

    rows: Rows
    state: np.ndarray
    numbers: np.ndarray
    touch: np.ndarray
    ladder: np.ndarray
    ranks: np.ndarray
    lives: np.ndarray


def make_output(rows, book, flags, levels=1) -> Output:
    """Return what a replay writes to.

    Parameters
    ----------
    rows : Rows
    book : photonlab.kernels.book.Book
    flags : int
        Of ``WANTS_…``.
    levels : int
        Of depth.

    Returns
    -------
    Output
    """
    state = np.zeros(STATE_WORDS, np.uint64)
    state[FLAGS], state[LEVELS], state[GRID] = flags, levels, NO_GRID
    touch = np.zeros((LOCATES, 4), np.uint64)
    touch[:, 0::2] = price_tree.NO_KEY
    nodes = int(book.tally[books.LEVEL_BASE]) if flags & int(WANTS_ORDERS) else 1
    return Output(
        rows,
        state,
        np.zeros(1, np.uint64),
        touch.reshape(-1),
        huge_array(2 * LOCATES * (3 * levels + 1) if flags & int(WANTS_GRID) else 1, np.uint64),
        steps.make_ranks(levels if flags & int(WANTS_DEPTH) else 0),
        huge_array(nodes * int(lives.WORDS), np.uint64),
    )


@kernel
def record(feed, out, data, begin, end):
    """Apply the whole messages of a chunk, and write the rows that are wanted.

    Parameters
    ----------
    feed : message_loop.Feed
    out : Output
    data : ndarray of uint8
    begin, end : uint64
        Where a length prefix stands, and where the chunk ends; after `ROWS_FULL` or `GRID_POINT` where it stopped.

    Returns
    -------
    at, outcome : uint64
        As `message_loop.replay` returns them, or `ROWS_FULL` (empty the tables, and call again) or `GRID_POINT` (the
        next message is at or behind the time ``state[GRID]``; take a snapshot, move it, and call again).
    """
    batch, book, state = feed.batch, feed.book, out.state
    at, outcome = begin, MORE
    flags, sifted = state[FLAGS], state[SIFTED] != _0
    while True:
        if state[DONE] == state[COUNT]:
            if out.rows.full[_0] != _0:
                return at, ROWS_FULL
            if not books.make_room(book, _BATCH):
                return at, FULL
            state[BASE] += state[COUNT]
            state[CHANGES] = order_indices.changes_of(book.index)
            count, gone, come, replaced, at, outcome = batches.frame(
                batch, feed.counts, feed.anomalies, book.index, book.tree.sides, data, at, end
            )
            state[COUNT], state[DONE], state[AT], state[OUTCOME] = count, _0, at, outcome
            batches.look_ahead(batch, book, data, end, gone, come, replaced)
        else:
            at, outcome = state[AT], state[OUTCOME]
        i, base, changes = state[DONE], state[BASE], state[CHANGES]
        count = state[COUNT]
        if flags & WANTS_GRID != _0:
            count = _before(batch, data, end, i, count, state[GRID])
        while i < count:
            message = batch.messages[i]
            offset, entry = message & OFFSET, batch.entries[i]
            if order_indices.changes_of(book.index) != changes:
                entry = batches.entry_at(book.index, data, offset, end)
            number = out.numbers[base + i] if sifted else base + i
            _observe(feed, out, flags, data, offset, message >> CLASS_SHIFT, entry, number)
            i += _1
        state[DONE] = i
        if i < state[COUNT]:
            return at, GRID_POINT
        if i == _0 or outcome != MORE:
            break
    if price_tree.crowded(book.tree):
        price_tree.sweep(book.tree)
    return at, outcome


@kernel(**_COLD)
def _before(batch, data, end, i, count, time):
    """Return the first of a batch's messages from `i` on that is not before a time; their number if all are."""
    while i < count:
        offset = batch.messages[i] & OFFSET
        if offset + _TIME_END <= end and load_be48(data, offset + _TIME) >= time:
            return i
        i += _1
    return i


@kernel(inner=True)
def _observe(feed, out, flags, data, at, what, entry, number):
    """Apply a message, and write what came of it."""
    book = feed.book
    if flags & WANTS_TRADES != _0:
        if what - EXECUTE <= EXECUTE_AT - EXECUTE:
            _execution(book.words, book.index, out.rows, data, at, what, entry, number)
        elif what == OTHER:
            _other_trade(out.rows, data, at, number)
    mpid = _0
    if flags & WANTS_ORDERS != _0:
        mpid = _ends(book.words, book.index, out.rows, out.lives, data, at, what, entry, number)
    if flags & WANTS_GRID != _0 and what == ADD:
        out.state[TOP] = max(out.state[TOP], load_be16(data, at + _1))

    side, old_key, new_key, was_best, pushed = apply(feed, data, at, what, entry)

    if flags & WANTS_ORDERS != _0 and new_key != NEVER:
        reference = load_be64(data, at + (batches.NEW_REFERENCE if what == REPLACE else batches.REFERENCE))
        node = order_indices.node_at(book.index, order_indices.entry_of(book.index, reference), reference)
        lives.came(out.lives, data, at, what, node, mpid, number)
    if flags & WANTS_BBO != _0:
        best = book.tree.sides[price_tree.side_at(side) + price_tree.BEST_KEY]
        if np.uint64(was_best) | np.uint64(new_key <= best) | pushed != _0:
            ns = load_be48(data, at + _TIME)
            if pushed != _0 and pushed - _1 >> _1 != side >> _1:
                _touch_of_pushed(book, out.rows, out.touch, ns, pushed - _1 >> _1, number)
            _touch(book, out.rows, out.touch, ns, side >> _1, number)
    if flags & (WANTS_DEPTH | WANTS_GRID) != _0 and min(old_key, new_key) != NEVER:
        if flags & WANTS_DEPTH != _0:
            ns = load_be48(data, at + _TIME)
            _depth(book, out, side, old_key, new_key, what == REPLACE, pushed, ns, number)
        else:
            _mark(out.ladder, out.state[LEVELS], side)
            _mark(out.ladder, out.state[LEVELS], pushed - _1 if pushed != _0 else side)


@kernel(**_COLD)
def _ends(words, index, rows, kept, data, at, what, entry, number):
    """Note what a message takes from an order; return the attribution that a replacement inherits."""
    mpid, reference = _0, _0
    if what - EXECUTE <= REPLACE - EXECUTE:
        old = load_be64(data, at + batches.REFERENCE)
        node = order_indices.node_at(index, entry, old)
        level = np.uint64(words[books.word_at(node) + books.LEVEL])
        if level == _0:
            return mpid
        mpid = kept[node * lives.WORDS + lives.MPID]
        held = np.uint64(words[books.word_at(node) + books.SHARES])
        side = np.uint64(words[books.word_at(level) + books.SIDE])
        price = books.key_of(side, np.uint64(words[books.word_at(level) + books.KEY]))
        lives.took(rows, kept, data, at, what, node, side, price, held, number)
        if what != REPLACE:
            return mpid
        reference = load_be64(data, at + batches.NEW_REFERENCE)
        if reference == old:
            return mpid
    elif what == ADD and load_u8(data, at + batches.SIDE) in (_B, _S):
        reference = load_be64(data, at + batches.REFERENCE)
    else:
        return mpid
    node = order_indices.node_at(index, order_indices.entry_of(index, reference), reference)
    level = np.uint64(words[books.word_at(node) + books.LEVEL])
    if level != _0:  # its reference is used anew
        side = np.uint64(words[books.word_at(level) + books.SIDE])
        price = books.key_of(side, np.uint64(words[books.word_at(level) + books.KEY]))
        lives.pushed(rows, kept, data, at, node, reference, side, price, number)
    return mpid


@kernel(inner=True)
def _begin_row(rows, table, number, ns, locate):
    """Write sequence, time and locate of a new row; return its number and its table's first column."""
    row, first = rows.counts[table], rows.first[table]
    store_le64(rows.memory, rows.at[first] + (row << _3), number)
    store_le64(rows.memory, rows.at[first + _1] + (row << _3), ns)
    store_le16(rows.memory, rows.at[first + _2] + (row << _1), locate)
    rows.counts[table] = row + _1
    if row + _1 >= rows.limits[table]:
        rows.full[_0] = _1
    return row, first + _3


@kernel(inner=True)
def _touch(book, rows, touch, ns, locate, number):
    """Write an instrument's best bid and offer if they are not what was last written."""
    sides = book.tree.sides
    record = price_tree.side_at(locate << _1)
    level, other = sides[record + price_tree.BEST_LEVEL], sides[record + _8 + price_tree.BEST_LEVEL]
    bid = sides[record + price_tree.BEST_KEY] ^ _MASK32 if level != _0 else price_tree.NO_KEY
    ask = sides[record + _8 + price_tree.BEST_KEY] if other != _0 else price_tree.NO_KEY
    bids = book.pairs[books.volume_at(level)] if level != _0 else _0
    asks = book.pairs[books.volume_at(other)] if other != _0 else _0
    last = locate << _2
    if touch[last] == bid and touch[last + _1] == bids and touch[last + _2] == ask and touch[last + _3] == asks:
        return
    touch[last], touch[last + _1], touch[last + _2], touch[last + _3] = bid, bids, ask, asks
    row, column = _begin_row(rows, BBO, number, ns, locate)
    store_le32(rows.memory, rows.at[column] + (row << _2), bid)
    store_le64(rows.memory, rows.at[column + _1] + (row << _3), bids)
    store_le32(rows.memory, rows.at[column + _2] + (row << _2), ask)
    store_le64(rows.memory, rows.at[column + _3] + (row << _3), asks)
    store_u8(rows.memory, rows.at[column + np.uint64(4)] + row, np.uint64(level != _0))
    store_u8(rows.memory, rows.at[column + np.uint64(5)] + row, np.uint64(other != _0))


@kernel(inner=True)
def _depth(book, out, side, old_key, new_key, replaced, pushed, ns, number):
    """Write what a message changed of depth, and where the row of each instrument ends."""
    rows, ranks, levels = out.rows, out.ranks, out.state[LEVELS]
    if pushed != _0 or (replaced and old_key == new_key):
        _depth_anew(book, rows, ranks, levels, side, pushed, ns, number)
    elif replaced:
        _depth_replaced(book, rows, ranks, levels, side, old_key, new_key, ns, number)
    else:
        steps.update(book, rows, ranks, levels, side, min(old_key, new_key), ns, number, steps.ENDS)


@kernel(**_COLD)
def _depth_replaced(book, rows, ranks, levels, side, old_key, new_key, ns, number):
    first = steps.update(book, rows, ranks, levels, side, old_key, ns, number, _0)
    if not steps.update(book, rows, ranks, levels, side, new_key, ns, number, steps.ENDS) and first:
        steps.end_row(rows)


@kernel(**_COLD)
def _depth_anew(book, rows, ranks, levels, side, pushed, ns, number):
    """The same where several levels may have changed: at two sides, or ended and made anew at one price."""
    if pushed != _0:
        steps.fill(book, rows, ranks, levels, pushed - _1, ns, number)
        if pushed - _1 >> _1 != side >> _1:
            steps.end_row(rows)
    steps.fill(book, rows, ranks, levels, side, ns, number)
    steps.end_row(rows)


@kernel(inner=True)
def _mark(ladders, levels, side):
    """Mark a side's ladder as stale."""
    ladders[ladder.ladder_at(side, levels) + _3 * levels] = _1


@kernel(**_COLD)
def _touch_of_pushed(book, rows, touch, ns, locate, number):
    _touch(book, rows, touch, ns, locate, number)


@kernel(**_COLD)
def _execution(words, index, rows, data, at, what, entry, number):
    """E and C, of orders that are there."""
    reference = load_be64(data, at + batches.REFERENCE)
    node = books.word_at(order_indices.node_at(index, entry, reference))
    if words[node + books.LEVEL] == 0:
        return
    level = books.word_at(np.uint64(words[node + books.LEVEL]))
    side = np.uint64(words[level + books.SIDE])
    price, printable = books.key_of(side, np.uint64(words[level + books.KEY])), _1
    shares = min(load_be32(data, at + batches.TAKEN_SHARES), np.uint64(words[node + books.SHARES]))
    if what == EXECUTE_AT:
        price = load_be32(data, at + np.uint64(32))
        printable = np.uint64(load_u8(data, at + batches.PRINTABLE) != _N)
    letter, match = _B if side & _1 == _0 else _S, load_be64(data, at + np.uint64(23))
    _trade(rows, data, at, side >> _1, letter, price, shares, match, reference, printable, np.uint64(32), number)


@kernel(**_COLD)
def _other_trade(rows, data, at, number):
    """P, Q and B."""
    kind, locate = load_u8(data, at), load_be32(data, at + _1) >> np.uint64(16)
    reference = load_be64(data, at + np.uint64(11))
    if kind == _P:
        letter, shares = load_u8(data, at + np.uint64(19)), load_be32(data, at + np.uint64(20))
        price, match = load_be32(data, at + np.uint64(32)), load_be64(data, at + np.uint64(36))
        _trade(rows, data, at, locate, letter, price, shares, match, reference, _1, np.uint64(32), number)
    elif kind == _Q:
        price, match = load_be32(data, at + np.uint64(27)), load_be64(data, at + np.uint64(31))
        cross = load_u8(data, at + np.uint64(39))
        _trade(rows, data, at, locate, np.uint64(32), price, reference, match, _0, _1, cross, number)
    elif kind == _B:
        row, column = _begin_row(rows, BROKEN, number, load_be48(data, at + _TIME), locate)
        store_le64(rows.memory, rows.at[column] + (row << _3), reference)


@kernel(inner=True)
def _trade(rows, data, at, locate, letter, price, shares, match, reference, printable, cross, number):
    row, column = _begin_row(rows, TRADES, number, load_be48(data, at + _TIME), locate)
    memory, starts = rows.memory, rows.at
    store_u8(memory, starts[column] + row, load_u8(data, at))
    store_u8(memory, starts[column + _1] + row, letter)
    store_le32(memory, starts[column + _2] + (row << _2), price)
    store_le64(memory, starts[column + _3] + (row << _3), shares)
    store_le64(memory, starts[column + np.uint64(4)] + (row << _3), match)
    store_le64(memory, starts[column + np.uint64(5)] + (row << _3), reference)
    store_u8(memory, starts[column + np.uint64(6)] + row, printable)
    store_u8(memory, starts[column + np.uint64(7)] + row, cross)
    store_u8(memory, starts[column + _8] + row, _0)


@kernel
def open_orders(book, rows, kept, begin, end):
    """Write a row for each order that is still live, from a node on.

    Parameters
    ----------
    book : Book
    rows : Rows
    kept : ndarray of uint64
        What `Output.lives` is.
    begin, end : uint64
        Nodes to look at.

    Returns
    -------
    uint64
        The first node not looked at: `end`, or the table is full.
    """
    node = begin
    while node < end:
        level = books.level_of(book, node)
        if level != _0:
            if rows.counts[ORDERS] >= rows.limits[ORDERS]:
                return node
            side = np.uint64(book.words[books.word_at(level) + books.SIDE])
            price = books.key_of(side, np.uint64(book.words[books.word_at(level) + books.KEY]))
            reference = order_indices.reference_of(book.index, node)
            lives.write(rows, kept, node, reference, side, price, _0, _0, _0)
        node += _1
    return node
