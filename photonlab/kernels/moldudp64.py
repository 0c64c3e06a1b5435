"""MoldUDP64: packets of messages with sequence numbers, as NASDAQ sends ITCH by multicast (MoldUDP64 1.00, 2012).

A packet is a header of 20 bytes (session, 10 characters; sequence number of the first message, 8 bytes; count, 2 bytes;
big-endian) and `count` blocks, each a length in two bytes and the message. Blocks are thus framed as in NASDAQ's files,
and a whole packet of them is packed and unpacked by one copy of a range. The kinds of packets:

- count 1 to 0xFFFE: so many messages;
- count 0: heartbeat; the sequence number is that of the next message to come;
- count 0xFFFF: end of session; the sequence number is one more than that of the last message;
- a request for messages sent again has the same 20 bytes: session, first sequence number, count wanted.
"""

import numpy as np

from photonlab.errors import UserError
from photonlab.machine.bits import load_be16, load_be64, store_be16, store_be64
from photonlab.machine.jit import kernel

HEADER = 20
"""Bytes of the header, and of a whole request."""

PREFIX = 2
"""Bytes of the length before each message."""

HEARTBEAT, END_OF_SESSION = 0, 0xFFFF
"""Counts that are none."""

MOST = 0xFFFE
"""Most messages of a packet, and that can be asked for at once."""

FIRST_SEQUENCE = 1
"""Number of a session's first message."""

OK, NO_HEADER, SHORT, TRAILING = (np.uint64(i) for i in range(4))
"""What `check` says of a packet: sound; less than a header; fewer whole blocks than its count; bytes behind them."""

STATUS = ("ok", "no header", "fewer blocks than its count", "bytes behind the last block")

_0, _1, _2, _8, _10, _18 = (np.uint64(i) for i in (0, 1, 2, 8, 10, 18))
_HEADER, _END = np.uint64(HEADER), np.uint64(END_OF_SESSION)


@kernel(inner=True)
def write_header(packet, at, high, low, sequence, count):
    """Write the 20 bytes of a header, or of a request.

    Parameters
    ----------
    packet : ndarray of uint8
    at : uint64
        Offset of the header.
    high, low : uint64
        The session, as `session_words` gives it.
    sequence, count : uint64
    """
    store_be64(packet, at, high)
    store_be16(packet, at + _8, low)
    store_be64(packet, at + _10, sequence)
    store_be16(packet, at + _18, count)


@kernel(inner=True)
def read_header(packet, at):
    """Return the session's two words, the sequence number and the count of the header at an offset; all uint64."""
    return load_be64(packet, at), load_be16(packet, at + _8), load_be64(packet, at + _10), load_be16(packet, at + _18)


@kernel(inner=True)
def messages_of(count):
    """Return how many messages a packet of this count holds: none, if it is a heartbeat or the end of a session."""
    return _0 if count == _END else count


@kernel(inner=True)
def check(packet, at, end):
    """Walk over the blocks of a packet.

    Parameters
    ----------
    packet : ndarray of uint8
    at, end : uint64
        Offsets of the packet's first byte and behind its last one.

    Returns
    -------
    status : uint64
        `OK`, `NO_HEADER`, `SHORT` or `TRAILING`.
    stop : uint64
        Offset behind the last whole block; `at` if there is no header.
    messages : uint64
        Whole blocks, at most as many as the header promises.
    """
    if end < at + _HEADER:
        return NO_HEADER, at, _0
    promised = messages_of(load_be16(packet, at + _18))
    stop, messages = at + _HEADER, _0
    while messages < promised:
        if stop + _2 > end:
            return SHORT, stop, messages
        following = stop + _2 + load_be16(packet, stop)
        if following > end:
            return SHORT, stop, messages
        stop = following
        messages += _1
    return (OK if stop == end else TRAILING), stop, messages


@kernel(inner=True)
def skip_blocks(packet, at, blocks):
    """Return the offset behind so many blocks, which must be whole (`check`)."""
    while blocks != _0:
        at += _2 + load_be16(packet, at)
        blocks -= _1
    return at


@kernel(inner=True)
def copy_range(source, begin, end, out, at):
    """Copy source[begin:end] to out[at:]; return the offset behind the copy. They must not overlap."""
    while begin < end:
        out[at] = source[begin]
        begin += _1
        at += _1
    return at


@kernel(inner=True)
def copy_blocks(packet, begin, end, out, at):
    """Copy whole blocks, but for those without a byte: in a file, a length of zero would end the session.

    Returns
    -------
    at : uint64
        Offset behind the copy.
    empty : uint64
        Blocks left out.
    """
    empty, kept = _0, begin
    while begin < end:
        length = load_be16(packet, begin)
        if length == _0:
            at = copy_range(packet, kept, begin, out, at)
            kept = begin + _2
            empty += _1
        begin += _2 + length
    return copy_range(packet, kept, end, out, at), empty


@kernel(inner=True)
def pack(source, begin, end, most, packet, at, room, high, low, sequence):
    """Write a packet of messages that stand framed as in a file.

    Parameters
    ----------
    source : ndarray of uint8
    begin, end : uint64
        Offset of a message's length, and of the end of what may be read.
    most : uint64
        Messages at most; no more than `MOST`.
    packet : ndarray of uint8
    at : uint64
        Where in it the header comes.
    room : uint64
        Bytes that the packet may have, with its header.
    high, low, sequence : uint64
        Session, and number of the first message.

    Returns
    -------
    messages : uint64
        0 if there is no whole message, the next length is zero (the end of a file's session), or the next message has
        no room in any packet: then nothing is written.
    begin : uint64
        Offset behind the last message taken.
    stop : uint64
        Offset behind the packet.
    """
    at_most, messages, position = begin + (room - _HEADER), _0, begin
    while messages < most and position + _2 <= end:
        length = load_be16(source, position)
        following = position + _2 + length
        if length == _0 or following > end or following > at_most:
            break
        position = following
        messages += _1
    if messages == _0:
        return _0, begin, at
    write_header(packet, at, high, low, sequence, messages)
    return messages, position, copy_range(source, begin, position, packet, at + _HEADER)


def session_words(session) -> tuple[np.uint64, np.uint64]:
    """Return a session's name as two numbers: its first 8 characters and its last 2, padded with spaces on the right.

    Parameters
    ----------
    session : str or bytes
        1 to 10 ASCII characters.

    Raises
    ------
    UserError
        If it is none.
    """
    text = session.encode("ascii", "replace") if isinstance(session, str) else bytes(session)
    if not 1 <= len(text) <= 10 or (isinstance(session, str) and not session.isascii()):
        raise UserError(f"a MoldUDP64 session has 1 to 10 ASCII characters, not {session!r}")
    text = text.ljust(10)
    return np.uint64(int.from_bytes(text[:8], "big")), np.uint64(int.from_bytes(text[8:], "big"))


def session_text(high, low) -> str:
    """Return the session's name without its padding; bytes that are no ASCII appear escaped."""
    text = int(high).to_bytes(8, "big") + int(low).to_bytes(2, "big")
    return text.decode("ascii", "backslashreplace").strip(" ")
