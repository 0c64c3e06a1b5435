"""The parts of the engine's work, for engines that stamp each of them, or end after one: the same code, by their type.

`mark` and `reaches` stand in the engine's code between the parts. For an `engine.Engine` nothing is left of them when
it is compiled: it stamps nothing and does all. So what is measured of a variant is the engine's own code.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels.level_book import LevelBooks
from photonlab.machine import clock
from photonlab.machine.choice import by_type
from photonlab.machine.jit import kernel

PARTS = ("decode", "book", "decide", "encode")
BEGUN, DECODED, BOOKED, DECIDED, ENCODED, SENT = (np.uint64(n) for n in range(6))
"""Where a tick's parts end, in their order; SENT is for who sends the order."""

MARKS = np.uint64(6)
_0, _1 = np.uint64(0), np.uint64(1)


class StampedEngine(NamedTuple):
    """An engine that stamps the parts of each tick.

    Attributes
    ----------
    books, state
        As of `engine.Engine`.
    stamps : uint64[1 + 6 * n]
        Where the current tick's stamps begin, less 1; then stamps, `MARKS` a tick.
    """

    books: LevelBooks
    state: np.ndarray
    stamps: np.ndarray


class Decoding(NamedTuple):
    """An engine that decodes ticks and does nothing with them; attributes as of `engine.Engine`."""

    books: LevelBooks
    state: np.ndarray


class Booking(NamedTuple):
    """An engine that decodes ticks and updates books; attributes as of `engine.Engine`."""

    books: LevelBooks
    state: np.ndarray


class Deciding(NamedTuple):
    """An engine that does all but write orders; attributes as of `engine.Engine`."""

    books: LevelBooks
    state: np.ndarray


def stamped(engine, ticks=1) -> StampedEngine:
    """Return an engine that shares its books and state with another and has room for stamps of some ticks."""
    return StampedEngine(engine.books, engine.state, np.zeros(1 + int(MARKS) * ticks, np.uint64))


def stamps_of(engine) -> np.ndarray:
    """Return the stamps of a `StampedEngine`, a row a tick."""
    return engine.stamps[1:].reshape(-1, int(MARKS))


@by_type
def mark(engine, part):
    """Stamp the end of a part of the current tick."""


@by_type
def close(engine):
    """Go on to the stamps of the next tick."""


@by_type
def reaches(engine, part):
    """Tell whether an engine works until the end of a part."""


@kernel(inner=True)
def nothing_marked(engine, part):
    """Of `mark`, for engines that stamp nothing."""


@kernel(inner=True)
def nothing_closed(engine):
    """Of `close`, for engines that stamp nothing."""


@kernel(inner=True)
def everything(engine, part):
    """Of `reaches`, for engines that do it all."""
    return True


@kernel(inner=True)
def _stamp(engine, part):
    engine.stamps[_1 + engine.stamps[_0] + part] = clock.ticks_end()


@kernel(inner=True)
def _next(engine):
    engine.stamps[_0] += MARKS


@kernel(inner=True)
def _to_decoded(engine, part):
    return part <= DECODED


@kernel(inner=True)
def _to_booked(engine, part):
    return part <= BOOKED


@kernel(inner=True)
def _to_decided(engine, part):
    return part <= DECIDED


mark.kernels |= dict.fromkeys((Decoding, Booking, Deciding), nothing_marked) | {StampedEngine: _stamp}
close.kernels |= dict.fromkeys((Decoding, Booking, Deciding), nothing_closed) | {StampedEngine: _next}
reaches.kernels |= {StampedEngine: everything, Decoding: _to_decoded, Booking: _to_booked, Deciding: _to_decided}
