"""The replay against the plain-Python book: whole streams, every prefix, cut and anomaly; traps 1 to 7 and 9."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.errors import ItchFormatError, UserError
from photonlab.kernels import book_views, pool
from photonlab.systems import batch
from photonlab.systems import message_loop as loop
from photonlab.systems.replayer import Replayer
from tests.oracle import itch, streams
from tests.oracle.book import Book
from tests.replays import honest, oracle_after, replayed, replayer, state_of, trace_of


def compare(data, **options):
    """Replay `data` and hold everything against the oracle; give both."""
    book, walk = oracle_after(data)
    done = replayed(data, **options)
    assert state_of(done) == book.state()
    assert done.position == walk.consumed
    assert done.ended == walk.ended
    assert done.position + len(done._rest) + done.after_end == len(data), "every byte is accounted for"
    return done, book


# -- any stream ----------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(streams.framed_streams, st.sampled_from([True, False]))
def test_any_stream_gives_the_oracles_books(data, look_ahead):
    compare(data, look_ahead=look_ahead)


@settings(max_examples=40)
@given(streams.streams((3, 10, 30, 100)), st.booleans())
def test_every_prefix_in_messages(messages, look_ahead):
    """The books are right after each message, not only at the end."""
    book, done = Book(), replayer(look_ahead=look_ahead)
    for message in messages:
        book.apply(message)
        done.feed(itch.frame([message]))
        assert state_of(done) == book.state()


@settings(max_examples=10)
@given(streams.streams((10, 30)), streams.tails)
def test_every_prefix_in_bytes(messages, tail):
    data = itch.frame(messages) + tail[:20]
    for cut in range(len(data) + 1):
        compare(data[:cut])


@settings(max_examples=10)
@given(streams.streams((10, 30)), streams.tails, st.booleans())
def test_cut_at_every_byte_equals_whole(messages, tail, look_ahead):
    data = itch.frame(messages) + tail
    whole = trace_of(replayed(data, look_ahead=look_ahead))
    for cut in range(len(data) + 1):
        assert trace_of(replayed(data, cuts=[cut], look_ahead=look_ahead)) == whole


@settings(max_examples=60)
@given(streams.framed_streams, st.lists(st.integers(0, 3000), max_size=12), st.booleans())
def test_any_chunks_equal_whole(data, cuts, byte_by_byte):
    cuts = range(1, len(data)) if byte_by_byte else sorted(min(cut, len(data)) for cut in cuts)
    assert trace_of(replayed(data, cuts=cuts)) == trace_of(replayed(data))


LONG = streams.long_stream(11, 30_000, faults=0.03)


@pytest.mark.parametrize("spread", [1, 37, 4096])
@pytest.mark.parametrize("look_ahead", [True, False])
def test_long_streams(spread, look_ahead):
    """Many batches, slots used again and again, references dense, spread over pages, and one to a chunk."""
    data = streams.long_stream(spread, 8_000, faults=0.02, spread=spread)
    done, _ = compare(data, look_ahead=look_ahead, pages=1 << 13, levels=1 << 13, tree_nodes=1 << 15)
    assert all(done.unknown_references.values()) and done.live_orders > 50


def test_a_long_stream_in_random_chunks_is_sound_all_the_way():
    """Random chunks, from single bytes to many batches; levels, links and index agree after each."""
    draw, capacity = random.Random(5), {"pages": 1 << 14, "levels": 1 << 14, "tree_nodes": 1 << 16}
    whole = trace_of(replayed(LONG, **capacity))
    done, at = replayer(**capacity), 0
    while at < len(LONG):
        size = draw.choice((1, 2, 3, 40, 3_000, 100_000))
        done.feed(LONG[at : at + size])
        at += size
        assert book_views.faults(done.feed_state.book) == 0
    assert trace_of(done) == whole


def test_look_ahead_changes_nothing():
    with_it, without = (replayed(LONG, look_ahead=flag, pages=1 << 14, levels=1 << 14) for flag in (True, False))
    assert trace_of(with_it) == trace_of(without)
    assert state_of(with_it) == state_of(without)


# -- forms of input ------------------------------------------------------------------------------------------------


def test_every_form_of_input_is_one_type_to_the_kernel():
    """Trap 14: a read-only array is another type and would compile again, perhaps while somebody measures."""
    data = streams.long_stream(3, 300)
    expected = trace_of(replayed(data))
    before = len(loop.replay.signatures)  # more than one if other tests have replayed into books of other kinds
    array = np.frombuffer(data, np.uint8)
    frozen, odd = array.copy(), np.zeros(len(data) + 1, np.uint8)
    frozen.flags.writeable = False
    odd[1:] = array
    spaced = np.zeros(2 * len(data), np.uint8)
    spaced[::2] = array
    forms = [bytearray(data), memoryview(data), array, frozen, array.copy(), odd[1:], spaced[::2], array.view(np.int8)]
    for form in forms:
        assert trace_of(replayed(form)) == expected
    for symbols in (None, ["S1"], []):
        replayed(data, symbols=symbols)
    assert len(loop.replay.signatures) == before


def test_the_input_is_read_only_to_the_kernels():
    data = bytearray(streams.long_stream(4, 300, faults=0.2))
    copy = bytes(data)
    replayed(data)
    assert data == copy


# -- chosen symbols ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("directory", [True, False])
def test_books_of_chosen_symbols_are_those_of_all(directory):
    """With a directory a symbol is known from the start, without one from its first order."""
    data = honest(streams.long_stream(6, 4_000, faults=0.02))
    if not directory:
        data = itch.frame([message for _, message in itch.walk(data).messages if message[:1] != b"R"])
    every = replayed(data, pages=1 << 12, levels=1 << 12)
    for symbols in (["S0"], ["S1", "S5"], ["S19"], []):
        for cuts in ((), (101, 102, 50_001)):
            some = replayed(data, symbols=symbols, cuts=cuts, look_ahead=bool(cuts), pages=1 << 12, levels=1 << 12)
            chosen = {int(symbol[1:]) for symbol in symbols}
            expected, got = state_of(every), state_of(some)
            assert got["counts"] == expected["counts"]
            for what in ("best", "volume"):
                assert got[what] == {k: v for k, v in expected[what].items() if k in chosen}
            assert got["queues"] == {k: v for k, v in expected["queues"].items() if k[0] in chosen}
            assert set(got["names"]) == set(chosen) & set(expected["names"])
            assert some.position == every.position
            for name in ("unknown_type", "bad_length"):
                assert some.anomalies[name] == every.anomalies[name]


@pytest.mark.parametrize("symbol", ["", "NINELONG9", "Ä", " A", "A ", 7, None])
def test_what_is_no_symbol(symbol):
    with pytest.raises(UserError, match="1 to 8 ASCII characters"):
        Replayer([symbol])


# -- the rules, one by one -----------------------------------------------------------------------------------------


def add(reference, side=b"B", shares=100, price=10, *, locate=1, stock=b"XYZ", kind="A"):
    return itch.encode(
        kind, stock_locate=locate, order_reference_number=reference, buy_sell_indicator=side, shares=shares,
        price=price, stock=stock,
    )  # fmt: skip


def execute(reference, shares):
    return itch.encode("E", stock_locate=1, order_reference_number=reference, executed_shares=shares)


def execute_at(reference, shares, price, printable=b"Y"):
    return itch.encode(
        "C", stock_locate=1, order_reference_number=reference, executed_shares=shares, execution_price=price,
        printable=printable,
    )  # fmt: skip


def cancel(reference, shares):
    return itch.encode("X", stock_locate=1, order_reference_number=reference, canceled_shares=shares)


def delete(reference):
    return itch.encode("D", stock_locate=1, order_reference_number=reference)


def replace(old, new, shares, price):
    return itch.encode(
        "U", stock_locate=1, original_order_reference_number=old, new_order_reference_number=new, shares=shares,
        price=price,
    )  # fmt: skip


def after(*messages):
    """Replay messages, held against the oracle; give the state."""
    done, _ = compare(itch.frame(messages))
    return state_of(done)


def asks(state, locate=1):
    return state["queues"].get((locate, "S"), [])


def test_trap_1_a_replace_takes_the_open_quantity_and_joins_the_tail():
    before = [add(1, b"S", 100, 10), execute(1, 30), add(2, b"S", 200, 10)]
    assert asks(after(*before)) == [(10, [(1, 70), (2, 200)])]
    state = after(*before, replace(1, 3, 50, 10))
    assert asks(state) == [(10, [(2, 200), (3, 50)])]
    assert state["orders"][3] == (1, "S", 10, 50), "side and instrument are inherited"
    state = after(*before, replace(1, 3, 50, 10), delete(1), execute(1, 5))
    assert state["unknown_reference"] == {"D": 1, "E": 1}, "the old reference is unknown"
    assert asks(state) == [(10, [(2, 200), (3, 50)])]


def test_trap_1_a_replace_of_an_unknown_reference_adds_nothing():
    state = after(add(1, b"S"), replace(9, 3, 50, 10))
    assert state["unknown_reference"] == {"U": 1}
    assert list(state["orders"]) == [1]


@pytest.mark.parametrize("side", [b"B", b"S"])
def test_trap_1_replaces_that_keep_a_reference_or_meet_a_live_one(side):
    assert after(add(1, side, 100, 10), add(2, side, 5, 10), replace(1, 1, 60, 11))["orders"][1][2:] == (11, 60)
    state = after(add(1, side, 100, 10), add(2, side, 5, 12), replace(1, 2, 60, 11))
    assert state["orders"] == {2: (1, side.decode(), 11, 60)}
    assert state["anomalies"] == {"duplicate_reference": 1}


def test_trap_2_unknown_references_insert_nothing():
    state = after(execute(1, 5), execute_at(2, 5, 9), cancel(3, 5), delete(4), replace(5, 6, 7, 8))
    assert state["unknown_reference"] == dict.fromkeys("CDEUX", 1)
    assert state["orders"] == {} and state["anomalies"] == {} and state["volume"] == {}


@pytest.mark.parametrize("reduce", [execute, cancel, lambda reference, shares: execute_at(reference, shares, 7)])
def test_trap_2_an_over_fill_clamps_to_removal(reduce):
    for over in (101, 2**31, 2**32 - 1):
        state = after(add(1, b"S", 100, 10), add(2, b"S", 40, 10), reduce(1, over))
        assert asks(state) == [(10, [(2, 40)])]
        assert state["anomalies"] == {"over_fill": 1}
        assert state["volume"] in ({}, {1: 100}), "what was not open cannot trade"
        state = after(add(1, b"S", 100, 10), reduce(1, over))
        assert state["best"] == {} and state["orders"] == {}


def test_trap_2_nothing_left_means_gone():
    done, _ = compare(itch.frame([add(1, b"S", 100, 10), execute(1, 60), cancel(1, 40), delete(1)]))
    assert state_of(done)["unknown_reference"] == {"D": 1}
    book = done.feed_state.book
    assert book.levels.state[pool.LIVE] == book.index.page_pool.state[pool.LIVE] == 0


def test_trap_2_a_repeated_reference_replaces_the_order():
    state = after(add(1, b"S", 100, 10), add(2, b"S", 7, 10), add(1, b"S", 30, 10))
    assert asks(state) == [(10, [(2, 7), (1, 30)])]
    assert state["anomalies"] == {"duplicate_reference": 1}
    state = after(add(1, b"S", 100, 10, locate=1), add(1, b"B", 30, 8, locate=2, stock=b"Q"))
    assert state["orders"] == {1: (2, "B", 8, 30)}


def test_trap_2_orders_of_zero_shares_live_and_go():
    assert after(add(1, b"S", 0, 10))["queues"] == {(1, "S"): [(10, [(1, 0)])]}
    assert after(add(1, b"S", 0, 10), execute(1, 0))["orders"] == {}
    assert after(add(1, b"S", 5, 10), cancel(1, 0))["orders"] == {1: (1, "S", 10, 5)}


def test_trap_3_executions_go_by_reference_wherever_the_order_stands():
    queue = [add(n, b"S", 100, 10) for n in (1, 2, 3)]
    assert asks(after(*queue, execute(2, 40))) == [(10, [(1, 100), (2, 60), (3, 100)])]
    assert asks(after(*queue, execute(3, 100), execute(1, 100))) == [(10, [(2, 100)])]


def test_trap_3_an_execution_with_price_leaves_the_level_on_display():
    state = after(add(1, b"S", 100, 10), add(2, b"S", 100, 12), execute_at(1, 40, 12))
    assert asks(state) == [(10, [(1, 60)]), (12, [(2, 100)])]
    assert state["volume"] == {1: 40}


def test_trap_3_not_printable_changes_the_book_and_not_the_volume():
    state = after(add(1, b"S", 100, 10), execute_at(1, 40, 9, b"N"))
    assert asks(state) == [(10, [(1, 60)])]
    assert state["volume"] == {}


MARKET = [itch.encode("S", event_code=b"Q"), itch.encode("Q", stock_locate=1, cross_type=b"O")]


@pytest.mark.parametrize(
    ("before", "counter"),
    [
        ([], "crossed_outside_trading"),
        (MARKET[:1], "crossed_outside_trading"),
        (MARKET[1:], "crossed_outside_trading"),
        (MARKET, "crossed"),
        ([*MARKET, itch.encode("S", event_code=b"M")], "crossed_outside_trading"),
        ([*MARKET, itch.encode("H", stock_locate=1, trading_state=b"H")], "crossed_outside_trading"),
        ([*MARKET, itch.encode("H", stock_locate=2, trading_state=b"H")], "crossed"),
        ([*MARKET, *(itch.encode("H", stock_locate=1, trading_state=s) for s in (b"P", b"T"))], "crossed"),
        ([*MARKET, itch.encode("h", stock_locate=1, operational_halt_action=b"H")], "crossed_outside_trading"),
        ([*MARKET, *(itch.encode("h", stock_locate=1, operational_halt_action=s) for s in (b"H", b"T"))], "crossed"),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("price", [10, 11])
def test_trap_4_crossed_and_locked_books_are_counted_and_kept(before, counter, order, price):
    """Also when the order that crosses is the first that its side ever had."""
    orders = [add(1, b"S", 100, 10), add(2, b"B", 100, price)][::order]
    state = after(*before, *orders)
    assert state["anomalies"] == {counter: 1}
    assert state["best"] == {1: (price, 10)}
    state = after(*before, *orders, add(3, b"B", 1, 12))
    assert state["anomalies"] == {counter: 1}, "a book that is crossed already is not crossed again"
    state = after(*before, *orders, delete(2), add(2, b"B", 1, 10))
    assert state["anomalies"] == {counter: 2}
    state = after(*before, add(1, b"S", 100, 10), add(2, b"B", 1, 9), replace(2, 3, 1, price))
    assert state["anomalies"] == {counter: 1}, "a replace can cross too"


@pytest.mark.parametrize("price", [0, 1, 2**31 - 1, 2**31, 1_999_999_900, 2_000_000_000, 2**32 - 2, 2**32 - 1])
def test_trap_5_all_prices_of_32_bits(price):
    for side in (b"B", b"S"):
        state = after(add(1, side, 100, price), add(2, side, 5, 10_000), add(3, side, 7, price))
        assert (price, [(1, 100), (3, 7)]) in state["queues"][1, side.decode()]
    state = after(add(1, b"B", 100, price), add(2, b"S", 100, price))
    assert state["best"] == {1: (price, price)}


@pytest.mark.parametrize("time", [0, 34383145181253, 2**48 - 1])
def test_trap_6_time_stamps_of_6_bytes_disturb_nothing(time):
    """The decoding of 34383145181253 itself is tested beside the decoder."""
    fields = itch.decode(add(1, b"S"))
    fields.pop("message_type")
    state = after(itch.encode("A", **(fields | {"timestamp": time, "tracking_number": 65535})))
    assert asks(state) == [(10, [(1, 100)])]


def test_trap_7_a_zero_length_ends_the_session():
    done, _ = compare(itch.frame([add(1)]) + b"\0\0")
    done.close()
    assert done.ended and done.anomalies["after_end"] == 0
    done.feed(itch.frame([delete(1)]))
    assert done.live_orders == 1 and done.anomalies["after_end"] == 21, "what comes later is counted, not applied"


@pytest.mark.parametrize("size", range(1, 38))
def test_trap_7_a_short_tail_is_counted(size):
    done = replayed(itch.frame([add(1)]) + itch.frame([add(2)])[:size])
    done.close()
    assert done.anomalies["short_tail"] == size if size < 38 else 0
    assert done.live_orders == 1


def test_trap_7_unknown_types_and_lengths_are_counted_and_skipped():
    longest = b"z" * batch.LONGEST
    state = after(add(1, b"S"), b"z", longest, add(2, b"S")[:-1], add(3, b"S") + b"\0", delete(1)[:1], b"\0\0\0")
    assert asks(state) == [(10, [(1, 100)])]
    assert state["anomalies"] == {"bad_length": 3, "unknown_type": 3}
    assert state["counts"] == {"A": 3, "D": 1, "z": 2, "\0": 1}


@pytest.mark.parametrize("kind", "ho")
def test_trap_7_new_types_of_later_years(kind):
    """`h` came in 2018 and is known; the next one will not be."""
    state = after(add(1), itch.encode("h", stock_locate=1)[:0] + kind.encode() + bytes(20), delete(1))
    assert state["orders"] == {} and state["counts"][kind] == 1


def test_trap_7_a_side_that_is_neither():
    state = after(add(1, b"X"), add(1, b"b"), add(1, b"\0", stock=b"OTHER"), add(1, b"S"))
    assert state["anomalies"] == {"bad_side": 3} and state["names"] == {1: "XYZ"}


ZERO = b"".join(b"\0\0" + message for message in (itch.encode("S", event_code=b"O"), add(1), add(2), delete(1)))


@pytest.mark.parametrize("chunk", [1, 2, 3, 13, 14, 15, 10_000])
def test_trap_7_zero_prefixes_before_every_message_are_named(chunk):
    done = replayer()
    with pytest.raises(ItchFormatError, match=r"prefix 00 00 where the length of each message is expected"):
        done.feed(ZERO[:chunk])
        for begin in range(chunk, len(ZERO), chunk):
            done.feed(ZERO[begin : begin + chunk])
    assert done.messages == 0


def test_trap_7_an_end_of_session_before_padding_or_other_bytes_is_no_error():
    for rest in (bytes(100), b"S" + bytes(range(1, 40)), b"\xff" * 100):
        done = replayed(itch.frame([add(1)]) + b"\0\0" + rest)
        done.close()
        assert done.anomalies["after_end"] == len(rest)


@pytest.mark.parametrize("look_ahead", [True, False])
@pytest.mark.parametrize("length", [batch.LONGEST + 1, 8224, 65535])
@pytest.mark.parametrize("before", [0, 1, 63, 64, 65, 128])
@pytest.mark.parametrize("rest", [0, 70_000])
def test_trap_7_an_impossible_length_is_an_error_that_names_the_place(length, before, rest, look_ahead):
    """Whether or not so many bytes follow; what came before has been applied, at every place in a batch."""
    good = itch.frame([add(n + 1) for n in range(before)])
    bad = good + length.to_bytes(2, "big") + b"A" * rest
    for cuts in ((), (len(good) + 1,), (len(good) // 2,)):
        done = replayer(look_ahead=look_ahead)
        with pytest.raises(ItchFormatError, match=f"offset {len(good)}[,:].*found {length}"):
            for begin, end in zip([0, *cuts], [*cuts, len(bad)], strict=True):
                done.feed(bad[begin:end])
        assert done.messages == done.live_orders == before
        assert done.position == len(good)
        assert book_views.faults(done.feed_state.book) == 0


def test_impossible_lengths_by_chance():
    """Random bytes end in an error or are accounted for to the last byte; they never hang and never break a book."""
    draw, refused = random.Random(9), 0
    for _ in range(300):
        data = draw.randbytes(draw.randrange(400))
        if draw.random() < 0.5:
            data = bytes(byte & draw.choice((0, 0, 0, 31, 255)) for byte in data)
        done = replayer()
        try:
            done.feed(data)
            done.close()
        except ItchFormatError:
            refused += 1
        else:
            assert done.position + done.short_tail + done.after_end == len(data)
        assert book_views.faults(done.feed_state.book) == 0
    assert refused > 50


@settings(max_examples=100)
@given(streams.streams((10, 30)), st.integers(0, 10_000), st.integers(1, 255))
def test_one_flipped_byte_never_breaks_the_books(messages, where, flip):
    data = bytearray(itch.frame(messages))
    if not data:
        return
    data[where % len(data)] ^= flip
    done = replayer()
    try:
        done.feed(bytes(data))
    except ItchFormatError as error:
        assert str(error).count("\n") == 0
    assert book_views.faults(done.feed_state.book) == 0


EDGES = [
    0, 1, 15, 16, 17, 4095, 4096, 4097, *(1 << k for k in range(13, 64, 5)),
    *(edge + step for edge in (2**32, 2**53, 2**63) for step in (-1, 0, 1)), 2**64 - 4097, 2**64 - 2, 2**64 - 1,
]  # fmt: skip


def test_trap_9_references_of_all_64_bits_in_any_order():
    """Trap 9, and trap 12: no reference passes through a float or a sign."""
    draw, references = random.Random(3), sorted(set(EDGES))
    draw.shuffle(references)
    adds = [add(reference, draw.choice((b"B", b"S")), 100 + n, 50) for n, reference in enumerate(references)]
    state = after(*adds)
    assert set(state["orders"]) == set(references)
    draw.shuffle(references)
    done, _ = compare(itch.frame([*adds, *(execute(reference, 10) for reference in references)]))
    assert {order[3] for order in state_of(done)["orders"].values()} == {90 + n for n in range(len(references))}
    done, _ = compare(itch.frame([*adds, *(delete(reference) for reference in references)]))
    assert done.live_orders == 0 and not done.unknown_references


def test_trap_9_locates_are_reused():
    """The directory has the last word on a locate's name, and all 65,536 locates exist."""
    other = itch.encode("R", stock_locate=1, stock=b"NEXTDAY")
    assert after(add(1), other)["names"] == {1: "NEXTDAY"}
    state = after(*(add(n + 1, b"BS"[n % 2 : n % 2 + 1], locate=n, stock=b"L%d" % n) for n in (0, 1, 32767, 65535)))
    assert state["names"] == {n: f"L{n}" for n in (0, 1, 32767, 65535)}
    assert set(state["best"]) == {0, 1, 32767, 65535}


