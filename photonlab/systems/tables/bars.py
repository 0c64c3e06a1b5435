"""Bars of trades: open, high, low and close of each instrument by time, by volume or by number of trades.

What is not printable, or was broken, is in no bar. A trade lies in one bar as a whole, also of bars by volume, which
are closed by the trade that reaches the volume.
"""

import numpy as np
import pandas as pd

from photonlab.errors import UserError
from photonlab.machine.jit import kernel
from photonlab.systems.tables.columns import Column, Layout

_0, _1 = np.uint64(0), np.uint64(1)
LOCATES = 1 << 16
TIME, VOLUME, TICKS = (np.uint64(i) for i in range(3))

# Words of an instrument's open bar, which are the columns of a row too, and the number of its period
SEQUENCE, NS, OPEN, HIGH, LOW, CLOSE, SHARES, TRADES, NOTIONAL, LAST_NS, PERIOD = (np.uint64(i) for i in range(11))
WORDS = 16


class Bars:
    """Makes one table of bars.

    Parameters
    ----------
    spec : str
        A time such as 1min, or volume:SHARES, or ticks:TRADES.
    """

    def __init__(self, spec, rows=1 << 16):
        self.kind, self.step = _parsed(spec)
        name = f"bars_{''.join(c if c.isalnum() else '_' for c in str(spec))}"
        self.layout = Layout(
            name,
            (
                Column("sequence", 8, "sequence"),
                Column("ns", 8, "ns"),
                Column("symbol", 2, "symbol"),
                *(Column(price, 4, "price4") for price in ("open", "high", "low", "close")),
                Column("shares", 8, "int64"),
                Column("trades", 8, "int64"),
                Column("notional", 8, "uint64"),
                Column("last_ns", 8, "ns"),
            ),
        )
        self._rows = rows
        self.reset()

    def reset(self):
        """Forget all trades."""
        self._open = np.zeros((LOCATES, WORDS), np.uint64)
        self._done = []
        self._block = np.zeros((self._rows, WORDS), np.uint64)

    def add(self, sequence, ns, locates, price, shares, printable, broken):
        """Take trades, given as columns of the trades' table."""
        use = (printable != 0) & (broken == 0) & (shares != 0)
        columns = [np.ascontiguousarray(c[use]).astype(np.uint64) for c in (sequence, ns, locates, price, shares)]
        begin = np.uint64(0)
        while begin < len(columns[0]):
            begin, count = fill(self._open, self._block, self.kind, np.uint64(self.step), np.uint64(begin), *columns)
            self._done.append(self._block[: int(count)].copy())

    def add_batch(self, batch, locates):
        """Take trades, given as a record batch, and the locate of each symbol."""
        column = {name: batch.column(name) for name in batch.schema.names}
        texts = column["symbol"].dictionary.to_pylist()
        codes = np.array([locates.get(text, int(text[1:]) if text[1:].isdigit() else 0) for text in texts], np.uint64)
        symbols = codes[column["symbol"].indices.to_numpy()] if len(texts) else np.zeros(0, np.uint64)
        numbers = [column[name].to_numpy(zero_copy_only=False) for name in ("sequence", "ns", "shares")]
        flags = [column[name].to_numpy(zero_copy_only=False) for name in ("printable", "broken")]
        self.add(numbers[0], numbers[1], symbols, _raw(column["price"]), numbers[2], *flags)

    def finish(self):
        """Yield the columns of all bars, in the order of their first trades."""
        last = self._open[self._open[:, TRADES] != 0]
        rows = np.concatenate([*self._done, _with_locates(self._open)]) if len(last) else np.concatenate(
            [*self._done, np.zeros((0, WORDS), np.uint64)]
        )  # fmt: skip
        rows = rows[np.argsort(rows[:, SEQUENCE], kind="stable")]
        begin = rows[:, NS] // np.uint64(self.step) * np.uint64(self.step) if self.kind == TIME else rows[:, NS]
        columns = [rows[:, SEQUENCE], begin, rows[:, PERIOD + _1].astype(np.uint16)]
        columns += [rows[:, word].astype(np.uint32) for word in (OPEN, HIGH, LOW, CLOSE)]
        yield [np.ascontiguousarray(c) for c in [*columns, *(rows[:, w] for w in (SHARES, TRADES, NOTIONAL, LAST_NS))]]


def _with_locates(open_bars):
    used = np.flatnonzero(open_bars[:, TRADES])
    rows = open_bars[used].copy()
    rows[:, PERIOD + _1] = used
    return rows


def _raw(prices):
    """Return raw integers of a column of prices, however they are shown."""
    import pyarrow as pa

    if pa.types.is_decimal(prices.type):
        return np.frombuffer(prices.buffers()[1], np.uint64)[0::2][prices.offset :][: len(prices)]
    values = prices.to_numpy(zero_copy_only=False)
    return np.rint(values * 10_000) if values.dtype.kind == "f" else values


def _parsed(spec):
    what, _, number = str(spec).partition(":")
    try:
        if what in ("volume", "ticks"):
            kind, step = (VOLUME if what == "volume" else TICKS), int(number.replace("_", ""))
        else:
            kind, step = TIME, pd.Timedelta(spec).value
    except ValueError:
        step = 0
    if step <= 0:
        raise UserError(f"bars are such as 1min, volume:10000 or ticks:100, not {spec!r}")
    return kind, step


@kernel
def fill(open_bars, block, kind, step, begin, sequence, ns, locates, price, shares):
    """Add trades to the open bars, and write those that are complete.

    Parameters
    ----------
    open_bars : ndarray of uint64, shape (65536, 16)
        By locate.
    block : ndarray of uint64, shape (rows, 16)
        Takes complete bars.
    kind, step : uint64
    begin : uint64
        The first trade to look at.
    sequence, ns, locates, price, shares : ndarray of uint64, shape (trades,)

    Returns
    -------
    next, count : uint64
        The first trade not looked at, and how many bars were written.
    """
    i, count, room = begin, _0, np.uint64(block.shape[0])
    while i < np.uint64(sequence.size) and count + _1 < room:
        bar = open_bars[locates[i]]
        period = ns[i] // step if kind == TIME else _0
        if bar[TRADES] != _0 and bar[PERIOD] != period:
            count = _close(bar, block, count, locates[i])
        if bar[TRADES] == _0:
            bar[SEQUENCE], bar[NS], bar[PERIOD] = sequence[i], ns[i], period
            bar[OPEN], bar[HIGH], bar[LOW] = price[i], price[i], price[i]
        bar[HIGH], bar[LOW], bar[CLOSE] = max(bar[HIGH], price[i]), min(bar[LOW], price[i]), price[i]
        bar[SHARES] += shares[i]
        bar[TRADES] += _1
        bar[NOTIONAL] += shares[i] * price[i]
        bar[LAST_NS] = ns[i]
        if (kind == VOLUME and bar[SHARES] >= step) or (kind == TICKS and bar[TRADES] >= step):
            count = _close(bar, block, count, locates[i])
        i += _1
    return i, count


@kernel(inner=True)
def _close(bar, block, count, locate):
    for word in range(np.uint64(WORDS)):
        block[count, word] = bar[word]
        bar[word] = _0
    block[count, PERIOD + _1] = locate
    return count + _1
