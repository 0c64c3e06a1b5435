"""The replay with a clock round every message: the same outcome as without, and a sample for every message."""

import numpy as np
import pytest

from photonlab.lab.measure.allocation import uncached
from photonlab.machine import counter
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import message_loop, synth
from photonlab.systems.experiments import scorecard
from photonlab.systems.experiments.passes import BookPass
from photonlab.systems.replayer import Replayer
from tests.oracle import itch, streams


def timed(data, **options):
    one = scorecard.TimedPass(data, **options)
    one.prepare()
    return one, one()


@pytest.mark.parametrize("seed", [1, 2])
def test_the_books_are_those_of_the_replay(seed):
    data = as_bytes_array(streams.long_stream(seed, 3000, faults=0.1))
    plain = Replayer()
    plain.feed(data)
    one, checksum = timed(data)
    assert one.replayer.checksum() == plain.checksum()
    untimed = BookPass(data)
    untimed.prepare()
    assert untimed() == checksum


def test_every_message_has_a_sample_under_its_type():
    day, truth = synth.generate(5_000, 1)
    one, _ = timed(day)
    types, counts = np.unique(one.spans & np.uint64(255), return_counts=True)
    found = dict(zip(map(chr, types.tolist()), counts.tolist(), strict=True))
    assert found == {t: n for t, n in truth.counts.items() if n}
    ticks = one.spans >> np.uint64(8)
    assert ticks.min() >= 0 and ticks.max() < np.uint64(1 << 50)
    assert np.count_nonzero(ticks) > 0.9 * truth.messages


def test_the_order_of_samples_is_that_of_the_messages():
    data = streams.long_stream(5, 500, faults=0)
    one, _ = timed(data)
    kinds = [message[0] for _, message in itch.walk(data).messages]
    assert (one.spans & np.uint64(255)).tolist() == kinds


def test_classes_cover_the_types_that_change_a_book():
    assert sorted("".join(scorecard.CLASSES.values())) == sorted("AFECXDU")


def test_a_full_array_of_samples_stops_the_replay():
    data = as_bytes_array(streams.long_stream(1, 300, faults=0))
    replayer = Replayer()
    spans = np.zeros(100, np.uint64)
    at, outcome, count = scorecard.replay_timed(replayer.feed_state, data, np.uint64(0), spans)
    assert (count, outcome) == (100, message_loop.MORE)
    assert at == len(itch.frame([m for _, m in itch.walk(data.tobytes()).messages][:100]))
    _, _, rest = scorecard.replay_timed(replayer.feed_state, data, np.uint64(at), np.zeros(1000, np.uint64))
    whole = Replayer()
    whole.feed(data)
    assert count + rest == len(itch.walk(data.tobytes()).messages)
    assert replayer.checksum() == whole.checksum()


def test_a_cut_tail_and_the_end_of_a_session_stop_it():
    stream = streams.long_stream(1, 50, faults=0)
    for tail in (b"", b"\0", b"\0\0", b"\0\x24A", b"\0\0" + stream):
        one, _ = timed(stream + tail)
        assert one.replayer.position == len(stream)


def test_the_throughput_kernel_reads_no_clock():
    """The scorecard's timing is a kernel of its own: the word that chooses a clock is not in the replay's code."""
    data = as_bytes_array(streams.long_stream(1, 50, faults=0))
    one, _ = timed(data)
    fresh = uncached(message_loop.replay)
    fresh(one.replayer.feed_state, data, np.uint64(0), np.uint64(data.size), False)
    (signature,) = fresh.signatures
    clocked = uncached(scorecard.replay_timed)
    clocked(Replayer().feed_state, data, np.uint64(0), one.spans)
    assert counter._SWITCH not in fresh.inspect_llvm(signature)
    assert counter._SWITCH in clocked.inspect_llvm(clocked.signatures[0])
