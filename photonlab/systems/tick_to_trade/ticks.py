"""Ticks to put the engine to work: a stream of which each calls for an order, and order flow of many instruments."""

import numpy as np
from numba import int64, uint64

from photonlab.kernels.level_book import CHANGE, DELETE, DEPTH, NEW
from photonlab.kernels.sbe import fields
from photonlab.machine.jit import kernel
from photonlab.systems.synth.rng import below
from photonlab.systems.tick_to_trade import messages

PRICE = 100_000_000_000
EDGE = 10_000_000
"""The middle of all prices, 100 in units of 10⁻⁹, and the step of prices, a cent."""

TICK = np.dtype(
    {
        "names": ["length", "encoding", "block", "template", "schema", "version",
                  "time", "sequence", "venue", "event", "entry_length", "entries",
                  "price", "size", "security", "report", "orders", "level", "action", "type"],
        "formats": ["<u2", "<u2", "<u2", "<u2", "<u2", "<u2",
                    "<u8", "<u4", "u1", "u1", "<u2", "u1",
                    "<i8", "<i4", "<u4", "<u4", "<i4", "u1", "u1", "u1"],
        "offsets": [0, 2, 4, 6, 8, 10, 12, 20, 24, 25, 28, 30, 31, 39, 43, 47, 51, 55, 56, 57],
        "itemsize": messages.TICK_SIZE,
    }
)  # fmt: skip
"""A tick of one entry as it lies on the wire; a test holds it against the schema."""

VENUES = messages.VENUES
_WORDS = 1 + DEPTH
_FAR = 3  # how far beyond the middle a side may wander
_0, _1, _2, _CHAR, _LADDER = (np.uint64(n) for n in (0, 1, 2, ord("0"), _WORDS))
_TICK_SIZE, _ROOT, _ENTRY = (np.uint64(n) for n in (messages.TICK_SIZE, 12, TICK.fields["price"][1] - 12))


def blank(count):
    """Return ticks of one entry with framing and header, and everything else zero, as a structured array."""
    ticks = np.zeros(count, TICK)
    ticks["length"], ticks["encoding"] = messages.TICK_SIZE, messages.FRAMED
    ticks["block"], ticks["template"] = messages.TABLES.message("BookRefresh").block, messages.TICK_TEMPLATE
    ticks["schema"], ticks["version"] = messages.SCHEMA_ID, messages.TABLES.version
    ticks["entry_length"], ticks["entries"] = messages.TABLES.message("BookRefresh").groups[0].block, 1
    ticks["time"] = 1_000_000 + 1000 * np.arange(count)
    ticks["event"] = 0x80
    return ticks


def as_bytes(ticks):
    """Return ticks as the bytes of a stream, without a copy."""
    return ticks.view(np.uint8).reshape(-1)


def crossing(count, instruments=1):
    """Return ticks each of which, but the first `instruments`, calls for an order, and those orders.

    Venue 1 offers at a price, venue 0 bids one more: buy at venue 1. Each venue then says again and again what it said
    before, and each time the other's quote is the late one. Instruments take turns.

    Parameters
    ----------
    count : int
    instruments : int

    Returns
    -------
    ticks : structured array of `TICK`, shape (count,)
    quantity : int64[count]
        Of the order that each calls for; 0 where there is none. Its price is the other venue's, its side that of the
        other's quote, its identifier counts from 1.
    """
    ticks, turn = blank(count), np.arange(count) // instruments
    ticks["security"] = np.arange(count) % instruments
    ticks["venue"] = 1 - turn % 2
    for venue in (0, 1):
        mine = np.flatnonzero(ticks["venue"] == venue)
        ticks["sequence"][mine] = 1 + np.arange(mine.size)
    ticks["report"] = 1 + turn
    ticks["type"] = ord("1") - turn % 2
    ticks["price"] = PRICE + EDGE * (turn % 2)
    ticks["size"] = 1 + turn % 97
    ticks["orders"], ticks["level"] = 1, 1
    ticks["action"] = np.where(turn < 2, NEW, CHANGE)
    before = 1 + (turn - 1) % 97  # the other venue has said nothing since, and nothing was taken of it
    return ticks, np.where(turn > 0, np.minimum(1 + turn % 97, before), 0)


