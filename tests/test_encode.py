"""Encoding: the golden bytes of all 23 types, from Python and from kernels, and what a caller can get wrong."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.errors import UserError
from photonlab.kernels import encode as rooms
from photonlab.kernels.encode import encode, frame, text_value
from photonlab.kernels.itch import BY_TYPE, TYPES
from photonlab.machine.jit import kernel
from tests.oracle import golden, streams
from tests.oracle import itch as oracle


@pytest.mark.parametrize("kind", TYPES)
def test_golden_bytes(kind):
    """Trap 8. The oracle is held to the same bytes."""
    expected, fields = golden.golden_bytes(kind), golden.golden_fields(kind)
    assert len(expected) == golden.LENGTHS[kind]
    assert encode(kind, **fields) == expected
    assert oracle.encode(kind, **fields) == expected
    assert oracle.decode(expected) == {"message_type": kind.encode(), **fields}


@settings(max_examples=300, derandomize=True, deadline=None)
@given(streams.any_type.flatmap(streams.any_message))
def test_every_field_of_random_messages(message):
    fields = oracle.decode(message)
    kind = fields.pop("message_type").decode()
    assert encode(kind, **fields) == message


@given(st.lists(streams.any_type.flatmap(streams.any_message), max_size=20))
@settings(max_examples=50, derandomize=True, deadline=None)
def test_frame(messages):
    assert frame(messages) == oracle.frame(messages)


def test_text_is_padded_and_numbers_of_numpy_are_taken():
    message = encode("A", stock="AAPL", buy_sell_indicator=b"B", price=np.uint32(2**32 - 1), shares=np.int64(7))
    assert message[24:32] == b"AAPL    " and message[32:] == b"\xff\xff\xff\xff" and message[20:24] == b"\0\0\0\7"
    assert encode("W") == b"W" + bytes(10) + b" "


@pytest.mark.parametrize(
    ("kind", "fields", "complaint"),
    [
        ("Z", {}, "no ITCH 5.0 message type 'Z'; the types are S R H"),
        ("D", {"price": 1}, "D (Order Delete) has no field 'price'; it has stock_locate"),
        ("A", {"message_type": "A"}, "A (Add Order - No MPID Attribution) has no field 'message_type'"),
        ("A", {"price": 2**32}, "A.price must be from 0 to 4294967295, not 4294967296"),
        ("A", {"shares": -1}, "A.shares must be from 0 to 4294967295, not -1"),
        ("A", {"timestamp": 2**48}, "A.timestamp must be from 0 to 281474976710655"),
        ("A", {"stock": "TOOLONGNAME"}, "A.stock has room for 8 characters, not for 'TOOLONGNAME'"),
        ("A", {"stock": "Ä"}, "A.stock must be ASCII"),
        ("A", {"stock": 7}, "A.stock is text, not 7"),
        ("A", {"price": 1.5}, "A.price is an unsigned integer, not 1.5"),
        ("A", {"price": "1"}, "A.price is an unsigned integer, not '1'"),
    ],
)
def test_what_does_not_fit_is_said(kind, fields, complaint):
    with pytest.raises(UserError, match=re.escape(complaint)):
        encode(kind, **fields)


@pytest.mark.parametrize("size", [0, 65536])
def test_messages_that_cannot_be_framed(size):
    with pytest.raises(UserError, match=f"a message of {size} bytes cannot be framed"):
        frame([bytes(size)])


def as_integers(kind):
    """Give the golden values of a type as a `put_` takes them."""
    values = golden.golden_fields(kind).values()
    return tuple(int.from_bytes(value, "big") if isinstance(value, bytes) else value for value in values)


@pytest.mark.parametrize("kind", TYPES)
def test_kernel_stores_golden_bytes_within_canaries(kind):
    put = rooms.PUT[kind]

    @kernel(cache=False)
    def store(buf, at, values):
        return put(buf, at, *values)

    room = np.full(3 + 2 + golden.LENGTHS[kind] + 3, 0xA5, np.uint8)
    end = store(room, np.uint64(3), tuple(np.uint64(value) for value in as_integers(kind)))
    assert end == len(room) - 3
    assert room[3:-3].tobytes() == oracle.frame([golden.golden_bytes(kind)])
    assert set(room[:3]) | set(room[-3:]) == {0xA5}


def test_kernel_takes_fields_by_name_and_of_any_integer_type():
    put_D, put_X = rooms.put_D, rooms.put_X
    stock = text_value("AAPL", 8)

    @kernel(cache=False)
    def store(buf, reference):
        at = put_D(buf, 0, order_reference_number=reference, timestamp=3, tracking_number=2, stock_locate=1)
        return put_X(buf, at, 1, 2, np.uint8(255), reference, canceled_shares=np.int32(5))

    room = np.zeros(60, np.uint8)
    assert store(room, 2**63 + 1) == 21 + 25
    expected = [
        encode("D", stock_locate=1, tracking_number=2, timestamp=3, order_reference_number=2**63 + 1),
        encode("X", stock_locate=1, tracking_number=2, timestamp=255, order_reference_number=2**63 + 1,
               canceled_shares=5),
    ]  # fmt: skip
    assert room[:46].tobytes() == frame(expected)
    assert stock == int.from_bytes(b"AAPL    ", "big")


def test_every_type_has_its_intrinsic():
    assert list(rooms.PUT) == list(BY_TYPE)
    assert rooms.PUT["h"] is rooms.put_h is not rooms.put_H
