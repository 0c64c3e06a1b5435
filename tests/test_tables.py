"""Tables: equal to what plain Python reconstructs, whatever the chunks, the blocks and the way out."""

import datetime
import gzip
import hashlib
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import photonlab
from photonlab import cli
from photonlab.errors import UserError
from photonlab.kernels import decode
from photonlab.kernels.itch import BY_TYPE
from photonlab.machine.memory import huge_array
from photonlab.systems import inputs, synth
from photonlab.systems.tables import conveyor, make
from photonlab.systems.tables.columns import Buffers
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
    assert sorted(rows_of(done.depth, where)) == sorted(tuple(value or 0 for value in row) for row in twin.depth_rows)
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
@settings(max_examples=40)
def test_any_stream_gives_the_oracles_tables(tmp_path_factory, messages):
    data = distinct(itch.frame(messages))
    path = tmp_path_factory.mktemp("any") / "x"
    path.write_bytes(data)
    try:
        done = photonlab.tables(path, bbo=True, trades=True, depth=2, orders=True)
    except UserError:  # nothing in it that is ITCH
        return
    hold_against(done, twin_of(data))


def test_messages_are_what_the_decoder_says(stream):
    done = photonlab.tables(stream, messages=True)
    number = dict.fromkeys(BY_TYPE, 0)
    for sequence, (_, message) in enumerate(itch.walk(STREAM).messages):
        kind = chr(message[0])
        if kind in BY_TYPE and len(message) == BY_TYPE[kind].length:
            assert done.arrow(kind)["sequence"][number[kind]].as_py() == sequence
            number[kind] += 1
    for kind in BY_TYPE:
        frame, records = done[kind], decode.decode_messages(STREAM, kind)
        assert len(frame) == len(records) == number[kind]
        assert frame.ns.tolist() == records["timestamp"].tolist()
        for name in records.dtype.names[2:]:
            if name in ("stock", "timestamp"):
                continue
            values = records[name].tolist()
            if records[name].dtype.kind == "S":
                values = [text.replace(b"\0", b" ").decode("latin-1").rstrip(" ") for text in values]
            assert frame[name].tolist() == values, (kind, name)


def test_any_chunk_and_any_block_give_the_same(stream, tmp_path, monkeypatch):
    one = photonlab.tables(stream, **EVERYTHING, bars=["1min", "ticks:3"])
    monkeypatch.setattr(inputs, "CHUNK", 1_000)
    monkeypatch.setattr(Buffers.__init__, "__defaults__", (2, 4_000, huge_array))
    two = photonlab.tables(stream, **EVERYTHING, bars=["1min", "ticks:3"], out=tmp_path, compression="none")
    assert list(one) == list(two) and pq.ParquetFile(two.paths["bbo"]).num_row_groups > 3
    for name in one:
        pd.testing.assert_frame_equal(plain(one[name]), plain(two[name]), obj=name)


def plain(frame):
    """Give a table without categories, whose order may differ between ways out."""
    return frame.astype({name: str for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)})


def test_chosen_symbols_are_the_rows_of_all(day):
    every = photonlab.tables(day, **EVERYTHING)
    two = every.trades.symbol.value_counts().index[:2].tolist()
    some = photonlab.tables(day, **EVERYTHING, symbols=two)
    assert some.replay.messages == every.replay.messages and some.replay.counts == every.replay.counts
    for name in every:
        rows = every[name][every[name].symbol.isin(two)].reset_index(drop=True)
        chosen = some[name][some[name].symbol.isin(two)].reset_index(drop=True)
        if name == "orders":
            rows, chosen = (t.sort_values(["sequence"], ignore_index=True) for t in (rows, chosen))
        pd.testing.assert_frame_equal(plain(chosen), plain(rows), obj=name)
    shards = [photonlab.tables(day, bbo=True, shard=(k, 3)).bbo for k in range(3)]
    assert sorted(n for shard in shards for n in shard.sequence) == every.bbo.sequence.tolist()
    with pytest.raises(UserError, match="no symbol 'NOPE'"):
        photonlab.tables(day, bbo=True, symbols="NOPE")


