"""The two sides of the path as loops over a link: the engine that trades, and the exchange that quotes and checks."""

import numpy as np

from photonlab.machine import bits, clock
from photonlab.machine.jit import kernel
from photonlab.systems.spin import given_up, meet
from photonlab.systems.tick_to_trade.engine import on_tick
from photonlab.systems.tick_to_trade.parts import SENT, close, mark
from photonlab.systems.transports.link import IN_AT, OUT_AT, ROOM, receive, send

DONE, BAD, WRONG_AT, STRAY = (np.uint64(i) for i in range(4))
"""Words of a report: ticks taken, or orders checked; what the engine said of a stream that it could not read on, as a
number of 64 bits; 1 + the number of the tick whose order was not the one it called for; bytes beyond an order."""

_0, _1, _7, _8 = (np.uint64(i) for i in (0, 1, 7, 8))
_HALF = np.uint64(1 << 14)
_PAST = np.uint64(1) << np.uint64(63)
_TORN = np.int64(-65536)


@kernel
def trade(engine, link, flags, count, report):
    """Take ticks from a link and send the orders that they call for, until `count` were taken or that is given up.

    Parameters
    ----------
    engine : Engine, or StampedEngine with room for `count` ticks
    link : Link
    flags : ndarray of uint64
    count : uint64
    report : ndarray of uint64
    """
    if not meet(flags, _0):
        return
    begin, there, wanted, done, room = _0, _0, _1, _0, OUT_AT
    data = link.data
    while True:
        if done == count:
            wanted = _0  # nothing but that the last order has gone: a ring that is closed may take it along
        came = receive(link, IN_AT + there, wanted, ROOM - there, flags)
        if came < wanted or done == count:
            break
        there += came
        wanted = _1
        while begin < there and done < count:
            begin, sent = on_tick(engine, data, begin, there, data, room)
            if sent < np.int64(0):
                if sent <= _TORN:
                    report[DONE], report[BAD] = done, np.uint64(sent)
                    return
                wanted = np.uint64(-sent)
                break
            if sent != np.int64(0):
                if not send(link, room, np.uint64(sent), flags):
                    report[DONE] = done
                    return
                room ^= _HALF  # the orders before may still be on their way
            mark(engine, SENT)
            close(engine)
            done += _1
        for i in range(there - begin):
            data[IN_AT + i] = data[begin + i]
        begin, there = IN_AT, there - begin
    report[DONE] = done


@kernel
def quote(link, flags, plan, ticks, tick_size, orders, order_size, spans, sent_at, report):
    """Send ticks, await the order that each but the first calls for, compare all its bytes, and time the round.

    Parameters
    ----------
    link : Link
    flags : ndarray of uint64
    plan : ndarray of uint64, shape (2,)
        How many ticks; ticks of the clock between two of them, 0 for each as soon as the order before has come.
    ticks, orders : ndarray of uint8
        One after the other, 8 bytes longer than needed; of the first tick the order is not looked at.
    tick_size, order_size : uint64
        At least 8.
    spans, sent_at : ndarray of uint64, shape (count,)
        Receive the time until an order had come, in ticks of the clock: from when its tick was sent, or was due; and
        when the tick was sent.
    report : ndarray of uint64
    """
    if not meet(flags, _1):
        return
    count, interval = plan[0], plan[1]
    due = clock.ticks()
    for i in range(count):
        tick = i * tick_size
        for k in range(_0, tick_size + _7, _8):
            bits.store_le64(link.data, OUT_AT + k, bits.load_le64(ticks, tick + k))
        due += interval
        begin = clock.ticks_begin()
        spins = _0
        while interval != _0 and begin - due >= _PAST:
            if given_up(flags, spins):
                return
            spins += _1
            begin = clock.ticks_begin()
        sent_at[i] = begin
        if not send(link, OUT_AT, tick_size, flags):
            return
        if i == _0:
            continue
        came = receive(link, IN_AT, order_size, ROOM, flags)
        spans[i] = clock.elapsed(due if interval != _0 else begin, clock.ticks_end())
        if came < order_size:
            return
        if came != order_size or _differs(link.data, orders, i * order_size, order_size):
            report[WRONG_AT], report[STRAY] = i + _1, came - order_size
            return
        report[DONE] = i


@kernel
def burn(flags):
    """Keep a CPU busy, as a thread that polls would, until the stop flag rises; give how often it was looked at."""
    spins = _0
    while not given_up(flags, spins):
        spins += _1
    return spins


@kernel(inner=True)
def _differs(data, orders, at, size):
    """Tell whether a received order differs anywhere from the one expected."""
    differ = _0
    for k in range(_0, size - _7, _8):
        differ |= bits.load_le64(data, IN_AT + k) ^ bits.load_le64(orders, at + k)
    last = size - _8
    differ |= bits.load_le64(data, IN_AT + last) ^ bits.load_le64(orders, at + last)
    return differ != _0
