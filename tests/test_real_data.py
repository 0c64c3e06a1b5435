"""Real and boundary files: counts, unknown references and final books exactly as cross-checked with other programs."""

import gzip
import json
import subprocess
import sys

import pytest

import photonlab
from photonlab import paths
from photonlab.errors import ItchFormatError
from tests.oracle import itch
from tests.replays import oracle_after, replayed, state_of

MAIN = "itch50/nasdaq_20191230_0930_1000msgs.itch"
CUT = "itch50/nasdaq_day_head_4096bytes.itch"
ZERO_PREFIX = "itch50/simulated_zero_prefix_12012msgs.itch.gz"
FRAMED = [
    MAIN,
    CUT,
    "itch50/seed_boundary_values.itch",
    "itch50/seed_mixed_types.itch",
    "itch50/seed_replace_chain.itch",
    "itch50/seed_selftest.itch",
]

ODD = {
    CUT: {"short_tail": 15},
    "itch50/seed_mixed_types.itch": {"bad_length": 1},  # an H of 35 bytes
    "itch50/seed_boundary_values.itch": {"duplicate_reference": 1},
}


@pytest.fixture(scope="module")
def expected(real_data):
    return json.loads(real_data("expected_itch50.json").read_text())


def final_books(done):
    """Give the books in the shape of the file: symbol → locate, bids and asks as [price, shares, orders]."""
    books = {}
    for symbol, locate in done.bbo().locate.items():
        depth = done.depth(symbol, levels=None)
        sides = {
            side: depth[depth.side == side][["price", "shares", "orders"]].to_numpy().tolist()
            for side in ("bid", "ask")
        }
        books[symbol] = {"locate": locate, "bids": sides["bid"], "asks": sides["ask"]}
    return books


def test_every_framed_file_is_listed(expected):
    assert sorted(FRAMED) == sorted(n for n, facts in expected["counts"].items() if facts["framing"] == "framed")


@pytest.mark.parametrize("name", FRAMED)
def test_counts_references_and_final_books(name, real_data, expected):
    done, facts = photonlab.replay(real_data(name)), expected["counts"][name]
    assert done.messages == facts["messages"] and done.bytes == facts["bytes"]
    assert done.counts == facts["counts"]
    assert done.unknown_references == facts["missing_refs"]
    assert done.live_orders == facts["live_orders_at_end"]
    assert done.anomalies["over_fill"] == facts["over_reductions"]
    assert done.anomalies["unknown_reference"] == sum(facts["missing_refs"].values())
    assert final_books(done) == expected["final_books"].get(name, {})
    assert sum(done.orders(symbol).shares.sum() for symbol in done.bbo().index) == facts["live_shares"]
    odd = {kind: count for kind, count in done.anomalies.items() if count and kind != "unknown_reference"}
    assert odd == ODD.get(name, {})


def test_the_day_behind_the_main_file_was_not_crossed(real_data):
    """Other programs found no crossed book in it."""
    done = photonlab.replay(real_data(MAIN))
    assert done.anomalies["crossed"] == done.anomalies["crossed_outside_trading"] == 0
    assert len(done.bbo()) == 185


@pytest.mark.parametrize("name", FRAMED)
def test_every_queue_is_the_oracles(name, real_data):
    data = real_data(name).read_bytes()
    book, _ = oracle_after(data)
    for look_ahead in (True, False):
        assert state_of(replayed(data, look_ahead=look_ahead)) == book.state()


@pytest.mark.parametrize("cut", [1, 2, 13, 14, 500, 17_784, 20_000, 35_569])
def test_cut_files_report_their_tail(cut, real_data, tmp_path):
    data = real_data(MAIN).read_bytes()[:cut]
    book, walk = oracle_after(data)
    path = tmp_path / "cut.itch"
    path.write_bytes(data)
    if cut <= 2:
        with pytest.raises(ItchFormatError):
            photonlab.replay(path)
        return
    done = photonlab.replay(path)
    assert done.anomalies["short_tail"] == walk.short_tail
    assert done.bytes == cut and done.messages == len(walk.messages) and done.live_orders == len(book.orders)


def test_a_file_in_which_all_prefixes_are_zero_is_told_so(real_data):
    """Trap 7: framed by its prefixes it would be an empty session."""
    with pytest.raises(
        ItchFormatError, match="the prefix 00 00 where the length of each message is expected"
    ) as caught:
        photonlab.replay(real_data(ZERO_PREFIX))
    assert "\n" not in str(caught.value)


def test_and_framed_anew_its_books_are_right(real_data, expected, tmp_path):
    data = gzip.decompress(real_data(ZERO_PREFIX).read_bytes())
    messages, offset = [], 0
    while offset < len(data):
        end = offset + 2 + itch.LENGTH[chr(data[offset + 2])]
        messages.append(data[offset + 2 : end])
        offset = end
    path = tmp_path / "framed.itch"
    path.write_bytes(itch.frame(messages))
    done, facts = photonlab.replay(path), expected["counts"][ZERO_PREFIX]
    assert done.counts == facts["counts"] and done.unknown_references == facts["missing_refs"]
    assert done.live_orders == facts["live_orders_at_end"]
    books = final_books(done)
    for symbol, book in expected["final_books"][ZERO_PREFIX].items():
        assert books[symbol]["locate"] == book["locate"]
        for side in ("bids", "asks"):
            assert books[symbol][side] == book[side]


def test_the_mark_of_the_end_of_a_session(real_data):
    """Four messages of no known type and a length of zero: a whole session, though not of ITCH."""
    done = photonlab.replay(real_data("itch50/binaryfile_end_of_session.dat"))
    assert (done.messages, done.bytes, done.anomalies["unknown_type"]) == (4, 23, 4)
    assert done.anomalies["after_end"] == done.anomalies["short_tail"] == 0
    assert done.live_orders == 0


@pytest.mark.parametrize("name", [MAIN, CUT, ZERO_PREFIX])
def test_the_command_line(name, real_data, expected):
    ran = subprocess.run(
        [sys.executable, "-m", "photonlab", "replay", str(real_data(name)), "--json"],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    if name == ZERO_PREFIX:
        assert (ran.returncode, ran.stdout) == (2, "") and ran.stderr.count("\n") == 1
        return
    facts, found = expected["counts"][name], json.loads(ran.stdout)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (found["messages"], found["bytes"], found["counts"]) == (facts["messages"], facts["bytes"], facts["counts"])
    assert found["unknown_references"] == facts["missing_refs"]
    assert found["live_orders"] == facts["live_orders_at_end"]
