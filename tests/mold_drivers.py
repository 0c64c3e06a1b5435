"""Kernels that put MoldUDP64 and arbitration to work as a receiver does, for tests: inner kernels cannot be called."""

import numpy as np

from photonlab.kernels import arbitration, moldudp64
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array

_0 = np.uint64(0)


@kernel
def check(packet, at, end):
    return moldudp64.check(packet, at, end)


@kernel
def write_header(packet, high, low, sequence, count):
    moldudp64.write_header(packet, _0, high, low, sequence, count)


@kernel
def read_header(packet):
    return moldudp64.read_header(packet, _0)


@kernel
def copy_blocks(packet, begin, end, out):
    return moldudp64.copy_blocks(packet, begin, end, out, _0)


@kernel
def pack(source, begin, most, packet, room, high, low, sequence):
    return moldudp64.pack(source, begin, np.uint64(source.size), most, packet, _0, room, high, low, sequence)


@kernel
def drain(arbiter, out, position):
    """Copy the blocks that were held back and are next now to `out`; give the position behind them."""
    while arbitration.ready(arbiter):
        fresh, begin, stop = arbitration.take_held(arbiter)
        if fresh != _0:
            position = moldudp64.copy_range(arbiter.storage, begin, stop, out, position)
    return position


@kernel
def take_in(arbiter, line, packet, out):
    """Take in a packet and copy the blocks that it makes deliverable to `out`; give their bytes."""
    fresh, begin, stop = arbitration.arbitrate(arbiter, line, packet, _0, np.uint64(packet.size))
    position = _0
    if fresh != _0:
        position = moldudp64.copy_range(packet, begin, stop, out, position)
    return drain(arbiter, out, position)


@kernel
def give_up(arbiter, out):
    """Give up the first gap; give how many messages it had, and the bytes that can be delivered then."""
    lost = arbitration.give_up(arbiter)
    return lost, drain(arbiter, out, _0)


@kernel
def missing(arbiter):
    return arbitration.missing(arbiter)


@kernel
def complete(arbiter):
    return arbitration.complete(arbiter)


class Stream:
    """An arbiter that collects what it delivers, framed as in a file."""

    def __init__(self, **options):
        self.arbiter = arbitration.make_arbiter(**options)
        self.delivered = b""
        self._out = np.zeros(1 << 20, np.uint8)

    def take(self, data, line=0):
        """Take in a packet by a line."""
        size = take_in(self.arbiter, np.uint64(line), as_bytes_array(data), self._out)
        self.delivered += self._out[: int(size)].tobytes()

    def give_up(self):
        """Give up the first gap; give the number of its messages."""
        lost, size = give_up(self.arbiter, self._out)
        self.delivered += self._out[: int(size)].tobytes()
        return int(lost)

    def close(self):
        """Give up every gap."""
        while self.give_up():
            pass

    @property
    def counters(self):
        return arbitration.counters(self.arbiter)

    @property
    def gaps(self):
        return arbitration.gaps(self.arbiter)
