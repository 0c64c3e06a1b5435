"""`photonlab.tables(path, bbo=True, …)`: one pass over any input, any tables out."""

import datetime
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd

from photonlab.errors import UserError
from photonlab.kernels.itch import BY_TYPE
from photonlab.systems.inputs import Input
from photonlab.systems.replay import Replay, feed_all
from photonlab.systems.tables.arrow import Converter
from photonlab.systems.tables.columns import BROKEN, TRADES
from photonlab.systems.tables.recorder import Recorder, Wanted, message_tables
from photonlab.systems.tables.sinks import MemorySink, ParquetSink

NAMED = {"imbalance": "I", "directory": "R", "halts": "Hh"}
"""Tables of messages that have a name of their own."""


def tables(
    path, *, bbo=False, trades=False, depth=None, every=None, orders=False, messages=None, imbalance=False,
    directory=False, halts=False, bars=None, symbols=None, shard=None, out=None, date=None, prices="integer",
    compression="lz4", salvage=False, progress=None, session=None, lines=None,
):  # fmt: skip
    """Turn a day of ITCH 5.0 into tables, in one pass.

    Every row has `sequence`, the number of its message in the input from 0 on, which orders the rows of all tables,
    `ns`, nanoseconds since midnight, and `symbol`; where the date is known also `time`, a time stamp in New York.

    Parameters
    ----------
    path : path-like
        As `photonlab.replay` takes it.
    bbo : bool
        Best bid and offer with their shares, a row for every change of any of the four.
    trades : bool
        A row for each execution (E, C), trade (P) and cross (Q). Volume is the sum of the shares of those that are
        `printable` and not `broken`; a trade that the exchange breaks later is marked.
    depth : int, optional
        The best so many levels of each side, a row for every change of any of them. A level that is not there has
        price and shares zero.
    every : str, Timedelta or int, optional
        For depth: a row for each instrument at each multiple of this time (int: nanoseconds) in place of one for each
        change. Messages at that very time come after it.
    orders : bool
        A row for each order when it is gone: when it came and went, what was executed and cancelled.
    messages : str or bool, optional
        A table for each of these message types, with all fields; True for all types.
    imbalance, directory, halts : bool
        The messages I, R, and H with h.
    bars : str or list of str, optional
        Bars of trades: "1min", "volume:10000", "ticks:100".
    symbols : str or iterable of str, optional
        These instruments only.
    shard : tuple of (int, int), optional
        (k, n): only instruments whose stock locate modulo n is k.
    out : path-like, optional
        A folder for Parquet files, one a table. Without it the tables are kept in memory.
    date : str or date, optional
        The day in New York; by default as the file's name has it, if it does.
    prices : str
        "integer" (raw, in units of 0.0001), "decimal" (exact) or "float".
    compression : str
        Of Parquet: lz4, zstd, snappy, or none, which is fastest and largest.
    salvage : bool
        Take what stands before the damage of a damaged gzip or zstd for all.
    progress : callable, optional
        Called with (stored bytes read, bytes in all or 0) after every chunk.
    session, lines : optional
        Of a capture, what to follow, as `photonlab.replay` takes them.

    Returns
    -------
    Tables

    Raises
    ------
    ItchFormatError, UserError
        As `photonlab.replay` does; for a table that is none; if no table is wanted.
    """
    from photonlab.systems.tables import bars as bar_room

    makers = [bar_room.Bars(spec) for spec in ([bars] if isinstance(bars, str) else bars or ())]
    wanted = Wanted(
        bbo=bool(bbo), trades=bool(trades or makers), orders=bool(orders), depth=_levels(depth),
        every=_nanoseconds(every), types=_types(messages, imbalance=imbalance, directory=directory, halts=halts),
    )  # fmt: skip
    if not wanted.flags and not wanted.types:
        raise UserError("no table is wanted: choose bbo, trades, depth, orders, messages, bars or another one")
    if wanted.every and not wanted.depth:
        raise UserError("every goes with depth: say how many levels")
    day = _day(date) if date is not None else day_of(path)
    with Input(path, hashed=out is not None, session=session, lines=lines) as source:
        recorder = Recorder(wanted, symbols=symbols, shard=shard, name=source.name)
        converter = Converter(recorder.feed_state.names, day, prices)
        layouts = [layout for layout, used in zip(wanted.layouts, wanted.used, strict=True) if used]
        layouts += [maker.layout for maker in makers]
        sink = MemorySink(converter, layouts) if out is None else ParquetSink(out, converter, layouts, compression)
        broken = []

        def observe(number, views):
            if number == int(BROKEN):
                broken.append(views[3].copy())
            elif number == int(TRADES):
                for maker in makers:
                    maker.add(*(views[k] for k in (0, 1, 2, 5, 6, 9, 11)))

        recorder.start(converter, sink, observe)
        try:
            try:
                seconds = feed_all(recorder, source, salvage, progress)
                recorder.finish()
            except BaseException:
                recorder.conveyor.stop()
                raise
            result = Replay(recorder, seconds)
            for symbol in recorder.symbols or ():
                result.locate(symbol)
            if broken:
                _break(sink, np.concatenate(broken), makers, recorder.feed_state.names)
            for maker in makers:
                for views in maker.finish():
                    sink.put(maker.layout, converter.batch(maker.layout, views, copy=True))
            summary = _summary(result, source, day, prices)
            names = [
                layout.name for layout in layouts if layout.name != "broken" and (trades or layout.name != "trades")
            ]
            found = sink.finish(names, summary)
        except BaseException:
            sink.abandon()
            raise
    return Tables(found, summary, result)


