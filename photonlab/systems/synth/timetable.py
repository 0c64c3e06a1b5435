"""The day's hours: stretches of time, each with the share of the day's messages that falls into it."""

from typing import NamedTuple

from photonlab.systems.synth.rng import Stream

SECOND = 1_000_000_000

_HOURS = """
03:00:00 03:00:01   0   0   0
03:05:00 03:40:00   0   0   0
04:00:00 07:00:00  20   3   0
07:00:00 08:00:00  25   4   0
08:00:00 09:00:00  50   8   0
09:00:00 09:25:00  45   8   0
09:25:00 09:30:00  40   8  40
09:30:00 09:30:01   8  12   0
09:30:01 09:30:10  20  30   0
09:30:10 09:31:00  30  40   0
09:31:00 09:35:00  55  60   0
09:35:00 09:45:00  75  75   0
09:45:00 10:00:00  85  85   0
10:00:00 10:30:00 115 110   0
10:30:00 11:00:00  95  90   0
11:00:00 11:30:00  80  76   0
11:30:00 12:00:00  68  64   0
12:00:00 13:00:00 108 100   0
13:00:00 14:00:00 112 106   0
14:00:00 15:00:00 150 145   0
15:00:00 15:30:00  92  92   0
15:30:00 15:50:00  75  78   0
15:50:00 15:55:00  38  42  30
15:55:00 15:59:00  46  55  25
15:59:00 15:59:50  20  30  10
15:59:50 16:00:00  12  20   5
16:00:00 16:00:02   8   8   0
16:00:02 16:05:00  30   5   0
16:05:00 20:00:00  25   4   0
20:00:00 20:00:01   0   0   0
20:05:00 20:05:01   0   0   0
"""
_WEIGHT = 1000  # of one unit above
_NEWS_SECONDS = 12
_FIRST_NEWS, _LAST_NEWS = 34_260, 57_000  # 09:31 to 15:50, where the seconds of the news fall

OPEN, CLOSE = 34_200 * SECOND, 57_600 * SECOND


class Stretch(NamedTuple):
    """A stretch of time: begin and end in ns since midnight, and its weights by groups of message classes."""

    begin: int
    end: int
    orders: int
    trades: int
    imbalances: int


def ns_of(clock: str) -> int:
    """Return a time of day such as "09:30:00" in nanoseconds since midnight."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return (hours * 3600 + minutes * 60 + seconds) * SECOND


def make_timetable(stream: Stream) -> list[Stretch]:
    """Return the stretches of a day in order of time; those around news are one second long."""
    day = []
    for line in _HOURS.split("\n")[1:-1]:
        begin, end, *weights = line.split()
        day.append(Stretch(ns_of(begin), ns_of(end), *(int(weight) * _WEIGHT for weight in weights)))
    for _ in range(_NEWS_SECONDS):
        second = _FIRST_NEWS + stream.below(_LAST_NEWS - _FIRST_NEWS)
        day = _with_news(day, second * SECOND, (1 + stream.below(3)) * _WEIGHT)
    return day


def _with_news(day: list[Stretch], begin: int, weight: int) -> list[Stretch]:
    """Split the stretch that holds a second into what is before it, the second, and what is after it."""
    end = begin + SECOND
    at = next(i for i, stretch in enumerate(day) if stretch.begin <= begin < stretch.end)
    whole = day[at]
    if not whole.begin < begin < end < whole.end:
        return day  # two news in one second, or at the edge of a stretch: one less
    span = whole.end - whole.begin
    before = [weight * (begin - whole.begin) // span for weight in whole[2:]]
    after = [weight * (whole.end - end) // span for weight in whole[2:]]
    news = [weight, weight * 3 // 2, 0]
    parts = [Stretch(whole.begin, begin, *before), Stretch(begin, end, *news), Stretch(end, whole.end, *after)]
    return day[:at] + parts + day[at + 1 :]


def shared_out(total: int, weights: list[int]) -> list[int]:
    """Share an integer out by weights, exactly: cumulative sums, rounded; a single unit falls in the middle."""
    whole = sum(weights)
    shares, done, running = [], 0, 0
    for weight in weights:
        running += weight
        until = (2 * total * running + whole) // (2 * whole) if whole else 0
        until = min(until, total)
        shares.append(until - done)
        done = until
    return shares


def squeezed(day: list[Stretch], messages: list[int]) -> list[Stretch]:
    """Return the stretches with new times: all in the second round the open, long by their messages, some faster.

    Parameters
    ----------
    day : list of Stretch
    messages : list of int
        Of each stretch.

    Returns
    -------
    list of Stretch
        The open stays where it is, at 09:30:00.
    """
    total = sum(messages)
    before = sum(count for count, stretch in zip(messages, day, strict=True) if stretch.begin < OPEN)
    start = OPEN - before * SECOND // total
    cumulative = [0]
    for count in messages:
        cumulative.append(cumulative[-1] + count)
    edges = [start + done * (SECOND - 1) // total for done in cumulative]
    opening = next(i for i, stretch in enumerate(day) if stretch.begin >= OPEN)
    edges[opening] = OPEN
    return [
        stretch._replace(begin=begin, end=max(begin, end))
        for stretch, begin, end in zip(day, edges, edges[1:], strict=False)
    ]
