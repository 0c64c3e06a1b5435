"""The feed from end to end over real sockets: what the simulator sends, the consumer's books hold, or it is said.

Three threads wait for each other on perhaps two CPUs, so the receiver waits in poll, and nothing here is timed.
"""

import itertools
import os
import socket
import time

import numpy as np
import pytest

from photonlab.errors import Failure, UserError
from photonlab.machine import multicast, udp
from photonlab.systems import synth
from photonlab.systems.feed import consumer, receiver, resend, simulator
from photonlab.systems.feed.faults import Faults
from photonlab.systems.replayer import Replayer

pytestmark = pytest.mark.skipif(not udp.available(), reason="no recvmmsg")
MESSAGES = 6000
SMALL = {"pages": 1 << 16, "levels": 1 << 16, "tree_nodes": 1 << 16}
FAULTS = Faults(0.03, 0.02, 0.02)
_ports = itertools.count(31_000 + os.getpid() % 500 * 16)


@pytest.fixture(scope="module")
def day():
    return synth.generate(MESSAGES, 1)[0]


@pytest.fixture(scope="module")
def replayed(day):
    one = Replayer(capacity=SMALL)
    one.feed(day)
    one.close()
    return one


@pytest.fixture
def lines():
    return [simulator.Endpoint(group, next(_ports), "lo") for group in simulator.GROUPS]


def run(
    day, lines, *, planted=(), server=None, ring_slots=1 << 13, rate=60_000, most=1, batch=64, seconds=20, **options
):
    """Send the day, and give what receiver and consumer have of it when all is over."""
    ring = receiver.make_ring(1 << 13)
    options = {"mode": "poll", "buffer": 4 << 20, "patience": 0.2, "window": 1 << 13} | options
    receiving = receiver.Receiver(ring, lines, server=server, **options)
    sending = simulator.Simulator(day, lines, rate=rate, most=most, planted=planted)
    consuming = consumer.Consumer(ring, receiving.control, sending.schedule, batch=batch, capacity=SMALL)
    with sending, receiving, consuming:
        receiving.start()
        consuming.start()
        sending.start()
        assert consuming.wait(20)
        received = receiving.received()
    return consuming, received, sending.sent()


def same_books(one, other):
    """Tell whether two replayers hold the same books, order by order, and have counted the same."""
    names = ("counts", "unknown_reference", "anomalies", "volume", "names", "trading", "session")
    state, expected = one.feed_state, other.feed_state
    return one.digest() == other.digest() and all(
        np.array_equal(getattr(state, name), getattr(expected, name)) for name in names
    )


@pytest.mark.parametrize(
    "options", [{"mode": "spin"}, {"mode": "block"}, {"most": 30, "batch": 1}, {"batch": 256, "stamps": True}]
)
def test_books_are_those_of_the_replay(day, replayed, lines, options):
    consuming, received, sent = run(day, lines[:1], **options)
    assert sent.complete
    assert sent.messages == MESSAGES
    assert received.counters["kernel_drops"] == received.counters["ring_drops"] == received.counters["unknown"] == 0
    assert received.ended
    assert consuming.counters["messages"] == MESSAGES
    assert consuming.counters["out_of_step"] == 0
    assert not consuming.incomplete
    assert consuming.total.totals[1] == consuming.since_due.totals[1] == MESSAGES
    assert same_books(consuming.books, replayed)


def test_one_line_makes_up_for_what_the_other_loses(day, replayed, lines):
    consuming, received, sent = run(day, lines, planted=(FAULTS, Faults()))
    assert 100 < sent.lines[0]["lost"] < 300
    assert sent.lines[1]["lost"] == 0
    assert received.stream["missing"] == 0
    assert not consuming.incomplete
    assert same_books(consuming.books, replayed)


def test_losses_on_both_lines_without_a_server_are_said(day, replayed, lines):
    consuming, received, _ = run(day, lines, planted=(FAULTS, FAULTS))
    lost = MESSAGES - consuming.counters["messages"]
    assert lost > 0
    assert sum(count for _, count in received.gaps) == lost == consuming.counters["never_came"]
    assert consuming.gaps[0][2] == "never came"
    assert consuming.incomplete
    assert not same_books(consuming.books, replayed)


def test_gaps_that_are_known_at_once_wait_together(day, lines):
    consuming, received, sent = run(day, lines[:1], planted=(Faults(0.05),), patience=0.25, window=1 << 14)
    assert len(received.gaps) > 200  # one after the other they would wait longer than the test does
    assert consuming.counters["never_came"] == sent.lines[0]["lost messages"]


def test_a_server_mends_what_both_lines_lose(day, replayed, lines):
    with resend.ResendServer(day, simulator.SESSION, port=0) as server:
        consuming, received, _ = run(
            day, lines, planted=(FAULTS, FAULTS), server=("127.0.0.1", server.port), patience=10.0
        )
        assert server.counters["answers"] > 0
    assert received.counters["requests"] > 0
    assert received.gaps == []
    assert not consuming.incomplete
    assert same_books(consuming.books, replayed)


def test_the_same_seed_plants_the_same_faults(day, lines):
    first, again = (run(day, lines, planted=(FAULTS, FAULTS), rate=60_000) for _ in range(2))
    assert first[2].lines[0]["lost"] == again[2].lines[0]["lost"]
    assert first[0].gaps == again[0].gaps


