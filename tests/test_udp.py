"""UDP by kernels: what is sent is received, cut packets and losses are told, and each failure says what to mend."""

import socket

import numpy as np
import pytest

from photonlab.errors import UserError
from photonlab.machine import multicast, udp
from photonlab.machine.jit import kernel

pytestmark = pytest.mark.skipif(not udp.available(), reason="no recvmmsg")
GROUP = "239.1.1.7"


@kernel
def receive(box, fd, how):
    return udp.receive(box, fd, np.uint64(256), how)


@kernel
def send_all(box, fd, count, begin, size, step):
    for i in range(count):
        udp.put(box, np.uint64(i), begin + np.uint64(i) * step, size)
    return udp.send(box, fd, np.uint64(0), count, np.uint64(0))


@kernel
def facts(box, i):
    stamp, lost = udp.notes(box, i)
    return udp.begin(box, i), udp.size(box, i), udp.cut(box, i), stamp, lost


@kernel
def echo(box, answers, fd):
    udp.put(answers, np.uint64(0), np.uint64(0), np.uint64(4))
    udp.answer_to(answers, np.uint64(0), box, np.uint64(0))
    return udp.send(answers, fd, np.uint64(0), np.uint64(1), np.uint64(0))


@kernel
def wait(fds, address, milliseconds):
    return udp.wait(fds, address, milliseconds)


@pytest.fixture
def pair():
    listening, granted = multicast.receiver(GROUP, 0, "lo", stamps=True, seconds=0.05)
    with listening, multicast.sender(GROUP, listening.getsockname()[1], "lo") as sending:
        yield listening, sending, granted


def of(one):
    return np.uint64(one.fileno())


@pytest.mark.parametrize("singly", [0, 1])
def test_packets_come_as_they_were_sent(pair, singly):
    listening, sending, granted = pair
    assert granted.buffer >= 200_000
    assert granted.losses
    out, box = udp.make_box(64, 100), udp.make_box(32, 100, notes=True)
    out.data[: 40 * 10], out.state[udp.SINGLY] = np.arange(400) % 251, singly
    box.state[udp.SINGLY] = singly
    sent = send_all(out, of(sending), np.uint64(40), np.uint64(0), np.uint64(10), np.uint64(10))
    assert sent == (40, 0)
    received = b""
    for expected in (32, 8, 0):
        count, why = receive(box, of(listening), udp.NOW)
        assert (count, why) == (expected, 0)
        for i in range(count):
            begin, size, cut, stamp, lost = facts(box, np.uint64(i))
            assert (size, cut, lost) == (10, False, 0)
            assert stamp > 1_600_000_000 * 10**9
            received += box.data[begin : begin + size].tobytes()
    assert received == out.data[:400].tobytes()


def test_a_longer_packet_is_known_to_be_cut(pair):
    listening, sending, _ = pair
    box = udp.make_box(4, 50)
    sending.send(bytes(51))
    sending.send(bytes(50))
    assert receive(box, of(listening), udp.NOW) == (2, 0)
    assert [facts(box, np.uint64(i))[2] for i in range(2)] == [True, False]


def test_waiting_ends_by_itself_and_by_a_packet(pair):
    listening, sending, _ = pair
    box, fds = udp.make_box(4, 50), udp.to_wait_for(listening)
    address = udp.address_of(fds)
    assert receive(box, of(listening), udp.FIRST) == (0, 0)
    assert wait(fds, address, np.uint64(5)) == 0
    sending.send(b"now")
    assert wait(fds, address, np.uint64(1000)) == 1
    assert receive(box, of(listening), udp.FIRST) == (1, 0)


def test_a_socket_counts_what_it_loses():
    listening, _ = multicast.receiver(GROUP, 0, "lo", buffer=4096)
    # a forced buffer is at least a few kB: some packets fit, the others do not
    box = udp.make_box(256, 200, notes=True)
    with listening, multicast.sender(GROUP, listening.getsockname()[1], "lo") as sending:
        for _ in range(100):
            sending.send(bytes(100))
        kept, _ = receive(box, of(listening), udp.NOW)
        sending.send(b"end")
        count, _ = receive(box, of(listening), udp.NOW)
        assert 0 < kept < 100
        assert count == 1
        assert facts(box, np.uint64(0))[4] == 100 - kept


def test_an_answer_goes_to_who_asked():
    serving, _ = multicast.receiver("127.0.0.1", 0)
    box, answers = udp.make_box(1, 100, names=True), udp.make_box(1, 100, names=True)
    answers.data[:4] = list(b"gone")
    with serving, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(1)
        asking.sendto(b"?", serving.getsockname())
        assert receive(box, of(serving), udp.FIRST) == (1, 0)
        assert echo(box, answers, of(serving)) == (1, 0)
        assert asking.recv(10) == b"gone"


@pytest.mark.parametrize("singly", [0, 1])
def test_nobody_there_is_counted_and_a_bad_socket_is_an_error(singly):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    box = udp.make_box(2, 100)
    box.state[udp.SINGLY] = singly
    with multicast.sender("127.0.0.1", port) as sending:
        assert send_all(box, of(sending), np.uint64(1), np.uint64(0), np.uint64(1), np.uint64(1)) == (1, 0)
        assert send_all(box, of(sending), np.uint64(1), np.uint64(0), np.uint64(1), np.uint64(1)) == (0, 0)
        assert box.state[udp.REFUSED] == 1
        closed = of(sending)
    assert receive(box, closed, udp.NOW) == (0, 9)
    assert send_all(box, closed, np.uint64(1), np.uint64(0), np.uint64(1), np.uint64(1)) == (0, 9)


def test_multicast_works_on_loopback():
    assert multicast.why_not("lo") == ""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: multicast.receiver(GROUP, 0, "none0"), "interface none0: there is none of this name; there are lo"),
        (lambda: multicast.receiver(GROUP, 0, "192.0.2.9"), "cannot be joined on 192.0.2.9: no interface"),
        (lambda: multicast.receiver("nobody", 0), "nobody: expected an IPv4 address"),
        (lambda: multicast.receiver("192.0.2.9", 0), "cannot be received on"),
        (lambda: multicast.sender(GROUP, 70_000), "a port is a number from 0 to 65,535, not 70000"),
        (lambda: multicast.sender(GROUP, 5, "192.0.2.9"), "cannot be sent to on 192.0.2.9"),
    ],
)
def test_what_cannot_be_says_what_to_mend(call, said):
    with pytest.raises(UserError, match=said.replace(".", r"\.")):
        call()


def test_a_port_in_use_is_named(pair):
    port = pair[0].getsockname()[1]
    with pytest.raises(UserError, match=f"{GROUP}:{port}: the port is in use"):
        multicast.receiver(GROUP, port, "lo")
