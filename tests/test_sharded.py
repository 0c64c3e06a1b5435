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
from tests.cores_check import check_cores, keeps_its_word
from tests.oracle import book as oracle
from tests.oracle import itch, streams
from tests.replays import SMALL


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


def test_dealing():
    check_cores()


def test_all_messages_of_one_core():
    """One core has all the books, the other one nothing but reading and framing: neither waits for ever."""
    messages = [message for _, message in itch.walk(streams.long_stream(3, 3_000, instruments=1)).messages]
    data = np.frombuffer(itch.frame(messages) * 20, np.uint8)
    for cores in (1, 2, 3):
        alone, shared = Replayer(capacity=SMALL), on_cores(data, cores, 1 << 18)
        alone.feed(data)
        shared.close()
        assert facts(shared) == facts(alone)


def test_what_goes_wrong_goes_to_the_caller():
    """An iterator that fails, a callback that fails, and books that are full on another core: one error, no thread."""
    data = synth.generate(20_000, 1)[0]

    def broken():
        yield data[:100_000]
        raise OSError("no more")

    def stop():
        raise KeyboardInterrupt

    shared = sharded.Shards(2, capacity=SMALL | {"pages": 1 << 14, "levels": 1 << 14, "tree_nodes": 1 << 14})
    with pytest.raises(OSError, match="no more"):
        shared.draw(broken())
    alone = Replayer()
    alone.feed(data[:100_000])
    assert facts(shared) == facts(alone)
    with pytest.raises(KeyboardInterrupt):
        shared.draw(iter([data[100_000:]]), stop)
    with pytest.raises(UserError, match=r"the books are full at offset [0-9]+: [0-9]+ live orders"):
        sharded.Shards(2, capacity=SMALL | {"pages": 32}).feed(data)
    assert not any(thread.name.startswith("photonlab-core") for thread in threading.enumerate())
