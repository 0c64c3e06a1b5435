"""Hardware counters by perf_event_open: cycles, instructions, cache, branch and TLB misses, where there are any.

Most virtual machines have none, and some systems forbid them. Which it is, the probe finds out and says in words; what
cannot be counted is None, never 0 (claims R6 and M3). Counted is the calling thread, hardware events in user mode only.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import platform
import struct
from pathlib import Path
from typing import NamedTuple

from photonlab.machine.system import read_text

_SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}
_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_DTLB_LOADS, _MISSES = 3, 1 << 16

GROUPS = (
    {"cycles": (_HARDWARE, 0), "instructions": (_HARDWARE, 1)},
    {"cache-references": (_HARDWARE, 2), "cache-misses": (_HARDWARE, 3)},
    {"branches": (_HARDWARE, 4), "branch-misses": (_HARDWARE, 5)},
    {"dTLB-loads": (_CACHE, _DTLB_LOADS), "dTLB-load-misses": (_CACHE, _DTLB_LOADS | _MISSES)},
    {"page-faults": (_SOFTWARE, 2)},
    {"context-switches": (_SOFTWARE, 3)},
    {"cpu-migrations": (_SOFTWARE, 4)},
)
"""Events by name: (type, config). Two by two, so that the parts of a ratio are counted over the same time on any
processor, however few counters it has."""

EVENTS = {name: event for group in GROUPS for name, event in group.items()}
HARDWARE_EVENTS = tuple(name for name, (kind, _) in EVENTS.items() if kind != _SOFTWARE)

RATES = {
    "IPC": ("instructions", "cycles"),
    "cache-miss share": ("cache-misses", "cache-references"),
    "branch-miss rate": ("branch-misses", "branches"),
    "dTLB-miss rate": ("dTLB-load-misses", "dTLB-loads"),
}
"""The ratios of claim R6: (what is divided, by what)."""

_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 0, 1 << 5, 1 << 6
_ENABLE, _DISABLE = 0x2400, 0x2401
_CLOSE_ON_EXEC = 8
_READ_FORMAT = 1 | 2 | 8  # time enabled, time running, whole group
_MEANING = {
    errno.ENOENT: "the processor, or its hypervisor, offers no such counter",
    errno.ENODEV: "the processor offers no such counter",
    errno.EOPNOTSUPP: "the processor offers no such counter",
    errno.EACCES: "not permitted to this user",
    errno.EPERM: "not permitted in this container or to this user",
    errno.ENOSYS: "this system has no perf_event_open",
    errno.EMFILE: "too many open files",
}


class Probe(NamedTuple):
    """Which events can be counted here."""

    available: dict[str, bool]
    reason: str
    """Why the others cannot, as found; empty when all can."""

    @property
    def hardware(self) -> bool:
        """Whether cycles and instructions, without which no other rate means much, can be counted."""
        return self.available["cycles"] and self.available["instructions"]


def open_event(kind: int, config: int, leader: int = -1) -> int:
    """Open one counter of the calling thread, disabled if it leads a group.

    Parameters
    ----------
    kind, config : int
        Type and configuration of the event.
    leader : int
        File descriptor of its group's leader, or -1.

    Returns
    -------
    int
        A file descriptor, the caller's to close.

    Raises
    ------
    OSError
        With the reason of the system, ENOSYS where there is no such call.
    """
    number = _SYSTEM_CALL.get(platform.machine())
    if platform.system() != "Linux" or number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    flags = _DISABLED if leader < 0 else 0
    if kind != _SOFTWARE:  # a context switch happens in the kernel: excluding that would count none
        flags |= _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
    attributes = struct.pack("=IIQQQQQIIQ", kind, 64, config, 0, 0, _READ_FORMAT, flags, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    this_thread, any_cpu = 0, -1
    arguments = (
        ctypes.c_long(this_thread),
        ctypes.c_long(any_cpu),
        ctypes.c_long(leader),
        ctypes.c_long(_CLOSE_ON_EXEC),
    )
    descriptor = libc.syscall(ctypes.c_long(number), attributes, *arguments)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor


@contextlib.contextmanager
def _open_group(group, opener):
    """Open the events of a group one after another; yield {name: descriptor}, or raise the first refusal."""
    opened: dict[str, int] = {}
    try:
        for name, event in group.items():
            opened[name] = opener(*event, next(iter(opened.values()), -1))
        yield opened
    finally:
        for descriptor in reversed(opened.values()):
            os.close(descriptor)


def _values(descriptors: dict[str, int]) -> dict[str, int | None]:
    """Read a group, scaled up by the share of the time that it had the counters; None if it never had them."""
    raw = os.read(next(iter(descriptors.values())), 8 * (3 + len(descriptors)))
    _, enabled, running, *values = struct.unpack(f"={len(raw) // 8}Q", raw)
    return {
        name: (value * enabled // running if running else None) for name, value in zip(descriptors, values, strict=True)
    }


def count(function, opener=open_event) -> dict[str, int | None]:
    """Run a function once and count what its thread did.

    Parameters
    ----------
    function : callable
        Without arguments. Let it run at least a few ms: the counters may have to share the hardware.
    opener : callable
        As `open_event`.

    Returns
    -------
    dict of str to (int or None)
        One entry for each of `EVENTS`; None for what cannot be counted.
    """
    counted: dict[str, int | None] = dict.fromkeys(EVENTS)
    with contextlib.ExitStack() as stack:
        groups = []
        for group in GROUPS:
            with contextlib.suppress(OSError):
                groups.append(stack.enter_context(_open_group(group, opener)))
        leaders = [next(iter(group.values())) for group in groups]
        for leader in leaders:
            fcntl.ioctl(leader, _ENABLE, 1)  # 1: the whole group
        try:
            function()
        finally:
            for leader in reversed(leaders):
                fcntl.ioctl(leader, _DISABLE, 1)
        for group in groups:
            counted.update(_values(group))
    return counted


def rates(counted: dict[str, int | None]) -> dict[str, float | None]:
    """Return the ratios of claim R6 from counts; None where a part was not counted or the divisor is 0."""
    return {
        name: counted[over] / counted[under] if counted[over] is not None and counted[under] else None
        for name, (over, under) in RATES.items()
    }


def find(opener=open_event, root: Path = Path("/")) -> Probe:
    """Try every event, and count something that must show: some hypervisors let counters be opened that never move.

    Parameters
    ----------
    opener : callable
        As `open_event`.
    root : Path
        The file system to read /proc and /sys from.

    Returns
    -------
    Probe
    """
    refused: dict[str, str] = {}
    for group in GROUPS:
        try:
            with _open_group(group, opener):
                pass
        except OSError as error:
            name = errno.errorcode.get(error.errno, str(error.errno))
            meaning = _MEANING.get(error.errno, os.strerror(error.errno or 0))
            refused.update(dict.fromkeys(group, f"{name} ({meaning})"))
    counted = count(lambda: sum(range(100_000)), opener)
    for name in HARDWARE_EVENTS:
        misses = "misses" in name  # may be none in so short a run
        if name not in refused and (counted[name] is None or (counted[name] == 0 and not misses)):
            refused[name] = "opens but never counts"
    available = {name: name not in refused for name in EVENTS}
    return Probe(available, _explain(refused, root))


@functools.cache
def probe() -> Probe:
    """Return `find()` for this machine, tried once a process."""
    return find()


def _explain(refused: dict[str, str], root: Path) -> str:
    if not refused:
        return ""
    by_reason: dict[str, list[str]] = {}
    for name, why in refused.items():
        by_reason.setdefault(why, []).append(name)
    parts = [f"{', '.join(names)}: {why}" for why, names in by_reason.items()]
    level = read_text("/proc/sys/kernel/perf_event_paranoid", root)
    parts.append(f"perf_event_paranoid is {level or 'unknown'}")
    try:
        units = sorted(os.listdir(Path(root, "sys/bus/event_source/devices")))
    except OSError:
        units = []
    parts.append(f"counting units of the kernel: {', '.join(units) or 'unknown'}")
    return "; ".join(parts)
