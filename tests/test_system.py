"""Placement that is read back (trap 23), and contamination counters on systems that tell little or nonsense."""

import os
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.errors import UserError
from photonlab.machine import system
from photonlab.machine.memory import huge_array

ALLOWED = system.allowed_cpus()
LINUX = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
ABSENT = 1023  # within the kernel's mask, beyond any CPU of a test machine


def write(root, path, text):
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


@LINUX
def test_a_cpu_silently_dropped_is_noticed():
    os.sched_setaffinity(0, {ALLOWED[0], ABSENT})  # what the kernel does, without a word
    assert system.allowed_cpus() == (ALLOWED[0],)
    os.sched_setaffinity(0, ALLOWED)
    with pytest.raises(
        system.PlacementError, match=rf"asked for CPU {ALLOWED[0]}, {ABSENT}, granted only {ALLOWED[0]}"
    ):
        system.pin([ALLOWED[0], ABSENT])
    assert system.allowed_cpus() == ALLOWED


@LINUX
@pytest.mark.parametrize("cpus", [[ABSENT], [], [-1], [1 << 40]])
def test_impossible_placements_are_the_users_error_and_change_nothing(cpus):
    with pytest.raises(UserError, match="cannot pin to CPU"):
        system.pin(cpus)
    assert system.allowed_cpus() == ALLOWED


@LINUX
def test_pinned_block_is_pinned_and_put_back_even_after_an_error():
    with system.pinned([ALLOWED[-1]]) as placement:
        assert placement == ((ALLOWED[-1],), (ALLOWED[-1],), "")
        assert system.allowed_cpus() == (ALLOWED[-1],)
    assert system.allowed_cpus() == ALLOWED
    with pytest.raises(ZeroDivisionError), system.pinned([ALLOWED[0]]):
        raise ZeroDivisionError
    assert system.allowed_cpus() == ALLOWED


@LINUX
def test_placement_that_cannot_be_had_is_labelled_or_raised():
    with system.pinned([ALLOWED[0], ABSENT]) as placement:
        assert placement.label.startswith("indicative: not pinned (asked for CPU")
        assert placement.granted == ALLOWED == system.allowed_cpus()
    with pytest.raises(system.PlacementError), system.pinned([ABSENT], strict=True):
        pass


@LINUX
def test_only_the_calling_thread_is_pinned():
    seen = []

    def pinned_thread():
        system.pin([ALLOWED[0]])
        seen.append(system.allowed_cpus())

    thread = threading.Thread(target=pinned_thread)
    thread.start()
    thread.join()
    assert seen == [(ALLOWED[0],)]
    assert system.allowed_cpus() == ALLOWED


def test_a_system_without_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    with pytest.raises(system.PlacementError, match="has no thread affinity"):
        system.pin([0])
    with system.pinned([0]) as placement:
        assert "indicative: not pinned" in placement.label
        assert placement.granted == tuple(range(os.cpu_count()))


def test_choice_prefers_isolated_cpus_then_cores_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "allowed_cpus", lambda: (0, 1, 2, 3, 4, 5))
    for cpu in range(6):  # cores {0, 3}, {1, 4}, {2, 5}
        write(tmp_path, f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", f"{cpu % 3},{cpu % 3 + 3}\n")
    assert system.choose_cpus(3, tmp_path) == (5, 4, 3)
    assert system.choose_cpus(4, tmp_path) == (5, 4, 3, 2)
    write(tmp_path, "/sys/devices/system/cpu/isolated", "1\n")
    assert system.choose_cpus(2, tmp_path) == (1, 5)
    assert system.choose_cpus(99, tmp_path) == (1, 5, 3, 4, 2, 0)
    assert system.placement_label((1, 5), 2, tmp_path) == ""
    assert system.placement_label((1, 4), 2, tmp_path) == "indicative: threads share a core"
    assert system.placement_label((1,), 2, tmp_path) == "indicative: 2 threads on 1 CPU"
    write(tmp_path, "/proc/cpuinfo", "flags : fpu hypervisor\n")
    assert system.placement_label((1, 5), 2, tmp_path).startswith("virtual CPUs")


def test_choice_without_any_topology(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "allowed_cpus", lambda: (2, 7))
    assert system.choose_cpus(1, tmp_path) == (7,)
    assert system.choose_cpus(3, tmp_path) == (7, 2)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,8,10-11\n", (0, 1, 2, 3, 8, 10, 11)),
        ("5", (5,)),
        ("", ()),
        (None, ()),
        ("0-", ()),
        ("3-1", ()),
        ("0,x", ()),
        ("managed_irq,1-3", ()),
        ("0-99999999999", ()),
    ],
)
def test_lists_of_cpus(text, cpus):
    assert system.parse_cpus(text) == cpus


