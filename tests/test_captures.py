"""Captures: every kind of file, link and header carries the same messages; what does not belong is counted."""

import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import photonlab
from photonlab import cli
from photonlab.errors import UserError
from photonlab.systems import synth
from photonlab.systems.captures import CaptureStream, is_capture
from photonlab.systems.replayer import Replayer
from tests.oracle import captures as oracle
from tests.oracle import itch, streams
from tests.oracle import moldudp64 as mold

MESSAGES = [message for _, message in itch.walk(streams.long_stream(3, 60)).messages]
FRAMED = itch.frame(MESSAGES)
PAYLOADS = [mold.packet(n + 1, MESSAGES[n : n + 3]) for n in range(0, 60, 3)]


class Dribble:
    """A file that gives a few bytes at a time."""

    def __init__(self, data, size):
        self._file, self._size = io.BytesIO(data), size

    def readinto(self, buffer):
        return self._file.readinto(memoryview(buffer)[: self._size])


def read(data, size=None, buffer=1 << 16, **options):
    """Give the stream of a capture, and what it delivered."""
    stream = CaptureStream(io.BytesIO(data) if size is None else Dribble(data, size), "some.pcap", **options)
    out, room = b"", np.zeros(buffer, np.uint8)
    while count := stream.readinto(room):
        out += room[:count].tobytes()
    return stream, out


def odd(stream):
    return {name: count for name, count in stream.anomalies.items() if count}


def captured(payloads, link=oracle.ETHERNET):
    return [oracle.framed(oracle.ipv4(payload), link) for payload in payloads]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap(order, nanoseconds):
    data = oracle.pcap(captured(PAYLOADS), order=order, nanoseconds=nanoseconds)
    assert is_capture(data) and is_capture(data[:4])
    stream, out = read(data)
    assert out == FRAMED and not odd(stream)
    unit = 1 if nanoseconds else 1000
    assert stream.times == (1_700_000_000 * 10**9, 1_700_000_000 * 10**9 + 19 * 1001 * unit)
    assert (stream.session, stream.next_sequence, stream.gaps) == ("DAY1", 61, [])
    assert stream.counters["packets"] == stream.counters["udp"] == stream.counters["mold_packets"] == 20


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("resolution", "first"), [(None, 5_000), (9, 5), (3, 5_000_000), (0x80 | 10, 4_882_812)])
def test_pcapng(order, resolution, first):
    data = oracle.pcapng(captured(PAYLOADS), order=order, resolution=resolution)
    assert is_capture(data) and is_capture(data[:12])
    stream, out = read(data)
    assert out == FRAMED and not odd(stream)
    assert stream.times[0] == first


@pytest.mark.parametrize("ip", [oracle.ipv4, oracle.ipv6])
@pytest.mark.parametrize("link", [0, 1, 101, 12, 14, 108, 113, 276])
def test_link_types(link, ip):
    frames = [oracle.framed(ip(payload), link) for payload in PAYLOADS]
    for data in (oracle.pcap(frames, link), oracle.pcapng(frames, link)):
        stream, out = read(data)
        assert out == FRAMED and not odd(stream)
        (line,) = stream.lines
        assert line == ("239.1.1.1:30001" if ip is oracle.ipv4 else "[ff0e::7]:30001")


@pytest.mark.parametrize(
    "frame",
    [
        lambda payload: oracle.ethernet(oracle.ipv4(payload), [0x8100]),
        lambda payload: oracle.ethernet(oracle.ipv4(payload), [0x88A8, 0x8100]),
        lambda payload: oracle.ethernet(oracle.ipv4(payload), [0x9100, 0x8100]),
        lambda payload: oracle.ethernet(oracle.ipv6(payload), [0x8100]),
        lambda payload: oracle.ethernet(oracle.ipv4(payload, options=b"\x94\4\0\0" * 3)),
        lambda payload: oracle.ethernet(oracle.ipv4(payload, fragment=0x4000)),  # must not be cut into fragments
        lambda payload: oracle.ethernet(oracle.ipv4(payload, length=0)),
        lambda payload: oracle.ethernet(oracle.ipv4(payload)) + b"\0\0\0\0fcs!",
        lambda payload: oracle.ethernet(oracle.ipv6(payload, extensions=[(0, b"\0" * 7), (60, b"\1" + b"\0" * 14)])),
        lambda payload: oracle.ethernet(oracle.ipv6(payload, extensions=[(51, b"\4" + b"\0" * 22)])),
        lambda payload: oracle.ethernet(oracle.ipv6(payload, extensions=[(44, b"\0" * 7)])),
    ],
)
def test_headers_on_the_way(frame):
    stream, out = read(oracle.pcap([frame(payload) for payload in PAYLOADS]))
    assert out == FRAMED and not odd(stream)


