"""Packets sent as buffers that the system cuts up: who receives sees what each packet by itself would have been."""

import itertools
import os
import socket

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.errors import UserError
from photonlab.machine import multicast, udp, udp_segments
from photonlab.machine.jit import kernel
from photonlab.systems import synth
from photonlab.systems.feed import simulator
from photonlab.systems.feed.faults import Faults

pytestmark = pytest.mark.skipif(not udp.available(), reason="no sendmmsg")
NO_CHECK = 11  # SO_NO_CHECK: without checksums the system does not cut up
_ports = itertools.count(27_000 + os.getpid() % 500 * 8)


@kernel
def bundle(box, sizes, most):
    at = np.uint64(0)
    for i in range(sizes.size):
        udp.put(box, np.uint64(i), at, sizes[i])
        at += sizes[i]
    return udp_segments.bundle(box, np.uint64(0), np.uint64(sizes.size), most)


@kernel
def send(box, fd, buffers):
    done, why = udp.send(box, fd, np.uint64(0), buffers, np.uint64(0))
    return done, udp_segments.packets(box, done), why


def expected(sizes, most):
    """Return the packets of each buffer, by the rule as the manual has it (udp(7))."""
    buffers = []
    for size in sizes:
        last = buffers[-1] if buffers else []
        fits = len(last) < most and sum(last) + size <= 65_507
        if last and fits and all(one == last[0] for one in last) and size <= last[0]:
            last.append(size)
        else:
            buffers.append([size])
    return buffers


def cuts_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        return udp_segments.why_not(one)


@pytest.fixture(scope="module")
def box():
    return udp_segments.prepare(udp.make_box(128, 2048))


@given(
    st.lists(st.sampled_from([20, 33, 33, 33, 58, 1452, 9000]), min_size=1, max_size=100), st.sampled_from([1, 3, 64])
)
@settings(max_examples=200, deadline=None)
def test_equal_packets_and_a_shorter_one_behind_them_go_together(box, sizes, most):
    count = bundle(box, np.array(sizes, np.uint64), np.uint64(most))
    vectors = box.headers.reshape(-1, 8)[:count, 3]
    assert vectors.tolist() == [len(one) for one in expected(sizes, most)]
    firsts = (box.headers.reshape(-1, 8)[:count, 2] - box.headers[2]) // np.uint64(16)
    assert firsts.tolist() == np.cumsum([0, *vectors[:-1].tolist()]).tolist()


@pytest.mark.skipif(bool(cuts_up()), reason=f"the system does not cut up buffers: {cuts_up()}")
@pytest.mark.parametrize(
    "sizes", [[56] * 64 + [39, 20, 56, 56], [1452] * 100, [1023] * 64 + [35], [1, 2, 3, 3, 2, 1] * 10, [1] * 65]
)
@pytest.mark.parametrize("group", ["239.1.1.8", "127.0.0.1"])
def test_packets_come_as_if_each_was_sent_by_itself(box, sizes, group):
    box.data[:] = np.arange(box.data.size) % 251
    listening, _ = multicast.receiver(group, 0, buffer=4 << 20)
    with listening, multicast.sender(group, listening.getsockname()[1]) as sending:
        listening.settimeout(1)
        count = bundle(box, np.array(sizes, np.uint64), np.uint64(udp_segments.MOST))
        assert count < len(sizes)
        assert send(box, np.uint64(sending.fileno()), count) == (count, len(sizes), 0)
        received = [listening.recv(4096) for _ in sizes]
    assert list(map(len, received)) == sizes
    assert b"".join(received) == box.data[: sum(sizes)].tobytes()


def received(lines, day, **options):
    """Return the packets that come by each line of a feed, and what its simulator says."""
    sockets = [multicast.receiver(*line, buffer=8 << 20)[0] for line in lines]
    with simulator.Simulator(day, lines, **options) as sending:
        sending.start()
        assert sending.wait(20)
        sent = sending.sent()
    found = []
    for one, line in zip(sockets, sent.lines, strict=True):
        with one:
            one.settimeout(1)
            found.append([one.recv(2048) for _ in range(line["sent"])])
            one.settimeout(0)
            with pytest.raises(BlockingIOError):
                one.recv(2048)
    return found, sent


@pytest.mark.skipif(bool(cuts_up()), reason=f"the system does not cut up buffers: {cuts_up()}")
@pytest.mark.parametrize(("most", "pace"), [(1, {}), (30, {}), (1, {"rate": 200_000})])
def test_both_lines_carry_the_same_packets_with_segments_and_without(most, pace):
    day, faults = synth.generate(3000, 1)[0], (Faults(0.03, 0.04, 0.05), Faults(0.3, 0.2, 0.2))
    lines = [simulator.Endpoint(group, next(_ports)) for group in simulator.GROUPS]
    options = {"most": most, "planted": faults, "seed": 3} | pace
    plain, alone = received(lines, day, segments=1, **options)
    bundled, together = received(lines, day, **options)
    assert bundled == plain
    assert alone.lines[0]["buffers"] == alone.lines[0]["sent"]
    assert together.segments == "up to 64 packets a buffer"
    assert alone.segments == "one packet a buffer (off)"
    counts = [{name: line[name] for name in ("sent", "lost", "repeated", "late")} for line in alone.lines]
    assert [{name: line[name] for name in counts[0]} for line in together.lines] == counts
    if not pace:
        assert all(line["buffers"] < line["sent"] for line in together.lines)


@pytest.mark.skipif(bool(cuts_up()), reason=f"the system does not cut up buffers: {cuts_up()}")
def test_a_system_that_refuses_is_given_each_packet_by_itself():
    day, line = synth.generate(2000, 1)[0], simulator.Endpoint("239.1.1.8", next(_ports))
    listening, _ = multicast.receiver(*line, buffer=8 << 20)
    with listening, simulator.Simulator(day, [line]) as sending:
        sending._sockets[0].setsockopt(socket.SOL_SOCKET, NO_CHECK, 1)
        sending.start()
        assert sending.wait(20)
        sent = sending.sent()
        assert sent.segments == "one packet a buffer (invalid argument)"
        assert sent.lines[0]["sent"] == 2005
        listening.settimeout(1)
        numbers = [int.from_bytes(listening.recv(2048)[10:18], "big") for _ in range(2005)]
    assert numbers == [*range(1, 2001), *[2001] * 5]


def test_a_system_without_the_option_is_asked_before():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        assert udp_segments.why_not(one) != ""
    with pytest.raises(UserError, match="a buffer takes 1 to 64 packets, not 65"):
        simulator.Simulator(b"", segments=65)
