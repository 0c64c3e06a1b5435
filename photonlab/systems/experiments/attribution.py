"""Between framing and the book: a loop that frames, tells the types apart and decodes, and keeps no book (claim F3).

The stages of a replay cannot be timed one by one: a clock round each would cost more than the stage, and in a core that
executes out of order they overlap. So whole loops are timed in turn, each with one stage more than the last, and a
stage costs what it adds: `photonlab.kernels.framing.walk`, then `decode_for_book` here, then the replay.
"""

import numpy as np

from photonlab.kernels.framing import AHEAD, PREFIX
from photonlab.kernels.itch import offset_of
from photonlab.machine.bits import load_be16, load_be32, load_be64, load_u8, prefetch
from photonlab.machine.jit import kernel
from photonlab.systems import batch

_0, _1, _8, _255 = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(255)
_LOCATE = np.uint64(1)
_REFERENCE, _SIDE, _SHARES, _PRICE = (
    np.uint64(offset_of("A", name)) for name in ("order_reference_number", "buy_sell_indicator", "shares", "price")
)
_LESS, _PRINTABLE = np.uint64(offset_of("E", "executed_shares")), np.uint64(offset_of("C", "printable"))
_NEW, _NEW_SHARES, _NEW_PRICE = (
    np.uint64(offset_of("U", name)) for name in ("new_order_reference_number", "shares", "price")
)


@kernel
def decode_for_book(data, begin):
    """Frame all messages, tell their types apart, and decode the fields that a book needs of each; add them up.

    Parameters
    ----------
    data : ndarray of uint8
    begin : int64
        Offset of a prefix.

    Returns
    -------
    messages, position : uint64
        As `photonlab.kernels.framing.walk` returns them.
    total : uint64
        Sum of the fields decoded, modulo 2^64.
    """
    size, position, messages, total = np.uint64(data.size), np.uint64(begin), _0, _0
    while position + np.uint64(PREFIX) <= size:
        length = load_be16(data, position)
        at = position + np.uint64(PREFIX)
        following = at + length
        if length == _0 or following > size:
            break
        prefetch(data, position + np.uint64(AHEAD))
        shape = np.uint64(batch.SHAPE[load_u8(data, at)])
        if shape >> _8 == length:
            total += _fields(data, at, shape & _255)
        messages += _1
        position = following
    return messages, position, total


@kernel(inner=True)
def _fields(data, at, what):
    """Return the sum of the fields that the book needs of a message of a class of `message_loop`."""
    total = _0
    if what == batch.ADD:
        total += load_be16(data, at + _LOCATE) + load_be64(data, at + _REFERENCE) + load_u8(data, at + _SIDE)
        total += load_be32(data, at + _SHARES) + load_be32(data, at + _PRICE)
    elif what == batch.DELETE:
        total += load_be64(data, at + _REFERENCE)
    elif what == batch.REPLACE:
        total += load_be64(data, at + _REFERENCE) + load_be64(data, at + _NEW)
        total += load_be32(data, at + _NEW_SHARES) + load_be32(data, at + _NEW_PRICE)
    elif what == batch.EXECUTE or what == batch.CANCEL:
        total += load_be64(data, at + _REFERENCE) + load_be32(data, at + _LESS)
    elif what == batch.EXECUTE_AT:
        total += load_be64(data, at + _REFERENCE) + load_be32(data, at + _LESS) + load_u8(data, at + _PRINTABLE)
    return total
