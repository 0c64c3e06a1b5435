"""The clock: exact conversion, the named fallback, steps and floors, cores that disagree (traps 12, 14, 20, 22)."""

import os
import re
import subprocess
import sys
import time

import llvmlite.binding
import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llvmlite import ir
from numba.core import types

from photonlab.machine import agreement, clock, counter, granularity
from photonlab.machine.jit import KERNELS, kernel
from photonlab.machine.system import allowed_cpus

HARDWARE = pytest.mark.skipif(bool(clock.unfit()), reason=f"no hardware counter here: {clock.unfit()}")
TOP = 2**64 - 1


@pytest.fixture
def restored():
    """Put the switch back, and forget what was decided meanwhile."""
    before = counter.switch()
    yield
    counter.switch(before)
    for cached in (clock.choice, clock.calibrate, clock.floor):
        cached.cache_clear()


@kernel
def read_all(out):
    out[0] = clock.ticks_begin()
    out[1] = clock.ticks()
    out[2], out[3] = clock.ticks_cpu()
    out[4] = clock.ticks_end()


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [pytest.param(counter.HARDWARE, marks=HARDWARE), counter.SYSTEM])
def test_reads_never_go_backwards_and_know_their_cpu(which, restored):
    counter.switch(which)
    out = np.zeros(5, np.uint64)
    last = 0
    for _ in range(200):
        read_all(out)
        times = [int(out[i]) for i in (0, 1, 2, 4)]
        assert times == sorted(times)
        assert times[0] >= last
        last = times[-1]
        assert int(out[3]) in (*allowed_cpus(), clock.NO_CPU)


def test_compiled_kernel_obeys_the_switch(restored):
    out = np.zeros(5, np.uint64)
    read_all(out)
    signatures = len(read_all.signatures)
    counter.switch(counter.SYSTEM)
    before = time.monotonic_ns()
    read_all(out)
    after = time.monotonic_ns()
    assert before <= int(out[0]) <= int(out[4]) <= after
    assert len(read_all.signatures) == signatures


SUBPROCESS = """
import sys, time
import numpy as np
from photonlab.machine import clock, counter
counter.switch(int(sys.argv[1]))
out = np.zeros(1, np.uint64)
before = time.monotonic_ns()
clock.empty_regions(out)
clock.successive_reads(out)
print(before <= int(out[0]) <= time.monotonic_ns(), sum(clock.successive_reads.stats.cache_hits.values()))
"""


@HARDWARE
def test_kernel_from_the_disk_cache_obeys_the_switch(tmp_path):
    """A kernel compiled where the counter was fit and loaded where it is not must not go on reading the counter."""
    environment = os.environ | {"PHOTONLAB_CACHE": str(tmp_path)}

    def run(which):
        command = [sys.executable, "-c", SUBPROCESS, str(which)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=True
        ).stdout.split()

    assert run(counter.HARDWARE)[1] == "0"
    assert run(counter.SYSTEM) == ["True", "1"]


READS = {
    "x86-64": {"PLAIN": ["rdtsc"], "BEGIN": ["lfence", "rdtsc", "lfence"], "END": ["rdtscp", "lfence"]},
    "aarch64": {"PLAIN": ["mrs"], "BEGIN": ["isb", "mrs", "isb"], "END": ["isb", "mrs", "isb"]},
}


def instructions_of(text):
    return [word for word in re.findall(r"\w+", text.lower()) if word in ("lfence", "rdtsc", "rdtscp", "isb", "mrs")]


@pytest.mark.parametrize("architecture", READS)
def test_fences_of_both_architectures(architecture):
    """Seen in what is handed to the assembler; this machine's own architecture is assembled as well."""
    for name, instructions in READS[architecture].items():
        module = ir.Module()
        module.triple = llvmlite.binding.get_default_triple()
        function = ir.Function(module, ir.FunctionType(ir.IntType(64), []), "read")
        builder = ir.IRBuilder(function.append_basic_block())
        builder.ret(getattr(counter, name).build(builder, architecture))
        assert instructions_of(str(module)) == instructions
        assert ("cntvct_el0" in str(module)) == (architecture == "aarch64")
        assert str(module).count("sideeffect") == 1
        if architecture == counter.architecture():
            machine = llvmlite.binding.Target.from_default_triple().create_target_machine(opt=2)
            assembled = machine.emit_assembly(llvmlite.binding.parse_assembly(str(module)))
            assert instructions_of(assembled) == instructions


