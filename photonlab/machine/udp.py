"""UDP sockets: made and set by Python, used by kernels through recvmmsg, sendmmsg and poll, many packets a call.

A `Box` is what one such call works on: room for packets, and the headers of the system call that point into it, built
once. `receive` fills it from its first packet on, `send` sends what stands in it.

    count, why = udp.receive(box, fd, udp.NOW)      # why: errno, 0 for none; nothing there is no error
    for i in range(count):
        begin, size = udp.begin(box, i), udp.size(box, i)       # of box.data; unless udp.cut(box, i)

A box with `notes` has room for what the system says of each packet: when it came (`stamp`), and how many the socket has
lost since it was opened, for want of room in its buffer (`lost`). Linux only: other systems have no recvmmsg
(`available`).
"""

import platform
import struct
from typing import NamedTuple

import numpy as np
from numba.core import types

from photonlab.machine.jit import kernel
from photonlab.machine.libc import address_of, errno
from photonlab.machine.memory import huge_array

_recvmmsg = types.ExternalFunction(
    "recvmmsg", types.int32(types.int32, types.uint64, types.uint32, types.int32, types.uint64)
)
_recvmsg = types.ExternalFunction("recvmsg", types.int64(types.int32, types.uint64, types.int32))
_sendmmsg = types.ExternalFunction("sendmmsg", types.int32(types.int32, types.uint64, types.uint32, types.int32))
_sendmsg = types.ExternalFunction("sendmsg", types.int64(types.int32, types.uint64, types.int32))
_poll = types.ExternalFunction("poll", types.int32(types.uint64, types.uint64, types.int32))

_0, _1 = np.uint64(0), np.uint64(1)

NOW, FIRST = np.uint64(0x40), np.uint64(0x10000)
"""How to receive: what is there (MSG_DONTWAIT); wait for one packet, then what is there (MSG_WAITFORONE)."""

_INTERRUPTED, _AGAIN, _REFUSED, _NO_BUFFERS, _NO_CALL = (np.uint64(i) for i in (4, 11, 111, 105, 38))
_CUT = np.uint64(0x20)  # MSG_TRUNC
_LOW = np.uint64(0xFFFFFFFF)

# Words of a struct mmsghdr: name and its length, vector and their number, control and its length, flags, bytes
_HEADER_WORDS = np.uint64(8)
_NAME, _NAME_SIZE, _VECTOR, _VECTORS, _CONTROL, _CONTROL_SIZE, _FLAGS, _BYTES = (np.uint64(i) for i in range(8))
_NAME_BYTES = 16  # struct sockaddr_in
_CONTROL_WORDS = 8  # a timespec with its header (4 words), and a counter with its own (3)

# Words of `state`
HEADERS, ROOM, PACKET, CONTROL_BYTES, NAME_BYTES, USED, DATA, INTERRUPTED, REFUSED, SINGLY = (
    np.uint64(i) for i in range(10)
)

_SOCKET_LEVEL, _STAMP, _LOST = np.uint64(1), np.uint64(35), np.uint64(40)  # SOL_SOCKET, SO_TIMESTAMPNS, SO_RXQ_OVFL
_MEMORY = 55  # SO_MEMINFO: nine 32-bit words, the last of them the packets lost
NO_STAMP = _0


class Box(NamedTuple):
    """Room for packets, and what the system calls need to fill and to send it.

    Attributes
    ----------
    data : ndarray of uint8, shape (packets * packet + slack,)
        Packet i begins at i * packet; reading 64 bytes from anywhere in a packet stays within.
    headers : ndarray of uint64, shape (packets * 8,)
        Structs mmsghdr.
    vectors : ndarray of uint64, shape (packets * 2,)
        Structs iovec: address and bytes.
    names : ndarray of uint64, shape (packets * 2,)
        Addresses that packets came from, or go to.
    control : ndarray of uint64, shape (packets * 8,)
        What the system says of each packet.
    state : ndarray of uint64, shape (16,)
        See the constants of this module.
    """

    data: np.ndarray
    headers: np.ndarray
    vectors: np.ndarray
    names: np.ndarray
    control: np.ndarray
    state: np.ndarray


def available() -> bool:
    """Whether this system has the calls that the kernels of this room make."""
    return platform.system() == "Linux"


