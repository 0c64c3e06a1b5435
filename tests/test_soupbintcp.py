"""The SoupBinTCP client against a server of the tests' own, and its kernel against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from photonlab.errors import UserError
from photonlab.kernels import soupbintcp as soup
from photonlab.machine.memory import as_bytes_array
from photonlab.systems.soupbintcp import SoupBinStream
from tests.oracle import itch, streams
from tests.oracle import soupbintcp as oracle

MESSAGES = [message for _, message in itch.walk(streams.long_stream(4, 40)).messages]
END = oracle.packet(b"Z")
QUICK = {"pause": 0.01, "timeout": 2.0}


def read(stream, size=1 << 16):
    """Give all that a stream delivers."""
    out, buffer = b"", np.zeros(size, np.uint8)
    while count := stream.readinto(buffer):
        out += buffer[:count].tobytes()
    return out


def serving(*scripts, **options):
    """Give a server and a stream from it."""
    server = oracle.Server(*scripts)
    return server, SoupBinStream(server.address, "user", "secret", **{"sequence": 1} | QUICK | options)


def script(*pieces, piece=None):
    """Give a script: the login, then these bytes."""

    def run(connection):
        connection.login()
        connection.send(b"".join(pieces), piece)

    return run


def test_a_session_from_login_to_its_end():
    def day(connection):
        assert connection.login() == (b"user  ", b"secret    ", b"      DAY1", 1)
        connection.send(oracle.packet(b"+", b"hello") + oracle.accepted(1))
        connection.send(oracle.sequenced(MESSAGES[:20]) + oracle.packet(b"H") + oracle.packet(b"U", b"unsequenced"))
        connection.send(oracle.sequenced(MESSAGES[20:]) + oracle.packet(b"?", b"new") + END)

    server, stream = serving(day, session="DAY1")
    assert read(stream) == itch.frame(MESSAGES) and stream.readinto(bytearray(10)) == 0
    assert (stream.session, stream.next_sequence, stream.gaps) == ("DAY1", 41, [])
    assert stream.counters == {
        "messages": 40, "duplicates": 0, "empty_messages": 0, "heartbeats": 1, "unsequenced": 1, "debug": 1,
        "unknown_packets": 1, "reconnects": 0, "missing": 0,
    }  # fmt: skip
    server.close()
    assert not server.errors


@pytest.mark.parametrize("piece", [1, 2, 5])
def test_packets_that_come_in_pieces(piece):
    """And a reader with little room."""
    server, stream = serving(script(oracle.accepted(1), oracle.sequenced(MESSAGES[:9]), END, piece=piece))
    assert read(stream, size=piece + 2) == itch.frame(MESSAGES[:9])
    server.close()


def test_more_than_any_buffer_holds():
    large = [bytes([n]) * 65_534 for n in range(1, 20)]
    server, stream = serving(script(oracle.accepted(1), oracle.sequenced(large), END))
    assert read(stream) == itch.frame(large)
    server.close()


@pytest.mark.parametrize(("reason", "told"), [(b"A", "not authorised"), (b"S", "not available"), (b"x", "reason 'x'")])
def test_a_rejected_login(reason, told):
    server, stream = serving(script(oracle.packet(b"J", reason)))
    with pytest.raises(UserError, match=rf"127.0.0.1:\d+: login rejected: .*{told}"):
        read(stream)
    server.close()


def test_a_lost_connection_goes_on_where_it_was():
    """Cut within a packet; the session is asked for by name then."""
    half = oracle.sequenced(MESSAGES[:15]) + oracle.sequenced(MESSAGES[15:16])[:7]

    def again(connection):
        assert connection.login()[2:] == (b"      DAY1", 16)
        connection.send(oracle.accepted(16) + oracle.sequenced(MESSAGES[15:30]))

    def backwards(connection):
        assert connection.login()[3] == 31
        connection.send(oracle.accepted(25) + oracle.sequenced(MESSAGES[24:]) + END)

    server, stream = serving(script(oracle.accepted(1), half), again, backwards)
    assert read(stream) == itch.frame(MESSAGES)
    assert stream.counters["reconnects"] == 2 and stream.counters["duplicates"] == 6
    server.close()
    assert not server.errors


def test_messages_that_are_gone_are_a_gap():
    server, stream = serving(
        script(oracle.accepted(1), oracle.sequenced(MESSAGES[:5])), script(oracle.accepted(9), END)
    )
    assert read(stream) == itch.frame(MESSAGES[:5])
    assert stream.gaps == [(6, 3)] and stream.counters["missing"] == 3 and stream.next_sequence == 9
    server.close()


def test_the_next_message_whichever_it_is():
    server, stream = serving(script(oracle.accepted(2**53 + 1), oracle.sequenced(MESSAGES[:5]), END), sequence=0)
    assert read(stream) == itch.frame(MESSAGES[:5]) and stream.next_sequence == 2**53 + 6
    server.close()


def test_heartbeats_of_both_sides():
    """The server's keep the connection, this client's come while nothing else is sent."""

    def idle(connection):
        connection.login()
        connection.send(oracle.accepted(1))
        for _ in range(8):
            assert connection.next() == (b"R", b"")
            connection.send(oracle.packet(b"H"))
        connection.send(oracle.sequenced(MESSAGES[:1]) + END)

    server, stream = serving(idle, heartbeat=0.03, silence=3.0)
    assert read(stream) == itch.frame(MESSAGES[:1])
    assert stream.counters["heartbeats"] == 8 and stream.counters["reconnects"] == 0
    server.close()
    assert not server.errors


def test_a_silent_server_is_left():
    def silent(connection):
        connection.login()
        connection.send(oracle.accepted(1) + oracle.sequenced(MESSAGES[:3]))
        while connection.next()[0]:
            pass

    server, stream = serving(silent, script(oracle.accepted(4), oracle.sequenced(MESSAGES[3:6]), END), silence=0.6)
    assert read(stream) == itch.frame(MESSAGES[:6]) and stream.counters["reconnects"] == 1
    server.close()


def test_attempts_come_to_an_end():
    server, stream = serving(*[script(oracle.accepted(1))] * 3, retries=2)
    with pytest.raises(
        UserError, match=r"closed without an end of session; message 1 was next, and 2 further attempts"
    ):
        read(stream)
    server.close()
    refused = SoupBinStream(server.address, retries=1, **QUICK)
    with pytest.raises(UserError, match=r"refused; message 0 was next, and 1 further attempts"):
        read(refused)


def test_a_server_that_never_answers_a_login():
    def mute(connection):
        connection.login()
        connection.next()

    server = oracle.Server(mute)
    stream = SoupBinStream(server.address, retries=0, timeout=0.1, heartbeat=0.5)
    with pytest.raises(UserError, match="silent for"):
        read(stream)
    server.close()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (oracle.packet(b"S", b"x"), "an answer to the login first"),
        (oracle.packet(b"A", b"short"), "has a session and a number"),
        (oracle.packet(b"A", b" " * 29 + b"x"), "has a session and a number"),
        (oracle.packet(b"A", b"      DAY1" + b"9" * 20), "cannot have the number"),
        (oracle.accepted(1, b"DAY2"), "logged into session 'DAY2', expected 'DAY1'"),
        (oracle.accepted(1) + b"\0\0\0", "a packet of length 0"),
        (oracle.accepted(1) * 2, "an answer to a login in the middle"),
    ],
)
def test_servers_that_break_the_protocol(answer, told):
    server, stream = serving(script(answer), session="DAY1", retries=0)
    with pytest.raises(UserError, match=told):
        read(stream)
    server.close()


def test_what_came_before_a_broken_packet_is_handed_on():
    server, stream = serving(script(oracle.accepted(1), oracle.sequenced(MESSAGES[:2]), b"\0\0\0"), retries=0)
    buffer = np.zeros(1 << 16, np.uint8)
    assert buffer[: stream.readinto(buffer)].tobytes() == itch.frame(MESSAGES[:2])
    with pytest.raises(UserError, match="before message 3: a packet of length 0"):
        stream.readinto(buffer)
    server.close()


def test_closing_logs_out():
    def waits(connection):
        connection.login()
        connection.send(oracle.accepted(1) + oracle.sequenced(MESSAGES[:1]))
        while connection.next()[0]:
            pass

    server, stream = serving(waits)
    with stream:
        assert stream.readinto(np.zeros(1000, np.uint8))
    server.close()
    assert server.connections[0].received[1:] == [(b"O", b""), (None, b"")]


@pytest.mark.parametrize(
    "arguments",
    [("host",), ("host:http",), ("host:0",), (":80",), ("h:1", "toolong"), ("h:1", "u", "p" * 11), ("h:1", "é")],
)
def test_arguments_that_cannot_be(arguments):
    with pytest.raises(UserError):
        SoupBinStream(*arguments)
    with pytest.raises(UserError, match="session"):
        SoupBinStream("h:1", session="x" * 11)
    with pytest.raises(UserError, match="sequence"):
        SoupBinStream("h:1", sequence=-1)


@given(
    st.lists(st.tuples(st.sampled_from([b"S", b"S", b"H", b"U", b"+", b"Z", b"A", b"?"]), st.binary(max_size=9))),
    st.integers(1, 4),
    st.data(),
)
def test_any_bytes_are_read_as_plain_python_reads_them(packets, wanted, draw):
    data = bytearray(b"".join(oracle.packet(kind, payload) for kind, payload in packets))
    if data and draw.draw(st.booleans()):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
        del data[draw.draw(st.integers(0, len(data))) :]
    messages, counts, taken = oracle.unframe(bytes(data), 1, wanted)
    state, out, found = soup.make_state(wanted), np.zeros(40, np.uint8), b""
    state[soup.NEXT] = 1
    begin, outcome = 0, soup.FULL
    while outcome == soup.FULL:
        outcome, begin, filled = soup.unframe(
            state, as_bytes_array(bytes(data)), np.uint64(begin), np.uint64(len(data)), out
        )
        found += out[: int(filled)].tobytes()
        if outcome == soup.FULL and not filled:
            return  # a damaged length of a packet with no room in so small a buffer
    assert found == itch.frame(messages) and begin == taken
    assert state[soup.NEXT] == 1 + counts.get(b"S", 0)
    assert state[soup.MESSAGES] == len(messages)
    assert [state[word] for word in (soup.HEARTBEATS, soup.UNSEQUENCED, soup.DEBUG)] == [
        counts.get(kind, 0) for kind in (b"H", b"U", b"+")
    ]
    total = soup.MESSAGES, soup.DUPLICATES, soup.EMPTY
    assert sum(int(state[word]) for word in total) == counts.get(b"S", 0)
