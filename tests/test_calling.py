"""Functions of the user's own, called inside the replay: the right event, at the right time, with the right books."""

from typing import NamedTuple

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import photonlab
from photonlab import books
from photonlab import event as E
from photonlab.errors import UserError
from photonlab.systems import called_loop, calling, synth
from tests.oracle import book as oracle
from tests.oracle import itch, streams
from tests.replays import SMALL, replayed

WORDS = called_loop.EVENT_WORDS


class Rows(NamedTuple):
    """Rows that a function under test writes, and how many there are."""

    rows: np.ndarray
    count: np.ndarray


def rows(columns=WORDS, most=4096):
    return Rows(np.zeros((most, columns), np.uint64), np.zeros(1, np.int64))


def written(state):
    return [tuple(int(word) for word in row) for row in state.rows[: state.count[0]]]


@numba.njit
def keep(handle, event, state):
    state.rows[state.count[0]] = event
    state.count[0] += 1


@numba.njit
def keep_touch(handle, event, state):
    """The same best prices, asked of the books."""
    row = state.rows[state.count[0]]
    locate = event[E.LOCATE]
    row[0], row[1] = books.bid(handle, locate)
    row[2], row[3] = books.ask(handle, locate)
    row[4], row[5] = books.level(handle, 2 * locate, 1)
    row[6] = books.depth(handle, 2 * locate + np.uint64(1), 3)
    row[7], row[8] = books.queue_ahead(handle, event[E.REF])
    side, price, shares, live = books.order(handle, event[E.REF])
    row[9], row[10], row[11], row[12] = side, price, shares, np.uint64(live)
    reference, there = books.first_in_queue(handle, 2 * locate)
    behind, too = books.next_in_queue(handle, reference)
    row[13], row[14], row[15], row[16] = reference, np.uint64(there), behind, np.uint64(too)
    state.count[0] += 1


def touch_of(plain, locate):
    """The oracle's best bid and offer as an event has them."""
    found = []
    for side, price in zip("BS", plain.best(locate), strict=True):
        shares = 0 if price is None else sum(plain.orders[one].shares for one in plain.levels[locate, side][price])
        found += [price or 0, shares if price is not None else 0]
    return found


def events_of(data):
    """What `on_event` must see, and what of it `on_bbo`, by the oracle; and the oracle's answers after each event."""
    plain, events, answers = oracle.Book(), [], []
    for number, (_, message) in enumerate(itch.walk(data).messages, 1):
        kind = chr(message[0])
        if kind not in itch.LENGTH or len(message) != itch.LENGTH[kind]:
            plain.apply(message)
            continue
        fields = itch.decode(message)
        locate, side, reference, price, shares, new = fields["stock_locate"], 0, 0, 0, 0, 0
        if kind in "AFP":
            reference, price, shares = fields["order_reference_number"], fields["price"], fields["shares"]
            side = int(fields["buy_sell_indicator"] == b"S")
        elif kind == "Q":
            price, shares = fields["cross_price"], fields["cross_shares"]
        elif kind in oracle.REFERENCING:
            reference = fields.get("order_reference_number", fields.get("original_order_reference_number"))
            order = plain.orders.get(reference)
            if order is not None:
                locate, side, price = order.locate, int(order.side == "S"), order.price
            shares = fields.get("executed_shares", fields.get("canceled_shares", fields.get("shares", 0)))
            if kind == "U":
                new, price = fields["new_order_reference_number"], fields["price"]
        before = touch_of(plain, locate)
        plain.apply(message)
        head = [fields["timestamp"], locate, message[0], number, side, reference, price, shares, new]
        events.append((*head, *touch_of(plain, locate), *before))
        answers.append(answers_of(plain, locate, reference))
    return events, [one for one in events if one[9:13] != one[13:17]], answers


def answers_of(plain, locate, reference):
    bids, asks = plain.depth(locate, "B"), plain.depth(locate, "S")
    second = bids[1][:2] if len(bids) > 1 else (0, 0)
    order, ahead, live = plain.orders.get(reference), (0, 0), (0, 0, 0, 0)
    if order is not None:
        queue = plain.levels[order.locate, order.side][order.price]
        before = queue[: queue.index(reference)]
        ahead = len(before), sum(plain.orders[one].shares for one in before)
        live = (2 * order.locate + (order.side == "S"), order.price, order.shares, 1)
    line = next(iter(plain.queue(locate, "B")), (0, []))[1]
    first = (line[0][0], 1) if line else (0, 0)
    behind = _behind(plain, first[0])
    return (*touch_of(plain, locate), *second, sum(level[1] for level in asks[:3]), *ahead, *live, *first, *behind)


def _behind(plain, reference):
    order = plain.orders.get(reference)
    if order is None:
        return 0, 0
    queue = plain.levels[order.locate, order.side][order.price]
    place = queue.index(reference) + 1
    return (queue[place], 1) if place < len(queue) else (0, 0)


