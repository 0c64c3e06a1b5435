"""One pass over a day in memory as something that can be timed: a fresh state beforehand, a checksum afterwards.

    book = passes.BookPass(data)                 # warm: the pages that it will use are touched beforehand
    cold = passes.BookPass(data, warm=False)     # they are not: page faults are part of the pass
    timing.compare({"warm": book, "cold": cold}, setup={"warm": book.prepare, "cold": cold.prepare}, ops=messages)

A pass is repeated on fresh books, as no replay can begin on books in which the day's orders stand already. "Warm" means
that the memory is there; whether its lines are still in a cache depends on its size.
"""

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels.framing import walk
from photonlab.machine import residency
from photonlab.machine.memory import as_bytes_array
from photonlab.systems.experiments import market_core
from photonlab.systems.replayer import Replayer

CHUNK = 1 << 20
"""Bytes fed at a time, as `photonlab.replay` reads them from a file."""


class Pass:
    """A pass over a day, to be prepared before each call; a call returns a checksum of the outcome.

    Parameters
    ----------
    data : bytes-like or ndarray of uint8
        Length-prefixed messages.
    warm : bool
        Touch the pages of memory that the pass will use before it is timed.

    Attributes
    ----------
    messages : int
        Whole messages in the day.
    state : NamedTuple
        Of the pass that is prepared or has run.
    """

    def __init__(self, data, *, warm=True):
        self.data = as_bytes_array(data)
        self.messages = int(walk(self.data, 0)[0])
        self.warm = warm
        self._pages = None
        self.state = None

    def prepare(self):
        """Make a fresh state, and touch its pages if the pass is to be warm."""
        pages = self.pages if self.warm else None
        self.state = None  # the old one's memory goes first
        self.state = self._fresh()
        if pages is not None:
            residency.touch(self.state, pages)

    @property
    def pages(self) -> list:
        """The pages that a pass comes to use, found by making one (see `residency.footprint`)."""
        if self._pages is None:
            self.state = self._fresh()
            self()
            self._pages = residency.footprint(self.state)
            self.state = None
        return self._pages

    @property
    def resident_bytes(self) -> int:
        """Memory that a pass uses beside the day itself, as far as the system tells."""
        return residency.resident_bytes(self.pages)

    def _fresh(self):
        raise NotImplementedError

    def __call__(self) -> int:
        """Make the pass on the state that was prepared; returns a checksum."""
        raise NotImplementedError


class BookPass(Pass):
    """The full book: every instrument's orders, levels with their volume, best bid and offer at all times.

    Parameters
    ----------
    data, warm
        See `Pass`.
    look_ahead : bool
        As `Replayer` takes it.
    chunk : int
        Bytes fed at a time.
    """

    def __init__(self, data, *, warm=True, look_ahead=True, chunk=CHUNK):
        super().__init__(data, warm=warm)
        self.look_ahead, self.chunk = look_ahead, chunk
        self.replayer = None

    def _fresh(self):
        self.replayer = Replayer(look_ahead=self.look_ahead)
        self.replayer.feed(b"")  # compile, or load, outside the time
        return self.replayer.feed_state

    def __call__(self) -> int:
        """Replay the day; returns a checksum of the counters that the books keep anyway."""
        replayer, data = self.replayer, self.data
        for begin in range(0, data.size, self.chunk):
            replayer.feed(data[begin : begin + self.chunk])
        return self.checksum()

    def checksum(self) -> int:
        """Return a number that depends on what the books count anyway; `Replayer.checksum` looks at every order."""
        tally = self.state.book.tally
        return fold(self.replayer.messages, tally[books.ORDERS], tally[books.LEVELS], tally[books.BEST_CHANGES])


class CorePass(Pass):
    """The loop that claim R1 was measured with (see `photonlab.systems.experiments.market_core`)."""

    def __init__(self, data, *, warm=True, slots=1 << 24):
        self.slots = slots
        super().__init__(data, warm=warm)

    def _fresh(self):
        return market_core.make_core(self.slots)

    def __call__(self) -> int:
        """Apply the day; returns a checksum of position and live orders."""
        _, position = market_core.run(self.state, self.data, np.uint64(0))
        return fold(position, market_core.live_orders(self.state))


def fold(*numbers) -> int:
    """Return one number of 52 bits that depends on all of some whole numbers and on their order."""
    total = 0
    for number in numbers:
        total = (total * 1_000_003 + int(number)) % (1 << 52)
    return total
