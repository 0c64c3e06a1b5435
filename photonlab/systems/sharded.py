"""One day on several cores: each has the books of a part of the instruments.

Instrument n belongs to core n modulo their number. The day is taken in pieces. A core that has little to do reads and
frames the next piece, dealing its messages out to all (`systems/dealt_loop.py`); otherwise it applies what it was
dealt, piece by piece in their order. So no thread beside the cores' is needed, and who has the lighter books reads and
frames more.

The result is that of one core, whatever the threads do, provided that the feed keeps its word: a reference belongs to
one instrument, and every message names the instrument of its order. A message that does not is an unknown reference on
the core that it went to, and is counted so.
"""

import contextlib
import threading
from collections import deque

import numpy as np

from photonlab.kernels import book_handle, book_views
from photonlab.machine.handles import make_handle
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import batch, dealt_loop, shard_loop
from photonlab.systems import message_loop as loop
from photonlab.systems.findings import Findings
from photonlab.systems.replayer import Replayer

PIECE = 1 << 20
"""Bytes of a piece at most."""

PIECES = 4
"""Pieces by core that may be under way."""

_ENOUGH = 2  # pieces that wait for a core: with fewer it deals
_HEADROOM = 4096  # for the message that the piece before broke off
_SLACK = 64
_BOOKLESS = {"pages": 16, "levels": 16, "tree_nodes": 64}
_PATIENCE = 1  # seconds to wait for the other cores after an error: one may be reading from a pipe


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


class Piece:
    """Bytes and whose messages they are, in memory that is used again when the last core has done with them."""

    def __init__(self, cores):
        self.memory = np.zeros(_HEADROOM + PIECE + _SLACK, np.uint8)  # touched here: a page's first touch is dear
        self.hands = dealt_loop.make_hands(cores, self.memory.size)
        self.fresh = self.memory[_HEADROOM : _HEADROOM + PIECE]
        self.size, self.at, self.readers = 0, 0, 0

    def fill(self, chunk):
        """Take a copy, unless the bytes lie here already."""
        self.size = chunk.size
        if chunk.base is not self.memory:
            self.fresh[: chunk.size] = chunk


class Dealer(Replayer):
    """What all cores have in common: where the messages are, how many of each type, and what is wrong with the bytes.

    It has no books; a message that a piece broke off is put before the next piece.
    """

    def __init__(self, **options):
        super().__init__(**options | {"capacity": _BOOKLESS})
        self._hands = None

    def deal(self, piece):
        """Frame a piece with empty hands, the one behind that of the last call."""
        self._hands, rest = piece.hands, bytes(self._rest)
        begin, end = _HEADROOM - len(rest), _HEADROOM + piece.size
        piece.at = self.position - begin  # of the piece's first byte of memory in the input
        self._note_head(piece.fresh[: piece.size])
        self._rest.clear()
        if not self.ended:
            piece.memory[begin:_HEADROOM] = np.frombuffer(rest, np.uint8)
            begin = self._run(piece.memory[:end], begin)
            if not self.ended:
                self._rest += piece.memory[begin:end].tobytes()
        if self.ended:
            self._note_after_end(piece.memory[begin:end])

    def _apply(self, data, begin, end):
        feed = self.feed_state
        return dealt_loop.deal(self._hands, feed.counts, feed.anomalies, data, begin, end)


class Part(Replayer):
    """The books of one core's instruments."""

    def play(self, piece, core):
        """Apply what a core was dealt of a piece."""
        hands, end = piece.hands, np.uint64(_HEADROOM + piece.size)
        cards = hands.cards[core]
        played, outcome = dealt_loop.play(self.feed_state, piece.memory, end, cards, hands.sizes[core])
        if outcome == loop.FULL:
            at = piece.at + (int(cards[played]) & (dealt_loop.LARGEST - 1))
            raise self.full(at)


class _Round:
    """Chunks that the cores are at, and who does what; everything here is under one lock."""

    def __init__(self, cores, chunks, pieces):
        self.changed = threading.Condition()
        self.chunks, self.free = chunks, list(pieces)
        self.dealt = [deque() for _ in range(cores)]  # by core, pieces to apply
        self.dealing = self.ended = self.stopped = False
        self.error = None

    def next(self, core):
        """Wait for something to do: a piece and whether it is to be dealt; None for nothing any more."""
        mine = self.dealt[core]
        with self.changed:
            while not self.stopped:
                if not self.dealing and not self.ended and self.free and len(mine) < _ENOUGH:
                    self.dealing = True
                    return self.free.pop(), True
                if mine:
                    return mine.popleft(), False
                if self.ended and not self.dealing:
                    return None
                self.changed.wait()
        return None

    def publish(self, piece, ended, error=None):
        """Hand a piece to all cores; it is the last one if the input ended or something is wrong with it."""
        with self.changed:
            self.dealing, self.ended = False, ended
            self.error = self.error or error
            piece.readers = len(self.dealt)
            for mine in self.dealt:
                mine.append(piece)
            self.changed.notify_all()

    def done(self, piece):
        """Take a piece back from a core."""
        with self.changed:
            piece.readers -= 1
            if not piece.readers:
                self.free.append(piece)
                self.changed.notify_all()

    def stop(self, error=None):
        """End all work as it stands."""
        with self.changed:
            self.stopped, self.error = True, self.error or error
            self.changed.notify_all()


