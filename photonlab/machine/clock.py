"""The clock of all measurements: which counter is read, how fast it runs, in which steps, and what a read costs.

Timing code uses `ticks_begin`, `ticks_end`, `ticks` and `ticks_cpu` inside kernels, and `calibrate`, `floor` and
`name` outside. The processor's counter is used where it runs at a constant rate, never stops and agrees across cores;
elsewhere the same functions read clock_gettime(CLOCK_MONOTONIC), and `name` says so.
"""

import functools
import platform
import time
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from photonlab.machine import agreement, counter, system
from photonlab.machine.counter import (  # noqa: F401  (what timing code imports from here)
    NO_CPU,
    elapsed,
    monotonic_ns,
    monotonic_ns_by_system_call,
    monotonic_raw_ns,
    spans_to_ns,
    ticks,
    ticks_begin,
    ticks_cpu,
    ticks_end,
    ticks_to_ns,
)
from photonlab.machine.granularity import Step, step_of
from photonlab.machine.jit import kernel

SYSTEM_NAME = "clock_gettime(CLOCK_MONOTONIC)"
_HARDWARE_NAMES = {"x86-64": "TSC (rdtscp)", "aarch64": "cntvct_el0"}


class Choice(NamedTuple):
    """The clock that kernels read, and why it is that one."""

    name: str
    hardware: bool
    reason: str


class Calibration(NamedTuple):
    """The rate of the clock against CLOCK_MONOTONIC_RAW."""

    name: str
    hz: int
    """Ticks per second, as measured."""
    error_ppm: float
    """Median deviation of the windows from their median, or the uncertainty of one window, whichever is larger."""
    windows: tuple[int, ...]
    """Ticks per second found in each window."""
    reported_hz: int | None
    """What the system says the frequency is; None where it does not say."""
    reported_by: str

    @property
    def ticks_per_ns(self) -> float:
        """Ticks in a nanosecond."""
        return self.hz / 1e9

    def ns(self, span: float) -> float:
        """Convert a span of ticks (a difference, not a time of day) to ns."""
        return float(span) * 1e9 / self.hz


class Floor(NamedTuple):
    """The shortest that the clock can tell: below `ns`, a single sample says nothing."""

    name: str
    granularity_ticks: float
    granularity_ns: float
    on_lattice: float
    """Share of reads that support the granularity (see `granularity.Step`)."""
    smallest_step_ticks: int
    """Smallest difference between successive unordered reads that differ."""
    gcd_ticks: int
    """Greatest common divisor of such differences: not the granularity where the hardware nudges repeated reads."""
    empty_min_ns: float
    """Least reading of an empty timed region."""
    empty_median_ns: float
    empty_p99_ns: float
    cost_ns: float
    """What one timed region adds to the run: an opening and a closing read, measured in a batch."""
    ticks: int
    """The floor: what 99 of 100 empty regions read at most, and never less than one step."""
    samples: int

    @property
    def ns(self) -> float:
        """The floor in ns."""
        return max(self.granularity_ns, self.empty_p99_ns)

    def describe(self, ns: float) -> str:
        """Return a duration as text; at or below the floor without a figure (an empty body never reads 0)."""
        if ns <= self.ns:
            return f"at or below the floor ({self.ns:.1f} ns)"
        return f"{ns:,.1f} ns"


class Cost(NamedTuple):
    """What one read of a clock costs, measured in batches."""

    clock: str
    how: str
    ns: float


def unfit(root: Path = Path("/")) -> str:
    """Return why the processor's counter cannot serve as a clock, as far as the system tells; an empty text if it can.

    Parameters
    ----------
    root : Path
        The file system to read /proc and /sys from.
    """
    processor = counter.architecture()
    if processor == "aarch64":
        return ""  # by architecture the generic timer is constant, never stops, and is common to all cores
    if processor != "x86-64":
        return f"no counter is known on {platform.machine() or 'this processor'}"
    flags = cpu_flags(root)
    if not flags:
        return "the processor's flags are unknown"
    missing = [flag for flag in ("rdtscp", "constant_tsc", "nonstop_tsc") if flag not in flags]
    if missing:
        return "the processor lacks " + " and ".join(missing)
    sources = system.read_text("/sys/devices/system/clocksource/clocksource0/available_clocksource", root)
    if sources and "tsc" not in sources.split():
        return f"the kernel does not trust the TSC as a clock (it offers {sources})"
    return ""


