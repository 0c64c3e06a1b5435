"""Rounds from tick to trade in a process of its own, so that something can be preloaded into engine and exchange.

    with Apart(10_000, preload.environment(path)) as apart:
        trip = apart.run(kinds.KINDS["TCP spinning"], 10_000)

The process is `python -m photonlab.systems.tick_to_trade.apart MOST`: a job in, what became of it out, until its input
ends. What it opens for a run is what `run.Exchange` opens in any other process.
"""

import contextlib
import os
import pickle
import select
import subprocess
import sys
import threading
import time

from photonlab.errors import UserError
from photonlab.systems.tick_to_trade import run as runs
from photonlab.systems.transports import preload

_LENGTH = 8
"""Bytes before an answer that say how long it is."""

_SLACK = 10
"""Seconds that a job may take beyond its own deadline."""


class Apart:
    """The process, started; the first run, or `wait`, waits until it is ready.

    Parameters
    ----------
    most : int
        Ticks of a run at most.
    environment : dict
        Of the process.

    Attributes
    ----------
    preloaded : bool or None
        Whether the library of `preload` is in the process; None until it is ready.
    """

    def __init__(self, most, environment):
        self.preloaded = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "photonlab.systems.tick_to_trade.apart", str(most)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, bufsize=0,
            start_new_session=True,
        )  # fmt: skip

    def wait(self):
        """Wait until the process is ready.

        Raises
        ------
        UserError
            It does not start.
        """
        if self.preloaded is None:
            self.preloaded = self._answer(runs.START_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End the process; its exchange ends with it."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def run(self, kind, rounds, *, warm_up=0, placement=None, seconds=30.0) -> runs.Trip:
        """Make rounds from tick to trade; parameters and errors are those of `run.Exchange.run`."""
        self.wait()
        job = (kind, rounds, {"warm_up": warm_up, "placement": placement, "seconds": seconds})
        try:
            self.process.stdin.write(pickle.dumps(job))
        except OSError:
            raise self._lost() from None
        return self._answer(seconds + _SLACK)

    def _answer(self, seconds):
        """Wait for an answer and return it, or raise what it says."""
        until = time.monotonic() + seconds
        found = pickle.loads(self._read(int.from_bytes(self._read(_LENGTH, until), "little"), until))
        if isinstance(found, str):
            raise UserError(found)
        return found

    def _read(self, size, until):
        stdout, data = self.process.stdout, b""
        while len(data) < size:
            readable, _, _ = select.select([stdout], [], [], max(until - time.monotonic(), 0))
            more = stdout.read(size - len(data)) if readable else b""
            if not more:
                raise self._lost()
            data += more
        return data

    def _lost(self):
        return UserError(f"the engine's process {runs.fate(self.process)}")


def _end_with(pipe):
    """End this process when the other end of a pipe is closed, whatever it is doing; its exchange ends with it."""
    watch = select.poll()
    watch.register(pipe, 0)  # nothing but its end
    watch.poll()
    os._exit(0)


def main(arguments):
    """Do jobs until the input ends."""
    most, jobs, answers = int(arguments[0]), sys.stdin.buffer, sys.stdout.buffer
    threading.Thread(target=_end_with, args=(jobs,), daemon=True).start()

    def answer(found):
        data = pickle.dumps(found)
        answers.write(len(data).to_bytes(_LENGTH, "little") + data)
        answers.flush()

    with runs.Exchange(most) as exchange:
        answer(preload.active())
        while True:
            try:
                kind, rounds, how = pickle.load(jobs)
            except EOFError:
                return
            try:
                answer(exchange.run(kind, rounds, **how))
            except UserError as error:
                answer(str(error))
                if exchange.process.poll() is not None:
                    return


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # as the exchange ends