OTHER = {
    "not_ip": oracle.ethernet(b"\0" * 46, ethertype=0x0806),
    "not_udp": oracle.ethernet(oracle.ipv4(b"\0" * 40, protocol=6)),
    "fragments_refused": oracle.ethernet(oracle.ipv4(PAYLOADS[0], fragment=0x2000)),
    "other_udp": oracle.ethernet(oracle.ipv4(b"a name server's answer", port=53)),
    "bad_headers": oracle.ethernet(oracle.ipv4(PAYLOADS[0]))[:30],
}
FURTHER = [
    ("fragments_refused", oracle.ethernet(oracle.ipv4(PAYLOADS[0], fragment=0x00B9))),
    ("fragments_refused", oracle.ethernet(oracle.ipv6(PAYLOADS[0], extensions=[(44, b"\0\0\1\0\0\0\0")]))),
    ("bad_headers", oracle.ethernet(b"\x41" + oracle.ipv4(PAYLOADS[0])[1:])),  # an IPv4 header of 4 bytes
    ("bad_headers", oracle.ethernet(oracle.ipv4(PAYLOADS[0], length=24))),
    ("bad_headers", oracle.ethernet(oracle.ipv6(PAYLOADS[0]), ethertype=0x0800)),
    ("bad_headers", oracle.ethernet(oracle.ipv4(b""), [0x8100])[:16]),
    ("bad_headers", b"\0" * 9),
    ("bad_headers", oracle.ethernet(oracle.ipv6(PAYLOADS[0], extensions=[(0, b"\0" * 7)]))[:60]),
    ("not_udp", oracle.ethernet(oracle.ipv6(b"\0" * 20, protocol=58))),
    ("other_udp", oracle.ethernet(oracle.ipv4(b"\0" * 20, port=319))),  # would be a heartbeat but for its session
    ("other_udp", oracle.ethernet(oracle.ipv4(mold.packet(7, [], count=3), port=9))),  # a request for messages
]


@pytest.mark.parametrize(("kind", "frame"), [*OTHER.items(), *FURTHER])
def test_what_is_no_moldudp64_is_counted(kind, frame):
    stream, out = read(oracle.pcap([frame, *captured(PAYLOADS), frame]))
    assert out == FRAMED and stream.counters[kind] == 2
    assert not {name: n for name, n in odd(stream).items() if name != kind}
    with pytest.raises(UserError, match=rf"some.pcap: no MoldUDP64 in 1 packets \(1 {kind.replace('_', ' ')}\)"):
        read(oracle.pcap([frame]))


def test_two_lines_are_one_stream_and_the_gaps_are_what_neither_had():
    lines = [[p for n, p in enumerate(PAYLOADS) if n not in lost] for lost in ({2, 3, 9}, {3, 9, 10, 15})]
    frames = [
        oracle.ethernet(oracle.ipv4(payload, group=group, port=port))
        for pair in zip(*lines, strict=False)
        for payload, group, port in zip(pair, ("233.54.12.111", "233.49.196.111"), (26477, 26478), strict=True)
    ] + [oracle.ethernet(oracle.ipv4(PAYLOADS[-1], group="233.54.12.111", port=26477))]
    stream, out = read(oracle.pcap(frames))
    assert out == itch.frame(MESSAGES[:9] + MESSAGES[12:27] + MESSAGES[30:])
    assert stream.gaps == [(10, 3), (28, 3)] and odd(stream) == {"gaps": 2, "missing": 6}
    assert stream.counters["duplicates"] == 3 * (len(frames) - 18)
    assert stream.lines["233.54.12.111:26477"]["left_out"] == 9
    assert stream.lines["233.49.196.111:26478"]["packets"] == 16


