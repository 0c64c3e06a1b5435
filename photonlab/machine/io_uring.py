"""io_uring by hand: rings set up and probed by Python, entries written and completions read by kernels.

A ring is two queues in memory shared with the system: entries that ask for something, and completions that answer. A
kernel writes an entry with plain stores and publishes it by its tail; what then moves the system is a call (`enter`),
or a thread of the system's own that polls the tail (SQPOLL). All places are addresses, held in words of the caller's.

A receive may be asked for once for many answers (multishot): each comes in a buffer that the system takes from a ring
of those handed to it, is held in the order of arrival until its bytes are taken, and then handed back.
"""

import contextlib
import ctypes
import errno as errors
import mmap
import os
import platform
import socket
import struct
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from photonlab.machine.atomics import fence_seq_cst
from photonlab.machine.jit import kernel
from photonlab.machine.libc import address_of, errno, half_word_at, set_word_at, window, word_at
from photonlab.machine.memory import huge_array

_syscall = types.ExternalFunction(
    "syscall",
    types.int64(types.int64, types.int64, types.int64, types.int64, types.int64, types.uint64, types.uint64),
)
_SETUP, _ENTER, _REGISTER = 425, 426, 427  # the same on every architecture

SQPOLL, SQ_AFF, COOP_TASKRUN, SINGLE_ISSUER, DEFER_TASKRUN = 1 << 1, 1 << 2, 1 << 8, 1 << 12, 1 << 13
"""What a ring may be set up with."""

SEND, RECEIVE = np.uint64(26), np.uint64(27)
READ_FIXED, WRITE_FIXED = np.uint64(4), np.uint64(5)
FIXED_FILE = np.uint64(1)
"""Operations, and the flag of an entry whose descriptor is a registered file's number."""

RECEIVE_MANY, SELECT = RECEIVE | np.uint64(2 << 16), np.uint64(1 << 5)
"""To receive again and again, and the flag of an entry that has no memory of its own but takes it from the ring."""

MORE, NO_BUFFERS = np.uint64(2), np.uint64(105)
"""What a completion says if more will follow without being asked for; the errno of one that found no buffer."""

RING, SQ_TAIL, SQ_FLAGS, SQ_MASK, ENTRIES, CQ_HEAD, CQ_TAIL, CQ_MASK, COMPLETIONS, POLLED, TO_SUBMIT, TIMEOUT = (
    np.uint64(i) for i in range(32, 44)
)
"""Words in which a kernel finds a ring."""

BUFFER_RING, BUFFER_TAIL, BUFFER_MASK, BUFFERS, BUFFER_BITS, HELD, HELD_HEAD, HELD_TAIL, TAKEN = (
    np.uint64(i) for i in range(44, 53)
)
"""Words in which it finds the buffers handed to the system, if any, and the queue of those that hold bytes: addresses,
mask, heads and tails, the size as a power of two, and how much of the first one held was taken."""

_0, _1 = np.uint64(0), np.uint64(1)
_GET_EVENTS, _SQ_WAKEUP, _EXTENDED = np.uint64(1), np.uint64(2), np.uint64(8)
_NEED_WAKEUP, _LOW = np.uint64(1), np.uint64(0xFFFFFFFF)
_WAIT_NS = 50_000_000


@intrinsic
def _load_acquire_half(typingctx, address):
    """Return the 32-bit word at an address with acquire, as uint64."""

    def codegen(context, builder, signature, args):
        half = ir.IntType(32)
        value = builder.load_atomic(builder.inttoptr(args[0], half.as_pointer()), "acquire", 4, typ=half)
        return builder.zext(value, ir.IntType(64))

    return types.uint64(types.uint64), codegen


@intrinsic
def _store_release_half(typingctx, address, value):
    """Store the low 32 bits of a word at an address with release."""

    def codegen(context, builder, signature, args):
        half = ir.IntType(32)
        value = builder.trunc(args[1], half)
        builder.store_atomic(value, builder.inttoptr(args[0], half.as_pointer()), "release", 4)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen


