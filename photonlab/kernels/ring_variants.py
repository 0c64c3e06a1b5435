"""The ring and its variants behind two verbs, chosen by type, so that one loop puts each to the same work.

`offer` writes messages and `accept` reads them, in place and many at once; a message of w words that stands for
`value` is value, value + 1, … value + w - 1, which makes its reader look at every word.

    Ring        as it is
    Uncached    loads the other side's index each time
    Locked      each call under a mutex
    Sequenced   no index passes between the sides: each slot carries the number of its message in its last word, so a
                message costs its reader one cache line instead of two
    Copied      messages are copied in from an array and out into one, as by `push_many` and `pop_many`; rings of
                anybody's own take part so (`photonlab.lab.studies.own`)
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import ring as rings
from photonlab.kernels.ring import HEAD, SEEN, Ring, make_ring
from photonlab.machine import mutex as mutexes
from photonlab.machine.atomics import load_acquire, plain_load, plain_store, store_release
from photonlab.machine.choice import by_type
from photonlab.machine.jit import kernel
from photonlab.machine.libc import address_of
from photonlab.machine.lines import count_line, sum_line
from photonlab.machine.memory import huge_array

_0, _1, _SEVEN, _EIGHT = (np.uint64(n) for n in (0, 1, 7, 8))


class Uncached(NamedTuple):
    """A ring whose sides look at each other's index each time."""

    ring: Ring


class Locked(NamedTuple):
    """A ring under a mutex.

    Attributes
    ----------
    ring : Ring
    mutex : ndarray of uint64
        Its memory.
    at : uint64
        Its address.
    """

    ring: Ring
    mutex: np.ndarray
    at: np.uint64


class Sequenced(NamedTuple):
    """A ring whose slots say themselves whether they hold a message."""

    ring: Ring


class Copied(NamedTuple):
    """A ring whose messages are copied in and out.

    Attributes
    ----------
    ring : Ring
        For a ring of somebody's own: the array of uint64 that all of it lies in.
    source, into : ndarray of uint64
        What is copied in next, and what was copied out last; each belongs to one side.
    slot_words, most : uint64
        Words of a message, and messages that the two arrays hold.
    """

    ring: Ring
    source: np.ndarray
    into: np.ndarray
    slot_words: np.uint64
    most: np.uint64


MOST_COPIED = 512
"""Messages that are copied at once, at most."""


def make_uncached(slots, words=8, **options) -> Uncached:
    """Return an empty ring without copies of indices; see `photonlab.kernels.ring.make_ring`."""
    return Uncached(make_ring(slots, words, **options))


def make_locked(slots, words=8, **options) -> Locked:
    """Return an empty ring with its mutex; see `photonlab.kernels.ring.make_ring`."""
    mutex = mutexes.make_mutex()
    return Locked(make_ring(slots, words, **options), mutex, address_of(mutex))


def make_sequenced(slots, words=8, **options) -> Sequenced:
    """Return an empty sequenced ring; see `photonlab.kernels.ring.make_ring`. One word of a slot is its number."""
    ring = make_ring(slots, words, **options)
    first = int(ring.words[HEAD])
    for index in range(first, first + slots):  # not the number of the message to come, which is one more
        ring.words[int(ring.base) + (index & int(ring.mask)) * words + words - 1] = np.uint64(index % 2**64)
    return Sequenced(ring)


def make_copied(slots, words=8, **options) -> Copied:
    """Return an empty ring to copy in and out of; see `photonlab.kernels.ring.make_ring`."""
    return Copied(make_ring(slots, words, **options), *buffers(words))


def buffers(words=8) -> tuple:
    """Return what `Copied` has beside its ring."""
    pair = (huge_array(MOST_COPIED * words, np.uint64, populate=True) for _ in range(2))
    return (*pair, np.uint64(words), np.uint64(MOST_COPIED))


@by_type
def offer(queue, value, count):
    """Write up to `count` messages that stand for value, value + 1, …; return how many there was room for."""


@by_type
def accept(queue, count):
    """Read up to `count` messages; return how many there were, and the sum of all their words."""


@by_type
def put(queue, count):
    """Copy the first `count` messages of ``queue.source`` in, as many as there is room for; return how many."""


@by_type
def fetch(queue, count):
    """Copy up to `count` messages out, to the beginning of ``queue.into``; return how many."""


@kernel(inner=True)
def write(words, at, count, value):
    """Write the message of a value, `count` words, to ``words[at:]``; a line, or one less a word, without a loop."""
    if count == _EIGHT:
        count_line(words, at, value)
    elif count == _SEVEN:
        for j in range(7):
            plain_store(words, at + np.uint64(j), value + np.uint64(j))
    else:
        for j in range(count):
            plain_store(words, at + j, value + j)


