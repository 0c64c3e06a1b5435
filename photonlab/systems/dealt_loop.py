"""A day for several cores: whoever frames a piece deals its messages out, and each core applies what it was dealt.

Framing costs a tenth of applying, and is paid once, not by each core: a list by core of the messages on its instruments
is written beside the walk, which waits for its loads anyway. No step branches on whose a message is, which nobody can
predict.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import order_indices, price_tree
from photonlab.kernels.itch import LENGTH_BY_TYPE
from photonlab.machine.bits import load_be16, load_u8, prefetch
from photonlab.machine.jit import kernel
from photonlab.systems.batch import BATCH, CLASS_SHIFT, MORE, OFFSET, OTHER, SKIP, WHOLE, entry_at, look_ahead, walk_on
from photonlab.systems.message_loop import FULL, LOCATES, apply
from photonlab.systems.shard_loop import list_batch

LARGEST = 1 << 24
"""Bytes of the largest piece: offsets have 24 bits."""

_SHORTEST = 2 + int(min(length for length in LENGTH_BY_TYPE if length))
_AHEAD = 128  # messages of a hand for which bytes are asked beforehand
_0, _1, _2, _3 = (np.uint64(i) for i in range(4))
_BATCH, _FAR = np.uint64(BATCH), np.uint64(_AHEAD)
_SHIFT, _PLACE = np.uint64(24), np.uint64(LARGEST - 1)
_S = np.uint64(ord("S"))


class Hands(NamedTuple):
    """Which messages of a piece are whose.

    Attributes
    ----------
    cards : ndarray of uint32, shape (cores, capacity)
        By core in their order: offset of the type byte | class << 24.
    sizes : ndarray of uint64, shape (cores,)
    owners : ndarray of uint16, shape (65536,)
        Core by locate.
    """

    cards: np.ndarray
    sizes: np.ndarray
    owners: np.ndarray


def make_hands(cores, size) -> Hands:
    """Return hands for pieces of up to `size` bytes; instrument n belongs to core n modulo their number."""
    if size > LARGEST:
        raise ValueError(f"a piece has up to {LARGEST} bytes, not {size}")
    room = size // _SHORTEST + _AHEAD + 1
    owners = (np.arange(LOCATES) % cores).astype(np.uint16)
    return Hands(np.zeros((cores, room), np.uint32), np.zeros(cores, np.uint64), owners)


@kernel
def deal(hands, counts, anomalies, data, begin, end):
    """Walk a piece's whole messages: count all, and append those of known shape to the hand of their core.

    Parameters
    ----------
    hands : Hands
    counts, anomalies : ndarray of uint64
        As in `message_loop.Feed`; framing's anomalies only.
    data : ndarray of uint8
    begin, end : uint64
        Where a prefix stands, and where the piece ends.

    Returns
    -------
    at, outcome : uint64
        Where it stopped and why, as `message_loop.replay` does.
    """
    at, outcome = begin, MORE
    while at + _2 <= end:
        message, what, at, ended = walk_on(counts, anomalies, data, at, end)
        if ended != WHOLE:
            outcome = ended
            break
        card = np.uint32(message | (what << _SHIFT))
        owner = np.uint64(hands.owners[load_be16(data, message + _1) if message + _3 <= end else _0])
        size = hands.sizes[owner]
        hands.cards[owner, size] = card
        hands.sizes[owner] = size + np.uint64(what != SKIP)
        if what == OTHER and load_u8(data, message) == _S:  # the session is everybody's
            core = _0
            while core < np.uint64(hands.sizes.size):
                if core != owner:
                    hands.cards[core, hands.sizes[core]] = card
                    hands.sizes[core] += _1
                core += _1
    return at, outcome


@kernel
def play(feed, data, end, cards, count):
    """Apply the messages of a hand to a core's books.

    Parameters
    ----------
    feed : message_loop.Feed
    data : ndarray of uint8
    end : uint64
        Where the piece ends.
    cards : ndarray of uint32
    count : uint64
        Cards in the hand.

    Returns
    -------
    played, outcome : uint64
        How many were applied, and `MORE`, or `FULL` if the books' memory is exhausted.
    """
    batch, book = feed.batch, feed.book
    played = _0
    while played < count:
        if not books.make_room(book, _BATCH):
            return played, FULL
        changes = order_indices.changes_of(book.index)
        size = min(_BATCH, count - played)
        i = _0
        while i < size:
            card = np.uint64(cards[played + i])
            batch.messages[i] = (card & _PLACE) | ((card >> _SHIFT) << CLASS_SHIFT)
            prefetch(data, np.uint64(cards[played + i + _FAR]) & _PLACE)
            i += _1
        gone, come, replaced = list_batch(batch, book.index, book.tree.sides, data, end, size)
        look_ahead(batch, book, data, end, gone, come, replaced)
        i = _0
        while i < size:
            message = batch.messages[i]
            offset, entry = message & OFFSET, batch.entries[i]
            if order_indices.changes_of(book.index) != changes:
                entry = entry_at(book.index, data, offset, end)
            apply(feed, data, offset, message >> CLASS_SHIFT, entry)
            i += _1
        played += size
    if price_tree.crowded(book.tree):
        price_tree.sweep(book.tree)
    return played, MORE
