"""The feed in arrangements that two CPUs can carry: two threads that spin at a time, never three.

*Filled*: the exchange sends all its packets into the socket's buffer first and ends; then receiver and consumer spin,
each on a CPU of its own, and every call finds as many packets as it may take. *Paced*: exchange and receiver run, and
the ring has room for everything, so that nobody need empty it; what the events say is read afterwards. *Together*: all
three, with a receiver that sleeps in poll; for counts, not for times.
"""

import socket
import time
from typing import NamedTuple

import numpy as np

from photonlab.errors import UserError
from photonlab.kernels import ring as rings
from photonlab.machine import clock, system, udp
from photonlab.systems import spin, synth
from photonlab.systems.feed import fallback, schedule
from photonlab.systems.feed.consumer import Consumer
from photonlab.systems.feed.receiver import Receiver, make_ring
from photonlab.systems.feed.simulator import GROUPS, Endpoint, Simulator

CAPACITY = {"pages": 1 << 16, "levels": 1 << 16, "tree_nodes": 1 << 16}
BUFFER = 8 << 20
DEADLINE = 60.0
_TYPE = 2  # offset of a message's type behind its length


class Events(NamedTuple):
    """What the slots of a ring hold, in the order in which they were written.

    Attributes
    ----------
    received, taken : ndarray of uint64
        Ticks when the receiving call returned; ticks from the look at the packet to the event's publication.
    place : ndarray of uint64
        Of the packet in its call.
    """

    received: np.ndarray
    taken: np.ndarray
    place: np.ndarray


class Run(NamedTuple):
    """What is left of a run: sent, received, the events, and the consumer if there was one.

    Then messages and ticks of whole calls, what the socket was granted, and packets left in it and lost by it.
    """

    sent: object
    received: object
    events: Events
    consumer: Consumer | None
    schedule: np.ndarray
    spans: np.ndarray | None = None
    granted: object = None
    left: tuple = (0, None)


def refused() -> str:
    """Return why no feed can be timed here, or an empty text."""
    if not udp.available():
        return "no recvmmsg here"
    try:
        spin.placement()
    except system.PlacementError as error:
        return str(error)
    return ""


def where() -> str:
    """Say where the threads run, and what must be said of that."""
    if why := refused():
        return f"refused ({why})"
    cpus, label = spin.placement()
    placed = f"CPU {cpus[0]} and CPU {cpus[1]}" if cpus else ""
    said = fallback.usable([Endpoint(group) for group in GROUPS]).said
    return "; ".join(filter(None, (placed, label, said and f"no multicast: {said}")))


def lines(count=1) -> list[Endpoint]:
    """Return endpoints whose ports are free; of unicast where multicast is refused, which `where` says."""
    found = []
    for group in GROUPS[:count]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("", 0))
            found.append(Endpoint(group, probe.getsockname()[1], "lo"))
    return fallback.usable(found).lines


def day(messages, seed) -> np.ndarray:
    """Return a synthetic day."""
    return np.frombuffer(synth.generate(messages, seed)[0], np.uint8)


def offsets(data) -> np.ndarray:
    """Return where each message's length stands."""
    found, at, raw = [], 0, data.tobytes()
    while at + 2 <= len(raw):
        found.append(at)
        at += 2 + int.from_bytes(raw[at : at + 2], "big")
    return np.array(found)


def stamps(data, starts) -> np.ndarray:
    """Return the time stamp of each message in ns."""
    places = starts[:, None] + _TYPE + 5 + np.arange(6)
    return (data[places].astype(np.uint64) << np.arange(40, -8, -8, dtype=np.uint64)).sum(axis=1)


def _cpus():
    cpus, _ = spin.placement()
    return cpus or (None, None)


def _events(ring) -> Events:
    count, first = int(ring.words[int(rings.HEAD)]), int(ring.base)
    count = min(count, int(ring.mask) + 1)
    words = ring.words[first : first + 8 * count].reshape(count, 8)
    kept = words[(words[:, 1] >> np.uint64(32)) & np.uint64(255) != 0]
    return Events(kept[:, 0].copy(), kept[:, 1] & np.uint64(0xFFFFFF), (kept[:, 1] >> np.uint64(24)) & np.uint64(255))


def _slots(data) -> int:
    return 1 << int(offsets(data).size + 64).bit_length()


def filled(data, batch, at_once=1, **options) -> Run:
    """Send everything before the receiver starts; then receive and consume, each on its CPU."""
    cpus, ends = _cpus(), lines()
    ring = make_ring(_slots(data))
    receiver = Receiver(ring, ends, batch=batch, buffer=BUFFER, cpu=cpus[0], **options)
    simulator = Simulator(data, ends)
    consumer = Consumer(ring, receiver.control, batch=at_once, capacity=CAPACITY, cpu=cpus[1])
    consumer.touch()
    with simulator, receiver, consumer:
        simulator.start()
        simulator.wait(DEADLINE)
        consumer.start()
        time.sleep(0.005)
        receiver.start()
        _ended(consumer.wait(DEADLINE))
    found = simulator.sent(), receiver.received(), _events(ring), consumer, simulator.schedule
    return Run(*found, receiver.spans.copy(), receiver.granted[0])


def paced(data, mode="spin", *, delay=0.0, pacing=None, **options) -> Run:
    """Send at a rate while the receiver receives; the ring takes everything."""
    cpus, ends = _cpus(), lines()
    ring = make_ring(_slots(data))
    options = {"buffer": BUFFER, "patience": 0.0} | options
    receiver = Receiver(ring, ends, mode=mode, cpu=cpus[0], **options)
    simulator = Simulator(data, ends, cpu=cpus[1], **(pacing or {}))
    with simulator, receiver:
        simulator.start(0.02)
        if delay:
            time.sleep(delay)
        receiver.start()
        simulator.wait(DEADLINE)
        until = time.monotonic() + 2.0
        while receiver.running and time.monotonic() < until:
            time.sleep(0.005)
        left, received = receiver.leave(), receiver.received()
    found = simulator.sent(), received, _events(ring), None, simulator.schedule
    return Run(*found, receiver.spans.copy(), receiver.granted[0], left)


def together(data, count=1, *, planted=(), rate=50_000) -> Run:
    """Run all three, the receiver in poll."""
    ends = lines(count)
    ring = make_ring(1 << 16)
    receiver = Receiver(ring, ends, mode="poll", buffer=BUFFER, patience=0.1)
    simulator = Simulator(data, ends, rate=rate, planted=planted)
    consumer = Consumer(ring, receiver.control, simulator.schedule, batch=64, capacity=CAPACITY)
    with simulator, receiver, consumer:
        receiver.start()
        consumer.start()
        simulator.start()
        _ended(consumer.wait(DEADLINE))
        received = receiver.received()
    return Run(simulator.sent(), received, _events(ring), consumer, simulator.schedule)


def late(run: Run, rate) -> np.ndarray:
    """Return ticks from when each message was due until it was published; of a run at a fixed rate without loss."""
    start, hz = int(run.schedule[schedule.START]), clock.calibrate().hz
    due = start + np.arange(run.events.received.size, dtype=np.int64) * hz // rate
    return np.maximum((run.events.received + run.events.taken).astype(np.int64) - due, 0)


def _ended(done):
    if not done:
        raise UserError(f"the feed did not come to its end within {DEADLINE:g} s")
