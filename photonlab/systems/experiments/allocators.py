"""Loops that put the pool, the arena and malloc to the same work, beside the barest loop that could be called one.

Each hands out blocks of 64 bytes and writes the first word of each. What was handed out is kept in an array: slots of
the pool (uint32), offsets of the arena in bytes (uint32), addresses of malloc (uint64).
"""

import numpy as np

from photonlab.kernels.arena import FULL, allot, rewind
from photonlab.kernels.block_pool import BLOCK_BYTES, BLOCK_WORDS
from photonlab.kernels.pool import give, give_held, hold, put_down, take, take_held
from photonlab.machine.clock import elapsed, ticks_begin, ticks_end
from photonlab.machine.jit import kernel
from photonlab.machine.libc import free, malloc, minor_faults, program_break, set_word_at, word_at

_0, _1 = np.uint64(0), np.uint64(1)
_SIZE = np.uint64(BLOCK_BYTES)
_WORDS = np.uint64(BLOCK_WORDS)


@kernel
def bare_cycles(links, words, at, steps):
    """The bare loop: one load whose address is what the last one gave, and one store, a step.

    Parameters
    ----------
    links : ndarray of uint32
        A cycle of block numbers.
    words : ndarray of uint32
        Blocks; the first word of each is written, as the allocators' loops do.
    at, steps : uint64
        Where to begin, and how far to go.

    Returns
    -------
    uint64
        Where it ended.
    """
    at = np.uint64(at)
    for _ in range(steps):
        at = np.uint64(links[at])
        words[at * _WORDS] = at
    return at


@kernel
def pool_cycles(blocks, taken, cycles):
    """Hand out blocks until `taken` is full, take them all back, and again; return how many were handed out.

    The pool has a block for each element of `taken`, or more: what it does not have cannot come back.
    """
    pool, words = blocks.pool, blocks.words
    count = _0
    held = hold(pool)
    for _ in range(cycles):
        for i in range(taken.size):
            slot, held = take_held(pool, held)
            words[slot * _WORDS] = slot
            taken[i] = slot
            count += np.uint64(slot != _0)
        for i in range(taken.size):
            held = give_held(pool, held, np.uint64(taken[i]))
    put_down(pool, held)
    return count


@kernel
def pool_cycles_in_memory(blocks, taken, cycles):
    """The same with the pool's state in memory all the time, as the order book uses it."""
    pool, words = blocks.pool, blocks.words
    count = _0
    for _ in range(cycles):
        for i in range(taken.size):
            slot = take(pool)
            words[slot * _WORDS] = slot
            taken[i] = slot
            count += np.uint64(slot != _0)
        for i in range(taken.size):
            give(pool, np.uint64(taken[i]))
    return count


@kernel
def arena_cycles(arena, taken, cycles):
    """The same with an arena, which takes all back at once."""
    words = arena.words
    count = _0
    for _ in range(cycles):
        for i in range(taken.size):
            offset = allot(arena, _SIZE, _SIZE)
            if offset != FULL:
                words[offset >> np.uint64(2)] = offset
                count += _1
            taken[i] = offset
        rewind(arena, _0)
    return count


@kernel
def malloc_cycles(taken, cycles):
    """The same with malloc and free."""
    count = _0
    for _ in range(cycles):
        for i in range(taken.size):
            block = malloc(_SIZE)
            set_word_at(block, block)
            taken[i] = block
            count += np.uint64(block != _0)
        for i in range(taken.size):
            free(taken[i])
    return count


@kernel
def pool_fill(blocks, taken):
    """Hand out a block for each element of `taken`; return how many were handed out."""
    pool, words = blocks.pool, blocks.words
    count = _0
    held = hold(pool)
    for i in range(taken.size):
        slot, held = take_held(pool, held)
        words[slot * _WORDS] = slot
        taken[i] = slot
        count += np.uint64(slot != _0)
    put_down(pool, held)
    return count


@kernel
def pool_list(blocks, taken):
    """Hand out a block for each element of `taken`, each linked behind the one before; return how many.

    The list is one for `photonlab.kernels.list_walk`: word 0 the place of the next node, word 1 the node's number.
    """
    pool, words = blocks.pool, blocks.words
    count, last = _0, _0
    held = hold(pool)
    for i in range(taken.size):
        slot, held = take_held(pool, held)
        place = slot * _WORDS
        words[last] = place  # of the first node: into block 0, which is nobody's
        words[place] = _0
        words[place + _1] = i
        last = place
        taken[i] = slot
        count += np.uint64(slot != _0)
    put_down(pool, held)
    return count


@kernel
def malloc_fill(taken):
    """The same with malloc."""
    count = _0
    for i in range(taken.size):
        block = malloc(_SIZE)
        set_word_at(block, block)
        taken[i] = block
        count += np.uint64(block != _0)
    return count


