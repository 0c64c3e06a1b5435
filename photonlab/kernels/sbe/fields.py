"""Fields of SBE messages for kernels: `get`, `get_signed`, `put`, by a code that `Encoding.code` gives.

A code is one word of offset, width, sign and byte order. As a global of the calling kernel it is a constant there,
and of all the cases below one load or store is left.
"""

import numpy as np
from numba import int64, uint64

from photonlab.machine import bits
from photonlab.machine.jit import kernel

_WIDTH, _SIGNED, _BIG = np.uint64(32), np.uint64(40), np.uint64(41)
_0, _1, _2, _4, _8, _64 = (np.uint64(n) for n in (0, 1, 2, 4, 8, 64))
_OFFSET, _BYTE = np.uint64(0xFFFFFFFF), np.uint64(0xFF)


@kernel(inner=True)
def get(data, block, code):
    """Return an unsigned field as uint64 (a signed or floating one as its bits).

    Parameters
    ----------
    data : uint8[n]
    block : uint64
        Offset of the block that the field lies in. That the block is there is the caller's to check, or `walk`'s.
    code : uint64
    """
    at = block + (code & _OFFSET)
    width = (code >> _WIDTH) & _BYTE
    if (code >> _BIG) & _1 != _0:
        if width == _8:
            return bits.load_be64(data, at)
        if width == _4:
            return bits.load_be32(data, at)
        if width == _2:
            return bits.load_be16(data, at)
        return bits.load_u8(data, at)
    if width == _8:
        return bits.load_le64(data, at)
    if width == _4:
        return bits.load_le32(data, at)
    if width == _2:
        return bits.load_le16(data, at)
    return bits.load_u8(data, at)


@kernel(inner=True)
def get_signed(data, block, code):
    """Return a field as int64, with its sign if it has one; parameters as of `get`."""
    spare = (_64 - (((code >> _WIDTH) & _BYTE) << np.uint64(3))) * ((code >> _SIGNED) & _1)
    return int64(get(data, block, code) << spare) >> int64(spare)


@kernel(inner=True)
def get_or(data, block, length, code, null):
    """Return a field as int64, or `null` if the block on the wire is too short to hold it: an older version's.

    Parameters
    ----------
    data, block, code
        As of `get`.
    length : uint64
        Bytes of the block on the wire.
    null : int64
    """
    if (code & _OFFSET) + ((code >> _WIDTH) & _BYTE) > length:
        return int64(null)
    return get_signed(data, block, code)


@kernel(inner=True)
def put(data, block, code, value):
    """Store the low bytes of an integer in a field; parameters as of `get`, and the value."""
    at = block + (code & _OFFSET)
    width = (code >> _WIDTH) & _BYTE
    word = uint64(value)
    if (code >> _BIG) & _1 != _0:
        if width == _8:
            bits.store_be64(data, at, word)
        elif width == _4:
            bits.store_be32(data, at, word)
        elif width == _2:
            bits.store_be16(data, at, word)
        else:
            bits.store_u8(data, at, word)
    elif width == _8:
        bits.store_le64(data, at, word)
    elif width == _4:
        bits.store_le32(data, at, word)
    elif width == _2:
        bits.store_le16(data, at, word)
    else:
        bits.store_u8(data, at, word)
