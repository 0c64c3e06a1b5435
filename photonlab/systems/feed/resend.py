"""The server that sends again what a receiver has lost: MoldUDP64's requests, by unicast, answered from the day.

A request names a session, a first number and a count; the answer is one packet with as many of these messages as it
takes. Who wants more asks again.
"""

import os
from typing import NamedTuple

import numpy as np

from photonlab.errors import Failure, UserError
from photonlab.kernels import moldudp64
from photonlab.kernels.moldudp64 import HEADER, PREFIX, pack, read_header
from photonlab.machine import multicast, udp
from photonlab.machine.atomics import load_acquire, store_release
from photonlab.machine.bits import load_be16
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array
from photonlab.machine.udp import Box
from photonlab.systems.feed.worker import Worker

PORT = 30_003
STRIDE = 256
"""Messages between two of whom the server knows where they stand; it walks from there."""

_0, _1, _PREFIX = np.uint64(0), np.uint64(1), np.uint64(PREFIX)
_HEADER, _STRIDE = np.uint64(HEADER), np.uint64(STRIDE)
_LONGEST = 1452
_WAIT = 0.05  # seconds until the stop flag is looked at, at the latest

COUNTERS = ("requests", "answers", "messages", "damaged", "other_session", "unknown")
"""Requests that could be answered; answers sent, and messages in them; packets that are no request; requests of another
session; requests of messages that there are none of."""
REQUESTS, ANSWERS, MESSAGES, DAMAGED, OTHER_SESSION, UNKNOWN, HIGH, LOW, KNOWN, ROOM = (np.uint64(i) for i in range(10))
STOP = _0


class Serving(NamedTuple):
    """What the server's loop works with.

    Attributes
    ----------
    state, control : ndarray of uint64
    index : ndarray of uint64
        Offsets of messages 1, 1 + STRIDE, 1 + 2 STRIDE, …
    asked, answers : Box
    """

    state: np.ndarray
    control: np.ndarray
    index: np.ndarray
    asked: Box
    answers: Box


@kernel
def index_of(data, index):
    """Write down where every STRIDE-th message stands; return the number of whole messages."""
    at, end, count = _0, np.uint64(data.size), _0
    while at + _PREFIX <= end:
        length = load_be16(data, at)
        if length == _0 or at + _PREFIX + length > end:
            break
        if count % _STRIDE == _0:
            index[count // _STRIDE] = at
        at += _PREFIX + length
        count += _1
    return count


@kernel
def serve(serving, data, fd):
    """Answer requests until told to stop; return the errno of a call that failed, else 0.

    The socket's time-out bounds how long it takes to see that.
    """
    state, asked, answers = serving.state, serving.asked, serving.answers
    while load_acquire(serving.control, STOP) == _0:
        count, why = udp.receive(asked, fd, np.uint64(16), udp.FIRST)
        if why != _0:
            return why
        n = _0
        for i in range(count):
            size = _answer(serving, data, asked.data, udp.begin(asked, i), udp.size(asked, i), udp.begin(answers, n))
            if size != _0:
                udp.put(answers, n, udp.begin(answers, n), size)
                udp.answer_to(answers, n, asked, i)
                n += _1
        sent = _0
        while sent < n:  # one that cannot be sent is left out: it will be asked for again
            done, why = udp.send(answers, fd, sent, n - sent, _0)
            state[ANSWERS] += done
            sent += max(done, _1)
    return _0


@kernel(inner=True)
def _answer(serving, data, packet, at, size, to):
    """Write the answer to a request; return its bytes, 0 for none."""
    state = serving.state
    if size != _HEADER:
        state[DAMAGED] += _1
        return _0
    high, low, sequence, wanted = read_header(packet, at)
    if high != state[HIGH] or low != state[LOW]:
        state[OTHER_SESSION] += _1
        return _0
    if sequence == _0 or sequence > state[KNOWN] or wanted == _0:
        state[UNKNOWN] += _1
        return _0
    before = sequence - _1
    begin = serving.index[before // _STRIDE]
    for _ in range(before % _STRIDE):
        begin += _PREFIX + load_be16(data, begin)
    wanted = min(wanted, state[KNOWN] - before)
    wanted = min(wanted, np.uint64(moldudp64.MOST))
    messages, begin, stop = pack(
        data, begin, np.uint64(data.size), wanted, serving.answers.data, to, state[ROOM], high, low, sequence
    )
    state[REQUESTS] += _1
    state[MESSAGES] += messages
    return stop - to if messages != _0 else _0


class ResendServer:
    """Serves a day from a thread of its own.

    Parameters
    ----------
    data : bytes-like or ndarray of uint8
        As the simulator has it.
    session : str
    address, port : str, int
        Where requests come; port 0 for any.

    Attributes
    ----------
    port : int

    Raises
    ------
    UserError
        The port is in use, or the address is none of this machine.
    """

    def __init__(self, data, session, address="127.0.0.1", port=PORT):
        self.data = as_bytes_array(data)
        if multicast.is_group(address):
            raise UserError(f"{address}: requests come to an address of one machine, not to a group")
        index = np.zeros(self.data.size // (2 * STRIDE) // 6 + 2, np.uint64)
        state = np.zeros(16, np.uint64)
        state[HIGH], state[LOW] = moldudp64.session_words(session)
        state[ROOM] = _LONGEST
        state[KNOWN] = index_of(self.data, index)
        self._serving = Serving(
            state, np.zeros(16, np.uint64), index,
            udp.make_box(16, 64, names=True), udp.make_box(16, 2048, names=True),
        )  # fmt: skip
        self._socket, _ = multicast.receiver(address, port, address, seconds=_WAIT)
        self.port = self._socket.getsockname()[1]
        self._worker, self._why = Worker("resend", self._run), 0

    def start(self):
        """Begin to serve."""
        self._worker.start()

    def _run(self):
        self._why = int(serve(self._serving, self.data, np.uint64(self._socket.fileno())))

    @property
    def running(self) -> bool:
        """Whether it serves."""
        return self._worker.running

    @property
    def counters(self) -> dict[str, int]:
        """What was counted, by the names in `COUNTERS`."""
        return {name: int(self._serving.state[i]) for i, name in enumerate(COUNTERS)}

    def close(self):
        """Stop, and close the socket.

        Raises
        ------
        Failure
            The socket failed while it was served.
        """
        _raise(self._serving.control)
        if self._worker.running:
            self._worker.wait()
        self._socket.close()
        self._worker.finish()
        if self._why:
            raise Failure(f"requests could not be served on: {os.strerror(self._why).lower()}")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()


@kernel
def _raise(control):
    store_release(control, STOP, _1)
