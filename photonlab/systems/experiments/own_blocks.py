"""Loops that put an allocator of anybody's own to the work that `allocators` has for the pool, the arena and malloc.

All of such an allocator is one array of 64-bit words: its own accounts and its blocks of 8 words. It hands out the
place of a block's first word. Each loop writes that word, as the loops of the others do.
"""

import numpy as np

from photonlab.machine.choice import by_type
from photonlab.machine.clock import elapsed, ticks_begin, ticks_end
from photonlab.machine.jit import kernel

_0, _1 = np.uint64(0), np.uint64(1)
NONE = np.uint64(2**64 - 1)
"""What `take` returns when there is no block left."""


@by_type
def take(blocks):
    """Hand out a block of ``blocks.words``: the place of its first word, or `NONE`."""


@by_type
def give(blocks, at):
    """Take a block back."""


@kernel
def fill(blocks, taken):
    """Hand out a block for each element of `taken` (uint64); return how many were handed out."""
    words, count = blocks.words, _0
    for i in range(taken.size):
        at = take(blocks)
        if at != NONE:
            words[at] = at
            count += _1
        taken[i] = at
    return count


@kernel
def cycles(blocks, taken, times):
    """Hand out blocks until `taken` is full, take them all back, and again; return how many were handed out."""
    words, count = blocks.words, _0
    for _ in range(times):
        for i in range(taken.size):
            at = take(blocks)
            if at != NONE:
                words[at] = at
                count += _1
            taken[i] = at
        for i in range(taken.size):
            give(blocks, taken[i])
    return count


@kernel
def churn(blocks, live, victims):
    """Replace blocks at random among many live ones; parameters and result as of `allocators.pool_churn`."""
    words, total = blocks.words, _0
    for i in range(victims.size):
        place = np.uint64(victims[i])
        at = take(blocks)
        if at == NONE:
            return NONE
        words[at] = np.uint64(i)
        old = live[place]
        total += words[old]
        live[place] = at
        give(blocks, old)
    return total


@kernel
def spans(blocks, taken, found):
    """Time handing out blocks in batches; parameters as of `allocators.pool_spans`."""
    words = blocks.words
    batch, at = np.uint64(taken.size) // np.uint64(found.size), _0
    for i in range(found.size):
        begin = ticks_begin()
        for _ in range(batch):
            block = take(blocks)
            words[block] = block
            taken[at] = block
            at += _1
        found[i] = elapsed(begin, ticks_end())