# --- conversion ------------------------------------------------------------------------------------------------------


@given(span=st.integers(0, TOP), hz=st.integers(1_000_000, 18_000_000_000))
@example(span=2**63 - 1, hz=2_599_998_140)
@example(span=2**63, hz=2_599_998_140)
@example(span=2**63 + 1, hz=1_000_000_000)
@example(span=2**53 + 1, hz=1_000_000_000)
@example(span=TOP, hz=24_000_000)
@settings(max_examples=300, deadline=None)
def test_conversion_is_exact(span, hz):
    expected = span * 10**9 // hz % 2**64
    assert clock.ticks_to_ns(np.uint64(span), np.uint64(hz)) == expected
    out = np.zeros(1, np.uint64)
    clock.spans_to_ns(np.array([span], np.uint64), np.uint64(hz), out)
    assert int(out[0]) == expected


@given(base=st.integers(2**63 - 1000, 2**63 + 1000), span=st.integers(0, 2000))
@settings(max_examples=100, deadline=None)
def test_difference_first_loses_nothing_at_large_counts(base, span):
    assert clock.elapsed(np.uint64(base), np.uint64(base + span)) == span
    assert clock.ticks_to_ns(clock.elapsed(np.uint64(base), np.uint64(base + span)), np.uint64(10**9)) == span


def test_step_backwards_is_zero_and_never_huge():
    assert clock.elapsed(np.uint64(7), np.uint64(5)) == 0
    assert clock.elapsed(np.uint64(0), np.uint64(TOP)) == TOP


def test_no_kernel_of_the_clock_is_inferred_as_float():
    words = types.Array(types.uint64, 1, "C")
    signed = types.Array(types.int64, 1, "C")
    signatures = {
        clock.elapsed: (types.uint64, types.uint64),
        clock.ticks_to_ns: (types.uint64, types.uint64),
        clock.spans_to_ns: (words, types.uint64, words),
        clock.simultaneous: (words, types.int64),
        clock.spans_of_reads: (words, types.int64),
        clock.successive_reads: (words,),
        clock.empty_regions: (words,),
        agreement.ask: (words, signed, types.int64, types.int64),
        agreement.answer: (words, types.int64, types.int64),
    }
    for function, signature in signatures.items():
        fresh = numba.njit(error_model="numpy")(function.py_func)
        fresh.compile(signature)
        inferred = fresh.overloads[signature].type_annotation.typemap
        floats = {name: kind for name, kind in inferred.items() if isinstance(kind, types.Float)}
        assert not floats, f"{function.__name__}: {floats}"


def test_that_test_can_fail():
    def mixed(x):
        total = x if x else 1
        return total + np.int64(1)

    fresh = numba.njit(mixed)
    fresh.compile((types.uint64,))
    assert types.float64 in fresh.overloads[(types.uint64,)].type_annotation.typemap.values()


# --- calibration and floor -------------------------------------------------------------------------------------------


def test_calibrated_rate_agrees_with_an_independent_clock():
    """Each reading lies between two of the other clock's: an interruption widens the bounds and breaks nothing."""
    rate = clock.calibrate()
    marks = np.zeros(5, np.uint64)

    def mark():
        before = time.clock_gettime_ns(getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC))
        read_all(marks)
        return before, int(marks[0]), time.clock_gettime_ns(getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC))

    mark()
    first_before, first, first_after = mark()
    time.sleep(0.05)
    last_before, last, last_after = mark()
    ns = rate.ns(last - first)
    slack = 1e-4 * ns + 1000
    assert last_before - first_after - slack <= ns <= last_after - first_before + slack
    assert rate.name == clock.name()
    assert rate.error_ppm >= 0
    assert len(rate.windows) == 9


def test_floor_is_consistent():
    floor = clock.floor()
    assert floor.granularity_ticks >= 1
    assert floor.on_lattice > 0.9
    assert 0 <= floor.empty_min_ns <= floor.empty_median_ns <= floor.empty_p99_ns < 1e9
    assert floor.ns >= floor.granularity_ns > 0
    assert floor.smallest_step_ticks >= floor.gcd_ticks >= 1
    assert floor.cost_ns > 0


