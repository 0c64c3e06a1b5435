"""What the operating system decides for a measurement: where it runs, how long it waited, and what it paged in.

Nothing here is assumed. A placement is read back after it was asked for (the kernel silently drops CPUs that a thread
may not use), and a figure that the system does not give is None.
"""

import contextlib
import os
import platform
import subprocess
from pathlib import Path
from typing import NamedTuple

from photonlab.errors import UserError

try:
    import resource
except ImportError:  # not a POSIX system: no page-fault counts
    resource = None

_ROOT = Path("/")


class PlacementError(UserError):
    """A thread could not be put on the CPUs that were asked for; the message names them and those that it may use."""


class Placement(NamedTuple):
    """Where a thread was to run and where it may run."""

    requested: tuple[int, ...]
    granted: tuple[int, ...]
    label: str
    """Empty when the placement is as requested; otherwise what to print beside the numbers (claim M4)."""


class RunDelay(NamedTuple):
    """The scheduler's account of this thread since it began."""

    running_ns: int
    waiting_ns: int
    """Runnable but not running: somebody else had the CPU. The best sign of a contaminated measurement."""
    slices: int


class Usage(NamedTuple):
    """Counters of contamination at one moment; None where the system does not tell. `since` gives the difference."""

    waiting_ns: int | None
    steal_ns: int | None
    minor_faults: int | None
    major_faults: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None

    def since(self, before: "Usage") -> "Usage":
        """Return what was added after `before` was taken."""
        pairs = zip(self, before, strict=True)
        return Usage(*(None if now is None or then is None else now - then for now, then in pairs))

    def label(self, tolerated_ns: int = 1_000_000) -> str:
        """Return what disturbed the measurement, or an empty text.

        Parameters
        ----------
        tolerated_ns : int
            Waiting or steal time up to this is not worth a word.
        """
        words = []
        if self.waiting_ns is not None and self.waiting_ns > tolerated_ns:
            words.append(f"waited {self.waiting_ns / 1e6:.1f} ms for a CPU")
        if self.steal_ns is not None and self.steal_ns > tolerated_ns:
            words.append(f"the host took {self.steal_ns / 1e6:.0f} ms of CPU time")
        return "; ".join(words)


def read_text(path: str, root: Path = _ROOT) -> str | None:
    """Return the stripped text of a file below `root`; None when it cannot be read, for whatever reason."""
    try:
        return Path(root, path.lstrip("/")).read_bytes().decode("utf-8", "replace").strip("\0 \n\t")
    except (OSError, ValueError):
        return None


def sysctl(name: str) -> str | None:
    """Return a kernel variable of macOS as text; None elsewhere, and when it does not exist."""
    if platform.system() != "Darwin":
        return None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        asked = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=True)
        return asked.stdout.strip()
    return None


def parse_cpus(text: str | None) -> tuple[int, ...]:
    """Return the CPUs of a list such as ``0-3,8,10-11``; an empty tuple for what is not such a list.

    Raises nothing: the text comes from files that a fake or foreign system may fill with anything.
    """
    found: set[int] = set()
    for part in (text or "").split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal()) or len(first) > 5 or len(last) > 5:
            return ()
        found.update(range(int(first), int(last) + 1))
    return tuple(sorted(found))


