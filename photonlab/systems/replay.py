"""Replay a file of ITCH 5.0 into order books: `photonlab.replay(path)`."""

import difflib
import time

import numpy as np
import pandas as pd

from photonlab.errors import ItchFormatError, UserError
from photonlab.kernels import book_views
from photonlab.systems import message_loop as loop
from photonlab.systems.calling import CallingReplayer
from photonlab.systems.inputs import Input
from photonlab.systems.replayer import Replayer
from photonlab.systems.sharded import Shards
from photonlab.systems.sifted import SiftedReplayer


def replay(path, symbols=None, progress=None, *, cores=1, salvage=False, session=None, lines=None, **calls):
    """Replay a file of ITCH 5.0: messages behind their length in 2 bytes (NASDAQ's BinaryFILE), or a capture of them.

    Parameters
    ----------
    path : path-like
        A file or a pipe, or "-" for standard input; plain, gzip or zstd, or a pcap or pcapng with MoldUDP64.
    symbols : str or iterable of str, optional
        Keep the books of these instruments only. All messages are counted all the same.
    progress : callable, optional
        Called with (bytes read, size of the file or 0) after every chunk.
    cores : int
        Replay on so many cores, each with a part of the instruments (`photonlab.systems.sharded`).
    salvage : bool
        Take what stands before the damage of a damaged gzip or zstd for all; `Replay.damage` says so.
    session : str, optional
        Of a capture, the session of MoldUDP64 to follow; by default the first one.
    lines : iterable of str, optional
        Of a capture, the lines to follow, as "239.1.1.1:30001"; by default all that carry the session.
    **calls
        Functions of one's own that the loop calls, and what they keep: on_event, on_bbo, on_time, every, start,
        end, state; see `photonlab.systems.calling.CallingReplayer`.

    Returns
    -------
    Replay

    Raises
    ------
    ItchFormatError
        If the file is empty or no ITCH, or damaged; the message names the offset and what was expected.
    UserError
        If it cannot be read, or a chosen symbol does not occur in it.
    """
    if cores < 1 or (cores > 1 and (calls or symbols is not None)):
        raise UserError(f"cores={cores}: more than one core replays all symbols, and calls no functions")
    with Input(path, session=session, lines=lines) as source:
        if calls:
            replayer = CallingReplayer(symbols=symbols, name=source.name, **calls)
        elif cores > 1:
            replayer = Shards(cores, name=source.name)
        else:
            replayer = SiftedReplayer(symbols, name=source.name)
        seconds = feed_all(replayer, source, salvage, progress)
    result = Replay(replayer, seconds)
    for symbol in replayer.symbols or ():
        result.locate(symbol)
    return result


def feed_all(replayer, source, salvage=False, progress=None) -> float:
    """Feed a replayer with all that an input has; return the seconds that it took, without compilation.

    Parameters
    ----------
    replayer : Replayer
    source : Input
    salvage : bool
        Whether a damaged input is good for what stands before the damage.
    progress : callable, optional
        Called with (stored bytes read, bytes in all or 0) after every chunk.

    Raises
    ------
    UserError
        If the input cannot be read on, or is damaged.
    """
    replayer.feed(b"")  # compile, or load from the cache, outside the time that is reported
    started = time.perf_counter()
    try:
        tell = (lambda: progress(source.done, source.size)) if progress else None
        chunks = source.chunks(getattr(replayer, "next_buffer", None))
        if isinstance(replayer, Shards):
            replayer.draw(chunks, tell)
        else:
            for chunk in chunks:
                replayer.feed(chunk)
                if tell:
                    tell()
    except OSError as error:
        read = f"after {replayer.messages:,} messages"
        raise UserError(f"{source.name}: cannot be read {read}: {error.strerror or error}") from None
    if source.damage and not (salvage and replayer.messages):
        kind, _, what = source.damage.partition(": ")
        hint = "; they can be had with salvage=True, or --salvage" if replayer.messages and not salvage else ""
        raise UserError(f"{source.name}: damaged {kind} after {replayer.messages:,} messages: {what}{hint}")
    replayer.close()
    replayer.damage = source.damage
    replayer.packets, replayer.capture = source.counters, source.capture
    return time.perf_counter() - started


