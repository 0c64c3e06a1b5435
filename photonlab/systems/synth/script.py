"""What happens at fixed points of a synthetic day: system events, directory, crosses, pauses, rare messages."""

from typing import NamedTuple

from photonlab.systems.synth.instruments import Instrument
from photonlab.systems.synth.timetable import CLOSE, OPEN, SECOND, ns_of, shared_out

# kinds of events; the argument of each is the character on the wire that tells it apart, if any
(
    SYSTEM, DIRECTORY, STATE, REG_SHO, POSITION, DECLINE_LEVELS, DECLINE_STATUS, IPO, COLLAR, OPERATIONAL,
    DIRECT_LISTING, CROSS, NOII,
) = range(13)  # fmt: skip
REASON_SHIFT = 8
"""Of a STATE event's argument: above the trading state stands an index of `REASONS`."""
COUNT_SHIFT = 8
"""Of a CROSS event's argument: above the type of the cross stand the executions that it asks for."""
REASONS = ("    ", "IPO1", "IPOQ", "LUDP", "LUDS", "T1  ", "T3  ")


class Event(NamedTuple):
    """An event: its time in ns since midnight, kind, instrument (-1: the market) and argument."""

    time: int
    kind: int
    instrument: int
    argument: int


def make_script(messages: int, instruments: list[Instrument], order: list[int]) -> tuple[list[Event], bool]:
    """Return the events of a day, as many groups of them as its size has room for.

    Parameters
    ----------
    messages : int
        Of the whole day.
    instruments : list of Instrument
    order : list of int
        In which the instruments come to their crosses.

    Returns
    -------
    events : list of Event
        In order of time; those of one time keep their order. L messages and executions in crosses come later.
    roomy : bool
        Whether every group went in.
    """
    number = len(instruments)
    special, late = _special(instruments)
    if 5 + 5 * number + len(special) > messages // 2:
        special, late = [], set()
    groups = [
        [_system("03:00:00", "O")],
        [Event(ns_of("03:05:00"), DIRECTORY, i, 0) for i in range(number)],
        [_system(*event) for event in (("04:00:00", "S"), ("09:30:00", "Q"), ("16:00:00", "M"))],
        [_system(*event) for event in (("20:00:00", "E"), ("20:05:00", "C"))],
        [
            Event(begin + span * place // number, CROSS, i, ord(kind))
            for begin, span, kind in ((OPEN, SECOND, "O"), (CLOSE, 2 * SECOND, "C"))
            for place, i in enumerate(order)
            if kind == "C" or i not in late
        ],
    ]
    states = [Event(ns_of("03:20:00"), STATE, i, _state("H", "IPO1") if i in late else ord("T")) for i in range(number)]
    groups += [states, [Event(ns_of("03:25:00"), REG_SHO, i, ord("0")) for i in range(number)], special]
    events: list[Event] = []
    roomy = True
    for group in groups:
        limit = messages if group and group[0].kind in (SYSTEM, DIRECTORY) else messages // 2
        roomy = roomy and bool(group) and len(events) + len(group) <= limit
        if roomy:
            events += group
    return sorted(events, key=lambda event: event.time), roomy


def with_positions(events: list[Event], number: int, positions: int) -> list[Event]:
    """Return the events with L messages for each instrument behind the directory."""
    ls = [Event(ns_of("03:30:00"), POSITION, i, k) for i in range(number) for k in range(positions)]
    return sorted(events + ls, key=lambda event: event.time)


def with_cross_executions(events: list[Event], instruments: list[Instrument], executions: int) -> list[Event]:
    """Return the events with the executions asked for shared out over the crosses, more to the more active."""
    at = [i for i, event in enumerate(events) if event.kind == CROSS]
    shares = shared_out(executions, [instruments[events[i].instrument].depth for i in at])
    events = list(events)
    for i, share in zip(at, shares, strict=True):
        events[i] = events[i]._replace(argument=events[i].argument | share << COUNT_SHIFT)
    return events


def _system(clock: str, code: str) -> Event:
    return Event(ns_of(clock), SYSTEM, -1, ord(code))


def _state(state: str, reason: str) -> int:
    return ord(state) | REASONS.index(reason) << REASON_SHIFT


def _special(instruments: list[Instrument]) -> tuple[list[Event], set[int]]:
    """Return the rare events, and the instruments that do not trade before their own cross."""
    number = len(instruments)
    by_rank = sorted(range(number), key=lambda i: instruments[i].rank)
    few = number < 8
    release = OPEN + SECOND // 10 if few else ns_of("10:40:00")
    step = SECOND // 10 if few else 300 * SECOND
    listed, direct = by_rank[number // 2], by_rank[(number // 2 + 1) % number]
    events = [
        Event(ns_of("03:15:00"), DECLINE_LEVELS, -1, 0),
        Event(ns_of("08:00:00"), IPO, listed, release // SECOND),
        Event(ns_of("09:26:00"), DIRECT_LISTING, direct, 0),
        Event(ns_of("15:40:00"), DECLINE_STATUS, -1, ord("1")),
    ]
    for i in (listed, direct):
        events += [
            Event(release, STATE, i, _state("Q", "IPOQ")),
            Event(release + 2 * step, CROSS, i, ord("I")),
            Event(release + 2 * step, STATE, i, ord("T")),
        ]
    for k in range(1 + number // 200):
        paused, halted, closed, tested = (by_rank[(number // part + 3 * k) % number] for part in (3, 4, 5, 6))
        pause, halt, stop, test = (ns_of(clock) + 60 * SECOND * (k % 30) for clock in _CLOCKS)
        events += [
            Event(pause, STATE, paused, _state("P", "LUDP")),
            Event(pause, COLLAR, paused, 0),
            Event(pause + 30 * SECOND, NOII, paused, ord("H")),
            Event(pause + 300 * SECOND, CROSS, paused, ord("H")),
            Event(pause + 300 * SECOND, STATE, paused, ord("T")),
            Event(halt, STATE, halted, _state("H", "T1  ")),
            Event(halt + 600 * SECOND, STATE, halted, _state("Q", "T3  ")),
            Event(halt + 700 * SECOND, NOII, halted, ord("H")),
            Event(halt + 900 * SECOND, CROSS, halted, ord("H")),
            Event(halt + 900 * SECOND, STATE, halted, ord("T")),
            Event(stop, OPERATIONAL, closed, ord("H")),
            Event(stop + 120 * SECOND, OPERATIONAL, closed, ord("T")),
            Event(test, REG_SHO, tested, ord("1")),
        ]
    return events, set() if few else {listed, direct}


_CLOCKS = ("11:05:00", "12:10:00", "14:05:00", "14:50:00")
