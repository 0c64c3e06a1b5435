"""The engine against plain Python: every book, every order, every count; torn, repeated, lost and hostile input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.kernels import level_book
from photonlab.lab.measure import allocation
from photonlab.systems.tick_to_trade import engine as engines
from photonlab.systems.tick_to_trade import messages, ticks
from tests.oracle import tick_to_trade as oracle

INSTRUMENTS = 3

entries = st.tuples(
    st.integers(95, 105) | st.integers(-(2**63), 2**63 - 1),
    st.integers(1, 9) | st.sampled_from([-1, 0, 2**31 - 1, -(2**31)]),
    st.integers(0, INSTRUMENTS - 1) | st.sampled_from([INSTRUMENTS, 2**32 - 1]),
    st.integers(0, 9),
    st.integers(1, 10) | st.sampled_from([0, 11, 255]),
    st.sampled_from([0, 0, 0, 1, 2, 2, 3, 4, 5, 6, 255]),
    st.sampled_from([0, 0, 1, 1, 2]),
)
streams = st.lists(
    st.tuples(st.sampled_from([1, 1, 1, 1, 1, 1, 0, 2]), st.integers(0, 1), st.lists(entries, min_size=0, max_size=4)),
    max_size=40,
)


def run(engine, data, out=None):
    data = np.frombuffer(bytes(data), np.uint8).copy()
    out = np.zeros(1 << 16, np.uint8) if out is None else out
    following, written, outcome = engines.run(engine, data, np.uint64(0), np.uint64(data.size), out)
    return int(following), out[: int(written)].tobytes(), int(outcome)


def books_of(engine):
    found, out = {}, np.zeros((10, 3), np.int64)
    for instrument in range(INSTRUMENTS):
        for side in range(4):
            level_book.levels_of(engine.books.words, np.uint64(instrument), np.uint64(side), out)
            found[instrument, side >> 1, side & 1] = [tuple(row) for row in out.tolist()]
    return found


def touches_of(engine):
    words = engine.books.words.reshape(-1, level_book.WORDS)
    sizes = words[:, 1:8:2] & level_book.SIZE_MASK
    prices = words[:, 0:8:2].view(np.int64)
    return {
        (i, side >> 1, side & 1): (int(prices[i, side]), int(sizes[i, side]))
        for i in range(INSTRUMENTS)
        for side in range(4)
    }


@settings(max_examples=150, deadline=None)
@given(streams, st.integers(0, 5), st.integers(0, 9))
def test_books_orders_and_counts_are_those_of_plain_python(stream, root, spare):
    mine, his, data, wanted, at = engines.make_engine(INSTRUMENTS), oracle.Engine(INSTRUMENTS), b"", [], [0, 0]
    for time, (step, venue, several) in enumerate(stream):
        at[venue] = max(at[venue] + step, 1)
        data += oracle.tick(time, at[venue], venue, several, root=b"\xee" * root, spare=spare)
        wanted += his.on_tick(time, at[venue], venue, several)
    following, out, outcome = run(mine, data)
    assert (following, outcome) == (len(data), 0)
    assert oracle.orders_of(out) == wanted
    assert engines.counters(mine) == his.counts
    assert books_of(mine) == his.levels
    assert touches_of(mine) == his.touch


def test_an_unordered_price_at_the_ends_of_int64_makes_no_order_of_an_overflow():
    mine, his = engines.make_engine(INSTRUMENTS), oracle.Engine(INSTRUMENTS)
    offer, bid = [(2**63 - 1, 5, 0, 1, 1, 0, 1)], [(-(2**63), 5, 0, 1, 1, 0, 0)]
    data = oracle.tick(1, 1, 1, offer) + oracle.tick(2, 1, 0, bid)
    wanted = his.on_tick(1, 1, 1, offer) + his.on_tick(2, 1, 0, bid)
    assert oracle.orders_of(run(mine, data)[1]) == wanted == []


def test_a_stream_in_dribbles_of_a_byte_gives_the_same_orders():
    found, _ = ticks.crossing(40, 2)
    data = ticks.as_bytes(found).tobytes()
    whole = run(engines.make_engine(2), data)[1]
    engine, rest, orders = engines.make_engine(2), b"", b""
    for byte in data:
        rest += bytes([byte])
        following, out, outcome = run(engine, rest)
        assert following == 0 or following == len(rest)
        assert outcome == 0 or -messages.TICK_SIZE < outcome < 0
        if len(rest) >= 12 and outcome:
            assert len(rest) - outcome == messages.TICK_SIZE
        rest, orders = rest[following:], orders + out
    assert orders == whole and len(orders) == 38 * messages.ORDER_SIZE


def test_crossing_ticks_call_for_the_orders_that_are_said():
    for instruments in (1, 3):
        found, quantity = ticks.crossing(300, instruments)
        orders = oracle.orders_of(run(engines.make_engine(instruments), ticks.as_bytes(found))[1])
        assert [order["quantity"] for order in orders] == [n for n in quantity.tolist() if n]
        assert len(orders) == 300 - instruments and [order["id"] for order in orders] == list(range(1, len(orders) + 1))
        assert {order["price"] for order in orders} == {ticks.PRICE, ticks.PRICE + ticks.EDGE}


def test_order_flow_is_sound_and_crosses_now_and_then():
    chosen = np.random.default_rng(5).integers(0, INSTRUMENTS, 3000).astype(np.uint32)
    found = ticks.flow(chosen, 3)
    engine, his, wanted = engines.make_engine(INSTRUMENTS), oracle.Engine(INSTRUMENTS), []
    for one in found.tolist():
        row = dict(zip(ticks.TICK.names, one, strict=True))
        names = ["price", "size", "security", "orders", "level", "action"]
        entry = (*(row[name] for name in names), row["type"] - ord("0"))
        wanted += his.on_tick(row["time"], row["sequence"], row["venue"], [entry])
    out = np.zeros(1 << 18, np.uint8)
    following, orders, outcome = run(engine, ticks.as_bytes(found), out)
    assert (following, outcome) == (found.nbytes, 0)
    assert oracle.orders_of(orders) == wanted and 30 < len(wanted) < 1500
    assert engines.counters(engine) == his.counts
    assert his.counts["empty level"] == his.counts["bad entry"] == his.counts["lost"] == 0
    assert books_of(engine) == his.levels
    for levels in his.levels.values():
        assert len([one for one in levels if one != oracle.EMPTY]) > 2
    actions = np.bincount(found["action"], minlength=3) / found.size
    assert actions.min() > 0.05


def test_a_tick_lies_as_the_schema_says():
    for name, path in {
        "time": "transactTime", "sequence": "sequence", "venue": "venue", "event": "eventIndicator",
        "entry_length": "entries.blockLength", "entries": "entries.numInGroup", "price": "entries.price.mantissa",
        "size": "entries.size", "security": "entries.security", "report": "entries.reportSequence",
        "orders": "entries.orders", "level": "entries.level", "action": "entries.action", "type": "entries.type",
    }.items():  # fmt: skip
        one = messages.TABLES.find(f"BookRefresh.{path}")
        base = 12 if not path.startswith("entries") else 28 if name.startswith("entr") else 31
        assert ticks.TICK.fields[name][1] == base + one.offset, name
        assert ticks.TICK.fields[name][0].itemsize == one.size, name


def damaged(at, value):
    data = bytearray(oracle.tick(1, 1, 0, [(100, 1, 0, 1, 1, 0, 0)]))
    data[at : at + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (damaged(2, b"\0"), engines.NOT_FRAMED),
        (damaged(2, b"\0")[:7], engines.NOT_FRAMED),
        (damaged(0, b"\x0b\0"), engines.BAD_LENGTH),
        (damaged(0, b"\x0b\0")[:5], engines.BAD_LENGTH),
        (damaged(4, b"\x0c"), engines.BAD_BLOCK),
        (damaged(4, b"\xff\xff"), engines.BAD_BLOCK),
        (damaged(4, b"\x31\0"), engines.BAD_BLOCK),
        (damaged(30, b"\x02"), engines.BAD_BLOCK),
        (damaged(30, b"\xff"), engines.BAD_BLOCK),
        (damaged(28, b"\x1a"), engines.BAD_BLOCK),
        (damaged(24, b"\x02"), engines.BAD_VENUE),
    ],
)
def test_what_cannot_be_a_message_ends_the_run_and_changes_nothing(data, outcome):
    engine = engines.make_engine(INSTRUMENTS)
    before = [array.copy() for array in (engine.books.words, engine.state)]
    assert run(engine, data) == (0, b"", outcome)
    assert outcome in engines.WHY
    assert all((now == was).all() for now, was in zip((engine.books.words, engine.state), before, strict=True))


def test_a_message_of_another_template_is_skipped_and_counted():
    data = oracle.tick(1, 1, 0, [], template=12) + oracle.tick(1, 1, 0, [], schema=1)
    engine = engines.make_engine()
    assert run(engine, data) == (len(data), b"", 0)
    assert engines.counters(engine)["unknown template"] == 2


def test_orders_never_run_over_their_buffer():
    engine, data = engines.make_engine(), ticks.as_bytes(ticks.crossing(3)[0])
    out = np.full(3 * messages.ORDER_SIZE + 16, 0xAB, np.uint8)
    room = out[: messages.ORDER_SIZE]
    following, orders, outcome = run(engine, data, room)
    assert (following, len(orders), outcome) == (126, 52, engines.NO_ROOM)
    assert (out[messages.ORDER_SIZE :] == 0xAB).all()


def test_random_bytes_neither_crash_nor_leave_the_buffer():
    random = np.random.default_rng(11)
    sound = ticks.as_bytes(ticks.crossing(6)[0])
    for _ in range(300):
        data = sound.copy()
        for at in random.integers(0, 63, 3):
            data[at] = random.integers(0, 256)
        engine = engines.make_engine(INSTRUMENTS)
        following, orders, outcome = run(engine, data)
        assert 0 <= following <= data.size and len(orders) % messages.ORDER_SIZE == 0
        assert outcome == 0 or outcome in engines.WHY or -65536 < outcome < 0


def test_after_a_gap_nothing_is_sent_until_the_venue_is_resumed():
    found, quantity = ticks.crossing(20)
    engine = engines.make_engine()
    _, orders, _ = run(engine, ticks.as_bytes(np.delete(found, 10)))
    assert len(orders) // messages.ORDER_SIZE == (quantity[:10] > 0).sum()
    assert engines.counters(engine)["lost"] == 1
    engines.resume(engine, int(found["venue"][10]), 11)
    engines.resume(engine, 1 - int(found["venue"][10]), 11)
    more, _ = ticks.crossing(24)
    assert len(run(engine, ticks.as_bytes(more[20:]))[1]) == 4 * messages.ORDER_SIZE


def test_the_trading_loop_allocates_nothing():
    data = ticks.as_bytes(ticks.crossing(50)[0])
    proof = allocation.prove(
        engines.run, engines.make_engine(), data, np.uint64(0), np.uint64(data.size), np.zeros(1 << 12, np.uint8)
    )
    assert proof.clean


def test_an_engine_needs_instruments_and_an_edge():
    for options in ({"instruments": 0}, {"instruments": 1 << 25}, {"edge": 0}):
        with pytest.raises(engines.UserError):
            engines.make_engine(**options)
