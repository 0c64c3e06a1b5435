"""When each message of a feed is due: known to who sends and to who measures, by the same arithmetic.

A schedule is a page of 64-bit words that both sides hold, two threads or, by a file, two processes. The sender writes
when it starts; from then on the time at which a message is due follows from its number, or from its own time stamp.
So latency counts from there, and no packet carries anything that an exchange's would not.
"""

import mmap

import numpy as np

from photonlab.errors import UserError
from photonlab.machine import clock
from photonlab.machine.atomics import load_acquire
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_0, _1 = np.uint64(0), np.uint64(1)
MAGIC = 0x70686F746F6E7331  # "photons1"
MARK, MODE, START, ORIGIN, SPEED, HZ = (np.uint64(i) for i in range(6))
"""Words: what it is; mode; ticks of the start, 0 before it; time stamp of the first message in ns; times as fast as the
file's clock, or messages a second; ticks a second."""

WORDS = mmap.PAGESIZE // 8
FLAT_OUT, FILE_CLOCK, FIXED_RATE = (np.uint64(i) for i in range(3))
_BILLION = np.uint64(1_000_000_000)
NEVER = _0
"""When a message is due of a feed that is sent flat out, or has not started."""


def make_schedule(*, speed=None, rate=None, path=None) -> np.ndarray:
    """Return a schedule that has not started.

    Parameters
    ----------
    speed : int, optional
        Times as fast as the file's own clock.
    rate : int, optional
        Messages a second. Without either, nothing is due: the feed is sent flat out.
    path : path-like, optional
        A file to keep it in, for other processes; by default memory.

    Raises
    ------
    UserError
        Speed or rate below 1, or both; the file cannot be written.
    """
    if speed is not None and rate is not None:
        raise UserError("a feed runs by the file's clock or at a fixed rate, not both")
    for name, number in (("speed", speed), ("rate", rate)):
        if number is not None and not 1 <= number <= 10**9:
            raise UserError(f"{name} is a whole number from 1 to 1,000,000,000, not {number}")
    if path is None:
        words = huge_array(WORDS, np.uint64, populate=True)
    else:
        words = open_schedule(path)
    clock.name()  # which clock the kernels of this process read is settled before one does
    words[:] = 0
    words[MODE] = FILE_CLOCK if speed is not None else FIXED_RATE if rate is not None else FLAT_OUT
    words[SPEED], words[HZ] = speed or rate or 1, clock.calibrate().hz
    words[MARK] = MAGIC
    return words


def open_schedule(path) -> np.ndarray:
    """Return the schedule in a file; a file that is not there yet is made, and says of no message when it is due.

    Raises
    ------
    UserError
        The file is something else, or cannot be read and written.
    """
    try:
        with open(path, "ab") as file:  # whoever comes first makes it, and nobody cuts off what is there
            if file.tell() == 0:
                file.truncate(WORDS * 8)
        words = np.memmap(path, np.uint64, "r+", shape=(WORDS,)).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: no schedule of a feed: {getattr(error, 'strerror', None) or error}") from None
    if int(words[MARK]) not in (0, MAGIC):
        raise UserError(f"{path}: no schedule of a feed: its first 8 bytes are not the mark of one")
    return words


@kernel(inner=True)
def ticks_of(nanoseconds, hz):
    """Return a span of ns in ticks; exact to a tick for centuries."""
    return nanoseconds // _BILLION * hz + nanoseconds % _BILLION * hz // _BILLION


@kernel(inner=True)
def due(schedule, sequence, stamp):
    """Return when a message is due, in ticks; `NEVER` if that is not said.

    Parameters
    ----------
    schedule : ndarray of uint64
    sequence : uint64
        Its number, from 1.
    stamp : uint64
        Its time stamp, ns since midnight.
    """
    start = load_acquire(schedule, START)
    if start == _0 or schedule[MODE] == FLAT_OUT:
        return NEVER
    if schedule[MODE] == FIXED_RATE:
        return start + (sequence - _1) * schedule[HZ] // schedule[SPEED]
    origin = schedule[ORIGIN]
    return start + ticks_of(max(stamp, origin) - origin, schedule[HZ]) // schedule[SPEED]
