"""One instrument's book by linear search and by bitmap: both against a plain twin, with every step counted (F9)."""

import pytest
from hypothesis import given, settings

from photonlab.kernels.bitmap import NONE
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import synth
from photonlab.systems.experiments import touch
from tests.oracle import itch, streams

LIMIT = touch.PRICES


class Twin:
    """Orders in a dict, best prices found by looking at all of them."""

    def __init__(self):
        self.orders = {}  # reference -> [side, price, shares]
        self.linear = self.updates = self.in_vain = self.linear_in_vain = self.beyond = 0

    def best(self, side):
        prices = [price for other, price, _ in self.orders.values() if other == side and price < LIMIT]
        return (min if side else max)(prices) if prices else None

    def level(self, side, price):
        return sum(shares for other, at, shares in self.orders.values() if (other, at) == (side, price))

    def remove(self, reference):
        side, price, _ = self.orders[reference]
        before = self.best(side)
        del self.orders[reference]
        if price != before or any(one[:2] == [side, price] for one in self.orders.values()):
            return
        after = self.best(side)
        self.updates += 1
        self.in_vain += after is None
        end = after if after is not None else (LIMIT - 1 if side else 0)
        self.linear += abs(end - price)
        self.linear_in_vain += abs(end - price) if after is None else 0

    def add(self, reference, side, price, shares):
        if reference not in self.orders:
            self.orders[reference] = [side, price, shares]
            self.beyond += price >= LIMIT

    def feed(self, data):
        for _, message in itch.walk(data).messages:
            if itch.LENGTH.get(chr(message[0])) == len(message):
                self.apply(chr(message[0]), itch.decode(message))

    def apply(self, kind, fields):
        if kind in "AF":
            side = int(fields["buy_sell_indicator"] == b"S")
            self.add(fields["order_reference_number"], side, fields["price"], fields["shares"])
        elif kind in "ECXDU":
            reference = fields["original_order_reference_number" if kind == "U" else "order_reference_number"]
            if reference not in self.orders:
                return
            if kind in "ECX":
                less = fields["canceled_shares" if kind == "X" else "executed_shares"]
                if less < self.orders[reference][2]:
                    self.orders[reference][2] -= less
                    return
            side = self.orders[reference][0]
            self.remove(reference)
            if kind == "U":
                self.add(fields["new_order_reference_number"], side, fields["price"], fields["shares"])


def check(data):
    twin = Twin()
    twin.feed(data)
    found = {}
    for by_bitmap in (False, True):
        book = touch.make_touch_book(1 << 12)
        touch.run(book, as_bytes_array(data), by_bitmap)
        wanted = [int(NONE) if twin.best(side) is None else twin.best(side) for side in (0, 1)]
        assert book.best.tolist() == wanted
        for side, best in enumerate(wanted):
            if best != int(NONE):
                assert book.volumes[best + side * LIMIT] == twin.level(side, best) % 2**64
        tally = book.tally.tolist()
        assert tally[touch.UPDATES] == twin.updates
        assert tally[touch.IN_VAIN] == twin.in_vain
        assert tally[touch.BEYOND] == twin.beyond
        examined = twin.updates if by_bitmap else twin.linear
        assert tally[touch.EXAMINED] == examined
        in_vain = twin.in_vain if by_bitmap else twin.linear_in_vain
        assert tally[touch.EXAMINED_IN_VAIN] == in_vain
        assert bool(tally[touch.WORDS]) == bool(by_bitmap and twin.updates)
        found[by_bitmap] = tally[touch.TOUCHED]
    assert found[False] == found[True]


@settings(deadline=None, max_examples=40)
@given(streams.streams())
def test_equals_its_twin(messages):
    check(itch.frame(messages))


@pytest.mark.parametrize("seed", [3, 4])
def test_equals_its_twin_on_long_streams(seed):
    check(streams.long_stream(seed, 800, instruments=1, faults=0.05))


def test_steps_of_a_search_by_hand():
    """Bids at 1.00 and 0.90: when the best goes, 1,000 levels of 0.0001 lie between; then nothing is left below."""

    def order(n, price):
        return itch.encode("A", order_reference_number=n, buy_sell_indicator=b"B", shares=5, price=price)

    deletes = [itch.encode("D", order_reference_number=n) for n in (1, 2)]
    data = as_bytes_array(itch.frame([order(1, 10_000), order(2, 9_000), *deletes]))
    linear, by_bitmap = (touch.make_touch_book(16) for _ in range(2))
    touch.run(linear, data, False)
    touch.run(by_bitmap, data, True)
    assert linear.tally[touch.EXAMINED] == 1_000 + 9_000 and linear.tally[touch.LONGEST] == 9_000
    assert linear.tally[touch.EXAMINED_IN_VAIN] == 9_000
    assert by_bitmap.tally[touch.EXAMINED] == 2 and by_bitmap.tally[touch.IN_VAIN] == 1


def test_one_instruments_messages_and_no_others():
    day, _ = synth.generate(5_000, 2)
    (locate,) = touch.busiest(day)
    wanted = [m for _, m in itch.walk(day.tobytes()).messages if int.from_bytes(m[1:3], "big") == locate]
    assert itch.frame(wanted) == touch.day_of(day, locate).tobytes()
    counts = {}
    for _, message in itch.walk(day.tobytes()).messages:
        if chr(message[0]) in "AFECXDU":
            n = int.from_bytes(message[1:3], "big")
            counts[n] = counts.get(n, 0) + 1
    assert len(touch.busiest(day, 5)) == 5
    assert counts[locate] == max(counts[n] for n in touch.busiest(day, 5))


def test_instruments_beyond_the_array_are_passed_over():
    dear = [
        itch.encode("A", stock_locate=9, order_reference_number=n, buy_sell_indicator=b"B", shares=1, price=LIMIT + n)
        for n in range(10)
    ]
    cheap = itch.encode("A", stock_locate=8, order_reference_number=99, buy_sell_indicator=b"B", shares=1, price=5)
    assert touch.busiest(itch.frame([*dear, cheap]), 5) == [8]


def test_a_pass_gives_the_same_checksum_by_both_searches():
    day, _ = synth.generate(20_000, 4)
    one = touch.day_of(day, touch.busiest(day)[0])
    checksums = set()
    for by_bitmap in (False, True, True):
        single = touch.TouchPass(one, by_bitmap=by_bitmap)
        single.prepare()
        checksums.add(single())
        assert single.state.tally[touch.UPDATES] > 10
    assert len(checksums) == 1