def test_a_replay_and_tables_tell_of_a_capture(tmp_path, capsys):
    """Gaps and what is out of order, on the page, as JSON and in a table's footer; session and lines can be chosen."""
    kept = [payload for n, payload in enumerate(PAYLOADS) if n not in (3, 9)]
    frames = [oracle.ethernet(oracle.ipv4(payload, port=port)) for payload in kept for port in (30001, 30002)]
    path = tmp_path / "some.pcap"
    path.write_bytes(oracle.pcap(frames))
    replayed = photonlab.replay(path)
    assert replayed.capture["gaps"] == [[10, 3], [28, 3]] and replayed.capture["session"].strip() == "DAY1"
    assert list(replayed.capture["lines"]) == ["239.1.1.1:30001", "239.1.1.1:30002"]
    assert cli.main(["replay", str(path), "--no-progress"]) == 0
    shown = capsys.readouterr().out
    assert "Capture of session 'DAY1'" in shown and "gap: 3 messages from number 28" in shown
    assert "  missing " in shown.partition("Out of order in the capture")[2]
    chosen = ["--session", "DAY1", "--lines", "239.1.1.1:30002"]
    assert cli.main(["tables", str(path), "--no-progress", "--out", str(tmp_path / "out"), *chosen]) == 0
    footer = json.loads(pq.read_metadata(tmp_path / "out" / "bbo.parquet").metadata[b"photonlab"])
    assert footer["capture"]["gaps"] == [[10, 3], [28, 3]] and list(footer["capture"]["lines"]) == ["239.1.1.1:30002"]
    assert cli.main(["replay", str(path), "--session", "NONE"]) == 2
    assert "no session 'NONE'; there is 'DAY1" in capsys.readouterr().err
    path.write_bytes(FRAMED)
    assert cli.main(["replay", str(path), "--session", "DAY1"]) == 2
    assert "not a capture" in capsys.readouterr().err


def test_lines_that_share_a_session_but_not_its_messages():
    """Two feeds taken for one would give books that are wrong: that is an error, unless a line is chosen."""
    others = [mold.packet(n + 1, [b"B%09d" % n] * 3) for n in range(0, 60, 3)]
    frames = [
        oracle.ethernet(oracle.ipv4(payload, port=port))
        for pair in zip(PAYLOADS, others, strict=True)
        for port, payload in zip((30001, 30002), pair, strict=True)
    ]
    with pytest.raises(UserError, match=r"239.1.1.1:30001, 239.1.1.1:30002 carry session 'DAY1', but not the same"):
        read(oracle.pcap(frames))
    stream, out = read(oracle.pcap(frames), lines=["239.1.1.1:30001"])
    assert out == FRAMED and not odd(stream) and stream.counters["other_udp"] == 20
    stream, out = read(oracle.pcap(frames[:20]), lines=["239.1.1.1:30001", "239.1.1.1:30002"])
    assert out == itch.frame(MESSAGES[:30]) and odd(stream) == {"conflicts": 10}
    for bad in ("239.1.1.1", "239.1.1.1:0", "localhost:1"):
        with pytest.raises(UserError, match="address:port"):
            read(b"", lines=[bad])


def test_a_chosen_line_may_be_of_ipv6():
    frames = [oracle.ethernet(oracle.ipv6(payload)) for payload in PAYLOADS]
    assert read(oracle.pcap(frames), lines=["[ff0e::7]:30001"])[1] == FRAMED
    with pytest.raises(UserError, match="no MoldUDP64 in 20 packets"):
        read(oracle.pcap(frames), lines=["[ff0e::8]:30001"])


def test_heartbeats_end_and_damaged_packets():
    extra = [
        mold.packet(61, [], count=0),
        mold.packet(61, [b"x"])[:-1],
        mold.packet(1, [b"y"], session=b"DAY2      "),
        mold.packet(61, [b"", b"z", b""]),
        mold.packet(64, [b"z"]) + b"?",
        b"short",
        mold.packet(70, [], count=0xFFFF),
    ]
    stream, out = read(oracle.pcap(captured([*PAYLOADS, *extra])))
    assert out == FRAMED + itch.frame([b"z", b"z"])
    counted = stream.counters
    assert (counted["heartbeats"], counted["ends"], counted["messages"]) == (1, 1, 64)
    assert odd(stream) == {
        "short": 1, "trailing": 1, "no_header": 1, "other_session": 1, "empty_messages": 2, "gaps": 1, "missing": 5,
    }  # fmt: skip
    chosen, out = read(oracle.pcap(captured([*PAYLOADS, *extra])), session="DAY2")
    assert out == itch.frame([b"y"]) and chosen.session == "DAY2"
    with pytest.raises(UserError, match=r"some\.pcap: no session 'DAY3'; there is 'DAY1'"):
        read(oracle.pcap(captured([*PAYLOADS])), session="DAY3")