def called(data, **calls):
    one = calling.CallingReplayer(capacity=SMALL, **calls)
    one.feed(data)
    return one


@given(streams.streams())
def test_each_event_is_as_the_oracle_says(messages):
    data = itch.frame(messages)
    every, moved, answers = events_of(data)
    state = rows()
    assert called(data, on_event=keep, state=state).checksum() == replayed(data).checksum()
    assert written(state) == every
    state = rows()
    called(data, on_bbo=keep, state=state)
    assert written(state) == moved
    state = rows()
    called(data, on_event=keep_touch, state=state)
    assert written(state) == answers


def test_a_long_stream_in_pieces():
    data = streams.long_stream(5, 3_000, faults=0.05)
    every, moved, _ = events_of(data)
    whole, pieces = rows(), rows()
    called(data, on_event=keep, state=whole)
    one = calling.CallingReplayer(capacity=SMALL, on_event=keep, state=pieces)
    for begin in range(0, len(data), 777):
        one.feed(data[begin : begin + 777])
    assert written(whole) == written(pieces) == every
    assert 100 < len(moved) < len(every)


@numba.njit
def keep_time(handle, event, state):
    state.rows[state.count[0], 0] = event[E.TIME]
    state.rows[state.count[0], 1] = event[E.SEQUENCE]
    state.rows[state.count[0], 2], state.rows[state.count[0], 3] = books.bid(handle, 7)
    state.count[0] += 1


def add(time, reference, shares):
    fields = {"stock_locate": 7, "timestamp": time, "order_reference_number": reference, "shares": shares, "price": 100}
    return itch.frame([itch.encode("A", **fields, buy_sell_indicator=b"B", stock=b"X       ")])


def test_time_strikes_after_all_messages_up_to_it():
    data = add(10, 1, 5) + add(20, 2, 5) + add(20, 3, 5) + add(55, 4, 5) + add(60, 5, 5)
    state = rows(4)
    one = calling.CallingReplayer(capacity=SMALL, on_time=keep_time, every=20, state=state)
    one.feed(data)
    assert written(state) == [(0, 0, 0, 0), (20, 3, 100, 15), (40, 3, 100, 15)]
    one.close()
    assert written(state)[3:] == [(60, 5, 100, 25)], "at the end, the time of the last message has come too"
    state = rows(4)
    one = calling.CallingReplayer(capacity=SMALL, on_time=keep_time, every=10, start=15, end=40, state=state)
    one.feed(data)
    one.close()
    assert [row[0] for row in written(state)] == [15, 25, 35]


def test_through_replay(tmp_path):
    path = tmp_path / "day.itch"
    synth.write(path, 20_000, seed=3)
    state = rows(WORDS, 1 << 15)
    result = photonlab.replay(path, on_bbo=keep, state=state)
    assert result.checksum == photonlab.replay(path).checksum
    last = pd.DataFrame(written(state)).groupby(1).last()  # by locate
    best = result.bbo().reset_index().set_index("locate")
    there = best[best.bid.notna() & best.ask.notna()]
    touch = there[["bid", "bid_shares", "ask", "ask_shares"]].to_numpy(np.int64)
    assert np.array_equal(last.loc[there.index, [9, 10, 11, 12]].to_numpy(np.int64), touch)
    name = there.iloc[0]["symbol"]
    only = rows(WORDS, 1 << 15)
    photonlab.replay(path, symbols=name, on_event=keep, state=only)
    assert {row[1] for row in written(only)} <= {int(there.index[0]), 0} and only.count[0] > 10


@numba.njit
def fails(handle, event, state):
    if event[E.SEQUENCE] == 2:
        raise ValueError("no more")


@numba.njit
def returns(handle, event, state):
    return event[E.TIME]


@numba.njit
def wrong(handle, event, state):
    return event.nothing


def test_what_cannot_be_called():
    data = add(1, 1, 1) + add(2, 2, 1) + add(3, 3, 1)
    with pytest.raises(ValueError, match="no more"):
        called(data, on_event=fails)
    for function, words in (
        (returns, "returns uint64, expected nothing"),
        (wrong, r"Numba cannot compile wrong\(books, event, state\)"),
        (5, "on_event must be a function, not int"),
    ):
        with pytest.raises(UserError, match=words):
            called(data, on_event=function)
    with pytest.raises(UserError, match="state: Numba cannot take dict"):
        called(data, on_event=keep, state={})
    with pytest.raises(UserError, match="every must be"):
        called(data, on_time=keep_time, every="soon", state=rows(4))
    with pytest.raises(UserError, match="longer than nothing"):
        called(data, on_time=keep_time, every=0, state=rows(4))


def test_a_plain_function_is_compiled():
    def count(handle, event, state):
        state[0] += np.uint64(1)

    state = np.zeros(1, np.uint64)
    called(add(1, 1, 1) + add(2, 2, 1), on_event=count, state=state)
    assert state[0] == 2
