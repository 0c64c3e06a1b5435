"""The engine under the clock: each tick, or batches of them, from a buffer at hand; and a noisy neighbour."""

import numpy as np
from numba import uint64

from photonlab.kernels.histogram import add
from photonlab.machine.atomics import load_acquire
from photonlab.machine.clock import elapsed, ticks_begin, ticks_end
from photonlab.machine.jit import kernel
from photonlab.systems.tick_to_trade.engine import NEXT, TICKS, on_tick

_0, _1, _8 = np.uint64(0), np.uint64(1), np.uint64(8)


@kernel
def drive(engine, data, out):
    """Take all ticks of a buffer, each order over the one before; return how many were applied.

    Parameters
    ----------
    engine : Engine
        Its sequences begin anew.
    data : uint8[n]
    out : uint8[m]
    """
    state, end, at = engine.state, uint64(data.size), _0
    state[NEXT], state[NEXT + _1] = _1, _1
    before = state[TICKS]
    while at < end:
        at, sent = on_tick(engine, data, at, end, out, _0)
        if sent < 0:
            break
    return state[TICKS] - before


@kernel
def spans(engine, data, out, batch, passes, histogram):
    """Take all ticks as `drive` does, again and again, and fill a histogram with the clock's ticks of each batch.

    Parameters
    ----------
    engine, data, out
        As of `drive`.
    batch : uint64
        Ticks between two looks at the clock; an incomplete batch at the end is not counted.
    passes : uint64
        How often the buffer is gone through and counted, after once without: what was done before the call, and the
        call itself, have left other code and data in the caches.
    histogram : Histogram

    Returns
    -------
    uint64
        How many ticks were applied in the passes that count.
    """
    state, end = engine.state, uint64(data.size)
    before, sent = state[TICKS], np.int64(0)
    for number in range(passes + _1):
        if number == _1:
            before = state[TICKS]
        state[NEXT], state[NEXT + _1] = _1, _1
        at = _0
        while at < end and sent >= 0:
            begin = ticks_begin()
            left = batch
            while left > _0 and at < end and sent >= 0:
                at, sent = on_tick(engine, data, at, end, out, _0)
                left -= _1
            span = elapsed(begin, ticks_end())
            if left == _0 and number != _0:
                add(histogram, span)
    return state[TICKS] - before


@kernel
def stream(words, flag):
    """Read an array through and through, a word a cache line, until the flag is up; return how often.

    Parameters
    ----------
    words : uint64[n]
    flag : uint64[1]
    """
    passes, total, block = _0, _0, uint64(1 << 15)
    size = uint64(words.size)
    while True:
        at = _0
        while at < size:
            stop = min(at + block, size)
            while at < stop:
                total += words[at]
                at += _8
            if load_acquire(flag, _0) != _0:
                return passes + (total & _0)
        words[_0] = total  # so that the sum is wanted
        passes += _1