def test_empty_body_reads_at_or_below_the_floor_and_never_as_a_figure():
    floor = clock.floor()
    for ns in (0.0, floor.granularity_ns / 2, floor.empty_min_ns, floor.ns):
        text = floor.describe(ns)
        assert text.startswith("at or below the floor (")
        assert f"{floor.ns:.1f} ns" in text
    assert floor.describe(floor.ns + 1000) == f"{floor.ns + 1000:,.1f} ns"
    spans = np.zeros(5_000, np.uint64)
    clock.empty_regions(spans)
    assert int(spans.max()) < 2**62  # no difference ever wrapped around


def test_measuring_again_compiles_nothing():
    clock.floor()
    clock.costs(rounds=1, reads=10)
    before = {name: len(dispatcher.signatures) for name, dispatcher in KERNELS.items() if ".clock." in name}
    clock.floor.cache_clear()
    clock.calibrate.cache_clear()
    clock.floor()
    clock.costs(rounds=1, reads=10)
    assert before == {name: len(dispatcher.signatures) for name, dispatcher in KERNELS.items() if ".clock." in name}


def test_costs_name_every_clock():
    costs = clock.costs(rounds=3, reads=200)
    assert {cost.clock for cost in costs} >= {clock.name(), clock.SYSTEM_NAME, "time.perf_counter_ns"}
    assert all(cost.ns > 0 for cost in costs)
    assert len({(cost.clock, cost.how) for cost in costs}) == len(costs)


def test_fallback_measures_itself(restored, monkeypatch):
    monkeypatch.setattr(clock, "unfit", lambda root=None: "planted: no counter")
    for cached in (clock.choice, clock.calibrate, clock.floor):
        cached.cache_clear()
    assert clock.choice() == (clock.SYSTEM_NAME, False, "planted: no counter")
    assert counter.switch() == counter.SYSTEM
    rate = clock.calibrate()
    assert rate.name == clock.SYSTEM_NAME
    assert rate.hz == pytest.approx(1e9, rel=1e-2)
    assert rate.reported_by == "clock_getres"
    assert clock.floor().name == clock.SYSTEM_NAME


# --- steps -----------------------------------------------------------------------------------------------------------


def simulated_spans(step, nudge, seed=7, count=20_000):
    """Spans of a clock that advances by `step` ticks, rounded to whole ticks; some reads are interrupted."""
    rng = np.random.default_rng(seed)
    begin = rng.uniform(0, 1e6, count)
    length = 15 + (np.arange(count) % 256) * (3 * step + 100) / 256 + rng.exponential(2, count)
    length[rng.random(count) < 0.01] += 50_000
    first, last = (np.floor(np.floor(t / step) * step) for t in (begin, begin + length))
    if nudge:
        last = np.where(last == first, first + 1, last)
    return (last - first).astype(np.uint64)


@pytest.mark.parametrize("nudge", [False, True])
@pytest.mark.parametrize("step", [1, 2, 4, 10, 26, 26.5, 125 / 3, 100, 1000])
def test_step_of_a_simulated_clock(step, nudge):
    found = granularity.step_of(simulated_spans(step, nudge))
    assert found.ticks == pytest.approx(step, rel=2e-3)
    assert found.on_lattice >= 0.98


def test_step_is_not_the_common_divisor_where_reads_are_nudged():
    spans = simulated_spans(26, nudge=True)
    assert np.gcd.reduce(spans) == 1
    assert granularity.step_of(spans).ticks == 26


def test_step_of_next_to_nothing():
    assert granularity.step_of([]) is None
    assert granularity.step_of([0] * 1000) is None
    assert granularity.step_of([5]).ticks == 5
    assert granularity.step_of([0] * 1000 + [10**6] * 3).ticks == 10**6
    assert granularity.step_of([0, 1] * 50).ticks == 1


# --- choice ----------------------------------------------------------------------------------------------------------

GOOD = "flags\t\t: fpu rdtscp constant_tsc nonstop_tsc movbe\n"


