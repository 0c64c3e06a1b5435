"""Blocks of 64 bytes in one piece of memory, handed out by the slot pool, and the orders in which it may hand them out.

A block is sixteen 32-bit words, one cache line; block n begins at word 16 n. Block 0 is never handed out.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import pool
from photonlab.kernels.pool import Pool
from photonlab.machine.memory import huge_array

BLOCK_BYTES = 64
BLOCK_WORDS = BLOCK_BYTES // 4

ORDERS = ("forward", "reverse", "shuffled", "LIFO")
"""Orders in which a full pool may hand out its blocks (claim R9)."""

LIFETIME = 8
"""Blocks of a used pool die at an age of a `LIFETIME`-th of all blocks on average."""


class BlockPool(NamedTuple):
    """A pool of blocks.

    Attributes
    ----------
    pool : Pool
        Whose slots are the blocks' numbers.
    words : ndarray of uint32, shape (blocks * 16,)
        The blocks, block 0 included; begins with a page.
    """

    pool: Pool
    words: np.ndarray


def make_blocks(count, *, huge=False, populate=True) -> BlockPool:
    """Return a pool of `count` free blocks.

    Parameters
    ----------
    count : int
        From 1 to 2**28 - 1, so that a block's first word has a number of 32 bits.
    huge : bool
        Ask for 2 MiB pages, or for small ones.
    populate : bool
        Touch the blocks and the pool's links now.
    """
    if not 1 <= count < 1 << 28:
        raise ValueError(f"a pool of blocks has 1 to 2**28 - 1 of them, not {count}")
    slots = pool.make_pool(count + 1)
    slots = slots._replace(links=huge_array(count + 1, np.uint32, huge=huge, populate=populate))
    words = huge_array((count + 1) * BLOCK_WORDS, np.uint32, huge=huge, populate=populate)
    return BlockPool(slots, words)


def hand_out_order(name, count, seed) -> np.ndarray:
    """Return the numbers of all blocks in one of the `ORDERS`.

    Parameters
    ----------
    name : str
        "forward" and "reverse" by address, "shuffled" at random, or "LIFO": as the pool itself hands them out again
        when they were handed out forwards and came back after lifetimes with an exponential distribution.
    count, seed : int

    Returns
    -------
    ndarray of uint32, shape (count,)
    """
    if name not in ORDERS:
        raise ValueError(f"no order {name!r}; there are {', '.join(ORDERS)}")
    forward = np.arange(1, count + 1, dtype=np.uint32)
    if name == "forward":
        return forward
    if name == "reverse":
        return forward[::-1].copy()
    rng = np.random.default_rng(seed)
    if name == "shuffled":
        return rng.permutation(forward)
    deaths = np.argsort(np.arange(count) + rng.exponential(count / LIFETIME, count), kind="stable")
    return forward[deaths][::-1].copy()
