"""The kinds of transport there are, pairs of ends made of them, and links from ends that another process passed on."""

import mmap
import os
import select
import socket
import struct
import tempfile
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from photonlab.kernels import ring
from photonlab.machine import io_uring, stream_sockets
from photonlab.machine.libc import address_of
from photonlab.machine.memory import huge_array
from photonlab.systems.transports import link as links
from photonlab.systems.transports.link import Link

TCP, UNIX, MEMORY, MULTICAST = "TCP", "AF_UNIX", "memory", "multicast"
SLOTS = 64
_POLL_MICROSECONDS = 50
BUFFERS = 16, 2048
"""How many buffers a receive with many answers takes from, and their bytes."""
_RING_BYTES = -(-ring.size_in_words(SLOTS) * 8 // mmap.PAGESIZE) * mmap.PAGESIZE
_ANY_PIECE = np.uint64(1 << 40)


class Kind(NamedTuple):
    """How bytes go, and how either side waits for them.

    Attributes
    ----------
    family : str
    mode, peer : uint64
        Of the engine, and of the exchange.
    flags : int
        Of an io_uring.
    registered, busy, many : bool
        Files and buffers are registered with it; SO_BUSY_POLL is set; one request to receive has many answers.
    """

    family: str
    mode: np.uint64
    peer: np.uint64
    flags: int = 0
    registered: bool = False
    busy: bool = False
    many: bool = False

    @property
    def uring(self) -> bool:
        """Whether the engine's side goes through io_uring."""
        return self.mode >= links.URING_WAITS

    @property
    def polled(self) -> bool:
        """Whether a thread of the system's own takes part."""
        return bool(self.flags & io_uring.SQPOLL)


_SPIN, _WAIT, _DEFERRED = links.SPINNING, links.BLOCKING, io_uring.SINGLE_ISSUER | io_uring.DEFER_TASKRUN
KINDS = {
    "TCP blocking": Kind(TCP, _WAIT, _WAIT),
    "TCP blocking, busy poll": Kind(TCP, _WAIT, _WAIT, busy=True),
    "TCP spinning": Kind(TCP, _SPIN, _SPIN),
    "TCP epoll spinning": Kind(TCP, links.EPOLL, links.EPOLL),
    "AF_UNIX": Kind(UNIX, _SPIN, _SPIN),
    "shared memory": Kind(MEMORY, links.RINGS, links.RINGS),
    "io_uring": Kind(TCP, links.URING_WAITS, _SPIN),
    "io_uring SQPOLL, any issuer": Kind(TCP, links.URING_SPINS, _WAIT, io_uring.SQPOLL),
    "io_uring SQPOLL": Kind(TCP, links.URING_SPINS, _WAIT, io_uring.SQPOLL | io_uring.SINGLE_ISSUER),
    "io_uring DEFER_TASKRUN": Kind(TCP, links.URING_ENTERS, _SPIN, _DEFERRED),
    "io_uring registered": Kind(TCP, links.URING_ENTERS, _SPIN, _DEFERRED, registered=True),
    "io_uring multishot": Kind(TCP, links.URING_ENTERS, _SPIN, _DEFERRED, many=True),
    "multicast in, TCP out": Kind(MULTICAST, _SPIN, _SPIN),
}
"""By the name in tables. An exchange beside an io_uring spins, so that only the engine's side differs from the kinds
above it; where a polling thread needs its CPU it waits in its calls."""


class Ends(NamedTuple):
    """Descriptors of both sides: each has one to receive by and one to send by, which may be the same."""

    mine: tuple
    theirs: tuple

    def close(self):
        """Close both sides in this process."""
        for descriptor in {*self.mine, *self.theirs}:
            os.close(descriptor)


def refused(kind: Kind, cpu: int | None = None) -> str:
    """Return why a kind cannot be had here, or an empty text.

    Parameters
    ----------
    kind : Kind
    cpu : int, optional
        For a polling thread.
    """
    if not stream_sockets.available():
        return "these calls are Linux's"
    if kind.uring:
        return io_uring.refused(kind.flags, cpu if kind.polled else None, kind.many)
    if kind.busy:
        with socket.socket() as trial:
            return stream_sockets.busy_poll(trial, _POLL_MICROSECONDS)
    return ""


def open_ends(kind: Kind) -> Ends:
    """Connect two ends."""
    if kind.family == MEMORY:
        descriptor = shared_file(2 * _RING_BYTES)
        return Ends((descriptor, descriptor), (os.dup(descriptor),) * 2)
    one, other = stream_sockets.unix_pair() if kind.family == UNIX else stream_sockets.tcp_pair()
    for end in (one, other):
        stream_sockets.wait_at_most(end, 0.05)
        if kind.busy:
            stream_sockets.busy_poll(end, _POLL_MICROSECONDS)
    if kind.family != MULTICAST:
        mine, theirs = one.detach(), other.detach()
        return Ends((mine, mine), (theirs, theirs))
    ticks_in, ticks_out = _multicast_pair()
    return Ends((ticks_in.detach(), one.detach()), (other.detach(), ticks_out.detach()))


def shared_file(size: int) -> int:
    """Return the descriptor of memory that processes can share; nothing of it has a name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("shared")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def _multicast_pair():
    """Return a socket that receives from a group on loopback, and one that sends to it."""
    into, out = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    loopback = socket.inet_aton("127.0.0.1")
    into.bind((GROUP, 0))
    into.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + loopback)
    into.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_MULTICAST_ALL", 49), 0)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, struct.pack("b", 0))
    out.connect((GROUP, into.getsockname()[1]))
    into.setblocking(False)
    return into, out


GROUP = "239.255.77.7"


@dataclass
class End:
    """A link that this process holds, and what must live as long."""

    link: Link
    kept: list = field(default_factory=list)
    closers: list = field(default_factory=list)

    def close(self):
        """Let go of what the link opened; its descriptors are the caller's."""
        while self.closers:
            self.closers.pop()()


def make_end(kind: Kind, descriptors, side: int, cpu: int | None = None) -> End:
    """Make a link of one side's descriptors, in the thread that will use it.

    Parameters
    ----------
    kind : Kind
    descriptors : tuple of int
        Of `Ends`.
    side : int
        0 for the engine, 1 for the exchange.
    cpu : int, optional
        For a polling thread.

    Raises
    ------
    OSError
        The system refuses.
    """
    mode = kind.peer if side else kind.mode
    words = np.zeros(64, np.uint64)
    data = huge_array((1 << 16) + 64, np.uint8, populate=True)
    inward, outward = _rings(descriptors[0], side) if kind.family == MEMORY else (_NO_RING, _NO_RING)
    end = End(Link(words, data, inward, outward))
    if mode >= links.URING_WAITS:
        uring = io_uring.set_up(kind.flags, cpu=cpu if kind.polled else None)
        end.kept.append(uring)
        end.closers.append(uring.close)
        if kind.many:
            end.kept.append(io_uring.register_buffers(uring, *BUFFERS))
        words[:] = uring.words
        if kind.registered:
            io_uring.register_files(uring, descriptors)
            io_uring.register_buffer(uring, data)
            words[links.FIXED_FILES] = words[links.FIXED_BUFFERS] = 1
    words[links.MODE], words[links.PIECE], words[links.DATA] = mode, _ANY_PIECE, address_of(data)
    words[links.IN], words[links.OUT] = descriptors
    if mode == links.EPOLL:
        epoll, events = select.epoll(), np.zeros(4, np.uint64)
        epoll.register(descriptors[0], select.EPOLLIN)
        words[links.EPOLL_FD], words[links.EVENTS] = epoll.fileno(), address_of(events)
        end.kept.append(events)
        end.closers.append(epoll.close)
    return end


def _rings(descriptor, side):
    """Return the rings that one side reads and writes; the engine makes them."""
    area = np.frombuffer(mmap.mmap(descriptor, 2 * _RING_BYTES), np.uint8)
    halves = area[:_RING_BYTES], area[_RING_BYTES:]
    return [ring.attach(half) for half in (halves if side else halves[::-1])]


def prepare(kind: Kind, ends: Ends):
    """Put rings into shared memory, before either side looks for them."""
    if kind.family == MEMORY:
        area = np.frombuffer(mmap.mmap(ends.mine[0], 2 * _RING_BYTES), np.uint8)
        for half in (area[:_RING_BYTES], area[_RING_BYTES:]):
            ring.make_ring(SLOTS, buffer=half)


_NO_RING = ring.make_ring(1)