@pytest.mark.parametrize(
    ("cpuinfo", "sources", "expected"),
    [
        (GOOD, "tsc kvm-clock", ""),
        (GOOD, None, ""),
        (GOOD.replace("constant_tsc ", ""), "tsc", "lacks constant_tsc"),
        (GOOD.replace("nonstop_tsc ", ""), "tsc", "lacks nonstop_tsc"),
        (GOOD.replace("rdtscp constant_tsc nonstop_tsc", ""), "tsc", "lacks rdtscp and constant_tsc and nonstop_tsc"),
        (GOOD, "hpet acpi_pm", "does not trust the TSC"),
        (None, "tsc", "flags are unknown"),
        ("\xff\x00 garbage", "tsc", "flags are unknown"),
    ],
)
def test_counter_is_used_only_where_it_is_fit(tmp_path, monkeypatch, cpuinfo, sources, expected):
    monkeypatch.setattr(counter, "architecture", lambda: "x86-64")
    monkeypatch.setattr(clock.platform, "system", lambda: "Linux")
    folder = tmp_path / "sys/devices/system/clocksource/clocksource0"
    folder.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    if cpuinfo is not None:
        (tmp_path / "proc/cpuinfo").write_text(cpuinfo)
    if sources is not None:
        (folder / "available_clocksource").write_text(sources + "\n")
    reason = clock.unfit(tmp_path)
    assert (expected in reason) if expected else reason == ""


def test_other_architectures(monkeypatch, tmp_path):
    monkeypatch.setattr(counter, "architecture", lambda: "aarch64")
    assert clock.unfit(tmp_path) == ""
    monkeypatch.setattr(counter, "architecture", lambda: "")
    assert "no counter is known" in clock.unfit(tmp_path)


def test_disagreeing_cores_bring_the_named_fallback(restored):
    counter.switch(counter.HARDWARE)
    chosen = clock._settle(agreement.judge([agreement.Pair(0, 3, 900, 1500, 100)], tolerance=26))
    assert chosen.name == clock.SYSTEM_NAME
    assert not chosen.hardware
    assert "CPU 3 is 900 to 1500 ticks ahead of CPU 0" in chosen.reason
    out = np.zeros(5, np.uint64)
    before = time.monotonic_ns()
    read_all(out)
    assert before <= int(out[0]) <= time.monotonic_ns()


@pytest.mark.parametrize(
    ("pairs", "agree"),
    [
        ([(0, 1, -200, 90, 50)], True),
        ([(0, 1, 20, 90, 50)], True),  # within the counter's own step
        ([(0, 1, 27, 90, 50)], False),
        ([(0, 1, -90, -27, 50)], False),
        ([(0, 1, -200, 90, 50), (0, 2, -5000, -4000, 50)], False),
        ([(0, 1, -200, 90, 50), (0, 2, 0, 0, 0)], None),
        ([], None),
    ],
)
def test_judgement_of_offsets(pairs, agree):
    assert agreement.judge([agreement.Pair(*pair) for pair in pairs], tolerance=26).agree is agree


@pytest.mark.skipif(len(allowed_cpus()) < 2, reason="one CPU")
@pytest.mark.parametrize("skew", [0, 50_000_000, -50_000_000])
def test_planted_skew_between_cores_is_found(skew):
    first, other = allowed_cpus()[:2]
    pair = agreement.compare(first, other, skew=skew, patience=2_000_000_000)  # patient: the other CPU may be busy
    assert pair.rounds > 0
    assert pair.low <= skew + 10_000_000
    assert pair.high >= skew - 10_000_000
    assert agreement.judge([pair], tolerance=1_000).agree is (skew == 0)


def test_one_cpu_has_nobody_to_disagree_with(monkeypatch):
    monkeypatch.setattr(agreement, "allowed_cpus", lambda: (0,))
    assert agreement.measure(1).agree is True


def test_silent_partner_ends_the_test(monkeypatch):
    """Nobody answers: the question gives up after its patience instead of spinning for ever."""
    low_high = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert agreement.ask(np.zeros(agreement._WORDS, np.uint64), low_high, 10, 1000) == 0
    agreement.answer(np.zeros(agreement._WORDS, np.uint64), 1000, 0)
