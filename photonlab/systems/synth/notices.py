"""The messages that a synthetic day sends at the points of its script: directory, states and the other rare types."""

import numpy as np

from photonlab.machine.bits import store_be32, store_be64, store_u8
from photonlab.systems.synth import emit
from photonlab.systems.synth import state as st
from photonlab.systems.synth.emit import MPIDS, PLAIN, header, place
from photonlab.systems.synth.rng import inner
from photonlab.systems.synth.script import (
    COLLAR,
    DECLINE_LEVELS,
    DECLINE_STATUS,
    DIRECTORY,
    IPO,
    NOII,
    OPERATIONAL,
    POSITION,
    REASON_SHIFT,
    REASONS,
    REG_SHO,
    STATE,
    SYSTEM,
)  # fmt: skip

_REASONS = np.array([int.from_bytes(reason.encode(), "big") for reason in REASONS])
_S_CODE, _W_LEVEL = place("S", "event_code"), place("W", "breached_level")
_R = {field.name: np.uint64(2 + field.offset) for field in emit.BY_TYPE["R"].fields}
_R_STOCK, _R_CATEGORY, _R_STATUS, _R_LOT = (
    _R[n] for n in ("stock", "market_category", "financial_status_indicator", "round_lot_size")
)
_R_LOTS_ONLY, _R_CLASS, _R_SUB_TYPE, _R_AUTHENTICITY = (
    _R[n] for n in ("round_lots_only", "issue_classification", "issue_sub_type", "authenticity")
)
_R_THRESHOLD, _R_IPO, _R_TIER, _R_ETP = (
    _R[n] for n in ("short_sale_threshold_indicator", "ipo_flag", "luld_reference_price_tier", "etp_flag")
)
_R_LEVERAGE, _R_INVERSE = _R["etp_leverage_factor"], _R["inverse_indicator"]
_H_STOCK, _H_STATE, _H_RESERVED, _H_REASON = (
    place("H", n) for n in ("stock", "trading_state", "reserved", "reason_code")
)
_Y_STOCK, _Y_ACTION = place("Y", "stock"), place("Y", "reg_sho_action")
_L_MPID, _L_STOCK, _L_PRIMARY, _L_MODE, _L_STATE = (
    place("L", n) for n in ("mpid", "stock", "primary_market_maker", "market_maker_mode", "market_participant_state")
)
_V_1, _V_2, _V_3 = (place("V", n) for n in ("level_1", "level_2", "level_3"))
_K_STOCK, _K_TIME, _K_QUALIFIER, _K_PRICE = (
    place("K", n) for n in ("stock", "ipo_quotation_release_time", "ipo_quotation_release_qualifier", "ipo_price")
)
_J_STOCK, _J_REFERENCE, _J_UPPER, _J_LOWER, _J_EXTENSION = (
    place("J", n)
    for n in (
        "stock", "auction_collar_reference_price", "upper_auction_collar_price", "lower_auction_collar_price",
        "auction_collar_extension",
    )
)  # fmt: skip
_OP_STOCK, _OP_MARKET, _OP_ACTION = (place("h", n) for n in ("stock", "market_code", "operational_halt_action"))
_O_STOCK, _O_STATUS, _O_MINIMUM, _O_MAXIMUM = (
    place("O", n) for n in ("stock", "open_eligibility_status", "minimum_allowable_price", "maximum_allowable_price")
)
_O_NEAR, _O_TIME, _O_LOWER, _O_UPPER = (
    place("O", n)
    for n in ("near_execution_price", "near_execution_time", "lower_price_range_collar", "upper_price_range_collar")
)
_COMMON, _NO_SUB_TYPE = np.uint64(ord("C")), np.uint64(ord("Z"))
_MWCB = (300_000_000_000, 282_000_000_000, 258_000_000_000)  # 3,000.00 down, 8 decimals, as levels of an index
_PAIRED, _MISSING = np.int64(12_000), np.int64(800)
_MARKET = np.int64(-1)  # instead of an instrument
_1, _SPACE = np.uint64(1), ord(" ")


