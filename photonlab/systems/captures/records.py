"""From the bytes of a capture to its frames, and on to messages in order: pcap and pcapng, of either byte order.

pcap: a header of 24 bytes, then records with 16 bytes before the frame. pcapng: blocks with type and length before and
the length again behind; sections (each of its own byte order) with interfaces (each of its own link type and clock).
Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import moldudp64
from photonlab.kernels.arbitration import HIGH, LOW, STARTED, arbitrate, give_up, ready, take_held
from photonlab.machine.bits import load_be16, load_be32, load_be64, load_le16, load_le32, load_u8
from photonlab.machine.jit import kernel
from photonlab.systems.captures.headers import find_udp

LARGEST_PACKET = 1 << 16
"""More than the payload of any datagram; so much room must be left for messages before a packet is looked at."""

LARGEST_RECORD = 1 << 20
"""No frame and no description of an interface is longer; a length beyond it is damage."""

INTERFACES, LINES, PRINTS = 256, 16, 1 << 12

MOST_CONFLICTS = 16
"""So many packets that have a number in common and not their bytes are no accident: the lines are not of one stream."""

_0, _1, _2, _3, _4, _6, _8, _9, _10, _12, _14, _16, _20, _24, _28, _32, _36 = (
    np.uint64(i) for i in (0, 1, 2, 3, 4, 6, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 36)
)

# Words of `state`; those before are counted by `headers`
(
    PACKETS, TRUNCATED, MOLD, OTHER_UDP, EMPTY, UNKNOWN_INTERFACE,  # counted here
    PCAPNG, BIG, LINK, TICKS, MAGIC, SKIP, COUNT, FIRST_TIME, FIRST_TICKS, LAST_TIME, LAST_TICKS, SKIPPED, CONFLICTS,
    CHOSEN,
) = (np.uint64(i) for i in range(8, 28))  # fmt: skip

# How a walk ended
MORE, FULL, NO_MAGIC, BAD_LENGTH, BAD_END, CONFLICT = range(6)
_MORE, _FULL, _NO_MAGIC, _BAD_LENGTH, _BAD_END, _CONFLICT = (np.uint64(i) for i in range(6))

# Block types of pcapng
_SECTION, _INTERFACE, _PACKET, _SIMPLE, _ENHANCED = (np.uint64(i) for i in (0x0A0D0D0A, 1, 2, 3, 6))
_ORDER_MAGIC, _SWAPPED_MAGIC = np.uint64(0x1A2B3C4D), np.uint64(0x4D3C2B1A)
_TSRESOL, _MICROSECONDS, _NANOSECONDS = _9, _6, _9
_PCAP_VERSION = np.uint64(0x00040002)
_LARGEST_PACKET, _LARGEST_RECORD = np.uint64(LARGEST_PACKET), np.uint64(LARGEST_RECORD)
_SNAP_SHIFT, _TICKS_SHIFT, _16_BITS, _32_BITS, _8_BITS = (
    _32,
    _16,
    np.uint64(0xFFFF),
    np.uint64(0xFFFFFFFF),
    np.uint64(255),
)
_MILLION, _BILLION = np.uint64(10**6), np.uint64(10**9)
_INTERFACES, _LINES = np.uint64(INTERFACES), np.uint64(LINES)
_LINE_WORDS_SHIFT = _2
_MOST_CONFLICTS, _PRINTS_MASK = np.uint64(MOST_CONFLICTS), np.uint64(PRINTS - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SPACE, _TILDE = np.uint64(0x20), np.uint64(0x7E)


class Capture(NamedTuple):
    """How far a capture has been read; see the constants of this module.

    Attributes
    ----------
    state : ndarray of uint64, shape (32,)
        Counters, format, byte order, first and last time.
    interfaces : ndarray of uint64, shape (INTERFACES,)
        Of this section of a pcapng: link type | clock << 16 | snapshot length << 32.
    lines : ndarray of uint64, shape (4 * LINES,)
        Address (two words) and port of each line on which MoldUDP64 was recognised; the last word is 1 if it is in use.
    prints : ndarray of uint64, shape (2 * PRINTS,)
        Number, and a hash of the first bytes, of packets seen lately, by the number's low bits.
    """

    state: np.ndarray
    interfaces: np.ndarray
    lines: np.ndarray
    prints: np.ndarray


def make_capture() -> Capture:
    """Return the state before the first byte."""
    sizes = (32, INTERFACES, 4 * LINES, 2 * PRINTS)
    return Capture(*(np.zeros(size, np.uint64) for size in sizes))


@kernel(inner=True)
def _load32(data, at, big):
    return load_be32(data, at) if big != _0 else load_le32(data, at)


@kernel(inner=True)
def _load16(data, at, big):
    return load_be16(data, at) if big != _0 else load_le16(data, at)


@kernel
def begin_pcap(capture, header):
    """Take in the 24 bytes of a pcap's header, whose magic has been looked at; `capture.state[BIG]` is set."""
    _read_pcap_header(capture.state, header, _0)


