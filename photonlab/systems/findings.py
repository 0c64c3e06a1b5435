"""What a replay has found, on one core or on several: counts, anomalies, a checksum of everything."""

import numpy as np

from photonlab.kernels import book as books
from photonlab.kernels import book_views
from photonlab.systems import message_loop as loop


class Findings:
    """Facts read from a replay's state.

    Attributes
    ----------
    feed_state : message_loop.Feed
        Counters of the whole replay; the books are its own.
    short_tail, after_end : int
        Bytes of a message that was cut off, and behind the end of the session.
    """

    @property
    def messages(self) -> int:
        """Messages seen, of any kind."""
        return int(self.feed_state.counts.sum())

    @property
    def live_orders(self) -> int:
        """Orders in all books now."""
        return sum(int(feed.book.tally[books.ORDERS]) for feed in self.feeds)

    @property
    def feeds(self) -> list[loop.Feed]:
        """The states that have the books, by stock locate modulo their number."""
        return [self.feed_state]

    @property
    def counts(self) -> dict[str, int]:
        """Messages by type, of the types that occurred."""
        return by_type(self.feed_state.counts)

    @property
    def unknown_references(self) -> dict[str, int]:
        """Messages by type that named an order which was not live."""
        return by_type(self.feed_state.unknown_reference)

    @property
    def anomalies(self) -> dict[str, int]:
        """What was out of order, each kind with how often it was met; `short_tail` and `after_end` are bytes."""
        state = self.feed_state
        found = {"unknown_reference": int(state.unknown_reference.sum())}
        found |= {name: int(state.anomalies[i]) for i, name in enumerate(loop.ANOMALIES)}
        return found | {"short_tail": self.short_tail, "after_end": self.after_end}

    def checksum(self) -> str:
        """Return 16 hexadecimal digits that depend on every order's place and shares, every counter and all volumes."""
        state = self.feed_state
        value = np.uint64(self.digest())  # a Python int would be signed to the next kernel
        for array in (state.counts, state.unknown_reference, state.anomalies, state.volume):
            value = np.uint64(book_views.fold(value, array))
        return f"{int(value):016x}"

    def digest(self) -> int:
        """Return the digest of all books."""
        return book_views.digest(self.feed_state.book)


def by_type(counts) -> dict[str, int]:
    """Return the non-zero counts by type; a byte that is no letter as a backslash, x and 2 digits.

    Parameters
    ----------
    counts : ndarray of uint64, shape (256,)
    """
    return {_letter(byte): int(counts[byte]) for byte in np.flatnonzero(counts).tolist()}


def _letter(byte):
    return chr(byte) if 0x21 <= byte <= 0x7E else f"\\x{byte:02x}"
