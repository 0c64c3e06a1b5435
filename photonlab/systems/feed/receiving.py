"""The receiver's loop: packets off the sockets, lines arbitrated, gaps asked for, events into the ring."""

from typing import NamedTuple

import numpy as np
from numba.core import types

from photonlab.kernels import ring as rings
from photonlab.kernels.arbitration import (
    EXPECTED,
    Arbiter,
    arbitrate,
    complete,
    give_up,
    missing,
    newest,
    ready,
    take_held,
)
from photonlab.kernels.itch import LENGTH_BY_TYPE
from photonlab.kernels.moldudp64 import HEADER, PREFIX, write_header
from photonlab.machine import clock, udp
from photonlab.machine.atomics import load_acquire, pause, store_release
from photonlab.machine.bits import load_be16, load_u8
from photonlab.machine.jit import kernel
from photonlab.machine.udp import Box
from photonlab.systems.feed import events

SPIN, POLL, BLOCK, YIELD = (np.uint64(i) for i in range(4))
"""How it waits: not at all; in poll; in the receiving call itself (one line only); letting others have the CPU."""

_yield = types.ExternalFunction("sched_yield", types.int32())

_0, _1, _3 = np.uint64(0), np.uint64(1), np.uint64(3)
_PREFIX, _HEADER = np.uint64(PREFIX), np.uint64(HEADER)
_WAIT_MS = np.uint64(20)
_MOST_ASKED = np.uint64(1024)

STOP, FINISHED = _0, np.uint64(8)
"""Words of `control`: whoever sets the first ends the loop; the loop sets the second at its end."""

# Words of `state`
(
    MODE, LINES, BATCH, WHY, SERVER, PATIENCE, AGAIN, ASKED_FIRST, ASKED_AT, GAP_SINCE, GAP_FIRST, ASKED_BEHIND,
    LAST_PACKET, PENDING_FIRST, POLL_ADDRESS, NEXT,
) = (np.uint64(i) for i in range(16))  # fmt: skip
COUNTERS = ("calls", "empty_calls", "packets", "bytes", "cut", "events", "unknown", "ring_drops", "requests", "gaps")
"""Receiving calls; those that found nothing; packets, and bytes in them; packets longer than their room; events
published; messages of unknown type or length (passed on, if they fit a slot); messages that the ring had no room for;
requests sent; gaps passed on."""
(CALLS, EMPTY, PACKETS, BYTES, CUT, EVENTS, UNKNOWN, RING_DROPS, REQUESTS, GAP_EVENTS) = (
    np.uint64(16 + i) for i in range(10)
)  # fmt: skip
LOST = np.uint64(32)
"""First of four words: packets that each line's socket has lost, as the kernel counts them."""

FDS = np.uint64(40)
"""First of four words: descriptors; the server's comes after those of the lines."""

HOLD = np.uint64(48)
"""Ticks from one call that brought packets to the next at least: a reader made slow on purpose."""

GAP_KNOWN = np.uint64(51)
"""The number behind all that was known of when the patience with the first gap began."""

WHOLE, SPANS = np.uint64(49), np.uint64(50)
"""Whether a reading of the clock stands around all packets of a call, none around each; calls that were so noted."""

STATE_WORDS = 64


class Receiving(NamedTuple):
    """What the receiver's loop works with.

    Attributes
    ----------
    state, control : ndarray of uint64
    polled : ndarray of uint64
        Structs pollfd.
    batches : ndarray of uint64, shape (1025,)
        Calls by the number of packets that they brought.
    spans : ndarray of uint64, shape (2 * room,)
        With `WHOLE`: messages of a call, and ticks from the look at its first packet to the last publication.
    stamped : ndarray of uint64, shape (2,)
        The system's stamp of the last packet that had one, in ns, and how many had.
    box, asking : Box
    arbiter : Arbiter
    """

    state: np.ndarray
    control: np.ndarray
    polled: np.ndarray
    batches: np.ndarray
    spans: np.ndarray
    stamped: np.ndarray
    box: Box
    asking: Box
    arbiter: Arbiter


