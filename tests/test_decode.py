"""Decoding against the oracle: every field of every type, exactly, and the checksum of the kernel that is measured."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.errors import ItchFormatError, UserError
from photonlab.kernels import decode, framing
from photonlab.kernels.decode import decode_frame, decode_messages
from photonlab.kernels.encode import encode
from photonlab.kernels.itch import BY_TYPE, TYPES
from photonlab.machine.memory import as_bytes_array
from tests.oracle import golden, streams
from tests.oracle import itch as oracle

EDGES = (2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1)


def good(data):
    """Give the messages of a framed stream that have a type's own length."""
    messages = [message for _, message in oracle.walk(data).messages]
    return [message for message in messages if oracle.LENGTH.get(chr(message[0])) == len(message)]


def checksum(messages):
    """Give the sum of all values of all fields, text as the big-endian integer of its characters."""
    values = (value for message in messages for value in oracle.decode(message).values())
    return sum(int.from_bytes(value, "big") if isinstance(value, bytes) else value for value in values) % 2**64


def check(data):
    found = oracle.walk(data)
    messages, position, ended, total = decode.decode_all(as_bytes_array(data), 0)
    assert (messages, position, bool(ended)) == (len(found.messages), found.consumed, found.ended)
    assert int(total) == checksum(good(data))


@pytest.mark.parametrize("kind", TYPES)
def test_golden_bytes(kind):
    """Trap 8, and trap 5: no price changes its sign."""
    data = oracle.frame([golden.golden_bytes(kind)])
    check(data)
    (record,) = decode_messages(data, kind)
    for name, value in golden.golden_fields(kind).items():
        # NumPy drops trailing zero bytes of text, of which there are none here
        assert record[name] == value, name


@pytest.mark.parametrize("kind", TYPES)
def test_random_messages_round_trip(kind):
    """Encode, frame, decode: every field of every type, equal to the oracle's."""

    @settings(max_examples=40, derandomize=True, deadline=None)
    @given(st.lists(streams.any_message(kind), min_size=1, max_size=8))
    def round_trip(messages):
        data = oracle.frame(messages)
        check(data)
        records = decode_messages(data, kind)
        for record, message in zip(records, messages, strict=True):
            fields = oracle.decode(message)
            assert [int(record[f.name]) if not f.is_text else record[f.name] for f in BY_TYPE[kind].fields] == [
                fields[f.name].rstrip(b"\0") if f.is_text else fields[f.name] for f in BY_TYPE[kind].fields
            ]
            del fields["message_type"]
            assert encode(kind, **fields) == message

    round_trip()


@pytest.mark.parametrize("value", EDGES)
def test_integers_stay_exact_at_the_edges_of_floats_and_signs(value):
    """Trap 12."""
    data = oracle.frame([oracle.encode("D", order_reference_number=value)])
    assert int(decode_messages(data, "D")["order_reference_number"][0]) == value
    total = decode.decode_all(as_bytes_array(data), 0)[3]
    assert int(total) == (value + ord("D")) % 2**64


@settings(max_examples=150, derandomize=True, deadline=None)
@given(streams.framed_streams)
def test_streams(data):
    check(data)
    messages = good(data)
    for kind in "AUSI":
        expected = [oracle.decode(message) for message in messages if message[0] == ord(kind)]
        records = decode_messages(data, kind)
        assert records["timestamp"].tolist() == [fields["timestamp"] for fields in expected]
        assert records["stock_locate"].tolist() == [fields["stock_locate"] for fields in expected]


@settings(max_examples=10, derandomize=True, deadline=None)
@given(streams.streams(sizes=(3, 10)).map(oracle.frame))
def test_every_prefix_of_a_stream(data):
    for end in range(len(data) + 1):
        check(data[:end])


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.binary(max_size=300))
def test_garbage(data):
    check(data)


@pytest.mark.parametrize("kind", TYPES)
def test_no_byte_before_or_behind_a_message_counts(kind):
    """The loads of 8 bytes that end with a short field reach back, never out of the message's own values."""
    message = golden.golden_bytes(kind)
    for noise in (b"\x00", b"\xff"):
        before = b"\0\4" + b"zzz" + noise
        data = as_bytes_array(before + oracle.frame([message]) + noise * 20)
        _, _, _, total = decode.decode_all(data[: len(before) + 2 + len(message)], len(before))
        assert int(total) == checksum([message])


def test_gather_stays_within_its_room():
    """Trap 16."""
    data = as_bytes_array(streams.long_stream(5, 300, faults=0.1))
    offsets = framing.index_messages(data).offsets
    message = BY_TYPE["A"]
    permutation = decode.permutation_of(message)
    count = sum(m[0] == ord("A") for m in good(data.tobytes()))
    out = np.full(8 + count * message.dtype.itemsize + 8, 0xA5, np.uint8)
    assert decode.gather(data, offsets, ord("A"), permutation, out[8:-8]) == count
    assert set(out[:8]) | set(out[-8:]) == {0xA5}
    assert out[8:-8].tobytes() == decode_messages(data, "A").tobytes()


def test_blocks_join_without_a_seam():
    """More messages than one block of the index holds."""
    count = (1 << 16) + 3
    data = oracle.frame([oracle.encode("D", order_reference_number=n) for n in range(count)])
    assert decode_messages(data, "D")["order_reference_number"].tolist() == list(range(count))
    assert len(decode_messages(data[: (1 << 16) * 21], "D")) == 1 << 16
    assert len(decode_messages(data, "A")) == 0 == len(decode_messages(b"", "A"))


def test_frame_for_people():
    data = oracle.frame([oracle.encode("A", stock=b"AAPL", buy_sell_indicator=b"B", price=2**32 - 1, timestamp=7)])
    table = decode_frame(data, "A")
    assert table.loc[0, "stock"] == "AAPL" and table.loc[0, "buy_sell_indicator"] == "B"
    assert table.loc[0, "price"] == 2**32 - 1 and table["timestamp"].dtype == np.uint64


def test_what_cannot_be_decoded_is_said():
    with pytest.raises(UserError, match=r"no ITCH 5.0 message type 'z'; the types are S R"):
        decode_messages(b"", "z")
    with pytest.raises(ItchFormatError, match="the length prefix 00 00"):
        decode_messages(b"\0\0" + golden.golden_bytes("S") + b"\0\0" + golden.golden_bytes("A"), "A")


def test_one_signature_serves_read_only_and_writable_input():
    """Trap 14."""
    data = oracle.frame([golden.golden_bytes("A")])
    for variant in (data, bytearray(data), np.frombuffer(data, np.uint8)):
        decode.decode_all(as_bytes_array(variant), 0)
        decode_messages(variant, "A")
    assert len(decode.decode_all.signatures) == 1
    assert len(decode.gather.signatures) == 1