def test_truncated_frames_give_the_messages_that_are_whole():
    cut = 14 + 28 + 20 + 2 + len(MESSAGES[0]) + 1
    stream, out = read(oracle.pcap(captured(PAYLOADS[:1]) + captured([mold.packet(4, [b"later"])]), cut=cut))
    assert out == itch.frame([MESSAGES[0], b"later"])
    assert odd(stream) == {"truncated": 1, "short": 1, "gaps": 1, "missing": 2}
    stream, out = read(oracle.pcap(captured([mold.packet(1, [b"q"]), mold.packet(2, MESSAGES[:3])]), cut=cut))
    assert out == itch.frame([b"q", MESSAGES[0]])
    assert odd(stream) == {"truncated": 1, "short": 1, "gaps": 1, "missing": 2}


def test_sections_and_interfaces_of_a_pcapng():
    half = captured(PAYLOADS[:8]), captured(PAYLOADS[8:])
    parts = [oracle.section(">"), oracle.interface(147, ">"), oracle.interface(oracle.ETHERNET, ">")]
    parts += [oracle.enhanced(frame, ">", number=1, time=2**40 + n) for n, frame in enumerate(half[0])]
    parts += [oracle.enhanced(half[0][0], ">", number=0), oracle.enhanced(half[0][0], ">", number=2)]
    parts += [oracle.section("<"), oracle.interface(oracle.ETHERNET, snap=65535), oracle.block(4, b"names" * 100)]
    parts += [oracle.obsolete(frame) for frame in half[1][:5]] + [oracle.simple(frame) for frame in half[1][5:]]
    stream, out = read(b"".join(parts))
    assert out == FRAMED and odd(stream) == {"unsupported_link": 1, "unknown_interface": 1}
    snap = [oracle.section(), oracle.interface(snap=70)]
    stream, out = read(
        b"".join([*snap, *(oracle.simple(f, snap=70) for f in captured([mold.packet(1, [b"q"])]) + half[0])])
    )
    assert stream.counters["truncated"] == 8


def test_appended_pcaps():
    data = oracle.pcap(captured(PAYLOADS[:9])) + oracle.pcap(
        [oracle.framed(oracle.ipv4(p), 113) for p in PAYLOADS[9:]], 113
    )
    stream, out = read(data)
    assert out == FRAMED and not odd(stream)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_bytes_may_come_in_any_pieces(size):
    frames = captured(PAYLOADS)
    for data in (oracle.pcap(frames), oracle.pcapng(frames), oracle.pcapng(frames)[:-5]):
        stream, out = read(data, size, buffer=3 if size == 7 else 1 << 16)
        if data[-1] == frames[-1][-1]:
            assert out == FRAMED and not odd(stream)


def test_a_capture_that_is_cut_off_counts_its_tail():
    whole = oracle.pcap(captured(PAYLOADS))
    last = len(whole) - 16 - len(captured(PAYLOADS)[-1])
    for cut in (last + 1, last + 15, last + 16, len(whole) - 1):
        stream, out = read(whole[:cut])
        assert out == itch.frame(MESSAGES[:57]) and odd(stream) == {"short_tail": cut - last}
    stream, _ = read(oracle.pcapng(captured(PAYLOADS)) + oracle.block(5, b"statistics")[:16])
    assert odd(stream) == {"short_tail": 16}