@kernel(inner=True)
def _read_pcap_header(state, data, at):
    magic = _load32(data, at, state[BIG])
    state[MAGIC] = magic
    state[TICKS] = _NANOSECONDS if magic == np.uint64(0xA1B23C4D) else _MICROSECONDS
    state[LINK] = _load32(data, at + _20, state[BIG]) & _16_BITS


@kernel
def walk(capture, arbiter, data, begin, end, out):
    """Read records, and copy the messages that they hold in order, framed as in a file.

    Parameters
    ----------
    capture : Capture
    arbiter : arbitration.Arbiter
        With slots of `LARGEST_PACKET` bytes.
    data : ndarray of uint8
    begin, end : uint64
        The bytes that there are; a record begins at `begin`.
    out : ndarray of uint8
        Filled from its first byte on; at least 2 * `LARGEST_PACKET`.

    Returns
    -------
    outcome : uint64
        `MORE`: no whole record is left; `FULL`: `out` has no room; others: damage at `position`.
    position : uint64
        Where the first record stands that was not read.
    filled : uint64
        Bytes in `out`.
    wanted : uint64
        Bytes that the record there needs, as far as is known.
    """
    state = capture.state
    position, filled, room = begin, _0, np.uint64(out.size) - _LARGEST_PACKET
    while True:
        filled = _drain(capture, arbiter, out, filled, room)
        if filled > room:
            return _FULL, position, filled, _0
        if state[SKIP] != _0:
            skipped = min(state[SKIP], end - position)
            state[SKIP] -= skipped
            position += skipped
        if state[PCAPNG] == _0:
            size = _16
            if position + size > end:
                return _MORE, position, filled, size
            captured = _load32(data, position + _8, state[BIG])
            if _load32(data, position, state[BIG]) == state[MAGIC] and (
                _load32(data, position + _4, state[BIG]) == _PCAP_VERSION
            ):  # another pcap of this kind, appended to the first
                if position + _24 > end:
                    return _MORE, position, filled, _24
                _read_pcap_header(state, data, position)
                position += _24
                continue
            size += captured
            if captured > _LARGEST_RECORD:
                return _BAD_LENGTH, position, filled, size
            if position + size > end:
                return _MORE, position, filled, size
            unit = _BILLION if state[TICKS] == _NANOSECONDS else _MILLION
            time = _load32(data, position, state[BIG]) * unit + _load32(data, position + _4, state[BIG])
            original, frame, link, ticks = (
                _load32(data, position + _12, state[BIG]),
                position + _16,
                state[LINK],
                state[TICKS],
            )
        else:
            outcome, size = _whole_block(state, data, position, end)
            if outcome != _0:
                return (_MORE if outcome == _1 else outcome), position, filled, size
            if state[SKIP] != _0:
                continue
            kind = _load32(data, position, state[BIG])
            if kind in (_SECTION, _INTERFACE):
                if kind == _INTERFACE:
                    _add_interface(capture, data, position, size)
                else:
                    state[COUNT] = _0
                position += size
                continue
            interface, time = _0, _0
            if kind == _SIMPLE:
                original, frame = _load32(data, position + _8, state[BIG]), position + _12
                captured = min(original, size - _16)
                snap = capture.interfaces[_0] >> _SNAP_SHIFT
                captured = min(captured, snap) if snap != _0 else captured
            else:
                interface = _load32(data, position + _8, state[BIG])
                if kind == _PACKET:
                    interface = _load16(data, position + _8, state[BIG])
                time = (_load32(data, position + _12, state[BIG]) << _32) | _load32(data, position + _16, state[BIG])
                captured, original = (
                    _load32(data, position + _20, state[BIG]),
                    _load32(data, position + _24, state[BIG]),
                )
                frame = position + _28
                if captured + _32 > size:
                    return _BAD_LENGTH, position, filled, size
            if interface >= state[COUNT] or interface >= _INTERFACES:
                state[PACKETS] += _1
                state[UNKNOWN_INTERFACE] += _1
                position += size
                continue
            facts = capture.interfaces[interface]
            link, ticks = facts & _16_BITS, (facts >> _TICKS_SHIFT) & _8_BITS
        state[PACKETS] += _1
        if time != _0:
            if state[FIRST_TIME] == _0:
                state[FIRST_TIME], state[FIRST_TICKS] = time, ticks
            state[LAST_TIME], state[LAST_TICKS] = time, ticks
        state[TRUNCATED] += np.uint64(captured < original)
        begin_at, stop, high, low, port = find_udp(state, data, frame, frame + captured, link)
        if stop != _0:
            line = _line_of(capture, data, begin_at, stop, captured < original, high, low, port)
            if line < _LINES:
                _compare(capture, arbiter.state, data, begin_at, stop)
                if state[CONFLICTS] >= _MOST_CONFLICTS:
                    return _CONFLICT, position, filled, size
                fresh, blocks, blocks_end = arbitrate(arbiter, line, data, begin_at, stop)
                if fresh != _0:
                    filled = _copy(state, data, blocks, blocks_end, out, filled)
            else:
                state[OTHER_UDP] += _1
        position += size


