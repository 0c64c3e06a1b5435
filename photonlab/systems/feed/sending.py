"""The simulator's loop: messages packed as MoldUDP64, sent when they are due on one line or two, faults planted."""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import histogram
from photonlab.kernels.histogram import Histogram
from photonlab.kernels.moldudp64 import HEADER, HEARTBEAT, PREFIX, pack, write_header
from photonlab.machine import clock, udp, udp_segments
from photonlab.machine.atomics import load_acquire, pause
from photonlab.machine.bits import load_be16, load_be48
from photonlab.machine.jit import kernel
from photonlab.machine.udp import Box
from photonlab.systems.feed import schedule as schedules
from photonlab.systems.feed.faults import LATE, LOST, REPEATED, fate

BATCH = 64
"""Packets of one call at most."""

PACKET = 2048
_SLOTS = 2 * BATCH  # a packet that is late stays until the next one has gone
_0, _1 = np.uint64(0), np.uint64(1)
_BATCH, _SLOT_MASK, _PACKET = np.uint64(BATCH), np.uint64(_SLOTS - 1), np.uint64(PACKET)
_PREFIX, _STAMP = np.uint64(PREFIX), np.uint64(PREFIX + 5)
_HEADER, _HEARTBEAT = np.uint64(HEADER), np.uint64(HEARTBEAT)

STOP = _0  # the word of `control` that ends it

# Words of `state`
(
    HIGH, LOW, SEQUENCE, PACKETS, MOST, ROOM, TOGETHER, QUIET, LAST_SENT, WHY, LINES, HEARTBEATS,
) = (np.uint64(i) for i in range(12))  # fmt: skip

# Words of a line: descriptor; number of packet held back + 1; packets sent; lost, repeated and late ones; calls;
# messages of the lost ones; packets that the system refused; packets that may go as one buffer; buffers; why the system
# refused to cut them up
LINE_WORDS = 16
(
    FD, HELD, SENT, LOST_PACKETS, REPEATED_PACKETS, LATE_PACKETS, CALLS, LOST_MESSAGES, REFUSED, SEGMENTS, BUFFERS,
    NOT_CUT,
) = (np.uint64(i) for i in range(12))  # fmt: skip


class Line(NamedTuple):
    """One of the lines that a feed is sent by.

    Attributes
    ----------
    box : Box
    faults : ndarray of uint64, shape (4,)
    words : ndarray of uint64, shape (16,)
        See the constants of this module.
    lost : ndarray of uint64, shape (2 * room,)
        First number and messages of each packet that was lost on purpose, as long as there is room.
    """

    box: Box
    faults: np.ndarray
    words: np.ndarray
    lost: np.ndarray


class Sending(NamedTuple):
    """What a simulator keeps between two calls of `send_until`.

    Attributes
    ----------
    state, control, schedule : ndarray of uint64
    sizes, firsts, counts, dues : ndarray of uint64, shape (128,)
        Of packets by their number's low bits: bytes, number of the first message, messages, when due.
    errors : Histogram
        How late packets were, from when they were due to when the call that sent them returned, in units of 64 ns.
    """

    state: np.ndarray
    control: np.ndarray
    schedule: np.ndarray
    sizes: np.ndarray
    firsts: np.ndarray
    counts: np.ndarray
    dues: np.ndarray
    errors: Histogram


ERROR_SHIFT = np.uint64(6)
_BILLION = np.uint64(1_000_000_000)


@kernel
def send_until(first, second, sending, data, begin, end):
    """Send messages of a file until its end, or until it is told to stop.

    Parameters
    ----------
    first, second : Line
        The second one is not looked at if there is one line only.
    sending : Sending
    data : ndarray of uint8
        Framed as a file is.
    begin, end : uint64
        Offset of a message's length; end of what may be read.

    Returns
    -------
    uint64
        Offset behind the last message packed: `end`, or where a message is cut off or a length is zero, or where it
        was told to stop, or where a socket failed (state[WHY]).
    """
    state, schedule, sizes = sending.state, sending.schedule, sending.sizes
    paced = schedule[schedules.MODE] != schedules.FLAT_OUT
    while load_acquire(sending.control, STOP) == _0 and state[WHY] == _0:
        now, count, whole = clock.ticks(), _0, True
        while count < _BATCH:
            messages, stop, stamp = _next_packet(state, schedule, data, begin, end)
            if messages == _0:
                whole = False
                break
            due = schedules.due(schedule, state[SEQUENCE] + messages - _1, stamp) if paced else _0
            if paced and now - due >= np.uint64(1) << np.uint64(63):  # not yet
                break
            slot = state[PACKETS] & _SLOT_MASK
            at = slot * _PACKET
            messages, begin, stop = pack(
                data, begin, stop, messages, first.box.data, at, state[ROOM], state[HIGH], state[LOW], state[SEQUENCE]
            )
            sizes[slot], sending.dues[slot] = stop - at, due
            sending.firsts[slot], sending.counts[slot] = state[SEQUENCE], messages
            state[SEQUENCE] += messages
            state[PACKETS] += _1
            count += _1
        if count != _0:
            _send_line(first, sending, state[PACKETS] - count, state[PACKETS])
            if state[LINES] > _1:
                _send_line(second, sending, state[PACKETS] - count, state[PACKETS])
            state[LAST_SENT] = clock.ticks()
            if paced:
                _note_errors(sending, count)
        elif not whole:
            return begin
        else:
            if now - state[LAST_SENT] > state[QUIET] and now > state[LAST_SENT]:
                beat(first, second, sending, _HEARTBEAT)
            pause()
    return begin


