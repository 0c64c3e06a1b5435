"""Shares change hands, or are about to: the messages E, C, P, Q, B and I, and the generator's market with them.

Executions meet the first order of the best price, as price-time priority has it. In a cross one side's displayed orders trade at one
price, the last one's: those with better prices trade in full, each by a C that is not printable; Q says what the cross was in all.
"""

import numpy as np

from photonlab.machine.jit import kernel
from photonlab.systems.synth import emit, market
from photonlab.systems.synth import quotas as qt
from photonlab.systems.synth import state as st
from photonlab.systems.synth.instruments import WINDOW
from photonlab.systems.synth.orders import part_of
from photonlab.systems.synth.rng import below, next64
from photonlab.systems.synth.script import COUNT_SHIFT
from photonlab.systems.synth.timetable import OPEN

_TRIES = 8
_DIRECTIONS = np.array([ord(direction) for direction in "BSNB"])


@kernel
def _can_trade(day, i):
    """Tell whether an instrument is not halted and has an order to trade with."""
    return day.instrument[i, st.HALTED] == 0 and (market.inside(day, i, st.BUY) >= 0 or market.inside(day, i, st.SELL) >= 0)


@kernel
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


@kernel
def take(day, i, node, whole):
    """Execute an order, wholly or in part as asked if it can be, and the quotas of both; return the shares."""
    scalar = day.scalar
    shares = np.int64(day.node[node, st.SHARES])
    if not whole and shares > 1:
        shares = part_of(day, shares)
        day.node[node, st.SHARES] -= shares
        scalar[st.PART_LEFT] = max(0, scalar[st.PART_LEFT] - 1)
        return shares
    market.leave(day, i, node)
    market.gone(day, i, node)
    scalar[st.FULL_LEFT] = max(0, scalar[st.FULL_LEFT] - 1)
    return shares


@kernel
def execute(day, buffer, at, priced):
    """Write E or C: the first order at the best price of a side trades. Nothing where none can."""
    scalar = day.scalar
    i = _tradable(day)
    if i < 0:
        return at
    side = np.int64(next64(day.random) & np.uint64(1))
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
    reference = day.reference[node]
    whole = below(day.random, max(1, scalar[st.FULL_LEFT] + scalar[st.PART_LEFT])) < scalar[st.FULL_LEFT]
    shares = take(day, i, node, whole)
    match = market.new_match(day, i)
    if not priced:
        day.volume[i] += shares
        return emit.execute(day, buffer, at, i, reference, shares, match)
    printable = next64(day.random) & np.uint64(7) != np.uint64(0)
    if printable:
        day.volume[i] += shares
    return emit.execute_price(day, buffer, at, i, reference, shares, match, printable, price)



@kernel
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
        if high - low > 2 * row[st.STEP] and next64(day.random) & np.uint64(1):
            price = low + (1 + below(day.random, ask - bid - 1)) * row[st.STEP]
    elif bid >= 0:
        price = market.price_of(row, bid + 1)
    else:
        price = market.price_of(row, ask - 1)
    shares = market.new_shares(day)
    day.volume[i] += shares
    return emit.trade(day, buffer, at, i, shares, price, market.new_match(day, i))


@kernel
def broken(day, buffer, at):
    """Write B for one of the last matches, each at most once. Nothing where there is none."""
    first = below(day.random, st.KEPT)
    for k in range(st.KEPT):
        known = day.matches[(first + k) & (st.KEPT - 1)]
        if known[0] > 0:
            match, i = known[0], known[1]
            known[0] = 0
            return emit.broken(day, buffer, at, i, match)
    return at


@kernel
def imbalance(day, buffer, at):
    """Write I for the opening cross before the open, else for the closing cross."""
    i = market.active_instrument(day)
    row = day.instrument[i]
    kind = ord("O") if day.phase[day.scalar[st.PHASE], 0] < OPEN else ord("C")
    tick = market.inside(day, i, st.BUY)
    if tick < 0:
        return emit.imbalance(day, buffer, at, i, 0, 0, ord("O"), 0, 0, 0, kind)
    price, step = market.price_of(row, tick), np.int64(row[st.STEP])
    near = price + step * below(day.random, 3)
    far = max(step, near + step * (below(day.random, 21) - 10))
    direction = _DIRECTIONS[below(day.random, 4)]
    missing = 0 if direction == ord("N") else market.new_shares(day) * 3
    return emit.imbalance(day, buffer, at, i, market.new_shares(day) * 10, missing, direction, price, far, near, kind)


@kernel
def begin_cross(day, i, argument):
    """Find the price at which a cross takes the executions asked for from one side, as far as that side has them."""
    scalar, row = day.scalar, day.instrument[i]
    wanted = argument >> COUNT_SHIFT
    side = np.int64(next64(day.random) & np.uint64(1))
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
    scalar[st.CROSS_LEFT], scalar[st.CROSS_INSTRUMENT], scalar[st.CROSS_TYPE] = found, i, argument & 255
    scalar[st.CROSS_SIDE], scalar[st.CROSS_PRICE], scalar[st.CROSS_SHARES] = side, price, 0
    day.quota[scalar[st.PHASE], qt.EXECUTE_PRICE] += wanted - found  # for later in the phase
    scalar[st.LEFT] += wanted - found
    scalar[st.TO_GO] += wanted


@kernel
def cross_message(day, buffer, at):
    """Write the next message of the cross under way: a C, or the Q that ends it; all of them have one time."""
    scalar = day.scalar
    i, price = scalar[st.CROSS_INSTRUMENT], scalar[st.CROSS_PRICE]
    left = scalar[st.CROSS_LEFT]
    scalar[st.CROSS_LEFT] -= 1
    scalar[st.SENT] += 1
    if left > 0:
        side = scalar[st.CROSS_SIDE]
        node = np.int64(day.queue[i, market.inside(day, i, side), st.FIRST])
        reference = day.reference[node]
        shares = take(day, i, node, left > 1 or next64(day.random) & np.uint64(1) == np.uint64(0))
        scalar[st.CROSS_SHARES] += shares
        scalar[st.TO_GO] -= 1
        return emit.execute_price(day, buffer, at, i, reference, shares, market.new_match(day, -1), False, price)
    shares = scalar[st.CROSS_SHARES]
    if price > 0 and next64(day.random) & np.uint64(3) == np.uint64(0):
        shares += market.new_shares(day)  # orders for the cross only are never displayed
    if shares == 0:
        price = np.int64(0)
    day.volume[i] += shares
    return emit.cross(day, buffer, at, i, shares, price, market.new_match(day, -1), scalar[st.CROSS_TYPE])