def allowed_cpus() -> tuple[int, ...]:
    """Return the CPUs that the calling thread may run on, in order; all of them where there is no affinity (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def choose_cpus(count: int, root: Path = _ROOT) -> tuple[int, ...]:
    """Choose CPUs for `count` threads from the allowed ones.

    Isolated CPUs come first, then CPUs whose core nobody else was given, then the higher numbers (interrupts and
    daemons gather on the lower ones).

    Parameters
    ----------
    count : int
        How many are wanted.
    root : Path
        The file system to read the topology from.

    Returns
    -------
    tuple of int
        At most `count`, fewer when fewer are allowed; the caller labels what it could not have (`placement_label`).
    """
    allowed = allowed_cpus()
    isolated = set(parse_cpus(read_text("/sys/devices/system/cpu/isolated", root)))
    chosen: list[int] = []
    cores: set[tuple[int, ...]] = set()
    for fresh_core in (True, False):
        for cpu in sorted(allowed, key=lambda c: (c not in isolated, -c)):
            core = siblings(cpu, root)
            if len(chosen) < count and cpu not in chosen and not (fresh_core and core in cores):
                chosen.append(cpu)
                cores.add(core)
    return tuple(chosen)


def siblings(cpu: int, root: Path = _ROOT) -> tuple[int, ...]:
    """Return the CPUs of the core that `cpu` belongs to; only itself when the system does not say."""
    listed = parse_cpus(read_text(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", root))
    return listed if cpu in listed else (cpu,)


def placement_label(cpus: tuple[int, ...], wanted: int, root: Path = _ROOT) -> str:
    """Return what must be said of `wanted` threads on `cpus`, or an empty text when nothing must (claim M4).

    Parameters
    ----------
    cpus : tuple of int
        CPUs that the threads were given.
    wanted : int
        Threads that should each have a core of its own.
    root : Path
        The file system to read the topology from.
    """
    if len(set(cpus)) < wanted:
        return f"indicative: {wanted} threads on {len(set(cpus))} CPU{'s' if len(set(cpus)) != 1 else ''}"
    if len({siblings(cpu, root) for cpu in cpus}) < wanted:
        return "indicative: threads share a core"
    if "hypervisor" in (read_text("/proc/cpuinfo", root) or "").split():
        return "virtual CPUs: the host decides which cores they are"
    return ""


def pin(cpus) -> Placement:
    """Bind the calling thread to exactly these CPUs, and read back what became of it (trap: {1, 63} becomes {1}).

    Parameters
    ----------
    cpus : iterable of int
        Every one of them must be granted.

    Returns
    -------
    Placement

    Raises
    ------
    PlacementError
        If the system has no affinity, refuses, or grants something else; the thread then runs where it did before.
    """
    wanted = tuple(sorted({int(cpu) for cpu in cpus}))
    if not hasattr(os, "sched_setaffinity"):
        raise PlacementError(f"cannot pin to CPU {_join(wanted)}: {platform.system()} has no thread affinity")
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, wanted)
    except (OSError, ValueError, OverflowError) as error:
        raise PlacementError(
            f"cannot pin to CPU {_join(wanted)}: {error}; allowed are {_join(sorted(before))}"
        ) from None
    granted = allowed_cpus()
    if granted != wanted:
        os.sched_setaffinity(0, before)
        raise PlacementError(
            f"asked for CPU {_join(wanted)}, granted only {_join(granted)}; allowed are {_join(sorted(before))}"
        )
    return Placement(wanted, granted, "")


@contextlib.contextmanager
def pinned(cpus, strict: bool = False):
    """Pin the calling thread for the length of a block, and put it back afterwards.

    Parameters
    ----------
    cpus : iterable of int
        As for `pin`.
    strict : bool
        Raise `PlacementError` when they cannot be had. Otherwise the block runs unpinned, and the placement's label
        says so.

    Yields
    ------
    Placement
    """
    before = allowed_cpus()
    wanted = tuple(sorted({int(cpu) for cpu in cpus}))
    try:
        placement = pin(wanted)
    except PlacementError as error:
        if strict:
            raise
        placement = Placement(wanted, before, f"indicative: not pinned ({error})")
    try:
        yield placement
    finally:
        if not placement.label:
            with contextlib.suppress(OSError):  # the CPUs may have been taken away from us in the meantime
                os.sched_setaffinity(0, before)


def run_delay(root: Path = _ROOT) -> RunDelay | None:
    """Return this thread's running and waiting time from /proc/thread-self/schedstat; None where there is none."""
    fields = (read_text("/proc/thread-self/schedstat", root) or "").split()
    if len(fields) != 3 or not all(field.isdecimal() for field in fields):
        return None
    return RunDelay(*map(int, fields))


def steal_ns(root: Path = _ROOT) -> int | None:
    """Return the time that the host took from our CPUs since boot, in ns, in steps of a clock tick (mostly 10 ms)."""
    for line in (read_text("/proc/stat", root) or "").splitlines():
        fields = line.split()
        if fields[:1] == ["cpu"] and len(fields) > 8 and fields[8].isdecimal():
            return int(fields[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return None


def usage() -> Usage:
    """Return the counters now: of this thread where the system counts by thread (Linux), else of the process."""
    delay = run_delay()
    counted = (None,) * 4
    if resource is not None:
        spent = resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF))
        counted = (spent.ru_minflt, spent.ru_majflt, spent.ru_nvcsw, spent.ru_nivcsw)
    return Usage(delay.waiting_ns if delay else None, steal_ns(), *counted)


class Watch:
    """A block under observation: ``with Watch() as w: …``; afterwards ``w.usage.label()`` is empty or a warning."""

    usage: Usage | None = None

    def __enter__(self):
        self._before = usage()
        return self

    def __exit__(self, *_):
        self.usage = usage().since(self._before)


def pressure(root: Path = _ROOT) -> float | None:
    """Return the share of the last ten seconds in which some task waited for a CPU (0 to 1)."""
    for field in (read_text("/proc/pressure/cpu", root) or "").split():
        if field.startswith("avg10="):
            with contextlib.suppress(ValueError):
                return float(field[6:]) / 100
    return None


def _join(cpus) -> str:
    return ", ".join(map(str, cpus)) or "none"


def pressure_ns(root: Path = _ROOT) -> int | None:
    """Return for how long some task has waited for a CPU since boot, in ns; None where that is not counted."""
    for field in (read_text("/proc/pressure/cpu", root) or "").split():
        if field.startswith("total="):  # of the first line, "some"; in microseconds
            with contextlib.suppress(ValueError):
                return int(field[6:]) * 1000
    return None