@kernel(inner=True)
def ask(words, operation, flags, fd, address, size, how, tag):
    """Write an entry and let the system see it; a thread that polls is woken if it sleeps.

    The ring has more room than a caller ever asks for at once; the caller minds that.

    Parameters
    ----------
    words : ndarray of uint64
        Of the ring.
    operation, flags, fd, address, size, how, tag : uint64
        What to do, flags of the entry, the socket, memory, flags of the call, and what the completion will carry.
    """
    tail = half_word_at(words[SQ_TAIL])
    entry = words[ENTRIES] + ((tail & words[SQ_MASK]) << np.uint64(6))
    set_word_at(entry, operation | flags << np.uint64(8) | fd << np.uint64(32))
    set_word_at(entry + np.uint64(8), _0)
    set_word_at(entry + np.uint64(16), address)
    set_word_at(entry + np.uint64(24), size | how << np.uint64(32))
    set_word_at(entry + np.uint64(32), tag)
    set_word_at(entry + np.uint64(40), _0)
    _store_release_half(words[SQ_TAIL], tail + _1)
    if words[POLLED] == _0:
        words[TO_SUBMIT] += _1
        return
    fence_seq_cst()  # the tail is seen before the flag is looked at, or the thread may sleep for ever
    if half_word_at(words[SQ_FLAGS]) & _NEED_WAKEUP != _0:
        _syscall(_ENTER, types.int64(words[RING]), 0, 0, types.int64(_SQ_WAKEUP), _0, _0)


@kernel(inner=True)
def enter(words, least):
    """Hand over what was asked, and wait for so many completions, 50 ms at most; give errno.

    With `least` of 0 nothing waits, but the system does what it has put off for this thread.
    """
    how = _GET_EVENTS | (_EXTENDED if least != _0 else _0)
    argument, size = (words[TIMEOUT], np.uint64(24)) if least != _0 else (_0, _0)
    went = _syscall(
        _ENTER, types.int64(words[RING]), types.int64(words[TO_SUBMIT]), types.int64(least), types.int64(how),
        argument, size,
    )  # fmt: skip
    if went < types.int64(0):
        return errno()
    words[TO_SUBMIT] -= np.uint64(went)
    return _0


@kernel(inner=True)
def answer(words):
    """Take the next completion: whether there is one, its tag, its result (negative: -errno), its flags."""
    head = half_word_at(words[CQ_HEAD])
    if _load_acquire_half(words[CQ_TAIL]) == head:
        return False, _0, types.int64(0), _0
    at = words[COMPLETIONS] + ((head & words[CQ_MASK]) << np.uint64(4))
    tag, result, flags = word_at(at), half_word_at(at + np.uint64(8)), half_word_at(at + np.uint64(12))
    _store_release_half(words[CQ_HEAD], head + _1)
    return True, tag, types.int64(types.int32(types.uint32(result))), flags


@kernel(inner=True)
def hold(words, size, flags):
    """Queue the buffer of a completion, which carries so many bytes; there is room for as many as there are."""
    at = words[HELD] + ((words[HELD_TAIL] & words[BUFFER_MASK]) << np.uint64(3))
    set_word_at(at, size | (flags >> np.uint64(16)) << np.uint64(32))
    words[HELD_TAIL] += _1


@kernel(inner=True)
def take(words, to, most):
    """Copy what buffers hold to an address, `most` bytes at most, and hand back those that are empty; give how many.

    Up to 7 bytes behind them are overwritten.
    """
    came = _0
    while came < most and words[HELD_HEAD] != words[HELD_TAIL]:
        held = word_at(words[HELD] + ((words[HELD_HEAD] & words[BUFFER_MASK]) << np.uint64(3)))
        number, left = held >> np.uint64(32), (held & _LOW) - words[TAKEN]
        begin, part = words[BUFFERS] + (number << words[BUFFER_BITS]) + words[TAKEN], min(left, most - came)
        for k in range(_0, part, np.uint64(8)):
            set_word_at(to + came + k, word_at(begin + k))
        came += part
        words[TAKEN] += part
        if part == left:
            words[TAKEN] = _0
            words[HELD_HEAD] += _1
            hand_back(words, number)
    return came


