"""Arbitration: one stream of messages in order, each once, out of lines A and B that each lose, repeat and reorder.

Whichever line brings a message first wins; the other's copy is a duplicate. A packet from beyond the next number that
is expected is held back, its bytes copied, until what is missing before it comes by the other line or is sent again.
When more packets would be held than the window has room for, or its owner says so (`give_up`), the gap is given up: its
range is written down, and the stream goes on behind it. How packets are taken in:

    fresh, begin, stop = arbitrate(arbiter, line, data, at, end)
    if fresh:                                   # so many messages, in blocks at data[begin:stop]
        …
    while ready(arbiter):                       # what was held back and is next now
        fresh, begin, stop = take_held(arbiter)
        if fresh:                               # in blocks at arbiter.storage[begin:stop]
            …

An arbiter follows one session, by default that of its first packet; packets of another one change nothing but a counter
and `OTHER_HIGH`, `OTHER_LOW`. Every message of a sound packet of this session is delivered, a duplicate, held, or
`too_long` to be held.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels.moldudp64 import (
    END_OF_SESSION,
    HEADER,
    OK,
    SHORT,
    check,
    copy_range,
    messages_of,
    read_header,
    skip_blocks,
)
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_0, _1, _2, _3 = (np.uint64(i) for i in range(4))
_END, _HEADER = np.uint64(END_OF_SESSION), np.uint64(HEADER)

# Words of `state`: where the stream is
(
    STARTED, HIGH, LOW, EXPECTED, ANNOUNCED, ENDED, HELD, HEAD, WINDOW, SLOT, OTHER_HIGH, OTHER_LOW, RECORDED, GAP_ROOM,
) = (np.uint64(i) for i in range(14))  # fmt: skip
# and what was counted
COUNTERS = (
    "packets", "heartbeats", "ends", "messages", "duplicates", "held_back", "gaps", "missing", "late",
    "other_session", "too_long", "no_header", "short", "trailing",
)  # fmt: skip
"""Packets of any kind; heartbeats; end-of-session packets; messages delivered; messages that came again; packets held
back; gaps given up; messages in them; of the duplicates, messages of a gap that came after it was given up; packets of
another session; messages in packets that were ahead and longer than a slot; packets without a header, with fewer whole
blocks than their count (those are taken), with bytes behind their blocks."""
(
    PACKETS, HEARTBEATS, ENDS, MESSAGES, DUPLICATES, HELD_BACK, GAPS, MISSING, LATE, OTHER_SESSION, TOO_LONG,
    BAD_HEADER, BAD_SHORT, BAD_TRAILING,
) = (np.uint64(16 + i) for i in range(14))  # fmt: skip
_WORDS = 32

# Words of a line: the number that is next on it, packets, messages, those of them that came first by it, messages that
# it left out when it jumped ahead, messages that came behind its next number (late ones or repeated ones)
LINE_WORDS = 8
LINE_NEXT, LINE_PACKETS, LINE_MESSAGES, LINE_FRESH, LINE_SKIPPED, LINE_BEHIND = (np.uint64(i) for i in range(6))
_LINE_SHIFT = _3


class Arbiter(NamedTuple):
    """The state of one stream; see the constants of this module.

    Attributes
    ----------
    state : ndarray of uint64, shape (32,)
    held : ndarray of uint64, shape (4 * (window + 1),)
        A ring of the packets held back, in order: first number, number behind the last, offset and end in `storage`.
    slots : ndarray of uint64, shape (window + 1,)
        A stack of offsets of free slots of `storage`; as many are free as the window is not full.
    storage : ndarray of uint8
        Blocks of the packets held back.
    gaps : ndarray of uint64, shape (2 * room,)
        First number and number behind the last of each gap given up; when full, further ones are only counted.
    lines : ndarray of uint64, shape (LINE_WORDS * lines,)
    """

    state: np.ndarray
    held: np.ndarray
    slots: np.ndarray
    storage: np.ndarray
    gaps: np.ndarray
    lines: np.ndarray


def make_arbiter(*, first=0, session=None, window=256, slot=2048, lines=4, gap_room=4096) -> Arbiter:
    """Return the state of a stream before its first packet.

    Parameters
    ----------
    first : int
        Number of the first message that is wanted (1 for all of a session); 0 for that of the first packet to come.
    session : pair of uint64, optional
        As `moldudp64.session_words` gives it; by default that of the first packet.
    window : int
        Packets held back at most.
    slot : int
        Bytes of blocks that a packet held back may have.
    lines : int
        Lines by which packets come, numbered from 0; one may be for what was sent again.
    gap_room : int
        Gaps written down at most.
    """
    places = window + 1  # one to stand in before a gap is given up
    state = np.zeros(_WORDS, np.uint64)
    state[WINDOW], state[SLOT], state[GAP_ROOM] = window, slot, gap_room
    state[EXPECTED] = state[ANNOUNCED] = first
    if session is not None:
        state[STARTED], state[HIGH], state[LOW] = 1, *session
    slots = np.arange(places, dtype=np.uint64) * np.uint64(slot)
    return Arbiter(
        state, np.zeros(4 * places, np.uint64), slots, huge_array(places * slot, np.uint8),
        np.zeros(2 * gap_room, np.uint64), np.zeros(LINE_WORDS * lines, np.uint64),
    )  # fmt: skip


@kernel(inner=True)
def arbitrate(arbiter, line, data, at, end):
    """Take in a packet.

    Parameters
    ----------
    arbiter : Arbiter
    line : uint64
        By which it came.
    data : ndarray of uint8
    at, end : uint64
        Offset of the packet's header, and behind its last byte.

    Returns
    -------
    fresh : uint64
        Messages of it that are next in the stream; 0 for a packet that was held back or is of no use.
    begin, stop : uint64
        Where in `data` their blocks are.
    """
    state = arbiter.state
    state[PACKETS] += _1
    if end < at + _HEADER:
        state[BAD_HEADER] += _1
        return _0, at, at
    high, low, sequence, count = read_header(data, at)
    if state[STARTED] == _0:
        state[STARTED], state[HIGH], state[LOW] = _1, high, low
    elif high != state[HIGH] or low != state[LOW]:
        state[OTHER_SESSION] += _1
        state[OTHER_HIGH], state[OTHER_LOW] = high, low
        return _0, at, at
    if state[EXPECTED] == _0:
        state[EXPECTED] = state[ANNOUNCED] = max(sequence, _1)
    messages = messages_of(count)
    if sequence + messages < sequence:  # beyond the last number there is: damaged
        state[BAD_SHORT] += _1
        return _0, at, at
    expected, stop, following = state[EXPECTED], at + _HEADER, sequence + messages
    if messages == _0:
        state[ENDS if count == _END else HEARTBEATS] += _1
        if count == _END:
            state[ENDED] = _1
    elif following <= expected:  # as every other packet is when both lines are well: no need to look at its blocks
        _note_line(arbiter.lines, line, sequence, messages)
        _note_duplicates(arbiter, sequence, following)
        return _0, at, at
    if following > state[ANNOUNCED]:
        state[ANNOUNCED] = following
    if messages != _0 or end != stop:
        status, stop, messages = check(data, at, end)
        if status != OK:
            state[BAD_SHORT if status == SHORT else BAD_TRAILING] += _1
    _note_line(arbiter.lines, line, sequence, messages)
    old = min(messages, expected - sequence) if sequence < expected else _0
    if old != _0:
        _note_duplicates(arbiter, sequence, sequence + old)
    fresh, begin = messages - old, at + _HEADER
    if fresh == _0:
        return _0, at, at
    first_by = (line << _LINE_SHIFT) + LINE_FRESH
    if sequence > expected:
        arbiter.lines[first_by] += _hold(arbiter, sequence, messages, data, begin, stop)
        return _0, at, at
    arbiter.lines[first_by] += fresh
    state[MESSAGES] += fresh
    state[EXPECTED] = sequence + messages
    return fresh, skip_blocks(data, begin, old), stop


@kernel(inner=True)
def ready(arbiter):
    """Tell whether a packet that was held back is next in the stream now, or of no use any more."""
    state = arbiter.state
    return state[HELD] != _0 and arbiter.held[state[HEAD] << _2] <= state[EXPECTED]


@kernel(inner=True)
def take_held(arbiter):
    """Take the first packet out of the window; only where `ready` says so.

    Returns
    -------
    fresh, begin, stop : uint64
        As of `arbitrate`, but in `arbiter.storage`, where they stay until the next packet is taken in.
    """
    state, held = arbiter.state, arbiter.held
    at = state[HEAD] << _2
    sequence, following, begin, stop = held[at], held[at + _1], held[at + _2], held[at + _3]
    state[HELD] -= _1
    state[HEAD] = _0 if state[HEAD] == state[WINDOW] else state[HEAD] + _1
    arbiter.slots[state[WINDOW] - state[HELD]] = begin
    old = min(state[EXPECTED], following) - sequence
    if old != _0:
        _note_duplicates(arbiter, sequence, sequence + old)
    fresh = following - sequence - old
    if fresh != _0:
        state[MESSAGES] += fresh
        state[EXPECTED] = following
    return fresh, skip_blocks(arbiter.storage, begin, old), stop


@kernel(inner=True)
def newest(arbiter):
    """Return the number behind the highest one that any packet has told of."""
    found = max(arbiter.state[ANNOUNCED], arbiter.state[EXPECTED])
    for line in range(arbiter.lines.size >> 3):
        found = max(found, arbiter.lines[(np.uint64(line) << _LINE_SHIFT) + LINE_NEXT])
    return found


@kernel(inner=True)
def missing(arbiter):
    """Return the first range that is missing: its first number and the number behind its last; equal if none is."""
    state = arbiter.state
    expected = state[EXPECTED]
    if state[HELD] != _0:
        return expected, max(arbiter.held[state[HEAD] << _2], expected)
    return expected, max(state[ANNOUNCED], expected)


@kernel(inner=True)
def give_up(arbiter):
    """Give up the first range that is missing; afterwards what was held back behind it is ready.

    Returns
    -------
    uint64
        Messages given up, 0 if none were missing.
    """
    state = arbiter.state
    first, behind = missing(arbiter)
    if first == behind:
        return _0
    if state[RECORDED] < state[GAP_ROOM]:
        arbiter.gaps[state[RECORDED] << _1] = first
        arbiter.gaps[(state[RECORDED] << _1) + _1] = behind
        state[RECORDED] += _1
    state[GAPS] += _1
    state[MISSING] += behind - first
    state[EXPECTED] = behind
    return behind - first


@kernel(inner=True)
def complete(arbiter):
    """Tell whether the session has ended and nothing that was announced is missing."""
    state = arbiter.state
    return state[ENDED] != _0 and state[EXPECTED] >= state[ANNOUNCED]


@kernel(inner=True)
def _note_line(lines, line, sequence, messages):
    """Count what a line does by itself."""
    at = line << _LINE_SHIFT
    upcoming, following = lines[at + LINE_NEXT], sequence + messages
    lines[at + LINE_PACKETS] += _1
    lines[at + LINE_MESSAGES] += messages
    if upcoming != _0 and sequence > upcoming:
        lines[at + LINE_SKIPPED] += sequence - upcoming
    if sequence < upcoming:
        lines[at + LINE_BEHIND] += min(following, upcoming) - sequence
    if following > upcoming:
        lines[at + LINE_NEXT] = following


@kernel(inner=True)
def _note_duplicates(arbiter, first, behind):
    """Count messages that are not wanted any more, and which of them would have filled a gap that was given up."""
    state = arbiter.state
    state[DUPLICATES] += behind - first
    gap = state[RECORDED]
    while gap != _0:
        gap -= _1
        gap_begin, gap_end = arbiter.gaps[gap << _1], arbiter.gaps[(gap << _1) + _1]
        if gap_end <= first:
            break
        if gap_begin < behind:
            state[LATE] += min(behind, gap_end) - max(first, gap_begin)


@kernel(inner=True)
def _hold(arbiter, sequence, messages, data, begin, stop):
    """Hold back the blocks of a packet that is ahead; return how many messages are new by that."""
    state, held = arbiter.state, arbiter.held
    following = sequence + messages
    if stop - begin > state[SLOT]:
        state[TOO_LONG] += messages
        return _0
    places = state[WINDOW] + _1
    before = state[HELD]  # how many held packets stand before it; mostly all of them
    place = state[HEAD] + before
    while before != _0:
        previous = (place - _1 if place <= places else place - _1 - places) << _2
        if held[previous] <= sequence:
            if held[previous + _1] >= following:
                state[DUPLICATES] += messages
                return _0
            break
        place -= _1
        before -= _1
    moved = state[HELD]
    while moved > before:  # those behind it move on by one place
        source = state[HEAD] + moved - _1
        target = source + _1
        source = (source if source < places else source - places) << _2
        target = (target if target < places else target - places) << _2
        for word in range(4):
            held[target + np.uint64(word)] = held[source + np.uint64(word)]
        moved -= _1
    slot = arbiter.slots[state[WINDOW] - state[HELD]]
    place = (place if place < places else place - places) << _2
    held[place], held[place + _1], held[place + _2] = sequence, following, slot
    held[place + _3] = copy_range(data, begin, stop, arbiter.storage, slot)
    state[HELD] += _1
    state[HELD_BACK] += _1
    if state[HELD] > state[WINDOW]:
        give_up(arbiter)
    return messages


def restart(arbiter, session=None, first=0) -> None:
    """Make an arbiter follow another session, by default that of the next packet; what was counted stays.

    What is still held back is dropped: give up its gaps and take it out before.
    """
    state = arbiter.state
    free = int(state[WINDOW]) + 1
    arbiter.slots[:] = np.arange(free, dtype=np.uint64) * state[SLOT]
    state[:WINDOW] = 0
    state[RECORDED] = 0
    arbiter.lines.reshape(-1, LINE_WORDS)[:, int(LINE_NEXT)] = 0
    state[EXPECTED] = state[ANNOUNCED] = first
    if session is not None:
        state[STARTED], state[HIGH], state[LOW] = 1, *session


def counters(arbiter) -> dict[str, int]:
    """Return what was counted, by the names in `COUNTERS`."""
    return {name: int(arbiter.state[16 + i]) for i, name in enumerate(COUNTERS)}


def gaps(arbiter) -> list[tuple[int, int]]:
    """Return the gaps given up: first number and number of messages of each."""
    known = arbiter.gaps[: 2 * int(arbiter.state[RECORDED])].reshape(-1, 2)
    return [(int(first), int(behind - first)) for first, behind in known]
