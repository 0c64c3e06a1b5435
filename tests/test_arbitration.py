"""Lines A and B that lose, repeat and reorder packets: what comes out is in order, each once, gaps what neither had."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.kernels import arbitration, moldudp64
from tests import mold_drivers as drivers
from tests.mold_drivers import Stream
from tests.oracle import itch
from tests.oracle import moldudp64 as oracle


def day(draw, count, start=1):
    """Give messages by number, and packets of 1 to 4 of them."""
    messages = {n: b"%d:" % n + b"x" * draw.randrange(30) for n in range(start, start + count)}
    packets, n = [], start
    while n < start + count:
        size = min(draw.randrange(1, 5), start + count - n)
        packets.append((n, size))
        n += size
    return messages, packets


def line(draw, packets, loss, twice, late):
    """Give what one line brings of the packets: some lost, some twice, some moved back by a few places."""
    brought = []
    for place, packet in enumerate(packets):
        for _ in range(2 if draw.random() < twice else 1):
            if draw.random() >= loss:
                brought.append((place + (draw.random() * 8 if draw.random() < late else 0), packet))
    return [packet for _, packet in sorted(brought)]


def merged(draw, lines):
    """Interleave lines at random, each in its own order."""
    lines, out = [list(one) for one in lines], []
    while any(lines):
        number = draw.choice([n for n, one in enumerate(lines) if one])
        out.append((number, lines[number].pop(0)))
    return out


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5, 64]), st.sampled_from([0, 0.05, 0.4]), st.booleans())
def test_two_bad_lines_give_one_good_stream(seed, window, loss, regroup):
    draw = random.Random(seed)
    messages, packets = day(draw, draw.randrange(1, 80))
    others = day(draw, len(messages))[1] if regroup else packets  # lines need not put packets together alike
    arrived = merged(draw, [line(draw, one, loss, 0.1, 0.2) for one in (packets, others)])
    real, twin = Stream(first=1, window=window), oracle.Arbiter(1, window)
    for number, (first, size) in arrived:
        packet = oracle.packet(first, [messages[n] for n in range(first, first + size)])
        real.take(packet, number)
        twin.take(packet)
    end = oracle.packet(len(messages) + 1, [], count=0xFFFF)
    real.take(end)
    twin.take(end)
    real.close()
    twin.close()
    assert real.delivered == itch.frame([message for _, message in twin.delivered])
    assert real.gaps == twin.gaps
    found, counted = [n for n, _ in twin.delivered], real.counters
    assert found == sorted(set(found)) and all(message == messages[n] for n, message in twin.delivered)
    arrivals = [n for _, (first, size) in arrived for n in range(first, first + size)]
    assert counted["messages"] == len(found)
    assert counted["missing"] == len(messages) - len(found) == sum(count for _, count in real.gaps)
    assert counted["messages"] + counted["duplicates"] == len(arrivals)
    assert counted["duplicates"] == twin.duplicates
    gone = {n for first, count in real.gaps for n in range(first, first + count)}
    assert gone | set(found) == set(messages) and not gone & set(found)
    assert counted["late"] == sum(n in gone for n in arrivals)
    if window == 64:
        assert gone == set(messages) - set(arrivals), "given up is what neither line had"
    by_line = real.arbiter.lines.reshape(-1, arbitration.LINE_WORDS)
    assert by_line[:, int(arbitration.LINE_MESSAGES)].sum() == len(arrivals)
    assert by_line[:, int(arbitration.LINE_PACKETS)].sum() == len(arrived) + 1
    assert drivers.complete(real.arbiter)


def packets_of(*numbers, **options):
    """Give packets of one message each."""
    return [oracle.packet(n, [b"m%d" % n], **options) for n in numbers]


def numbers(stream):
    """Give the numbers that were delivered of `packets_of`."""
    return [int(message[1:]) for _, message in itch.walk(stream.delivered).messages]


def fed(*sequence, **options):
    stream = Stream(**options)
    for packet in packets_of(*sequence):
        stream.take(packet)
    return stream


def test_a_gap_is_filled_by_the_other_line_or_sent_again():
    stream = fed(1, 2, 5, 6)
    assert numbers(stream) == [1, 2]
    assert [int(n) for n in drivers.missing(stream.arbiter)] == [3, 5]
    stream.take(packets_of(4)[0], 1)
    assert [int(n) for n in drivers.missing(stream.arbiter)] == [3, 4]
    stream.take(oracle.packet(3, [b"m3", b"m4"]), 2)
    assert numbers(stream) == [1, 2, 3, 4, 5, 6]
    assert (stream.counters["held_back"], stream.counters["duplicates"], stream.gaps) == (3, 1, [])


def test_a_full_window_gives_the_gap_up_and_what_comes_late_is_counted():
    stream = fed(1, 3, 4, 5, window=2)
    assert numbers(stream) == [1, 3, 4, 5] and stream.gaps == [(2, 1)]
    stream.take(packets_of(2)[0])
    assert numbers(stream) == [1, 3, 4, 5]
    assert (stream.counters["late"], stream.counters["duplicates"], stream.counters["missing"]) == (1, 1, 1)


def test_heartbeats_and_the_end_tell_of_a_lost_tail():
    stream = fed(1)
    stream.take(oracle.packet(4, [], count=0))
    assert [int(n) for n in drivers.missing(stream.arbiter)] == [2, 4]
    stream.take(oracle.packet(5, [], count=0xFFFF))
    assert not drivers.complete(stream.arbiter)
    assert stream.give_up() == 3 and stream.give_up() == 0
    assert drivers.complete(stream.arbiter) and stream.gaps == [(2, 3)]
    assert (stream.counters["heartbeats"], stream.counters["ends"]) == (1, 1)


def test_a_late_joiner_begins_where_the_stream_is():
    assert numbers(fed(7, 6, 8)) == [7, 8]
    late = fed(7, first=1)
    assert numbers(late) == [] and [int(n) for n in drivers.missing(late.arbiter)] == [1, 7]


def test_another_session_is_kept_out_until_it_is_asked_for():
    stream = fed(1, 2)
    other = packets_of(1, 2, session=b"DAY2      ")
    stream.take(other[0])
    assert numbers(stream) == [1, 2] and stream.counters["other_session"] == 1
    state = stream.arbiter.state
    assert moldudp64.session_text(state[arbitration.OTHER_HIGH], state[arbitration.OTHER_LOW]) == "DAY2"
    stream.take(packets_of(9)[0])
    arbitration.restart(stream.arbiter)
    for packet in other:
        stream.take(packet)
    assert numbers(stream) == [1, 2, 1, 2] and stream.gaps == []


def test_damaged_packets_are_counted_and_what_is_whole_is_used():
    stream = fed(1)
    stream.take(oracle.packet(2, [b"m2", b"m3"])[:-1])
    stream.take(oracle.packet(3, [b"m3"]) + b"behind")
    stream.take(b"MoldUDP64")
    stream.take(oracle.packet(2**64 - 1, [b"m4"]))
    stream.take(oracle.packet(2**64 - 1, [], count=0xFFFE))
    assert numbers(stream) == [1, 2, 3]
    counted = stream.counters
    assert [counted[name] for name in ("short", "trailing", "no_header", "packets")] == [3, 1, 1, 6]
    assert [int(n) for n in drivers.missing(stream.arbiter)] == [4, 4], "an impossible number spoils nothing"


def test_a_packet_too_long_to_be_held_is_counted_and_missing():
    stream = Stream(first=1, slot=16)
    stream.take(oracle.packet(2, [b"x" * 20]))
    assert stream.counters["too_long"] == 1
    stream.close()
    assert stream.gaps == [(1, 2)]


def test_gaps_beyond_the_room_for_them_are_counted_still():
    stream = fed(*range(1, 40, 2), window=1, gap_room=3)
    stream.close()
    assert len(stream.gaps) == 3 and stream.counters["gaps"] == stream.counters["missing"] == 19


@pytest.mark.parametrize("near", [2**53, 2**63, 2**64 - 9])
def test_large_numbers(near):
    """Trap 12."""
    stream = fed(near - 1, near + 1, near, near + 3, near + 2)
    assert numbers(stream) == list(range(near - 1, near + 4))
    assert [int(n) for n in np.asarray(drivers.missing(stream.arbiter))] == [near + 4] * 2
