"""Shares change hands, or are about to: the messages E, C, P, Q, B and I, and the generator's market with them.

Executions meet the first order of the best price, as price-time priority has it. In a cross one side's displayed orders
trade at one price, the last one's: those with better prices trade in full, each by a C that is not printable; Q says
what the cross was in all.
"""

import numpy as np

from photonlab.systems.synth import emit, market
from photonlab.systems.synth import quotas as qt
from photonlab.systems.synth import state as st
from photonlab.systems.synth.instruments import WINDOW
from photonlab.systems.synth.orders import part_of
from photonlab.systems.synth.rng import below, inner, next64
from photonlab.systems.synth.script import COUNT_SHIFT
from photonlab.systems.synth.timetable import OPEN

_TRIES = 8
_0, _NOBODY = np.int64(0), np.int64(-1)
_DIRECTIONS = np.array([ord(direction) for direction in "BSNB"])


@inner
def _can_trade(day, i):
    """Tell whether an instrument is not halted and has an order to trade with."""
    if day.instrument[i, st.HALTED]:
        return False
    return market.inside(day, i, st.BUY) >= 0 or market.inside(day, i, st.SELL) >= 0


@inner
def _tradable(day):
    """Return an instrument that can trade, by activity if possible, or −1."""
    for _ in range(_TRIES):
        i = market.active_instrument(day)
        if _can_trade(day, i):
            return i
    for _ in range(day.instrument.shape[0]):
        i = i + 1 if i + 1 < day.instrument.shape[0] else 0
        if _can_trade(day, i):
            return i
    return np.int64(-1)


@inner
def take(day, i, node, whole):
    """Execute an order, wholly or in part as asked if it can be, and the quotas of both; return the shares."""
    word = day.word
    shares = np.int64(day.node[node, st.SHARES])
    if not whole and shares > 1:
        shares = part_of(day, shares)
        day.node[node, st.SHARES] -= shares
        word[st.PART_LEFT] = max(0, word[st.PART_LEFT] - 1)
        return shares
    market.leave(day, i, node)
    market.gone(day, i, node)
    word[st.FULL_LEFT] = max(0, word[st.FULL_LEFT] - 1)
    return shares


@inner
def execute(day, buffer, at, priced):
    """Write E or C: the first order at the best price of a side trades. Nothing where none can."""
    word = day.word
    i = _tradable(day)
    if i < 0:
        return at
    side = np.int64(next64(day.word) & np.uint64(1))
    tick = market.inside(day, i, side)
    if tick < 0:
        side = 1 - side
        tick = market.inside(day, i, side)
    row = day.instrument[i]
    price = market.price_of(row, tick)
    other = market.inside(day, i, 1 - side)
    if other >= 0:
        price = (price + market.price_of(row, other)) // 2
    node = np.int64(day.queue[i, tick, st.FIRST])
    reference = market.reference_of(day, node)
    whole = below(day.word, max(1, word[st.FULL_LEFT] + word[st.PART_LEFT])) < word[st.FULL_LEFT]
    shares = take(day, i, node, whole)
    match = market.new_match(day, i)
    day.table[i, st.VOLUME] += shares
    if priced:  # as orders do that are shown at another price than they trade at
        return emit.execute_price(day, buffer, at, i, reference, shares, match, ord("Y"), price)
    return emit.execute(day, buffer, at, i, reference, shares, match)


@inner
def trade(day, buffer, at):
    """Write P: a hidden order trades within the spread; at the fair price where the spread is open."""
    i = _tradable(day)
    if i < 0:
        return at
    row = day.instrument[i]
    bid, ask = market.inside(day, i, st.BUY), market.inside(day, i, st.SELL)
    if bid >= 0 and ask >= 0:
        low, high = market.price_of(row, bid), market.price_of(row, ask)
        price = (low + high) // 2
        if high - low > 2 * row[st.STEP] and next64(day.word) & np.uint64(1):
            price = low + (1 + below(day.word, ask - bid - 1)) * row[st.STEP]
    elif bid >= 0:
        price = market.price_of(row, bid + 1)
    else:
        price = market.price_of(row, ask - 1)
    shares = market.new_shares(day)
    day.table[i, st.VOLUME] += shares
    return emit.trade(day, buffer, at, i, shares, price, market.new_match(day, i))


