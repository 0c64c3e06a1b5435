"""The kernel that writes a synthetic day, one message a step; it stops at any message when its buffer is full, and goes on later."""

import numpy as np

from photonlab.machine.bits import ctz64
from photonlab.machine.jit import kernel
from photonlab.systems.synth import emit, market, orders, trading
from photonlab.systems.synth import quotas as qt
from photonlab.systems.synth import state as st
from photonlab.systems.synth.notices import notice
from photonlab.systems.synth.rng import below, next64
from photonlab.systems.synth.script import CROSS

ROOM = 64
"""Bytes that a step may need: the longest message with its prefix is shorter."""

_8, _32 = np.uint64(8), np.uint64(32)
_FLAGS = np.array([ord(flag) for flag in "BSAN"])


@kernel
def fill(day, buffer):
    """Write the next messages of a day.

    Parameters
    ----------
    day : Day
        Moves on.
    buffer : ndarray of uint8, at least `ROOM` bytes

    Returns
    -------
    int64
        Bytes written, whole messages with their two-byte lengths; the day is over when ``day.scalar[DONE]`` is set.
    """
    at = np.uint64(0)
    end = np.uint64(buffer.size - ROOM)
    while day.scalar[st.DONE] == 0 and at <= end:
        at = _step(day, buffer, at)
    return np.int64(at)


@kernel
def _step(day, buffer, at):
    """Write one message, or move on to the next phase."""
    scalar = day.scalar
    if scalar[st.CROSS_LEFT] >= 0:
        return trading.cross_message(day, buffer, at)
    phase, event = scalar[st.PHASE], scalar[st.EVENT]
    due = event < day.event.shape[0] and day.event[event, 0] == phase
    if due and (day.event[event, 1] <= scalar[st.DRAWN] or scalar[st.LEFT] == 0):
        scalar[st.EVENT] += 1
        _pass_time(day)
        kind, i, argument = day.event[event, 2], day.event[event, 3], day.event[event, 4]
        if kind == CROSS:
            trading.begin_cross(day, i, argument)
            return at
        scalar[st.SENT] += 1
        return notice(day, buffer, at, kind, i, argument)
    if scalar[st.LEFT] == 0:
        phase += 1
        if phase == day.phase.shape[0]:
            scalar[st.DONE] = 1
            return at
        scalar[st.PHASE], scalar[st.DRAWN], scalar[st.FRESH] = phase, 0, 1
        scalar[st.LEFT] = day.quota[phase].sum()
        scalar[st.TO_GO] = scalar[st.LEFT] + day.phase[phase, 2]
        scalar[st.TIME] = max(scalar[st.TIME], day.phase[phase, 0])
        return at
    drawn = below(day.random, scalar[st.LEFT])
    class_ = 0
    while drawn >= day.quota[phase, class_]:
        drawn -= day.quota[phase, class_]
        class_ += 1
    day.quota[phase, class_] -= 1
    scalar[st.LEFT] -= 1
    scalar[st.DRAWN] += 1
    scalar[st.SENT] += 1
    _pass_time(day)
    return _send(day, buffer, at, class_)


@kernel
def _pass_time(day):
    """Move the clock: seven gaps of eight are a burst's, the eighth is long, and the phase's messages fit into the phase."""
    scalar = day.scalar
    bits = next64(day.random)
    left = max(0, day.phase[scalar[st.PHASE], 1] - scalar[st.TIME])
    mean = left // (scalar[st.TO_GO] + 1)
    scalar[st.TO_GO] = max(0, scalar[st.TO_GO] - 1)
    if scalar[st.FRESH]:
        scalar[st.FRESH] = 0
        gap = min(mean, 1 + np.int64(bits >> _32) % 100_000)
    elif bits & np.uint64(7) != np.uint64(0):
        base = np.int64(128) << np.int64((bits >> _8) & np.uint64(3))
        gap = min(base + np.int64((bits >> _32) & np.uint64(1023)), mean // 2 + np.int64((bits >> _32) % np.uint64(mean + 1)))
    else:
        twos = np.int64(ctz64((bits >> _8) | np.uint64(1 << 9)))
        gap = min((mean << twos) + np.int64((bits >> _32) % np.uint64(2 * mean + 1)), left // 4)
    scalar[st.TIME] += gap


@kernel
def _send(day, buffer, at, class_):
    """Write a random message of a class; where the market cannot have one now, an add or delete stands in."""
    end = at
    if class_ == qt.REPLACE:
        end = orders.replace(day, buffer, at)
    elif class_ == qt.CANCEL:
        end = orders.cancel(day, buffer, at)
    elif class_ == qt.EXECUTE or class_ == qt.EXECUTE_PRICE:
        end = trading.execute(day, buffer, at, class_ == qt.EXECUTE_PRICE)
    elif class_ == qt.TRADE:
        end = trading.trade(day, buffer, at)
    elif class_ == qt.IMBALANCE:
        end = trading.imbalance(day, buffer, at)
    elif class_ == qt.RETAIL:
        flag = _FLAGS[below(day.random, 4)]
        end = emit.retail(day, buffer, at, market.active_instrument(day), flag)
    elif class_ == qt.BROKEN:
        end = trading.broken(day, buffer, at)
    return orders.add_or_delete(day, buffer, at) if end == at else end
