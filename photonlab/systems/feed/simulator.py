"""The exchange's part: a day replayed as MoldUDP64 over UDP, at the file's own pace, at a fixed rate, or flat out."""

import os
import threading
import time
from typing import NamedTuple

import numpy as np

from photonlab.errors import Failure, UserError
from photonlab.kernels import moldudp64
from photonlab.kernels.histogram import Histogram
from photonlab.machine import clock, multicast, udp, udp_segments
from photonlab.machine.atomics import store_release
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array
from photonlab.systems.feed import faults, schedule, sending
from photonlab.systems.feed.faults import Faults
from photonlab.systems.feed.planted import ROOM
from photonlab.systems.feed.worker import Closed, Worker
from photonlab.systems.inputs import Input

PORT = 30_001
GROUPS = ("239.1.1.1", "239.1.1.2")
"""Of lines A and B."""

SESSION = "PHOTONLAB"
_ENDS = 5  # end-of-session packets, some time apart: they may be lost as others are
_BETWEEN_ENDS = 0.01
_LONGEST = 1452  # bytes of a packet that an Ethernet frame takes
_ALWAYS_FIT = (_LONGEST - moldudp64.HEADER) // (moldudp64.PREFIX + 50)  # messages of ITCH, however long


class Endpoint(NamedTuple):
    """Where a line is sent, and received."""

    address: str
    port: int = PORT
    interface: str = "lo"

    def __str__(self):
        return f"{self.address}:{self.port} on {self.interface}"


LINE_A, LINE_B = (Endpoint(group) for group in GROUPS)


class Sent(NamedTuple):
    """What a simulator has sent."""

    messages: int
    packets: int
    seconds: float
    lines: tuple[dict, ...]
    """Of each line: packets sent, lost, repeated, late; messages of the lost ones; buffers, system calls, refusals."""
    errors: Histogram
    """How late packets were, in units of 64 ns; empty if they were sent flat out."""
    ends: int
    """Packets on each line that told of the session's end; they have no number."""
    complete: bool
    """Whether the day was sent to its end."""
    segments: str
    """How many packets went as one buffer at most, or why each went by itself."""

    @property
    def packets_a_second(self) -> float:
        """Packets of the first line, planted faults included."""
        return self.lines[0]["sent"] / self.seconds if self.seconds else 0.0


