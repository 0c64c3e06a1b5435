"""The generator's own market: a window of ticks per instrument, queues, and best ticks found by walking the window.

It is kept apart from the book under test on purpose: nothing is shared with it, so that each can convict the other.
"""

import numpy as np

from photonlab.machine.bits import ctz64
from photonlab.systems.synth import state as st
from photonlab.systems.synth.instruments import CENTRE, STUB_ASK_RAW, WINDOW
from photonlab.systems.synth.rng import below, inline, inner, next64, pick

_TOP = WINDOW - 1
_LOTS = np.array([1] * 8 + [2] * 2 + [3, 4, 5, 5, 10, 20])
_GAPS = np.array([1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 8])
"""Steps from one displayed reference of a channel to the next, as in NASDAQ's sample of 2019-12-30: what lies between
was never displayed."""
_CLAMP_LOW, _CLAMP_HIGH = 1_300, 64_200  # of 65,536: how far the control of live orders may go
_FAIR_SPAN, _FAIR_PULL, _MARGIN = 150, 400, 60
_16, _24, _32 = np.uint64(16), np.uint64(24), np.uint64(32)


@inline
def price_of(row, tick):
    """Return the raw price of a tick of the instrument whose columns are `row`."""
    if tick == 0:
        return np.int64(row[st.STUB_BID])
    if tick == _TOP:
        return np.int64(STUB_ASK_RAW)
    return np.int64(row[st.ANCHOR]) + (np.int64(tick) - CENTRE) * np.int64(row[st.STEP])


@inline
def reference_of(day, node):
    """Return the reference of a node's order."""
    return np.int64(day.node[node, st.HIGH_WORD]) << 32 | np.int64(day.node[node, st.LOW_WORD]) & 0xFFFFFFFF


@inline
def set_reference(day, node, reference):
    """Set the reference of a node's order."""
    day.node[node, st.HIGH_WORD] = np.int32(reference >> 32)
    day.node[node, st.LOW_WORD] = np.int32(reference & 0xFFFFFFFF)


@inner
def join(day, i, node, side, tick):
    """Put a node at the end of a tick's queue."""
    row, queue, nodes = day.instrument[i], day.queue[i], day.node
    final = queue[tick, st.FINAL]
    nodes[node, st.SIDE], nodes[node, st.TICK] = side, tick
    nodes[node, st.BEFORE], nodes[node, st.BEHIND] = final, -1
    if final >= 0:
        nodes[final, st.BEHIND] = node
    else:
        queue[tick, st.FIRST] = node
    queue[tick, st.FINAL] = node
    if side == st.BUY:
        row[st.BID] = max(row[st.BID], np.int32(tick))
    else:
        row[st.ASK] = min(row[st.ASK], np.int32(tick))


@inner
def leave(day, i, node):
    """Take a node out of its queue; if that was the best tick's last, walk to the next tick with a queue."""
    row, queue, nodes = day.instrument[i], day.queue[i], day.node
    tick, before, behind = np.int64(nodes[node, st.TICK]), nodes[node, st.BEFORE], nodes[node, st.BEHIND]
    if before >= 0:
        nodes[before, st.BEHIND] = behind
    else:
        queue[tick, st.FIRST] = behind
    if behind >= 0:
        nodes[behind, st.BEFORE] = before
    else:
        queue[tick, st.FINAL] = before
    if queue[tick, st.FIRST] >= 0:
        return
    if tick == row[st.BID]:
        while tick >= 0 and queue[tick, st.FIRST] < 0:
            tick -= 1
        row[st.BID] = tick
    elif tick == row[st.ASK]:
        while tick < WINDOW and queue[tick, st.FIRST] < 0:
            tick += 1
        row[st.ASK] = tick


@inner
def born(day, i, shares, reference):
    """Take a free node of an instrument for a new order, its youngest; the caller puts it into a queue."""
    row = day.instrument[i]
    place = row[st.BASE] + row[st.COUNT]
    node = day.live[place]
    row[st.COUNT] += 1
    day.node[node, st.SHARES], day.node[node, st.PLACE] = shares, place
    set_reference(day, node, reference)
    day.word[st.LIVE] += 1
    day.word[st.PEAK] = max(day.word[st.PEAK], day.word[st.LIVE])
    return np.int64(node)


@inner
def gone(day, i, node):
    """Give a node back. Young orders keep their order of age; in an old one's place the youngest grows old."""
    row, live, nodes = day.instrument[i], day.live, day.node
    last = row[st.BASE] + row[st.COUNT] - 1
    place = nodes[node, st.PLACE]
    if last - place <= 16:
        for at in range(place, last):
            live[at] = live[at + 1]
            nodes[live[at], st.PLACE] = at
    else:
        live[place] = live[last]
        nodes[live[place], st.PLACE] = place
    live[last] = node
    row[st.COUNT] -= 1
    day.word[st.LIVE] -= 1


@inner
def new_reference(day, channel):
    """Return the next reference of a channel; once in a while an earlier one that was passed over."""
    channels = day.word[st.CHANNELS]
    bits = next64(day.word)
    remainder = (channel + 1) % channels
    if bits & np.uint64(0xFC00) == np.uint64(0):
        slot = np.int64((bits >> _32) & np.uint64(st.KEPT - 1))
        skipped = day.word[st.SKIPPED + channel * st.KEPT + slot]
        if skipped:
            day.word[st.SKIPPED + channel * st.KEPT + slot] = 0
            return skipped * channels + remainder
    gap = _GAPS[bits & np.uint64(15)]
    if gap > 1:
        skipped = day.word[st.NEXT_REFERENCE + channel] + 1
        day.word[st.SKIPPED + channel * st.KEPT + (skipped & (st.KEPT - 1))] = skipped
    day.word[st.NEXT_REFERENCE + channel] += gap
    return day.word[st.NEXT_REFERENCE + channel] * channels + remainder


