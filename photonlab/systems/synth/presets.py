"""The kinds of synthetic day, and the published type mix that all of them keep."""

from math import isqrt
from typing import NamedTuple

VERSION = 1
"""Of the generator: any change of a day's bytes raises it, and the golden hashes of the tests with it."""

MIX = {"add": 186_610_705, "execute": 8_415_610, "cancel": 4_990_972, "delete": 180_285_101, "replace": 36_777_372}
"""Messages by class on the day of claim R3; add is A and F, execute is E and C."""

MIX_TOTAL = 423_285_709
"""All messages of that day; what `MIX` does not name is of the other types."""

F_PERCENT = 2
"""Of the adds, those with attribution."""

C_PERCENT = 8
"""Of the executions, those with a price."""

FULL_PERCENT = 68
"""Of the executions, those that take all of an order; with `MIX` it says how many orders outlive the day."""

MESSAGES_LIMIT = 500_000_000
INSTRUMENTS_LIMIT = 65_535  # a locate has 16 bits
ALL_TYPES_MESSAGES = 150
"""From this many messages on, with the default number of instruments, a day has all 23 types."""


class Preset(NamedTuple):
    """A kind of day.

    Attributes
    ----------
    messages : int
        By default.
    instruments : int
        By default, for that many messages; see `default_instruments`.
    live_ppm : int
        Live orders on the plateau, per million messages of the day.
    about : str
    """

    messages: int
    instruments: int
    live_ppm: int
    about: str


PRESETS = {
    "small": Preset(5_000_000, 400, 14_600, "its books stay in the cache: 73 thousand live orders"),
    "wide": Preset(20_000_000, 6_000, 65_000, "its books do not: 1.3 million live orders"),
}


def default_instruments(preset: str, messages: int) -> int:
    """Return how many instruments a day has if nothing else is said.

    As the root of the messages, so that a smaller day has both fewer and thinner books; never more than one for 600
    messages, as directory and crosses would no longer fit into the mix; never more than the preset has.
    """
    kind = PRESETS[preset]
    scaled = isqrt(kind.instruments**2 * messages // kind.messages)
    return min(kind.instruments, max(1, min(scaled, messages // 600)))


PROFILES = {
    "day": "03:00 to 20:05, busiest round the open and the close, with bursts",
    "busiest-second": "the whole order of events squeezed into the second round the open, with bursts",
}
