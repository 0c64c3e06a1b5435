"""The consumer's loop: events out of the ring, latencies taken, and the replay's own kernel keeps the books."""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import histogram
from photonlab.kernels import ring as rings
from photonlab.kernels.histogram import Histogram
from photonlab.kernels.moldudp64 import PREFIX
from photonlab.machine import clock
from photonlab.machine.atomics import load_acquire, pause
from photonlab.machine.bits import load_be48, load_le16, load_le64, store_be16, store_le16, store_le64
from photonlab.machine.jit import kernel
from photonlab.systems import batch as batches
from photonlab.systems import message_loop
from photonlab.systems.feed import events, receiving
from photonlab.systems.feed import schedule as schedules

_0, _1, _3 = np.uint64(0), np.uint64(1), np.uint64(3)
_PREFIX, _STAMP, _48 = np.uint64(PREFIX), np.uint64(PREFIX + 5), np.uint64(48)
STOP = _0

# Words of `state`
BATCH, NEXT, OUTCOME, BOUNDED, YIELDS = (np.uint64(i) for i in range(5))
COUNTERS = ("messages", "batches", "gaps", "never_came", "no_room", "no_message", "out_of_step", "incomplete_from")
"""Messages applied; drains that found some; gaps; messages that never came, that the ring had no room for, that are
none of ITCH 5.0; events whose number did not follow (never: it would be a fault of the ring); first number missing."""
(MESSAGES, BATCHES, GAPS, NEVER_CAME, NO_ROOM, NO_MESSAGE, OUT_OF_STEP, INCOMPLETE) = (
    np.uint64(16 + i) for i in range(8)
)  # fmt: skip


class Consuming(NamedTuple):
    """What the consumer's loop works with.

    Attributes
    ----------
    state, control : ndarray of uint64
    gaps : ndarray of uint64, shape (3 * room,)
        First number, number behind the last, and why, of each gap.
    scratch : ndarray of uint8
        A batch's messages, framed as the replay takes them.
    parse, total, since_due : Histogram
        In ticks: from the look at a packet to the event's publication; from receipt to the pop; from when it was due.
    places, place_sums : ndarray of uint64, shape (256,)
        Messages by their packet's place in the call's batch, and the sum of their `total` ticks.
    """

    state: np.ndarray
    control: np.ndarray
    gaps: np.ndarray
    scratch: np.ndarray
    parse: Histogram
    total: Histogram
    since_due: Histogram
    places: np.ndarray
    place_sums: np.ndarray


@kernel
def consume_until(consuming, ring, feed, schedule, receiver):
    """Consume until told to stop, until the receiver has finished and the ring is empty, or until the books are full.

    Parameters
    ----------
    consuming : Consuming
    ring : Ring
    feed : message_loop.Feed
        The books.
    schedule : ndarray of uint64
    receiver : ndarray of uint64
        The receiver's `control`.
    """
    state, scratch = consuming.state, consuming.scratch
    while load_acquire(consuming.control, STOP) == _0:
        count = rings.waiting(ring, state[BATCH])
        if count == _0:
            if load_acquire(receiver, receiving.FINISHED) != _0 and rings.waiting(ring, _1) == _0:
                return
            if state[YIELDS] != _0:
                receiving.give_way()
            else:
                pause()
            continue
        first, end = rings.tail(ring), _0
        for i in range(count):
            slot = rings.slot(ring, first + np.uint64(i)) << _3
            received, taken, place, length, low = events.read_head(ring.words, slot)
            if length == _0:
                _note_gap(consuming, ring, slot)
                continue
            state[OUT_OF_STEP] += np.uint64(low != state[NEXT] & np.uint64(255))
            _copy(scratch, end, ring.words, slot, length)
            now = clock.ticks_end()
            span = clock.elapsed(received, now)
            histogram.add(consuming.parse, taken)
            histogram.add(consuming.total, span)
            consuming.places[place] += _1
            consuming.place_sums[place] += span
            due = schedules.due(schedule, state[NEXT], load_be48(scratch, end + _STAMP))
            if due != schedules.NEVER:
                histogram.add(consuming.since_due, clock.elapsed(due, now))
            end += _PREFIX + length
            state[NEXT] += _1
            state[MESSAGES] += _1
        rings.release(ring, count)
        state[BATCHES] += _1
        if end != _0:
            _, outcome = message_loop.replay(feed, scratch, _0, end, count > np.uint64(8))
            if outcome != batches.MORE:
                state[OUTCOME] = outcome
                return


@kernel(inner=True)
def _copy(scratch, end, words, slot, length):
    """Copy a message out of its slot, behind its length; up to 50 bytes are written, whatever the length."""
    store_be16(scratch, end, length)
    to, at = end + _PREFIX, slot + events.MESSAGE
    for i in range(6):
        step = np.uint64(i * 8)
        store_le64(scratch, to + step, load_le64(words, at + step))
    store_le16(scratch, to + _48, load_le16(words, at + _48))


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _note_gap(consuming, ring, slot):
    """Write down what is missing: from now on no book can be known to be complete."""
    state = consuming.state
    first, behind, why = events.read_gap(ring.words, slot)
    missing = behind - first
    state[NEXT] = behind
    if why == events.NO_MESSAGE:
        state[NO_MESSAGE] += missing
        return
    at = state[GAPS] * _3
    if at + _3 <= np.uint64(consuming.gaps.size):
        consuming.gaps[at], consuming.gaps[at + _1], consuming.gaps[at + np.uint64(2)] = first, behind, why
    state[GAPS] += _1
    state[NO_ROOM if why == events.NO_ROOM else NEVER_CAME] += missing
    if state[INCOMPLETE] == _0:
        state[INCOMPLETE] = first