@kernel
def finish(capture, arbiter, out):
    """Give up what is missing and copy what was held back behind it, as far as there is room; return the bytes."""
    filled, room = _0, np.uint64(out.size) - _LARGEST_PACKET
    while True:
        filled = _drain(capture, arbiter, out, filled, room)
        if filled > room or give_up(arbiter) == _0:
            return filled


@kernel(inner=True)
def _drain(capture, arbiter, out, filled, room):
    """Copy what was held back and is next now, while there is room."""
    while filled <= room and ready(arbiter):
        fresh, blocks, blocks_end = take_held(arbiter)
        if fresh != _0:
            filled = _copy(capture.state, arbiter.storage, blocks, blocks_end, out, filled)
    return filled


@kernel(inner=True)
def _copy(state, data, begin, end, out, filled):
    filled, empty = moldudp64.copy_blocks(data, begin, end, out, filled)
    state[EMPTY] += empty
    return filled


@kernel(inner=True)
def _whole_block(state, data, at, end):
    """Return 0 if a whole block of pcapng stands there, 1 if bytes are missing, else the damage; and its length.

    A block of no interest is not waited for: `state[SKIP]` is set instead, to its length.
    """
    if at + _12 > end:
        return _1, _12
    section = load_be32(data, at) == _SECTION
    if section:
        magic = load_be32(data, at + _8)
        if magic != _ORDER_MAGIC and magic != _SWAPPED_MAGIC:
            return _NO_MAGIC, _12
        state[BIG] = np.uint64(magic == _ORDER_MAGIC)
    kind, size = _load32(data, at, state[BIG]), _load32(data, at + _4, state[BIG])
    if size < _12 or size & _3 != _0:
        return _BAD_LENGTH, size
    least = _12
    if kind in (_ENHANCED, _PACKET):
        least = _32
    elif kind == _SIMPLE:
        least = _16
    elif kind == _INTERFACE:
        least = _20
    elif kind == _SECTION:
        least = _28
    else:
        state[SKIP] = state[SKIPPED] = size
        return _0, size
    if size < least or size > _LARGEST_RECORD + _32:
        return _BAD_LENGTH, size
    if at + size > end:
        return _1, size
    if _load32(data, at + size - _4, state[BIG]) != size:
        return _BAD_END, size
    return _0, size


