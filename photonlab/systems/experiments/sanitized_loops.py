"""Two loops for a sanitizer: every verb of the ring, singly and in batches, each word written and looked at."""

import numpy as np
from numba.core import types

from photonlab.kernels import ring as rings
from photonlab.machine.jit import kernel

_0, _1 = np.uint64(0), np.uint64(1)
BATCH = 16
"""Messages that the loops pass at a time at most: the size of their buffers, in messages."""

_yield = types.ExternalFunction("sched_yield", types.int32())  # nothing is timed here, and CPUs may be few
_MODES = np.uint64(256)  # messages after which a loop changes from single ones to batches, and back


@kernel
def produce(ring, buffer, count):
    """Push messages of the words i, i + 1, … for each i below `count`; `buffer` has room for `BATCH` of them."""
    sent = _0
    while sent < count:
        ready = min(np.uint64(BATCH), count - sent)
        for i in range(ready):
            for j in range(ring.slot_words):
                buffer[i * ring.slot_words + j] = sent + i + j
        if sent & _MODES == _0:
            passed = np.uint64(rings.push(ring, buffer, _0))
        else:
            passed = rings.push_many(ring, buffer, _0, ready)
        sent += passed
        if passed == _0:
            _yield()


@kernel
def consume(ring, buffer, count):
    """Pop `count` messages; return how many words were not those that were written."""
    got, wrong = _0, _0
    while got < count:
        if got & _MODES == _0:
            passed = np.uint64(rings.pop(ring, buffer, _0))
        else:
            passed = rings.pop_many(ring, buffer, _0, np.uint64(BATCH))
        for i in range(passed):
            for j in range(ring.slot_words):
                wrong += np.uint64(buffer[i * ring.slot_words + j] != got + i + j)
        got += passed
        if passed == _0:
            _yield()
    return wrong
