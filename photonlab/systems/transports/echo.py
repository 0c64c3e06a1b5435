"""The plainest use of a link: messages of one size sent and awaited, or sent back as they came."""

import numpy as np

from photonlab.machine import clock
from photonlab.machine.jit import kernel
from photonlab.systems.spin import meet
from photonlab.systems.transports.link import IN_AT, OUT_AT, ROOM, receive, send

_0, _1 = np.uint64(0), np.uint64(1)


@kernel
def ping(link, flags, size, count, spans):
    """Send a message of which the bytes differ each time, await as many, and compare; give round trips done.

    Parameters
    ----------
    link : Link
    flags : ndarray of uint64
    size, count : uint64
    spans : ndarray of uint64, shape (count,)
        Receives the ticks of each round trip.
    """
    if not meet(flags, _0):
        return _0
    for i in range(count):
        for k in range(size):
            link.data[OUT_AT + k] = np.uint8(i * np.uint64(31) + k * np.uint64(7))
        before = clock.ticks_begin()
        if not send(link, OUT_AT, size, flags):
            return i
        if receive(link, IN_AT, size, size, flags) < size:
            return i
        spans[i] = clock.elapsed(before, clock.ticks_end())
        for k in range(size):
            if link.data[IN_AT + k] != link.data[OUT_AT + k]:
                return i
    return count


@kernel
def pong(link, flags, size, count):
    """Send back what comes; give messages sent back."""
    if not meet(flags, _1):
        return _0
    for i in range(count):
        if receive(link, IN_AT, size, ROOM, flags) != size:
            return i
        for k in range(size):
            link.data[OUT_AT + k] = link.data[IN_AT + k]
        if not send(link, OUT_AT, size, flags):
            return i
    return count