@kernel(inner=True)
def _add_interface(capture, data, at, size):
    """Note link type, clock and snapshot length of a section's next interface."""
    state = capture.state
    big = state[BIG]
    option, end, ticks = at + _16, at + size - _4, _MICROSECONDS
    while option + _4 <= end:
        code, length = _load16(data, option, big), _load16(data, option + _2, big)
        if code == _0 or option + _4 + length > end:
            break
        if code == _TSRESOL and length == _1:
            ticks = load_u8(data, option + _4)
        option += _4 + ((length + _3) & ~_3)
    if state[COUNT] < _INTERFACES:
        snap = _load32(data, at + _12, big)
        capture.interfaces[state[COUNT]] = _load16(data, at + _8, big) | ticks << _TICKS_SHIFT | snap << _SNAP_SHIFT
    state[COUNT] += _1


@kernel(inner=True)
def _line_of(capture, data, at, end, cut, high, low, port):
    """Return the number of the line that a datagram belongs to; `_LINES` if it is no MoldUDP64.

    A destination is a line once a sound packet came to it; from then on all that comes to it counts, damaged or not.
    """
    lines, state = capture.lines, capture.state
    line = _0
    while line < _LINES:
        word = line << _LINE_WORDS_SHIFT
        if lines[word + _3] == _0:
            break
        if lines[word + _1] == low and lines[word + _2] == port and lines[word] == high:
            state[MOLD] += _1
            return line
        line += _1
    if line == _LINES or state[CHOSEN] != _0 or not _is_sound(data, at, end, cut):
        return _LINES
    word = line << _LINE_WORDS_SHIFT
    lines[word], lines[word + _1], lines[word + _2], lines[word + _3] = high, low, port, _1
    state[MOLD] += _1
    return line


@kernel(inner=True)
def _compare(capture, stream, data, at, end):
    """Count a packet that has its number in common with one seen before, but not its first bytes."""
    if at + _36 > end:
        return
    high, low, sequence, count = moldudp64.read_header(data, at)
    other = stream[STARTED] != _0 and (high != stream[HIGH] or low != stream[LOW])
    if other or moldudp64.messages_of(count) == _0:
        return
    prints, entry = capture.prints, (sequence & _PRINTS_MASK) << _1
    word = load_be64(data, at + _20) * _GOLDEN ^ load_be64(data, at + _28)
    if prints[entry] != sequence:
        prints[entry], prints[entry + _1] = sequence, word
    elif prints[entry + _1] != word:
        capture.state[CONFLICTS] += _1


@kernel(inner=True)
def _is_sound(data, at, end, cut):
    """Tell whether a payload is exactly a packet of MoldUDP64 (or, of a frame cut short, its front), and has a name."""
    status, _stop, messages = moldudp64.check(data, at, end)
    if status != moldudp64.OK and not (cut and status == moldudp64.SHORT and messages != _0):
        return False
    for place in range(10):
        letter = load_u8(data, at + np.uint64(place))
        if letter < _SPACE or letter > _TILDE:
            return False
    return True
