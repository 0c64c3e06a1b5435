"""From the thread that replays to the one that writes: full blocks of rows go out, emptied ones come back."""

import queue
import threading

from photonlab.systems.tables.columns import Buffers


class Conveyor:
    """A thread that makes record batches of full blocks and delivers them, while kernels fill others.

    Parameters
    ----------
    buffers : Buffers
    converter : photonlab.systems.tables.arrow.Converter
    sink : object
        With ``put(layout, batch)`` and a flag ``keeps``: whether it holds on to batches.
    observer : callable, optional
        Called in the thread with each table's number and columns before they are converted.
    """

    def __init__(self, buffers: Buffers, converter, sink, observer=None):
        self._buffers, self._converter, self._sink = buffers, converter, sink
        self._observer = observer
        self._work = queue.SimpleQueue()
        self._error = None
        self._free = []
        self._now = []
        for number, capacity in enumerate(buffers.capacities):
            self._free.append(queue.SimpleQueue())
            self._now.append(0)
            if capacity:
                buffers.use(number, 0)
                for generation in range(1, buffers.generations):
                    self._free[number].put(generation)
        self._thread = threading.Thread(target=self._run, name="photonlab-tables", daemon=True)
        self._thread.start()

    def pass_on(self, all_of_them=False):
        """Send off the blocks that are full, or whatever has a row; wait for empty ones if need be.

        Raises
        ------
        Exception
            What the thread has met.
        """
        rows = self._buffers.rows
        for number in range(len(self._free)):
            count = int(rows.counts[number])
            if count and (all_of_them or count >= int(rows.limits[number])):
                self._work.put((number, self._now[number], count))
                self._now[number] = self._free[number].get()
                self._buffers.use(number, self._now[number])
        rows.full[0] = 0
        if self._error is not None:
            raise self._error

    def close(self):
        """Send off the rest, and wait until all is delivered."""
        try:
            self.pass_on(all_of_them=True)
        finally:
            self.stop()
        if self._error is not None:
            raise self._error

    def stop(self):
        """End the thread when it has done what it was given."""
        self._work.put(None)
        self._thread.join()

    def _run(self):
        while (item := self._work.get()) is not None:
            number, generation, count = item
            if self._error is None:
                try:
                    self._deliver(number, generation, count)
                except BaseException as error:
                    self._error = error
            self._free[number].put(generation)

    def _deliver(self, number, generation, count):
        layout = self._buffers.layouts[number]
        views = [self._buffers.column(number, generation, k, count) for k in range(len(layout.columns))]
        if self._observer is not None:
            self._observer(number, views)
        self._sink.put(layout, self._converter.batch(layout, views, copy=self._sink.keeps))
