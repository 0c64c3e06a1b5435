"""The rebuilt loop of claim R1 against a plain twin: what it does, and what it leaves out."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings

from photonlab.kernels import bitmap, hashing, pool
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import synth
from photonlab.systems.experiments import market_core
from tests.oracle import itch, streams

LAST = market_core.PRICES - 1


class Twin:
    """One book for all symbols, without `C`, volume or best price; a queue is a list of [reference, shares]."""

    def __init__(self):
        self.queues, self.places = defaultdict(list), {}

    def feed(self, data):
        walk = itch.walk(data)
        for _, message in walk.messages:
            if itch.LENGTH.get(chr(message[0])) == len(message):
                self.apply(chr(message[0]), itch.decode(message))
        return len(walk.messages)

    def add(self, reference, side, shares, price):
        if reference not in self.places:
            self.places[reference] = (min(price // 100, LAST), side)
            self.queues[self.places[reference]].append([reference, shares])

    def apply(self, kind, fields):
        if kind in "AF":
            sell = fields["buy_sell_indicator"] == b"S"
            self.add(fields["order_reference_number"], int(sell), fields["shares"], fields["price"])
        elif kind in "EXDU":
            reference = fields["original_order_reference_number" if kind == "U" else "order_reference_number"]
            if reference not in self.places:
                return
            place = self.places[reference]
            order = next(one for one in self.queues[place] if one[0] == reference)
            if kind in "EX":
                less = fields["executed_shares" if kind == "E" else "canceled_shares"]
                if less < order[1]:
                    order[1] -= less
                    return
            self.queues[place].remove(order)
            del self.places[reference]
            if kind == "U":
                self.add(fields["new_order_reference_number"], place[1], fields["shares"], fields["price"])


def check(data):
    twin, core = Twin(), market_core.make_core(1 << 12)
    assert market_core.run(core, as_bytes_array(data), np.uint64(0))[0] == twin.feed(data)
    assert market_core.live_orders(core) == len(twin.places) == core.map.state[hashing.USED]
    filled = {place: [shares for _, shares in queue] for place, queue in twin.queues.items() if queue}
    for (cents, side), shares in filled.items():
        out = np.zeros(len(shares), np.uint64)
        assert market_core.queue(core, np.uint64(cents << 1 | side), out) == len(shares)
        assert out.tolist() == shares
    for side, bits in ((0, core.bids), (1, core.asks)):
        wanted = sorted(cents for cents, other in filled if other == side)
        found, at = [], 0
        while (bit := int(bitmap.at_or_above(bits, np.uint64(at))[0])) != int(bitmap.NONE):
            found.append(bit)
            at = bit + 1
        assert found == wanted, "the bitmap marks the prices that have a queue"
    assert np.count_nonzero(core.ends) == len(filled)


@settings(deadline=None)
@given(streams.streams())
def test_equals_its_twin(messages):
    check(itch.frame(messages))


@pytest.mark.parametrize("seed", [1, 2])
def test_equals_its_twin_on_long_streams(seed):
    check(streams.long_stream(seed, 3000, faults=0.1))


def test_ignores_executions_with_price():
    """That is what the source does: the order stays too large, where the full book takes the shares off."""
    add = itch.encode("A", order_reference_number=7, buy_sell_indicator=b"B", shares=100, price=50_000)
    executed = itch.encode("C", order_reference_number=7, executed_shares=60, printable=b"Y")
    core = market_core.make_core(1 << 4)
    market_core.run(core, as_bytes_array(itch.frame([add, executed])), np.uint64(0))
    out = np.zeros(1, np.uint64)
    assert market_core.queue(core, np.uint64(500 << 1), out) == 1 and out[0] == 100


def test_a_full_slab_loses_orders_and_nothing_else():
    adds = [itch.encode("A", order_reference_number=n, buy_sell_indicator=b"S", shares=1, price=100) for n in range(99)]
    core = market_core.make_core(1 << 4)
    market_core.run(core, as_bytes_array(itch.frame(adds)), np.uint64(0))
    assert market_core.live_orders(core) == 7 == core.map.state[hashing.USED]
    assert pool.left(core.slab) == 0


def test_a_day_ends_with_more_orders_than_the_full_book_by_those_that_c_took():
    day, truth = synth.generate(20_000, 3)
    core = market_core.make_core(1 << 14)
    messages, position = market_core.run(core, day, np.uint64(0))
    assert (messages, position) == (truth.messages, truth.bytes)
    assert 0 <= market_core.live_orders(core) - truth.live_orders <= truth.counts["C"]
    again = market_core.make_core(1 << 14)
    market_core.run(again, day, np.uint64(0))
    assert market_core.digest(again) == market_core.digest(core) != 0
