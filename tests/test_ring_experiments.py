"""Every variant of the ring passes the same messages, between calls, threads and processes; and the stress can fail."""

import mmap
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab import paths
from photonlab.kernels import ring, ring_variants
from photonlab.kernels.ring_variants import MAKERS
from photonlab.machine import clock, system
from photonlab.machine.jit import kernel
from photonlab.systems import spin
from photonlab.systems.experiments import ring_granule, ring_loops, ring_stress
from tests.oracle.ring import Queue
from tests.test_spin import two_cpus

U = np.uint64


@kernel
def offered(queue, value, count):
    return ring_variants.offer(queue, value, count)


@kernel
def accepted(queue, count):
    return ring_variants.accept(queue, count)


def sum_of(values, words):
    """Sum of all words that a queue's reader sees; a sequenced slot has one word less to give."""
    return sum(value + j for value in values for j in range(words)) % 2**64


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    slots=st.sampled_from([1, 2, 8]),
    words=st.sampled_from([2, 8, 9]),
    start=st.sampled_from([0, 2**63 - 1, 2**64 - 3]),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=30),
)
def test_variants_are_bounded_queues(name, slots, words, start, steps):
    queue, twin, sent = MAKERS[name](slots, words, start=start), Queue(slots), 0
    for is_offer, count in steps:
        if is_offer:
            taken = twin.push(list(range(sent, sent + count)))
            assert offered(queue, U(sent), U(count)) == taken
            sent += taken
        else:
            expected = twin.pop(count)
            there, total = accepted(queue, U(count))
            assert there == len(expected)
            assert total == sum_of(expected, words - (name == "sequenced"))


@pytest.mark.parametrize("name", MAKERS)
def test_one_thread_reads_what_it_wrote(name):
    assert ring_loops.alone(MAKERS[name](4), U(100)) == sum_of(range(100), 8 - (name == "sequenced"))