@kernel(inner=True)
def give_way():
    """Let another thread that is ready have this CPU; come back at once if there is none."""
    _yield()


@kernel
def receive_until(receiving, ring):
    """Receive until told to stop, the session's end, or an error (state[WHY])."""
    state, box, arbiter = receiving.state, receiving.box, receiving.arbiter
    sources = state[LINES] + state[SERVER]
    how = udp.FIRST if state[MODE] == BLOCK else udp.NOW
    while load_acquire(receiving.control, STOP) == _0:
        found = _0
        for source in range(sources):
            line = np.uint64(source)
            count, why = udp.receive(box, state[FDS + line], state[BATCH], how)
            now = clock.ticks_end()
            state[CALLS] += _1
            receiving.batches[count] += _1
            if why != _0:
                state[WHY] = why
                store_release(receiving.control, FINISHED, _1)
                return
            if count == _0:
                state[EMPTY] += _1
                continue
            found += count
            state[LAST_PACKET] = now
            before, begin = state[EVENTS], clock.ticks_begin()
            _take(receiving, ring, line, count, now)
            if state[WHOLE] != _0:
                _note_span(receiving, state[EVENTS] - before, clock.elapsed(begin, clock.ticks_end()))
            while clock.elapsed(now, clock.ticks()) < state[HOLD]:
                pause()
        if complete(arbiter) and _up_to(receiving, ring, arbiter.state[EXPECTED]):
            break
        first, behind = missing(arbiter)
        if first != behind:
            _mend(receiving, ring, first, behind)
        if found == _0:
            if state[MODE] == POLL:
                udp.wait(receiving.polled, state[POLL_ADDRESS], _WAIT_MS if first == behind else _1)
            elif state[MODE] == SPIN:
                pause()
            elif state[MODE] == YIELD:
                give_way()
    store_release(receiving.control, FINISHED, _1)


@kernel(inner=True)
def _take(receiving, ring, line, count, now):
    """Take in the packets of one call.

    What happens with each packet is inlined here: to hand so many arrays to a function costs more than all the rest.
    """
    state, box, arbiter = receiving.state, receiving.box, receiving.arbiter
    for i in range(count):
        number = np.uint64(i)
        begin = clock.ticks_begin() if state[WHOLE] == _0 else now
        size = udp.size(box, number)
        state[PACKETS] += _1
        state[BYTES] += size
        if box.state[udp.CONTROL_BYTES] != _0:
            stamp, lost = udp.notes(box, number)
            if lost != _0:
                state[LOST + line] = lost
            if stamp != _0:
                receiving.stamped[0] = stamp
                receiving.stamped[1] += _1
        if udp.cut(box, number):
            state[CUT] += _1
            continue
        at = udp.begin(box, number)
        fresh, start, _ = arbitrate(arbiter, line, box.data, at, at + size)
        if fresh != _0:
            _publish(receiving, ring, box.data, start, fresh, arbiter.state[EXPECTED] - fresh, now, begin, number)
        if ready(arbiter):
            _drain(receiving, ring, now, number)


@kernel(inner=True)
def _note_span(receiving, messages, taken):
    """Write down what a whole call's packets took, for a clock that cannot resolve one."""
    at = receiving.state[SPANS] * np.uint64(2)
    if at + _1 < np.uint64(receiving.spans.size):
        receiving.spans[at], receiving.spans[at + _1] = messages, taken
        receiving.state[SPANS] += _1


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _drain(receiving, ring, now, number):
    """Publish what was held back and is next now."""
    arbiter = receiving.arbiter
    while ready(arbiter):
        begin = clock.ticks_begin() if receiving.state[WHOLE] == _0 else now
        fresh, start, _ = take_held(arbiter)
        if fresh != _0:
            _publish(
                receiving, ring, arbiter.storage, start, fresh, arbiter.state[EXPECTED] - fresh, now, begin, number
            )