def test_damage_is_told_of_behind_the_messages_before_it():
    data = bytearray(oracle.pcap(captured(PAYLOADS)))
    at = 24 + 5 * 16 + sum(map(len, captured(PAYLOADS[:5])))
    data[at + 8 : at + 12] = b"\xff" * 4
    stream, room, out = CaptureStream(io.BytesIO(data), "bad.pcap"), np.zeros(1 << 16, np.uint8), b""
    with pytest.raises(UserError, match=f"bad.pcap: damaged at offset {at}, after 5 packets: expected the length"):
        while count := stream.readinto(room):
            out += room[:count].tobytes()
    assert out == itch.frame(MESSAGES[:15])
    parts = [oracle.section(), oracle.interface(), *map(oracle.enhanced, captured(PAYLOADS))]
    for place, bad, expected in (
        (2, parts[2][:-4] + b"\1\2\3\4", "length of .* again at its end"),
        (2, parts[2][:4] + b"\x0b\0\0\0" + parts[2][8:], "length of a packet or block, found 11"),
        (2, oracle.section()[:8] + b"oops" + oracle.section()[12:], "byte-order magic"),
        (
            2,
            oracle.block(6, b"\0" * 12 + b"\xff\0\0\0" + b"\0" * 24),
            "length of a packet or block",
        ),
    ):
        with pytest.raises(UserError, match=expected):
            read(b"".join([*parts[:place], bad, *parts[place + 1 :]]))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "not a capture: offset 0: .* found nothing"),
        (b"PK\3\4 a zip", "found 50 4b 03 04"),
        (oracle.pcap([])[:23], "cut off at offset 23"),
        (oracle.pcap([]), "no MoldUDP64 in 0 packets"),
        (oracle.pcap([], link=147), "link type 147 at offset 20"),
        (oracle.section()[:20], "no MoldUDP64 in 0 packets"),
        (b"\x0a\x0d\x0d\x0a\x1c\0\0\0abcd", "not a capture"),
    ],
)
def test_files_that_are_no_captures(data, expected):
    with pytest.raises(UserError, match=expected):
        read(data)


@settings(max_examples=120)
@given(st.sampled_from([oracle.pcap, oracle.pcapng]), st.data())
def test_any_damage_ends_in_messages_or_in_an_error(kind, draw):
    data = bytearray(kind(captured(PAYLOADS[:6])))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        stream, out = read(bytes(data), draw.draw(st.sampled_from([None, 64])))
    except UserError as error:
        assert "some.pcap" in str(error) and "\n" not in str(error)
        return
    walk = itch.walk(out)
    assert not walk.short_tail and len(walk.messages) == stream.counters["messages"] - stream.counters["empty_messages"]


def test_a_day_replayed_from_a_capture_is_the_day(tmp_path):
    """Of two lines that both lose packets, in every kind of file: equal checksums."""
    day, _ = synth.generate(4000, 1)
    messages = [message for _, message in itch.walk(day.tobytes()).messages]
    payloads = [mold.packet(n + 1, messages[n : n + 9]) for n in range(0, len(messages), 9)]
    whole = Replayer()
    whole.feed(day)
    whole.close()
    for link, kind in (
        (1, oracle.pcap),
        (113, oracle.pcapng),
        (276, oracle.pcap),
        (101, oracle.pcapng),
        (0, oracle.pcap),
    ):
        frames = []
        for n, payload in enumerate(payloads):
            for group, lost in (("239.1.1.1", 3), ("239.1.1.2", 5)):
                if n % 8 != lost:
                    frames.append(oracle.framed(oracle.ipv4(payload, group=group), link))
        stream, again, buffer = CaptureStream(io.BytesIO(kind(frames, link))), Replayer(), np.empty(10_000, np.uint8)
        while count := stream.readinto(buffer):
            again.feed(buffer[:count])
        again.close()
        assert again.checksum() == whole.checksum() and not odd(stream)


def test_real_captures(real_data):
    """Counts of other programs on captures of NASDAQ's feed of 2023."""
    for facts in json.loads(real_data("expected_moldudp64.json").read_text()):
        stream, out = read(real_data(facts["file"]).read_bytes())
        walk = itch.walk(out)
        kinds = [chr(message[0]) for _, message in walk.messages]
        assert {kind: kinds.count(kind) for kind in kinds} == facts["counts"]
        assert all(len(message) == itch.LENGTH[chr(message[0])] for _, message in walk.messages)
        assert [stream.session] == facts["session"] and stream.next_sequence == facts["next_seq"]
        counted = stream.counters
        assert (counted["packets"], counted["messages"]) == (facts["packets"], facts["messages"])
        assert counted["gaps"] == len(stream.gaps) == facts["seq_breaks"]
        assert counted["short"] == facts["len_mismatch"] and counted["trailing"] == len(facts["trailing"])
        assert [flow.split(">")[1] for flow in facts["flow"]] == list(stream.lines)
        assert facts["next_seq"] - facts["seq_first"] == counted["messages"] + counted["missing"]
