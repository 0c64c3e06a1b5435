"""From the arguments of a synthetic day to the state that its kernel starts from; integers throughout."""

from bisect import bisect_right

import numpy as np

from photonlab.machine.memory import huge_array
from photonlab.systems.synth import state as st
from photonlab.systems.synth.instruments import (
    CENTRE,
    CHANNELS,
    DOLLAR_RAW,
    STUB_BID_RAW,
    STUB_BID_SUBDOLLAR_RAW,
    WINDOW,
    Instrument,
    make_instruments,
)  # fmt: skip
from photonlab.systems.synth.presets import PRESETS, VERSION
from photonlab.systems.synth.quotas import CLASSES, Quotas, make_quotas
from photonlab.systems.synth.rng import Stream, alias_table
from photonlab.systems.synth.script import CROSS, DIRECTORY, Event, make_script, with_cross_executions, with_positions
from photonlab.systems.synth.timetable import Stretch, make_timetable, shared_out, squeezed


def make_day(messages: int, seed: int, preset: str, instruments: int, profile: str, channels: int = CHANNELS) -> st.Day:
    """Return the state from which the kernel writes a day.

    Parameters
    ----------
    messages, seed, preset, instruments, profile
        As `photonlab.systems.synth.write` has them, checked and complete.
    channels : int
        Streams of references, 1 to 8.

    Returns
    -------
    Day
        Memory: about 66 bytes for each live order on the plateau, and 8 KiB for each instrument.
    """
    stream = Stream(seed * 0x9E3779B1 + VERSION)
    stream = Stream(stream.next64())  # neighbouring seeds part ways
    listed = make_instruments(instruments, stream)
    events, roomy = make_script(messages, listed, stream.shuffled(instruments))
    crosses = sum(event.kind == CROSS for event in events)
    quotas = make_quotas(messages, len(events), crosses, instruments, roomy)
    events = with_cross_executions(
        with_positions(events, instruments, quotas.positions), listed, quotas.cross_executions
    )
    timetable = make_timetable(stream)
    quota = _quota_table(timetable, quotas)
    event = _event_table(timetable, quota, events)
    events_of = np.bincount(event[:, 0], minlength=len(timetable)) if len(event) else np.zeros(len(timetable), np.int64)
    if profile == "busiest-second":
        timetable = squeezed(timetable, (quota.sum(axis=1) + events_of).tolist())
    phase = np.array([[s.begin, s.end, n] for s, n in zip(timetable, events_of, strict=True)], np.int64)
    phase = np.hstack([phase, quota])

    plateau = max(messages * PRESETS[preset].live_ppm // 1_000_000, min(8 * instruments, messages // 8), 1)
    plateau = max(plateau, quotas.live_at_end)
    before = sum(1 for e in events if e.kind == DIRECTORY) + instruments * (2 + quotas.positions)
    ramp = min(max(messages * 3 // 100, plateau * 12 // 5), messages * 2 // 5)
    word = np.zeros(st.WORDS, np.int64)
    word[st.TOTAL] = messages
    word[st.RAMP_FROM], word[st.RAMP_TO] = min(before, messages), min(before, messages) + ramp
    word[st.FALL_FROM] = max(word[st.RAMP_TO], messages - ramp)
    word[st.PLATEAU], word[st.AT_END] = plateau, max(0, quotas.live_at_end)
    word[st.ADD_LEFT], word[st.ATTRIBUTED_LEFT], word[st.DELETE_LEFT] = quotas.add, quotas.attributed, quotas.delete
    executions = quotas.execute + quotas.execute_price + quotas.cross_executions
    word[st.FULL_LEFT], word[st.PART_LEFT] = quotas.full, executions - quotas.full
    word[st.CROSS_LEFT] = -1
    word[st.CHANNELS] = channels
    word[st.LEFT], word[st.TO_GO] = quota[0].sum(), quota[0].sum() + events_of[0]
    word[st.TIME], word[st.FRESH] = phase[0, 0], 1

    for channel in range(st.CHANNELS_LIMIT):
        word[st.NEXT_REFERENCE + channel] = 1 + 8 * stream.below(64)
    word[st.RANDOM] = stream.next64() - (1 << 63)

    instrument, nodes = _instrument_table(listed, plateau, channels)
    queue = huge_array(instruments * WINDOW * 2, np.int32).reshape(instruments, WINDOW, 2)
    queue.fill(-1)
    live = huge_array(nodes, np.int32)
    live[:] = np.arange(nodes, dtype=np.int32)
    node = huge_array(nodes * 8, np.int32).reshape(nodes, 8)
    return st.Day(word, phase, event, instrument, _weights(listed), queue, node, live)


def _weights(listed: list[Instrument]) -> np.ndarray:
    """Return symbols, depths and alias tables by instrument."""
    table = np.zeros((len(listed), 7), np.int64)
    depths = [instrument.depth for instrument in listed]
    table[:, st.SYMBOL] = [int.from_bytes(instrument.symbol.ljust(8).encode(), "big") for instrument in listed]
    table[:, st.DEPTH] = [(weight << 32) // sum(depths) for weight in depths]
    for column, weights in ((st.ACTIVE, [instrument.activity for instrument in listed]), (st.DEEP, depths)):
        table[:, column], table[:, column + 1] = alias_table(weights)
    return table


def _quota_table(timetable: list[Stretch], quotas: Quotas) -> np.ndarray:
    """Return random messages by stretch and class."""
    orders = [stretch.orders for stretch in timetable]
    trades = [stretch.trades for stretch in timetable]
    imbalances = [stretch.imbalances for stretch in timetable]
    columns = (
        (quotas.add + quotas.attributed + quotas.delete, orders), (quotas.replace, orders), (quotas.cancel, orders),
        (quotas.execute, trades), (quotas.execute_price, trades), (quotas.trade, trades),
        (quotas.imbalance, imbalances), (quotas.retail, trades), (quotas.broken, trades),
    )  # fmt: skip
    assert len(columns) == CLASSES
    return np.array([shared_out(total, weights) for total, weights in columns], np.int64).T.copy()


def _event_table(timetable: list[Stretch], quota: np.ndarray, events: list[Event]) -> np.ndarray:
    """Return the events with their time turned into a phase and a number of random messages before them."""
    begins = [stretch.begin for stretch in timetable]
    totals = quota.sum(axis=1).tolist()
    rows = np.zeros((len(events), 5), np.int64)
    for row, event in zip(rows, events, strict=True):
        phase = bisect_right(begins, event.time) - 1
        span = timetable[phase].end - timetable[phase].begin
        at = totals[phase] * min(event.time - timetable[phase].begin, span) // span
        row[:] = phase, at, event.kind, event.instrument, event.argument
    return rows


def _instrument_table(listed: list[Instrument], plateau: int, channels: int) -> tuple[np.ndarray, int]:
    """Return the instruments' columns, and the nodes of all of them together."""
    table = np.zeros((len(listed), 16), np.int32)
    base, depths = 0, sum(instrument.depth for instrument in listed)
    for i, (row, instrument) in enumerate(zip(table, listed, strict=True)):
        resting = instrument.depth * plateau // depths
        capacity = resting + resting // 2 + 40
        row[st.ANCHOR], row[st.STEP] = instrument.anchor, instrument.step
        row[st.LOW], row[st.HIGH], row[st.FAIR] = instrument.low, instrument.high, CENTRE
        row[st.BID], row[st.ASK] = -1, WINDOW
        row[st.BASE], row[st.CAPACITY] = base, capacity
        row[st.HALF], row[st.SCALE] = instrument.half, instrument.scale
        row[st.SHIFT] = max(4, resting // 8).bit_length() - 1
        row[st.CHANNEL] = i * channels // len(listed)
        row[st.STUB_BID] = STUB_BID_RAW if instrument.anchor >= DOLLAR_RAW else STUB_BID_SUBDOLLAR_RAW
        base += capacity
    return table, base
