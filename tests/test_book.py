"""The book's own structure: sub-penny chains, floors' boundaries, views, planted faults, canaries; traps 2, 16."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.kernels import book as books
from photonlab.kernels import book_views, pool, price_tree
from photonlab.systems import message_loop as loop
from tests import drivers
from tests.oracle import itch, streams
from tests.replays import SMALL, oracle_after, queue_of, replayed, replayer, rows_of, state_of


def add(reference, side, price, shares=100, locate=1):
    return itch.encode(
        "A", stock_locate=locate, order_reference_number=reference, buy_sell_indicator=side, shares=shares,
        price=price, stock=b"XYZ",
    )  # fmt: skip


def delete(reference):
    return itch.encode("D", stock_locate=1, order_reference_number=reference)


def compare(messages, **options):
    data = itch.frame(messages)
    done = replayed(data, **options)
    book, _ = oracle_after(data)
    assert state_of(done) == book.state()
    return done


# -- prices --------------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(
    st.sampled_from([0, 4096 - 64, 9_970, 10_000, 10_016, 4096 * 64 - 64, 2**31 - 64, 2**32 - 64]),
    st.lists(st.tuples(st.integers(0, 63), st.booleans()), min_size=1, max_size=40),
    st.sampled_from([b"B", b"S"]),
)
def test_prices_within_one_block(base, moves, side):
    """Sub-penny prices share a block of 64 and stand there as a chain in order: added and removed at every place."""
    live, messages, done = {}, [], None
    for number, (offset, again) in enumerate(moves):
        if offset in live and not again:
            messages.append(delete(live.pop(offset)))
        elif offset not in live:
            live[offset] = number
            messages.append(add(number, side, base + offset))
    done = compare(messages)
    prices = sorted((base + offset for offset in live), reverse=side == b"B")
    assert [price for price, _ in queue_of(done.feed_state.book, 2 + (side == b"S"))] == prices
    compare(messages + [delete(reference) for reference in live.values()])


def prices_at(position):
    """Give the prices, at most one, whose place is a position of the tree: below a dollar 64 for each price."""
    price = position // 64 if position < 640_000 else position - 630_000
    return [price] if 0 <= price < 2**32 else []


BOUNDARIES = sorted(
    {
        price
        for shift in (6, 12, 18, 24, 30)
        for number in (1, 2, 3, 10)
        for step in (-65, -1, 0, 64)
        for price in (*prices_at((number << shift) + step), (number << shift) + step)
        if 0 <= price < 2**32
    }
    | {0, 1, 9_998, 9_999, 10_000, 10_001, 10_064, 20_000, 2**32 - 1}
)


def test_positions_are_in_the_order_of_prices():
    """Else a worse price would be taken for the best one."""
    for side, sign in ((0, -1), (1, 1)):
        positions = [int(drivers.position_of(np.uint64(side), np.uint64(price))) for price in BOUNDARIES]
        assert positions == sorted(set(positions))[::sign] and max(positions) < 2**33
    for price in BOUNDARIES:
        bid, ask = (int(drivers.position_of(np.uint64(side), np.uint64(price))) for side in (0, 1))
        assert bid + ask == 2**33 - 1
        assert price in prices_at(ask)


@pytest.mark.parametrize("side", [b"B", b"S"])
@pytest.mark.parametrize("order", [1, -1, 0])
def test_neighbours_across_every_floor(side, order):
    """Prices on both sides of every boundary of the tree; then the best level goes, again and again."""
    prices = BOUNDARIES[::order] if order else random.Random(1).sample(BOUNDARIES, len(BOUNDARIES))
    messages = [add(number, side, price) for number, price in enumerate(prices)]
    for reference in sorted(range(len(prices)), key=lambda n: prices[n], reverse=side == b"B"):
        messages.append(delete(reference))
    whole = itch.frame(messages)
    cuts = range(
        0, len(whole), 21
    )  # the length of a delete: a check after each would be slow, these are the best prices
    done = replayer()
    book = oracle_after(b"")[0]
    for message in messages:
        done.feed(itch.frame([message]))
        book.apply(message)
        number = np.uint64(2 + (side == b"S"))
        rows = np.zeros((1, 3), np.uint64)
        count = book_views.depth(done.feed_state.book, number, rows)
        expected = book.depth(1, side.decode())[:1]
        assert [tuple(row) for row in rows[: int(count)].tolist()] == expected
    compare(messages, cuts=cuts)


def test_many_levels_on_many_sides():
    draw = random.Random(7)
    messages = [
        add(n, draw.choice((b"B", b"S")), draw.choice((draw.getrandbits(32), 10_000 + 100 * (n % 30))), locate=n % 97)
        for n in range(3_000)
    ]
    done = compare(messages, pages=1 << 12, levels=1 << 12, tree_nodes=1 << 15)
    assert int(done.feed_state.book.tally[books.LEVELS]) == sum(
        len(queue_of(done.feed_state.book, side)) for side in range(2 * 97)
    )


def test_best_changes_are_counted():
    done = compare([add(1, b"S", 10), add(2, b"S", 9), add(3, b"S", 9), add(4, b"S", 11), delete(2), delete(3)])
    assert int(done.feed_state.book.tally[books.BEST_CHANGES]) == 3


# -- views ---------------------------------------------------------------------------------------------------------


def test_views_write_as_many_rows_as_there_is_room_for():
    done = compare([add(n, b"S", 100 + n % 5) for n in range(20)])
    book, side = done.feed_state.book, np.uint64(3)
    levels, orders = rows_of(book_views.depth, book, side), rows_of(book_views.queue, book, side)
    assert (len(levels), len(orders)) == (5, 20)
    for room in (1, 3, 5, 7):
        rows = np.full((room + 2, 3), 77, np.uint64)
        written = int(book_views.depth(book, side, rows[:room]))
        assert written == min(room, 5)
        assert [tuple(row) for row in rows[:written].tolist()] == levels[:written]
        assert (rows[written:] == 77).all(), "and no row beyond"
    rows = np.full((8, 3), 77, np.uint64)
    assert book_views.queue(book, side, rows[:6]) == 20, "counts on where the room ends"
    assert [tuple(row) for row in rows[:6].tolist()] == orders[:6] and (rows[6:] == 77).all()
    assert book_views.depth(book, np.uint64(2), np.zeros((0, 3), np.uint64)) == 0


def test_views_change_nothing():
    done = compare([add(n, b"BS"[n % 2 : n % 2 + 1], 100 + n % 5) for n in range(50)])
    before = done.checksum()
    state_of(done)
    assert done.checksum() == before


def test_the_digest_does_not_depend_on_where_orders_lie():
    """Other slots of levels and nodes, other pages, the same books."""
    plain = [add(n, b"S", 100 + n % 7) for n in range(30)]
    detour = [add(n + 500_000, b"S", 200 + n) for n in range(40)]
    detour += [delete(n + 500_000) for n in range(39, -1, -1)]
    one, other = replayed(itch.frame(plain)), replayed(itch.frame([*detour, *plain]))
    assert book_views.digest(one.feed_state.book) == book_views.digest(other.feed_state.book)
    assert one.checksum() != other.checksum(), "but the counters differ"


def sound():
    return compare([add(n, b"BS"[n % 2 : n % 2 + 1], 100 + n % 6) for n in range(40)]).feed_state.book


def level_word(word):
    """Give a function that disturbs a word of the best bid's level."""

    def disturb(book):
        level = int(book.tree.sides[2 * 8 + int(price_tree.BEST_LEVEL)])
        book.words[4 * level + word] += 1

    return disturb


