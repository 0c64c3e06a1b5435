"""Rounds from tick to trade between two processes: every order checked, and every way in which a run may end."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from photonlab.errors import UserError
from photonlab.machine import stream_sockets, system
from photonlab.systems import spin
from photonlab.systems.tick_to_trade import exchange as exchanges
from photonlab.systems.tick_to_trade import expected, loops, messages, run
from photonlab.systems.transports import kinds
from photonlab.systems.transports import link as links

pytestmark = pytest.mark.skipif(
    not stream_sockets.available() or len(system.allowed_cpus()) < 2, reason="Linux's calls, and two CPUs"
)


@pytest.fixture(scope="module")
def exchange():
    with run.Exchange(20_000) as one:
        yield one


@pytest.mark.parametrize("name", kinds.KINDS)
def test_every_transport_brings_every_order(exchange, name):
    placement = run.place()
    if why := kinds.refused(kinds.KINDS[name], placement.polling):
        pytest.skip(why)
    few = 100 if "SQPOLL" in name else 400
    trip = exchange.run(kinds.KINDS[name], few, warm_up=20, stages=True, placement=placement)
    assert trip.spans.shape == (few,)
    assert trip.stages.shape == (few, 7)
    assert (trip.stages[:, 1:5] > 0).all()
    assert trip.spans.min() > 0
    assert (trip.stages.sum(axis=1) == trip.spans.astype(np.int64)).all()


def test_the_last_order_has_gone_before_its_ring_is_closed(exchange):
    """A thread that polls on the engine's core has not looked at the last order when the engine is through."""
    kind, place = kinds.KINDS["io_uring SQPOLL"], run.place()
    if why := kinds.refused(kind, place.engine):
        pytest.skip(why)
    waits = kind._replace(mode=links.URING_WAITS, peer=links.SPINNING)
    for _ in range(3):
        assert exchange.run(waits, 20, placement=place._replace(polling=place.engine)).spans.size == 20


def test_an_open_loop_counts_from_when_a_tick_was_due(exchange):
    began = time.monotonic()
    trip = exchange.run(kinds.KINDS["TCP spinning"], 500, per_second=5_000)
    assert time.monotonic() - began > 0.09
    assert trip.spans.shape == (500,)


HARM = {
    "as it should be": lambda order, before: order,
    "a byte differs": lambda order, before: order[:20] + bytes([order[20] ^ 1]) + order[21:],
    "the last byte differs": lambda order, before: order[:-1] + bytes([order[-1] ^ 0x80]),
    "repeated": lambda order, before: order + order,
    "the one before": lambda order, before: before,
    "a byte too many": lambda order, before: order + b"x",
}


@pytest.mark.parametrize("harm", HARM)
def test_an_order_that_is_not_the_one_called_for_is_found(harm):
    given, orders = expected.crossing(6)
    mine, his = socket.socketpair()
    his.settimeout(5)
    end = kinds.make_end(kinds.KINDS["TCP spinning"], (mine.fileno(), mine.fileno()), 1)
    flags, report, spans = (np.zeros(64, np.uint64) for _ in range(3))
    flags[spin.MET], flags[spin.DEADLINE] = 1, spin.clock_now() + np.uint64(10**10)
    sizes = np.uint64(messages.TICK_SIZE), np.uint64(messages.ORDER_SIZE)
    ticks, wanted = expected.stream_of(given), expected.stream_of(orders)
    plan = np.array([6, 0], np.uint64)
    arguments = (plan, ticks, sizes[0], wanted, sizes[1], spans, spans.copy(), report)
    thread = threading.Thread(target=lambda: loops.quote(end.link, flags, *arguments))
    thread.start()
    his.recv(messages.TICK_SIZE, socket.MSG_WAITALL)
    for i in range(1, 6):
        assert his.recv(messages.TICK_SIZE, socket.MSG_WAITALL) == given[i].tobytes()
        order, before = orders[i].tobytes(), orders[i - 1].tobytes()
        his.sendall(HARM[harm](order, before) if i == 3 else order)
        if i == 3 and harm != "as it should be":
            break
    thread.join(5)
    his.close()
    mine.close()
    wrong = 0 if harm == "as it should be" else 4
    assert (int(report[loops.WRONG_AT]), int(report[loops.DONE])) == (wrong, 2 if wrong else 5)


def test_an_exchange_that_dies_ends_the_run_with_one_line():
    for name in ("TCP blocking", "shared memory"):
        with run.Exchange(1_000_000) as one:
            killer = threading.Timer(0.2, lambda one=one: os.kill(one.process.pid, signal.SIGKILL))
            killer.start()
            with pytest.raises(UserError, match=r"the exchange (ended with status -9|does not answer)"):
                one.run(kinds.KINDS[name], 999_000, per_second=1_000)
            killer.join()
        assert one.process.returncode == -signal.SIGKILL


def test_a_deadline_and_a_failure_end_a_run_and_leave_the_exchange_fit(exchange):
    with pytest.raises(UserError, match=r"the deadline passed after \d+ of 10000 rounds"):
        exchange.run(kinds.KINDS["TCP spinning"], 10_000, per_second=1_000, seconds=0.2)
    nowhere = run.Placement(run.place().engine, 4000, None, "")
    with pytest.raises(UserError, match="the exchange failed: cannot pin to CPU 4000"):
        exchange.run(kinds.KINDS["TCP spinning"], 10, placement=nowhere)
    with pytest.raises(UserError, match="made for 20000 ticks"):
        exchange.run(kinds.KINDS["TCP spinning"], 20_000)
    assert exchange.run(kinds.KINDS["AF_UNIX"], 10).spans.size == 10


def test_an_exchange_whose_owner_is_gone_ends_itself():
    one = run.Exchange(1_000)
    one._control.close()
    assert one.process.wait(5) == 0
    one.close()
    assert exchanges.idle_flags()[spin.STOP] == spin.ENDED


_LONG = """
from photonlab.systems.tick_to_trade import run
from photonlab.systems.transports import kinds
with run.Exchange(10_000) as one:
    print(one.process.pid, flush=True)
    one.run(kinds.KINDS["TCP spinning"], 9_000, per_second=500)
"""


def test_an_interrupt_ends_a_run_and_its_exchange():
    started = subprocess.Popen([sys.executable, "-c", _LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    exchange_id = int(started.stdout.readline())
    time.sleep(0.3)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=8)
    assert said.strip().endswith("KeyboardInterrupt")
    with pytest.raises(ProcessLookupError):
        os.kill(exchange_id, 0)
