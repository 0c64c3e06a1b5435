"""A replayer for chosen instruments: what is not about them is left behind before the books see it."""

import numpy as np

from photonlab.systems import message_loop as loop
from photonlab.systems.replayer import Replayer, checked_symbols
from photonlab.systems.sift import SLACK, make_sieve, resized, sift


class SiftedReplayer(Replayer):
    """A replayer that costs little more than framing for messages on other instruments than the chosen ones.

    Parameters
    ----------
    symbols : str or iterable of str, optional
        Keep the books of these instruments only; all messages are counted all the same.
    shard : tuple of (int, int), optional
        (k, n): in place of symbols the instruments whose stock locate modulo n is k.
    **options
        Of `Replayer`.
    """

    def __init__(self, symbols=None, *, shard=None, **options):
        super().__init__(**options)
        self.symbols = checked_symbols(symbols)
        self.loop_feed = self.feed_state
        self._sieve = None
        if self.symbols is not None or shard is not None:
            self._sieve = make_sieve(self.symbols or (), 1 << 20, shard)
            # the sieve counts all messages, so what the loop counts of the rest is not wanted
            self.loop_feed = self.feed_state._replace(counts=np.zeros_like(self.feed_state.counts))

    @property
    def numbers(self) -> np.ndarray:
        """The number of each message that was sifted from the last chunk; empty if nothing is sifted."""
        return self._sieve.numbers if self._sieve is not None else np.zeros(0, np.uint64)

    def _apply(self, data, begin, end):
        if self._sieve is None:
            return self._replay(data, begin, end)
        if len(self._sieve.data) < data.size + SLACK:
            self._sieve = resized(self._sieve, data.size)
        feed, number = self.feed_state, np.uint64(self.messages)
        at, outcome, _, size, _ = sift(self._sieve, feed.counts, feed.anomalies, data, begin, end, number)
        _, full = self._replay(self._sieve.data, np.uint64(0), np.uint64(size))
        return at, loop.FULL if full == loop.FULL else outcome

    def _replay(self, data, begin, end):
        """Apply the whole messages of data[begin:end], which are wanted; return where and how it ended."""
        return loop.replay(self.loop_feed, data, begin, end, self._look_ahead)
