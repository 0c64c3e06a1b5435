"""Sifting: of a feed only the messages on chosen instruments, at little more than the cost of framing."""

from typing import NamedTuple

import numpy as np

from photonlab.kernels.itch import LENGTH_BY_TYPE, SYMBOL_OFFSET_BY_TYPE
from photonlab.machine.bits import load_be16, load_be64, load_le64, load_u8, store_le64
from photonlab.machine.jit import kernel
from photonlab.systems.batch import MORE, SKIP, WHOLE, walk_on

LOCATES = 1 << 16
SHORTEST = 2 + int(min(length for length in LENGTH_BY_TYPE if length))  # bytes of a known message and its prefix
SLACK = 64  # bytes behind what is written that may be overwritten
_0, _1, _2, _8 = (np.uint64(i) for i in (0, 1, 2, 8))
_R = np.uint64(ord("R"))
UNDECIDED, WANTED, UNWANTED = np.uint8(0), np.uint8(1), np.uint8(2)


class Sieve(NamedTuple):
    """Which instruments are wanted, and what of a chunk is.

    Attributes
    ----------
    symbols : ndarray of uint64, shape (wanted,)
        Their names, 8 bytes as a big-endian word.
    choice : ndarray of uint8, shape (65536,)
        By locate. An instrument is decided on when a message names it; the directory may decide anew.
    always : ndarray of uint8, shape (256,)
        By type, whether a message is wanted whatever its instrument: those on the whole market.
    data : ndarray of uint8
        The wanted messages with their prefixes.
    numbers : ndarray of uint64
        The number of each in the whole input.
    """

    symbols: np.ndarray
    choice: np.ndarray
    always: np.ndarray
    data: np.ndarray
    numbers: np.ndarray


def make_sieve(symbols, size, shard=None) -> Sieve:
    """Return a sieve for chunks of up to `size` bytes.

    Parameters
    ----------
    symbols : iterable of str
    size : int
    shard : tuple of (int, int), optional
        (k, n): in place of symbols the instruments whose locate modulo n is k.

    Returns
    -------
    Sieve
    """
    always = np.zeros(256, np.uint8)
    always[[ord(type_) for type_ in "SVW"]] = 1
    choice = np.full(LOCATES, UNDECIDED, np.uint8)
    if shard is not None:
        choice[:] = np.where(np.arange(LOCATES) % shard[1] == shard[0], WANTED, UNWANTED)
    wanted = np.array([int.from_bytes(s.encode("ascii").ljust(8), "big") for s in symbols], np.uint64)
    return resized(Sieve(wanted, choice, always, choice, wanted), size)


def resized(sieve, size) -> Sieve:
    """Return a sieve as it is, for chunks of up to `size` bytes."""
    return sieve._replace(data=np.zeros(size + SLACK, np.uint8), numbers=np.zeros(size // SHORTEST + 1, np.uint64))


@kernel
def sift(sieve, counts, anomalies, data, begin, end, number):
    """Copy a chunk's whole messages on wanted instruments; count and number all.

    Parameters
    ----------
    sieve : Sieve
    counts, anomalies : ndarray of uint64
        As in `message_loop.Feed`; framing's anomalies only.
    data : ndarray of uint8
    begin, end, number : uint64
        Where a prefix stands, where the chunk ends, and the number of the first message.

    Returns
    -------
    at, outcome, number, bytes, kept : uint64
        Where it stopped and why, as the replay does; the number of the next message; bytes and messages copied.
    """
    at, to, kept, outcome = begin, _0, _0, MORE
    while at + _2 <= end:
        message, what, following, ended = walk_on(counts, anomalies, data, at, end)
        if ended != WHOLE:
            at, outcome = following, ended
            break
        if what != SKIP:
            kind, locate = load_u8(data, message), load_be16(data, message + _1)
            if sieve.choice[locate] == UNDECIDED or (kind == _R and sieve.symbols.size != 0):
                symbol = np.uint64(SYMBOL_OFFSET_BY_TYPE[kind])
                if symbol != _0:
                    sieve.choice[locate] = UNWANTED
                    for wanted in sieve.symbols:
                        if wanted == load_be64(data, message + symbol):
                            sieve.choice[locate] = WANTED
            if sieve.choice[locate] == WANTED or sieve.always[kind] != 0:
                step, size = _0, following - at
                while step < size:
                    if at + step + _8 <= end:
                        store_le64(sieve.data, to + step, load_le64(data, at + step))
                    else:
                        for rest in range(step, size):
                            sieve.data[to + np.uint64(rest)] = data[at + np.uint64(rest)]
                    step += _8
                sieve.numbers[kept] = number
                to += size
                kept += _1
        number += _1
        at = following
    return at, outcome, number, to, kept
