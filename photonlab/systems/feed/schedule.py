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
MARK, MODE, START, ORIGIN, SPEED, HZ, TOGETHER = (np.uint64(i) for i in range(7))
"""Words: what it is; mode; ticks of the start, 0 before it; time stamp of the first message in ns; times as fast as the
file's clock, or messages or packets a second; ticks a second; messages of a packet, where packets are counted."""

WORDS = mmap.PAGESIZE // 8
FLAT_OUT, FILE_CLOCK, FIXED_RATE, FIXED_PACKETS = (np.uint64(i) for i in range(4))
_BILLION = np.uint64(1_000_000_000)
NEVER = _0
"""When a message is due of a feed that is sent flat out, or has not started."""


def make_schedule(*, speed=None, rate=None, packets=None, most=1, path=None) -> np.ndarray:
    """Return a schedule that has not started.

    Parameters
    ----------
    speed : int, optional
        Times as fast as the file's own clock.
    rate : int, optional
        Messages a second.
    packets, most : int, optional
        Packets a second, and how many messages each has. Without any of the three, nothing is due: the feed is sent
        flat out.
    path : path-like, optional
        A file to keep it in, for other processes; by default memory.

    Raises
    ------
    UserError
        A pace below 1, or two of them; the file cannot be written.
    """
    paces = {"speed": speed, "rate": rate, "packets a second": packets}
    given = [(name, number) for name, number in paces.items() if number is not None]
    if len(given) > 1:
        raise UserError("a feed runs by the file's clock or at a fixed rate, of messages or of packets, not both")
    for name, number in given:
        if not 1 <= number <= 10**9:
            raise UserError(f"{name} is a whole number from 1 to 1,000,000,000, not {number}")
    if path is None:
        words = huge_array(WORDS, np.uint64, populate=True)
    else:
        words = open_schedule(path)
    clock.name()  # which clock the kernels of this process read is settled before one does
    words[:] = 0
    modes = {"speed": FILE_CLOCK, "rate": FIXED_RATE, "packets a second": FIXED_PACKETS}
    words[MODE], words[SPEED] = (modes[given[0][0]], given[0][1]) if given else (FLAT_OUT, 1)
    words[HZ], words[TOGETHER] = clock.calibrate().hz, most
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
    if schedule[MODE] == FIXED_PACKETS:
        return start + (sequence - _1) // schedule[TOGETHER] * schedule[HZ] // schedule[SPEED]
    origin = schedule[ORIGIN]
    return start + ticks_of(max(stamp, origin) - origin, schedule[HZ]) // schedule[SPEED]
