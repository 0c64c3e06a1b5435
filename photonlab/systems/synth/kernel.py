"""The kernel that writes a synthetic day, a message a step; it stops when its buffer is full, and goes on later."""

import numpy as np

from photonlab.machine.bits import ctz64
from photonlab.machine.jit import kernel
from photonlab.systems.synth import emit, market, orders, trading
from photonlab.systems.synth import quotas as qt
from photonlab.systems.synth import state as st
from photonlab.systems.synth.notices import notice
from photonlab.systems.synth.rng import below, inner, next64
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
        Bytes written, whole messages with their two-byte lengths; the day is over when ``day.word[DONE]`` is set.
    """
    at = np.uint64(0)
    end = np.uint64(buffer.size - ROOM)
    while day.word[st.DONE] == 0 and at <= end:
        at = _step(day, buffer, at)
    return np.int64(at)


@inner
def _step(day, buffer, at):
    """Write one message, or move on to the next phase."""
    word = day.word
    if word[st.CROSS_LEFT] >= 0:
        return trading.cross_message(day, buffer, at)
    phase, event = word[st.PHASE], word[st.EVENT]
    due = event < day.event.shape[0] and day.event[event, 0] == phase
    if due and (day.event[event, 1] <= word[st.DRAWN] or word[st.LEFT] == 0):
        word[st.EVENT] += 1
        _pass_time(day)
        kind, i, argument = day.event[event, 2], day.event[event, 3], day.event[event, 4]
        if kind == CROSS:
            trading.begin_cross(day, i, argument)
            return at
        word[st.SENT] += 1
        return notice(day, buffer, at, kind, i, argument)
    if word[st.LEFT] == 0:
        phase += 1
        if phase == day.phase.shape[0]:
            word[st.DONE] = 1
            return at
        word[st.PHASE], word[st.DRAWN], word[st.FRESH] = phase, 0, 1
        word[st.LEFT] = day.phase[phase, st.QUOTA :].sum()
        word[st.TO_GO] = word[st.LEFT] + day.phase[phase, 2]
        word[st.TIME] = max(word[st.TIME], day.phase[phase, 0])
        return at
    drawn = below(day.word, word[st.LEFT])
    class_ = 0
    while drawn >= day.phase[phase, st.QUOTA + class_]:
        drawn -= day.phase[phase, st.QUOTA + class_]
        class_ += 1
    day.phase[phase, st.QUOTA + class_] -= 1
    word[st.LEFT] -= 1
    word[st.DRAWN] += 1
    word[st.SENT] += 1
    _pass_time(day)
    return _send(day, buffer, at, class_)


@inner
def _pass_time(day):
    """Move the clock: seven gaps of eight are a burst's, the eighth is long, and all messages fit into the phase."""
    word = day.word
    bits = next64(day.word)
    left = max(0, day.phase[word[st.PHASE], 1] - word[st.TIME])
    mean = left // (word[st.TO_GO] + 1)
    word[st.TO_GO] = max(0, word[st.TO_GO] - 1)
    if word[st.FRESH]:
        word[st.FRESH] = 0
        gap = min(mean, 1 + np.int64(bits >> _32) % 100_000)
    elif bits & np.uint64(7) != np.uint64(0):
        base = np.int64(128) << np.int64((bits >> _8) & np.uint64(3))
        high = bits >> _32
        gap = min(base + np.int64(high & np.uint64(1023)), mean // 2 + np.int64(high % np.uint64(mean + 1)))
    else:
        twos = np.int64(ctz64((bits >> _8) | np.uint64(1 << 9)))
        gap = min((mean << twos) + np.int64((bits >> _32) % np.uint64(2 * mean + 1)), left // 4)
    word[st.TIME] += gap


@inner
def _send(day, buffer, at, class_):
    """Write a random message of a class; where the market cannot have one now, it changes places with a later add."""
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
        flag = _FLAGS[below(day.word, 4)]
        end = emit.retail(day, buffer, at, market.active_instrument(day), flag)
    elif class_ == qt.BROKEN:
        end = trading.broken(day, buffer, at)
    if end != at:
        return end
    if class_ != qt.ADD_DELETE:
        for later in range(day.word[st.PHASE] + 1, day.phase.shape[0]):
            if day.phase[later, st.QUOTA + qt.ADD_DELETE] > 0:
                day.phase[later, st.QUOTA + qt.ADD_DELETE] -= 1
                day.phase[later, st.QUOTA + class_] += 1
                break
    return orders.add_or_delete(day, buffer, at)
