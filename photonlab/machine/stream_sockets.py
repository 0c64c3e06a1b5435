"""Connected sockets for kernels: bytes sent and received, and readiness asked for, by the C library's calls.

Each call gives how many bytes went, and the errno of one that failed (0 for none). What a caller does about too few
bytes, nothing at all or an interruption is its own affair: `again` tells those apart from errors.
"""

import platform
import socket
import struct

import numpy as np
from numba.core import types

from photonlab.errors import UserError
from photonlab.machine.jit import kernel
from photonlab.machine.libc import errno

_send = types.ExternalFunction("send", types.int64(types.int32, types.uint64, types.uint64, types.int32))
_recv = types.ExternalFunction("recv", types.int64(types.int32, types.uint64, types.uint64, types.int32))
_epoll_wait = types.ExternalFunction("epoll_wait", types.int32(types.int32, types.uint64, types.int32, types.int32))

_0 = np.uint64(0)
WAITING, NOW = np.uint64(0), np.uint64(0x40)
"""How to call: as the socket is set (it waits, at most as long as `wait_at_most` says); not at all (MSG_DONTWAIT)."""

CLOSED = np.uint64(32)
"""What is said of a connection that the other side has ended: EPIPE, in either direction."""

_NO_SIGNAL = np.uint64(0x4000)  # MSG_NOSIGNAL: a peer that is gone is an errno, not a signal
_INTERRUPTED, _AGAIN, _TIMED_OUT = np.uint64(4), np.uint64(11), np.uint64(62)


def available() -> bool:
    """Whether this system has the calls that the kernels of this room make."""
    return platform.system() == "Linux"


@kernel(inner=True)
def send_some(fd, address, size, how):
    """Send bytes, perhaps fewer than there are; give how many went, and errno.

    Parameters
    ----------
    fd, address, size, how : uint64
        The socket, where the bytes lie, how many, `WAITING` or `NOW`.
    """
    went = _send(types.int32(fd), address, size, types.int32(how | _NO_SIGNAL))
    return (_0, errno()) if went < types.int64(0) else (np.uint64(went), _0)


@kernel(inner=True)
def receive_some(fd, address, most, how):
    """Receive at most so many bytes; give how many came, and errno: `CLOSED` where there will never be more."""
    came = _recv(types.int32(fd), address, most, types.int32(how))
    if came < types.int64(0):
        return _0, errno()
    return np.uint64(came), CLOSED if came == types.int64(0) else _0


@kernel(inner=True)
def ready(epoll, address, milliseconds):
    """Ask an epoll descriptor whether its one socket has something; give how many do, 0 also after a signal."""
    found = _epoll_wait(types.int32(epoll), address, types.int32(1), types.int32(milliseconds))
    return np.uint64(found) if found > types.int32(0) else _0


@kernel(inner=True)
def again(why):
    """Tell whether an errno only says that nothing could be done now."""
    return why in (_AGAIN, _INTERRUPTED, _TIMED_OUT)


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a TCP connection over loopback, without Nagle's algorithm."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        one = socket.create_connection(server.getsockname(), timeout=5)
        other, address = server.accept()
        if address != one.getsockname():  # somebody else was faster
            raise UserError("a stranger connected to the port of the loopback connection")
    for end in (one, other):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.setblocking(True)
    return one, other


def unix_pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a stream of the AF_UNIX family."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def wait_at_most(end: socket.socket, seconds: float):
    """Let calls on a socket that wait give up after so long."""
    pair = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        end.setsockopt(socket.SOL_SOCKET, option, pair)


def busy_poll(end: socket.socket, microseconds: int) -> str:
    """Let the system look at the device for so long before a call waits; give why that was refused, or nothing."""
    try:
        end.setsockopt(socket.SOL_SOCKET, 46, microseconds)  # SO_BUSY_POLL
    except OSError as error:
        return f"SO_BUSY_POLL is refused: {error.strerror}"
    return ""