# -- memory --------------------------------------------------------------------------------------------------------


def empty_again(done):
    """Assert that nothing is in use: memory follows the live orders."""
    index, tree = done.feed_state.book.index, done.feed_state.book.tree
    assert done.live_orders == 0
    assert index.page_pool.state[pool.LIVE] == index.chunk_pool.state[pool.LIVE] == 0
    assert index.directory.state[2] == 0
    assert done.feed_state.book.levels.state[pool.LIVE] == 0
    assert not tree.bits.any()


@pytest.mark.parametrize("spread", [1, 16, 4096, 1 << 40])
def test_pages_and_chunks_come_back_with_the_last_order(spread):
    """Ten times more orders than there is room for, but few at a time."""
    draw, live, messages = random.Random(spread), [], []
    for n in range(8_000):
        reference = (n * spread + 7) % 2**64
        live.append(reference)
        messages.append(add(reference, price=100 + n % 50))
        if len(live) > 300:
            messages.append(delete(live.pop(draw.randrange(len(live)))))
    messages += [delete(reference) for reference in live]
    done, _ = compare(itch.frame(messages), pages=512, levels=256)
    empty_again(done)


def test_far_away_prices_come_and_go_without_end():
    """Prices all over 32 bits on several sides, few live at a time: nodes of the tree must come back too."""
    draw, live, messages = random.Random(8), [], []
    for n in range(20_000):
        locate = draw.randrange(4)
        messages.append(add(n, draw.choice((b"B", b"S")), 1 + n % 9, draw.getrandbits(32), locate=locate))
        live.append(n)
        if len(live) > 100:
            messages.append(delete(live.pop(draw.randrange(len(live)))))
    data = itch.frame(messages)
    compare(data)
    compare(data, cuts=range(0, len(data), 10_007), look_ahead=True)
    done, _ = compare(data + itch.frame([delete(reference) for reference in live]))
    empty_again(done)


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        ({"pages": 70}, lambda n: add(16 * n)),
        ({"levels": 70}, lambda n: add(n, price=n)),
        ({"tree_nodes": 400}, lambda n: add(n, price=n << 18)),
        ({"tree_nodes": 400}, lambda n: add(n, price=10, locate=n)),
    ],
)
@pytest.mark.parametrize("cuts", [(), range(0, 38 * 500, 38)])
def test_full_is_an_error_and_breaks_nothing(capacity, message, cuts):
    """Before any array is written beyond its end; what was applied is right, and the error says how much it was."""
    data = itch.frame([message(n + 1) for n in range(500)])
    done = replayer(**capacity)
    edges = [*cuts, len(data)] if cuts else [0, len(data)]
    with pytest.raises(UserError, match="the books are full at offset"):
        for begin, end in pairwise(edges):
            done.feed(data[begin:end])
    assert 0 < done.live_orders < 500
    assert done.position == 38 * done.messages
    book, _ = oracle_after(data[: done.position])
    expected, got = book.state(), state_of(done)
    assert got["queues"] == expected["queues"] and got["counts"] == expected["counts"]