def test_bbo_again_from_the_messages(day):
    """From the tables of messages alone, in pandas: what a user could check with what is in the folder."""
    done = photonlab.tables(day, bbo=True, messages="AFECXDU")
    parts = [done[kind].assign(kind=kind) for kind in "AFECXDU"]
    orders, found = {}, []
    for row in pd.concat(parts).sort_values("sequence").to_dict("records"):
        reference = row["original_order_reference_number"] if row["kind"] == "U" else row["order_reference_number"]
        before = best(orders, row["symbol"])
        if row["kind"] in "AF":
            orders[reference] = [row["symbol"], row["buy_sell_indicator"], row["price"], row["shares"]]
        elif row["kind"] == "U":
            symbol, side, _, _ = orders.pop(reference)
            orders[row["new_order_reference_number"]] = [symbol, side, row["price"], row["shares"]]
        elif row["kind"] == "D":
            orders.pop(reference)
        else:
            orders[reference][3] -= row["canceled_shares"] if row["kind"] == "X" else row["executed_shares"]
            if orders[reference][3] == 0:
                orders.pop(reference)
        if best(orders, row["symbol"]) != before:
            found.append((row["sequence"], row["symbol"], *best(orders, row["symbol"])))
    columns = ["sequence", "symbol", "bid", "bid_shares", "ask", "ask_shares"]
    assert found == rows_of(done.bbo[columns], lambda text: text)


def best(orders, symbol):
    sides = []
    for letter, choose in (("B", max), ("S", min)):
        mine = [(price, shares) for name, side, price, shares in orders.values() if (name, side) == (symbol, letter)]
        price = choose((price for price, _ in mine), default=None)
        sides += [price, sum(shares for at, shares in mine if at == price) if mine else None]
    return tuple(sides)


@pytest.mark.parametrize("levels", [1, 10, 17])
def test_depth_of_other_levels_is_the_oracles(levels, tmp_path, monkeypatch):
    monkeypatch.setattr(conveyor, "KEPT_ROWS", 512)  # several blocks
    data = distinct(streams.long_stream(33, 3_000, instruments=2, faults=0.1))
    (tmp_path / "x").write_bytes(data)
    for out in (None, tmp_path / "out"):
        done = photonlab.tables(tmp_path / "x", depth=levels, out=out)
        rows = [tuple(value or 0 for value in row) for row in twin_of(data, levels).depth_rows]
        assert sorted(rows_of(done.depth, locates(done))) == sorted(rows)