def order_word(word):
    def disturb(book):
        level = int(book.tree.sides[2 * 8 + int(price_tree.BEST_LEVEL)])
        node = int(book.words[4 * level + int(books.FIRST)])
        book.words[4 * node + word] += 1

    return disturb


def tally(index):
    def disturb(book):
        book.tally[index] += np.uint64(1)

    return disturb


def page(book):
    book.index.page_first[1] += np.uint64(16)


@pytest.mark.parametrize(
    "disturb",
    [
        pytest.param(level_word(int(books.VOLUME)), id="volume"),
        pytest.param(level_word(int(books.SIDE)), id="side"),
        pytest.param(order_word(int(books.SHARES)), id="shares"),
        pytest.param(order_word(int(books.LEVEL)), id="level"),
        pytest.param(order_word(int(books.BEFORE)), id="before"),
        pytest.param(tally(int(books.ORDERS)), id="orders"),
        pytest.param(tally(int(books.LEVELS)), id="levels"),
        pytest.param(page, id="page"),
    ],
)
def test_faults_are_found(disturb):
    """Trap 2: the check that each level equals the sum of its orders can fail."""
    book = sound()
    assert book_views.faults(book) == 0
    disturb(book)
    assert book_views.faults(book) > 0


# -- memory --------------------------------------------------------------------------------------------------------