@kernel(inner=True)
def hand_back(words, number):
    """Give a buffer to the system."""
    tail, ring = words[BUFFER_TAIL], words[BUFFER_RING]
    entry = ring + ((tail & words[BUFFER_MASK]) << np.uint64(4))
    set_word_at(entry, words[BUFFERS] + (number << words[BUFFER_BITS]))
    # the last 16 bits are reserved, and in the first entry they are the ring's tail: it stays what it is
    last = (_1 << words[BUFFER_BITS]) | number << np.uint64(32) | tail << np.uint64(48)
    set_word_at(entry + np.uint64(8), last)
    words[BUFFER_TAIL] = tail + _1
    first = half_word_at(ring + np.uint64(12)) & np.uint64(0xFFFF)
    _store_release_half(ring + np.uint64(12), first | ((tail + _1) & np.uint64(0xFFFF)) << np.uint64(16))


class Ring(NamedTuple):
    """A ring that is set up, and what it keeps alive."""

    fd: int
    maps: tuple
    words: np.ndarray
    kept: tuple

    def close(self):
        """Let go of the ring; memory that kernels may still look at goes with the last reference."""
        os.close(self.fd)


def _call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    found = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def set_up(flags: int, entries: int = 64, cpu: int | None = None) -> Ring:
    """Set up a ring; with SINGLE_ISSUER by the thread that will use it.

    Parameters
    ----------
    flags : int
    entries : int
        A power of two.
    cpu : int, optional
        Of the thread that polls, with SQPOLL.

    Raises
    ------
    OSError
        The system refuses.
    """
    if flags & SQPOLL and cpu is not None:
        flags |= SQ_AFF
    parameters = bytearray(120)
    struct.pack_into("=6I", parameters, 0, 0, 0, flags, cpu or 0, 2000, 0)  # a polling thread sleeps after 2 s
    raw = (ctypes.c_char * 120).from_buffer(parameters)
    fd = _call(_SETUP, entries, ctypes.addressof(raw))
    try:
        sq_entries, cq_entries = struct.unpack_from("=2I", parameters, 0)
        _, tail, mask, _, sq_flags, _, array = struct.unpack_from("=7I", parameters, 40)
        cq_head, cq_tail, cq_mask, _, _, cqes = struct.unpack_from("=6I", parameters, 80)
        size = max(array + 4 * sq_entries, cqes + 16 * cq_entries)
        rings, places = (
            mmap.mmap(fd, length, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0), offset=offset)
            for length, offset in ((size, 0), (64 * sq_entries, 0x10000000))
        )
        view = np.frombuffer(rings, np.uint8)
        view[array : array + 4 * sq_entries].view(np.uint32)[:] = np.arange(sq_entries)
        base, entries_at = int(address_of(view)), int(address_of(np.frombuffer(places, np.uint8)))
        timeout = huge_array(8, np.uint64, populate=True)
        timeout[:] = 0
        timeout[2] = int(address_of(timeout)) + 32  # of a getevents argument: mask, its size, a timespec
        timeout[4:6] = 0, _WAIT_NS
        words = np.zeros(64, np.uint64)
        halves = view[: size // 4 * 4].view(np.uint32)
        words[int(RING) : int(RING) + 12] = (
            fd, base + tail, base + sq_flags, halves[mask // 4], entries_at, base + cq_head, base + cq_tail,
            halves[cq_mask // 4], base + cqes, int(bool(flags & SQPOLL)), 0, int(address_of(timeout)),
        )  # fmt: skip
    except BaseException:
        os.close(fd)
        raise
    return Ring(fd, (rings, places), words, (timeout,))


def register_files(ring: Ring, descriptors) -> None:
    """Give files numbers of their own in a ring, from 0."""
    array = np.array(descriptors, np.int32)
    _call(_REGISTER, ring.fd, 2, int(address_of(array)), array.size)


def register_buffer(ring: Ring, data: np.ndarray) -> None:
    """Let a ring hold an array's pages, as buffer 0 of `READ_FIXED` and `WRITE_FIXED`."""
    vector = np.array([address_of(data), data.nbytes], np.uint64)
    _call(_REGISTER, ring.fd, 0, int(address_of(vector)), 1)


def register_buffers(ring: Ring, count: int, size: int) -> tuple:
    """Hand buffers to the system from which receives may take, as group 0; return the memory, which must live as long.

    Parameters
    ----------
    ring : Ring
    count, size : int
        Powers of two; at most 32,768 of them, of at least 8 bytes.

    Raises
    ------
    OSError
        The system knows no such ring.
    """
    places = huge_array(2 * count, np.uint64, huge=False, populate=True)
    buffers = huge_array(count * size + 64, np.uint8, huge=False, populate=True)
    held = np.zeros(count, np.uint64)
    rows = places.reshape(count, 2)
    rows[:, 0] = int(address_of(buffers)) + size * np.arange(count)
    rows[:, 1] = size | np.arange(count) << 32
    asked = struct.pack("=QIHH3Q", int(address_of(places)), count, 0, 0, 0, 0, 0)
    _call(_REGISTER, ring.fd, 22, ctypes.addressof(raw := ctypes.create_string_buffer(asked)), 1)
    places.view(np.uint16)[7] = count
    ring.words[int(BUFFER_RING) : int(BUFFER_RING) + 9] = (
        address_of(places), count, count - 1, address_of(buffers), size.bit_length() - 1, address_of(held), 0, 0, 0,
    )  # fmt: skip
    return places, buffers, held, raw


def refused(flags: int, cpu: int | None = None, many: bool = False) -> str:
    """Return why the system sets up no ring of these flags, or an empty text.

    Parameters
    ----------
    flags : int
    cpu : int, optional
        Of the thread that polls, with SQPOLL.
    many : bool
        Whether a receive must be able to answer many times.
    """
    if platform.system() != "Linux":
        return f"{platform.system()} has no io_uring"
    try:
        ring = set_up(flags, 8, cpu)
    except OSError as error:
        why = {errors.EPERM: "not permitted", errors.ENOSYS: "the kernel has no io_uring"}.get(error.errno)
        return f"io_uring is refused: {why or error.strerror}"
    with contextlib.suppress(OSError), contextlib.closing(ring):
        return _many_refused(ring) if many else ""
    return ""


def _many_refused(ring):
    """Try a receive that is to answer many times on a ring without SQPOLL."""
    try:
        kept = register_buffers(ring, 4, 64)
    except OSError as error:
        return f"multishot receive is refused: a ring of buffers cannot be registered ({error.strerror})"
    one, other = socket.socketpair()
    with one, other:
        other.send(b"x")
        struct.pack_into("=BBHi", ring.maps[1], 0, int(RECEIVE), int(SELECT), int(RECEIVE_MANY) >> 16, one.fileno())
        window(int(ring.words[SQ_TAIL]), 4)[0] = 1
        _call(_ENTER, ring.fd, 1, 1, int(_GET_EVENTS), 0, 0)
        result, flags = window(int(ring.words[COMPLETIONS]), 16).view(np.int32)[2:4]
        del kept
    if result < 0:
        return f"multishot receive is refused: {os.strerror(-result)}"
    return "" if flags & int(MORE) else "multishot receive is refused: it ends with its first answer"