def test_depth_on_a_grid_is_the_book_at_that_time(day):
    every = 600 * 10**9
    done = photonlab.tables(day, depth=2, every="10min")
    twin, expected, point = oracle.Tables(2), [], None
    for _, message in itch.walk(day.read_bytes()).messages:
        now = int.from_bytes(message[5:11], "big")
        point = (now // every + 1) * every if point is None else point
        while now >= point:
            for locate in twin.locates():
                row = twin.touch(locate, 2)
                expected.append((twin._sequence, point, locate, *(value or 0 for value in row)))
            point += every
        twin.apply(message)
    assert rows_of(done.depth, locates(done)) == expected
    two = done.depth.symbol.unique()[:2].tolist()
    some = photonlab.tables(day, depth=2, every="10min", symbols=two).depth
    rows = done.depth[done.depth.symbol.isin(two)].reset_index(drop=True)
    pd.testing.assert_frame_equal(plain(some.drop(columns="sequence")), plain(rows.drop(columns="sequence")))
    assert (some.sequence >= rows.sequence).all() and some.sequence.is_monotonic_increasing


@pytest.mark.parametrize("spec", ["1min", "volume:300", "ticks:4"])
def test_bars_are_those_of_pandas(day, spec):
    done = photonlab.tables(day, trades=True, bars=spec)
    trades = done.trades[done.trades.printable & ~done.trades.broken & (done.trades.shares > 0)]
    expected = []
    for symbol, group in trades.groupby("symbol", observed=True):
        if spec == "1min":
            keys = group.ns // (60 * 10**9)
        elif spec.startswith("ticks"):
            keys = pd.Series(np.arange(len(group)) // 4, group.index)
        else:
            keys, number, total = [], 0, 0
            for shares in group.shares:
                keys.append(number)
                total += shares
                if total >= 300:
                    number, total = number + 1, 0
            keys = pd.Series(keys, group.index)
        for _, bar in group.groupby(keys):
            begin = bar.ns.iloc[0] // (60 * 10**9) * (60 * 10**9) if spec == "1min" else bar.ns.iloc[0]
            prices = bar.price.astype(int)
            expected.append((
                bar.sequence.iloc[0], begin, symbol, prices.iloc[0], prices.max(), prices.min(), prices.iloc[-1],
                bar.shares.sum(), len(bar), (prices * bar.shares).sum(), bar.ns.iloc[-1],
            ))  # fmt: skip
    name = next(name for name in done if name.startswith("bars"))
    assert rows_of(done[name], lambda text: text) == sorted(expected)


def test_files_their_footers_and_their_times(day, tmp_path):
    done = photonlab.tables(day, bbo=True, trades=True, imbalance=True, directory=True, halts=True, out=tmp_path)
    names = {"bbo", "trades", "imbalance", "directory", "halts"}
    assert {file.name for file in tmp_path.iterdir()} == {f"{name}.parquet" for name in names}
    facts = json.loads(pq.read_metadata(tmp_path / "bbo.parquet").metadata[b"photonlab"])
    assert facts == json.loads(json.dumps(done.summary))
    assert facts["input_sha256"] == hashlib.sha256(day.read_bytes()).hexdigest()
    assert facts["date"] == "2019-12-30" and facts["messages"] == 6_000 and "crossed" in facts["anomalies"]
    assert len(done.halts) == sum(done.summary["counts"].get(kind, 0) for kind in "Hh")
    row = done.bbo.iloc[-1]
    assert row.time == pd.Timestamp("2019-12-30", tz="America/New_York") + pd.Timedelta(int(row.ns), "ns")
    exact = photonlab.tables(day, bbo=True, prices="decimal").arrow("bbo")["ask"].drop_null()
    raw = photonlab.tables(day, bbo=True).arrow("bbo")["ask"].drop_null()
    assert [int(price * 10_000) for price in exact.to_pylist()] == raw.to_pylist()
    bars = [photonlab.tables(day, bars="5min", prices=prices).arrow("bars_5min") for prices in ("integer", "decimal")]
    assert [int(price * 10_000) for price in bars[1]["high"].to_pylist()] == bars[0]["high"].to_pylist()


@pytest.mark.parametrize("name, expected", [
    ("S071321-v50.txt.gz", "2021-07-13"), ("01302020.NASDAQ_ITCH50.gz", "2020-01-30"),
    ("20191230.BX_ITCH_50.gz", "2019-12-30"), ("2019-12-30.itch", "2019-12-30"), ("day.itch", None),
    ("99999999.itch", None),
])  # fmt: skip
def test_the_day_in_a_name(name, expected):
    found = make.day_of(name)
    assert found == (expected and datetime.date.fromisoformat(expected))


def test_what_fails_leaves_nothing(stream, tmp_path):
    bad = tmp_path / "bad.gz"
    bad.write_bytes(gzip.compress(STREAM)[:-1_000])
    out = tmp_path / "out"
    with pytest.raises(UserError, match=r"damaged gzip after [\d,]+ messages: cut off within frame 1; they can be had"):
        photonlab.tables(bad, bbo=True, out=out)
    assert list(out.iterdir()) == []
    saved = photonlab.tables(bad, bbo=True, out=out, salvage=True)
    whole = photonlab.tables(stream, bbo=True)
    assert saved.summary["damage"] == "gzip: cut off within frame 1" and 0 < len(saved.bbo) <= len(whole.bbo)
    rows = plain(whole.bbo).head(len(saved.bbo))
    assert rows.sequence.tolist() == saved.bbo.sequence.tolist()


@pytest.mark.parametrize("wanted, words", [
    ({}, "no table is wanted"), ({"messages": "AZ"}, "no ITCH 5.0 message type 'Z'"),
    ({"depth": 0.5}, "depth is a number"), ({"bbo": True, "every": "1s"}, "every goes with depth"),
    ({"depth": 1, "every": "soon"}, "every is a time"), ({"bars": "volume:none"}, "bars are such as"),
    ({"bbo": True, "date": "soon"}, "a date is written"), ({"bbo": True, "prices": "dear"}, "prices are"),
])  # fmt: skip
def test_wishes_that_cannot_be_met(stream, wanted, words):
    with pytest.raises(UserError, match=words):
        photonlab.tables(stream, **wanted)


def test_the_command(day, tmp_path, capsys):
    two = ",".join(photonlab.replay(day).symbols()[:2])
    assert cli.main(["tables", str(day), "--out", str(tmp_path), "--symbols", two, "--depth", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "depth.parquet"), "6,000 messages"]
    assert cli.main(["tables", str(day), "--out", str(tmp_path / "two")]) == 0
    assert sorted(file.name for file in (tmp_path / "two").iterdir()) == ["bbo.parquet", "trades.parquet"]
    assert cli.main(["tables", str(day), "--out", str(day)]) == cli.USER
    assert "expected a folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nasdaq_20191230_0930_1000msgs.itch", "nasdaq_day_head_4096bytes.itch"])
def test_tables_of_real_files_are_the_oracles(name, real_data):
    path = real_data(f"itch50/{name}")
    done = photonlab.tables(path, **EVERYTHING)
    hold_against(done, twin_of(path.read_bytes()))
    assert done.summary["date"] == ("2019-12-30" if "20191230" in name else "")