@kernel(inner=True)
def _next_packet(state, schedule, data, begin, end):
    """Return how many messages the next packet takes, the offset behind them, and the last one's time stamp.

    Messages go together that fit and, where the file's clock counts, lie no further apart than TOGETHER ns.
    """
    messages, at, stamp, earliest = _0, begin, _0, _0
    by_clock = schedule[schedules.MODE] == schedules.FILE_CLOCK
    limit = begin + state[ROOM] - _HEADER
    while messages < state[MOST] and at + _PREFIX <= end:
        length = load_be16(data, at)
        following = at + _PREFIX + length
        if length == _0 or following > end or following > limit:
            break
        now = load_be48(data, at + _STAMP) if length >= np.uint64(11) else stamp
        if messages == _0:
            earliest = now
        elif by_clock and now > earliest + state[TOGETHER]:
            break
        stamp = now
        messages += _1
        at = following
    return messages, at, stamp


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _send_line(line, sending, packet, behind):
    """Send packets of some numbers by a line, as its faults have it."""
    words, box, n = line.words, line.box, _0
    if words[HELD] != _0 and packet - words[HELD] >= _BATCH:  # all since then were lost: its slot is wanted soon
        slot = (words[HELD] - _1) & _SLOT_MASK
        udp.put(box, n, slot * _PACKET, sending.sizes[slot])
        words[HELD] = _0
        n = _1
    while packet < behind:
        slot = packet & _SLOT_MASK
        at, size, what = slot * _PACKET, sending.sizes[slot], fate(line.faults, packet)
        packet += _1
        if what == LOST:
            listed = words[LOST_PACKETS] << _1
            if listed < np.uint64(line.lost.size):
                line.lost[listed], line.lost[listed + _1] = sending.firsts[slot], sending.counts[slot]
            words[LOST_PACKETS] += _1
            words[LOST_MESSAGES] += sending.counts[slot]
            continue
        if what == LATE and words[HELD] == _0:
            words[HELD] = packet
            words[LATE_PACKETS] += _1
            continue
        udp.put(box, n, at, size)
        n += _1
        if what == REPEATED:
            words[REPEATED_PACKETS] += _1
            udp.put(box, n, at, size)
            n += _1
        if words[HELD] != _0:
            slot = (words[HELD] - _1) & _SLOT_MASK
            udp.put(box, n, slot * _PACKET, sending.sizes[slot])
            words[HELD] = _0
            n += _1
    _send_all(line, sending, n)


@kernel(inner=True)
def _send_all(line, sending, n):
    """Send the first n packets that were put; refused ones are counted and sent again, then left out."""
    words, sent, tries = line.words, _0, _0
    while sent < n and load_acquire(sending.control, STOP) == _0:
        buffers = udp_segments.bundle(line.box, sent, n, words[SEGMENTS])
        done, why = udp.send(line.box, words[FD], _0, buffers, _0)
        packets = udp_segments.packets(line.box, done)
        words[CALLS] += _1
        words[BUFFERS] += done
        words[SENT] += packets
        sent += packets
        if why != _0 and words[SEGMENTS] > _1 and udp_segments.is_refusal(why):
            words[SEGMENTS], words[NOT_CUT] = _1, why  # from here on each packet by itself
        elif why != _0:
            sending.state[WHY] = why
            break
        elif done == _0:
            words[REFUSED] += _1
            tries += _1
            if tries > np.uint64(1000):
                sent += _1
                tries = _0
        else:
            tries = _0


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _note_errors(sending, count):
    state, hz = sending.state, sending.schedule[schedules.HZ]
    packet = state[PACKETS] - count
    while packet < state[PACKETS]:
        late = clock.elapsed(sending.dues[packet & _SLOT_MASK], state[LAST_SENT])
        ns = late // hz * _BILLION + late % hz * _BILLION // hz
        histogram.add(sending.errors, ns >> ERROR_SHIFT)
        packet += _1


@kernel
def beat(first, second, sending, count):
    """Send a packet without messages by every line: a heartbeat, or the end of the session, by its count.

    Packets held back go before it.
    """
    state = sending.state
    for number in range(2):
        line = first if number == 0 else second
        if np.uint64(number) < state[LINES]:
            n = _0
            if line.words[HELD] != _0:
                slot = (line.words[HELD] - _1) & _SLOT_MASK
                udp.put(line.box, _0, slot * _PACKET, sending.sizes[slot])
                line.words[HELD] = _0
                n = _1
            at = np.uint64(_SLOTS) * _PACKET
            write_header(line.box.data, at, state[HIGH], state[LOW], state[SEQUENCE], count)
            udp.put(line.box, n, at, _HEADER)
            _send_all(line, sending, n + _1)
    state[LAST_SENT] = clock.ticks()
    state[HEARTBEATS] += _1


def make_sending(schedule, *, session, most, room, together, quiet, lines):
    """Return what `send_until` keeps, before the first message."""
    state = np.zeros(32, np.uint64)
    state[HIGH], state[LOW] = session
    state[SEQUENCE], state[MOST], state[ROOM], state[TOGETHER], state[QUIET], state[LINES] = (
        1, most, room, together, quiet, lines,
    )  # fmt: skip
    slots = [np.zeros(_SLOTS, np.uint64) for _ in range(4)]
    return Sending(state, np.zeros(16, np.uint64), schedule, *slots, histogram.empty(1 << 16))


def make_line(fd, faults, shared=None, segments=udp_segments.MOST, room=1) -> Line:
    """Return a line by a socket, with room to list lost packets; the second one shares the packets of the first."""
    if shared is None:
        box = udp.make_box(_SLOTS + 4, PACKET)
    else:
        box = udp.share(udp.make_box(_SLOTS + 4, 1), shared.box)
    words = np.zeros(LINE_WORDS, np.uint64)
    words[FD], words[SEGMENTS] = fd, segments
    return Line(udp_segments.prepare(box), faults, words, np.zeros(2 * room, np.uint64))
