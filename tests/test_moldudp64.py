"""MoldUDP64's packets against bytes written by hand, and against `struct`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from photonlab.errors import UserError
from photonlab.kernels import moldudp64 as mold
from photonlab.machine.memory import as_bytes_array
from tests import mold_drivers as drivers
from tests.oracle import itch
from tests.oracle import moldudp64 as oracle

GOLDEN = bytes.fromhex("44415931202020202020 00000001220e5d00 0002 0003 616263 0001 64")
MESSAGES = st.lists(st.binary(min_size=1, max_size=40), max_size=12)


def checked(data):
    status, stop, messages = drivers.check(as_bytes_array(data), np.uint64(0), np.uint64(len(data)))
    return mold.STATUS[int(status)], int(stop), int(messages)


def test_golden_bytes():
    high, low = mold.session_words("DAY1")
    packet = np.zeros(64, np.uint8)
    source = as_bytes_array(itch.frame([b"abc", b"d"]))
    taken = drivers.pack(
        source, np.uint64(0), np.uint64(9), packet, np.uint64(64), high, low, np.uint64(0x00000001220E5D00)
    )
    assert [int(n) for n in taken] == [2, source.size, len(GOLDEN)]
    assert packet[: len(GOLDEN)].tobytes() == GOLDEN == oracle.packet(0x1220E5D00, [b"abc", b"d"])
    assert [int(n) for n in drivers.read_header(packet)] == [int(high), int(low), 0x1220E5D00, 2]
    assert checked(GOLDEN) == ("ok", len(GOLDEN), 2)


def test_a_request_is_a_header():
    packet = np.zeros(mold.HEADER, np.uint8)
    drivers.write_header(packet, *mold.session_words(b"000010059B"), np.uint64(2**63 + 1), np.uint64(mold.MOST))
    assert packet.tobytes() == b"000010059B" + (2**63 + 1).to_bytes(8, "big") + b"\xff\xfe"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ("no header", 0, 0)),
        (GOLDEN[:19], ("no header", 0, 0)),
        (GOLDEN[:20], ("fewer blocks than its count", 20, 0)),
        (GOLDEN[:21], ("fewer blocks than its count", 20, 0)),
        (GOLDEN[:-1], ("fewer blocks than its count", 25, 1)),
        (GOLDEN + b"x", ("bytes behind the last block", len(GOLDEN), 2)),
        (oracle.packet(1, [], count=0), ("ok", 20, 0)),
        (oracle.packet(1, [], count=0xFFFF), ("ok", 20, 0)),
        (oracle.packet(1, [], count=0) + b"x", ("bytes behind the last block", 20, 0)),
        (oracle.packet(1, [], count=0xFFFE), ("fewer blocks than its count", 20, 0)),
        (oracle.packet(1, [b"", b"", b"a"]), ("ok", 27, 3)),
    ],
)
def test_whole_and_damaged_packets(data, expected):
    assert checked(data) == expected


@given(MESSAGES, st.integers(0, 2**64 - 1), st.data())
def test_any_bytes_are_read_as_struct_reads_them(messages, sequence, data):
    packet = bytearray(oracle.packet(sequence, messages))
    if data.draw(st.booleans()):
        at = data.draw(st.integers(18, len(packet) - 1))
        packet[at] = data.draw(st.integers(0, 255))
        packet = packet[: data.draw(st.integers(0, len(packet)))]
    status, _, _, _, whole = oracle.parse(bytes(packet))
    stop = 20 + sum(2 + len(message) for message in whole) if len(packet) >= 20 else 0
    assert checked(bytes(packet)) == (status, stop, len(whole))


@given(MESSAGES, st.integers(1, 6), st.integers(64, 120))
def test_packing_a_file_loses_nothing(messages, most, room):
    source = as_bytes_array(itch.frame(messages) + b"\0\0")
    packet, sequence, begin, found = np.zeros(room, np.uint8), 1, np.uint64(0), []
    words = mold.session_words("DAY1")
    while True:
        count, begin, stop = drivers.pack(
            source, np.uint64(begin), np.uint64(most), packet, np.uint64(room), *words, np.uint64(sequence)
        )
        if not count:
            break
        status, session, first, number, whole = oracle.parse(packet[: int(stop)].tobytes())
        assert (status, session, first, number) == ("ok", oracle.SESSION, sequence, int(count)) and count <= most
        found += whole
        sequence += int(count)
    assert found == messages and int(begin) == source.size - 2


def test_a_message_with_no_room_in_a_packet_is_left():
    source = as_bytes_array(itch.frame([b"x" * 60]))
    taken = drivers.pack(
        source,
        np.uint64(0),
        np.uint64(1),
        np.zeros(81, np.uint8),
        np.uint64(81),
        *mold.session_words("S"),
        np.uint64(1),
    )
    assert [int(n) for n in taken] == [0, 0, 0]


def test_blocks_without_a_byte_are_left_out_of_a_file():
    blocks = as_bytes_array(oracle.packet(1, [b"", b"ab", b"", b"", b"c", b""]))
    out = np.zeros(64, np.uint8)
    size, empty = drivers.copy_blocks(blocks, np.uint64(20), np.uint64(blocks.size), out)
    assert out[: int(size)].tobytes() == itch.frame([b"ab", b"c"]) and int(empty) == 4


def test_sessions():
    for name in ("A", "000010059B"):
        assert mold.session_text(*mold.session_words(name)) == name
    for bad in ("", "01234567890", "é"):
        with pytest.raises(UserError, match="1 to 10 ASCII characters"):
            mold.session_words(bad)
