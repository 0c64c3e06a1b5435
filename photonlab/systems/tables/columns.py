"""What tables there are and what their columns are, and the memory that kernels write their rows to.

Each table has its columns in turn in one block of memory, and several such blocks (generations): while one is written
out, kernels fill the next. A kernel writes a row only if the table has room for it, and says so when one is full.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels.itch import BY_TYPE
from photonlab.machine.memory import huge_array
from photonlab.systems.batch import BATCH

SPARE = 4 * BATCH
HEAD_WORDS = 3  # of a row of depth as kernels write it: number, time, locate
STEP_WORDS = 4  # of what changes depth, see `tables/steps.py`
_LINE = 64
_STEPS = 1 << 20
_WORDS = 3 << 20  # bytes of a block of rows of words, which should stay in the cache until they are columns

# Numbers of the tables that a replay of the books writes; tables of messages follow
BBO, TRADES, DEPTH, ORDERS, BROKEN = (np.uint64(i) for i in range(5))
BOOK_TABLES = ("bbo", "trades", "depth", "orders", "broken")


class Column(NamedTuple):
    """A column: its name, the bytes of a value as kernels write it, and what it means.

    Kinds: sequence, ns (since midnight), symbol (a stock locate), int64, uint64, uint32, uint16, price4, price8 (raw
    integers), char, alpha, flag, and count, which says up to which rank the columns that name it are there.
    """

    name: str
    width: int
    kind: str
    nullable: tuple = ()  # (name of a column of kind count, rank from 1): null where the count is below it


class Layout(NamedTuple):
    """A table's name and columns; and how kernels write it if not in columns.

    `levels` are those of depth, whose rows they write as words (`tables/depth.py`), or as `steps` (`tables/steps.py`).
    """

    name: str
    columns: tuple[Column, ...]
    levels: int = 0
    steps: bool = False

    @property
    def written(self) -> tuple[Column, ...]:
        """The columns as kernels write them: one of whole rows, or steps, if those are words."""
        if self.steps:
            return (Column("step", 8 * STEP_WORDS, "words"),)
        if self.levels:
            return (Column("row", 8 * (HEAD_WORDS + 4 * self.levels), "words"),)
        return self.columns

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as kernels write it."""
        return sum(column.width for column in self.written)

    @property
    def spare(self) -> int:
        """Rows that a batch may still write once the limit is reached."""
        return max(SPARE, 2 * BATCH * self.levels) if self.steps else SPARE

    @property
    def block_bytes(self) -> int | None:
        """Bytes of a block that should stay in the cache, if it should."""
        return (_STEPS if self.steps else _WORDS) if self.levels else None


class Rows(NamedTuple):
    """Where kernels write.

    Attributes
    ----------
    memory : ndarray of uint8
        All columns of all tables.
    at : ndarray of uint64, shape (columns of all tables,)
        Offset in `memory` of each column's first row.
    first : ndarray of uint64, shape (tables,)
        Index in `at` of each table's first column.
    counts : ndarray of uint64, shape (tables,)
        Rows written.
    limits : ndarray of uint64, shape (tables,)
        With how many rows a table is full.
    full : ndarray of uint64, shape (1,)
        Whether any table is full.
    """

    memory: np.ndarray
    at: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    limits: np.ndarray
    full: np.ndarray


_HEAD = (Column("sequence", 8, "sequence"), Column("ns", 8, "ns"), Column("symbol", 2, "symbol"))

_BBO = Layout(
    "bbo",
    (
        *_HEAD,
        Column("bid", 4, "price4", ("bids", 1)),
        Column("bid_shares", 8, "int64", ("bids", 1)),
        Column("ask", 4, "price4", ("asks", 1)),
        Column("ask_shares", 8, "int64", ("asks", 1)),
        Column("bids", 1, "count"),
        Column("asks", 1, "count"),
    ),
)

_TRADES = Layout(
    "trades",
    (
        *_HEAD,
        Column("type", 1, "char"),
        Column("side", 1, "char"),
        Column("price", 4, "price4"),
        Column("shares", 8, "int64"),
        Column("match_number", 8, "uint64"),
        Column("reference", 8, "uint64"),
        Column("printable", 1, "flag"),
        Column("cross_type", 1, "char"),
        Column("broken", 1, "flag"),
    ),
)

