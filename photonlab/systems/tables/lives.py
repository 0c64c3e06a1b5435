"""What becomes of each order: noted beside its node while it is live, and written as a row when it is gone."""

import numpy as np

from photonlab.machine.bits import (
    load_be32,
    load_be48,
    load_be64,
    load_u8,
    store_be32,
    store_le16,
    store_le32,
    store_le64,
    store_u8,
)
from photonlab.machine.jit import kernel
from photonlab.systems import batch
from photonlab.systems.batch import ADD, CANCEL, DELETE, EXECUTE_AT, REPLACE
from photonlab.systems.tables.columns import ORDERS

_0, _1, _2, _3 = (np.uint64(i) for i in range(4))
_B, _S, _F = (np.uint64(ord(c)) for c in "BSF")
_TIME = np.uint64(5)
_COLD = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

WORDS = np.uint64(8)  # a cache line for each node
NUMBER, NS, SHARES, EXECUTED, CANCELLED, REPLACES, MPID = (np.uint64(i) for i in range(7))


@kernel(**_COLD)
def came(kept, data, at, what, node, mpid, number):
    """Note an order that the message at `at` brought; `mpid` is that of the order which it replaces."""
    life = node * WORDS
    kept[life + NUMBER] = number
    kept[life + NS] = load_be48(data, at + _TIME)
    kept[life + EXECUTED] = _0
    kept[life + CANCELLED] = _0
    kept[life + REPLACES] = load_be64(data, at + batch.REFERENCE) if what == REPLACE else _0
    kept[life + SHARES] = load_be32(data, at + (batch.NEW_SHARES if what == REPLACE else batch.ADDED_SHARES))
    if what == ADD:
        mpid = load_be32(data, at + np.uint64(36)) if load_u8(data, at) == _F else _0
    kept[life + MPID] = mpid


@kernel(**_COLD)
def took(rows, kept, data, at, what, node, side, price, held, number):
    """Note what a message takes from an order of `held` open shares; write its row if nothing is left."""
    life, shares = node * WORDS, held
    if what < DELETE:
        shares = min(load_be32(data, at + batch.TAKEN_SHARES), held)
    if what <= EXECUTE_AT:
        kept[life + EXECUTED] += shares
    elif what - CANCEL <= DELETE - CANCEL:
        kept[life + CANCELLED] += shares
    if shares == held:
        reference = load_be64(data, at + batch.REFERENCE)
        write(rows, kept, node, reference, side, price, load_u8(data, at), number, load_be48(data, at + _TIME))


@kernel(**_COLD)
def pushed(rows, kept, data, at, node, reference, side, price, number):
    """Write the row of an order whose reference is used anew while it is live."""
    write(rows, kept, node, reference, side, price, load_u8(data, at), number, load_be48(data, at + _TIME))


@kernel(inner=True)
def write(rows, kept, node, reference, side, price, end, number, ns):
    """Write an order's row; `end` is the type of the message that ended it, 0 if it is still live."""
    life = node * WORDS
    row, first = rows.counts[ORDERS], rows.first[ORDERS]
    memory, starts = rows.memory, rows.at
    store_le16(memory, starts[first] + (row << _1), side >> _1)
    store_le64(memory, starts[first + _1] + (row << _3), reference)
    store_le64(memory, starts[first + _2] + (row << _3), kept[life + REPLACES])
    store_u8(memory, starts[first + _3] + row, _B if side & _1 == _0 else _S)
    store_le32(memory, starts[first + np.uint64(4)] + (row << _2), price)
    store_le64(memory, starts[first + np.uint64(5)] + (row << _3), kept[life + SHARES])
    store_le64(memory, starts[first + np.uint64(6)] + (row << _3), kept[life + EXECUTED])
    store_le64(memory, starts[first + np.uint64(7)] + (row << _3), kept[life + CANCELLED])
    store_be32(memory, starts[first + np.uint64(8)] + (row << _2), kept[life + MPID])
    store_le64(memory, starts[first + np.uint64(9)] + (row << _3), kept[life + NUMBER])
    store_le64(memory, starts[first + np.uint64(10)] + (row << _3), kept[life + NS])
    store_u8(memory, starts[first + np.uint64(11)] + row, end)
    store_le64(memory, starts[first + np.uint64(12)] + (row << _3), number)
    store_le64(memory, starts[first + np.uint64(13)] + (row << _3), ns)
    store_u8(memory, starts[first + np.uint64(14)] + row, np.uint64(end != _0))
    rows.counts[ORDERS] = row + _1
    if row + _1 >= rows.limits[ORDERS]:
        rows.full[_0] = _1
