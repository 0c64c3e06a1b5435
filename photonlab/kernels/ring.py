"""The ring: a queue of fixed-size slots from one producer to one consumer, without a lock and without a copy.

All of it lies in one array of 64-bit words: a header that says what it is, the producer's line, the consumer's line,
and the slots. So the same kernels serve two threads and, over shared memory, two processes.

    HEADER   magic, slots, words of a slot, words between head and tail
    HEAD     index of the next message to be written; HEAD + SEEN: the tail as the producer last saw it
    TAIL     index of the next message to be read, `apart` words after HEAD; TAIL + SEEN: the head as last seen
    base     the slots

Indices count messages, run through all 64 bits and wrap around; the free space is an unsigned difference, so no slot
is sacrificed and the wrap-around needs no care. Each side looks at the other's index only when the copy that it keeps
on its own line shows too little: as long as there is room and something to read, no cache line but those of the slots
passes between the cores.

The producer's work is `room`, write into the slots in place, `publish`; the consumer's is `waiting`, read, `release`.

    free = ring.room(r, np.uint64(16))                  # at most 16
    for i in range(free):
        place = ring.slot(r, ring.head(r) + i)          # of the first of r.slot_words words in r.words
        plain_store(r.words, place, ...)
    ring.publish(r, free)                               # all of them at once

Order: `publish` and `release` store their index with release, `room` and `waiting` load the other's with acquire. A
message is written before it is seen, and read before its slot is written again; nothing else is ordered.
"""

from typing import NamedTuple

import numpy as np

from photonlab.errors import UserError
from photonlab.machine.atomics import load_acquire, plain_load, plain_store, store_release
from photonlab.machine.jit import kernel
from photonlab.machine.lines import copy_line
from photonlab.machine.memory import huge_array

_0, _1 = np.uint64(0), np.uint64(1)

MAGIC = 0x70686F746F6E7231  # "photonr1"
HEADER_WORDS = 16
HEAD = np.uint64(HEADER_WORDS)
SEEN = np.uint64(2)
"""Words from an index to what its owner last saw of the other's."""

GRANULE_WORDS = 16
"""128 bytes: what Apple's processors move between cores, and the pair of lines that x86 prefetches together."""

_EIGHT = np.uint64(8)


class Ring(NamedTuple):
    """One ring; both sides hold the same.

    Attributes
    ----------
    words : ndarray of uint64
        Header, lines of the two sides, slots.
    mask, slot_words, apart, base : uint64
        Slots - 1; words of a slot; words from head to tail; word of the first slot.
    """

    words: np.ndarray
    mask: np.uint64
    slot_words: np.uint64
    apart: np.uint64
    base: np.uint64


def size_in_words(slots, words=8, apart=GRANULE_WORDS) -> int:
    """Return how many 64-bit words a ring takes."""
    return _base(apart) + slots * words


def make_ring(slots, words=8, *, apart=GRANULE_WORDS, start=0, buffer=None) -> Ring:
    """Return an empty ring.

    Parameters
    ----------
    slots : int
        A power of two.
    words : int
        64-bit words of a slot: 8 are a cache line of 64 bytes.
    apart : int
        Words between head and tail: 1 (they share a line), or 4 and more.
    start : int
        Index of the first message.
    buffer : writable buffer, optional
        Memory to put it into, such as that of a shared memory; what it holds is overwritten. Aligned to 128 bytes.
        By default memory of its own, touched now.

    Raises
    ------
    UserError
        A size that cannot be, or a buffer that is too small or badly aligned.
    """
    if slots < 1 or slots & (slots - 1) or slots > 1 << 32:
        raise UserError(f"a ring has 1, 2, 4, … 2^32 slots, not {slots}")
    if not 1 <= words <= 1 << 16:
        raise UserError(f"a slot of a ring has 1 to 65,536 words, not {words}")
    if apart != 1 and not 4 <= apart <= 1 << 12:
        raise UserError(f"head and tail lie 1, or 4 to 4,096, words apart, not {apart}")
    size = size_in_words(slots, words, apart)
    array = huge_array(size, np.uint64, populate=True) if buffer is None else _words_of(buffer)
    if array.size < size:
        raise UserError(
            f"the buffer has {array.size * 8:,} bytes; {slots} slots of {words * 8} bytes need {size * 8:,}"
        )
    array[1:size] = 0
    array[1:4] = slots, words, apart
    head, tail = int(HEAD), int(HEAD) + apart
    array[[head, tail, head + int(SEEN), tail + int(SEEN)]] = np.uint64(start % (1 << 64))
    array[0] = MAGIC
    return _ring(array[:size], slots, words, apart)


def attach(buffer) -> Ring:
    """Return the ring that somebody else made in a buffer.

    Raises
    ------
    UserError
        There is none, or it is larger than the buffer.
    """
    array = _words_of(buffer)
    if array.size < HEADER_WORDS or int(array[0]) != MAGIC:
        raise UserError("the buffer holds no ring: its first 8 bytes are not the ring's mark")
    slots, words, apart = (int(array[at]) for at in (1, 2, 3))
    sound = 1 <= slots <= 1 << 32 and not slots & (slots - 1) and 1 <= words <= 1 << 16 and 1 <= apart <= 1 << 12
    size = size_in_words(slots, words, apart) if sound else 0
    if not sound or array.size < size:
        raise UserError(
            f"the buffer's ring of {slots} slots of {words} words does not fit its {array.size * 8:,} bytes"
        )
    return _ring(array[:size], slots, words, apart)


