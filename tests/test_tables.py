"""Tables: equal to what plain Python reconstructs, whatever the chunks, the blocks and the way out."""


import pytest
from hypothesis import given, settings

import photonlab
from photonlab.errors import UserError
from photonlab.kernels.itch import BY_TYPE
from photonlab.systems import synth
from tests.oracle import itch, streams
from tests.oracle import tables as oracle
from tests.replays import honest

EVERYTHING = {"bbo": True, "trades": True, "depth": 2, "orders": True, "messages": True}
STREAM = honest(streams.long_stream(31, 4_000, faults=0.1))


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "stream.itch"
    path.write_bytes(STREAM)
    return path


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "S123019-v50.txt"
    synth.write(path, 6_000, seed=5)
    return path


def twin_of(data, levels=2):
    twin = oracle.Tables(levels)
    twin.feed(data)
    return twin


def rows_of(frame, locate_of, drop=()):
    """Give a table as tuples, symbols as locates, missing values as None."""
    frame = frame.drop(columns=[c for c in frame if c in drop or c == "time" or c.endswith("_time")])
    columns = []
    for name in frame:
        values = frame[name].astype(object)
        values = values.where(frame[name].notna(), None)
        columns.append([locate_of(v) for v in values] if name == "symbol" else values.tolist())
    return [tuple(row) for row in zip(*columns, strict=True)]


def locates(done):
    """Give the function from symbol to locate; several locates may share one in made-up streams."""
    return lambda text: int(text[1:]) if text[0] == "#" else done.replay.locate(text)


def hold_against(done, twin, symbols=None):
    where = locates(done)
    assert sorted(rows_of(done.bbo, where), key=str) == sorted(twin.bbo, key=str)
    assert sorted(rows_of(done.depth, where), key=str) == sorted(twin.depth_rows, key=str)
    assert rows_of(done.trades, where, ("broken",)) == twin.trades
    assert set(done.trades.match_number[done.trades.broken]) <= twin.broken
    assert set(done.trades.match_number[~done.trades.broken]).isdisjoint(twin.broken)
    assert sorted(rows_of(done.orders, where), key=str) == sorted(twin.all_lives(), key=str)


def distinct(data):
    """Give a stream in which each locate has a symbol of its own, as a feed has."""
    pieces = []
    for _, message in itch.walk(data).messages:
        kind = chr(message[0])
        known = kind in BY_TYPE and len(message) == BY_TYPE[kind].length
        field = next((f for f in BY_TYPE[kind].fields if f.name == "stock"), None) if known else None
        if field:
            message = bytearray(message)
            name = f"S{int.from_bytes(message[1:3], 'big')}".encode().ljust(8)
            message[field.offset : field.offset + 8] = name
        pieces.append(bytes(message))
    return itch.frame(pieces)


def test_all_tables_of_a_faulty_stream_are_the_oracles(tmp_path):
    data = distinct(streams.long_stream(32, 4_000, faults=0.2))
    (tmp_path / "x").write_bytes(data)
    hold_against(photonlab.tables(tmp_path / "x", **EVERYTHING), twin_of(data))


def test_all_tables_of_the_synthetic_day_are_the_oracles(day):
    done, twin = photonlab.tables(day, **EVERYTHING), twin_of(day.read_bytes())
    hold_against(done, twin)
    counted = done.trades[done.trades.printable & ~done.trades.broken]
    assert done.trades.broken.any(), "the day has a broken trade"
    by_symbol = done.trades[done.trades.printable].groupby("symbol", observed=True).shares.sum()
    volume = done.replay.bbo().volume
    assert {symbol: by_symbol.get(symbol, 0) for symbol in volume.index} == volume.to_dict()
    assert counted.shares.sum() < done.trades.shares[done.trades.printable].sum()


@given(messages=streams.streams())
@settings(max_examples=60)
def test_any_stream_gives_the_oracles_tables(tmp_path_factory, messages):
    data = distinct(itch.frame(messages))
    path = tmp_path_factory.mktemp("any") / "x"
    path.write_bytes(data)
    if not data:
        return
    try:
        done = photonlab.tables(path, bbo=True, trades=True, depth=2, orders=True)
    except UserError:
        return
    hold_against(done, twin_of(data))