@given(st.sets(st.integers(0, 4095), min_size=1))
@settings(deadline=None)
def test_lists_of_cpus_in_any_order(cpus):
    assert system.parse_cpus(",".join(map(str, sorted(cpus, reverse=True)))) == tuple(sorted(cpus))


@given(st.text(max_size=30))
@settings(deadline=None)
def test_no_text_breaks_the_list(text):
    assert isinstance(system.parse_cpus(text), tuple)


@pytest.mark.parametrize("text", [None, "", "1 2", "1 2 3 4", "a b c", b"\xff\xfe\x00"])
def test_run_delay_that_cannot_be_read(tmp_path, text):
    if text is not None:
        write(tmp_path, "/proc/thread-self/schedstat", text)
    assert system.run_delay(tmp_path) is None


def test_run_delay_and_steal_and_pressure(tmp_path):
    write(tmp_path, "/proc/thread-self/schedstat", "0 1076942 1\n")
    assert system.run_delay(tmp_path) == system.RunDelay(0, 1076942, 1)
    write(tmp_path, "/proc/stat", "cpu  10912 0 4868 179302 721 0 82 18 0 0\ncpu0 1 2 3\n")
    assert system.steal_ns(tmp_path) == 18 * 10**9 // os.sysconf("SC_CLK_TCK")
    write(tmp_path, "/proc/pressure/cpu", "some avg10=2.25 avg60=1.01 avg300=0.58 total=6833909\n")
    assert system.pressure(tmp_path) == 0.0225
    assert system.pressure_ns(tmp_path) == 6_833_909_000


@pytest.mark.parametrize("text", [None, "", "cpu 1 2 3", "cpu a b c d e f g h i", "intr 5", b"\xff" * 40])
def test_steal_and_pressure_that_cannot_be_read(tmp_path, text):
    if text is not None:
        write(tmp_path, "/proc/stat", text)
        write(tmp_path, "/proc/pressure/cpu", text)
    assert system.steal_ns(tmp_path) is None
    assert system.pressure(tmp_path) is None
    assert system.pressure_ns(tmp_path) is None


def test_an_unknown_counter_stays_unknown():
    before = system.Usage(5, None, 10, 0, 1, 2)
    after = system.Usage(2_000_005, 7, 14, 0, None, 2)
    assert after.since(before) == system.Usage(2_000_000, None, 4, 0, None, 0)
    assert after.since(before).label() == "waited 2.0 ms for a CPU"
    assert after.since(before).label(tolerated_ns=5_000_000) == ""
    assert system.Usage(None, 10_000_000, 0, 0, 0, 0).label() == "the host took 10 ms of CPU time"
    assert system.Usage(*[None] * 6).label() == ""


def test_page_faults_of_a_block_are_counted():
    with system.Watch() as untouched:
        area = huge_array(4 << 20, np.uint8, huge=False)
    with system.Watch() as touched:
        area[::4096] = 1
    assert touched.usage.minor_faults >= 1000 > untouched.usage.minor_faults


@pytest.mark.parametrize("make", ["missing", "folder", "garbage"])
def test_reading_text_never_raises(tmp_path, make):
    if make == "folder":
        (tmp_path / "proc/file").mkdir(parents=True)
    if make == "garbage":
        write(tmp_path, "/proc/file", bytes(range(256)))
    text = system.read_text("/proc/file", tmp_path)
    assert (text is None) == (make != "garbage")
    assert system.read_text("/proc/\0", tmp_path) is None
