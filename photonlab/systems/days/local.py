"""Units on processes of this machine: each has a pipe; one that dies gives its unit back and is replaced."""

import contextlib
import multiprocessing
import multiprocessing.connection
import signal
from collections import deque

from photonlab.systems.days import unit as units

KILLED = "the process that did it was killed"


class _Worker:
    def __init__(self, context):
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True, name="photonlab-day")
        self.process.start()
        theirs.close()
        self.task = None

    def give(self, task, out):
        self.task = task
        self.pipe.send((units.as_task(task.unit), str(out), task.attempt))

    def stop(self):
        with contextlib.suppress(OSError, ValueError):
            self.pipe.close()
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()


def _serve(pipe):
    """Do units until the pipe is closed. An interrupt at the terminal is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            fields, out, attempt = pipe.recv()
        except EOFError:
            return
        pipe.send(units.attempt(fields, out, attempt))


def run(tasks, out, workers):
    """Do tasks, and yield each with how it ended, as they end.

    Parameters
    ----------
    tasks : iterable of photonlab.systems.days.many.Task
    out : Path
    workers : int
        Processes, spawned: a fork would take the locks of this one's threads with it.

    Yields
    ------
    tuple of (Task, bool, dict or str, bool)
        The task, and how it ended, as `unit.attempt` says. Send True to have the task done again.
    """
    context = multiprocessing.get_context("spawn")
    waiting, busy = deque(tasks), []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                worker = _Worker(context)
                worker.give(waiting.popleft(), out)
                busy.append(worker)
            ready = multiprocessing.connection.wait([one.pipe for one in busy] + [one.process.sentinel for one in busy])
            for worker in [one for one in busy if one.pipe in ready or one.process.sentinel in ready]:
                task = worker.task
                try:
                    ended, dead = worker.pipe.recv(), False
                except (EOFError, OSError):
                    ended, dead = (False, KILLED, True), True
                if (yield task, *ended):
                    waiting.append(task)
                if dead or not waiting:
                    busy.remove(worker)
                    worker.stop()
                else:
                    worker.give(waiting.popleft(), out)
    finally:
        for worker in busy:
            worker.stop()
