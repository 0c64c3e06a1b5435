"""Rounds from tick to trade: the engine in a thread of this process, the exchange a process that is asked for them.

    with Exchange(10_000) as exchange:
        trip = exchange.run(kinds.KINDS["TCP spinning"], 10_000)

Every wait has a deadline and hears of a stop: an exchange that dies, Ctrl-C, or an order that is not the one called for
end a run with one line, and nothing of it is left behind.
"""

import json
import os
import select
import socket
import subprocess
import sys
import threading
from typing import NamedTuple

import numpy as np

from photonlab.errors import UserError
from photonlab.machine import clock, system
from photonlab.machine.stream_sockets import CLOSED
from photonlab.systems import spin
from photonlab.systems.tick_to_trade import engine as engines
from photonlab.systems.tick_to_trade import exchange as exchanges
from photonlab.systems.tick_to_trade import loops, messages, parts
from photonlab.systems.transports import kinds
from photonlab.systems.transports import link as links

START_SECONDS = 60
"""How long the exchange may take to start: its kernels may have to be compiled."""

_SIGNED = 1 << 63


class Placement(NamedTuple):
    """CPUs of the engine, of the exchange, and of a thread of the system's own; None where they are not pinned."""

    engine: int | None
    exchange: int | None
    polling: int | None
    label: str

    @property
    def own(self) -> bool:
        """Whether a polling thread has a CPU of its own."""
        return self.polling not in (self.engine, self.exchange)

    def text(self, kind) -> str:
        """Say where the parts of a run are."""
        if self.engine is None:
            return self.label
        thread = f", SQ thread {self.polling}" if kind.polled else ""
        lacking = "; no CPU of its own for the SQ thread" if kind.polled and not self.own else ""
        return f"engine CPU {self.engine}, exchange {self.exchange}{thread}{lacking}"


class Trip(NamedTuple):
    """What a run gave.

    Attributes
    ----------
    spans : ndarray of uint64, shape (rounds,)
        Ticks of the clock of each round, warm-up left out.
    stages : ndarray of int64, shape (rounds, 7) or (0, 7)
        Ticks from tick sent to received, through the engine's parts of `parts.PARTS`, to order handed over, to order
        received.
    placement : Placement
    usage : system.Usage
        Of both threads.
    short : int
        Calls of the engine that moved less than asked.
    """

    spans: np.ndarray
    stages: np.ndarray
    placement: Placement
    usage: system.Usage
    short: int


def place(shared=False) -> Placement:
    """Choose CPUs: one each for engine and exchange, and for a polling thread one of its own if there are three.

    Parameters
    ----------
    shared : bool
        Put all of them on one CPU.
    """
    cpus = system.choose_cpus(3)
    if shared or len(cpus) < 2:
        return Placement(cpus[0], cpus[0], cpus[0], "indicative: all on one CPU")
    label = system.placement_label(cpus[:2], 2)
    return Placement(cpus[0], cpus[1], cpus[2] if len(cpus) > 2 else cpus[1], label)


def fate(process) -> str:
    """Say what became of a process that does not answer."""
    try:
        code = process.wait(0.5)
    except subprocess.TimeoutExpired:
        return "does not answer"
    last = process.stderr.read().decode(errors="replace").strip().splitlines()[-1:]
    return f"ended with status {code}" + "".join(f" ({line})" for line in last)


