"""A ring and an allocator as somebody else might write them: sound ones, and their parts for flawed ones."""

import numpy as np

from photonlab.lab.studies import own
from photonlab.machine.atomics import load_acquire, store_release

_0, _1, _8 = np.uint64(0), np.uint64(1), np.uint64(8)
HEAD, TAIL, SLOTS = np.uint64(0), np.uint64(16), np.uint64(32)
NONE = own.NONE


def make_ring(slots):
    return np.zeros(32 + 8 * slots, np.uint64)


def push(words, source, count):
    slots, head = (np.uint64(words.size) - SLOTS) // _8, words[HEAD]
    count = min(count, slots - (head - load_acquire(words, TAIL)))
    for i in range(count):
        for j in range(_8):
            words[SLOTS + ((head + i) & (slots - _1)) * _8 + j] = source[i * _8 + j]
    store_release(words, HEAD, head + count)
    return count


def pop(words, into, count):
    slots, tail = (np.uint64(words.size) - SLOTS) // _8, words[TAIL]
    count = min(count, load_acquire(words, HEAD) - tail)
    for i in range(count):
        for j in range(_8):
            into[i * _8 + j] = words[SLOTS + ((tail + i) & (slots - _1)) * _8 + j]
    store_release(words, TAIL, tail + count)
    return count


RING = make_ring, push, pop


def make_stack(blocks):
    """Word 0: the first block never handed out; word 1: the last one that came back, which names the one before."""
    words = np.zeros(8 + 8 * blocks, np.uint64)
    words[0] = 8
    return words


def take(words):
    at = words[1]
    if at != _0:
        words[1] = words[at]
        return at
    at = words[0]
    if at == np.uint64(words.size):
        return NONE
    words[0] = at + _8
    return at


def give(words, at):
    words[at] = words[1]
    words[1] = at


STACK = make_stack, take, give
