"""One day on several cores: the books, the counters and the checksum of one core, whatever the number of cores."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import photonlab
from photonlab.errors import ItchFormatError, UserError
from photonlab.systems import sharded, synth
from photonlab.systems.replayer import Replayer
from tests.oracle import book as oracle
from tests.oracle import itch, streams
from tests.replays import SMALL


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


def on_cores(data, cores, step=1 << 20, **options):
    one = sharded.Shards(cores, capacity=SMALL, **options)
    for begin in range(0, len(data), step):
        one.feed(data[begin : begin + step])
    return one


def facts(one):
    return (
        one.checksum(),
        one.counts,
        one.anomalies,
        one.unknown_references,
        one.messages,
        one.live_orders,
        one.position,
    )


@settings(max_examples=40)
@given(streams.streams(), st.sampled_from([2, 3, 5]), st.sampled_from([7, 100, 1 << 20]))
def test_any_stream_that_keeps_its_word(messages, cores, step):
    data = itch.frame(keeps_its_word(messages))
    alone, shared = Replayer(capacity=SMALL), on_cores(data, cores, step)
    alone.feed(data)
    ends = []
    for one in (alone, shared):
        try:
            one.close()
            ends.append("")
        except ItchFormatError as error:  # nothing of it was ITCH
            ends.append(str(error))
    assert ends[0] == ends[1]
    assert facts(shared) == facts(alone)


def test_a_part_alone_is_the_oracle_of_its_instruments():
    messages = [message for _, message in itch.walk(streams.long_stream(8, 4_000, faults=0.05)).messages]
    data = itch.frame(keeps_its_word(messages))
    plain = oracle.Book()
    plain.feed(data)
    for number in range(3):
        part = sharded.Shard(number, 3, capacity=SMALL)
        part.feed(data)
        mine = [order for order in plain.orders.values() if order.locate % 3 == number]
        assert part.live_orders == len(mine) and part.messages == sum(plain.counts.values())


def test_through_replay(tmp_path):
    path = tmp_path / "day.itch"
    synth.write(path, 30_000, seed=5)
    alone, shared = photonlab.replay(path), photonlab.replay(path, cores=2)
    for fact in ("messages", "bytes", "counts", "anomalies", "unknown_references", "live_orders", "checksum"):
        assert getattr(alone, fact) == getattr(shared, fact), fact
    assert alone.bbo().equals(shared.bbo()) and alone.symbols() == shared.symbols()
    for symbol in alone.symbols()[:7]:
        assert alone.depth(symbol).equals(shared.depth(symbol)) and alone.orders(symbol).equals(shared.orders(symbol))
    for wrong in ({"cores": 0}, {"cores": 2, "symbols": "A"}, {"cores": 2, "on_event": len}):
        with pytest.raises(UserError, match="cores="):
            photonlab.replay(path, **wrong)


def test_an_error_is_raised_and_no_thread_stays(tmp_path):
    data = bytes(synth.generate(5_000, 1)[0]) + b"\xff\xff" + b"x" * 5_000
    shared = on_cores(data[:1000], 2)
    with pytest.raises(ItchFormatError, match="damaged at offset"):
        shared.feed(data[1000:])
        shared.close()
    assert not any(thread.name.startswith("photonlab-core") for thread in threading.enumerate())


def test_an_input_may_be_reused():
    data = synth.generate(5_000, 1)[0]
    alone, shared = Replayer(capacity=SMALL), sharded.Shards(2, capacity=SMALL)
    buffer = np.empty(4096, np.uint8)
    for begin in range(0, data.size, buffer.size):
        piece = data[begin : begin + buffer.size]
        buffer[: piece.size] = piece
        alone.feed(buffer[: piece.size])
        shared.feed(buffer[: piece.size])
        buffer[:] = 255
    shared.close()
    assert shared.checksum() == alone.checksum()
