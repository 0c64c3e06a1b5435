"""Inputs: however the bytes are stored, the same bytes come out, and what is damaged says how far it was good."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import threading

import pytest

import photonlab
from photonlab.errors import UserError
from photonlab.systems import inputs
from photonlab.systems.inputs import Input
from tests.oracle import streams
from tests.replays import honest

zstd = inputs.zstd
STREAM = honest(streams.long_stream(41, 3_000, faults=0.02))
FILLERS = 1 << 15  # messages of 1,450 bytes
HALF = len(STREAM) // 2 - 7


def members(pack):
    return pack(STREAM[:HALF]) + pack(STREAM[HALF:])


STORED = {
    "plain": (STREAM, ""),
    "gzip": (gzip.compress(STREAM), "gzip"),
    "gzip of two members": (members(gzip.compress), "gzip"),
    "gzip of many members": (b"".join(gzip.compress(STREAM[k : k + 500]) for k in range(0, len(STREAM), 500)), "gzip"),
    "gzip with an empty member": (gzip.compress(b"") + members(gzip.compress), "gzip"),
    "gzip and padding": (gzip.compress(STREAM) + bytes(1_000), "gzip"),
    "gzip, padding, gzip": (gzip.compress(STREAM[:HALF]) + bytes(600_000) + gzip.compress(STREAM[HALF:]), "gzip"),
    "stored gzip": (gzip.compress(STREAM, 0), "gzip"),
    "zstd": (zstd.compress(STREAM), "zstd"),
    "zstd of two frames": (members(zstd.compress), "zstd"),
    "zstd behind a skippable frame": (b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstd.compress(STREAM), "zstd"),
    "gzip of zstd": (gzip.compress(zstd.compress(STREAM)), "gzip, zstd"),
}


def all_of(path, **options):
    with Input(path, **options) as source:
        return b"".join(bytes(chunk) for chunk in source.chunks()), source


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("chunk", [1 << 20, 1_000])
@pytest.mark.parametrize("name", STORED)
def test_the_same_bytes_come_out(name, chunk, hashed, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK", chunk)
    monkeypatch.setattr(inputs, "_RAW", 700)
    data, kind = STORED[name]
    (tmp_path / "x").write_bytes(data)
    got, source = all_of(tmp_path / "x", hashed=hashed)
    assert got == STREAM and source.kind == kind and source.damage == ""
    assert source.size == source.done == len(data)
    assert source.digest == (hashlib.sha256(data).hexdigest() if hashed else "")


@pytest.mark.parametrize("name", ["plain", "gzip of two members", "zstd"])
def test_a_pipe_and_standard_input(name, tmp_path):
    data, _ = STORED[name]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.write_bytes(data), daemon=True).start()
    got, source = all_of(pipe)
    assert got == STREAM and source.size == 0
    done = subprocess.run(
        [sys.executable, "-m", "photonlab", "replay", "-", "--json"], input=data, capture_output=True, timeout=100
    )
    (tmp_path / "x").write_bytes(STREAM)
    assert photonlab.replay(tmp_path / "x").checksum in done.stdout.decode(), done.stderr


FRAMES = b"".join(zstd.compress(STREAM[k : k + 9_000]) for k in range(0, len(STREAM), 9_000))
DAMAGED = {
    "cut gzip": (gzip.compress(STREAM)[:-900], "gzip: cut off within frame 1"),
    "cut second member": (members(gzip.compress)[:-5], "gzip: cut off within frame 2"),
    "cut header": (gzip.compress(STREAM) + b"\x1f\x8b\x08", "gzip: cut off within frame 2"),
    "cut zstd": (FRAMES[:-90], "zstd: cut off within frame "),
    "noise behind": (gzip.compress(STREAM) + b"noise" * 9, "gzip: what stands behind frame 1 is none"),
    "noise behind zstd": (zstd.compress(STREAM) + b"noise" * 9, "zstd: what stands behind frame 1 is none"),
    "changed in the middle": (gzip.compress(STREAM)[:9_000] + b"\xff" * 200 + gzip.compress(STREAM)[9_200:], "gzip: "),
    "changed zstd": (FRAMES[:30_000] + b"\xff" * 200 + FRAMES[30_200:], "zstd: "),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_told_and_what_stands_before_it_is_good(name, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "_RAW", 700)
    data, words = DAMAGED[name]
    (tmp_path / "x").write_bytes(data)
    got, source = all_of(tmp_path / "x")
    assert source.damage.startswith(words) and len(source.damage) > 6
    assert STREAM.startswith(got[: len(STREAM) // 3])
    with pytest.raises(UserError, match=r"damaged (gzip|zstd) after [\d,]+ messages: .*salvage=True"):
        photonlab.replay(tmp_path / "x")
    saved = photonlab.replay(tmp_path / "x", salvage=True)
    assert saved.damage == source.damage == saved.summary()["damage"] and saved.messages > 0


def test_a_cut_gzip_loses_no_whole_message(tmp_path):
    """As much as the standard library unpacks of it."""
    data = gzip.compress(STREAM)[:-900]
    (tmp_path / "x").write_bytes(data)
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        salvaged = b""
        with pytest.raises(EOFError):
            while piece := file.read1(100):
                salvaged += piece
    assert all_of(tmp_path / "x")[0] == salvaged


def test_more_than_4_gib_unpacked(tmp_path):
    """Long messages of a kind that nobody knows, many members of them, and then a feed: nothing counts in 32 bits."""
    filler = (b"\x05\xaaz" + bytes(1449)) * FILLERS
    member, times = gzip.compress(filler, 1), (1 << 32) // len(filler) + 1
    path = tmp_path / "x.gz"
    path.write_bytes(member * times + gzip.compress(STREAM) + member[:-9])
    (tmp_path / "alone").write_bytes(STREAM)
    with pytest.raises(UserError, match=rf"damaged gzip after [\d,]+ messages: cut off within frame {times + 2}"):
        photonlab.replay(path)
    saved, alone = photonlab.replay(path, salvage=True), photonlab.replay(tmp_path / "alone")
    assert saved.damage == f"gzip: cut off within frame {times + 2}"
    assert saved.bytes - alone.bytes > times * len(filler) > 1 << 32  # with some of what stands behind the feed
    assert saved.anomalies["unknown_type"] - alone.anomalies["unknown_type"] > times * FILLERS
    assert saved.bbo().equals(alone.bbo()) and saved.live_orders == alone.live_orders > 0
    assert saved.counts.pop("z") >= times * FILLERS and saved.counts == {**alone.counts}


def test_a_capture_packed(real_data, tmp_path):
    path = real_data("moldudp64/Multiple.Packets.pcap")
    (tmp_path / "x").write_bytes(zstd.compress(path.read_bytes()))
    plain, packed = photonlab.replay(path), photonlab.replay(tmp_path / "x")
    assert plain.checksum == packed.checksum and plain.messages > 0
    assert plain.packets == packed.packets and plain.packets["messages"] == plain.messages
    assert all_of(tmp_path / "x")[1].kind == "zstd, capture"


def test_an_input_that_is_left_early_ends_its_threads(tmp_path):
    (tmp_path / "x").write_bytes(gzip.compress(STREAM * 60, 1))
    with Input(tmp_path / "x", hashed=True) as source:
        next(iter(source.chunks()))
    assert not [thread.name for thread in threading.enumerate() if thread.name in ("photonlab-input", "photonlab-hash")]
