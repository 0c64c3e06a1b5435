"""What a day looks like: a table of its statistics next to what has been published of a real day.

Measured from the bytes alone, of any file of the feed, so nothing here knows of the generator. Orders, levels and
lifetimes come from one pass; lifetimes are counted in buckets of 1/16 of a power of two: quantiles exact to 6 %.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from photonlab.errors import UserError
from photonlab.kernels import hashing
from photonlab.kernels.itch import LENGTH_BY_TYPE, TYPES, offset_of
from photonlab.machine.bits import clz64, load_be16, load_be32, load_be48, load_be64, load_u8
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array, huge_array
from photonlab.systems.synth.presets import MIX, MIX_TOTAL

NOT_PUBLISHED = "not published"
_CLASSES = {"add": "AF", "execute": "EC", "cancel": "X", "delete": "D", "replace": "U"}
_PEAK_MILLION = (25.8, 2.6)  # claim F1: its speed, and how many times the peak of the full feed that is

# words of the pass, in `_Pass.word`
(
    MESSAGES, LIVE, PEAK, LEVELS, LEVELS_AT_PEAK, BORN, NEW_LEVELS, FREE, USED, SECOND, SECOND_COUNT, SECOND_PEAK,
    MILLI, MILLI_COUNT, MILLI_PEAK, SHARES, ENDED,
) = range(17)  # fmt: skip
_SUB_BITS = 4
_BUCKETS = 64 << _SUB_BITS
_LENGTHS = LENGTH_BY_TYPE.astype(np.uint64)
_0, _1, _2 = np.uint64(0), np.uint64(1), np.uint64(2)
_LOCATE, _TIME, _REFERENCE = np.uint64(1), np.uint64(5), np.uint64(11)
_SIDE, _SHARES, _PRICE = (np.uint64(offset_of("A", n)) for n in ("buy_sell_indicator", "shares", "price"))
_LESS = np.uint64(offset_of("E", "executed_shares"))
_NEW, _NEW_SHARES, _NEW_PRICE = (
    np.uint64(offset_of("U", n)) for n in ("new_order_reference_number", "shares", "price")
)


class _Pass(NamedTuple):
    """State of the pass.

    Attributes
    ----------
    word : ndarray of int64, shape (17,)
    counts : ndarray of int64, shape (256,)
        Messages by type.
    by_locate : ndarray of int64, shape (65536,)
        Order messages by instrument.
    lifetimes : ndarray of int64, shape (_BUCKETS,)
        Orders by how long they lived.
    orders, levels : hashing.Map
        From a reference to the slot of its order plus 1; from a level's key to its orders.
    order : ndarray of uint64, shape (slots, 3)
        Level's key, time of birth, shares; of a free slot the next free one plus 1.
    """

    word: np.ndarray
    counts: np.ndarray
    by_locate: np.ndarray
    lifetimes: np.ndarray
    orders: hashing.Map
    levels: hashing.Map
    order: np.ndarray


@kernel
def _born(state, reference, key, time, shares):
    """Count a new order, and its level if that is new."""
    word = state.word
    slot = word[FREE]
    if slot:
        word[FREE] = np.int64(state.order[slot - 1, 0])
    else:
        word[USED] += 1
        slot = word[USED]
    state.order[slot - 1, 0], state.order[slot - 1, 1], state.order[slot - 1, 2] = key, time, shares
    hashing.insert(state.orders, reference, np.uint64(slot))
    there = hashing.find(state.levels, key)
    hashing.insert(state.levels, key, there + _1)
    word[BORN] += 1
    word[LIVE] += 1
    if there == _0:
        word[NEW_LEVELS] += 1
        word[LEVELS] += 1
    if word[LIVE] > word[PEAK]:
        word[PEAK], word[LEVELS_AT_PEAK] = word[LIVE], word[LEVELS]
    word[SHARES] += np.int64(shares)


@kernel
def _gone(state, reference, time):
    """Count the end of a known order."""
    word = state.word
    slot = np.int64(hashing.remove(state.orders, reference))
    key = state.order[slot - 1, 0]
    age = max(time, state.order[slot - 1, 1]) - state.order[slot - 1, 1] + np.uint64(1 << _SUB_BITS)
    power = np.uint64(63) - clz64(age)
    sub = (age >> (power - np.uint64(_SUB_BITS))) & np.uint64((1 << _SUB_BITS) - 1)
    state.lifetimes[np.int64((power << np.uint64(_SUB_BITS)) | sub)] += 1
    there = hashing.find(state.levels, key)
    if there == _1:
        hashing.remove(state.levels, key)
        word[LEVELS] -= 1
    else:
        hashing.insert(state.levels, key, there - _1)
    state.order[slot - 1, 0] = np.uint64(word[FREE])
    word[FREE] = slot
    word[LIVE] -= 1
    word[ENDED] += 1


@kernel
def _survey(state, data):
    """Walk over the messages of `data`; what is no whole message of a known type and length is passed over."""
    word = state.word
    at, end = _0, np.uint64(data.size)
    while at + _2 <= end:
        length = load_be16(data, at)
        at += _2
        if length == _0 or at + length > end:
            break
        type_ = np.int64(load_u8(data, at))
        if length == _LENGTHS[type_]:
            word[MESSAGES] += 1
            state.counts[type_] += 1
            time = load_be48(data, at + _TIME)
            _tick(word, np.int64(time))
            _apply(state, data, at, type_, time)
        at += length


@kernel
def _tick(word, time):
    """Count messages by second and by millisecond of time, for the fullest of each."""
    if time // 1_000_000_000 != word[SECOND]:
        word[SECOND], word[SECOND_COUNT] = time // 1_000_000_000, 0
    word[SECOND_COUNT] += 1
    word[SECOND_PEAK] = max(word[SECOND_PEAK], word[SECOND_COUNT])
    if time // 1_000_000 != word[MILLI]:
        word[MILLI], word[MILLI_COUNT] = time // 1_000_000, 0
    word[MILLI_COUNT] += 1
    word[MILLI_PEAK] = max(word[MILLI_PEAK], word[MILLI_COUNT])


@kernel
def _apply(state, data, at, type_, time):
    """Apply a message to orders and levels."""
    adds = type_ == ord("A") or type_ == ord("F")
    less = type_ == ord("E") or type_ == ord("C") or type_ == ord("X")
    replaces = type_ == ord("U")
    if not (adds or less or replaces or type_ == ord("D")):
        return
    locate = load_be16(data, at + _LOCATE)
    state.by_locate[np.int64(locate)] += 1
    reference = load_be64(data, at + _REFERENCE)
    slot = np.int64(hashing.find(state.orders, reference))
    if adds:
        if slot == 0:
            side = load_u8(data, at + _SIDE) & _1  # B and S differ in their last bit
            key = (locate << np.uint64(33)) | (side << np.uint64(32)) | load_be32(data, at + _PRICE)
            _born(state, reference, key, time, load_be32(data, at + _SHARES))
        return
    if slot == 0:
        return
    if less:
        shares = load_be32(data, at + _LESS)
        if shares < state.order[slot - 1, 2]:
            state.order[slot - 1, 2] -= shares
            return
    key = state.order[slot - 1, 0]
    _gone(state, reference, time)
    if replaces:
        key = (key >> np.uint64(32) << np.uint64(32)) | load_be32(data, at + _NEW_PRICE)
        _born(state, load_be64(data, at + _NEW), key, time, load_be32(data, at + _NEW_SHARES))


def statistics(day) -> pd.DataFrame:
    """Return the statistics of a day of ITCH 5.0, a synthetic one or any other.

    Parameters
    ----------
    day : path-like, bytes-like, or ndarray of uint8
        Messages with their two-byte lengths.

    Returns
    -------
    DataFrame
        Columns ``statistic``, ``unit``, ``this day`` (numbers), ``real day`` (numbers, or `NOT_PUBLISHED`), ``source``.
    """
    if isinstance(day, str | Path):
        try:
            day = np.memmap(day, np.uint8, mode="r") if Path(day).stat().st_size else b""
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read {day}: {getattr(error, 'strerror', None) or error}") from None
    data = as_bytes_array(day)
    most = data.size // int(_LENGTHS[_LENGTHS > 0].min()) + 1  # orders there can be; committed only as used
    size = max(1024, 1 << (most - 1).bit_length())
    state = _Pass(
        np.zeros(17, np.int64), np.zeros(256, np.int64), np.zeros(65_536, np.int64), np.zeros(_BUCKETS, np.int64),
        hashing.make_map(2 * size), hashing.make_map(2 * size), huge_array(3 * size, np.uint64).reshape(size, 3),
    )  # fmt: skip
    state.word[[SECOND, MILLI]] = -1
    _survey(state, data)
    return pd.DataFrame(
        _rows(state, data.size), columns=["statistic", "unit", "this day", "real day", "source"], dtype=object
    )


def _rows(state: _Pass, nbytes: int) -> list[tuple]:
    word, total = state.word, max(1, int(state.word[MESSAGES]))
    count = {type_: int(state.counts[ord(type_)]) for type_ in TYPES}

    def row(name, unit, value, real=NOT_PUBLISHED, source=""):
        return name, unit, value, real, source

    rows = [row("messages", "", int(word[MESSAGES]), MIX_TOTAL, "claim R1")]
    rows += [
        row(f"{name} ({' and '.join(types)})", "% of messages", 100 * sum(count[t] for t in types) / total,
            round(100 * MIX[name] / MIX_TOTAL, 3), "claim R3")
        for name, types in _CLASSES.items()
    ]  # fmt: skip
    others = 100 * (1 - sum(MIX.values()) / MIX_TOTAL)
    rows.append(
        row("all other types", "% of messages",
            100 * sum(n for t, n in count.items() if t not in "AFECXDU") / total, round(others, 3), "claims R1 and R3")
    )  # fmt: skip
    rows += [
        row("types that occur", "of 23", sum(n > 0 for n in count.values())),
        row("mean length of a message", "bytes", nbytes / total - 2),
        row("live orders, most", "orders", int(word[PEAK])),
        row("live orders, at the end", "orders", int(word[LIVE])),
        row("orders a level, when most are live", "orders", int(word[PEAK]) / max(1, int(word[LEVELS_AT_PEAK]))),
        row("new orders that open a level", "% of A, F and U", 100 * int(word[NEW_LEVELS]) / max(1, int(word[BORN]))),
        row("mean size of a new order", "shares", int(word[SHARES]) / max(1, int(word[BORN]))),
    ]
    rows += [
        row(f"lifetime of an order, {name}", "ns", _lifetime(state.lifetimes, per_mille))
        for name, per_mille in (("10 %", 100), ("median", 500), ("90 %", 900), ("99 %", 990))
    ]
    active = np.sort(state.by_locate)[::-1]
    active = active[: max(1, np.count_nonzero(active))]
    orders = max(1, int(active.sum()))
    speed, multiple = _PEAK_MILLION
    return [
        *rows,
        row("instruments with orders", "", int(np.count_nonzero(active))),
        row("the most active instrument", "% of order messages", 100 * int(active[0]) / orders),
        row("the most active tenth", "% of order messages", 100 * int(active[: -(-active.size // 10)].sum()) / orders),
        row(
            "busiest second",
            "messages",
            int(word[SECOND_PEAK]),
            round(speed / multiple * 1e6, -5),
            "claim F1, peak of the feed",
        ),
        row("busiest second", "% of messages", 100 * int(word[SECOND_PEAK]) / total),
        row("busiest millisecond", "messages", int(word[MILLI_PEAK])),
    ]


def _lifetime(buckets: np.ndarray, per_mille: int) -> int:
    """Return a nearest-rank quantile of the lifetimes that ended, as the lower edge of its bucket; −1 without any."""
    total = int(buckets.sum())
    if total == 0:
        return -1
    rank = -(-per_mille * total // 1000)
    bucket = int(np.searchsorted(np.cumsum(buckets), rank))
    power, sub = bucket >> _SUB_BITS, bucket & ((1 << _SUB_BITS) - 1)
    return (1 << power) + (sub << (power - _SUB_BITS)) - (1 << _SUB_BITS)
