"""Orders come, go, shrink and are replaced: the messages A, F, D, X and U, and the generator's market with them."""

import numpy as np

from photonlab.machine.bits import prefetch
from photonlab.systems.synth import emit, market
from photonlab.systems.synth import state as st
from photonlab.systems.synth.instruments import WINDOW
from photonlab.systems.synth.rng import below, inner, next64, pick

_8, _16 = np.uint64(8), np.uint64(16)
_TRIES = 8


@inner
def add_or_delete(day, buffer, at):
    """Write A, F or D: what the instrument's live orders ask for, as far as the day's quotas go."""
    word = day.word
    level = word[st.RAMP_TO] <= word[st.SENT] < word[st.FALL_FROM]
    i = _next_instrument(day, level)
    adds = market.wants_more(day, i)
    add_left = word[st.ADD_LEFT] + word[st.ATTRIBUTED_LEFT]
    if add_left == 0 and word[st.DELETE_LEFT] > 0:
        adds = False
    elif word[st.DELETE_LEFT] == 0 and add_left > 0:
        adds = True
    for _ in range(day.instrument.shape[0]):
        count = day.instrument[i, st.COUNT]
        if (count < day.instrument[i, st.CAPACITY]) if adds else (count > 0):
            break
        if level and add_left > 0 and word[st.DELETE_LEFT] > 0:
            adds = not adds
            break
        i = i + 1 if i + 1 < day.instrument.shape[0] else 0
    else:
        adds = not adds  # no instrument has room, or none has an order: the other of the two always fits
    word[st.LAST] = i
    if not adds:
        word[st.DELETE_LEFT] = max(0, word[st.DELETE_LEFT] - 1)
        node = market.victim(day, i)
        reference = market.reference_of(day, node)
        market.leave(day, i, node)
        market.gone(day, i, node)
        return emit.delete(day, buffer, at, i, reference)
    bits = next64(day.word)
    if bits & np.uint64(63) == np.uint64(0):
        market.drift(day, i)
    side = np.int64((bits >> _8) & np.uint64(1))
    tick = market.new_tick(day, i, side)
    shares = market.new_shares(day)
    reference = market.new_reference(day, np.int64(day.instrument[i, st.CHANNEL]))
    market.join(day, i, market.born(day, i, shares, reference), side, tick)
    mpid = np.int64(-1)
    if add_left > 0 and below(day.word, add_left) < word[st.ATTRIBUTED_LEFT]:
        word[st.ATTRIBUTED_LEFT] -= 1
        mpid = np.int64((bits >> _16) & np.uint64(7))
    else:
        word[st.ADD_LEFT] = max(0, word[st.ADD_LEFT] - 1)
    return emit.add(day, buffer, at, i, reference, side, shares, market.price_of(day.instrument[i], tick), mpid)


@inner
def _next_instrument(day, level):
    """Return the next order's instrument, and choose one ahead, whose book is in the cache when its turn comes."""
    word = day.word
    i = word[st.NEXT]
    word[st.NEXT] = word[st.AFTER_NEXT]
    word[st.AFTER_NEXT] = market.active_instrument(day) if level else pick(word, day.table, st.DEEP)
    row = day.instrument[word[st.NEXT]]
    if row[st.COUNT] > 0:
        prefetch(day.node, np.int64(day.live[row[st.BASE] + row[st.COUNT] - 1]) * 8)
        prefetch(day.node, np.int64(day.live[row[st.BASE] + max(0, row[st.COUNT] - 2)]) * 8)
    after = word[st.AFTER_NEXT]
    row = day.instrument[after]
    prefetch(day.live, row[st.BASE] + row[st.COUNT] - 1)
    prefetch(day.queue, (after * WINDOW + row[st.BID]) * 2)
    prefetch(day.queue, (after * WINDOW + row[st.ASK]) * 2)
    return i


@inner
def replace(day, buffer, at):
    """Write U: the old order goes, a new one of the same side joins a tail. Nothing where there is no order."""
    i = with_orders(day)
    if i < 0:
        return at
    node = market.victim(day, i)
    old, side = market.reference_of(day, node), np.int64(day.node[node, st.SIDE])
    shares, tick = np.int64(day.node[node, st.SHARES]), np.int64(day.node[node, st.TICK])
    market.leave(day, i, node)
    market.gone(day, i, node)
    bits = next64(day.word)
    if bits & np.uint64(3) == np.uint64(0):
        shares = market.new_shares(day)
    if bits & np.uint64(0x30) != np.uint64(0) or shares == day.node[node, st.SHARES]:
        tick = market.new_tick(day, i, side)
    new = market.new_reference(day, np.int64(day.instrument[i, st.CHANNEL]))
    market.join(day, i, market.born(day, i, shares, new), side, tick)
    return emit.replace(day, buffer, at, i, old, new, shares, market.price_of(day.instrument[i], tick))


@inner
def cancel(day, buffer, at):
    """Write X, or nothing where no order can be found that has shares to lose and to keep."""
    for _ in range(4 * _TRIES):
        i = with_orders(day)
        if i < 0:
            break
        node = market.victim(day, i)
        shares = np.int64(day.node[node, st.SHARES])
        if shares > 1:
            less = part_of(day, shares)
            day.node[node, st.SHARES] -= less
            return emit.cancel(day, buffer, at, i, market.reference_of(day, node), less)
    return at


@inner
def part_of(day, shares):
    """Return a part of an order's shares, at least 1 and fewer than all; round lots where it has several."""
    lots = (shares - 1) // 100
    if lots > 0:
        return 100 * (1 + below(day.word, lots))
    return 1 + below(day.word, shares - 1)


@inner
def with_orders(day):
    """Return an instrument that has a live order, by activity if possible, or −1."""
    for _ in range(_TRIES):
        i = market.active_instrument(day)
        if day.instrument[i, st.COUNT] > 0:
            return i
    for _ in range(day.instrument.shape[0]):
        i = i + 1 if i + 1 < day.instrument.shape[0] else 0
        if day.instrument[i, st.COUNT] > 0:
            return i
    return np.int64(-1)
