"""Decoding: from the bytes of a message to native integers, every field of every type, by tables made from `itch`.

`decode_all` decodes without asking for the type. Behind the header (locate, tracking number, time stamp) most types
have a field of 8 bytes and at most four more, so the kernel loads 8 bytes *ending* with each field, swaps them and
masks what is not the field's; where a field ends and how wide it is come from one row of 64 bytes a type. The types
with more fields, or too short for such a load, take a loop. Tried in the mix of claim R3 and rejected (time against
this kernel's): a jump table with straight code for each type, 1.5, because types follow each other at random and the
jump is mispredicted; leaving early on `D`, 1.4; sorting messages into a queue a type, to decode queue by queue, 1.0
with scratch memory.
"""

import sys

import numpy as np
from numba import uint64

from photonlab.errors import UserError
from photonlab.kernels.framing import PREFIX, frames, index, refuse_zero_prefixes
from photonlab.kernels.itch import BY_TYPE, LENGTH_BY_TYPE, MESSAGES, Message
from photonlab.machine.bits import load_be16, load_be64, load_u8, prefetch
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array

AHEAD = 1024
"""Bytes ahead that are prefetched, as in framing."""

_HEADER_FIELDS = 4  # type, locate, tracking number, time stamp
_BODY = 11  # where the fields of one type begin
_LOADS = 4  # fields behind the first of the body that are loaded whether there or not
_MOST = max(len(message.fields) for message in MESSAGES) - _HEADER_FIELDS
_STAMP = (1 << 48) - 1
_NONE = 255  # a byte of a column that no byte of the message fills


def _end_loads(message: Message) -> list[tuple[int, int]]:
    """Return, for each field of the body, where the 8 bytes that end with it begin, and the mask of its own bits."""
    return [(f.offset + f.width - 8, (1 << (8 * f.width)) - 1) for f in message.fields[_HEADER_FIELDS:]]


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Build the tables of `decode_all` by type byte.

    Returns
    -------
    plan : uint64[256 * 8]
        A row of 8 words a type. Word 0: four offsets (a byte each), the number of fields for the loop (0 if the four
        loads do), the length (bits 48 to 63). Words 1 to 4: the masks of the four.
    begins : uint64[256 * _MOST]
    masks : uint64[256 * _MOST]
        The same for all fields of the body, for the loop.
    """
    plan = np.zeros((256, 8), np.uint64)
    begins, masks = np.zeros((256, _MOST), np.uint64), np.zeros((256, _MOST), np.uint64)
    for message in MESSAGES:
        kind, loads = ord(message.type), _end_loads(message)
        word = message.length << 48
        if message.fields[_HEADER_FIELDS].width == 8 and len(loads) <= 1 + _LOADS:
            for k, (begin, mask) in enumerate(loads[1:]):
                word |= begin << (8 * k)
                plan[kind, 1 + k] = mask
        else:
            word |= len(loads) << 32
        plan[kind, 0] = word
        for k, (begin, mask) in enumerate(loads):
            begins[kind, k], masks[kind, k] = begin, mask
    return plan.reshape(-1), begins.reshape(-1), masks.reshape(-1)


_PLAN, _BEGINS, _MASKS = _tables()


@kernel
def decode_all(data, begin):
    """Decode every field of every message and add up their values: the cost of decoding, framing included.

    Text counts as the big-endian integer of its characters. Messages of an unknown type or a wrong length are walked
    over. Stops as `photonlab.kernels.framing.walk` does.

    Parameters
    ----------
    data : uint8[n]
    begin : int64
        Offset of a prefix.

    Returns
    -------
    messages, position, ended : uint64
        As `walk` returns them.
    total : uint64
        Sum of all values of all fields, modulo 2^64.
    """
    size = uint64(data.size)
    position, messages, total = uint64(begin) + uint64(PREFIX), uint64(0), uint64(0)
    while position <= size:
        length = load_be16(data, position - uint64(PREFIX))
        end = position + length
        if length == uint64(0):
            return messages, end, uint64(1), total
        if end > size:
            break
        prefetch(data, position + uint64(AHEAD))
        kind = load_u8(data, position)
        row = kind << uint64(3)
        plan = _PLAN[row]
        if plan >> uint64(48) == length:
            stamp = load_be64(data, position + uint64(3))  # tracking number and time stamp in one
            total += kind + load_be16(data, position + uint64(1)) + (stamp >> uint64(48)) + (stamp & uint64(_STAMP))
            if plan & uint64(0xFF00000000):
                total += _decode_body(data, position, kind)
            else:
                total += load_be64(data, position + uint64(_BODY))
                for k in range(uint64(_LOADS)):
                    at = position + ((plan >> (uint64(8) * k)) & uint64(0xFF))
                    total += load_be64(data, at) & _PLAN[row + k + uint64(1)]
        messages += uint64(1)
        position = end + uint64(PREFIX)
    return messages, position - uint64(PREFIX), uint64(0), total


@kernel
def _decode_body(data, position, kind):
    """Decode the fields behind the header of any type and add them up; `position` is that of the type byte."""
    row, total = kind * uint64(_MOST), uint64(0)
    for k in range((_PLAN[kind << uint64(3)] >> uint64(32)) & uint64(0xFF)):
        total += load_be64(data, position + _BEGINS[row + k]) & _MASKS[row + k]
    return total


@kernel
def gather(data, offsets, kind, permutation, out):
    """Decode the messages of one type into records by moving bytes: the swap to native order is a permutation.

    Parameters
    ----------
    data : uint8[n]
    offsets : uint64[messages]
        Of the type bytes of messages of any type; each must lie whole in `data`, behind its prefix.
    kind : int64
        The type byte.
    permutation : uint8[record size]
        For each byte of the record, the byte of the message that it is; 255 for none (zero).
    out : uint8[room * record size]

    Returns
    -------
    uint64
        Records written, of messages of this type and its right length.
    """
    width, written = uint64(permutation.size), uint64(0)
    length = uint64(LENGTH_BY_TYPE[uint64(kind)])
    for m in range(uint64(offsets.size)):
        at = offsets[m]
        if load_u8(data, at) == uint64(kind) and load_be16(data, at - uint64(PREFIX)) == length:
            to = written * width
            for b in range(width):
                source = uint64(permutation[b])
                out[to + b] = data[at + source] if source != uint64(_NONE) else np.uint8(0)
            written += uint64(1)
    return written


def permutation_of(message: Message) -> np.ndarray:
    """Return for each byte of the message's record the byte of the message that goes there, 255 for none."""
    dtype = message.dtype
    table = np.full(dtype.itemsize, _NONE, np.uint8)
    for field in message.fields:
        column, begin = dtype.fields[field.name]
        sources = np.arange(field.offset, field.offset + field.width)
        if not field.is_text and sys.byteorder == "little":
            sources = sources[::-1]
        skip = column.itemsize - field.width if not field.is_text and sys.byteorder == "big" else 0
        table[begin + skip : begin + skip + field.width] = sources
    return table