@kernel(inner=True)
def read(words, at, count):
    """Return the sum of the `count` words of a message."""
    total = _0
    if count == _EIGHT:
        total = sum_line(words, at)
    elif count == _SEVEN:
        for j in range(7):
            total += plain_load(words, at + np.uint64(j))
    else:
        for j in range(count):
            total += plain_load(words, at + j)
    return total


@kernel(inner=True)
def _write_all(ring, value, count):
    first = rings.head(ring)
    for i in range(count):
        write(ring.words, rings.slot(ring, first + i), ring.slot_words, value + i)
    rings.publish_to(ring, first + count)


@kernel(inner=True)
def _read_all(ring, count):
    total, first = _0, rings.tail(ring)
    for i in range(count):
        total += read(ring.words, rings.slot(ring, first + i), ring.slot_words)
    rings.release_to(ring, first + count)
    return total


@kernel(inner=True)
def _offer(ring, value, count):
    count = rings.room(ring, count)
    if count != _0:
        _write_all(ring, value, count)
    return count


@kernel(inner=True)
def _accept(ring, count):
    count, total = rings.waiting(ring, count), _0
    if count != _0:
        total = _read_all(ring, count)
    return count, total


@kernel(inner=True)
def _offer_uncached(queue, value, count):
    words = queue.ring.words
    words[HEAD + SEEN] = load_acquire(words, HEAD + queue.ring.apart)
    return _offer(queue.ring, value, count)


@kernel(inner=True)
def _accept_uncached(queue, count):
    words = queue.ring.words
    words[HEAD + queue.ring.apart + SEEN] = load_acquire(words, HEAD)
    return _accept(queue.ring, count)


@kernel(inner=True)
def _offer_locked(queue, value, count):
    mutexes.lock(queue.at)
    count = _offer(queue.ring, value, count)
    mutexes.unlock(queue.at)
    return count


@kernel(inner=True)
def _accept_locked(queue, count):
    mutexes.lock(queue.at)
    count, total = _accept(queue.ring, count)
    mutexes.unlock(queue.at)
    return count, total


@kernel(inner=True)
def _offer_sequenced(queue, value, count):
    ring = queue.ring
    words, last = ring.words, ring.slot_words - _1
    count, first = rings.room(ring, count), rings.head(ring)
    for i in range(count):
        at = rings.slot(ring, first + i)
        write(words, at, last, value + i)
        store_release(words, at + last, first + i + _1)
    words[HEAD] = first + count  # nobody but its owner reads it
    return count


@kernel(inner=True)
def _accept_sequenced(queue, count):
    ring = queue.ring
    words, last = ring.words, ring.slot_words - _1
    first, total, there = rings.tail(ring), _0, _0
    while there < count:
        at = rings.slot(ring, first + there)
        if load_acquire(words, at + last) != first + there + _1:
            break
        total += read(words, at, last)
        there += _1
    if there != _0:
        rings.release_to(ring, first + there)
    return there, total


@kernel(inner=True)
def _put(queue, count):
    return rings.push_many(queue.ring, queue.source, _0, count)


@kernel(inner=True)
def _fetch(queue, count):
    return rings.pop_many(queue.ring, queue.into, _0, count)


@kernel(inner=True)
def offer_copied(queue, value, count):
    """Write messages into ``queue.source`` and put them in; as `offer`."""
    count = min(count, queue.most)
    for i in range(count):
        write(queue.source, i * queue.slot_words, queue.slot_words, value + i)
    return put(queue, count)


@kernel(inner=True)
def accept_copied(queue, count):
    """Fetch messages and read them in ``queue.into``; as `accept`."""
    there, total = fetch(queue, min(count, queue.most)), _0
    for i in range(there):
        total += read(queue.into, i * queue.slot_words, queue.slot_words)
    return there, total


put.kernels[Copied], fetch.kernels[Copied] = _put, _fetch
offer.kernels.update(
    {Ring: _offer, Uncached: _offer_uncached, Locked: _offer_locked, Sequenced: _offer_sequenced, Copied: offer_copied}
)
accept.kernels.update(
    {
        Ring: _accept,
        Uncached: _accept_uncached,
        Locked: _accept_locked,
        Sequenced: _accept_sequenced,
        Copied: accept_copied,
    }
)

MAKERS = {
    "ring": make_ring,
    "uncached": make_uncached,
    "locked": make_locked,
    "sequenced": make_sequenced,
    "copied": make_copied,
}
"""How to make a queue of each kind: slots, words, and options of `photonlab.kernels.ring.make_ring`. What somebody
added stands behind what is this house's."""

HOUSE = tuple(MAKERS)
COPIES = "copied in and out"


def added() -> dict[str, str]:
    """Return name → kind of rings that somebody added, behind the house's own with the same copies; empty if none."""
    names = [name for name in MAKERS if name not in HOUSE]
    return {COPIES: "copied"} | {name: name for name in names} if names else {}
