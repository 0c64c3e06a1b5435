"""The receiver: sockets of one line or two, the loop of `receiving` in a thread of its own, and what it counted."""

import contextlib
import os
import socket
from typing import NamedTuple

import numpy as np

from photonlab.errors import Failure, UserError
from photonlab.kernels import arbitration, moldudp64, ring
from photonlab.machine import clock, multicast, system, udp
from photonlab.machine.atomics import load_acquire, store_release
from photonlab.machine.jit import kernel
from photonlab.systems.feed import events, receiving
from photonlab.systems.feed.simulator import LINE_A
from photonlab.systems.feed.worker import Closed, Worker

MODES = {"spin": receiving.SPIN, "poll": receiving.POLL, "block": receiving.BLOCK, "yield": receiving.YIELD}
_SPANS = 1 << 14
_WAIT = 0.02  # seconds for which a call that waits may wait: the stop flag is seen then


class Received(NamedTuple):
    """What a receiver has counted."""

    counters: dict[str, int]
    """By the names in `receiving.COUNTERS`, and `kernel_drops`: packets that the sockets had no room for."""
    stream: dict[str, int]
    """By the names in `arbitration.COUNTERS`."""
    gaps: list[tuple[int, int]]
    """First number and number of messages of each gap that stayed."""
    batches: np.ndarray
    """Calls by the number of packets that they brought."""
    ended: bool
    """Whether the end of the session came and everything before it is settled."""
    silent: float | None
    """Seconds since the last packet; None if none came."""


def usual_mode(cpus=None) -> str:
    """Return how to wait where nobody has said: exchange, receiver and consumer spin on three CPUs, not on fewer.

    On fewer, receiver and consumer give way to each other: a thread that spins is otherwise taken off its CPU in the
    middle of a packet, for milliseconds.

    Parameters
    ----------
    cpus : int, optional
        CPUs that this process may use, by default as the system says.
    """
    cpus = cpus or len(system.allowed_cpus())
    return "spin" if cpus >= 3 else "yield"


