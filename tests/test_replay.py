"""Replay of files: what Python gets, what the command line prints, and one clear line for each bad input."""

import gzip
import json
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import photonlab
from photonlab import cli, paths
from photonlab.errors import ItchFormatError, UserError
from photonlab.systems import inputs
from photonlab.systems import message_loop as loop
from photonlab.systems import replay as room
from tests.oracle import itch, streams
from tests.oracle.book import BUY, SELL
from tests.replays import honest, oracle_after

STREAM = honest(streams.long_stream(21, 3_000, instruments=6, faults=0.02))
MESSAGES = len(itch.walk(STREAM).messages)


@pytest.fixture(scope="module")
def oracle():
    return oracle_after(STREAM)[0]


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    path = tmp_path_factory.mktemp("days") / "day.itch"
    path.write_bytes(STREAM)
    return path


@pytest.fixture(scope="module")
def done(day):
    return photonlab.replay(day)


# -- what Python gets ----------------------------------------------------------------------------------------------


def test_the_facts_are_the_oracles(done, oracle):
    assert (done.messages, done.bytes, done.live_orders) == (MESSAGES, len(STREAM), len(oracle.orders))
    assert done.counts == {kind: n for kind, n in sorted(oracle.counts.items()) if kind != "\xff"} | {
        "\\xff": oracle.counts["\xff"]
    }
    assert done.unknown_references == dict(sorted(oracle.unknown_reference.items()))
    found = {name: count for name, count in done.anomalies.items() if count}
    assert found.pop("unknown_reference") == sum(oracle.unknown_reference.values())
    assert found == {name: count for name, count in oracle.anomalies.items() if count}
    assert done.seconds > 0 and done.messages_per_second == done.messages / done.seconds


def test_depth_and_orders_are_the_oracles(done, oracle):
    for locate in range(6):
        symbol = f"S{locate}"
        depth, orders = done.depth(symbol, levels=None), done.orders(symbol)
        assert list(depth.columns) == ["side", "level", "price", "shares", "orders"]
        assert list(orders.columns) == ["side", "position", "price", "reference", "shares"]
        assert len(orders) == sum(order.locate == locate for order in oracle.orders.values())
        for name, side in (("bid", BUY), ("ask", SELL)):
            rows = depth[depth.side == name]
            assert [tuple(row) for row in rows[["price", "shares", "orders"]].to_numpy().tolist()] == oracle.depth(
                locate, side
            )
            assert rows.level.tolist() == list(range(1, len(rows) + 1))
            queue = [
                (price, reference, shares)
                for price, orders_there in oracle.queue(locate, side)
                for reference, shares in orders_there
            ]
            part = orders[orders.side == name]
            got = zip(part.price.tolist(), part.reference.tolist(), part.shares.tolist(), strict=True)
            assert list(got) == queue
            assert part.position.tolist() == list(range(1, len(part) + 1))
    shallow = done.depth("S0", levels=2)
    assert shallow.side.tolist() == ["bid", "bid", "ask", "ask"]
    pd.testing.assert_frame_equal(done.depth("S0"), done.depth("S0", levels=10))


def test_best_prices_are_the_oracles(done, oracle):
    frame = done.bbo()
    assert list(frame.columns) == ["locate", "bid", "bid_shares", "ask", "ask_shares", "volume"]
    assert dict(zip(frame.index, frame.locate, strict=True)) == {oracle.names[n]: n for n in oracle.locates()}
    for symbol, row in frame.iterrows():
        best = tuple(None if pd.isna(row[name]) else int(row[name]) for name in ("bid", "ask"))
        assert best == oracle.best(row.locate)
        for name, side in (("bid_shares", BUY), ("ask_shares", SELL)):
            depth = oracle.depth(row.locate, side)
            assert pd.isna(row[name]) if not depth else row[name] == depth[0][1]
        assert row.volume == oracle.volume[row.locate]
        one = done.bbo(symbol)
        assert one.index.tolist() == [symbol]
        pd.testing.assert_frame_equal(one, frame.loc[[symbol]])
    assert done.symbols() == sorted(oracle.names.values())


def test_a_side_or_a_book_without_orders(tmp_path):
    add = {"order_reference_number": 1, "buy_sell_indicator": b"B", "shares": 5, "price": 2**32 - 1}
    messages = [itch.encode("R", stock_locate=n, stock=b"N%d" % n) for n in (1, 2)]
    messages.append(itch.encode("A", stock_locate=1, stock=b"N1", **add))
    path = tmp_path / "x"
    path.write_bytes(itch.frame(messages))
    done = photonlab.replay(path)
    assert done.bbo().index.tolist() == ["N1"]
    assert done.bbo("N1").bid.item() == 2**32 - 1 and done.bbo("N1").ask.isna().all()
    assert done.bbo("N2").bid.isna().all()
    assert len(done.depth("N2")) == len(done.orders("N2")) == 0
    assert done.orders("N1").reference.dtype == np.uint64
    assert done.symbols() == ["N1", "N2"]


