"""The mock exchange, a process of its own: `python -m photonlab.systems.tick_to_trade.exchange CONTROL BOARD TICKS`.

It takes one job after the other from a control socket, with the descriptors of its end of a transport, and ends when
that socket closes: when who started it is gone, it is gone too. What it finds it writes on a board of shared memory.
"""

import json
import mmap
import os
import select
import socket
import sys
import threading
from typing import NamedTuple

import numpy as np

from photonlab.machine import clock, system
from photonlab.systems import spin
from photonlab.systems.tick_to_trade import expected, loops, messages
from photonlab.systems.transports import kinds
from photonlab.systems.transports import link as links

FLAG_WORDS, REPORT_WORDS = 64, 64


class Board(NamedTuple):
    """Memory that both processes share.

    Attributes
    ----------
    flags, report, spans, sent_at : ndarray of uint64
        As `loops.quote` takes them.
    """

    flags: np.ndarray
    report: np.ndarray
    spans: np.ndarray
    sent_at: np.ndarray


def board_bytes(ticks: int) -> int:
    """Return how much memory a board takes."""
    return 8 * (FLAG_WORDS + REPORT_WORDS + 2 * ticks)


def board_in(descriptor: int, ticks: int) -> Board:
    """Return the board in a shared file."""
    words = np.frombuffer(mmap.mmap(descriptor, board_bytes(ticks)), np.uint64)
    parts = np.split(words, np.cumsum([FLAG_WORDS, REPORT_WORDS, ticks]))
    return Board(*parts)


def idle_flags() -> np.ndarray:
    """Return flags with the stop up: a kernel that is called with them is compiled and returns."""
    flags = np.zeros(FLAG_WORDS, np.uint64)
    flags[spin.STOP] = spin.ENDED
    return flags


class _Jobs:
    """What the process keeps from job to job."""

    def __init__(self, control, board, count):
        self.control, self.board = control, board
        given, orders = expected.crossing(count)
        self.ticks, self.orders = expected.stream_of(given), expected.stream_of(orders)
        clock.name()
        end = kinds.make_end(kinds.KINDS["TCP spinning"], (0, 0), 1)
        self._quote(end.link, idle_flags(), 0, 0, np.zeros(REPORT_WORDS, np.uint64))

    def _quote(self, link, flags, count, interval, report):
        sizes = np.uint64(messages.TICK_SIZE), np.uint64(messages.ORDER_SIZE)
        plan = np.array([count, interval], np.uint64)
        loops.quote(
            link, flags, plan, self.ticks, sizes[0], self.orders, sizes[1], self.board.spans, self.board.sent_at, report
        )

    def work(self, job, descriptors) -> dict:
        """Do a job in a thread, and end it early if nobody is there any more to hear of it."""
        reply = {}
        thread = threading.Thread(target=self._run, args=(job, tuple(descriptors), reply), daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.02)
            readable, _, _ = select.select([self.control], [], [], 0)
            if readable:  # closed: there is no word to be said before the answer
                self.board.flags[spin.STOP] = spin.ENDED
        return reply

    def _run(self, job, descriptors, reply):
        try:
            if job["cpu"] is not None:
                system.pin([job["cpu"]])
            kind = kinds.Kind(job["family"], np.uint64(0), np.uint64(job["peer"]))
            end = kinds.make_end(kind, descriptors, 1)
            with system.Watch() as watch:
                self._quote(end.link, self.board.flags, job["count"], job["interval"], self.board.report)
            reply["usage"] = list(watch.usage)
            reply["received"], reply["why"] = (int(end.link.words[word]) for word in (links.RECEIVED, links.WHY))
            end.close()
        except Exception as error:
            self.board.flags[spin.STOP] = spin.ENDED
            reply["error"] = str(error) or type(error).__name__
        finally:
            for descriptor in set(descriptors):
                os.close(descriptor)


def main(arguments):
    """Serve jobs until the control socket closes."""
    control = socket.socket(fileno=int(arguments[0]))
    count = int(arguments[2])
    jobs = _Jobs(control, board_in(int(arguments[1]), count), count)
    control.sendall(b'{"ready": true}\n')
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, 4096, 4)
        if not text:
            return
        reply = jobs.work(json.loads(text), descriptors)
        try:
            control.sendall(json.dumps(reply).encode() + b"\n")
        except OSError:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # there is nothing to put away, and to take the interpreter down costs a third of a second
