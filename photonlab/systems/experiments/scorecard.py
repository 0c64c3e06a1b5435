"""The replay with a clock round every message, for a latency scorecard by type (claim R2).

A kernel of its own, because reading the clock twice a message, with the fences that make a single sample mean
something, costs as much as the message: throughput is measured by `message_loop.replay`, which has none of it. What is
timed is that very loop, inlined and given one message at a time: framing, decoding and book of a message that comes
alone, which pays for all of its cache misses because nothing can be fetched ahead for it. A sample is service time;
there is no queue.
"""

import types

import numpy as np

from photonlab.kernels.framing import PREFIX
from photonlab.machine.bits import load_be16, load_u8
from photonlab.machine.counter import elapsed, ticks_begin, ticks_end
from photonlab.machine.jit import kernel
from photonlab.systems import message_loop as loop
from photonlab.systems.experiments.passes import BookPass

CLASSES = {"Add": "AF", "Execute": "EC", "Cancel": "X", "Delete": "D", "Replace": "U"}
"""The classes of the published scorecard, and the message types of each."""

_0, _1, _8 = np.uint64(0), np.uint64(1), np.uint64(8)
_PREFIX = np.uint64(PREFIX)


def _inlined(dispatcher, name):
    """Return a kernel of the same text for inlining: a call that hands the books over costs more than a message."""
    function = dispatcher.py_func
    twin = types.FunctionType(function.__code__, function.__globals__, name, function.__defaults__)
    twin.__module__, twin.__qualname__ = __name__, name
    return kernel(inner=True)(twin)


_apply_one = _inlined(loop.replay, "_apply_one")


@kernel
def replay_timed(feed, data, begin, spans):
    """Apply the whole messages of a piece of a feed, and time each of them.

    Parameters
    ----------
    feed : message_loop.Feed
    data : ndarray of uint8
    begin : uint64
        Where a length prefix stands.
    spans : ndarray of uint64, shape (messages,)
        Receives for each message the ticks that it took << 8 | its type byte; the replay stops when it is full.

    Returns
    -------
    at, outcome, timed : uint64
        As `message_loop.replay` returns them, and the messages timed.
    """
    size, at, timed, outcome = np.uint64(data.size), begin, _0, loop.MORE
    while at + _PREFIX < size and timed < np.uint64(spans.size):
        following = at + _PREFIX + load_be16(data, at)
        if following > size:
            break
        kind = load_u8(data, at + _PREFIX)
        before = ticks_begin()
        reached, outcome = _apply_one(feed, data, at, following, False)
        ticks = elapsed(before, ticks_end())
        if outcome != loop.MORE:
            break
        spans[timed] = (ticks << _8) | kind
        timed += _1
        at = reached
    return at, outcome, timed


class TimedPass(BookPass):
    """A pass over a day with a clock round every message; its outcome is that of the pass without.

    Attributes
    ----------
    spans : ndarray of uint64, shape (messages,)
        Of the last call, as `replay_timed` writes them.
    """

    def __init__(self, data, **options):
        super().__init__(data, **options)
        self.spans = np.ones(self.messages, np.uint64)  # not zeros, whose first touch in the loop would be a page fault

    def __call__(self) -> int:
        """Replay the day; returns the checksum of `BookPass`."""
        at, _, timed = replay_timed(self.state, self.data, _0, self.spans)
        assert timed == self.messages, "every message has its sample"
        self.replayer.position = int(at)
        return self.checksum()