def cpu_flags(root: Path = Path("/")) -> frozenset[str]:
    """Return the processor's feature flags by their Linux names; empty when they are unknown."""
    for line in (system.read_text("/proc/cpuinfo", root) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    if platform.system() == "Darwin":
        found = (system.sysctl("machdep.cpu.extfeatures") or "").lower().split()
        names = {"rdtscp": ("rdtscp",), "tsci": ("constant_tsc", "nonstop_tsc")}
        return frozenset(flag for word in found for flag in names.get(word, ()))
    return frozenset()


@functools.cache
def choice() -> Choice:
    """Decide which clock kernels read, once a process: by the system's word, then by a test across the cores."""
    why_not = unfit()
    if why_not:
        counter.switch(counter.SYSTEM)
        return Choice(SYSTEM_NAME, False, why_not)
    counter.switch(counter.HARDWARE)
    step = _step()
    agreed = agreement.measure(tolerance=int(np.ceil(step.ticks)) if step else 1)
    return _settle(agreed)


def _settle(agreed: agreement.Agreement) -> Choice:
    """Keep the hardware's counter unless cores were seen to disagree."""
    if agreed.agree is False:
        counter.switch(counter.SYSTEM)
        return Choice(SYSTEM_NAME, False, f"cores disagree: {agreed.note}")
    return Choice(_HARDWARE_NAMES[counter.architecture()], True, agreed.note)


def name() -> str:
    """Return the name of the clock that `ticks` and its sisters read."""
    return choice().name


@kernel
def simultaneous(out, tries):
    """Read the clock and CLOCK_MONOTONIC_RAW at nearly the same time; keep the closest of some tries.

    Parameters
    ----------
    out : ndarray of uint64, shape (3,)
        Receives ticks, ns, and the ticks that the reading took.
    tries : int64
        At least one.
    """
    out[2] = np.uint64(0xFFFFFFFFFFFFFFFF)
    for _ in range(tries):
        before = ticks_begin()
        ns = monotonic_raw_ns()
        width = elapsed(before, ticks_end())
        if width < out[2]:
            out[0] = before + (width >> np.uint64(1))
            out[1] = ns
            out[2] = width


@functools.cache
def calibrate(windows: int = 9, window_s: float = 0.01) -> Calibration:
    """Measure the clock's rate in several short windows.

    Parameters
    ----------
    windows : int
        How many; the median counts, so that an interrupted one does no harm.
    window_s : float
        Length of each in seconds.

    Returns
    -------
    Calibration
        Cached: the rate is a constant of the machine.
    """
    clock = name()
    first, last = np.zeros(3, np.uint64), np.zeros(3, np.uint64)
    rates, doubts = [], []
    for _ in range(windows):
        simultaneous(first, 20)
        time.sleep(window_s)
        simultaneous(last, 20)
        span, ns = int(last[0]) - int(first[0]), int(last[1]) - int(first[1])
        rates.append(round(span * 1_000_000_000 / ns))
        doubts.append((int(first[2]) + int(last[2])) / 2 / span * 1e6)
    hz = int(np.median(rates))
    spread = float(np.median(np.abs(np.array(rates) - hz))) / hz * 1e6
    reported, by = reported_hz()
    return Calibration(clock, hz, max(spread, float(np.median(doubts))), tuple(rates), reported, by)


def reported_hz(root: Path = Path("/")) -> tuple[int | None, str]:
    """Return the frequency that the system reports for the chosen clock, and who says so.

    Parameters
    ----------
    root : Path
        The file system to read /proc and /sys from.

    Returns
    -------
    tuple of (int or None, str)
        None with the reason when nobody says.
    """
    if not choice().hardware:
        return round(1 / time.clock_getres(time.CLOCK_MONOTONIC)), "clock_getres"
    if counter.architecture() == "aarch64":
        return int(_frequency_register()), "cntfrq_el0"
    khz = system.read_text("/sys/devices/system/cpu/cpu0/tsc_freq_khz", root) or ""
    if khz.isdecimal():
        return int(khz) * 1000, "tsc_freq_khz"
    for line in (system.read_text("/proc/cpuinfo", root) or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "bogomips" and value.strip().replace(".", "", 1).isdecimal():
            return round(float(value) / 2 * 1e6), "the kernel's bogomips / 2"
    return None, "unknown"


@kernel
def _frequency_register():
    return counter.frequency_register()


@kernel
def spans_of_reads(out, stretch):
    """Fill `out` with spans between two reads that lie further and further apart (256 lengths, in turn).

    Parameters
    ----------
    out : ndarray of uint64, shape (n,)
        Receives the spans in ticks.
    stretch : int64
        Dependent steps of about a ns for each of the 256 lengths.
    """
    for i in range(out.size):
        word = np.uint64(i) | np.uint64(1)
        before = ticks_begin()
        for _ in range((i & 255) * stretch):
            word = (word ^ (word >> np.uint64(7))) * np.uint64(0x9E3779B97F4A7C15)
        out[i] = word  # keeps the steps inside the region: the compiler moves no store across a read
        out[i] = elapsed(before, ticks_end())


@kernel
def successive_reads(out):
    """Fill `out` (uint64) with unordered reads in a row, in ticks."""
    for i in range(out.size):
        out[i] = ticks()


@kernel
def empty_regions(out):
    """Fill `out` (uint64) with the readings of timed regions with nothing in them, in ticks."""
    for i in range(out.size):
        before = ticks_begin()
        out[i] = elapsed(before, ticks_end())


def _step(samples: int = 20_000) -> Step | None:
    spans = np.zeros(samples, np.uint64)
    for stretch in (1, 64, 1024):
        count = samples if stretch == 1 else 2_000
        spans_of_reads(spans[:count], stretch)
        step = step_of(spans[:count])
        if step is not None:
            return step
    return None


@functools.cache
def floor(samples: int = 20_000) -> Floor:
    """Measure granularity and floor of the clock.

    Parameters
    ----------
    samples : int
        Reads for each of the two distributions.

    Returns
    -------
    Floor
        Cached: a constant of the machine. Its cost is that of a timed region in the quieter half of several batches.

    Raises
    ------
    RuntimeError
        If the clock does not advance at all.
    """
    calibration = calibrate()
    step = _step(samples)
    if step is None:
        raise RuntimeError(f"{calibration.name} did not advance while it was watched")
    spans = np.zeros(samples, np.uint64)
    empty_regions(spans[:100])
    empty_regions(spans)
    spans.sort()
    reads = np.zeros(samples, np.uint64)
    successive_reads(reads)
    steps = np.diff(reads)[np.diff(reads) > 0]
    batches = [_batch_ns("timed region", 5_000) for _ in range(21)]
    return Floor(
        calibration.name,
        step.ticks,
        calibration.ns(step.ticks),
        step.on_lattice,
        int(steps.min()) if steps.size else 0,
        int(np.gcd.reduce(steps)) if steps.size else 0,
        calibration.ns(spans[0]),
        calibration.ns(spans[(samples + 1) // 2 - 1]),
        calibration.ns(spans[(99 * samples + 99) // 100 - 1]),
        float(np.quantile(batches, 0.25)),
        max(int(np.ceil(step.ticks)), int(spans[(99 * samples + 99) // 100 - 1])),
        samples,
    )


_READS = ("ticks", "ticks_begin", "ticks_end", "ticks_cpu", "timed region", "clock_gettime", "system call")


@kernel
def batch_of_reads(out, reads, which):
    """Read one of the clocks many times.

    Parameters
    ----------
    out : ndarray of uint64, shape (2,)
        Receives a mixture of what was read, and the ticks that all of it took.
    reads : int64
        How many.
    which : int64
        Index in `_READS`. One kernel with a loop for each, since a kernel made in a function for each cannot be cached.
    """
    begin = ticks_begin()
    if which == 0:
        for _ in range(reads):
            out[0] ^= ticks()
    elif which == 1:
        for _ in range(reads):
            out[0] ^= ticks_begin()
    elif which == 2:
        for _ in range(reads):
            out[0] ^= ticks_end()
    elif which == 3:
        for _ in range(reads):
            now, cpu = ticks_cpu()
            out[0] ^= now ^ cpu
    elif which == 4:
        for _ in range(reads):
            before = ticks_begin()
            out[0] ^= elapsed(before, ticks_end())
    elif which == 5:
        for _ in range(reads):
            out[0] ^= monotonic_ns()
    else:
        for _ in range(reads):
            out[0] ^= monotonic_ns_by_system_call()
    out[1] = elapsed(begin, ticks_end())


def _batch_ns(what: str, reads: int) -> float:
    out = np.zeros(2, np.uint64)
    batch_of_reads(out, reads, _READS.index(what))
    return calibrate().ns(out[1]) / reads


def costs(rounds: int = 15, reads: int = 5_000) -> tuple[Cost, ...]:
    """Measure what a read of each clock costs, in turn: a batch of each, round after round; the median of the rounds.

    Parameters
    ----------
    rounds, reads : int
        Batches of each clock, and reads in a batch.

    Returns
    -------
    tuple of Cost
        The system call only on Linux. `time.perf_counter_ns` is called from Python, its call included.
    """
    clock = name()
    plans = {
        (clock, "in a kernel, unordered: ticks()"): lambda: _batch_ns("ticks", reads),
        (clock, "in a kernel: ticks_begin()"): lambda: _batch_ns("ticks_begin", reads),
        (clock, "in a kernel: ticks_end()"): lambda: _batch_ns("ticks_end", reads),
        (clock, "in a kernel, with the CPU's number: ticks_cpu()"): lambda: _batch_ns("ticks_cpu", reads),
        (SYSTEM_NAME, "in a kernel, through libc"): lambda: _batch_ns("clock_gettime", reads),
    }
    if platform.system() == "Linux" and counter.architecture() in counter.CLOCK_GETTIME_CALL:
        plans[SYSTEM_NAME, "in a kernel, by a system call"] = lambda: _batch_ns("system call", reads)
    plans["time.perf_counter_ns", "from Python"] = lambda: _python_ns(time.perf_counter_ns, reads)
    for plan in plans.values():
        plan()  # compiled, or loaded, before anything is timed
    times = [[plan() for plan in plans.values()] for _ in range(rounds)]
    return tuple(Cost(*key, float(ns)) for key, ns in zip(plans, np.median(times, axis=0), strict=True))


def _python_ns(function, calls: int) -> float:
    begin = time.perf_counter_ns()
    for _ in repeat(None, calls):
        function()
    return (time.perf_counter_ns() - begin) / calls


counter.switch(counter.SYSTEM if unfit() else counter.HARDWARE)  # until `choice` has tested the cores as well