_ORDERS = Layout(
    "orders",
    (
        Column("symbol", 2, "symbol"),
        Column("reference", 8, "uint64"),
        Column("replaces", 8, "uint64"),
        Column("side", 1, "char"),
        Column("price", 4, "price4"),
        Column("shares", 8, "int64"),
        Column("executed", 8, "int64"),
        Column("cancelled", 8, "int64"),
        Column("mpid", 4, "alpha"),
        Column("sequence", 8, "sequence"),
        Column("ns", 8, "ns"),
        Column("end", 1, "char"),
        Column("end_sequence", 8, "sequence", ("ended", 1)),
        Column("end_ns", 8, "ns", ("ended", 1)),
        Column("ended", 1, "count"),
    ),
)

_BROKEN = Layout("broken", (*_HEAD, Column("match_number", 8, "uint64")))


def _depth(levels: int, steps: bool) -> Layout:
    """Return the layout of depth: the bids' prices, then their shares, then the asks'.

    A level that is not there is zero, and not missing: to mark what is missing would take Parquet half as long again.
    """
    columns = list(_HEAD)
    for side in ("bid", "ask"):
        for what, width, kind in (("", 4, "price4"), ("_shares", 8, "int64")):
            columns += [Column(f"{side}{what}_{rank}", width, kind) for rank in range(1, levels + 1)]
    return Layout("depth", tuple(columns), levels, steps)


def book_layouts(levels: int = 1, steps: bool = False) -> tuple[Layout, ...]:
    """Return the layouts of `BOOK_TABLES`, in their order."""
    return _BBO, _TRADES, _depth(levels, steps), _ORDERS, _BROKEN


def message_layout(name: str, types: str) -> Layout:
    """Return the layout of a table of messages of one type, or of several that share it.

    The symbol stands for the stock locate and for the field stock. Fields that only some of the types have are zero or
    blank in the others' rows.
    """
    columns = [*_HEAD, Column("tracking_number", 2, "uint16")]
    if len(types) > 1:
        columns.append(Column("type", 1, "char"))
    for field in (field for type_ in types for field in BY_TYPE[type_].fields[4:]):
        if field.name != "stock" and field.name not in {column.name for column in columns}:
            width = field.width if field.is_text else np.dtype(field.dtype).itemsize
            columns.append(Column(field.name, width, field.kind))
    return Layout(name, tuple(columns))


class Buffers:
    """The memory of all tables, and which part of it kernels fill now.

    Parameters
    ----------
    layouts : sequence of Layout
    used : sequence of bool
        Which of them are wanted; the others get room for no row.
    rows : int
        Rows of a table at once, fewer if they are long.
    generations : int
    most_bytes : int
        Of a table's block.
    allocate : callable
        Gives memory: an array of a length and dtype.
    """

    def __init__(self, layouts, used, rows, generations=3, most_bytes=48 << 20, allocate=huge_array):
        self.layouts = layouts
        self.generations = generations
        first = np.cumsum([0, *(len(layout.written) for layout in layouts)])
        self.capacities = [
            max(min(rows, (layout.block_bytes or most_bytes) // layout.row_bytes), layout.spare + 16) if wanted else 0
            for layout, wanted in zip(layouts, used, strict=True)
        ]
        self._at = np.zeros((generations, first[-1]), np.uint64)
        place = 0
        for generation in range(generations):
            for number, layout in enumerate(layouts):
                for offset, column in enumerate(layout.written):
                    self._at[generation, first[number] + offset] = place
                    # a kernel may write up to 8 bytes for a shorter value; columns start in different cache sets
                    size = column.width * self.capacities[number] + 8
                    place += (-(-size // _LINE) + 1 + offset % 3) * _LINE
        self.rows = Rows(
            allocate(place + _LINE, np.uint8),
            np.zeros(first[-1], np.uint64),
            first[:-1].astype(np.uint64),
            np.zeros(len(layouts), np.uint64),
            np.array(
                [max(capacity - one.spare, 0) for one, capacity in zip(layouts, self.capacities, strict=True)],
                np.uint64,
            ),
            np.zeros(1, np.uint64),
        )
        self._first = first

    def use(self, number: int, generation: int):
        """Have kernels fill a table's block of this generation, from its first row on."""
        span = slice(self._first[number], self._first[number + 1])
        self.rows.at[span] = self._at[generation, span]
        self.rows.counts[number] = 0

    def column(self, number: int, generation: int, offset: int, rows: int) -> np.ndarray:
        """Return a view of a column's rows; uint8 of shape (rows, width) if the width is not that of an integer."""
        width = self.layouts[number].written[offset].width
        at = int(self._at[generation, self._first[number] + offset])
        view = self.rows.memory[at : at + rows * width]
        return view.view(f"u{width}") if width in (1, 2, 4, 8) else view.reshape(rows, width)
