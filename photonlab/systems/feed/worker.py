"""A thread of a feed: it works in a kernel until its end or until it is told to stop, and its end is certain.

The end is told by an event. In Python 3.11 Ctrl-C during a join makes a running thread count as over; sockets would
then be closed under a kernel that still uses them.
"""

import threading

from photonlab.machine import system


class Worker:
    """A thread that has not begun.

    Parameters
    ----------
    name : str
    work : callable
        What it does; its exception is kept as `failure`.
    cpu : int, optional
        To be pinned to.
    """

    def __init__(self, name, work, cpu=None):
        self._work, self._cpu = work, cpu
        self._name, self._begun, self._over = f"photonlab-{name}", False, threading.Event()
        self.failure = None

    def start(self, *arguments):
        """Begin to work."""
        threading.Thread(target=self._run, args=arguments, name=self._name, daemon=True).start()
        self._begun = True

    def _run(self, *arguments):
        try:
            if self._cpu is not None:
                system.pin([self._cpu])
            self._work(*arguments)
        except BaseException as error:
            self.failure = error
        finally:
            self._over.set()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    @property
    def running(self) -> bool:
        """Whether it works."""
        return self._begun and not self.over

    def wait(self, timeout=None) -> bool:
        """Wait until it has ended; return whether it has."""
        return self._over.wait(timeout)

    def finish(self):
        """Wait until it has ended, if it has begun; raise what ended it, if that was an exception."""
        if self._begun:
            self._over.wait()
        if self.failure is not None:
            raise self.failure


class Closed:
    """What is closed at the end of a ``with``; its complaint does not hide an exception that came before."""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.close()
        except BaseException:
            if kind is None:
                raise
