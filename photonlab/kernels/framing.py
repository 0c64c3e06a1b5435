"""Framing: from length-prefixed bytes to message boundaries (NASDAQ's BinaryFILE; claim F3).

Each message stands behind its length in two big-endian bytes; a length of zero ends the session. Where the next message
begins hangs on a load from this one, so a walk is a chain of loads (about nine cycles a message) that nothing shortens.
What does not lengthen the chain is nearly free beside it: the index costs a tenth more than the bare walk.

Both kernels take up at any boundary and stop at the last whole message, so a stream may be cut after any byte: whoever
feeds them keeps the bytes from `position` on and calls again when more have come.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import uint64

from photonlab.errors import ItchFormatError
from photonlab.kernels.itch import LENGTH_BY_TYPE
from photonlab.machine.bits import load_be16, load_u8, prefetch
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array

AHEAD = 1024
"""How far ahead of the walk bytes are prefetched: some 30 messages, more than a DRAM access takes."""

PREFIX = 2
"""Bytes of the length before each message."""

BAD_LENGTH, UNKNOWN_TYPE = 0, 1
"""Places in `Frames.faults`."""


class Frames(NamedTuple):
    """What the indexing kernel fills; counts and faults add up over calls."""

    offsets: np.ndarray  # uint64[capacity]: of each message's type byte
    counts: np.ndarray  # uint64[256]: messages by type byte, of whatever length
    faults: np.ndarray  # uint64[2]: known types of a wrong length, unknown types


def frames(capacity: int) -> Frames:
    """Return room for the boundaries of `capacity` messages, with all counters zero."""
    return Frames(np.zeros(capacity, np.uint64), np.zeros(256, np.uint64), np.zeros(2, np.uint64))


@kernel
def walk(data, begin):
    """Walk over the prefixes and do nothing else: the cost of framing alone.

    Parameters
    ----------
    data : uint8[n]
    begin : int64
        Offset of a prefix.

    Returns
    -------
    messages : uint64
        Whole messages from `begin` on.
    position : uint64
        Offset behind the last of them, or behind the zero prefix.
    ended : uint64
        1 if a zero prefix was met.
    total : uint64
        Sum of the lengths, as a checksum.
    """
    size = uint64(data.size)
    position, messages, total = uint64(begin), uint64(0), uint64(0)
    while position + uint64(PREFIX) <= size:
        length = load_be16(data, position)
        following = position + length + uint64(PREFIX)
        if length == uint64(0):
            return messages, following, uint64(1), total
        if following > size:
            break
        prefetch(data, position + uint64(AHEAD))
        messages += uint64(1)
        total += length
        position = following
    return messages, position, uint64(0), total


@kernel
def index(data, begin, frames):
    """Write down where each message begins, and count it by its type.

    Messages of an unknown type or a wrong length are in the index too: every byte belongs to one.

    Parameters
    ----------
    data : uint8[n]
    begin : int64
        Offset of a prefix.
    frames : Frames
        Filled from its first offset on; the walk stops when it is full.

    Returns
    -------
    messages, position, ended : uint64
        As `walk` returns them.
    """
    size, room = uint64(data.size), uint64(frames.offsets.size)
    position, messages = uint64(begin), uint64(0)
    while position + uint64(PREFIX) <= size and messages < room:
        length = load_be16(data, position)
        following = position + length + uint64(PREFIX)
        if length == uint64(0):
            return messages, following, uint64(1)
        if following > size:
            break
        prefetch(data, position + uint64(AHEAD))
        kind = load_u8(data, position + uint64(PREFIX))
        known = uint64(LENGTH_BY_TYPE[kind])
        if known != length:
            frames.faults[uint64(UNKNOWN_TYPE) if known == uint64(0) else uint64(BAD_LENGTH)] += uint64(1)
        frames.counts[kind] += uint64(1)
        frames.offsets[messages] = position + uint64(PREFIX)
        messages += uint64(1)
        position = following
    return messages, position, uint64(0)


@dataclass(frozen=True)
class Index:
    """The message boundaries of a piece of a feed, and an account of its bytes."""

    offsets: np.ndarray
    """uint64[messages]: offset of each message's type byte."""
    counts: dict[str, int]
    """Messages by type, of whatever length."""
    bad_length: int
    """Messages of a known type with another length than that type's."""
    unknown_type: int
    consumed: int
    """Bytes of whole messages and prefixes, the zero prefix included."""
    ended: bool
    """A zero prefix ended the session; bytes behind it are not looked at."""
    short_tail: int
    """Bytes of a last message that is not whole."""
    size: int
    """Bytes given."""


def index_messages(data) -> Index:
    """Find all message boundaries of a feed or of a piece that begins with a prefix.

    Parameters
    ----------
    data : bytes-like or ndarray of uint8

    Returns
    -------
    Index

    Raises
    ------
    ItchFormatError
        If every message stands behind a zero prefix, as one simulated file in the wild has it.
    """
    data = as_bytes_array(data)
    refuse_zero_prefixes(data)
    messages, position, ended, _ = (int(value) for value in walk(data, 0))
    found = frames(messages)
    index(data, 0, found)
    return Index(
        offsets=found.offsets,
        counts=counts_by_type(found.counts),
        bad_length=int(found.faults[BAD_LENGTH]),
        unknown_type=int(found.faults[UNKNOWN_TYPE]),
        consumed=position,
        ended=bool(ended),
        short_tail=0 if ended else data.size - position,
        size=data.size,
    )


def counts_by_type(counts: np.ndarray) -> dict[str, int]:
    """Return the entries of a table by type byte that are not zero, as type → count; type bytes read as Latin-1."""
    return {chr(kind): int(counts[kind]) for kind in np.flatnonzero(counts)}


def refuse_zero_prefixes(data: np.ndarray) -> None:
    """Raise for a file whose length prefixes are all zero; a zero that ends a session has no message behind it.

    Parameters
    ----------
    data : ndarray of uint8
        The beginning of a file.

    Raises
    ------
    ItchFormatError
        If the first prefix is zero and a message of its type's length and another zero prefix stand behind it.
    """
    at = 0
    for _ in range(2):
        if data.size < at + PREFIX + 1 or data[at] or data[at + 1]:
            return
        length = int(LENGTH_BY_TYPE[data[at + PREFIX]])
        if length == 0:
            return
        at += PREFIX + length
    raise ItchFormatError(
        "the length prefix 00 00 stands before every message, where NASDAQ's files have the message's length: "
        "this is a simulated file without framing, not an empty session"
    )