class Tables(Mapping):
    """Tables by name, as pandas DataFrames: ``tables["bbo"]`` or ``tables.bbo``; of messages by type too: ``["A"]``.

    Attributes
    ----------
    summary : dict
        Where they come from: the input, its hash, counts, anomalies, version. Parquet files carry it in their footer.
    paths : dict of str to Path
        The Parquet files; empty if the tables are in memory.
    replay : Replay
        The books as they were at the end.
    """

    def __init__(self, found, summary, replay):
        self._found, self.summary, self.replay = found, summary, replay
        self.paths = {name: path for name, path in found.items() if isinstance(path, Path)}

    def arrow(self, name):
        """Return a table as a pyarrow Table."""
        import pyarrow.parquet as pq

        name = next((one for one in self._found if one.startswith(f"messages_{name}_")), name)
        if name not in self._found:
            raise KeyError(f"no table {name!r}; there are {', '.join(self._found)}")
        return pq.read_table(self.paths[name]) if name in self.paths else self._found[name]

    def __getitem__(self, name) -> pd.DataFrame:
        return frame(self.arrow(name))

    def __getattr__(self, name):
        if name in self.__dict__.get("_found", {}):
            return self[name]
        raise AttributeError(f"no table {name!r}; there are {', '.join(self.__dict__.get('_found', {}))}")

    def __iter__(self):
        return iter(self._found)

    def __len__(self):
        return len(self._found)

    def __repr__(self):
        where = f" in {next(iter(self.paths.values())).parent}" if self.paths else ""
        return f"<Tables {', '.join(self._found)}{where}: {self.summary['messages']:,} messages>"


def frame(table) -> pd.DataFrame:
    """Return an Arrow table as pandas has it: integers stay integers, also where some are missing."""
    import pyarrow as pa

    kinds = {pa.int64(): pd.Int64Dtype(), pa.uint32(): pd.UInt32Dtype(), pa.uint64(): pd.UInt64Dtype()}
    holed = [field.name for field in table.schema if field.nullable]
    found = table.to_pandas() if not holed else table.drop_columns(holed).to_pandas()
    if holed:
        found = pd.concat([found, table.select(holed).to_pandas(types_mapper=kinds.get)], axis=1)
    return found[table.column_names]


def day_of(path) -> datetime.date | None:
    """Return the day that the usual names of files tell: S071321-v50, 01302020.NASDAQ_ITCH50, 20191230.BX_ITCH_50."""
    name = Path(path).name
    for pattern, parts in (
        (r"(?<!\d)S(\d\d)(\d\d)(\d\d)(?!\d)", ("month", "day", "year")),
        (r"(?<!\d)(20\d\d)[-_]?(\d\d)[-_]?(\d\d)(?!\d)", ("year", "month", "day")),
        (r"(?<!\d)(\d\d)(\d\d)(20\d\d)(?!\d)", ("month", "day", "year")),
    ):
        for match in re.finditer(pattern, name):
            found = {part: int(text) for part, text in zip(parts, match.groups(), strict=True)}
            found["year"] += 2000 * (found["year"] < 100)
            try:
                return datetime.date(**found)
            except ValueError:
                continue
    return None


def _day(date):
    if isinstance(date, datetime.date):
        return date
    try:
        return datetime.date.fromisoformat(str(date))
    except ValueError:
        raise UserError(f"a date is written like 2019-12-30, not {date!r}") from None


def _levels(depth):
    if depth in (None, False):
        return 0
    if not isinstance(depth, int | np.integer) or not 1 <= depth <= 100:
        raise UserError(f"depth is a number of levels from 1 to 100, not {depth!r}")
    return int(depth)


def _nanoseconds(every):
    if every is None:
        return 0
    try:
        found = int(every) if isinstance(every, int | np.integer) else pd.Timedelta(every).value
    except ValueError:
        found = 0
    if found <= 0:
        raise UserError(f"every is a time such as 1s or 100ms, not {every!r}")
    return found


def _types(messages, **named):
    types = {name: NAMED[name] for name, wanted in named.items() if wanted}
    if messages:
        chosen = "".join(BY_TYPE) if messages is True else "".join(dict.fromkeys(messages))
        odd = [type_ for type_ in chosen if type_ not in BY_TYPE]
        if odd:
            raise UserError(f"no ITCH 5.0 message type {odd[0]!r}; the types are {' '.join(BY_TYPE)}")
        taken = "".join(types.values())
        types |= message_tables(type_ for type_ in chosen if type_ not in taken)
    return types


def _break(sink, broken, makers, names):
    """Mark broken trades, and make the bars anew without them."""
    locates = {}
    for locate in np.flatnonzero(names).tolist():
        locates[int(names[locate]).to_bytes(8, "big").decode("latin-1").rstrip(" ")] = locate
    for maker in makers:
        maker.reset()
    for batch in sink.mark_broken(broken):
        for maker in makers:
            maker.add_batch(batch, locates)


def _summary(result, source, day, prices):
    facts = result.summary()
    for name in ("seconds", "messages_per_second"):
        facts.pop(name)
    about = {
        "photonlab": metadata.version("photonlab"),
        "input": Path(source.name).name,
        "input_kind": source.kind or "plain",
        "input_bytes": source.done,
        "date": day.isoformat() if day else "",
        "prices": prices,
    }
    if source.digest:
        about["input_sha256"] = source.digest
    return about | facts