class Replay:
    """The books as a replay left them, and what was counted on the way.

    Prices are integers in units of 0.0001, as the exchange sends them.

    Attributes
    ----------
    messages, bytes, live_orders : int
    seconds, messages_per_second : float
        Of reading and replaying, without compilation.
    counts : dict of str to int
        Messages by type.
    unknown_references : dict of str to int
        Messages by type that named an order which was not live.
    anomalies : dict of str to int
        Everything out of order by kind; see `Replayer.anomalies`.
    packets : dict of str to int
        Of a capture: what became of its packets.
    capture : dict
        Of a capture: its session, lines, times, gaps, and what was out of order; empty for other inputs.
    damage : str
        What ended the input before its end; empty for nothing.
    checksum : str
        Equal if and only if books and counters are (but for a chance of 2^-64).
    """

    def __init__(self, replayer, seconds):
        self._replayer = replayer
        self._state = replayer.feed_state
        self._books = [feed.book for feed in replayer.feeds]
        self.messages = replayer.messages
        self.bytes = replayer.position + replayer.short_tail + replayer.after_end
        self.seconds = seconds
        self.messages_per_second = self.messages / seconds if seconds else 0.0
        self.counts = replayer.counts
        self.unknown_references = replayer.unknown_references
        self.anomalies = replayer.anomalies
        self.packets, self.capture, self.damage = replayer.packets, replayer.capture, replayer.damage
        self.live_orders = replayer.live_orders
        self.checksum = replayer.checksum()
        names = self._state.names
        self._locates = {_text(names[locate]): int(locate) for locate in np.flatnonzero(names)}

    def __repr__(self):
        return f"<Replay of {self._replayer.name}: {self.messages:,} messages, {self.live_orders:,} live orders>"

    def summary(self) -> dict:
        """Return the facts of the replay as a dict of plain values, as ``photonlab replay --json`` prints them."""
        names = "messages bytes seconds messages_per_second counts anomalies unknown_references live_orders checksum"
        facts = {name: getattr(self, name) for name in names.split()}
        return facts | {name: getattr(self, name) for name in ("packets", "capture", "damage") if getattr(self, name)}

    def symbols(self) -> list[str]:
        """Return the names of all instruments that were named, sorted."""
        return sorted(self._locates)

    def locate(self, symbol) -> int:
        """Return a symbol's stock locate.

        Raises
        ------
        UserError
            If the symbol does not occur.
        """
        if symbol in self._locates:
            return self._locates[symbol]
        near = difflib.get_close_matches(str(symbol), self._locates, 3, 0.5)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        if not near and self._replayer.symbols is None:
            hint = f"; it names {len(self._locates):,} symbols"
        raise UserError(f"{self._replayer.name}: no symbol {symbol!r}{hint}")

    def bbo(self, symbol=None) -> pd.DataFrame:
        """Return the best bid and offer.

        Parameters
        ----------
        symbol : str, optional
            One instrument; by default every one that has an order.

        Returns
        -------
        DataFrame
            Indexed by symbol: locate, bid, bid_shares, ask, ask_shares, volume; missing where a side is empty.
        """
        rows = np.zeros((loop.LOCATES, 5), np.uint64)
        for book in self._books:
            book_views.best_prices(book, rows)
        locates = np.flatnonzero(rows[:, 0]) if symbol is None else np.array([self.locate(symbol)])
        rows = rows[locates]
        frame = pd.DataFrame({"locate": locates})
        for column, name, side in ((1, "bid", 1), (2, "bid_shares", 1), (3, "ask", 2), (4, "ask_shares", 2)):
            there = (rows[:, 0] & np.uint64(side)) != 0
            frame[name] = pd.array(rows[:, column].astype(np.int64), dtype="Int64")
            frame.loc[~there, name] = pd.NA
        frame["volume"] = self._state.volume[locates]
        frame.index = pd.Index([_text(self._state.names[locate]) for locate in locates], name="symbol", dtype="str")
        return frame if symbol is not None else frame.sort_index(kind="stable")

    def depth(self, symbol, levels=10) -> pd.DataFrame:
        """Return a book's price levels.

        Parameters
        ----------
        symbol : str
        levels : int or None
            Levels of each side at most; None for all.

        Returns
        -------
        DataFrame
            Columns side ("bid" or "ask"), level (1 is the best), price, shares, orders.
        """
        if levels is not None and levels < 1:
            raise UserError(f"levels must be at least 1, not {levels}")
        return self._both_sides(symbol, book_views.depth, levels, ["price", "shares", "orders"], "level")

    def orders(self, symbol) -> pd.DataFrame:
        """Return a book's orders in queue order.

        Parameters
        ----------
        symbol : str

        Returns
        -------
        DataFrame
            Columns side, position (1 is next to trade on that side), price, reference, shares.
        """
        return self._both_sides(symbol, book_views.queue, None, ["price", "reference", "shares"], "position")

    def _both_sides(self, symbol, view, limit, columns, rank):
        locate = self.locate(symbol)
        book = self._books[locate % len(self._books)]
        frames = []
        for offset, side in enumerate(("bid", "ask")):
            number = np.uint64(2 * locate + offset)
            count = int(view(book, number, np.zeros((0, 3), np.uint64)))
            rows = np.zeros((count if limit is None else min(count, limit), 3), np.uint64)
            if rows.size:
                view(book, number, rows)
            frame = pd.DataFrame(rows, columns=columns)
            frame.insert(0, rank, np.arange(1, len(frame) + 1))
            frame.insert(0, "side", pd.array([side] * len(frame), dtype="str"))
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)


def _text(word):
    """Return a symbol from its 8 bytes as a big-endian word."""
    return int(word).to_bytes(8, "big").decode("latin-1").rstrip(" ")


__all__ = ["ItchFormatError", "Replay", "Replayer", "replay"]