class Simulator(Closed):
    """Sends a day on one or two lines from a thread of its own.

    Parameters
    ----------
    data : bytes-like or ndarray of uint8
        Framed as NASDAQ's files are, whole messages from the first byte on (`load`).
    lines : sequence of Endpoint
        One or two.
    speed, rate, packet_rate : int, optional
        Times as fast as the file's clock; messages a second; packets a second. Without any, flat out.
    most : int
        Messages of a packet at most; 1 for one message a packet.
    planted : sequence of Faults
        Of each line.
    seed : int
        Of the faults.
    session : str
    together : int
        With the file's clock, messages of a packet lie at most so many ns apart.
    schedule_path : path-like, optional
        A file for the schedule, if another process is to know what was due when.
    cpu : int, optional
        To be pinned to.
    segments : int
        Packets at most that are handed to the system as one buffer, for it to cut up (`udp_segments`): only such as are
        due already, so none waits for another. 1 for each by itself, as it also is where the system cannot do it.
    announcing : float
        Seconds for which the session's end is announced on after its first packets, ever more rarely, for receivers
        that have a full buffer just then.

    Raises
    ------
    UserError
        An option or an endpoint that cannot be.
    """

    def __init__(
        self, data, lines=(LINE_A,), *, speed=None, rate=None, packet_rate=None, most=1, planted=(), seed=1,
        session=SESSION, together=50_000, schedule_path=None, cpu=None, heartbeat=1.0,
        segments=udp_segments.MOST, announcing=0.0,
    ):  # fmt: skip
        if not 1 <= len(lines) <= 2:
            raise UserError(f"a feed has one line or two, not {len(lines)}")
        if not 1 <= most <= moldudp64.MOST:
            raise UserError(f"a packet takes 1 to {moldudp64.MOST:,} messages, not {most}")
        if packet_rate is not None and most > _ALWAYS_FIT:  # else who receives could not tell when a message was due
            raise UserError(f"packets a second need packets of at most {_ALWAYS_FIT} messages: these always fit")
        if not 1 <= segments <= udp_segments.MOST:
            raise UserError(f"a buffer takes 1 to {udp_segments.MOST} packets, not {segments}")
        self.data = as_bytes_array(data)
        self.session = session
        self.lines = list(lines)
        self.schedule = schedule.make_schedule(
            speed=speed, rate=rate, packets=packet_rate, most=most, path=schedule_path
        )
        self._announcing, self._ends = announcing, 0
        self.seed, self.planted = seed, (*planted, *[Faults()] * 2)[:2]
        words = [faults.words_of(one, seed, i) for i, one in enumerate(self.planted)]
        room = [ROOM if one.lost else 0 for one in self.planted]
        self._sending = sending.make_sending(
            self.schedule, session=moldudp64.session_words(session), most=most, room=_LONGEST, together=together,
            quiet=int(heartbeat * clock.calibrate().hz), lines=len(lines),
        )  # fmt: skip
        self._sockets = [multicast.sender(*line) for line in lines]
        self._segments = "off" if segments == 1 else udp_segments.why_not(self._sockets[0])
        segments = 1 if self._segments else segments
        first = sending.make_line(self._sockets[0].fileno(), words[0], None, segments, room[0])
        self._lines = (first, sending.make_line(self._sockets[-1].fileno(), words[1], first, segments, room[1]))
        self._worker, self._told, self._damaged = Worker("simulator", self._run, cpu), threading.Event(), False
        self._began = self._ended = 0.0
        self.position = 0
        sending.send_until(*self._lines, self._sending, self.data, np.uint64(0), np.uint64(0))  # compiled now

    def start(self, delay=0.0):
        """Begin to send after some seconds.

        Raises
        ------
        UserError
            A delay that cannot be.
        """
        if not 0 <= delay <= threading.TIMEOUT_MAX:
            raise UserError(f"a delay is a number of seconds from 0, not {delay:g}")
        self._worker.start(delay)

    def _run(self, delay):
        if self._told.wait(delay):
            return
        stamp = int.from_bytes(self.data[7:13].tobytes(), "big") if self.data.size >= 13 else 0
        self.schedule[schedule.ORIGIN] = stamp
        _begin(self.schedule)
        self._began = time.perf_counter()
        end = np.uint64(self.data.size)
        self.position = int(sending.send_until(*self._lines, self._sending, self.data, np.uint64(0), end))
        self._ended = time.perf_counter()
        if not self._complete:  # to announce an end would pretend
            self._damaged = not self._told.is_set() and self._sending.state[sending.WHY] == 0
            return
        for _ in range(_ENDS):
            self._announce()
            time.sleep(_BETWEEN_ENDS)
        until, gap = time.monotonic() + self._announcing, 2 * _BETWEEN_ENDS
        while time.monotonic() + gap <= until and not self._told.wait(gap):
            self._announce()
            gap *= 2

    def _announce(self):
        sending.beat(*self._lines, self._sending, np.uint64(moldudp64.END_OF_SESSION))
        self._ends += 1

    @property
    def _complete(self):
        """Whether the day was sent to the end of its bytes, or to a length of zero, which ends a file's session."""
        rest = self.data[self.position :]
        return not rest.size or (rest.size >= 2 and not rest[:2].any())

    @property
    def done(self) -> bool:
        """Whether it has sent all, or was stopped."""
        return self._worker.over

    def wait(self, timeout=None) -> bool:
        """Wait until all is sent; return whether it is."""
        return self._worker.wait(timeout)

    def stop(self):
        """Make it end at once; the session's end is not sent then."""
        self._told.set()  # first, lest being stopped is taken for damage
        _raise(self._sending.control)
        if self._worker.running:
            self._worker.wait()

    def sent(self) -> Sent:
        """Return what was sent up to now."""
        state = self._sending.state
        ended = self._ended or time.perf_counter()
        return Sent(
            int(state[sending.SEQUENCE]) - 1,
            int(state[sending.PACKETS]),
            ended - self._began if self._began else 0.0,
            tuple(_line(line) for line in self._lines[: int(state[sending.LINES])]),
            self._sending.errors,
            self._ends,
            self._complete,
            self._cut_up(),
        )

    def _cut_up(self):
        words = [line.words for line in self._lines[: int(self._sending.state[sending.LINES])]]
        refused = next((int(one[sending.NOT_CUT]) for one in words if one[sending.NOT_CUT]), 0)
        why = self._segments or (os.strerror(refused).lower() if refused else "")
        said = f"one packet a buffer ({why})" if why else f"up to {int(words[0][sending.SEGMENTS])} packets a buffer"
        return said + ", one buffer a call (no sendmmsg here)" * bool(self._lines[0].box.state[udp.SINGLY])

    @property
    def lost(self) -> list[np.ndarray]:
        """First number and messages of each packet lost on purpose, line by line, as long as there was room."""
        lines = self._lines[: len(self.lines)]
        return [line.lost.reshape(-1, 2)[: int(line.words[sending.LOST_PACKETS])] for line in lines]

    def close(self):
        """Stop, and close the sockets.

        Raises
        ------
        Failure
            A socket failed while it was sent to, or the day breaks off within a message.
        """
        self.stop()
        for one in self._sockets:
            one.close()
        self._worker.finish()
        why = int(self._sending.state[sending.WHY])
        if why:
            raise Failure(f"the feed could not be sent on: {os.strerror(why).lower()}")
        if self._damaged:
            raise Failure(f"the day breaks off at offset {self.position:,}: expected a whole message; no end was sent")


def _line(line):
    words = line.words
    names = {
        "sent": sending.SENT, "lost": sending.LOST_PACKETS, "repeated": sending.REPEATED_PACKETS,
        "late": sending.LATE_PACKETS, "lost messages": sending.LOST_MESSAGES, "buffers": sending.BUFFERS,
        "calls": sending.CALLS, "refused": sending.REFUSED,
    }  # fmt: skip
    return {name: int(words[at]) for name, at in names.items()}


def load(path) -> np.ndarray:
    """Return the bytes of a file of ITCH 5.0 of any kind that a replay reads, framed; a plain file is mapped.

    Raises
    ------
    UserError
        It cannot be read, or is empty or damaged.
    """
    with Input(path) as source:
        if not source.kind and source.size:
            return np.memmap(path, np.uint8, "r")
        data = np.concatenate([np.empty(0, np.uint8), *(chunk.copy() for chunk in source.chunks())])
        if source.damage:
            raise UserError(f"{source.name}: damaged: {source.damage}")
    if not data.size:
        raise UserError(f"{source.name}: empty: expected ITCH 5.0 messages")
    return data


@kernel
def _begin(words):
    store_release(words, schedule.START, clock.ticks())


@kernel
def _raise(control):
    store_release(control, sending.STOP, np.uint64(1))
