"""The loop between framing and the book decodes what a book needs, no more and no less (claim F3)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.kernels.framing import walk
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import synth
from photonlab.systems.experiments.attribution import decode_for_book
from tests.oracle import itch, streams

NEEDED = {
    **dict.fromkeys("AF", ("stock_locate", "order_reference_number", "buy_sell_indicator", "shares", "price")),
    "E": ("order_reference_number", "executed_shares"),
    "C": ("order_reference_number", "executed_shares", "printable"),
    "X": ("order_reference_number", "canceled_shares"),
    "D": ("order_reference_number",),
    "U": ("original_order_reference_number", "new_order_reference_number", "shares", "price"),
}


def expected(data):
    total = 0
    for _, message in itch.walk(data).messages:
        if itch.LENGTH.get(chr(message[0])) == len(message):
            fields = itch.decode(message)
            values = [fields[name] for name in NEEDED.get(chr(message[0]), ())]
            total += sum(v if isinstance(v, int) else v[0] for v in values)
    return total % 2**64


@settings(deadline=None)
@given(st.lists(streams.any_type.flatmap(streams.any_message), max_size=30), streams.tails)
def test_sum_of_the_needed_fields(messages, tail):
    data = itch.frame(messages) + tail
    found, position, total = decode_for_book(as_bytes_array(data), 0)
    assert total == expected(data)
    walked = walk(as_bytes_array(data), 0)
    assert found == walked[0]
    assert position == walked[1] - 2 * walked[2], "it stops in front of a zero prefix"


@pytest.mark.parametrize("seed", [1, 2])
def test_faulty_messages_are_walked_over(seed):
    data = streams.long_stream(seed, 2000, faults=0.2)
    assert decode_for_book(as_bytes_array(data), 0)[2] == expected(data)


def test_a_day_from_its_middle():
    day, truth = synth.generate(3_000, 1)
    messages, position, _ = decode_for_book(day, 0)
    assert (messages, position) == (truth.messages, truth.bytes)
    begin = sum(2 + len(m) for _, m in itch.walk(day.tobytes()).messages[:1000])
    assert decode_for_book(day, begin)[0] == truth.messages - 1000