def test_symbols_and_what_is_none(day, done):
    some = photonlab.replay(day, symbols=["S1", "S3"])
    assert some.bbo().index.tolist() == ["S1", "S3"] and some.counts == done.counts
    for symbol in ("S1", "S3"):
        pd.testing.assert_frame_equal(some.orders(symbol), done.orders(symbol))
    pd.testing.assert_frame_equal(photonlab.replay(day, symbols="S1").bbo(), done.bbo("S1"))
    for ask in (some.orders, some.depth, some.bbo, some.locate):
        with pytest.raises(UserError, match="no symbol 'S2'"):
            ask("S2")
    with pytest.raises(UserError, match="no symbol 'S77'"):
        photonlab.replay(day, symbols=["S1", "S77"])
    with pytest.raises(UserError, match=r"did you mean .*S1"):
        done.locate("S1 ")
    with pytest.raises(UserError, match="levels must be at least 1"):
        done.depth("S1", levels=0)


def test_references_of_64_bits_reach_the_frame(tmp_path):
    """Trap 12: no column turns into floats on the way."""
    references = [2**53 + 1, 2**63 - 1, 2**63 + 1, 2**64 - 1]
    messages = [
        itch.encode("A", order_reference_number=r, buy_sell_indicator=b"S", shares=2**32 - 1, price=7, stock=b"X")
        for r in references
    ]
    path = tmp_path / "x"
    path.write_bytes(itch.frame(messages))
    done = photonlab.replay(path)
    assert done.orders("X").reference.tolist() == references
    assert done.depth("X").shares.tolist() == [4 * (2**32 - 1)]


# -- chunks, gzip, pipes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 37, 4096, 1 << 20])
def test_any_size_of_chunk_gives_the_same(day, done, monkeypatch, chunk):
    monkeypatch.setattr(inputs, "CHUNK", chunk)
    again = photonlab.replay(day)
    facts = {"seconds", "messages_per_second"}
    assert {k: v for k, v in again.summary().items() if k not in facts} == {
        k: v for k, v in done.summary().items() if k not in facts
    }


