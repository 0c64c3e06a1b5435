"""The oracle itself, on the cross-checked files of real and boundary input and on the worked example of trap 1."""

import gzip
import json
import os
from pathlib import Path

import pytest

from tests.oracle import itch
from tests.oracle.book import BUY, SELL, Book

REAL = Path(os.environ.get("PHOTONLAB_REAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
EXPECTED = json.loads((REAL / "expected_itch50.json").read_text()) if (REAL / "expected_itch50.json").exists() else None
FRAMED = [
    "itch50/nasdaq_20191230_0930_1000msgs.itch",
    "itch50/nasdaq_day_head_4096bytes.itch",
    "itch50/seed_boundary_values.itch",
    "itch50/seed_mixed_types.itch",
    "itch50/seed_replace_chain.itch",
    "itch50/seed_selftest.itch",
]
ZERO_PREFIX = "itch50/simulated_zero_prefix_12012msgs.itch.gz"

needs_real_data = pytest.mark.skipif(EXPECTED is None, reason=f"expected_itch50.json is not in {REAL}")


def books_of(book):
    """Give the final books in the shape of expected_itch50.json."""
    return {
        book.names[locate]: {
            "locate": locate,
            "bids": [list(level) for level in book.depth(locate, BUY)],
            "asks": [list(level) for level in book.depth(locate, SELL)],
        }
        for locate in book.locates()
    }


def check(book, name):
    expected = EXPECTED["counts"][name]
    assert dict(book.counts) == expected["counts"]
    assert dict(book.unknown_reference) == expected["missing_refs"]
    assert len(book.orders) == expected["live_orders_at_end"]
    assert sum(order.shares for order in book.orders.values()) == expected["live_shares"]
    assert book.anomalies["over_fill"] == expected["over_reductions"]
    assert books_of(book) == EXPECTED["final_books"].get(name, {})


@needs_real_data
@pytest.mark.parametrize("name", FRAMED)
def test_expected_files(name):
    book = Book()
    walk = book.feed((REAL / name).read_bytes())
    expected = EXPECTED["counts"][name]
    assert len(walk.messages) == expected["messages"]
    assert walk.consumed + walk.short_tail == expected["bytes"]
    assert not walk.ended
    check(book, name)


@needs_real_data
def test_cut_file_reports_its_tail():
    book = Book()
    walk = book.feed((REAL / "itch50/nasdaq_day_head_4096bytes.itch").read_bytes())
    assert (walk.consumed, walk.short_tail) == (4081, 15)
    assert book.anomalies["short_tail"] == 15


@needs_real_data
def test_simulated_file_message_by_message():
    """The simulated file carries no lengths (all its prefixes are zero), so the type gives them here."""
    data = gzip.decompress((REAL / ZERO_PREFIX).read_bytes())
    assert itch.walk(data).messages == [], "framed by its prefixes the file ends before its first message"
    book, offset = Book(), 0
    while offset < len(data):
        assert data[offset : offset + 2] == b"\0\0"
        end = offset + 2 + itch.LENGTH[chr(data[offset + 2])]
        book.apply(data[offset + 2 : end])
        offset = end
    check(book, ZERO_PREFIX)


@needs_real_data
def test_end_of_session_mark():
    data = (REAL / "itch50/binaryfile_end_of_session.dat").read_bytes()
    walk = itch.walk(data)
    assert [message for _, message in walk.messages] == [b"foo", b"bar", b"baz", b"quux"]
    assert walk.ended and walk.consumed == len(data) and walk.short_tail == 0


def add(reference, side, shares, price, locate=1, kind="A"):
    return itch.encode(
        kind,
        stock_locate=locate,
        order_reference_number=reference,
        buy_sell_indicator=side,
        shares=shares,
        price=price,
        stock=b"XYZ",
    )


def executed(reference, shares):
    return itch.encode("E", stock_locate=1, order_reference_number=reference, executed_shares=shares)


def replaced(old, new, shares, price):
    return itch.encode(
        "U",
        stock_locate=1,
        original_order_reference_number=old,
        new_order_reference_number=new,
        shares=shares,
        price=price,
    )


def book_after(*messages):
    book = Book()
    book.feed(itch.frame(messages))
    return book


def test_replace_takes_the_open_quantity_and_joins_the_tail():
    """Trap 1, worked example."""
    before = [add(1, b"S", 100, 10), executed(1, 30), add(2, b"S", 200, 10)]
    assert book_after(*before).queue(1, SELL) == [(10, [(1, 70), (2, 200)])]
    book = book_after(*before, replaced(1, 3, 50, 10))
    assert book.queue(1, SELL) == [(10, [(2, 200), (3, 50)])]
    assert 1 not in book.orders
    assert book.orders[3].side == SELL
    assert book.volume[1] == 30
    late = book_after(*before, replaced(1, 3, 50, 10), executed(1, 1))
    assert late.unknown_reference == {"E": 1}, "the old reference is unknown after a replace"


def test_replace_of_an_unknown_reference_adds_nothing():
    book = book_after(add(1, b"B", 100, 10), replaced(99, 5, 50, 10))
    assert list(book.orders) == [1]
    assert book.unknown_reference == {"U": 1}


def test_replace_onto_a_live_reference_and_onto_itself():
    book = book_after(add(1, b"B", 100, 10), add(2, b"S", 5, 20, locate=7), replaced(1, 2, 50, 11))
    assert book.anomalies["duplicate_reference"] == 1
    assert book.queue(1, BUY) == [(11, [(2, 50)])]
    assert book.queue(7, SELL) == []
    book = book_after(add(1, b"B", 100, 10), add(2, b"B", 5, 10), replaced(1, 1, 60, 10))
    assert book.anomalies["duplicate_reference"] == 0
    assert book.queue(1, BUY) == [(10, [(2, 5), (1, 60)])]


def test_over_fill_clamps_to_removal_and_to_the_open_volume():
    book = book_after(add(1, b"B", 100, 10), executed(1, 101))
    assert book.orders == {} and book.best(1) == (None, None)
    assert book.anomalies["over_fill"] == 1 and book.volume[1] == 100


def test_execution_behind_the_head_and_unprintable():
    """Trap 3."""
    hidden = itch.encode("C", order_reference_number=2, executed_shares=40, printable=b"N", execution_price=9)
    book = book_after(add(1, b"S", 100, 10), add(2, b"S", 50, 10), hidden)
    assert book.queue(1, SELL) == [(10, [(1, 100), (2, 10)])]
    assert book.volume[1] == 0
    shown = itch.encode("C", order_reference_number=2, executed_shares=40, printable=b"Y", execution_price=9)
    assert book_after(add(1, b"S", 100, 10), add(2, b"S", 50, 10), shown).volume[1] == 40


def test_bad_side_is_skipped_and_counted():
    book = book_after(add(1, b"B", 100, 10), add(1, b"x", 5, 11), add(2, b"b", 5, 11))
    assert book.anomalies == {"bad_side": 2, "short_tail": 0}
    assert book.queue(1, BUY) == [(10, [(1, 100)])]


def event(code):
    return itch.encode("S", event_code=code)


OPENING = itch.encode("Q", stock_locate=1, cross_shares=7, cross_type=b"O")
CROSSING = [add(1, b"B", 1, 10), add(2, b"S", 1, 10), add(3, b"S", 1, 9), add(4, b"B", 1, 11)]


@pytest.mark.parametrize(
    ("before", "counter"),
    [
        ([], "crossed_outside_trading"),
        ([event(b"Q")], "crossed_outside_trading"),
        ([OPENING], "crossed_outside_trading"),
        ([event(b"Q"), OPENING], "crossed"),
        ([event(b"Q"), OPENING, event(b"M")], "crossed_outside_trading"),
        ([itch.encode("H", stock_locate=1, trading_state=b"H"), event(b"Q"), OPENING], "crossed_outside_trading"),
        ([itch.encode("H", stock_locate=2, trading_state=b"H"), event(b"Q"), OPENING], "crossed"),
        ([itch.encode("H", stock_locate=1, trading_state=b"T"), event(b"Q"), OPENING], "crossed"),
        ([event(b"Q"), OPENING, itch.encode("h", stock_locate=1, operational_halt_action=b"H")],
         "crossed_outside_trading"),
        ([event(b"Q"), OPENING, itch.encode("h", stock_locate=1, operational_halt_action=b"T")], "crossed"),
    ],
)  # fmt: skip
def test_a_crossing_counts_once_and_knows_the_time_of_day(before, counter):
    """Trap 4: a locked or crossed book is counted when it comes about, by whether the instrument trades."""
    book = book_after(*before, *CROSSING)
    other = ({"crossed", "crossed_outside_trading"} - {counter}).pop()
    assert (book.anomalies[counter], book.anomalies[other]) == (1, 0)
    assert book.best(1) == (11, 9)


def test_a_second_crossing_counts_again():
    apart = [itch.encode("D", order_reference_number=reference) for reference in (2, 3)]
    book = book_after(*CROSSING, *apart, add(5, b"S", 1, 8))
    assert book.anomalies["crossed_outside_trading"] == 2


def test_state_is_comparable_and_digest_tells_books_apart():
    one = book_after(*CROSSING)
    assert one.state() == book_after(*CROSSING).state()
    assert one.digest() == book_after(*CROSSING).digest()
    assert one.digest() != book_after(*CROSSING, executed(4, 1)).digest()