@kernel
def malloc_fill_with_decoys(taken, decoys, sizes):
    """The same with a block of another size, which stays, between each two; their addresses go into `decoys`."""
    count = _0
    for i in range(taken.size):
        block = malloc(_SIZE)
        set_word_at(block, block)
        taken[i] = block
        count += np.uint64(block != _0)
        decoys[i] = malloc(np.uint64(sizes[i]))
        set_word_at(decoys[i], block)
    return count


@kernel
def malloc_chunks(taken, size):
    """Allocate blocks of `size` bytes; nothing is written to them."""
    for i in range(taken.size):
        taken[i] = malloc(size)


@kernel
def free_all(taken):
    """Free each block, and forget it; addresses that are 0 already are left alone."""
    for i in range(taken.size):
        free(taken[i])
        taken[i] = _0


@kernel
def pool_churn(blocks, live, victims):
    """Replace blocks at random among many live ones: hand out one, read and take back another.

    Parameters
    ----------
    blocks : BlockPool
        With one free block or more.
    live : ndarray of uint32, shape (n,)
        Blocks in use.
    victims : ndarray of uint32
        Which element of `live` is replaced in each step.

    Returns
    -------
    uint64
        Sum of what stood in the blocks taken back, which are the steps in which they were handed out.
    """
    pool, words = blocks.pool, blocks.words
    total = _0
    for i in range(victims.size):
        place = np.uint64(victims[i])
        slot = take(pool)
        words[slot * _WORDS] = i
        old = np.uint64(live[place])
        total += np.uint64(words[old * _WORDS])
        live[place] = slot
        give(pool, old)
    return total


@kernel
def queue_churn(words, free, live, victims):
    """The same with a queue of free blocks: the block handed out is the one that has been free for longest.

    Parameters
    ----------
    words : ndarray of uint32
        Of the blocks.
    free : ndarray of uint32, shape (m,)
        Free blocks; the first step takes the first of them.
    live, victims : ndarray of uint32
        As for `pool_churn`.

    Returns
    -------
    uint64
        As of `pool_churn`.
    """
    total, at = _0, _0
    for i in range(victims.size):
        place = np.uint64(victims[i])
        slot = np.uint64(free[at])
        words[slot * _WORDS] = i
        old = np.uint64(live[place])
        total += np.uint64(words[old * _WORDS])
        live[place] = slot
        free[at] = old
        at += _1
        if at == np.uint64(free.size):
            at = _0
    return total


@kernel
def malloc_churn(live, victims):
    """The same with malloc and free."""
    total = _0
    for i in range(victims.size):
        place = np.uint64(victims[i])
        block = malloc(_SIZE)
        set_word_at(block, np.uint64(i))
        old = live[place]
        total += word_at(old)
        live[place] = block
        free(old)
    return total


@kernel
def pool_spans(blocks, taken, spans):
    """Time handing out blocks in batches: `spans` (uint64) receives the ticks of each, `taken` all blocks.

    A batch is as many blocks as there are elements of `taken` for each of `spans`.
    """
    pool, words = blocks.pool, blocks.words
    batch = np.uint64(taken.size) // np.uint64(spans.size)
    at = _0
    for i in range(spans.size):
        begin = ticks_begin()
        for _ in range(batch):
            slot = take(pool)
            words[slot * _WORDS] = slot
            taken[at] = slot
            at += _1
        spans[i] = elapsed(begin, ticks_end())


@kernel
def malloc_spans(taken, spans):
    """The same with malloc."""
    batch = np.uint64(taken.size) // np.uint64(spans.size)
    at = _0
    for i in range(spans.size):
        begin = ticks_begin()
        for _ in range(batch):
            block = malloc(_SIZE)
            set_word_at(block, block)
            taken[at] = block
            at += _1
        spans[i] = elapsed(begin, ticks_end())


@kernel
def malloc_evidence(taken, spans, faults, breaks, rusage, address):
    """Time each malloc, and look between them, outside the timed region, for what happened in it.

    Parameters
    ----------
    taken, spans : ndarray of uint64, shape (n,)
        Receive addresses and ticks.
    faults, breaks : ndarray of uint64, shape (n,)
        Receive the page faults in the region, and how many bytes the end of the heap moved in it.
    rusage, address
        For `photonlab.machine.libc.minor_faults`.
    """
    before, end = minor_faults(rusage, address), program_break()
    for i in range(taken.size):
        begin = ticks_begin()
        block = malloc(_SIZE)
        set_word_at(block, block)
        spans[i] = elapsed(begin, ticks_end())
        taken[i] = block
        breaks[i] = program_break() - end
        end += breaks[i]
        faults[i] = minor_faults(rusage, address) - before
        before += faults[i]


@kernel
def pool_evidence(blocks, taken, spans, faults, rusage, address):
    """The same for the pool (which never moves the heap)."""
    pool, words = blocks.pool, blocks.words
    before = minor_faults(rusage, address)
    for i in range(taken.size):
        begin = ticks_begin()
        slot = take(pool)
        words[slot * _WORDS] = slot
        spans[i] = elapsed(begin, ticks_end())
        taken[i] = slot
        faults[i] = minor_faults(rusage, address) - before
        before += faults[i]
