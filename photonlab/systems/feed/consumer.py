"""The consumer: the books of a feed, kept from a ring in a thread of its own, and how late everything was."""

import mmap

import numpy as np

from photonlab.errors import UserError
from photonlab.kernels import histogram
from photonlab.machine.atomics import store_release
from photonlab.machine.handles import leaves
from photonlab.machine.jit import kernel
from photonlab.systems import batch as batches
from photonlab.systems.feed import consuming, events
from photonlab.systems.feed.worker import Closed, Worker
from photonlab.systems.replayer import Replayer

LONGEST_BATCH = 256
BOUND = 1 << 19
"""Ticks with a bucket of their own."""

_WHY = {int(events.NEVER_CAME): "never came", int(events.NO_ROOM): "the ring was full"}


class Consumer(Closed):
    """Keeps the books of a feed.

    Parameters
    ----------
    ring : kernels.ring.Ring
        Out of which the events come.
    receiver : ndarray of uint64
        The receiver's `control`.
    schedule : ndarray of uint64, optional
        The simulator's, if latency is to count from when a message was due.
    batch : int
        Events taken out of the ring at once, 1 to 256.
    first : int
        Number of the first message.
    symbols, capacity
        See `Replayer`.
    cpu : int, optional
        To be pinned to.
    yields : bool
        Whether to give way to others while the ring is empty, as a receiver in mode "yield" does.

    Attributes
    ----------
    books : Replayer
        What a replay keeps, with its questions; `incomplete` says whether they can be relied on.
    parse, total, since_due : Histogram
        See `consuming.Consuming`; they may be read at any time.
    """

    def __init__(
        self, ring, receiver, schedule=None, *, batch=1, first=1, symbols=None, capacity=None, cpu=None, yields=False
    ):  # fmt: skip
        if not 1 <= batch <= LONGEST_BATCH:
            raise UserError(f"a consumer takes 1 to {LONGEST_BATCH} events at once, not {batch}")
        self.books = Replayer(symbols, name="feed", capacity=capacity)
        self._ring, self._receiver = ring, receiver
        self._schedule = np.zeros(512, np.uint64) if schedule is None else schedule
        self.parse, self.total, self.since_due = (histogram.empty(BOUND) for _ in range(3))
        state = np.zeros(32, np.uint64)
        state[consuming.BATCH], state[consuming.NEXT], state[consuming.YIELDS] = batch, first, yields
        self._work = consuming.Consuming(
            state, np.zeros(16, np.uint64), np.zeros(3 * 4096, np.uint64), np.zeros(LONGEST_BATCH * 52 + 64, np.uint8),
            self.parse, self.total, self.since_due, np.zeros(256, np.uint64), np.zeros(256, np.uint64),
        )  # fmt: skip
        self._worker = Worker("consumer", self._consume, cpu)
        self._work.control[consuming.STOP] = 1
        self._consume()  # compiled now
        self._work.control[consuming.STOP] = 0

    def _consume(self):
        consuming.consume_until(self._work, self._ring, self.books.feed_state, self._schedule, self._receiver)

    def touch(self):
        """Touch all memory now, so that no first touch of a page stands between two messages later."""
        for array in leaves(self.books.feed_state) + leaves(self._work):
            array.view(np.uint8)[:: mmap.PAGESIZE] |= 0

    def start(self):
        """Begin to consume."""
        self._worker.start()

    def wait(self, timeout=None) -> bool:
        """Wait until the receiver has finished and the ring is empty; return whether that is so."""
        return self._worker.wait(timeout)

    @property
    def counters(self) -> dict[str, int]:
        """What was counted up to now, by the names in `consuming.COUNTERS`."""
        return {name: int(self._work.state[16 + i]) for i, name in enumerate(consuming.COUNTERS)}

    @property
    def gaps(self) -> list[tuple[int, int, str]]:
        """First number, number of messages and why, of each gap."""
        known = min(self.counters["gaps"], self._work.gaps.size // 3)
        return [
            (int(first), int(behind - first), _WHY[int(why)])
            for first, behind, why in self._work.gaps[: 3 * known].reshape(-1, 3)
        ]

    @property
    def incomplete(self) -> bool:
        """Whether messages are missing, of whatever instrument: then no book is known to be right any more."""
        return self.counters["incomplete_from"] != 0

    def by_place(self) -> tuple[np.ndarray, np.ndarray]:
        """Return messages by their packet's place in the receiving call, and the sum of their total ticks."""
        return self._work.places, self._work.place_sums

    def close(self):
        """Stop.

        Raises
        ------
        UserError
            The books' memory is exhausted.
        """
        _raise(self._work.control)
        self._worker.finish()
        if self._work.state[consuming.OUTCOME] != batches.MORE:
            raise UserError(f"the books are full after {self.counters['messages']:,} messages")


@kernel
def _raise(control):
    store_release(control, consuming.STOP, np.uint64(1))
