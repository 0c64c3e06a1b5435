"""One end of a transport: `send` and `receive` for kernels, whatever carries the bytes.

All transports share one type of state with a word that says how they go, so that a loop over them is compiled once.
Both functions wait in the transport's own manner, and give up when the stop flag rises or the deadline passes: no
wait lasts longer than 50 ms without a look at them.

    if not link.send(one, at, size, flags): ...                 # why: one.words[WHY]
    came = link.receive(one, at, wanted, most, flags)           # fewer than wanted: why as above
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import ring
from photonlab.kernels.ring import Ring
from photonlab.machine import bits, io_uring, stream_sockets
from photonlab.machine.atomics import plain_load, plain_store
from photonlab.machine.jit import kernel
from photonlab.machine.stream_sockets import CLOSED, NOW, WAITING, again
from photonlab.systems.spin import given_up

BLOCKING, SPINNING, EPOLL, RINGS, URING_WAITS, URING_SPINS, URING_ENTERS = (np.uint64(i) for i in range(7))
"""Modes: calls that wait; calls that do not, again and again; epoll asked again and again; rings in shared memory;
io_uring by calls that wait, by looking at the completions only, by calls that do not wait."""

MODE, IN, OUT, EPOLL_FD, EVENTS, DATA, WHY, PIECE, SHORT, RECEIVED, SENT = (np.uint64(i) for i in range(11))
"""Words: mode, descriptors to receive and to send by, of epoll and where its events go, where the data lies, why the
last call ended early, bytes to send by one call at most, calls that moved less than asked, bytes so far."""

FIXED_FILES, FIXED_BUFFERS, ASKED, LEFT, LEFT_AT, ASKED_AGAIN = (np.uint64(i) for i in range(16, 22))
"""Words for io_uring: whether files and buffers are registered, whether an answer to a request to receive is due, bytes
of a send that is under way, and where they lie, and how often a request for many answers had to be made."""

STOPPED = np.uint64(1 << 20)
"""What WHY says of a stop flag or a deadline; `stream_sockets.CLOSED` of a peer that is gone; else it is an errno."""

IN_AT, OUT_AT, ROOM = np.uint64(0), np.uint64(1 << 15), np.uint64((1 << 15) - 64)
"""Where in the data the bytes received are put by custom, and those to be sent, and room for either."""

PAYLOAD = 63
"""Bytes that a slot of a ring carries; its last byte says how many."""

_0, _1, _8, _ALWAYS = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(63)
_PAYLOAD, _TOP, _REST = np.uint64(PAYLOAD), np.uint64(56), np.uint64((1 << 56) - 1)
_NO_SIGNAL, _SEND_TAG, _RECEIVE_TAG = np.uint64(0x4000), np.uint64(1), np.uint64(2)


class Link(NamedTuple):
    """One end.

    Attributes
    ----------
    words : ndarray of uint64, shape (64,)
        See the constants of this module; those of `io_uring` lie behind them.
    data : ndarray of uint8
        What is sent from and received into, 64 bytes longer than is used.
    inward, outward : Ring
        Of shared memory; empty ones elsewhere.
    """

    words: np.ndarray
    data: np.ndarray
    inward: Ring
    outward: Ring


@kernel(inner=True)
def send(link, at, size, flags):
    """Send bytes of a link's data, all of them; return False if that was given up.

    Parameters
    ----------
    link : Link
    at, size : uint64
        With io_uring they stay as they are until the next `send` or `receive` has returned.
    flags : ndarray of uint64
        As `spin.together` hands them out.
    """
    words = link.words
    words[SENT] += size
    mode = words[MODE]
    if mode <= EPOLL:
        return _send_by_calls(words, at, size, flags)
    if mode == RINGS:
        return _send_by_ring(link, at, size, flags)
    if words[LEFT] != _0:
        _receive_by_uring(words, at, _0, _0, flags)  # until the last send has gone: its bytes come first
        if words[LEFT] != _0:
            return False
    words[LEFT], words[LEFT_AT] = size, words[DATA] + at
    _ask_to_send(words)
    if words[io_uring.POLLED] != _0:
        return True
    return _went(words, io_uring.enter(words, _0))  # now, not with the next call: nobody may be about to receive


@kernel(inner=True)
def receive(link, at, wanted, most, flags):
    """Receive at least `wanted` bytes into a link's data, and at most `most`; give how many.

    Fewer than wanted were received only if that was given up, or nothing more will come.
    """
    mode = link.words[MODE]
    if mode <= EPOLL:
        came = _receive_by_calls(link.words, at, wanted, most, flags)
    elif mode == RINGS:
        came = _receive_by_ring(link, at, wanted, most, flags)
    else:
        came = _receive_by_uring(link.words, at, wanted, most, flags)
    link.words[RECEIVED] += came
    return came


@kernel(inner=True)
def _went(words, why):
    """Keep an errno that is none of those that come and go; tell whether to go on."""
    if why == _0 or again(why):
        return True
    words[WHY] = why
    return False


@kernel(inner=True)
def _ended(words, flags, spins):
    """Tell whether a wait must end, and take down why."""
    if given_up(flags, spins):
        words[WHY] = STOPPED
        return True
    return False


@kernel(inner=True)
def _send_by_calls(words, at, size, flags):
    address, left, spins = words[DATA] + at, size, _0
    how = WAITING if words[MODE] == BLOCKING else NOW
    while left != _0:
        went, why = stream_sockets.send_some(words[OUT], address, min(left, words[PIECE]), how)
        address += went
        left -= went
        words[SHORT] += np.uint64(left != _0)
        if not _went(words, why) or (went == _0 and _ended(words, flags, _ALWAYS if how == WAITING else spins)):
            return False
        spins += _1
    return True


@kernel(inner=True)
def _receive_by_calls(words, at, wanted, most, flags):
    came, spins = _0, _0
    mode = words[MODE]
    how = WAITING if mode == BLOCKING else NOW
    while came < wanted:
        if mode != EPOLL or stream_sockets.ready(words[EPOLL_FD], words[EVENTS], _0) != _0:
            got, why = stream_sockets.receive_some(words[IN], words[DATA] + at + came, most - came, how)
            came += got
            if not _went(words, why):
                return came
            if got != _0:
                words[SHORT] += np.uint64(came < wanted)
                continue
        if _ended(words, flags, _ALWAYS if how == WAITING else spins):
            return came
        spins += _1
    return came


@kernel(inner=True)
def _send_by_ring(link, at, size, flags):
    words, slots = link.words, link.outward.words
    while size != _0:
        spins = _0
        while ring.room(link.outward, _1) == _0:
            if _ended(words, flags, spins):
                return False
            spins += _1
        head = ring.head(link.outward)
        place = ring.slot(link.outward, head)
        part = min(size, words[PIECE], _PAYLOAD)
        for i in range(np.uint64(7)):
            plain_store(slots, place + i, bits.load_le64(link.data, at + (i << np.uint64(3))))
        last = bits.load_le64(link.data, at + np.uint64(56)) & _REST
        plain_store(slots, place + np.uint64(7), last | part << _TOP)
        ring.publish_to(link.outward, head + _1)
        at += part
        size -= part
    return True


@kernel(inner=True)
def _receive_by_ring(link, at, wanted, most, flags):
    words, slots, came = link.words, link.inward.words, _0
    while came < wanted:
        spins = _0
        while ring.waiting(link.inward, _1) == _0:
            if _ended(words, flags, spins):
                return came
            spins += _1
        tail = ring.tail(link.inward)
        place = ring.slot(link.inward, tail)
        part = plain_load(slots, place + np.uint64(7)) >> _TOP
        if part > _PAYLOAD or came + part > most:
            words[WHY] = np.uint64(90)  # EMSGSIZE: nobody waits for so much
            return came
        for i in range(np.uint64(8)):
            bits.store_le64(link.data, at + came + (i << np.uint64(3)), plain_load(slots, place + i))
        ring.release_to(link.inward, tail + _1)
        came += part
        words[SHORT] += np.uint64(came < wanted)
    return came


@kernel(inner=True)
def _ask_to_send(words):
    """Ask for what is left of a send."""
    fixed = words[FIXED_BUFFERS] != _0
    io_uring.ask(
        words, io_uring.WRITE_FIXED if fixed else io_uring.SEND, words[FIXED_FILES],
        _1 if words[FIXED_FILES] != _0 else words[OUT], words[LEFT_AT], min(words[LEFT], words[PIECE]),
        _0 if fixed else _NO_SIGNAL, _SEND_TAG,
    )  # fmt: skip


@kernel(inner=True)
def _ask_to_receive(words, at, most):
    """Ask for bytes, once, or once for all if the ring has buffers."""
    fixed, how = words[FIXED_BUFFERS] != _0, words[FIXED_FILES]
    operation, address = io_uring.READ_FIXED if fixed else io_uring.RECEIVE, words[DATA] + at
    if words[io_uring.BUFFER_RING] != _0:
        operation, how, address, most = io_uring.RECEIVE_MANY, how | io_uring.SELECT, _0, _0
        words[ASKED_AGAIN] += _1
    io_uring.ask(words, operation, how, _0 if words[FIXED_FILES] != _0 else words[IN], address, most, _0, _RECEIVE_TAG)
    words[ASKED] = _1


@kernel(inner=True)
def _receive_by_uring(words, at, wanted, most, flags):
    """Ask to receive, and take answers until there is enough and what was sent has gone."""
    came, spins = _0, _0
    mode, many = words[MODE], words[io_uring.BUFFER_RING] != _0
    while True:
        if many:
            came += io_uring.take(words, words[DATA] + at + came, most - came)
        if came >= wanted and words[LEFT] == _0:
            return came
        if words[ASKED] == _0 and came < wanted:
            _ask_to_receive(words, at + came, most - came)
        there, tag, result, how = io_uring.answer(words)
        if not there:
            if mode == URING_WAITS:
                if not _went(words, io_uring.enter(words, _1)):
                    return came
            elif (mode == URING_ENTERS or words[io_uring.TO_SUBMIT] != _0) and not _went(
                words, io_uring.enter(words, _0)
            ):
                return came
            if _ended(words, flags, _ALWAYS if mode == URING_WAITS else spins):
                return came
            spins += _1
            continue
        why = np.uint64(-result) if result < 0 else _0
        moved = np.uint64(result) if result > 0 else _0
        if tag == _RECEIVE_TAG:
            words[ASKED] = np.uint64(how & io_uring.MORE != _0)
            words[SHORT] += np.uint64(came + moved < wanted)
            why = CLOSED if result == 0 else why
            if many and moved != _0:
                io_uring.hold(words, moved, how)
            else:
                came += moved
            why = _0 if why == io_uring.NO_BUFFERS else why  # all that are held are taken before it is asked again
        else:
            words[LEFT] -= moved
            words[LEFT_AT] += moved
            if words[LEFT] != _0 and (why == _0 or again(why)):
                words[SHORT] += _1
                _ask_to_send(words)
        if not _went(words, why):
            return came