def make_box(packets=256, packet=2048, *, notes=False, names=False) -> Box:
    """Return room for some packets of at most `packet` bytes.

    Parameters
    ----------
    packets, packet : int
        At most 1,024 packets: more, no call takes.
    notes : bool
        Whether to take down what the system says of each packet that it was asked about.
    names : bool
        Whether to take down where each packet came from.
    """
    if not 1 <= packets <= 1024 or not 1 <= packet <= 1 << 16:
        raise ValueError(f"1 to 1,024 packets of 1 to 65,536 bytes, not {packets} of {packet}")
    box = Box(
        huge_array(packets * packet + 64, np.uint8, populate=True),
        np.zeros(packets * 8, np.uint64),
        np.zeros(packets * 2, np.uint64),
        np.zeros(packets * 2, np.uint64),
        np.zeros(packets * _CONTROL_WORDS, np.uint64),
        np.zeros(16, np.uint64),
    )
    each = np.arange(packets, dtype=np.uint64)
    box.vectors[0::2] = address_of(box.data) + each * np.uint64(packet)
    box.vectors[1::2] = packet
    headers = box.headers.reshape(-1, 8)
    headers[:, int(_VECTOR)] = address_of(box.vectors) + each * np.uint64(16)
    headers[:, int(_VECTORS)] = 1
    if notes:
        headers[:, int(_CONTROL)] = address_of(box.control) + each * np.uint64(_CONTROL_WORDS * 8)
    if names:
        headers[:, int(_NAME)] = address_of(box.names) + each * np.uint64(_NAME_BYTES)
    box.state[HEADERS], box.state[ROOM], box.state[PACKET] = address_of(box.headers), packets, packet
    box.state[CONTROL_BYTES], box.state[NAME_BYTES] = _CONTROL_WORDS * 8 * notes, _NAME_BYTES * names
    box.state[USED], box.state[DATA] = packets, address_of(box.data)
    return box


def share(box, other) -> Box:
    """Return a box for sending that has another one's packets: each with an order of its own, by `put`."""
    box.state[DATA] = address_of(other.data)
    return box._replace(data=other.data)


@kernel(inner=True)
def _receive_each(box, fd, most, how):
    """Do as `receive` does by a call for each packet, which every system has."""
    state, done = box.state, _0
    while done < most:
        at = done * _HEADER_WORDS
        box.headers[at + _CONTROL_SIZE] = state[CONTROL_BYTES]
        box.headers[at + _NAME_SIZE] = state[NAME_BYTES]
        flags = NOW if done != _0 else how & NOW  # the socket waits by itself, for the first one
        found = _recvmsg(types.int32(fd), state[HEADERS] + done * np.uint64(64), types.int32(flags))
        if found < types.int64(0):
            why = errno()  # behind the first packet: the next call meets it again
            return done, _0 if done != _0 else _serious(state, why)
        box.headers[at + _BYTES] = np.uint64(found)
        done += _1
    return done, _0


@kernel(inner=True)
def _receive_many(box, fd, most, how):
    """Receive packets, at most `most`, into a box.

    A system that refuses recvmmsg (ENOSYS: a sandbox may) gets a call for each packet from then on: `SINGLY` is set.

    Parameters
    ----------
    box : Box
    fd : uint64
        File descriptor of the socket.
    most : uint64
        At most the box's room.
    how : uint64
        `NOW` or `FIRST`. With `FIRST` the socket's own time-out (`waiting_at_most`) bounds the wait: that of the call
        itself is looked at only after a packet has come.

    Returns
    -------
    count : uint64
    why : uint64
        The errno of a call that failed; 0 if it did not, if there was nothing, if a signal interrupted it, or if it
        only reported that an earlier packet of this socket's was refused: those two are counted.
    """
    state = box.state
    most = min(most, state[ROOM])
    if state[SINGLY] != _0:
        return _receive_each(box, fd, most, how)
    used = min(state[USED], state[ROOM])  # the kernel has overwritten the lengths of these
    for i in range(used):
        at = np.uint64(i) * _HEADER_WORDS
        box.headers[at + _CONTROL_SIZE] = state[CONTROL_BYTES]
        box.headers[at + _NAME_SIZE] = state[NAME_BYTES]
    found = _recvmmsg(types.int32(fd), state[HEADERS], types.uint32(most), types.int32(how), _0)
    if found >= types.int32(0):
        state[USED] = np.uint64(found)
        return np.uint64(found), _0
    why = errno()
    state[USED] = _0
    if why == _NO_CALL:
        state[SINGLY] = _1
        return _receive_each(box, fd, most, how)
    return _0, _serious(state, why)


receive = _receive_many if available() else _receive_each


@kernel(inner=True)
def _serious(state, why):
    """Return the errno of a call that failed, or 0 where that is all in a day's work."""
    if why == _INTERRUPTED:
        state[INTERRUPTED] += _1
        return _0
    if why == _REFUSED:
        state[REFUSED] += _1
        return _0
    return _0 if why == _AGAIN else why


@kernel(inner=True)
def begin(box, i):
    """Return where in `data` a packet begins."""
    return i * box.state[PACKET]


