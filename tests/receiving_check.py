"""What finds planted bugs in the loops of receiver and consumer: two lines that lose, a ring too short, the rules."""

import itertools
import random
from types import SimpleNamespace

import numpy as np

from photonlab.kernels import arbitration, histogram, ring
from photonlab.machine import udp
from photonlab.systems import batch as batches
from photonlab.systems.feed import consuming, events, receiving
from tests.oracle import itch

MESSAGES, PATIENCE, SIZES = 240, 400, (("S", 12), ("D", 19), ("A", 36), ("F", 40), ("I", 50), ("z", 23))
NONE = np.zeros(1, np.uint64)


def packet_of(messages, first):
    """Return a packet of so many messages of `messages`, which are numbered from 1."""
    header = b"DAY1".ljust(10) + first.to_bytes(8, "big") + len(messages).to_bytes(2, "big")
    return header + itch.frame(messages)


def day_of(draw):
    """Return messages, and the packets of two lines with the numbers that neither brings."""
    messages = []
    for number in range(1, MESSAGES + 1):
        kind, size = draw.choice(SIZES)
        messages.append(kind.encode() + number.to_bytes(size - 1, "big"))
    lines, lost, first = ([], []), set(), 1
    while first <= MESSAGES:
        part = messages[first - 1 : first - 1 + draw.choice((1, 1, 2, 5))]
        fates = [draw.random() < 0.3 for _ in lines]
        if first + len(part) > MESSAGES:
            fates[0] = False
        for line, away in zip(lines, fates, strict=True):
            line += [packet_of(part, first)] * (not away)
        if all(fates):
            lost |= set(range(first, first + len(part)))
        first += len(part)
    end = b"DAY1".ljust(10) + first.to_bytes(8, "big") + b"\xff\xff"
    return messages, [[*line, end] for line in lines], lost


def works(slots):
    """Return what both loops work with, in a ring of so many slots."""
    state, words = np.zeros(receiving.STATE_WORDS, np.uint64), lambda n: np.zeros(n, np.uint64)
    state[receiving.MODE], state[receiving.LINES], state[receiving.BATCH] = receiving.SPIN, 2, 8
    state[receiving.PATIENCE], state[receiving.NEXT], state[int(receiving.FDS) + 1] = PATIENCE, 1, 1
    receives = receiving.Receiving(
        state, words(16), NONE, words(1025), words(64), words(2), udp.make_box(8, 512), udp.make_box(1, 64),
        arbitration.make_arbiter(first=1, window=64),
    )  # fmt: skip
    counted = words(32)
    counted[consuming.BATCH], counted[consuming.NEXT] = 5, 1
    parts = [histogram.empty(1 << 10) for _ in range(3)]
    consumes = consuming.Consuming(
        counted, words(16), words(3 * 512), np.zeros(1 << 12, np.uint8), *parts, words(256), words(256)
    )
    return receives, consumes, ring.make_ring(slots, events.SLOT_WORDS)


def compare(seed, slots, every):
    """Receive a day into a ring that is emptied after so many calls, and hold what comes out against what was sent."""
    messages, lines, lost = day_of(random.Random(seed))
    receives, consumes, queue = works(slots)
    ticks, calls, came = itertools.count(1), itertools.count(1), []
    tick = lambda: np.uint64(next(ticks))  # noqa: E731
    receiving.clock = consuming.clock = SimpleNamespace(
        ticks=tick, ticks_begin=tick, ticks_end=tick, elapsed=lambda begin, end: end - begin
    )

    def consume():
        finished = np.ones(16, np.uint64)
        consuming.consume_until(consumes, queue, None, np.zeros(512, np.uint64), finished)

    def receive(box, fd, most, how):
        if next(calls) % every == 0:
            consume()
        given, lines[int(fd)] = lines[int(fd)][:6], lines[int(fd)][6:]
        for i, packet in enumerate(given):
            begin = i * int(box.state[udp.PACKET])
            box.data[begin : begin + len(packet)] = np.frombuffer(packet, np.uint8)
            box.headers[8 * i + 7], box.headers[8 * i + 6] = len(packet), 0
        return np.uint64(len(given)), np.uint64(0)

    def replay(feed, scratch, begin, end, many):
        at = int(begin)
        while at < int(end):
            size = int.from_bytes(scratch[at : at + 2].tobytes(), "big")
            came.append(scratch[at + 2 : at + 2 + size].tobytes())
            at += 2 + size
        return end, batches.MORE

    udp.receive, consuming.message_loop = receive, SimpleNamespace(replay=replay)
    receiving.receive_until(receives, queue)
    consume()
    state, why = consumes.state, {}
    for first, behind, reason in consumes.gaps[: 3 * int(state[consuming.GAPS])].reshape(-1, 3).tolist():
        for number in range(first, behind):
            assert why.setdefault(number, reason) == reason
    assert {number for number, reason in why.items() if reason == events.NEVER_CAME} <= lost | set(why)
    assert lost <= set(why)
    if slots > MESSAGES:
        assert {number for number in why if why[number] == events.NEVER_CAME} == set(why) == lost
    else:
        assert any(reason == events.NO_ROOM for reason in why.values())
        assert int(state[consuming.NO_ROOM]) >= int(receives.state[receiving.RING_DROPS]) > 0
    assert came == [one for number, one in enumerate(messages, 1) if number not in why]
    assert int(state[consuming.MESSAGES]) == len(came)
    assert int(state[consuming.OUT_OF_STEP]) == 0
    assert int(state[consuming.INCOMPLETE]) == min(why)
    assert int(state[consuming.NEVER_CAME]) + int(state[consuming.NO_ROOM]) == len(why)
    strange = sum(messages[number - 1][:1] == b"z" for number in set(range(1, MESSAGES + 1)) - lost)
    assert int(receives.state[receiving.UNKNOWN]) == strange


def check_receiving():
    """A ring with room for all, and one that is too short for the pause of its consumer."""
    compare(1, 512, 3)
    compare(2, 16, 4)
