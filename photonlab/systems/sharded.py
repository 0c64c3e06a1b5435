"""One day on several cores: each has the books of a part of the instruments, and reads all of the feed to find them.

Instrument n belongs to core n modulo the number of cores. What every core sees (messages by type, framing, the session)
is counted by the first one; the rest adds up. The result is that of one core, provided that the feed keeps its word: a
reference belongs to one instrument, and every message names the instrument of its order. A message that does not is an
unknown reference on the core that it went to, and is counted so.
"""

import queue
import threading

import numpy as np

from photonlab.kernels import book_handle, book_views
from photonlab.machine.handles import make_handle
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import batch, shard_loop
from photonlab.systems import message_loop as loop
from photonlab.systems.findings import Findings
from photonlab.systems.replayer import Replayer

AHEAD, PIECE = 8, 1 << 20
"""Pieces that may be under way, and their bytes."""


class Piece:
    """Bytes on their way to all cores, in memory that is used again when the last one has done with them."""

    def __init__(self):
        self.memory = np.zeros(PIECE, np.uint8)  # touched here: a page's first touch is dear
        self.data, self.readers, self.lock = self.memory[:0], 0, threading.Lock()

    def fill(self, data, readers):
        """Take a copy, as the caller may use its buffer again; bytes that lie here already stay."""
        self.data, self.readers = self.memory[: data.size], readers
        if data.base is not self.memory:
            self.data[:] = data

    def done(self) -> bool:
        """Note that a reader has done with it; return whether that was the last one."""
        with self.lock:
            self.readers -= 1
            return self.readers == 0


class Shard(Replayer):
    """A replayer that applies what is about its part of the instruments, and counts everything.

    Parameters
    ----------
    number, shards : int
        Instruments of which the stock locate modulo `shards` is `number`.
    **options
        Of `Replayer`, without symbols.
    """

    def __init__(self, number, shards, **options):
        super().__init__(**options)
        mine = np.arange(loop.LOCATES) % shards == number
        self.feed_state.choice[:] = np.where(mine, loop.WANTED, loop.UNWANTED)

    def _apply(self, data, begin, end):
        return shard_loop.replay(self.feed_state, data, begin, end)


class Shards(Findings):
    """A replayer on several cores, with the face of `photonlab.systems.replayer.Replayer`.

    Parameters
    ----------
    cores : int
        Threads, and parts of the instruments.
    **options
        Of `Replayer`, without symbols.

    Attributes
    ----------
    parts : list of Shard
        By core.
    """

    symbols = None

    def __init__(self, cores, **options):
        self.parts = [Shard(core, cores, **options) for core in range(cores)]
        self.name = self.parts[0].name
        self._queues = [queue.SimpleQueue() for _ in self.parts]
        self._free = queue.SimpleQueue()
        self._lent = None
        self._errors = [None] * cores
        self._threads = []

    def feed(self, chunk):
        """Hand the next bytes to all cores; see `Replayer.feed`. An error may come with a later chunk."""
        data = as_bytes_array(chunk)
        self._start()
        for begin in range(0, data.size, PIECE):
            lent, self._lent = self._lent, None
            piece = lent if lent is not None else self._free.get()
            piece.fill(data[begin : begin + PIECE], len(self.parts))
            for waiting in self._queues:
                waiting.put(piece)
        self._raise()

    def _start(self):
        """Compile, or load, in this thread, and start those of the cores."""
        if not self._threads:
            for part in self.parts:
                part.feed(b"")
            for _ in range(AHEAD):
                self._free.put(Piece())
            self._threads = [
                threading.Thread(target=self._work, args=(core,), daemon=True, name=f"photonlab-core-{core}")
                for core in range(len(self.parts))
            ]
            for thread in self._threads:
                thread.start()

    def next_buffer(self) -> np.ndarray:
        """Return memory of `PIECE` bytes to read the next chunk into: fed from there it is not copied."""
        if self._lent is None:
            self._start()
            self._lent = self._free.get()
        return self._lent.memory

    def _work(self, core):
        """Feed one part; after an error only take what comes, so that nobody waits for this core."""
        while (piece := self._queues[core].get()) is not None:
            if self._errors[core] is None:
                try:
                    self.parts[core].feed(piece.data)
                except BaseException as error:
                    self._errors[core] = error
            if piece.done():
                self._free.put(piece)

    def _raise(self):
        for error in self._errors:
            if error is not None:
                self._join()
                raise error

    def _join(self):
        for waiting in self._queues:
            waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._threads, self._queues = [], []

    def close(self):
        """Wait for all cores, and account for the last bytes; see `Replayer.close`."""
        if self._threads:
            self._join()
        self._raise()
        for part in self.parts:
            part.close()

    # -- what there is to know -------------------------------------------------------------------------------------

    @property
    def feeds(self) -> list[loop.Feed]:
        """The states that have the books, by stock locate modulo their number."""
        return [part.feed_state for part in self.parts]

    @property
    def feed_state(self) -> loop.Feed:
        """The counters of all cores together; its book is that of the first core."""
        feeds = self.feeds
        added = {
            name: np.sum([getattr(feed, name) for feed in feeds], axis=0, dtype=np.uint64)
            for name in ("unknown_reference", "anomalies", "volume", "names")
        }
        for seen_by_all in (batch.UNKNOWN_TYPE, batch.BAD_LENGTH):
            added["anomalies"][seen_by_all] = feeds[0].anomalies[seen_by_all]
        return feeds[0]._replace(**added)

    @property
    def position(self) -> int:
        """See `Replayer.position`; every core has walked the same bytes."""
        return self.parts[0].position

    @property
    def short_tail(self) -> int:
        """Bytes of a message that was cut off."""
        return self.parts[0].short_tail

    @property
    def after_end(self) -> int:
        """Bytes behind the end of the session."""
        return self.parts[0].after_end

    def digest(self) -> int:
        """Return the digest of all books, the same as that of one core."""
        value, feeds = np.uint64(0), self.feeds
        handles = [make_handle(feed.book) for feed in feeds]
        for locate in np.flatnonzero(np.any([named(feed.book) for feed in feeds], axis=0)).tolist():
            sides = np.array([2 * locate, 2 * locate + 1], np.uint64)
            value = np.uint64(book_handle.digest_sides(handles[locate % len(handles)], sides, value))
        return value


def named(book) -> np.ndarray:
    """Return which instruments have an order, bool by locate."""
    rows = np.zeros((loop.LOCATES, 5), np.uint64)
    book_views.best_prices(book, rows)
    return rows[:, 0] != 0
