"""The bump arena: memory handed out from one end to the other, and taken back all at once or down to a mark (claim A6).

It stands beside the pool: any size, not even a free list to keep, and no way to give back a single block.
"""

from typing import NamedTuple

import numpy as np

from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_1 = np.uint64(1)
FULL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""What `allot` returns when there is not enough left."""


class Arena(NamedTuple):
    """Memory and how much of it is handed out.

    Attributes
    ----------
    words : ndarray of uint32, shape (bytes / 4,)
        The memory; begins with a page.
    used : ndarray of uint64, shape (1,)
        Bytes handed out so far, counted from the beginning.
    """

    words: np.ndarray
    used: np.ndarray


def make_arena(size, *, huge=False, populate=True) -> Arena:
    """Return an empty arena of `size` bytes, rounded up to a multiple of 4.

    Parameters
    ----------
    size : int
        1 or more.
    huge, populate : bool
        As for `photonlab.machine.memory.huge_array`.
    """
    if size < 1:
        raise ValueError(f"an arena has 1 byte or more, not {size}")
    return Arena(huge_array(-(-size // 4), np.uint32, huge=huge, populate=populate), np.zeros(1, np.uint64))


@kernel(forceinline=True)
def allot(arena, size, alignment):
    """Hand out the next bytes.

    Parameters
    ----------
    arena : Arena
    size : uint64
        Bytes; 0 gives an offset that the next block may share.
    alignment : uint64
        A power of two up to the page size, by which the offset can be divided.

    Returns
    -------
    uint64
        Offset from the beginning in bytes, or `FULL`; then nothing was handed out.
    """
    end = np.uint64(arena.words.size) * np.uint64(4)
    begin = (arena.used[0] + alignment - _1) & ~(alignment - _1)
    if begin > end or size > end - begin:  # the sum of the two could pass 2**64
        return FULL
    arena.used[0] = begin + size
    return begin


@kernel(forceinline=True)
def mark(arena):
    """Return how much is handed out, to go back to."""
    return arena.used[0]


@kernel(forceinline=True)
def rewind(arena, to):
    """Take back all that was handed out since `to` was the `mark`; 0 empties the arena."""
    arena.used[0] = to
