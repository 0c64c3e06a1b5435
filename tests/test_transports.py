"""Transports: the same bytes by every one of them, byte by byte too; a peer that is gone; a stop; refusals."""

import os
import socket

import numpy as np
import pytest

from photonlab.machine import io_uring, stream_sockets
from photonlab.systems import spin
from photonlab.systems.transports import echo, kinds
from photonlab.systems.transports import link as links

pytestmark = pytest.mark.skipif(not stream_sockets.available(), reason="Linux's calls")


def round_trips(name, count, size=64, piece=None):
    kind = kinds.KINDS[name]
    cpu = spin.placement()[0][1]
    if why := kinds.refused(kind, cpu):
        pytest.skip(why)
    ends, spans, seen = kinds.open_ends(kind), np.zeros(count, np.uint64), []
    kinds.prepare(kind, ends)

    def side(number):
        descriptors = ends.theirs if number else ends.mine

        def run(flags):
            end = kinds.make_end(kind, descriptors, number, cpu)
            if piece:
                end.link.words[links.PIECE] = piece
            try:
                if number:
                    return int(echo.pong(end.link, flags, np.uint64(size), np.uint64(count)))
                return int(echo.ping(end.link, flags, np.uint64(size), np.uint64(count), spans))
            finally:
                seen.append(end.link.words.copy())
                end.close()

        return run

    try:
        done = spin.together(side(0), side(1), seconds=20)
    finally:
        ends.close()
    return done.first, done.second, seen


@pytest.mark.parametrize("name", [name for name, kind in kinds.KINDS.items() if kind.family != kinds.MULTICAST])
def test_bytes_come_back_as_they_went(name):
    few = 40 if "SQPOLL" in name else 300
    first, second, _ = round_trips(name, few)
    assert (first, second) == (few, few)


@pytest.mark.parametrize("name", ["TCP blocking", "TCP spinning", "TCP epoll spinning", "AF_UNIX", "shared memory",
                                  "io_uring", "io_uring DEFER_TASKRUN", "io_uring registered",
                                  "io_uring multishot"])  # fmt: skip
def test_bytes_that_go_one_by_one_make_whole_messages(name):
    first, second, seen = round_trips(name, 20, size=150, piece=1)
    assert (first, second) == (20, 20)
    assert max(int(words[links.SHORT]) for words in seen) > 100


def test_bytes_that_a_polling_thread_sends_one_by_one_make_whole_messages():
    first, second, seen = round_trips("io_uring SQPOLL", 3, size=20, piece=1)
    assert (first, second) == (3, 3)
    assert max(int(words[links.SHORT]) for words in seen) > 20


@pytest.mark.parametrize("name", ["TCP blocking", "TCP spinning", "TCP epoll spinning", "AF_UNIX", "io_uring",
                                  "io_uring SQPOLL", "io_uring multishot"])  # fmt: skip
def test_a_peer_that_is_gone_ends_the_wait(name):
    kind = kinds.KINDS[name]
    if why := kinds.refused(kind):
        pytest.skip(why)
    ends, cpu = kinds.open_ends(kind), spin.placement()[0][1]
    seen = []

    def gone(flags):
        end = kinds.make_end(kind, ends.mine, 0, cpu)
        done = echo.ping(end.link, flags, np.uint64(64), np.uint64(100), np.zeros(100, np.uint64))
        seen.append((int(done), int(end.link.words[links.WHY])))
        end.close()

    def going(flags):
        end = kinds.make_end(kind, ends.theirs, 1)
        echo.pong(end.link, flags, np.uint64(64), np.uint64(5))
        if flags[spin.STOP] == 0:
            with socket.socket(fileno=os.dup(ends.theirs[0])) as other:
                other.shutdown(socket.SHUT_RDWR)
        end.close()

    spin.together(gone, going, seconds=20)
    ends.close()
    assert seen[-1][0] == 5
    assert seen[-1][1] in (int(stream_sockets.CLOSED), 104)


@pytest.mark.parametrize("name", ["TCP blocking", "TCP spinning", "AF_UNIX", "shared memory", "io_uring",
                                  "io_uring SQPOLL", "io_uring multishot"])  # fmt: skip
def test_a_peer_that_says_nothing_is_waited_for_until_the_deadline(name):
    kind = kinds.KINDS[name]
    if why := kinds.refused(kind):
        pytest.skip(why)
    ends, cpu = kinds.open_ends(kind), spin.placement()[0][1]
    kinds.prepare(kind, ends)

    def waits(flags):
        end = kinds.make_end(kind, ends.mine, 0, cpu)
        echo.ping(end.link, flags, np.uint64(64), np.uint64(1), np.zeros(1, np.uint64))
        end.close()

    def silent(flags):
        end = kinds.make_end(kind, ends.theirs, 1)
        echo.pong(end.link, flags, np.uint64(64), np.uint64(0))
        end.close()

    with pytest.raises(spin.LostPartnerError):
        spin.together(waits, silent, seconds=0.3)
    ends.close()


def test_a_ring_that_cannot_be_says_why():
    why = io_uring.refused(io_uring.SQPOLL | io_uring.DEFER_TASKRUN)
    assert why.startswith("io_uring is refused: ")


@pytest.mark.parametrize("buffers", [(1, 8), (2, 64), (4, 16), (16, 2048)])
def test_a_receive_with_many_answers_loses_nothing_when_buffers_run_out(monkeypatch, buffers):
    monkeypatch.setattr(kinds, "BUFFERS", buffers)
    first, second, seen = round_trips("io_uring multishot", 20, size=300)
    assert (first, second) == (20, 20)
    asked = max(int(words[links.ASKED_AGAIN]) for words in seen)
    assert asked == 1 if buffers[0] * buffers[1] > 300 else asked > 20


@pytest.mark.parametrize("result", [-22, -105])
def test_a_kernel_without_multishot_is_told_by_a_trial(monkeypatch, result):
    assert io_uring.refused(io_uring.SINGLE_ISSUER, many=True) == ""
    monkeypatch.setattr(io_uring, "window", lambda address, size: np.array([0, 0, result, 0], np.int32).view(np.uint32))
    assert io_uring.refused(0, many=True).startswith("multishot receive is refused: ")

    def without(*_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(io_uring, "register_buffers", without)
    said = "multishot receive is refused: a ring of buffers cannot be registered (Invalid argument)"
    assert io_uring.refused(0, many=True) == said
