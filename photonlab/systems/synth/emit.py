"""The messages of the synthetic day, written into a buffer: one function a message type that trading brings.

Offsets are the message table's (`photonlab.kernels.itch`). Every function takes the day, the buffer, the offset of the
message's two-byte length and what the message says, and returns the offset behind it. Where a message says nothing it
has zeros or spaces.
"""

import numpy as np

from photonlab.kernels.itch import BY_TYPE, LENGTH_BY_TYPE, offset_of
from photonlab.machine.bits import store_be16, store_be32, store_be48, store_be64, store_u8
from photonlab.systems.synth import state as st
from photonlab.systems.synth.rng import inline, inner

_LENGTHS = LENGTH_BY_TYPE.astype(np.int64)
_2 = np.uint64(2)


def place(type_: str, field: str) -> np.uint64:
    """Return the offset of a field from the message's length prefix, as a kernel's constant."""
    return np.uint64(2 + offset_of(type_, field))


_TYPE, _LOCATE, _TRACKING, _TIME = (np.uint64(2 + f.offset) for f in BY_TYPE["S"].fields[:4])


@inline
def header(day, buffer, at, type_, instrument, tracking):
    """Write length, type, locate, tracking number and time; count the message; return the offset behind the message."""
    length = _LENGTHS[type_]
    store_be16(buffer, at, length)
    store_u8(buffer, at + _TYPE, type_)
    store_be16(buffer, at + _LOCATE, instrument + 1)
    store_be16(buffer, at + _TRACKING, tracking)
    store_be48(buffer, at + _TIME, np.uint64(day.word[st.TIME]))
    day.word[st.SENT_OF + type_] += 1
    return at + _2 + np.uint64(length)


PLAIN, IN_CROSS, TRADED = np.int64(0), np.int64(1), np.int64(2)
"""Tracking numbers by what brings a message; typed, for a literal would compile a kernel of its own."""

MPIDS = np.frombuffer(b"DUNEFERNKITEMESAOPALPLABQUAYTIDE", ">u4").astype(np.int64)
"""Eight market participants that no market has, as integers."""

_SIDES = np.array([ord("B"), ord("S")])
_A_REF, _A_SIDE, _A_SHARES = (place("A", n) for n in ("order_reference_number", "buy_sell_indicator", "shares"))
_A_STOCK, _A_PRICE, _F_MPID = place("A", "stock"), place("A", "price"), place("F", "attribution")


@inner
def add(day, buffer, at, instrument, reference, side, shares, price, mpid):
    """Write A, or F where `mpid` (an index) is not negative: F begins as A does."""
    end = header(day, buffer, at, ord("A") if mpid < 0 else ord("F"), instrument, PLAIN)
    store_be64(buffer, at + _A_REF, reference)
    store_u8(buffer, at + _A_SIDE, _SIDES[side])
    store_be32(buffer, at + _A_SHARES, shares)
    store_be64(buffer, at + _A_STOCK, day.table[instrument, st.SYMBOL])
    store_be32(buffer, at + _A_PRICE, price)
    if mpid >= 0:
        store_be32(buffer, at + _F_MPID, MPIDS[mpid & 7])
    return end


_E_REF, _E_SHARES, _E_MATCH = (place("E", n) for n in ("order_reference_number", "executed_shares", "match_number"))
_C_PRINTABLE, _C_PRICE = place("C", "printable"), place("C", "execution_price")


@inner
def execute(day, buffer, at, instrument, reference, shares, match):
    """Write E."""
    end = header(day, buffer, at, ord("E"), instrument, TRADED)
    store_be64(buffer, at + _E_REF, reference)
    store_be32(buffer, at + _E_SHARES, shares)
    store_be64(buffer, at + _E_MATCH, match)
    return end


@inner
def execute_price(day, buffer, at, instrument, reference, shares, match, printable, price):
    """Write C, which begins as E does."""
    end = header(day, buffer, at, ord("C"), instrument, IN_CROSS)
    store_be64(buffer, at + _E_REF, reference)
    store_be32(buffer, at + _E_SHARES, shares)
    store_be64(buffer, at + _E_MATCH, match)
    store_u8(buffer, at + _C_PRINTABLE, printable)
    store_be32(buffer, at + _C_PRICE, price)
    return end


_X_REF, _X_SHARES = place("X", "order_reference_number"), place("X", "canceled_shares")
_D_REF = place("D", "order_reference_number")


@inner
def cancel(day, buffer, at, instrument, reference, shares):
    """Write X."""
    end = header(day, buffer, at, ord("X"), instrument, PLAIN)
    store_be64(buffer, at + _X_REF, reference)
    store_be32(buffer, at + _X_SHARES, shares)
    return end


