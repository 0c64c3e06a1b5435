"""From the thread that replays to the one that writes: full blocks of rows go out, emptied ones come back."""

import queue
import threading

import numpy as np

from photonlab.machine.memory import huge_array
from photonlab.systems.tables import depth, unfolding
from photonlab.systems.tables.columns import Buffers

GROUP_ROWS, KEPT_ROWS = 1 << 17, 1 << 16
"""Rows of words that are turned before they are passed on: to be written as one group, or to be kept."""
_FLUSH = object()


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
        self._turned = {}
        self._unfoldings = {
            number: unfolding.make_unfolding(layout.levels)
            for number, (layout, capacity) in enumerate(zip(buffers.layouts, buffers.capacities, strict=True))
            if layout.steps and capacity
        }
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
            self._work.put(_FLUSH)
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
            if self._error is None:
                try:
                    if item is _FLUSH:
                        self._flush()
                    else:
                        self._deliver(*item)
                except BaseException as error:
                    self._error = error
            if item is not _FLUSH:
                number, generation, _ = item
                self._free[number].put(generation)

    def _deliver(self, number, generation, count):
        layout = self._buffers.layouts[number]
        if layout.levels:
            self._turn(number, layout, self._buffers.column(number, generation, 0, count))
            return
        views = [self._buffers.column(number, generation, k, count) for k in range(len(layout.columns))]
        if self._observer is not None:
            self._observer(number, views)
        self._sink.put(layout, self._converter.batch(layout, views, copy=self._sink.keeps))

    def _turn(self, number, layout, rows):
        """Make columns of rows of words, or of steps; pass them on when they are many."""
        done, words = 0, rows.reshape(-1)
        while done < len(rows):
            if number not in self._turned:
                self._turned[number] = Turned(layout, self._sink.keeps, self._unfoldings.get(number))
            turned = self._turned[number]
            done += turned.take(words, done, len(rows) - done)
            if turned.full:
                self._pass_turned(number, turned)

    def _pass_turned(self, number, turned):
        layout = turned.buffers.layouts[0]
        views = [turned.buffers.column(0, 0, k, turned.count) for k in range(len(layout.columns))]
        self._sink.put(layout, self._converter.batch(layout, views, copy=False))
        turned.count = 0
        if self._sink.keeps:  # its memory with it
            del self._turned[number]

    def _flush(self):
        for number, turned in list(self._turned.items()):
            turned.finish()
            if turned.count:
                self._pass_turned(number, turned)


class Turned:
    """Columns that are made of rows of words, or of steps.

    Parameters
    ----------
    layout : Layout
    kept : bool
        Whether what is passed on keeps its memory. It is the C library's then, which has some to use again: memory
        that the system gives is dear at its first touch.
    unfolding : Unfolding, optional
        For steps.
    """

    def __init__(self, layout, kept, unfolding=None):
        rows, allocate = (KEPT_ROWS, _empty_lines) if kept else (GROUP_ROWS, huge_array)
        self.buffers = Buffers([layout._replace(levels=0, steps=False)], [True], rows, 1, 1 << 40, allocate)
        self.count, self._levels, self._unfolding = 0, np.uint64(layout.levels), unfolding
        self.buffers.use(0, 0)

    @property
    def full(self) -> bool:
        """Whether there is no room left."""
        return self.count == self.buffers.capacities[0]

    def take(self, words, begin, count) -> int:
        """Turn as many rows, or steps, as there is room for; return how many."""
        memory, starts, row = self.buffers.rows.memory, self.buffers.rows.at, np.uint64(self.count)
        begin, room = np.uint64(begin), np.uint64(self.buffers.capacities[0])
        if self._unfolding is not None:
            end, memory = begin + np.uint64(count), memory.view(np.uint64)
            step, row = unfolding.unfold(self._unfolding, words, begin, end, self._levels, memory, starts, row, room)
            self.count = int(row)
            return int(step) - int(begin)
        count = min(count, int(room) - self.count)
        depth.to_columns(words, begin, np.uint64(count), self._levels, memory, starts, row)
        self.count += count
        return count

    def finish(self):
        """Write what waits for more."""
        if self._unfolding is not None:
            memory, starts = self.buffers.rows.memory.view(np.uint64), self.buffers.rows.at
            self.count += int(unfolding.flush(self._unfolding, self._levels, memory, starts, np.uint64(self.count)))


def _empty_lines(length, dtype):
    """Return memory from the C library that begins where a line does."""
    memory = np.empty(length + 64, dtype)
    return memory[-memory.__array_interface__["data"][0] % 64 :][:length]