@kernel(inner=True)
def size(box, i):
    """Return how many bytes of a packet were received."""
    return box.headers[i * _HEADER_WORDS + _BYTES] & _LOW


@kernel(inner=True)
def cut(box, i):
    """Tell whether a packet was longer than its room: what is there of it is no packet."""
    return box.headers[i * _HEADER_WORDS + _FLAGS] & _CUT != _0


@kernel(inner=True)
def notes(box, i):
    """Return when a packet came, by the system's real-time clock in ns (0: not said), and packets lost by the socket.

    The system speaks of losses only once there are some, and counts them in 32 bits.
    """
    at = i * np.uint64(_CONTROL_WORDS)
    left = min(box.headers[i * _HEADER_WORDS + _CONTROL_SIZE], box.state[CONTROL_BYTES]) >> np.uint64(3)
    stamp, lost = NO_STAMP, _0
    while left >= np.uint64(3):
        length, kind = (box.control[at] + np.uint64(7)) >> np.uint64(3), box.control[at + _1]
        if length < np.uint64(2) or length > left:
            break
        if kind == _SOCKET_LEVEL | (_STAMP << np.uint64(32)) and length >= np.uint64(4):
            stamp = box.control[at + np.uint64(2)] * np.uint64(1_000_000_000) + box.control[at + np.uint64(3)]
        elif kind == _SOCKET_LEVEL | (_LOST << np.uint64(32)) and length >= np.uint64(3):
            lost = box.control[at + np.uint64(2)] & _LOW
        at += length
        left -= length
    return stamp, lost


@kernel(inner=True)
def put(box, i, begin, size):
    """Let packet i of the next `send` be `size` bytes at an offset of `data`, not necessarily its own."""
    box.vectors[i << _1] = box.state[DATA] + begin
    box.vectors[(i << _1) + _1] = size


@kernel(inner=True)
def answer_to(box, i, other, j):
    """Let packet i of the next `send` go to where packet j of another box came from."""
    box.names[i << _1] = other.names[j << _1]
    box.names[(i << _1) + _1] = other.names[(j << _1) + _1]
    box.headers[i * _HEADER_WORDS + _NAME_SIZE] = np.uint64(_NAME_BYTES)


@kernel(inner=True)
def _send_each(box, fd, first, count, how):
    """Do as `send` does by a call for each packet, which every system has."""
    done = _0
    while done < count:
        address = box.state[HEADERS] + (first + done) * np.uint64(64)
        if _sendmsg(types.int32(fd), address, types.int32(how)) < types.int64(0):
            why = errno()  # of a packet behind the first one: the next call meets it again
            return done, _0 if why == _NO_BUFFERS or done != _0 else _serious(box.state, why)
        done += _1
    return done, _0


@kernel(inner=True)
def _send_many(box, fd, first, count, how):
    """Send packets of a box, which `put` has said where to find.

    A system that refuses sendmmsg (ENOSYS: a sandbox may) gets a call for each packet from then on: `SINGLY` is set.

    Returns
    -------
    count : uint64
        Packets sent; perhaps fewer than asked for.
    why : uint64
        As of `receive`; the system's want of buffers is no error either.
    """
    state = box.state
    if state[SINGLY] == _0:
        address = state[HEADERS] + first * np.uint64(64)
        found = _sendmmsg(types.int32(fd), address, types.uint32(count), types.int32(how))
        if found >= types.int32(0):
            return np.uint64(found), _0
        why = errno()
        if why != _NO_CALL:
            return _0, _0 if why == _NO_BUFFERS else _serious(state, why)
        state[SINGLY] = _1
    return _send_each(box, fd, first, count, how)


send = _send_many if available() else _send_each


@kernel(inner=True)
def wait(fds, address, milliseconds):
    """Wait until one of some sockets has a packet; give how many have, 0 after so many milliseconds or a signal.

    Parameters
    ----------
    fds : ndarray of uint64
        One for each socket: `to_wait_for`.
    address : uint64
        Of `fds`.
    milliseconds : uint64
    """
    found = _poll(address, np.uint64(fds.size), types.int32(milliseconds))
    return np.uint64(found) if found > types.int32(0) else _0


def lost(one) -> int | None:
    """Return how many packets a socket has had no room for up to now; None if the system does not say (SO_MEMINFO).

    Unlike `notes`, which speak with the next packet that finds room, this is exact at any time.
    """
    try:
        return struct.unpack_from("I", one.getsockopt(int(_SOCKET_LEVEL), _MEMORY, 36), 32)[0]
    except (OSError, struct.error):
        return None


def to_wait_for(*sockets) -> np.ndarray:
    """Return the structs pollfd of some sockets, as words: readable (POLLIN) is what counts."""
    return np.array([one.fileno() | 1 << 32 for one in sockets], np.uint64)