def flow(chosen, seed):
    """Return order flow: levels that are added, changed and deleted at two venues, never a level that is not there.

    Both venues' prices wander about the same price, so that now and then they cross.

    Parameters
    ----------
    chosen : uint32[n]
        The instrument of each tick.
    seed : int

    Returns
    -------
    structured array of `TICK`, shape (n,)
    """
    if chosen.size == 0:
        return blank(0)
    ticks = blank(chosen.size)
    ticks["security"], ticks["orders"] = chosen, 1
    ladders = np.zeros((int(chosen.max()) + 1) * 2 * VENUES * _WORDS, np.int32)
    fill(ladders, as_bytes(ticks), uint64(chosen.size), np.array([seed], np.int64), np.ones(VENUES, np.uint64))
    return ticks


@kernel
def fill(ladders, data, count, words, sequences):
    """Write venue, sequence, side, level, action, price and size of ticks that already have an instrument.

    Parameters
    ----------
    ladders : int32[44 * instruments]
        For each venue and side how many levels there are and their distances from the middle; all zero to begin with.
    data : uint8[count * TICK_SIZE]
    count : uint64
    words : int64[1]
        State of the random numbers.
    sequences : uint64[2]
        The next sequence of each venue.
    """
    for tick in range(count):
        root = tick * _TICK_SIZE + _ROOT
        entry = root + _ENTRY
        drawn = below(words, 1 << 30)
        venue, offer, what = uint64(drawn) & _1, (uint64(drawn) >> _1) & _1, (drawn >> 2) & 7
        ladder = ((fields.get(data, entry, messages.SECURITY) << _2) + (venue << _1) + offer) * _LADDER
        there = int64(ladders[ladder])
        level, action = int64(0), NEW
        best = int64(ladders[ladder + _1])
        if there > 0 and (what > 3 or (what == 1 and there == DEPTH)):
            action, level = CHANGE, (drawn >> 5) % there
            level = level if (drawn >> 16) & 1 else int64(0)  # half of all at the best price
        elif there > 2 and (what == 3 or best < 0):
            action, level = DELETE, (drawn >> 5) % there if best >= 0 else int64(0)
        elif there == 0:
            level, best = int64(0), int64(1) + (drawn >> 5) % 2
        elif (what == 0 and best >= 0) or best > _FAR:
            best = best - int64(1)
        elif there < DEPTH:
            level = there
            best = int64(ladders[ladder + uint64(there)]) + int64(1)
        else:
            action = CHANGE
        if action == CHANGE:
            best = int64(ladders[ladder + _1 + uint64(level)])
        elif action == NEW:
            last = min(there, int64(DEPTH) - int64(1))
            for at in range(last, level, -1):
                ladders[ladder + _1 + uint64(at)] = ladders[ladder + uint64(at)]
            ladders[ladder + _1 + uint64(level)] = best
            ladders[ladder] = last + int64(1)
        else:
            best = int64(ladders[ladder + _1 + uint64(level)])
            for at in range(level, there - int64(1)):
                ladders[ladder + _1 + uint64(at)] = ladders[ladder + _2 + uint64(at)]
            ladders[ladder] = there - int64(1)
        away = best if offer != _0 else -best
        fields.put(data, root, messages.VENUE, venue)
        fields.put(data, root, messages.SEQUENCE, sequences[venue])
        sequences[venue] += _1
        fields.put(data, entry, messages.PRICE, int64(PRICE) + away * int64(EDGE))
        fields.put(data, entry, messages.SIZE, int64(1) + (drawn >> 20) % 500)
        fields.put(data, entry, messages.LEVEL, level + int64(1))
        fields.put(data, entry, messages.ACTION, action)
        fields.put(data, entry, messages.SIDE, _CHAR + offer)
