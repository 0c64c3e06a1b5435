"""A replay that can stop after any byte and go on: bytes in, books and counters kept, nothing lost or counted twice."""

import numpy as np

from photonlab.errors import ItchFormatError, UserError
from photonlab.kernels import book as books
from photonlab.kernels.itch import LENGTH_BY_TYPE, MAX_LENGTH
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import batch
from photonlab.systems import message_loop as loop
from photonlab.systems.findings import Findings

_PREFIX = 2
_KEPT = 2 * (MAX_LENGTH + _PREFIX)  # bytes behind a zero prefix that tell what follows


class Replayer(Findings):
    """Books of all instruments of one feed, built from chunks of bytes.

    Parameters
    ----------
    symbols : str or iterable of str, optional
        Keep the books of these instruments only; all messages are counted all the same.
    name : str
        What the input is called in errors, such as a file's name.
    look_ahead : bool
        Ask for a batch's cache lines before it is applied.

    Attributes
    ----------
    feed_state : message_loop.Feed
        The arrays that all state lives in.
    position : int
        Bytes accounted to messages, prefixes and the end-of-session marker.
    ended : bool
        Whether a length of zero has ended the session.
    """

    def __init__(self, symbols=None, *, name="input", look_ahead=True, capacity=None):
        self.name = name
        self.symbols = checked_symbols(symbols)
        self.feed_state = loop.make_feed(_reserve(capacity), self.symbols)
        self.position = 0
        self.ended = False
        self.after_end = 0
        self.short_tail = 0
        self._look_ahead = bool(look_ahead)
        self._rest = bytearray()  # a message that the last chunk broke off
        self._head = bytearray()  # the first bytes, for an error that shows them
        self._beyond = bytearray()  # the first bytes behind the end of the session

    def feed(self, chunk):
        """Apply the next bytes of the feed.

        Parameters
        ----------
        chunk : bytes-like or ndarray of uint8
            Of any length; it may break off inside a message.

        Raises
        ------
        ItchFormatError
            If the bytes cannot be ITCH from some offset on; what came before has been applied.
        UserError
            If the books' memory is exhausted.
        """
        data = as_bytes_array(chunk)
        self._note_head(data)
        begin = 0
        while self._rest and not self.ended and begin < data.size:  # finish the message that was broken off
            known = len(self._rest) >= _PREFIX
            wanted = _PREFIX + int.from_bytes(self._rest[:_PREFIX], "big") if known else _PREFIX
            taken = min(wanted - len(self._rest), data.size - begin)
            self._rest += data[begin : begin + taken].tobytes()
            begin += taken
            if len(self._rest) == _PREFIX or (known and len(self._rest) == wanted):
                whole = bytes(self._rest)
                del self._rest[: self._run(as_bytes_array(whole), 0)]
        if not self.ended and not self._rest:
            begin = self._run(data, begin)
            if not self.ended:
                self._rest += data[begin:].tobytes()
                return
        if self.ended:
            self._note_after_end(data[begin:])

    def _note_head(self, data):
        if len(self._head) < _KEPT:
            self._head += data[: _KEPT - len(self._head)].tobytes()

    def _run(self, data, begin):
        """Run the kernel over data[begin:]; return where it stopped."""
        at, outcome = self._apply(data, np.uint64(begin), np.uint64(data.size))
        self.position += int(at) - begin
        if outcome == batch.END_OF_SESSION:
            self.ended = True
        elif outcome == batch.IMPOSSIBLE_LENGTH:
            self._fail_on_length(int.from_bytes(data[int(at) : int(at) + _PREFIX].tobytes(), "big"))
        elif outcome == loop.FULL:
            raise self.full(self.position)
        return int(at)

    def full(self, position) -> UserError:
        """Return what to raise when there is no more memory for the books."""
        return UserError(
            f"{self.name}: the books are full at offset {position}: {self.live_orders:,} live orders; "
            "more address space is needed than could be reserved"
        )

    def _apply(self, data, begin, end):
        """Call the loop."""
        return loop.replay(self.feed_state, data, begin, end, self._look_ahead)

    def _note_after_end(self, data):
        self.after_end += data.size
        if len(self._beyond) < _KEPT:
            self._beyond += data[: _KEPT - len(self._beyond)].tobytes()
            self._fail_on_zero_prefixes()

    def _fail_on_zero_prefixes(self):
        """Refuse a file that writes a length of zero before every message (seen in the wild)."""
        beyond = self._beyond
        length = int(LENGTH_BY_TYPE[beyond[0]]) if beyond else 0
        if length and beyond[length : length + _PREFIX] == b"\0\0":
            where = self.position - _PREFIX
            raise ItchFormatError(
                f"{self.name}: offset {where}: a length of 0 stands before a message of type {chr(beyond[0])!r}, and "
                "before the next one: this file writes the prefix 00 00 where the length of each message is expected"
            )

    def _fail_on_length(self, length):
        good = self._good_messages()
        expected = f"expected a length of 1 to {batch.LONGEST} in 2 bytes and then a message, found {length}"
        if not good:
            raise ItchFormatError(f"{self.name}: not a file of ITCH 5.0: offset {self.position}: {expected}")
        where = f"offset {self.position}, after {self.messages:,} messages"
        raise ItchFormatError(f"{self.name}: damaged at {where}: {expected}")

    def _good_messages(self):
        state = self.feed_state
        odd = int(state.anomalies[batch.UNKNOWN_TYPE] + state.anomalies[batch.BAD_LENGTH])
        return self.messages - odd

    def close(self):
        """Account for the last bytes, and refuse an input in which nothing was ITCH.

        Raises
        ------
        ItchFormatError
            If the input was empty, or held no message of a known type and length and did not end as a session does.
        """
        self.short_tail = len(self._rest)
        if not self._head:
            raise ItchFormatError(f"{self.name}: empty: expected ITCH 5.0 messages, each behind its length in 2 bytes")
        if self._good_messages() or (self.ended and not self.after_end):
            return
        if len(self._rest) > _PREFIX and LENGTH_BY_TYPE[self._rest[2]] == int.from_bytes(self._rest[:2], "big"):
            return  # cut off within its first message
        shown = bytes(self._head[:8]).hex(" ")
        raise ItchFormatError(
            f"{self.name}: not a file of ITCH 5.0: offset 0: expected the length of a message in 2 bytes and then its "
            f"type, found {shown}"
        )


def checked_symbols(symbols):
    """Return the symbols chosen, a name or several, as a list; None for all.

    Raises
    ------
    UserError
        If one cannot be a symbol.
    """
    symbols = [symbols] if isinstance(symbols, str) else symbols
    return None if symbols is None else [_checked(symbol) for symbol in symbols]


def _checked(symbol):
    if not isinstance(symbol, str) or not 1 <= len(symbol) <= 8 or not symbol.isascii() or symbol != symbol.strip():
        raise UserError(f"a symbol has 1 to 8 ASCII characters, not {symbol!r}")
    return symbol


def _reserve(capacity):
    """Return empty books with as much address space as the system will give, or of the capacity asked for."""
    if capacity is not None:
        return books.make_book(**capacity)
    for bits in (24, 22, 20, 18):
        try:
            return books.make_book(1 << bits, 1 << bits, 1 << (bits - 2))
        except MemoryError:
            continue
    raise UserError("not enough address space for order books: a limit on virtual memory (ulimit -v) is too low")