@kernel(forceinline=True)
def room(ring, wanted):
    """Return how many messages may be written, at most `wanted`; the producer's.

    The consumer's index is loaded only if the copy of it shows less room than is wanted.
    """
    words = ring.words
    capacity, head = ring.mask + _1, words[HEAD]
    free = capacity - (head - words[HEAD + SEEN])
    if free < wanted:
        tail = load_acquire(words, HEAD + ring.apart)
        words[HEAD + SEEN] = tail
        free = capacity - (head - tail)
    return min(free, wanted)


@kernel(forceinline=True)
def publish(ring, count):
    """Let the consumer see the next `count` messages, which have been written; the producer's."""
    publish_to(ring, ring.words[HEAD] + count)


@kernel(inner=True)
def publish_to(ring, index):
    """Let the consumer see all messages before an index: `publish` for who has the producer's index at hand."""
    store_release(ring.words, HEAD, index)


@kernel(forceinline=True)
def waiting(ring, wanted):
    """Return how many messages may be read, at most `wanted`; the consumer's."""
    words = ring.words
    at = HEAD + ring.apart
    tail = words[at]
    there = words[at + SEEN] - tail
    if there < wanted:
        head = load_acquire(words, HEAD)
        words[at + SEEN] = head
        there = head - tail
    return min(there, wanted)


@kernel(forceinline=True)
def release(ring, count):
    """Give the slots of the next `count` messages, which have been read, back to the producer; the consumer's."""
    release_to(ring, ring.words[HEAD + ring.apart] + count)


@kernel(inner=True)
def release_to(ring, index):
    """Give back the slots of all messages before an index: `release` for who has the consumer's index at hand."""
    store_release(ring.words, HEAD + ring.apart, index)


@kernel(inner=True)
def head(ring):
    """Return the index of the next message to be written; the producer's."""
    return ring.words[HEAD]


@kernel(inner=True)
def tail(ring):
    """Return the index of the next message to be read; the consumer's."""
    return ring.words[HEAD + ring.apart]


@kernel(inner=True)
def slot(ring, index):
    """Return where the message of an index lies: the first of its `slot_words` words in `words`."""
    return ring.base + (index & ring.mask) * ring.slot_words


@kernel(forceinline=True)
def push(ring, source, at):
    """Copy a message of `slot_words` words from ``source[at:]`` (uint64); return False if the ring is full."""
    if room(ring, _1) == _0:
        return False
    first = head(ring)
    _copy(source, at, ring.words, slot(ring, first), ring.slot_words)
    publish_to(ring, first + _1)
    return True


@kernel(forceinline=True)
def pop(ring, into, at):
    """Copy the next message to ``into[at:]`` (uint64); return False if the ring is empty."""
    if waiting(ring, _1) == _0:
        return False
    first = tail(ring)
    _copy(ring.words, slot(ring, first), into, at, ring.slot_words)
    release_to(ring, first + _1)
    return True


@kernel
def push_many(ring, source, at, count):
    """Copy as many messages as there is room for, at most `count`, one after the other; return how many."""
    count = room(ring, count)
    first = head(ring)
    for i in range(count):
        _copy(source, at + i * ring.slot_words, ring.words, slot(ring, first + i), ring.slot_words)
    if count != _0:
        publish_to(ring, first + count)
    return count


@kernel
def pop_many(ring, into, at, count):
    """Copy as many messages as there are, at most `count`, one after the other; return how many."""
    count = waiting(ring, count)
    first = tail(ring)
    for i in range(count):
        _copy(ring.words, slot(ring, first + i), into, at + i * ring.slot_words, ring.slot_words)
    if count != _0:
        release_to(ring, first + count)
    return count


@kernel(inner=True)
def _copy(source, at, into, to, count):
    """Copy `count` words; eight, a whole line, at once."""
    if count == _EIGHT:
        copy_line(source, at, into, to)
    else:
        for i in range(count):
            plain_store(into, to + i, plain_load(source, at + i))


def _base(apart):
    """Word of the first slot: behind the lines of both sides, at a multiple of 128 bytes."""
    return HEADER_WORDS + -(-2 * apart // GRANULE_WORDS) * GRANULE_WORDS


def _ring(array, slots, words, apart):
    return Ring(array, np.uint64(slots - 1), np.uint64(words), np.uint64(apart), np.uint64(_base(apart)))


def _words_of(buffer):
    """View a buffer as 64-bit words."""
    array = buffer if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
    array = array.view(np.uint8).reshape(-1)
    if not array.flags.writeable or array.__array_interface__["data"][0] % 128:
        raise UserError("a ring's buffer is writable and begins at a multiple of 128 bytes")
    return array[: array.size // 8 * 8].view(np.uint64)