GUARD = 64


def guarded(part, guards):
    """Give a named tuple whose arrays are views inside larger ones, with canaries on both sides."""
    if isinstance(part, np.ndarray):
        whole = np.full(part.size + 2 * GUARD, 0x5A, part.dtype)
        whole[GUARD:-GUARD] = part
        guards.append(whole)
        return whole[GUARD:-GUARD]
    fields = {name: guarded(value, guards) for name, value in part._asdict().items()}
    if "pairs" in fields:
        fields["pairs"] = fields["words"].view(np.uint64)
    return part._replace(**fields)


def test_trap_16_no_array_is_written_beyond_its_ends():
    """Canaries round every array of a replay, down to its scratch; long streams, faulty ones, and until it is full."""
    for seed, options in enumerate(({}, {"faults": 0.3}, {"spread": 300}, {"spread": 5000, "faults": 0.1})):
        guards, done = [], replayer(look_ahead=bool(seed % 2))
        done.feed_state = guarded(done.feed_state, guards)
        assert len(guards) > 30
        data = streams.long_stream(seed, 3_000, instruments=5, **options)
        raw = np.full(len(data) + 2 * GUARD, 0x5A, np.uint8)
        raw[GUARD:-GUARD] = np.frombuffer(data, np.uint8)
        done.feed(raw[GUARD:-GUARD])
        assert book_views.faults(done.feed_state.book) == 0
        more = itch.frame([add(n << 12, b"S", n << 18) for n in range(5_000)])
        at, outcome = loop.replay(
            done.feed_state, np.frombuffer(bytearray(more), np.uint8), np.uint64(0), np.uint64(len(more)), False
        )
        assert outcome == loop.FULL and 0 < at < len(more)
        for whole in guards:
            assert (whole[:GUARD] == 0x5A).all() and (whole[-GUARD:] == 0x5A).all()
    assert len(loop.replay.signatures) == 1


def test_trap_16_what_stands_behind_the_end_is_not_looked_at():
    """The same bytes with other bytes behind them give the same books: nothing is read beyond `end` and used."""
    data = itch.frame([add(n, b"S", 100 + n) for n in range(70)])
    results = set()
    for junk in (b"\x00" * 100, b"\xff" * 100, itch.frame([delete(n) for n in range(5)])):
        for cut in (len(data), len(data) - 1, len(data) - 37):
            done = replayer()
            raw = np.frombuffer(bytearray(data[:cut] + junk), np.uint8)
            at, outcome = loop.replay(done.feed_state, raw, np.uint64(0), np.uint64(cut), True)
            results.add((cut, int(at), int(outcome), done.checksum()))
    assert len(results) == 3


@pytest.mark.parametrize(
    "wrong", [{"pages": 1 << 28}, {"levels": 1 << 31}, {"pages": 1}, {"tree_nodes": 1}, {"levels": 1}]
)
def test_sizes_that_make_no_book(wrong):
    with pytest.raises((ValueError, MemoryError)):
        books.make_book(**(SMALL | wrong))


def test_default_books_reserve_and_do_not_use_memory():
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1])
    kept = [books.make_book() for _ in range(3)]
    with open("/proc/self/statm") as file:
        assert (int(file.read().split()[1]) - before) * 4096 < 64 << 20
    assert all(book.levels.state[pool.LIVE] == 0 for book in kept)
