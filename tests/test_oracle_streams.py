"""The stream generators reach what they promise: every rule of the book, every anomaly, the same bytes for a seed."""

from collections import Counter

from hypothesis import given, settings

from tests.oracle import itch, streams
from tests.oracle.book import Book


def test_long_stream_is_deterministic_and_reaches_every_rule():
    data = streams.long_stream(1, 20_000, faults=0.05)
    assert data == streams.long_stream(1, 20_000, faults=0.05) != streams.long_stream(2, 20_000, faults=0.05)
    book = Book()
    walk = book.feed(data)
    assert len(walk.messages) == 20_000
    assert set("SRQAFECXDUPhH") <= set(book.counts)
    assert set(book.unknown_reference) == set("ECXDU")
    reached = {name for name, count in book.anomalies.items() if count}
    assert reached == {"duplicate_reference", "over_fill", "bad_length", "unknown_type", "crossed",
                       "crossed_outside_trading"}  # fmt: skip
    assert 100 < len(book.orders) < 10_000
    assert max(book.orders) > 2**32
    assert max(len(orders) for locate in book.locates() for _, orders in book.queue(locate, "B")) > 3


SEEN = Counter()


@settings(max_examples=300, derandomize=True, deadline=None)
@given(streams.framed_streams)
def _collect(data):
    book = Book()
    walk = book.feed(data)
    SEEN.update({name: 1 for name, count in book.anomalies.items() if count})
    SEEN.update({f"unknown {kind}": 1 for kind in book.unknown_reference})
    SEEN.update({"ended": walk.ended})
    SEEN.update(book.counts.keys() & itch.LENGTH.keys())


def test_strategies_reach_every_anomaly():
    SEEN.clear()
    _collect()
    for name in ("bad_side", "duplicate_reference", "over_fill", "bad_length", "unknown_type", "short_tail"):
        assert SEEN[name] >= 5, (name, SEEN)
    assert SEEN["crossed_outside_trading"] >= 5 and SEEN["crossed"] >= 5 and SEEN["ended"] >= 5
    assert all(SEEN[f"unknown {kind}"] >= 5 for kind in "ECXDU")
    assert set(itch.LENGTH) <= SEEN.keys(), "every type"
