"""A replay on two cores beside that on one, in plain Python too: what finds bugs planted in the dealing of messages."""

import numpy as np

from photonlab.systems import sharded
from photonlab.systems.replayer import Replayer
from tests.oracle import itch, streams
from tests.replays import queue_of

CAPACITY = {"pages": 1 << 9, "levels": 1 << 9, "tree_nodes": 1 << 10}
LOCATES = 4


def keeps_its_word(messages):
    """Drop what makes cores disagree: a reference on a second instrument, a message that names another instrument."""
    home, kept = {}, []
    for message in messages:
        kind = chr(message[0])
        if kind in itch.LENGTH and len(message) == itch.LENGTH[kind] and kind in "AFECXDU":
            fields = itch.decode(message)
            names = [fields[name] for name in fields if name.endswith("order_reference_number")]
            if any(home.setdefault(one, fields["stock_locate"]) != fields["stock_locate"] for one in names):
                continue
        kept.append(message)
    return kept


def check_cores():
    """Streams in chunks of several sizes, bad messages among theirs; then a crossing in and out of the session."""
    for step, data in ((1 << 20, _stream(1, 300)), (50, _stream(2, 60)), (7, _stream(3, 20) + b"\0\0" + _stream(4, 3))):
        _compare(data, step)
    for event in (b"Q", b"M"):
        market = [itch.encode("S", event_code=b"Q"), itch.encode("S", event_code=event)]
        opened = [itch.encode("Q", stock_locate=n, cross_type=b"O", cross_shares=5) for n in range(LOCATES)]
        orders = [
            itch.encode(
                "A",
                stock_locate=n,
                order_reference_number=1 + 2 * n + m,
                buy_sell_indicator=side,
                shares=9,
                price=price,
            )
            for n in range(LOCATES)
            for m, (side, price) in enumerate(((b"B", 10), (b"S", 9)))
        ]
        _compare(itch.frame([*market, *opened, *orders]), 1 << 20)


def _stream(seed, size):
    odd = [b"zz", b"D" * 7, b"A"]
    messages = [message for _, message in itch.walk(streams.long_stream(seed, size, instruments=LOCATES)).messages]
    half = len(messages) // 2
    return itch.frame(keeps_its_word([*messages[:half], *odd, *messages[half:]]))


def _compare(data, step):
    alone, shared = Replayer(capacity=CAPACITY), sharded.Shards(2, capacity=CAPACITY)
    for begin in range(0, len(data), step):
        alone.feed(data[begin : begin + step])
        shared.feed(data[begin : begin + step])
    assert (shared.position, shared.live_orders) == (alone.position, alone.live_orders)
    assert (shared.counts, shared.anomalies) == (alone.counts, alone.anomalies)
    assert shared.unknown_references == alone.unknown_references
    one, two = alone.feed_state, shared.feed_state
    assert np.array_equal(one.volume, two.volume) and np.array_equal(one.names, two.names)
    for side in range(2 * LOCATES):
        assert queue_of(shared.feeds[side // 2 % 2].book, side) == queue_of(one.book, side)
