"""Loops that put rings to work: on one thread, from one to the other, to and fro, and no ring at all.

Loops of two threads begin with `meet`, give up when told to, and time themselves with the clock of their own core.
Queues are those of `photonlab.kernels.ring_variants`; messages stand for 0, 1, 2, …
"""

import numpy as np

from photonlab.kernels.ring_variants import accept, offer, read, write
from photonlab.machine import clock
from photonlab.machine.atomics import load_acquire, store_release
from photonlab.machine.jit import kernel
from photonlab.systems.spin import given_up, meet

_0, _1 = np.uint64(0), np.uint64(1)

TICKS, MESSAGES, TOTAL, CALLS = 0, 1, 2, 3
"""What a loop leaves in its report (ndarray of uint64, shape (4,)): ticks from the start to its last message, messages
passed, sum of all words read, and calls that passed any."""


@kernel
def alone(queue, count):
    """Offer and accept one message after the other on one thread; return the sum of all words read."""
    total = _0
    for i in range(count):
        offer(queue, i, _1)
        _, words = accept(queue, _1)
        total += words
    return total


@kernel
def produce(queue, flags, count, batch, report):
    """Offer `count` messages, up to `batch` at a time, as fast as there is room."""
    if not meet(flags, _0):
        return
    begin, sent, spins, calls = clock.ticks_begin(), _0, _0, _0
    while sent < count:
        passed = offer(queue, sent, min(batch, count - sent))
        if passed != _0:
            sent += passed
            calls += _1
            spins = _0
        elif given_up(flags, spins):
            break
        else:
            spins += _1
    report[TICKS] = clock.elapsed(begin, clock.ticks_end())
    report[MESSAGES] = sent
    report[CALLS] = calls


@kernel
def consume(queue, flags, count, batch, report):
    """Accept `count` messages, up to `batch` at a time, as soon as there are any."""
    if not meet(flags, _1):
        return
    begin, got, spins, calls, total = clock.ticks_begin(), _0, _0, _0, _0
    while got < count:
        passed, words = accept(queue, batch)
        if passed != _0:
            got += passed
            total += words
            calls += _1
            spins = _0
        elif given_up(flags, spins):
            break
        else:
            spins += _1
    report[TICKS] = clock.elapsed(begin, clock.ticks_end())
    report[MESSAGES] = got
    report[TOTAL] = total
    report[CALLS] = calls


@kernel
def call(there, back, flags, batch, spans, report):
    """Send a batch and wait for one message in answer, over and over; `spans` receive the ticks between answers.

    Both rings have room for a batch.
    """
    if not meet(flags, _0):
        return
    total = _0
    begin = clock.ticks_begin()
    last = begin
    for i in range(spans.size):
        offer(there, np.uint64(i) * batch, batch)
        spins = _0
        while True:
            passed, words = accept(back, _1)
            if passed != _0:
                break
            if given_up(flags, spins):
                return
            spins += _1
        total += words
        now = clock.ticks()
        spans[i] = clock.elapsed(last, now)
        last = now
        report[MESSAGES] += batch
    report[TICKS] = clock.elapsed(begin, clock.ticks_end())
    report[TOTAL] = total


@kernel
def answer(there, back, flags, batch, count, report):
    """Answer each of `count` batches, once it has been read, with a message that stands for its number."""
    if not meet(flags, _1):
        return
    total = _0
    for i in range(count):
        spins, left = _0, batch
        while left != _0:
            passed, words = accept(there, left)
            left -= passed
            total += words
            if given_up(flags, spins):
                return
            spins += _1
        offer(back, np.uint64(i), _1)
        report[MESSAGES] += batch
    report[TOTAL] = total


@kernel
def serve(words, at, to, line, flags, spans, report):
    """The bare ping-pong without a queue: write a number to ``words[at]``, wait until it stands in ``words[to]``.

    Before the number go `line` words into the places behind it, and behind the other one they are read: a whole cache
    line has 7.
    """
    if not meet(flags, _0):
        return
    begin = clock.ticks_begin()
    last, total = begin, _0
    for i in range(spans.size):
        number = np.uint64(i) + _1
        write(words, at + _1, line, number)
        store_release(words, at, number)
        spins = _0
        while load_acquire(words, to) != number:
            if given_up(flags, spins):
                return
            spins += _1
        total += read(words, to + _1, line)
        now = clock.ticks()
        spans[i] = clock.elapsed(last, now)
        last = now
        report[MESSAGES] += _1
    report[TICKS] = clock.elapsed(begin, clock.ticks_end())
    report[TOTAL] = total


@kernel
def play_back(words, at, to, line, flags, count, report):
    """Its other side."""
    if not meet(flags, _1):
        return
    total = _0
    for i in range(count):
        number = np.uint64(i) + _1
        spins = _0
        while load_acquire(words, at) != number:
            if given_up(flags, spins):
                return
            spins += _1
        total += read(words, at + _1, line)
        write(words, to + _1, line, number)
        store_release(words, to, number)
        report[MESSAGES] += _1
    report[TOTAL] = total