class Shards(Findings):
    """A replayer on several cores, with the face of `photonlab.systems.replayer.Replayer`.

    Parameters
    ----------
    cores : int
        Threads, that of the caller among them, and parts of the instruments.
    **options
        Of `Replayer`, without symbols.

    Attributes
    ----------
    parts : list of Part
        By core.
    """

    symbols = None

    def __init__(self, cores, **options):
        self.parts = [Part(**options) for _ in range(cores)]
        self.name = self.parts[0].name
        self._dealer = Dealer(name=self.name)
        self._pieces, self._lent = [], None

    def feed(self, chunk):
        """Apply the next bytes of the feed on all cores; see `Replayer.feed`."""
        data = as_bytes_array(chunk)
        self.draw(data[begin : begin + PIECE] for begin in range(0, data.size, PIECE))

    def next_buffer(self) -> np.ndarray:
        """Return memory to read the next chunk that `draw` takes into: from there it is not copied."""
        return self._lent.fresh

    def draw(self, chunks, tell=None):
        """Apply all that an iterator gives: arrays of up to `PIECE` bytes, each good until the next one is taken.

        Parameters
        ----------
        chunks : iterator
            Of arrays of uint8. The cores take from it in turn, never two at once.
        tell : callable, optional
            Called without arguments now and then, in the caller's thread.

        Raises
        ------
        Exception
            As `Replayer.feed`, and what the iterator raises; everything before has been applied.
        """
        self._prepare()
        work = _Round(len(self.parts), chunks, self._pieces)
        threads = [
            threading.Thread(target=self._work, args=(work, core), daemon=True, name=f"photonlab-core-{core}")
            for core in range(1, len(self.parts))
        ]
        for thread in threads:
            thread.start()
        patience = _PATIENCE
        try:
            self._work(work, 0, tell)
            patience = None if not work.stopped else _PATIENCE
        finally:
            if patience is not None:
                work.stop()
            for thread in threads:
                thread.join(patience)
            with contextlib.suppress(ValueError, AttributeError):  # taken from just now; no generator
                chunks.close()
        if work.error is not None:
            raise work.error

    def _prepare(self):
        """Compile, or load, in this thread, and make what is used again and again."""
        if not self._pieces:
            self._pieces = [Piece(len(self.parts)) for _ in range(PIECES * len(self.parts))]
            self._dealer.deal(self._pieces[0])
            for core, part in enumerate(self.parts):
                part.play(self._pieces[0], core)

    def _work(self, work, core, tell=None):
        """Do what there is to do until all is done; what goes wrong ends it for all."""
        try:
            while (job := work.next(core)) is not None:
                piece, to_deal = job
                if to_deal:
                    self._deal(work, piece)
                else:
                    self.parts[core].play(piece, core)
                    work.done(piece)
                if tell:
                    tell()
        except Exception as error:
            work.stop(error)

    def _deal(self, work, piece):
        """Take the next chunk and deal it; what is wrong with it counts when all before it is applied."""
        self._lent, ended, error = piece, True, None
        piece.size, piece.hands.sizes[:] = 0, 0
        try:
            chunk = next(work.chunks, None)
            if chunk is not None:
                ended = False
                piece.fill(chunk)
                self._dealer.deal(piece)
        except Exception as wrong:
            ended, error = True, wrong
        work.publish(piece, ended, error)

    def close(self):
        """Account for the last bytes; see `Replayer.close`."""
        self._dealer.close()

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
        dealt = self._dealer.feed_state
        for seen in (batch.UNKNOWN_TYPE, batch.BAD_LENGTH):
            added["anomalies"][seen] = dealt.anomalies[seen]
        return feeds[0]._replace(counts=dealt.counts, **added)

    @property
    def position(self) -> int:
        """See `Replayer.position`."""
        return self._dealer.position

    @property
    def short_tail(self) -> int:
        """Bytes of a message that was cut off."""
        return self._dealer.short_tail

    @property
    def after_end(self) -> int:
        """Bytes behind the end of the session."""
        return self._dealer.after_end

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