@inner
def notice(day, buffer, at, kind, i, argument):
    """Write the message of an event of the script, and put its effect on trading into force.

    Parameters
    ----------
    day : Day
    buffer : ndarray of uint8
    at : uint64
        Offset of the message's length prefix.
    kind, i, argument : int64
        Of the event; `CROSS` is none of its kinds.

    Returns
    -------
    uint64
        Offset behind the message.
    """
    if kind == DIRECTORY:
        return _directory(day, buffer, at, i)
    row = day.instrument[max(i, 0)]
    if kind == SYSTEM:
        end = header(day, buffer, at, ord("S"), _MARKET, PLAIN)
        store_u8(buffer, at + _S_CODE, argument)
    elif kind == STATE:
        state = argument & 255
        end = header(day, buffer, at, ord("H"), i, PLAIN)
        store_be64(buffer, at + _H_STOCK, day.table[i, st.SYMBOL])
        store_u8(buffer, at + _H_STATE, state)
        store_u8(buffer, at + _H_RESERVED, _SPACE)
        store_be32(buffer, at + _H_REASON, _REASONS[argument >> REASON_SHIFT])
        row[st.HALTED] = (row[st.HALTED] & 2) | (0 if state == ord("T") else 1)
    elif kind == REG_SHO:
        end = header(day, buffer, at, ord("Y"), i, PLAIN)
        store_be64(buffer, at + _Y_STOCK, day.table[i, st.SYMBOL])
        store_u8(buffer, at + _Y_ACTION, argument)
    elif kind == POSITION:
        end = header(day, buffer, at, ord("L"), i, PLAIN)
        store_be32(buffer, at + _L_MPID, MPIDS[(argument + i) & 7])
        store_be64(buffer, at + _L_STOCK, day.table[i, st.SYMBOL])
        store_u8(buffer, at + _L_PRIMARY, ord("Y") if argument == 0 else ord("N"))
        store_u8(buffer, at + _L_MODE, ord("N"))
        store_u8(buffer, at + _L_STATE, ord("A"))
    elif kind == DECLINE_LEVELS:
        end = header(day, buffer, at, ord("V"), _MARKET, PLAIN)
        store_be64(buffer, at + _V_1, _MWCB[0])
        store_be64(buffer, at + _V_2, _MWCB[1])
        store_be64(buffer, at + _V_3, _MWCB[2])
    elif kind == DECLINE_STATUS:
        end = header(day, buffer, at, ord("W"), _MARKET, PLAIN)
        store_u8(buffer, at + _W_LEVEL, argument)
    elif kind == IPO:
        end = header(day, buffer, at, ord("K"), i, PLAIN)
        store_be64(buffer, at + _K_STOCK, day.table[i, st.SYMBOL])
        store_be32(buffer, at + _K_TIME, argument)
        store_u8(buffer, at + _K_QUALIFIER, ord("A"))
        store_be32(buffer, at + _K_PRICE, row[st.ANCHOR])
    elif kind == COLLAR:
        price, step = row[st.ANCHOR], row[st.STEP]
        width = max(price // 20 // step * step, step)
        end = header(day, buffer, at, ord("J"), i, PLAIN)
        store_be64(buffer, at + _J_STOCK, day.table[i, st.SYMBOL])
        store_be32(buffer, at + _J_REFERENCE, price)
        store_be32(buffer, at + _J_UPPER, price + width)
        store_be32(buffer, at + _J_LOWER, price - width)
        store_be32(buffer, at + _J_EXTENSION, 0)
    elif kind == OPERATIONAL:
        end = header(day, buffer, at, ord("h"), i, PLAIN)
        store_be64(buffer, at + _OP_STOCK, day.table[i, st.SYMBOL])
        store_u8(buffer, at + _OP_MARKET, ord("Q"))
        store_u8(buffer, at + _OP_ACTION, argument)
        row[st.HALTED] = (row[st.HALTED] & 1) | (2 if argument == ord("H") else 0)
    elif kind == NOII:
        price = np.int64(row[st.ANCHOR])
        end = emit.imbalance(day, buffer, at, i, _PAIRED, _MISSING, ord("B"), price, price, price, argument)
    else:
        end = _direct_listing(day, buffer, at, i)
    return end


@inner
def _directory(day, buffer, at, i):
    """Write R: ordinary shares of the exchange's own markets."""
    anchor = day.instrument[i, st.ANCHOR]
    end = header(day, buffer, at, ord("R"), i, PLAIN)
    store_be64(buffer, at + _R_STOCK, day.table[i, st.SYMBOL])
    store_u8(buffer, at + _R_CATEGORY, ord("Q") if anchor >= 50_000 else ord("S"))
    store_u8(buffer, at + _R_STATUS, ord("N"))
    store_be32(buffer, at + _R_LOT, 100)
    store_u8(buffer, at + _R_LOTS_ONLY, ord("N"))
    store_u8(buffer, at + _R_CLASS, _COMMON)
    store_u8(buffer, at + _R_SUB_TYPE, _NO_SUB_TYPE)
    store_u8(buffer, at + _R_SUB_TYPE + _1, _SPACE)
    store_u8(buffer, at + _R_AUTHENTICITY, ord("P"))
    store_u8(buffer, at + _R_THRESHOLD, ord("N"))
    store_u8(buffer, at + _R_IPO, ord("N"))
    store_u8(buffer, at + _R_TIER, ord("1") if anchor >= 300_000 else ord("2"))
    store_u8(buffer, at + _R_ETP, ord("N"))
    store_be32(buffer, at + _R_LEVERAGE, 0)
    store_u8(buffer, at + _R_INVERSE, ord("N"))
    return end


@inner
def _direct_listing(day, buffer, at, i):
    """Write O."""
    price, step = day.instrument[i, st.ANCHOR], day.instrument[i, st.STEP]
    width = max(price // 5 // step * step, step)
    end = header(day, buffer, at, ord("O"), i, PLAIN)
    store_be64(buffer, at + _O_STOCK, day.table[i, st.SYMBOL])
    store_u8(buffer, at + _O_STATUS, ord("N"))
    store_be32(buffer, at + _O_MINIMUM, price - width)
    store_be32(buffer, at + _O_MAXIMUM, price + width)
    store_be32(buffer, at + _O_NEAR, price)
    store_be64(buffer, at + _O_TIME, day.word[st.TIME])
    store_be32(buffer, at + _O_LOWER, price - step)
    store_be32(buffer, at + _O_UPPER, price + step)
    return end
