"""Framing against the oracle's walk: random streams, every prefix of them, garbage, and what stands in real files."""

import gzip
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.errors import ItchFormatError
from photonlab.kernels import framing
from photonlab.kernels.framing import index_messages
from photonlab.machine.memory import as_bytes_array
from tests.oracle import golden, streams
from tests.oracle import itch as oracle

REAL = Path(os.environ.get("PHOTONLAB_REAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
CANARY = 0xA5A5A5A5A5A5A5A5

few = settings(max_examples=100, derandomize=True, deadline=None)


def expected_index(data):
    """Give what the index must hold, by the oracle."""
    found = oracle.walk(data)
    kinds = [chr(message[0]) for _, message in found.messages]
    wrong = [k in oracle.LENGTH and len(m) != oracle.LENGTH[k] for k, (_, m) in zip(kinds, found.messages, strict=True)]
    return {
        "offsets": [offset + 2 for offset, _ in found.messages],
        "counts": dict(Counter(kinds)),
        "bad_length": sum(wrong),
        "unknown_type": sum(kind not in oracle.LENGTH for kind in kinds),
        "consumed": found.consumed,
        "ended": found.ended,
        "short_tail": found.short_tail,
        "size": len(data),
    }


def as_dict(index):
    return {**index.__dict__, "offsets": index.offsets.tolist()}


def check(data):
    """Hold index and bare walk against the oracle, on bytes that may be anything but a file of zero prefixes."""
    expected = expected_index(data)
    assert as_dict(index_messages(data)) == expected
    messages, position, ended, total = framing.walk(as_bytes_array(data), 0)
    assert (messages, position, bool(ended)) == (len(expected["offsets"]), expected["consumed"], expected["ended"])
    assert total == sum(len(message) for _, message in oracle.walk(data).messages)
    assert framing.index(as_bytes_array(data), 0, framing.frames(int(messages) + 1)) == (messages, position, ended)


@few
@given(streams.framed_streams)
def test_streams(data):
    check(data)


@settings(max_examples=15, derandomize=True, deadline=None)
@given(streams.streams(sizes=(3, 10)).map(oracle.frame))
def test_every_prefix_of_a_stream(data):
    for end in range(len(data) + 1):
        check(data[:end])


@few
@given(st.binary(max_size=300))
def test_garbage_never_loops_and_is_accounted_for(data):
    try:
        check(data)
    except ItchFormatError:
        assert data[:2] == b"\0\0"


@settings(max_examples=15, derandomize=True, deadline=None)
@given(streams.framed_streams, st.integers(1, 7))
def test_resumed_with_a_small_index_and_after_any_cut(data, room):
    """Taken up where it stopped, by a full index or a cut message, it finds the same as in one go."""
    expected = expected_index(data)
    if expected["ended"]:
        data = data[: expected["consumed"]]
    for cut in range(0, len(data) + 1, max(1, len(data) // 20)):
        block, position, offsets = framing.frames(room), 0, []
        for size in (cut, len(data)):
            given, found = as_bytes_array(data[:size]), room
            while found == room:
                found, position, ended = (int(value) for value in framing.index(given, position, block))
                offsets += block.offsets[:found].tolist()
                if ended:
                    break
        assert offsets == expected["offsets"]
        assert framing.counts_by_type(block.counts) == expected["counts"]
        assert block.faults.tolist() == [expected["bad_length"], expected["unknown_type"]]


def test_index_stays_within_its_room():
    """Trap 16: canaries round every array that the kernel writes."""
    data = as_bytes_array(streams.long_stream(3, 500, faults=0.1))
    for room in (0, 1, 7, 499, 500, 501):
        offsets, counts, faults = (np.full(n + 4, CANARY, np.uint64) for n in (room, 256, 2))
        counts[2:-2], faults[2:-2] = 0, 0
        found, _, _ = framing.index(data, 0, framing.Frames(offsets[2:-2], counts[2:-2], faults[2:-2]))
        assert found == min(room, 500)
        for array in (offsets, counts, faults):
            assert set(array[:2]) | set(array[-2:]) == {CANARY}


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\0", b"\0\1", b"\0\1S", b"\0\0\0", b"\xff\xff", b"\xff\xff" + b"A" * 65535, b"\0\0S", b"\0\0" * 9],
)
def test_edges(data):
    check(data)


def test_zero_prefix_ends_the_session():
    """Trap 7."""
    first = oracle.frame([golden.golden_bytes("S"), golden.golden_bytes("A")])
    index = index_messages(first + b"\0\0" + b"anything behind it")
    assert (len(index.offsets), index.ended, index.consumed, index.short_tail) == (2, True, len(first) + 2, 0)


def test_wrong_lengths_and_new_types_are_counted_and_walked_over():
    """Trap 7: a type that appears tomorrow, and one that grows."""
    add = golden.golden_bytes("A")
    index = index_messages(oracle.frame([add, b"z" + bytes(11), add + b"x", add[:-1], add]))
    assert index.counts == {"A": 4, "z": 1}
    assert (index.bad_length, index.unknown_type, index.short_tail) == (2, 1, 0)


def test_a_file_of_zero_prefixes_is_refused_with_its_reason():
    zero = b"".join(b"\0\0" + golden.golden_bytes(kind) for kind in "SRA")
    with pytest.raises(ItchFormatError, match="the length prefix 00 00 stands before every message"):
        index_messages(zero)


@pytest.mark.skipif(not (REAL / "itch50").exists(), reason=f"itch50 is not in {REAL}")
def test_the_simulated_file_in_the_wild_is_refused():
    data = gzip.decompress((REAL / "itch50/simulated_zero_prefix_12012msgs.itch.gz").read_bytes())
    with pytest.raises(ItchFormatError, match=re.escape("00 00")):
        index_messages(data)


@pytest.mark.skipif(not (REAL / "itch50").exists(), reason=f"itch50 is not in {REAL}")
@pytest.mark.parametrize("name", sorted(path.name for path in (REAL / "itch50").glob("*.itch")))
def test_real_files(name):
    check((REAL / "itch50" / name).read_bytes())


def test_read_only_and_writable_input_are_one_type_to_the_kernels():
    """Trap 14: no kernel compiles again because its input is a bytes object, a read-only map or a copy."""
    data = oracle.frame([golden.golden_bytes("A")] * 3)
    read_only = np.frombuffer(data, np.uint8)
    expected = as_dict(index_messages(bytearray(data)))
    before = len(framing.index.signatures), len(framing.walk.signatures)
    for variant in (data, memoryview(data), read_only, read_only.copy(), bytearray(b"x" + data)[1:]):
        assert as_dict(index_messages(variant)) == expected
    assert (len(framing.index.signatures), len(framing.walk.signatures)) == before == (1, 1)
