"""Hardware counters: what refuses is found out and said, and what cannot be counted is None (claims R6, M3)."""

import errno
import os
import struct
import sys

import numpy as np
import pytest

from photonlab.machine import perf_events
from photonlab.machine.memory import huge_array

DUMMY, TASK_CLOCK = 9, 1


def can_count(event):
    try:
        os.close(perf_events.open_event(1, event))
    except OSError:
        return False
    return True


COUNTS = pytest.mark.skipif(not can_count(TASK_CLOCK), reason="this system counts nothing at all")


def refusing(number):
    def opener(kind, config, leader=-1):
        raise OSError(number, os.strerror(number))

    return opener


def standing_in(event):
    """Open a software event wherever a hardware event is asked for: a machine with counters, for tests."""

    def opener(kind, config, leader=-1):
        return perf_events.open_event(1, event if kind != 1 else config, leader)

    return opener


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOSYS, errno.EMFILE, errno.EBADMSG])
@pytest.mark.parametrize("level", ["2", None])
def test_refusal_is_explained_by_what_was_found(tmp_path, number, level):
    if level:
        (tmp_path / "proc/sys/kernel").mkdir(parents=True)
        (tmp_path / "proc/sys/kernel/perf_event_paranoid").write_text(level)
        (tmp_path / "sys/bus/event_source/devices/software").mkdir(parents=True)
    found = perf_events.find(refusing(number), tmp_path)
    assert found.available == dict.fromkeys(perf_events.EVENTS, False)
    assert not found.hardware
    assert errno.errorcode[number] in found.reason
    assert f"perf_event_paranoid is {level or 'unknown'}" in found.reason
    assert f"counting units of the kernel: {'software' if level else 'unknown'}" in found.reason
    assert perf_events.count(lambda: None, refusing(number)) == dict.fromkeys(perf_events.EVENTS)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT])
@COUNTS
def test_one_missing_pair_leaves_the_others(number):
    works = standing_in(TASK_CLOCK)

    def opener(kind, config, leader=-1):
        if (kind, config) == perf_events.EVENTS["dTLB-load-misses"]:
            raise OSError(number, os.strerror(number))
        return works(kind, config, leader)

    found = perf_events.find(opener)
    assert not found.available["dTLB-loads"]  # half a ratio is no use
    assert not found.available["dTLB-load-misses"]
    assert found.available["cycles"]
    counted = perf_events.count(lambda: sum(range(100_000)), opener)
    assert counted["dTLB-loads"] is None
    assert counted["cycles"] > 0
    rates = perf_events.rates(counted)
    assert rates["dTLB-miss rate"] is None
    assert rates["IPC"] == pytest.approx(1, rel=0.5)  # two counts of the same clock


@COUNTS
def test_counter_that_opens_and_never_moves_is_not_available():
    found = perf_events.find(standing_in(DUMMY))
    assert not found.available["cycles"]
    assert not found.hardware
    assert "opens but never counts" in found.reason


@COUNTS
def test_working_counters_need_no_explanation():
    found = perf_events.find(standing_in(TASK_CLOCK))
    assert found.hardware
    if all(found.available.values()):
        assert found.reason == ""


def test_this_machine():
    found = perf_events.probe()
    assert list(found.available) == list(perf_events.EVENTS)
    assert (found.reason == "") == all(found.available.values())
    counted = perf_events.count(lambda: sum(range(1_000_000)))
    assert list(counted) == list(perf_events.EVENTS)
    for name, value in counted.items():
        if not found.available[name] and name not in perf_events.HARDWARE_EVENTS:
            assert value is None
    for name in ("IPC", "branch-miss rate"):
        over, under = perf_events.RATES[name]
        if not (found.available[over] and found.available[under]):
            assert not perf_events.rates(counted)[name]
    assert found is perf_events.probe()


@pytest.mark.skipif(not perf_events.probe().available["page-faults"], reason="page faults are not counted here")
def test_page_faults_are_counted():
    area = huge_array(4 << 20, np.uint8, huge=False)

    def touch():
        area[::4096] = 1

    assert perf_events.count(touch)["page-faults"] >= 1000
    assert perf_events.count(touch)["page-faults"] < 1000  # they are there now


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_descriptors_are_closed_even_after_an_error():
    before = len(os.listdir("/proc/self/fd"))
    perf_events.count(lambda: None)
    with pytest.raises(ZeroDivisionError):
        perf_events.count(lambda: 1 / 0)
    perf_events.find()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("enabled", "running", "values", "expected"),
    [
        (100, 100, (7, 9), {"a": 7, "b": 9}),
        (100, 25, (7, 9), {"a": 28, "b": 36}),  # had the hardware a quarter of the time
        (100, 0, (0, 0), {"a": None, "b": None}),  # never had it: not zero
        (2**62, 2**61, (2**40 + 1, 3), {"a": 2**41 + 2, "b": 6}),
    ],
)
def test_scaling_by_time_on_the_hardware(enabled, running, values, expected):
    reader, writer = os.pipe()
    os.write(writer, struct.pack("=5Q", 2, enabled, running, *values))
    assert perf_events._values({"a": reader, "b": -1}) == expected
    os.close(reader)
    os.close(writer)


def test_rates_of_nothing():
    assert perf_events.rates(dict.fromkeys(perf_events.EVENTS)) == dict.fromkeys(perf_events.RATES)
    assert perf_events.rates(dict.fromkeys(perf_events.EVENTS, 0)) == dict.fromkeys(perf_events.RATES)
    assert perf_events.rates(dict.fromkeys(perf_events.EVENTS, 5))["IPC"] == 1.0
