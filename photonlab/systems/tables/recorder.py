"""A replayer that writes tables: sifts, has the kernels fill rows, and passes full blocks on."""

import dataclasses

import numpy as np

from photonlab.kernels import order_index, pool
from photonlab.kernels.itch import BY_TYPE
from photonlab.systems import batch
from photonlab.systems.sifted import SiftedReplayer
from photonlab.systems.tables import columns, depth, messages, record
from photonlab.systems.tables.conveyor import Conveyor

_DAY = 2 * 86_400 * 10**9  # a time stamp behind the next midnight is none


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which tables a replay is to write.

    Attributes
    ----------
    bbo, trades, orders : bool
    depth : int
        Levels of each side; 0 for none.
    every : int
        Nanoseconds between two snapshots of depth; 0 for one on every change.
    types : dict of str to str
        Message types by the name of the table that they go to.
    """

    bbo: bool = False
    trades: bool = False
    orders: bool = False
    depth: int = 0
    every: int = 0
    types: dict = dataclasses.field(default_factory=dict)

    @property
    def flags(self) -> int:
        """What the book's loop is to write."""
        parts = (
            (self.bbo, record.WANTS_BBO),
            (self.trades, record.WANTS_TRADES),
            (self.depth and not self.every, record.WANTS_DEPTH),
            (self.depth and self.every, record.WANTS_GRID),
            (self.orders, record.WANTS_ORDERS),
        )
        return sum(int(bit) for wanted, bit in parts if wanted)

    @property
    def layouts(self) -> list:
        """All layouts, in the order of their numbers."""
        book = columns.book_layouts(max(self.depth, 1), steps=bool(self.depth and not self.every))
        return [*book, *(columns.message_layout(name, types) for name, types in self.types.items())]

    @property
    def used(self) -> list[bool]:
        """Which of the layouts get rows."""
        return [self.bbo, self.trades, bool(self.depth), self.orders, self.trades, *(True for _ in self.types)]


class Recorder(SiftedReplayer):
    """A replayer that writes tables as it goes.

    Parameters
    ----------
    wanted : Wanted
    rows : int
        Rows of a block.
    **options
        Of `SiftedReplayer`.
    """

    def __init__(self, wanted: Wanted, *, rows=1 << 16, **options):
        super().__init__(**options)
        self.wanted = wanted
        self.buffers = columns.Buffers(wanted.layouts, wanted.used, rows)
        feed = self.feed_state
        self._out = record.make_output(self.buffers.rows, feed.book, wanted.flags, max(wanted.depth, 1))
        self._scratch = np.zeros((2, 256), np.uint64)
        numbered = {layout.name: (number, layout) for number, layout in enumerate(wanted.layouts)}
        self._plan = messages.make_plan(
            {type_: numbered[name] for name, types in wanted.types.items() for type_ in types}
        )
        if wanted.every:
            self._out.state[record.GRID] = 0
        self.conveyor = None

    def start(self, converter, sink, observer=None):
        """Open the way out; see `Conveyor`."""
        self.conveyor = Conveyor(self.buffers, converter, sink, observer)

    def _replay(self, data, begin, end):
        at, outcome = begin, batch.MORE
        if self.wanted.types:
            at, outcome = self._write_messages(data, begin, end)
        if self.wanted.flags:
            at, outcome = self._record(data, begin, end)
        return at, outcome

    def _write_messages(self, data, begin, end):
        feed, numbers = self.feed_state, self.numbers
        number, counts, anomalies = np.uint64(self.messages), feed.counts, feed.anomalies
        if len(numbers) or self.wanted.flags:  # somebody else counts
            counts, anomalies = self._scratch
        if len(numbers):
            number = np.uint64(0)
        at, outcome = begin, messages.ROWS_FULL
        while outcome == messages.ROWS_FULL:
            at, outcome, number = messages.write_messages(
                self._plan, self.buffers.rows, feed.names, numbers, counts, anomalies, data, at, end, np.uint64(number)
            )
            if outcome == messages.ROWS_FULL:
                self.conveyor.pass_on()
            at = np.uint64(at)
        return at, outcome

    def _record(self, data, begin, end):
        out, state = self._out, self._out.state
        if len(self.numbers):
            out = out._replace(numbers=self.numbers)
            state[record.SIFTED], state[record.BASE], state[record.COUNT], state[record.DONE] = 1, 0, 0, 0
        at, outcome = record.record(self.loop_feed, out, data, begin, end)
        while outcome in (record.ROWS_FULL, record.GRID_POINT):
            if outcome == record.ROWS_FULL:
                self.conveyor.pass_on()
            else:
                self._snapshot(data)
            at, outcome = record.record(self.loop_feed, out, data, np.uint64(at), end)
        return at, outcome

    def _snapshot(self, data):
        """Write a snapshot of depth for the point of the grid that the next message lies behind; set the next one."""
        state, every = self._out.state, self.wanted.every
        point = int(state[record.GRID])
        if point == 0:
            at = self.feed_state.batch.messages[state[record.DONE]] & batch.OFFSET
            first = int.from_bytes(data[int(at) + 5 : int(at) + 11].tobytes(), "big")
            state[record.GRID] = (first // every + 1) * every
            return
        book, rows = self.feed_state.book, self.buffers.rows
        number = int(state[record.BASE] + state[record.DONE])  # of the next message
        if len(self.numbers):
            number = int(self.numbers[number])
        number = np.uint64(max(number, 1) - 1)
        levels, cursor = state[record.LEVELS], state[record.CURSOR : record.TOP + np.uint64(1)]
        while not depth.snapshot(book, rows, self._out.ladder, levels, cursor, np.uint64(point), number):
            self.conveyor.pass_on()
        state[record.GRID] = point + every if point < _DAY else record.NO_GRID

    def finish(self):
        """Write the orders that are still live, and wait until all rows are delivered."""
        if self.wanted.orders:
            book = self.feed_state.book
            node = np.uint64(0)
            end = np.uint64(int(book.index.page_pool.state[pool.FRESH]) * order_index.PAGE_NODES)
            while True:
                node = record.open_orders(book, self.buffers.rows, self._out.lives, np.uint64(node), end)
                if node >= end:
                    break
                self.conveyor.pass_on()
        self.conveyor.close()


def message_tables(types) -> dict[str, str]:
    """Return the names of the tables of messages of some types: by type and name, as in messages_A_add_order.

    Parameters
    ----------
    types : iterable of str
    """
    return {f"messages_{type_}_{_words(BY_TYPE[type_].name)}": type_ for type_ in types}


def _words(name):
    name = name.split(" (")[0]
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