@kernel(inner=True)
def _publish(receiving, ring, data, at, count, sequence, received, begin, place):
    """Write the messages of a packet into the ring and let the consumer see them, each as soon as it stands there.

    A full ring never holds the receiver up: what it has no room for is counted, and reported by an event as soon as
    there is room again.
    """
    state = receiving.state
    if state[NEXT] == _0:
        state[NEXT] = sequence
    for _ in range(count):
        length = load_be16(data, at)
        at += _PREFIX
        fits = length != _0 and length <= events.LONGEST
        state[UNKNOWN] += np.uint64(not fits or np.uint64(LENGTH_BY_TYPE[load_u8(data, at)]) != length)
        if not _up_to(receiving, ring, sequence) or rings.room(ring, _1) == _0:
            state[PENDING_FIRST] = state[NEXT]
            state[RING_DROPS] += _1
        else:
            head = rings.head(ring)
            slot = rings.slot(ring, head) << _3
            if fits:
                events.write_message(ring.words, slot, data, at, length)
                now = clock.ticks_end() if state[WHOLE] == _0 else begin
                events.write_head(ring.words, slot, received, clock.elapsed(begin, now), place, length, sequence)
                begin = now
            else:  # it changes no book, but its number is taken
                events.write_gap(ring.words, slot, received, sequence, sequence + _1, events.NO_MESSAGE)
            rings.publish_to(ring, head + _1)
            state[NEXT] = sequence + _1
            state[EVENTS] += _1
        at += length
        sequence += _1


@kernel(inner=True)
def _up_to(receiving, ring, sequence):
    """Let the consumer know of all that is missing before a number; return False if the ring has no room for that."""
    if receiving.state[NEXT] == sequence or receiving.state[NEXT] == _0:
        return True
    return _gap_event(receiving, ring, sequence)


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _gap_event(receiving, ring, behind):
    state = receiving.state
    if rings.room(ring, _1) == _0:
        return False
    head, why = rings.head(ring), events.NEVER_CAME if state[PENDING_FIRST] == _0 else events.NO_ROOM
    events.write_gap(ring.words, rings.slot(ring, head) << _3, clock.ticks(), state[NEXT], behind, why)
    rings.publish_to(ring, head + _1)
    state[GAP_EVENTS] += _1
    state[NEXT], state[PENDING_FIRST] = behind, _0
    return True


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _mend(receiving, ring, first, behind):
    """Ask the server for what is missing, again after a while; give it up when patience has ended."""
    state, arbiter = receiving.state, receiving.arbiter
    now = clock.ticks()
    if state[GAP_FIRST] != first:
        state[GAP_FIRST] = first
        if first >= state[GAP_KNOWN]:  # else it was known when the one before it was: they wait together
            state[GAP_SINCE], state[GAP_KNOWN] = now, newest(arbiter)
    asked = state[SERVER] == _0 or (state[ASKED_FIRST] == first and now - state[ASKED_AT] >= state[AGAIN])
    if asked and now - state[GAP_SINCE] > state[PATIENCE] and now > state[GAP_SINCE]:
        give_up(arbiter)  # `_publish` tells the consumer before the next message
        _drain(receiving, ring, now, _0)
        return
    if state[SERVER] == _0 or (state[ASKED_FIRST] == first and now - state[ASKED_AT] < state[AGAIN]):
        return
    if first >= state[ASKED_BEHIND] and now - state[GAP_SINCE] < state[AGAIN] >> _3 and state[LINES] > _1:
        return  # the other line may bring it yet
    write_header(receiving.asking.data, _0, arbiter.state[1], arbiter.state[2], first, min(behind - first, _MOST_ASKED))
    udp.put(receiving.asking, _0, _0, _HEADER)
    udp.send(receiving.asking, state[FDS + state[LINES]], _0, _1, _0)
    state[ASKED_FIRST], state[ASKED_BEHIND], state[ASKED_AT] = first, behind, now
    state[REQUESTS] += _1