def test_progress_is_told_after_each_chunk(day, monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK", 10_000)
    told = []
    photonlab.replay(day, progress=lambda *facts: told.append(facts))
    assert [at for at, _ in told] == sorted({at for at, _ in told}) and told[-1] == (len(STREAM), len(STREAM))
    assert len(told) == -(-len(STREAM) // 10_000)


def test_gzip_is_read_by_its_first_bytes_and_not_by_its_name(tmp_path, done):
    for data in (gzip.compress(STREAM), gzip.compress(STREAM[:5_000]) + gzip.compress(STREAM[5_000:])):
        path = tmp_path / "day"
        path.write_bytes(data)
        told = []
        assert photonlab.replay(path, progress=lambda *facts, told=told: told.append(facts)).checksum == done.checksum
        assert told[-1][0] <= len(data) == told[-1][1]


def test_a_named_pipe(tmp_path, done):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(STREAM))
    writer.start()
    assert photonlab.replay(pipe).checksum == done.checksum
    writer.join()


def test_trap_14_no_new_signature_whatever_is_replayed(day, tmp_path):
    photonlab.replay(day)
    before = {name: len(made.signatures) for name, made in kernels()}
    (tmp_path / "day.gz").write_bytes(gzip.compress(STREAM))
    for path, symbols in ((tmp_path / "day.gz", None), (day, ["S1"]), (str(day), ())):
        again = photonlab.replay(path, symbols=symbols)
        again.bbo()
    assert {name: len(made.signatures) for name, made in kernels()} == before
    assert len(loop.replay.signatures) == 1


def kernels():
    from photonlab.machine import jit

    return [item for item in jit.KERNELS.items() if ".kernels.book" in item[0] or ".message_loop." in item[0]]


# -- bad input -----------------------------------------------------------------------------------------------------

ADD = itch.encode("A", order_reference_number=1, buy_sell_indicator=b"B", shares=5, price=7, stock=b"X")
GOOD = itch.frame([ADD] * 3)
PNG = bytes.fromhex("89504E470D0A1A0A0000000D4948445200000001000000010802000000907753DE")
BAD = {
    "empty": (b"", "empty: expected ITCH 5.0 messages"),
    "one byte": (b"\0", "not a file of ITCH 5.0: offset 0"),
    "text": (b"Price,Size\n" * 50, "not a file of ITCH 5.0: offset 0: expected a length of 1 to 1450"),
    "short text": (b"hi", "not a file of ITCH 5.0: offset 0"),
    "picture": (PNG, "not a file of ITCH 5.0: offset 0"),
    "zeros": (bytes(1_000), "not a file of ITCH 5.0"),
    "noise": (random.Random(1).randbytes(100_000), "not a file of ITCH 5.0"),
    "other messages": (itch.frame([b"hello", b"world"]), "not a file of ITCH 5.0: offset 0"),
    "without lengths": (ADD * 10, "not a file of ITCH 5.0: offset 0"),
    "impossible length": (GOOD + b"\xff\xff" + GOOD, "damaged at offset 114, after 3 messages"),
    "impossible length at the end": (GOOD + b"\x05\xab", "damaged at offset 114, after 3 messages"),
    "zero prefixes": (b"\0\0".join([b"", ADD, ADD, ADD]), "writes the prefix 00 00"),
    "cut gzip": (gzip.compress(STREAM)[:-2_000], "damaged gzip after "),
    "gzip without its end": (gzip.compress(STREAM)[:-3], f"damaged gzip after {MESSAGES:,} messages"),
    "gzip of wrong sum": (gzip.compress(GOOD)[:-8] + b"\1" * 8, "damaged gzip after "),
    "gzip of noise": (b"\x1f\x8b" + bytes(50), "damaged gzip after 0 messages"),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "gzip of text": (gzip.compress(b"Price,Size\n" * 50), "not a file of ITCH 5.0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_one_line(name, tmp_path, capsys):
    data, words = BAD[name]
    path = tmp_path / "input"
    path.write_bytes(data)
    for options in ([], ["--json"], ["--symbols", "X"]):
        assert cli.main(["replay", str(path), *options]) == cli.USER
        said = capsys.readouterr()
        assert said.out == "", "nothing half-written"
        assert said.err.count("\n") == 1 and said.err.startswith(f"photonlab: {path}: {words}"[: 13 + len(str(path))])
        assert words in said.err
    with pytest.raises(UserError):
        photonlab.replay(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["input"]


def test_places_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "file").write_bytes(GOOD)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in (
        ("missing", "no such file"),
        ("", "is a directory"),
        ("file/below", "cannot be opened: Not a directory"),
        ("loop", "cannot be opened"),
        ("n" * 300, "cannot be opened: File name too long"),
    ):
        assert cli.main(["replay", str(tmp_path / name)]) == cli.USER
        said = capsys.readouterr()
        assert words in said.err and said.err.count("\n") == 1 and said.out == ""
    assert cli.main(["replay", "/proc/self/mem"]) == cli.USER
    assert "cannot be read after 0 messages" in capsys.readouterr().err


def test_no_permission(tmp_path, capsys):
    path = tmp_path / "secret"
    path.write_bytes(GOOD)
    path.chmod(0)
    me = os.geteuid()
    try:
        if me == 0:
            os.seteuid(65534)
        assert cli.main(["replay", str(path)]) == cli.USER
    finally:
        os.seteuid(me)
    said = capsys.readouterr()
    assert "no permission to read it" in said.err and said.err.count("\n") == 1


def test_a_wrong_place_is_told_before_anything_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(room, "SiftedReplayer", None)
    with pytest.raises(UserError, match="no such file"):
        photonlab.replay(tmp_path / "missing")


def test_an_unknown_symbol(day, capsys):
    assert cli.main(["replay", str(day), "--json", "--symbols", "S1,NOPE"]) == cli.USER
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and "no symbol 'NOPE'" in said.err


def test_format_errors_are_user_errors(tmp_path):
    (tmp_path / "x").write_bytes(PNG)
    with pytest.raises(ItchFormatError):
        photonlab.replay(tmp_path / "x")


# -- the command line in a process of its own ----------------------------------------------------------------------


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "photonlab", "replay", *map(str, arguments)],
        cwd=paths.ROOT,
        capture_output=True,
        timeout=200,
        **options,
    )


JSON_KEYS = [
    "messages", "bytes", "seconds", "messages_per_second", "counts", "anomalies", "unknown_references", "live_orders",
    "checksum",
]  # fmt: skip


def test_json_from_a_pipe(done):
    ran = command("/dev/stdin", "--json", input=STREAM)
    assert (ran.returncode, ran.stderr) == (0, b"")
    facts = json.loads(ran.stdout)
    assert list(facts) == JSON_KEYS
    assert facts | {"seconds": 0, "messages_per_second": 0} == done.summary() | {"seconds": 0, "messages_per_second": 0}
    assert list(facts["anomalies"]) == [
        "unknown_reference", *loop.ANOMALIES, "short_tail", "after_end",
    ]  # fmt: skip
    assert all(type(n) is int for n in [*facts["counts"].values(), *facts["anomalies"].values()])


@pytest.mark.parametrize("name", ["text", "impossible length", "empty", "cut gzip"])
def test_bad_files_in_a_process(name, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(BAD[name][0])
    ran = command(path, "--json")
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.count(b"\n") == 1 and b"Traceback" not in ran.stderr
    assert BAD[name][1].encode() in ran.stderr


def test_an_empty_pipe_in_a_process():
    ran = command("/dev/stdin", input=b"")
    assert (ran.returncode, ran.stdout) == (2, b"") and ran.stderr.count(b"\n") == 1