def decode_messages(data, type_: str) -> np.ndarray:
    """Decode all messages of one type.

    Parameters
    ----------
    data : bytes-like or ndarray of uint8
        Length-prefixed messages.
    type_ : str
        The type's character.

    Returns
    -------
    ndarray of the message's structured dtype
        A record a message, in the order of the feed. Integers are native, text is bytes with its padding, prices raw.

    Raises
    ------
    UserError
        If there is no such type.
    ItchFormatError
        If every message stands behind a zero prefix.
    """
    if type_ not in BY_TYPE:
        raise UserError(f"no ITCH 5.0 message type {type_!r}; the types are {' '.join(BY_TYPE)}")
    data = as_bytes_array(data)
    refuse_zero_prefixes(data)
    message, permutation = BY_TYPE[type_], permutation_of(BY_TYPE[type_])
    room = sum(int(block.counts[ord(type_)]) for _, block in _blocks(data))
    records, written = np.empty(room, message.dtype), 0
    for found, block in _blocks(data):
        free = records[written:].view(np.uint8)
        written += int(gather(data, block.offsets[:found], ord(type_), permutation, free))
    return records[:written]


def _blocks(data: np.ndarray):
    """Index a feed block by block, which bounds the memory; the frames given are filled anew for each block."""
    block, position, ended = frames(1 << 16), 0, False
    while not ended:
        block.counts[:] = 0
        found, position, ended = (int(value) for value in index(data, position, block))
        yield found, block
        ended = ended or found < len(block.offsets)


def decode_frame(data, type_: str):
    """Decode all messages of one type into a DataFrame, text as str without padding, else as `decode_messages` does."""
    import pandas as pd

    records = decode_messages(data, type_)
    columns = {
        field.name: [text.decode("latin-1").rstrip(" ") for text in records[field.name]]
        if field.is_text
        else records[field.name]
        for field in BY_TYPE[type_].fields
    }
    return pd.DataFrame(columns)
