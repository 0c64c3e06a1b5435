"""Two spinning threads meet, are pinned, and end: by themselves, by an error, by a lost partner, by Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from photonlab import paths
from photonlab.errors import UserError
from photonlab.kernels import ring
from photonlab.machine import system
from photonlab.systems import spin
from photonlab.systems.experiments import ring_loops

U = np.uint64

two_cpus = pytest.mark.skipif(len(system.allowed_cpus()) < 2, reason="spinning threads need two CPUs")


def producer(queue, count):
    report = np.zeros(4, U)
    return lambda flags: ring_loops.produce(queue, flags, U(count), U(4), report) or report


def consumer(queue, count):
    report = np.zeros(4, U)
    return lambda flags: ring_loops.consume(queue, flags, U(count), U(4), report) or report


@two_cpus
def test_both_sides_run_at_the_same_time_each_on_a_cpu_of_its_own():
    queue = ring.make_ring(16)
    done = spin.together(producer(queue, 5000), consumer(queue, 5000))
    assert done.first[ring_loops.MESSAGES] == done.second[ring_loops.MESSAGES] == 5000
    assert done.second[ring_loops.TOTAL] == sum(8 * value + 28 for value in range(5000))
    assert done.second[ring_loops.TICKS] > 0
    assert len(set(done.cpus)) == 2
    assert system.allowed_cpus() == tuple(sorted(os.sched_getaffinity(0))), "the main thread is not pinned"
    assert done.usage.minor_faults is not None


@two_cpus
def test_a_partner_that_sends_too_little_ends_in_an_error_and_not_in_a_wait():
    queue = ring.make_ring(16)
    begin, threads = time.monotonic(), threading.active_count()
    with pytest.raises(spin.LostPartnerError, match=r"within 0\.2 s"):
        spin.together(producer(queue, 100), consumer(queue, 101), seconds=0.2)
    assert time.monotonic() - begin < 5
    assert threading.active_count() == threads


@two_cpus
def test_an_error_on_one_side_ends_the_other():
    queue, calls = ring.make_ring(16), []

    def breaks(flags):
        calls.append(flags)
        if len(calls) > 1:  # the first call is the rehearsal
            raise ZeroDivisionError("planted")

    begin, threads = time.monotonic(), threading.active_count()
    with pytest.raises(ZeroDivisionError, match="planted"):
        spin.together(breaks, consumer(queue, 10))
    assert time.monotonic() - begin < 5
    assert threading.active_count() == threads


SPINNER = """
import threading
from photonlab.kernels import ring
from photonlab.systems import spin
from tests.test_spin import consumer, producer

waiting, other = consumer(ring.make_ring(16), 10), producer(ring.make_ring(16), 1000)
threading.Timer(0.3, print, ("spinning",), {"flush": True}).start()
spin.together(other, waiting, seconds=100)
"""


@two_cpus
def test_ctrl_c_ends_spinning_threads_within_a_second():
    process = subprocess.Popen(
        [sys.executable, "-c", SPINNER], cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "spinning\n"
        time.sleep(0.3)
        assert process.poll() is None, "it waits for a message that never comes"
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        assert time.monotonic() - begin < 1
    finally:
        process.kill()
    assert process.returncode not in (0, None)
    assert "KeyboardInterrupt" in errors


def test_on_one_cpu_spinning_across_is_refused(monkeypatch):
    monkeypatch.setattr(system, "allowed_cpus", lambda: (3,))
    with pytest.raises(system.PlacementError, match="two CPUs, and this process may use only CPU 3") as caught:
        spin.together(lambda flags: None, lambda flags: None)
    assert isinstance(caught.value, UserError)


@two_cpus
def test_threads_that_cannot_be_pinned_are_labelled_as_indicative(monkeypatch):
    def refuse(cpus):
        raise system.PlacementError("cannot pin")

    monkeypatch.setattr(system, "pin", refuse)
    queue = ring.make_ring(16)
    done = spin.together(producer(queue, 50), consumer(queue, 50))
    assert done.cpus == ()
    assert done.label.startswith("indicative: not pinned")
    assert done.second[ring_loops.MESSAGES] == 50