@inner
def broken(day, buffer, at):
    """Write B for one of the last matches, each at most once. Nothing where there is none."""
    first = below(day.word, st.KEPT)
    for k in range(st.KEPT):
        slot = st.MATCHES + 2 * ((first + k) & (st.KEPT - 1))
        match, i = day.word[slot], day.word[slot + 1]
        if match > 0:
            day.word[slot] = 0
            return emit.broken(day, buffer, at, i, match)
    return at


@inner
def imbalance(day, buffer, at):
    """Write I for the opening cross before the open, else for the closing cross."""
    i = market.active_instrument(day)
    row = day.instrument[i]
    kind = ord("O") if day.phase[day.word[st.PHASE], 0] < OPEN else ord("C")
    tick = market.inside(day, i, st.BUY)
    if tick < 0:
        return emit.imbalance(day, buffer, at, i, _0, _0, ord("O"), _0, _0, _0, kind)
    price, step = market.price_of(row, tick), np.int64(row[st.STEP])
    near = price + step * below(day.word, 3)
    far = max(step, near + step * (below(day.word, 21) - 10))
    direction = _DIRECTIONS[below(day.word, 4)]
    missing = 0 if direction == ord("N") else market.new_shares(day) * 3
    return emit.imbalance(day, buffer, at, i, market.new_shares(day) * 10, missing, direction, price, far, near, kind)


@inner
def begin_cross(day, i, argument):
    """Find the price at which a cross takes the executions asked for from one side, as far as that side has them."""
    word, row = day.word, day.instrument[i]
    wanted = argument >> COUNT_SHIFT
    side = np.int64(next64(day.word) & np.uint64(1))
    tick = market.inside(day, i, side)
    if tick < 0:
        side = 1 - side
        tick = market.inside(day, i, side)
    found, price = 0, np.int64(0)
    if tick >= 0:
        price = market.price_of(row, tick)
        towards = -1 if side == st.BUY else 1
        while found < wanted and 0 < tick < WINDOW - 1:
            node = day.queue[i, tick, st.FIRST]
            while node >= 0 and found < wanted:
                price = market.price_of(row, tick)
                found += 1
                node = day.node[node, st.BEHIND]
            tick += towards
    word[st.CROSS_LEFT], word[st.CROSS_INSTRUMENT], word[st.CROSS_TYPE] = found, i, argument & 255
    word[st.CROSS_SIDE], word[st.CROSS_PRICE], word[st.CROSS_SHARES] = side, price, 0
    day.phase[word[st.PHASE], st.QUOTA + qt.EXECUTE_PRICE] += wanted - found  # for later in the phase
    word[st.LEFT] += wanted - found
    word[st.TO_GO] += wanted


@inner
def cross_message(day, buffer, at):
    """Write the next message of the cross under way: a C, or the Q that ends it; all of them have one time."""
    word = day.word
    i, price = word[st.CROSS_INSTRUMENT], word[st.CROSS_PRICE]
    left = word[st.CROSS_LEFT]
    word[st.CROSS_LEFT] -= 1
    word[st.SENT] += 1
    if left > 0:
        side = word[st.CROSS_SIDE]
        node = np.int64(day.queue[i, market.inside(day, i, side), st.FIRST])
        reference = market.reference_of(day, node)
        shares = take(day, i, node, left > 1 or next64(day.word) & np.uint64(1) == np.uint64(0))
        word[st.CROSS_SHARES] += shares
        word[st.TO_GO] -= 1
        match = market.new_match(day, _NOBODY)
        return emit.execute_price(day, buffer, at, i, reference, shares, match, ord("N"), price)
    shares = word[st.CROSS_SHARES]
    if price > 0 and next64(day.word) & np.uint64(3) == np.uint64(0):
        shares += market.new_shares(day)  # orders for the cross only are never displayed
    if shares == 0:
        price = np.int64(0)
    day.table[i, st.VOLUME] += shares
    return emit.cross(day, buffer, at, i, shares, price, market.new_match(day, _NOBODY), word[st.CROSS_TYPE])
