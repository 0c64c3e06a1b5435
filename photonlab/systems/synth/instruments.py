"""The instruments of a synthetic day: symbols, prices, how active each is and how many orders rest in its book.

All in Python integers, so that a seed gives the same instruments on every machine. Activity follows a Zipf-Mandelbrot
law, weight 1 / (rank + q); resting orders follow its root, as quiet instruments keep deeper books than their
activity says.
"""

from math import isqrt
from typing import NamedTuple

from photonlab.systems.synth.rng import Stream

WINDOW = 1024
"""Prices of an instrument: one for a stub bid, 1,022 ticks round its anchor, one for a stub ask."""

CENTRE = WINDOW // 2
STUB_BID_RAW, STUB_BID_SUBDOLLAR_RAW, STUB_ASK_RAW = 100, 1, 1_999_999_900  # 0.01, 0.0001 and 199,999.99
DOLLAR_RAW, CENT_RAW = 10_000, 100
CHANNELS = 4
"""Streams of references, by range of locates: in NASDAQ's sample of 2019-12-30 the references of each quarter of the
alphabet count up by themselves, and have one remainder modulo 4."""

# (lowest, highest, weight) of the anchor price, raw: skewed like a lognormal, from 0.30 to 3,500
_PRICES = (
    (3_000, 9_000, 3), (20_000, 35_000, 4), (35_000, 60_000, 6), (60_000, 90_000, 8), (90_000, 130_000, 9),
    (130_000, 180_000, 10), (180_000, 240_000, 10), (240_000, 310_000, 10), (310_000, 400_000, 9),
    (400_000, 520_000, 8), (520_000, 700_000, 7), (700_000, 1_000_000, 6), (1_000_000, 1_600_000, 5),
    (1_600_000, 3_200_000, 3), (3_200_000, 9_000_000, 1), (9_000_000, 35_000_000, 1),
)  # fmt: skip
# (below this anchor price: half spread in ticks, scale of the distances from the touch in ticks)
_SPREADS = (
    (DOLLAR_RAW, 8, 10), (100_000, 0, 3), (300_000, 0, 7), (700_000, 1, 12), (2_000_000, 3, 20), (1 << 40, 10, 40),
)  # fmt: skip


class Instrument(NamedTuple):
    """An instrument; its locate is its place in the list plus 1.

    Attributes
    ----------
    symbol : str
    anchor : int
        Raw price of tick `CENTRE`.
    step : int
        Raw price of a tick.
    low, high : int
        Ticks that ordinary orders keep within.
    half, scale : int
        Half spread, and scale of the distances from the touch, in ticks.
    rank : int
        By activity, 0 the most active.
    activity, depth : int
        Weights of its messages and of its resting orders.
    """

    symbol: str
    anchor: int
    step: int
    low: int
    high: int
    half: int
    scale: int
    rank: int
    activity: int
    depth: int


def make_instruments(number: int, stream: Stream) -> list[Instrument]:
    """Return instruments in alphabetical order of their symbols.

    Parameters
    ----------
    number : int
    stream : Stream
        Where the random numbers come from.

    Returns
    -------
    list of Instrument
    """
    ranks = stream.shuffled(number)
    intervals = [interval for interval in _PRICES for _ in range(interval[2])]
    instruments = []
    for i, rank in enumerate(ranks):
        low, high, _ = intervals[stream.below(len(intervals))]
        anchor = low + (high - low) * stream.below(1024) // 1024
        step = 1 if anchor < DOLLAR_RAW else CENT_RAW
        anchor -= anchor % step
        floor = 0 if step == 1 else DOLLAR_RAW  # penny ticks are for prices of a dollar and more
        lowest = max(1, CENTRE - (anchor - floor) // step)
        half, scale = next((half, scale) for below, half, scale in _SPREADS if anchor < below)
        activity = (1 << 40) // (rank + 4 + number // 300)
        instruments.append(
            Instrument(
                _symbol(i, number), anchor, step, lowest, WINDOW - 2, half, scale, rank, activity, isqrt(activity)
            )
        )
    return instruments


def _symbol(i: int, number: int) -> str:
    """Return four letters, evenly spread over the alphabet."""
    value = (2 * i + 1) * 26**4 // (2 * number)
    return "".join(chr(65 + value // 26**place % 26) for place in (3, 2, 1, 0))