@inner
def new_match(day, i):
    """Return the next match number; remember it for a broken trade if it is of an instrument (not −1)."""
    day.word[st.MATCH] += 1 + (np.int64(next64(day.word) >> _32) & 15 == 0)
    match = day.word[st.MATCH]
    if i >= 0:
        slot = st.MATCHES + 2 * (day.word[st.MATCHES_KNOWN] & (st.KEPT - 1))
        day.word[slot], day.word[slot + 1] = match, i
        day.word[st.MATCHES_KNOWN] += 1
    return match


@inner
def new_shares(day):
    """Return the size of an order: mostly one round lot, a quarter odd lots, a thin tail to 20,000."""
    bits = next64(day.word)
    if bits & np.uint64(3) == np.uint64(0):
        return 1 + below(day.word, 99)
    lots = _LOTS[(bits >> _16) & np.uint64(15)]
    return lots * (1_000 if bits & np.uint64(0x3F00) == np.uint64(0) else 100)


@inner
def new_tick(day, i, side):
    """Return a tick for a new order: near the touch mostly, with a heavy tail, on its own side of the book."""
    row = day.instrument[i]
    bits = next64(day.word)
    scale = np.int64(row[st.SCALE])
    kind = bits & np.uint64(255)
    if bits & np.uint64(0x3FF00) == np.uint64(0) and (i & 3) == 0:
        return np.int64(0) if side == st.BUY else np.int64(_TOP)  # a stub quote
    more = bits >> _24
    near = np.int64(ctz64(more | np.uint64(1 << 20)))
    if kind < np.uint64(40):
        distance = near
    elif kind < np.uint64(160):
        distance = near * scale + below(day.word, 2 * scale + 1)
    else:
        reach = np.int64(1) << below(day.word, 9)
        distance = reach + below(day.word, reach)
    if side == st.BUY:
        touch = min(row[st.FAIR] - row[st.HALF], row[st.ASK] - 1)
        while touch - distance < row[st.LOW]:
            distance >>= 1
        return touch - distance
    touch = max(row[st.FAIR] + row[st.HALF] + 1, row[st.BID] + 1)
    while touch + distance > row[st.HIGH]:
        distance >>= 1
    return touch + distance


@inner
def drift(day, i):
    """Move an instrument's fair tick one up or down, rather towards the middle of its window."""
    row = day.instrument[i]
    fair = np.int64(row[st.FAIR])
    move = 1 if fair < CENTRE + below(day.word, 2 * _FAIR_PULL + 1) - _FAIR_PULL else -1
    low = max(CENTRE - _FAIR_SPAN, row[st.LOW] + _MARGIN)
    high = min(CENTRE + _FAIR_SPAN, row[st.HIGH] - _MARGIN)
    row[st.FAIR] = min(max(fair + move, low), high)


@inner
def victim(day, i):
    """Return a live node of an instrument, most often a young one; the instrument must have one."""
    row = day.instrument[i]
    count = np.int64(row[st.COUNT])
    bits = next64(day.word)
    kind = bits & np.uint64(255)
    if kind < np.uint64(190):
        age = np.int64(ctz64((bits >> _16) | np.uint64(1 << 20))) * 2 + np.int64((bits >> _32) & np.uint64(1))
    elif kind < np.uint64(240):
        reach = np.int64(1) << below(day.word, 12)
        age = reach + below(day.word, reach)
    else:
        age = below(day.word, count)
    if age >= count:
        age = below(day.word, count)
    return np.int64(day.live[row[st.BASE] + count - 1 - age])


@inner
def active_instrument(day):
    """Return an instrument by activity; often the last one again, as activity comes in runs."""
    last = day.word[st.LAST]
    if next64(day.word) & np.uint64(15) < np.uint64(5):
        return last
    return pick(day.word, day.table, st.ACTIVE)


@inner
def wants_more(day, i):
    """Decide whether the next order message is an add: likelier the fewer live orders there are for the hour."""
    word, row = day.word, day.instrument[i]
    sent = word[st.SENT]
    if sent < word[st.RAMP_TO]:
        course = word[st.PLATEAU] * max(0, sent - word[st.RAMP_FROM]) // (word[st.RAMP_TO] - word[st.RAMP_FROM])
    elif sent < word[st.FALL_FROM]:
        course = word[st.PLATEAU]
    else:
        above = word[st.PLATEAU] - word[st.AT_END]
        course = word[st.PLATEAU] - above * (sent - word[st.FALL_FROM]) // (word[st.TOTAL] - word[st.FALL_FROM])
    missing = ((day.table[i, st.DEPTH] * course) >> 32) - row[st.COUNT]
    chance = 32_768 + ((missing << 15) >> np.int64(row[st.SHIFT]))
    return below(day.word, 65_536) < min(max(chance, _CLAMP_LOW), _CLAMP_HIGH)


@inner
def inside(day, i, side):
    """Return the best tick of a side, or −1 if it is empty or nothing but stub quotes."""
    tick = np.int64(day.instrument[i, st.BID if side == st.BUY else st.ASK])
    return tick if 0 < tick < _TOP else np.int64(-1)
