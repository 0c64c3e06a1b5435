"""The receiver where the system is poor, slow or dumb: no recvmmsg, a coarse clock, a reader that falls behind."""

import itertools
import os
import platform
import subprocess
import sys
import time

import numpy as np
import pytest

from photonlab.machine import udp
from photonlab.systems import synth
from photonlab.systems.feed import consumer, receiver, receiving, simulator
from photonlab.systems.feed.faults import Faults
from photonlab.systems.replayer import Replayer

pytestmark = pytest.mark.skipif(not udp.available(), reason="no recvmmsg")
MESSAGES = 3000
SMALL = {"pages": 1 << 16, "levels": 1 << 16, "tree_nodes": 1 << 16}
_ports = itertools.count(41_000 + os.getpid() % 500 * 16)


@pytest.fixture(scope="module")
def day():
    return synth.generate(MESSAGES, 3)[0]


@pytest.fixture(scope="module")
def digest(day):
    one = Replayer(capacity=SMALL)
    one.feed(day)
    one.close()
    return one.digest()


def ends(count=1):
    return [simulator.Endpoint("127.0.0.1", next(_ports)) for _ in range(count)]


def run(day, lines, *, planted=(), rate=50_000, announcing=0.0, **options):
    """Send a day, and give receiver (closed), consumer, and what was received, left and lost."""
    ring = receiver.make_ring(1 << 13)
    one = receiver.Receiver(ring, lines, **{"mode": "poll", "patience": 0.1} | options)
    sending = simulator.Simulator(day, lines, rate=rate, planted=planted, announcing=announcing)
    books = consumer.Consumer(ring, one.control, batch=64, capacity=SMALL, yields=options.get("mode") == "yield")
    with sending, one, books:
        one.start()
        books.start()
        sending.start()
        assert sending.wait(20)
        assert books.wait(20)
        left = one.leave()
        received = one.received()
    return one, books, received, left, sending.sent()


@pytest.mark.parametrize("mode", ["spin", "poll", "block"])
def test_without_recvmmsg_a_call_for_each_packet_brings_the_same(day, digest, mode):
    one, books, received, _, _ = run(day, ends(), mode=mode, singly=True)
    assert one._work.box.state[udp.SINGLY] == 1
    assert books.counters["messages"] == MESSAGES
    assert received.ended
    assert books.books.digest() == digest


def test_three_parts_spin_on_three_cpus_and_take_turns_on_fewer(day, digest):
    assert [receiver.usual_mode(cpus) for cpus in (1, 2, 3, 64)] == ["yield", "yield", "spin", "spin"]
    assert receiver.usual_mode() in receiver.MODES
    _, books, received, _, _ = run(day, ends(), mode="yield")
    assert received.ended
    assert books.books.digest() == digest


@pytest.mark.parametrize("singly", [False, True])
def test_a_clock_around_the_whole_call_counts_each_message_once(day, digest, singly):
    one, books, received, _, _ = run(day, ends(), whole=True, singly=singly)
    spans = one.spans
    assert spans[:, 0].sum() == received.counters["events"] == MESSAGES
    assert spans.shape[0] == received.batches[1:].sum()
    assert (spans[:, 1] > 0).all()
    assert books.parse.totals[2] == 0  # no message has a reading of its own
    assert books.books.digest() == digest


def test_a_slow_reader_loses_exactly_what_the_system_counts(day):
    _, books, received, (left, lost), sent = run(
        day, ends(), rate=200_000, batch=1, hold=100e-6, buffer=1 << 15, patience=0.0, announcing=2.0
    )
    missing = sum(count for _, count in received.gaps)
    assert missing > 0
    assert lost == sent.lines[0]["sent"] - received.counters["packets"] - left
    never_ended = sent.ends - received.stream["ends"] - left  # only ends come behind the first end
    assert missing == lost - never_ended
    assert books.counters["never_came"] == missing
    assert books.incomplete


def test_what_both_lines_lose_is_flagged_from_its_first_number_on(day):
    faults = Faults(0.05, 0.0, 0.0)
    _, books, received, _, _ = run(day, ends(2), planted=(faults, faults))
    assert received.gaps
    assert [gap[:2] for gap in books.gaps] == received.gaps
    assert books.counters["incomplete_from"] == received.gaps[0][0]
    assert books.counters["messages"] + books.counters["never_came"] == MESSAGES


_SANDBOX = """
import ctypes, socket, struct, sys
import numpy as np
from photonlab.machine import udp
from photonlab.machine.jit import kernel

@kernel
def receive(box, fd, how):
    return udp.receive(box, fd, np.uint64(8), how)

here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("127.0.0.1", 0))
box, fd = udp.make_box(8, 64), np.uint64(here.fileno())
assert receive(box, fd, udp.NOW) == (0, 0) and box.state[udp.SINGLY] == 0
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter_ = ctypes.create_string_buffer(struct.pack("H6xQ", len(steps), ctypes.addressof(code)))
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, filter_, 0, 0):
    sys.exit(77)
for text in (b"one", b"two"):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(text, here.getsockname())
assert receive(box, fd, udp.NOW) == (2, 0) and box.state[udp.SINGLY] == 1
assert box.data[:3].tobytes() + box.data[64:67].tobytes() == b"onetwo"
assert receive(box, fd, udp.NOW) == (0, 0)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the call's number is that of x86-64")
def test_a_sandbox_that_refuses_recvmmsg_is_noticed():
    done = subprocess.run([sys.executable, "-c", _SANDBOX, "299"], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("no seccomp filter can be set here")
    assert done.returncode == 0, done.stderr


def test_a_ring_that_is_full_and_a_gap_are_told_apart(day):
    ring, lines = receiver.make_ring(256), ends()
    one = receiver.Receiver(ring, lines, mode="poll")
    sending = simulator.Simulator(day, lines, rate=100_000)
    books = consumer.Consumer(ring, one.control, capacity=SMALL)
    with sending, one, books:
        one.start()
        sending.start()
        assert sending.wait(20)
        until = time.monotonic() + 10
        while one.received().counters["packets"] < MESSAGES and time.monotonic() < until:
            time.sleep(0.01)
        books.start()
        assert books.wait(20)
    assert books.gaps == [(257, MESSAGES - 256, "the ring was full")]
    assert one._work.state[int(receiving.RING_DROPS)] == MESSAGES - 256
    assert np.array_equal(one.received().gaps, [])