class Receiver(Closed):
    """Receives a feed into a ring.

    Parameters
    ----------
    into : kernels.ring.Ring
        With slots of 8 words.
    lines : sequence of simulator.Endpoint
        One or two.
    mode : str
        "spin", "poll", "block" or "yield": how it waits for packets. The last is for a CPU shared with the consumer.
    batch : int
        Packets of one call at most, 1 to 256.
    server : (str, int), optional
        Address and port of a server that sends again what was lost.
    patience : float
        Seconds until a gap that is not filled is given up.
    first : int
        Number of the first message that is wanted; 0 for that of the first packet to come.
    session : str, optional
        By default that of the first packet.
    buffer, busy_poll, stamps
        See `multicast.receiver`.
    cpu : int, optional
        To be pinned to.
    hold : float
        Seconds from one call that brought packets to the next at least: to see what becomes of a slow reader.
    whole : bool
        Whether to read the clock around all packets of a call (`spans`) instead of around each.
    singly : bool
        Whether to make a call for each packet, as where the system refuses recvmmsg.

    Attributes
    ----------
    granted : list of multicast.Granted
        What the system made of what the sockets asked for.

    Raises
    ------
    UserError
        A socket that cannot be had, or options that do not go together.
    """

    def __init__(
        self, into, lines=(LINE_A,), *, mode="spin", batch=256, server=None, patience=0.5, again=0.01, first=1,
        session=None, buffer=8 << 20, busy_poll=0, stamps=False, window=1 << 14, cpu=None, hold=0.0,
        whole=False, singly=False,
    ):  # fmt: skip
        if mode not in MODES:
            raise UserError(f"a receiver waits by {', '.join(MODES)}, not {mode!r}")
        if not udp.available():
            raise UserError("the receiver needs recvmmsg, which this system has not")
        if not 1 <= len(lines) <= 2 or not 1 <= batch <= 256:
            raise UserError(f"1 or 2 lines and 1 to 256 packets a call, not {len(lines)} and {batch}")
        if mode == "block" and (len(lines) > 1 or server):
            raise UserError("a receiver that blocks listens to one line only; choose poll or spin")
        self.ring, self._sockets, self.granted = into, [], []
        try:
            for line in lines:
                one, granted = multicast.receiver(
                    *line, buffer=buffer, busy_poll=busy_poll, stamps=stamps, seconds=_WAIT
                )
                self._sockets.append(one)
                self.granted.append(granted)
            if server:
                self._sockets.append(multicast.sender(*server))
            self._work = self._make(len(lines), mode, batch, patience, again, first, session, window)
        except BaseException:
            self._close_sockets()
            raise
        self._work.state[receiving.HOLD], self._work.state[receiving.WHOLE] = int(hold * clock.calibrate().hz), whole
        self._work.box.state[udp.SINGLY] = singly
        self._worker = Worker("receiver", self._run, cpu)
        self._work.control[receiving.STOP] = 1
        receiving.receive_until(self._work, into)  # compiled now
        self._work.control[:] = 0

    def _make(self, lines, mode, batch, patience, again, first, session, window):
        hz, state = clock.calibrate().hz, np.zeros(receiving.STATE_WORDS, np.uint64)
        polled = udp.to_wait_for(*self._sockets)
        state[receiving.MODE], state[receiving.LINES], state[receiving.BATCH] = MODES[mode], lines, batch
        state[receiving.SERVER] = len(self._sockets) - lines
        state[receiving.PATIENCE], state[receiving.AGAIN] = int(patience * hz), int(again * hz)
        state[receiving.NEXT], state[receiving.POLL_ADDRESS] = first, udp.address_of(polled)
        for i, one in enumerate(self._sockets):
            state[int(receiving.FDS) + i] = one.fileno()
        arbiter = arbitration.make_arbiter(
            first=first, session=session and moldudp64.session_words(session), window=window
        )
        return receiving.Receiving(
            state, np.zeros(16, np.uint64), polled, np.zeros(1025, np.uint64), np.zeros(2 * _SPANS, np.uint64),
            np.zeros(2, np.uint64),
            udp.make_box(256, 2048, notes=True), udp.make_box(1, 64), arbiter,
        )  # fmt: skip

    @property
    def control(self) -> np.ndarray:
        """Its words `STOP` and `FINISHED`; the consumer looks at the second."""
        return self._work.control

    def start(self):
        """Begin to receive."""
        self._worker.start()

    def _run(self):
        try:
            receiving.receive_until(self._work, self.ring)
        except BaseException:
            _set(self.control, receiving.FINISHED)  # nobody waits for more
            raise

    @property
    def running(self) -> bool:
        """Whether it still receives."""
        return self._worker.running

    def received(self) -> Received:
        """Return what was counted up to now."""
        state, arbiter = self._work.state, self._work.arbiter
        counters = {name: int(state[16 + i]) for i, name in enumerate(receiving.COUNTERS)}
        counters["kernel_drops"] = int(state[int(receiving.LOST) : int(receiving.LOST) + 4].sum())
        last = int(state[receiving.LAST_PACKET])
        silent = (int(_now()) - last) / clock.calibrate().hz if last else None
        ended = bool(self.control[receiving.FINISHED]) and bool(arbiter.state[arbitration.ENDED])
        return Received(
            counters, arbitration.counters(arbiter), arbitration.gaps(arbiter), self._work.batches.copy(), ended, silent
        )

    @property
    def spans(self) -> np.ndarray:
        """Messages and ticks of each call that brought packets, shape (calls, 2), where it counts by the whole."""
        return self._work.spans[: 2 * int(self._work.state[receiving.SPANS])].reshape(-1, 2)

    def leave(self) -> tuple[int, int | None]:
        """Empty the sockets when it has ended.

        Returns
        -------
        tuple of (int, int or None)
            Packets that were still there, and packets that the sockets had no room for in all, as the system counts.
        """
        left, lost = 0, [udp.lost(one) for one in self._sockets[: len(self.granted)]]
        for one in self._sockets[: len(self.granted)]:
            with contextlib.suppress(BlockingIOError):
                while True:
                    one.recv(2048, socket.MSG_DONTWAIT)
                    left += 1
        return left, None if None in lost else sum(lost)

    def close(self):
        """Stop, and close the sockets.

        Raises
        ------
        Failure
            A socket failed.
        """
        _set(self.control, receiving.STOP)
        if self._worker.running:
            self._worker.wait()
        _set(self.control, receiving.FINISHED)
        self._close_sockets()
        self._worker.finish()
        why = int(self._work.state[receiving.WHY])
        if why:
            raise Failure(f"the feed could not be received on: {os.strerror(why).lower()}")

    def _close_sockets(self):
        for one in self._sockets:
            one.close()


def make_ring(slots=1 << 16, buffer=None):
    """Return a ring for events."""
    return ring.make_ring(slots, events.SLOT_WORDS, buffer=buffer)


@kernel
def _set(control, word):
    store_release(control, word, np.uint64(1))


@kernel
def _now():
    return clock.ticks()


@kernel
def is_set(control, word):
    """Tell whether a word of a control array is set."""
    return load_acquire(control, word) != np.uint64(0)