def test_a_full_ring_drops_and_says_so(day, lines):
    ring = receiver.make_ring(256)
    receiving = receiver.Receiver(ring, lines[:1], mode="poll")
    sending = simulator.Simulator(day, lines[:1], rate=100_000)
    consuming = consumer.Consumer(ring, receiving.control, batch=64, capacity=SMALL)
    with sending, receiving, consuming:
        receiving.start()
        sending.start()
        assert sending.wait(20)  # nobody has consumed yet
        consuming.start()
        assert consuming.wait(20)
    dropped = receiving.received().counters["ring_drops"]
    assert dropped == MESSAGES - 256
    assert consuming.counters["no_room"] == dropped
    assert consuming.gaps == [(257, dropped, "the ring was full")]
    assert consuming.incomplete


@pytest.mark.parametrize("mode", ["spin", "poll", "block"])
def test_a_silent_feed_is_left_within_a_tenth_of_a_second(lines, mode):
    ring = receiver.make_ring(64)
    receiving = receiver.Receiver(ring, lines[:1], mode=mode)
    consuming = consumer.Consumer(ring, receiving.control, capacity=SMALL)
    with receiving, consuming:
        receiving.start()
        consuming.start()
        time.sleep(0.05)
        assert receiving.received().silent is None
        began = time.perf_counter()
        receiving.close()
        consuming.close()
        assert time.perf_counter() - began < 5  # a tenth, on a machine that is not busy
    assert not receiving.received().ended


def test_requests_that_cannot_be_served_are_counted(day):
    with resend.ResendServer(day, "DAY1", port=0) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(2)
        asking.connect(("127.0.0.1", server.port))
        ask = lambda session, first, count: asking.send(  # noqa: E731
            session.ljust(10) + first.to_bytes(8, "big") + count.to_bytes(2, "big")
        )
        asking.send(b"what?")
        ask(b"DAY2", 1, 1)
        ask(b"DAY1", MESSAGES + 1, 1)
        ask(b"DAY1", 0, 1)
        ask(b"DAY1", MESSAGES, 9)
        answer = asking.recv(2000)
        assert answer[:20] == b"DAY1      " + MESSAGES.to_bytes(8, "big") + (1).to_bytes(2, "big")
        assert day[-len(answer) + 20 :].tobytes() == answer[20:]
        ask(b"DAY1", 1, 1000)
        answer = asking.recv(2000)
        assert len(answer) <= 1452
        assert day[: len(answer) - 20].tobytes() == answer[20:]
    # it counts an answer when it is sent, which may be after it has come
    assert {name: server.counters[name] for name in ("damaged", "other_session", "unknown", "answers")} == {
        "damaged": 1, "other_session": 1, "unknown": 2, "answers": 2,
    }  # fmt: skip


def test_what_cannot_be_is_refused(day, lines):
    ring = receiver.make_ring(64)
    for call, said in (
        (lambda: receiver.Receiver(ring, lines, mode="block"), "listens to one line only"),
        (lambda: receiver.Receiver(ring, lines, mode="sleep"), "waits by spin, poll, block, yield, not 'sleep'"),
        (lambda: receiver.Receiver(ring, lines, batch=300), "1 to 256 packets a call"),
        (lambda: simulator.Simulator(day, lines, rate=1, speed=1), "not both"),
        (lambda: simulator.Simulator(day, lines, rate=0), "rate is a whole number from 1"),
        (lambda: simulator.Simulator(day, lines, packet_rate=0), "packets a second is a whole number from 1"),
        (lambda: simulator.Simulator(day, lines, packet_rate=1, rate=1), "not both"),
        (lambda: simulator.Simulator(day, lines, packet_rate=1, most=28), "packets of at most 27 messages"),
        (lambda: simulator.Simulator(day, lines, planted=(Faults(2),)), "from 0 to 1, not 2"),
        (lambda: resend.ResendServer(day, "DAY1", "239.1.1.1"), "not to a group"),
    ):
        with pytest.raises(UserError, match=said):
            call()


@pytest.mark.parametrize(
    ("spoil", "at"), [(lambda day: day[:-5], MESSAGES - 1), (lambda day: np.concatenate([[9], day[1:]]), 0)]
)
def test_a_day_that_breaks_off_is_said_and_its_end_is_not_announced(day, lines, spoil, at):
    spoilt = spoil(day).astype(np.uint8)
    listening, _ = multicast.receiver(*lines[0], buffer=8 << 20)
    with listening:
        listening.settimeout(0.2)
        sending = simulator.Simulator(spoilt, lines[:1], most=30)
        sending.start()
        assert sending.wait(20)
        assert sending.sent().messages == at
        assert not sending.sent().complete
        with pytest.raises(Failure, match=f"breaks off at offset {sending.position:,}: expected a whole message"):
            sending.close()
        counts = []
        with pytest.raises(TimeoutError):
            while True:
                counts.append(int.from_bytes(listening.recv(2048)[18:20], "big"))
    assert 0xFFFF not in counts
    assert sum(counts) == at


def test_a_delay_is_left_at_once_and_none_is_negative(day, lines):
    with simulator.Simulator(day, lines[:1]) as sending:
        with pytest.raises(UserError, match="a number of seconds from 0, not -1"):
            sending.start(-1)
        sending.start(60)
        began = time.perf_counter()
        sending.stop()
        assert time.perf_counter() - began < 30
        assert sending.done
        assert sending.sent().messages == 0


def test_a_length_of_zero_ends_the_day(day, lines):
    with simulator.Simulator(np.concatenate([day, np.zeros(2, np.uint8)]), lines[:1]) as sending:
        sending.start()
        assert sending.wait(20)
        assert sending.sent().complete
        assert sending.sent().lines[0]["sent"] == MESSAGES + 5