@two_cpus
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("slots", "apart", "batch"), [(1, 16, 1), (64, 1, 5), (256, 16, 512)])
def test_messages_pass_between_threads(name, slots, apart, batch):
    queue, count = MAKERS[name](slots, apart=apart, start=2**64 - 999), 2000
    sent, got = np.zeros(4, U), np.zeros(4, U)
    spin.together(
        lambda flags: ring_loops.produce(queue, flags, U(count), U(batch), sent),
        lambda flags: ring_loops.consume(queue, flags, U(count), U(batch), got),
    )
    assert sent[ring_loops.MESSAGES] == got[ring_loops.MESSAGES] == count
    assert got[ring_loops.TOTAL] == sum_of(range(count), 8 - (name == "sequenced"))
    assert -(-count // batch) <= got[ring_loops.CALLS] <= count


@two_cpus
@pytest.mark.parametrize("name", ["ring", "sequenced"])
@pytest.mark.parametrize("batch", [1, 8])
def test_batches_and_answers(name, batch):
    there, back = (MAKERS[name](8) for _ in range(2))
    spans, asked, answered = np.zeros(500, U), np.zeros(4, U), np.zeros(4, U)
    spin.together(
        lambda flags: ring_loops.call(there, back, flags, U(batch), spans, asked),
        lambda flags: ring_loops.answer(there, back, flags, U(batch), U(500), answered),
    )
    assert asked[ring_loops.MESSAGES] == answered[ring_loops.MESSAGES] == 500 * batch
    assert asked[ring_loops.TOTAL] == sum_of(range(500), 8 - (name == "sequenced"))
    assert answered[ring_loops.TOTAL] == sum_of(range(500 * batch), 8 - (name == "sequenced"))
    assert spans.all()
    assert spans.sum() <= asked[ring_loops.TICKS]


@two_cpus
@pytest.mark.parametrize(("to", "line"), [(1, 0), (32, 0), (32, 7)])
def test_a_bare_ping_pong_comes_to_its_end(to, line):
    words, spans, one, other = np.zeros(64, U), np.zeros(500, U), np.zeros(4, U), np.zeros(4, U)
    spin.together(
        lambda flags: ring_loops.serve(words, U(0), U(to), U(line), flags, spans, one),
        lambda flags: ring_loops.play_back(words, U(0), U(to), U(line), flags, U(500), other),
    )
    assert words[0] == words[to] == one[ring_loops.MESSAGES] == other[ring_loops.MESSAGES] == 500
    assert one[ring_loops.TOTAL] == other[ring_loops.TOTAL] == sum_of(range(1, 501), line)
    assert spans.all()


CONSUMER = """
import mmap, sys
import numpy as np
from photonlab.kernels import ring
from photonlab.systems.experiments import ring_loops

with open(sys.argv[1], "r+b") as file:
    shared = mmap.mmap(file.fileno(), 0)
flags = np.frombuffer(shared, np.uint64, 64)
report = np.zeros(4, np.uint64)
ring_loops.consume(ring.attach(memoryview(shared)[4096:]), flags, np.uint64(20000), np.uint64(16), report)
print(*report[1:3])
"""


@two_cpus
def test_messages_pass_between_processes(tmp_path):
    """The same kernels over a file that both map."""
    path, count = tmp_path / "ring", U(20000)
    path.write_bytes(bytes(4096 + 8 * 4096))
    with path.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), 0)
    flags, report = np.frombuffer(shared, U, 64), np.zeros(4, U)
    flags[int(spin.DEADLINE)] = spin.clock_now() + U(60 * clock.calibrate().hz)
    queue = ring.make_ring(64, start=2**64 - 10000, buffer=memoryview(shared)[4096:])
    process = subprocess.Popen(
        [sys.executable, "-c", CONSUMER, str(path)], cwd=paths.ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        ring_loops.produce(queue, flags, count, U(16), report)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert report[ring_loops.MESSAGES] == count
    assert said.split() == ["20000", str(sum_of(range(20000), 8))]


@two_cpus
@pytest.mark.parametrize("separation", [8, 64, 512])
def test_counters_lose_no_increment(separation):
    counters = ring_granule.Counters(separation, 2000)
    counters.run()
    assert counters.increments >= 2000
    assert counters.ticks > 0


def test_counters_beyond_their_memory_are_refused():
    for separation in (0, 12, 8192):
        with pytest.raises(ValueError, match="bytes apart"):
            ring_granule.Counters(separation, 10)


@two_cpus
def test_stress_of_rings_of_all_shapes_loses_repeats_and_reorders_nothing():
    found = ring_stress.stress_for(1.5, messages=20_000)
    assert found.sound
    assert found.sent >= 20_000
    assert found.full and found.empty and found.wrapped


@pytest.mark.parametrize("harm", ["none", "torn", "reordered", "repeated", "lost"])
def test_the_reader_under_stress_sees_harm(harm):
    """Poured without a reader, tampered with, and drained afterwards."""
    one, flags, report = ring.make_ring(256, start=2**64 - 50), np.ones(64, U), np.zeros(4, U)
    flags[int(spin.STOP)] = 0
    ring_stress.pour(one, flags, U(100), U(7), U(1), report)
    slots = one.words[int(one.base) :].reshape(-1, 8)
    if harm == "torn":
        slots[220, 3] ^= U(1)
    elif harm == "reordered":
        slots[[220, 221]] = slots[[221, 220]]
    elif harm == "repeated":
        slots[221] = slots[220]
    elif harm == "lost":
        slots[220:255] = slots[221:256]
    seen = np.zeros(4, U)
    ring_stress.drain(one, flags, U(100), U(7), U(2), seen)
    assert seen[ring_stress.MESSAGES] == 100
    wrong = {"none": 0, "torn": 1, "reordered": 16, "repeated": 8, "lost": 8 * 35}[harm]
    assert seen[ring_stress.WRONG] == wrong
    assert (seen[ring_stress.CHECKSUM] == report[ring_stress.CHECKSUM]) == (harm in ("none", "reordered"))


@two_cpus
def test_stress_is_a_command_with_an_exit_code(capsys):
    assert ring_stress.main(["--seconds", "0", "--messages", "5000"]) == 0
    assert capsys.readouterr().out.startswith("5,000 messages sent, 5,000 received, 0 words wrong, checksums equal")


def test_stress_is_refused_on_one_cpu(monkeypatch, capsys):
    monkeypatch.setattr(system, "allowed_cpus", lambda: (0,))
    assert ring_stress.main(["--seconds", "0"]) == 2
    assert "need two CPUs" in capsys.readouterr().err