@inner
def delete(day, buffer, at, instrument, reference):
    """Write D."""
    end = header(day, buffer, at, ord("D"), instrument, PLAIN)
    store_be64(buffer, at + _D_REF, reference)
    return end


_U_OLD, _U_NEW = place("U", "original_order_reference_number"), place("U", "new_order_reference_number")
_U_SHARES, _U_PRICE = place("U", "shares"), place("U", "price")


@inner
def replace(day, buffer, at, instrument, old, new, shares, price):
    """Write U."""
    end = header(day, buffer, at, ord("U"), instrument, PLAIN)
    store_be64(buffer, at + _U_OLD, old)
    store_be64(buffer, at + _U_NEW, new)
    store_be32(buffer, at + _U_SHARES, shares)
    store_be32(buffer, at + _U_PRICE, price)
    return end


_P_REF, _P_SIDE, _P_SHARES = (place("P", n) for n in ("order_reference_number", "buy_sell_indicator", "shares"))
_P_STOCK, _P_PRICE, _P_MATCH = (place("P", n) for n in ("stock", "price", "match_number"))


@inner
def trade(day, buffer, at, instrument, shares, price, match):
    """Write P: reference zero and side B, whatever the sides were (specification, section 1.5.1)."""
    end = header(day, buffer, at, ord("P"), instrument, TRADED)
    store_be64(buffer, at + _P_REF, 0)
    store_u8(buffer, at + _P_SIDE, ord("B"))
    store_be32(buffer, at + _P_SHARES, shares)
    store_be64(buffer, at + _P_STOCK, day.table[instrument, st.SYMBOL])
    store_be32(buffer, at + _P_PRICE, price)
    store_be64(buffer, at + _P_MATCH, match)
    return end


_Q_SHARES, _Q_STOCK, _Q_PRICE = (place("Q", n) for n in ("cross_shares", "stock", "cross_price"))
_Q_MATCH, _Q_TYPE = place("Q", "match_number"), place("Q", "cross_type")


@inner
def cross(day, buffer, at, instrument, shares, price, match, cross_type):
    """Write Q."""
    end = header(day, buffer, at, ord("Q"), instrument, TRADED)
    store_be64(buffer, at + _Q_SHARES, shares)
    store_be64(buffer, at + _Q_STOCK, day.table[instrument, st.SYMBOL])
    store_be32(buffer, at + _Q_PRICE, price)
    store_be64(buffer, at + _Q_MATCH, match)
    store_u8(buffer, at + _Q_TYPE, cross_type)
    return end


_B_MATCH = place("B", "match_number")


@inner
def broken(day, buffer, at, instrument, match):
    """Write B."""
    end = header(day, buffer, at, ord("B"), instrument, PLAIN)
    store_be64(buffer, at + _B_MATCH, match)
    return end


_I_PAIRED, _I_IMBALANCE, _I_DIRECTION = (
    place("I", n) for n in ("paired_shares", "imbalance_shares", "imbalance_direction")
)
_I_STOCK, _I_FAR, _I_NEAR = (place("I", n) for n in ("stock", "far_price", "near_price"))
_I_REFERENCE, _I_TYPE, _I_VARIATION = (
    place("I", n) for n in ("current_reference_price", "cross_type", "price_variation_indicator")
)


@inner
def imbalance(day, buffer, at, instrument, paired, missing, direction, price, far, near, cross_type):
    """Write I; without a reference price it says that there is nothing to say: direction O, all prices zero."""
    end = header(day, buffer, at, ord("I"), instrument, PLAIN)
    store_be64(buffer, at + _I_PAIRED, paired)
    store_be64(buffer, at + _I_IMBALANCE, missing)
    store_u8(buffer, at + _I_DIRECTION, direction)
    store_be64(buffer, at + _I_STOCK, day.table[instrument, st.SYMBOL])
    store_be32(buffer, at + _I_FAR, far)
    store_be32(buffer, at + _I_NEAR, near)
    store_be32(buffer, at + _I_REFERENCE, price)
    store_u8(buffer, at + _I_TYPE, cross_type)
    store_u8(buffer, at + _I_VARIATION, ord("L") if price else ord(" "))
    return end


_N_STOCK, _N_FLAG = place("N", "stock"), place("N", "interest_flag")


@inner
def retail(day, buffer, at, instrument, flag):
    """Write N."""
    end = header(day, buffer, at, ord("N"), instrument, PLAIN)
    store_be64(buffer, at + _N_STOCK, day.table[instrument, st.SYMBOL])
    store_u8(buffer, at + _N_FLAG, flag)
    return end