class Exchange:
    """The mock exchange, started.

    Parameters
    ----------
    most : int
        Ticks of a run at most.

    Raises
    ------
    UserError
        It does not start.
    """

    def __init__(self, most):
        self.most = most
        self._descriptor = kinds.shared_file(exchanges.board_bytes(most))
        self.board = exchanges.board_in(self._descriptor, most)
        self._control, theirs = socket.socketpair()
        passed = (theirs.fileno(), self._descriptor)
        self.process = subprocess.Popen(
            [sys.executable, "-m", exchanges.__name__, *map(str, passed), str(most)],
            pass_fds=passed, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._engine = engines.make_engine(1)
        clock.name()
        try:
            self._idle = kinds.make_end(kinds.KINDS["TCP spinning"], (0, 0), 0)
            loops.trade(self._engine, self._idle.link, exchanges.idle_flags(), np.uint64(1), np.zeros(64, np.uint64))
            self._answer(START_SECONDS)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End the process, whatever it is doing, and let go of all that was opened."""
        self.board.flags[spin.STOP] = spin.ENDED
        self._control.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _answer(self, seconds) -> dict:
        readable, _, _ = select.select([self._control], [], [], seconds)
        text = self._control.recv(4096) if readable else b""
        if not text:
            raise UserError(f"the exchange {fate(self.process)}")
        reply = json.loads(text)
        if "error" in reply:
            raise UserError(f"the exchange failed: {reply['error']}")
        return reply

    def run(self, kind, rounds, *, warm_up=0, placement=None, per_second=0, stages=False, seconds=30.0) -> Trip:
        """Make rounds from tick to trade.

        Parameters
        ----------
        kind : Kind
        rounds, warm_up : int
            Rounds counted, and rounds before them.
        placement : Placement, optional
            `place()` by default.
        per_second : int
            Rounds due in a second, each counted from when it was due; 0 for each as soon as the one before is over.
        stages : bool
            Whether to stamp the parts of each round.
        seconds : float
            Deadline.

        Raises
        ------
        UserError
            Refused, a wrong order, an exchange that died, the deadline.
        """
        placement = placement or place()
        if why := kinds.refused(kind, placement.polling):
            raise UserError(why)
        count, hz = rounds + warm_up + 1, clock.calibrate().hz
        if count > self.most:
            raise UserError(f"this exchange was made for {self.most} ticks a run, not {count}")
        flags, found = self.board.flags, {}
        flags[:] = 0
        self.board.report[:] = 0
        flags[spin.DEADLINE] = spin.clock_now() + np.uint64(seconds * hz)
        report, engine = np.zeros(64, np.uint64), self._engine
        if stages:
            engine = parts.stamped(engine, count)
            loops.trade(engine, self._idle.link, exchanges.idle_flags(), np.uint64(1), report)  # compiled by now
        engines.reset(engine)
        ends = kinds.open_ends(kind)
        try:
            kinds.prepare(kind, ends)
            spins = kind.polled and placement.own  # nobody needs the exchange's CPU
            job = {
                "family": kind.family,
                "peer": int(links.SPINNING if spins else kind.peer),
                "cpu": placement.exchange,
                "count": count,
                "interval": int(hz // per_second) if per_second else 0,
            }
            try:
                socket.send_fds(self._control, [json.dumps(job).encode()], list(ends.theirs))
            except OSError:
                raise UserError(f"the exchange {fate(self.process)}") from None
            self._with_engine(engine, kind, ends, placement, count, report, found)
            reply = self._answer(5)
        finally:
            flags[spin.STOP] = max(int(flags[spin.STOP]), spin.ENDED)
            ends.close()
        self._check(count, report, found, reply)
        used = spin._sum(found["usage"], system.Usage(*reply["usage"]))
        first = warm_up + 1
        return Trip(
            self.board.spans[first:count].copy(), self._stages(engine, first, count), placement, used, found["short"]
        )

    def _with_engine(self, engine, kind, ends, placement, count, report, found):
        """Run the engine in a thread until it ends; what it does is found afterwards."""
        flags = self.board.flags

        def run():
            try:
                if placement.engine is not None:
                    system.pin([placement.engine])
                end = kinds.make_end(kind, ends.mine, 0, placement.polling)
                try:
                    with system.Watch() as watch:
                        loops.trade(engine, end.link, flags, np.uint64(count), report)
                finally:
                    end.close()
                words = end.link.words
                found.update(usage=watch.usage, why=int(words[links.WHY]), sent=int(words[links.SENT]))
                found["short"] = int(words[links.SHORT])
            except BaseException as error:
                flags[spin.STOP] = spin.ENDED
                found["error"] = error

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.02)
                if self.process.poll() is not None:
                    flags[spin.STOP] = max(int(flags[spin.STOP]), spin.ENDED)
        finally:
            if thread.is_alive():
                flags[spin.STOP] = spin.ENDED
                thread.join()
        if "error" in found:
            raise found["error"]
        if self.process.poll() is not None:
            raise UserError(f"the exchange {fate(self.process)}")

    def _check(self, count, report, found, reply):
        """Raise where not every order was the one called for."""
        exchange = self.board.report
        if report[loops.BAD]:
            bad = int(report[loops.BAD])
            raise UserError(f"the engine cannot read its ticks on: {engines.WHY[bad - 2 * _SIGNED]}")
        if exchange[loops.WRONG_AT]:
            stray = int(exchange[loops.STRAY])
            more = f", with {stray} bytes behind it" if stray else ""
            raise UserError(f"the order of tick {int(exchange[loops.WRONG_AT])} is not the one it calls for{more}")
        done = int(exchange[loops.DONE])
        if self.board.flags[spin.STOP] == spin.LATE:
            raise UserError(f"the deadline passed after {done} of {count - 1} rounds")
        size = messages.ORDER_SIZE * (count - 1)
        if done != count - 1 or int(report[loops.DONE]) != count:
            raise UserError(f"a run ended after {done} of {count - 1} rounds: {_words(found['why'], reply['why'])}")
        if found["sent"] != size or reply["received"] != size:
            raise UserError(
                f"{found['sent']} bytes of orders were sent, {reply['received']} received, {size} called for"
            )

    def _stages(self, engine, first, count):
        if not isinstance(engine, parts.StampedEngine):
            return np.zeros((0, len(parts.PARTS) + 3), np.int64)
        own = parts.stamps_of(engine)[first:count].astype(np.int64)
        sent, spans = (part[first:count].astype(np.int64) for part in (self.board.sent_at, self.board.spans))
        return np.diff(np.column_stack([sent, own, sent + spans]), axis=1)


def _words(*whys) -> str:
    """Say why links gave up."""
    for why in whys:
        if why and why != int(links.STOPPED):
            return "the other side is gone" if why == int(CLOSED) else os.strerror(why)
    return "stopped"
