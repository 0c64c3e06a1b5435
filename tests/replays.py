"""Replays and the oracle side by side: what a Replayer holds, in the shape in which tests/oracle/book.py gives it."""

from itertools import pairwise

import numpy as np

from photonlab.kernels import book_views
from photonlab.systems import message_loop as loop
from photonlab.systems.replayer import Replayer
from tests.oracle import book as oracle
from tests.oracle import itch

SMALL = {"pages": 1 << 10, "levels": 1 << 10, "tree_nodes": 1 << 12}
"""Enough for streams of a few hundred messages, and quick to reserve."""


def replayer(symbols=None, look_ahead=True, **capacity):
    """Give a small replayer before its first byte."""
    return Replayer(symbols, look_ahead=look_ahead, capacity=SMALL | capacity)


def replayed(data, *, symbols=None, look_ahead=True, cuts=(), **capacity):
    """Give a small replayer that was fed `data`, cut at the given offsets. Not closed, so that anything may be fed."""
    done = replayer(symbols, look_ahead, **capacity)
    edges = [0, *cuts, len(data)]
    for begin, end in pairwise(edges):
        done.feed(data[begin:end])
    return done


def rows_of(view, book, side):
    """Give what a view of one side writes, as a list of tuples."""
    count = int(view(book, np.uint64(side), np.zeros((0, 3), np.uint64)))
    rows = np.zeros((count, 3), np.uint64)
    if count:
        assert view(book, np.uint64(side), rows) == count
    return [tuple(int(word) for word in row) for row in rows]


def queue_of(book, side):
    """Give a side as the oracle does: [(price, [(reference, shares), …]), …], best price first."""
    levels = []
    for price, reference, shares in rows_of(book_views.queue, book, side):
        if not levels or levels[-1][0] != price:
            levels.append((price, []))
        levels[-1][1].append((reference, shares))
    return levels


def best_prices(book):
    """Give {locate: (bid, ask)} of all instruments that have one, with None for a side without orders."""
    rows = np.zeros((loop.LOCATES, 5), np.uint64)
    book_views.best_prices(book, rows)
    return {
        int(locate): tuple(int(rows[locate, column]) if rows[locate, 0] & np.uint64(bit) else None
                           for bit, column in ((1, 1), (2, 3)))
        for locate in np.flatnonzero(rows[:, 0])
    }  # fmt: skip


def state_of(done):
    """Give all that the oracle's `Book.state` gives, and hold the views against each other on the way."""
    feed, book = done.feed_state, done.feed_state.book
    assert book_views.faults(book) == 0
    best, orders, queues = best_prices(book), {}, {}
    for locate in best:
        for offset, side in enumerate("BS"):
            number = 2 * locate + offset
            levels = queue_of(book, number)
            summed = [(price, sum(shares for _, shares in queue), len(queue)) for price, queue in levels]
            assert rows_of(book_views.depth, book, number) == summed
            if levels:
                queues[locate, side] = levels
                assert best[locate][offset] == levels[0][0]
            for price, queue in levels:
                orders |= {reference: (locate, side, price, shares) for reference, shares in queue}
    assert len(orders) == done.live_orders
    odd = {name: int(feed.anomalies[i]) for i, name in enumerate(loop.ANOMALIES) if feed.anomalies[i]}
    if done._rest:  # what close() will call the short tail
        odd["short_tail"] = len(done._rest)
    return {
        "counts": {chr(byte): int(feed.counts[byte]) for byte in np.flatnonzero(feed.counts)},
        "anomalies": dict(sorted(odd.items())),
        "unknown_reference": {
            chr(byte): int(feed.unknown_reference[byte]) for byte in np.flatnonzero(feed.unknown_reference)
        },
        "orders": dict(sorted(orders.items())),
        "queues": queues,
        "best": best,
        "volume": {int(locate): int(feed.volume[locate]) for locate in np.flatnonzero(feed.volume)},
        "names": {
            int(locate): oracle.text(int(feed.names[locate]).to_bytes(8, "big"))
            for locate in np.flatnonzero(feed.names)
        },
    }


def trace_of(done):
    """Give what two replays of the same bytes must agree on whatever the chunks: cheap, for tests with many replays."""
    return (
        done.checksum(),
        done.position,
        done.ended,
        done.after_end,
        bytes(done._rest),
        done.live_orders,
        done.feed_state.names.tobytes(),
        done.feed_state.trading.tobytes(),
        done.feed_state.session.tobytes(),
    )


def oracle_after(data):
    """Give the oracle's book after the whole of `data`, and its walk."""
    book = oracle.Book()
    return book, book.feed(data)


def honest(data):
    """Give a stream in which modifications carry their order's locate and no reference is used for two instruments."""
    out, locates, shift = [], {}, {}
    for _, message in itch.walk(data).messages:
        kind = chr(message[0])
        if kind not in itch.LENGTH or len(message) != itch.LENGTH[kind]:
            out.append(message)
            continue
        fields = itch.decode(message)
        fields.pop("message_type")
        name = "original_order_reference_number" if kind == "U" else "order_reference_number"
        if kind in "AF":
            owner = shift.setdefault(fields[name], fields["stock_locate"])
            if owner != fields["stock_locate"]:
                continue
            locates[fields[name]] = fields["stock_locate"]
        elif kind in "ECXDU":
            fields["stock_locate"] = locates.get(fields[name], fields["stock_locate"])
            if kind == "U":
                new = fields["new_order_reference_number"]
                if shift.setdefault(new, fields["stock_locate"]) != fields["stock_locate"]:
                    continue
                locates[new] = fields["stock_locate"]
        if "stock" in fields:
            fields["stock"] = b"S%d" % fields["stock_locate"]
        out.append(itch.encode(kind, **fields))
    return itch.frame(out)