# -- summing up ----------------------------------------------------------------------------------------------------


def test_the_checksum_depends_on_everything():
    base = [*MARKET, add(1, b"S", 100, 10), add(2, b"S", 50, 10), add(3, b"B", 10, 9)]
    variants = {
        "base": base,
        "queue": [*base[:2], base[3], base[2], base[4]],
        "shares": [*base[:3], add(2, b"S", 51, 10), base[4]],
        "price": [*base[:3], add(2, b"S", 50, 11), base[4]],
        "side": [*base[:4], add(3, b"S", 10, 9)],
        "locate": [*base[:4], add(3, b"B", 10, 9, locate=2)],
        "reference": [*base[:4], add(4, b"B", 10, 9)],
        "counts": [*base, itch.encode("W")],
        "unknown": [*base, delete(9)],
        "volume": [*MARKET, add(1, b"S", 101, 10), execute(1, 1), *base[3:], itch.encode("W")],
    }
    sums = {name: replayed(itch.frame(messages)).checksum() for name, messages in variants.items()}
    assert len(set(sums.values())) == len(sums)
    assert sums["base"] == replayed(itch.frame(base), cuts=[50]).checksum()


def test_volume_adds_up_without_wrapping():
    crosses = [itch.encode("Q", stock_locate=1, cross_shares=2**53 + 1), itch.encode("Q", cross_shares=2**63 + 1)]
    trades = [itch.encode("P", stock_locate=1, shares=2**32 - 1)] * 3
    assert after(*crosses, *trades)["volume"] == {0: 2**63 + 1, 1: 2**53 + 1 + 3 * (2**32 - 1)}


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (b"", "empty"),
        (b"A", "not a file of ITCH 5.0"),
        (b"\0\x02zz", "not a file of ITCH 5.0: offset 0"),
        (b"\0\x02AA\0\x03SSS", "not a file of ITCH 5.0"),
        (b"\0\0garbage", "not a file of ITCH 5.0"),
        (b"\0\0", None),
        (itch.frame([b"foo", b"bar"]) + b"\0\0", None),
        (itch.frame([add(1)])[:20], None),
        (itch.frame([add(1)]), None),
    ],
)
def test_closing_refuses_what_was_not_itch(data, refused):
    done = replayed(data)
    if refused is None:
        done.close()
    else:
        with pytest.raises(ItchFormatError, match=refused):
            done.close()
