"""The dense bitmap against a sorted set, at the edges of its words above all (trap 11)."""

import bisect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.kernels import bitmap as bm

SIZES = (1, 2, 63, 64, 65, 4095, 4096, 4097, 64**3, 64**3 + 1, 1 << 21)


def u(number):
    return np.uint64(number)


def above(members, bit):
    """The plain twin of both upward searches."""
    at = bisect.bisect_left(members, bit)
    return members[at] if at < len(members) else int(bm.NONE)


def below(members, bit):
    at = bisect.bisect_right(members, bit)
    return members[at - 1] if at else int(bm.NONE)


def edges(size):
    """Bits next to the edges of words on every floor."""
    near = {edge * 64**k + step for k in range(5) for edge in (1, 2, 63, 64) for step in (-2, -1, 0, 1)}
    return sorted(bit for bit in near | {0, size - 1} if 0 <= bit < size)


@st.composite
def histories(draw):
    size = draw(st.sampled_from(SIZES))
    floors = bm.floors_for(size) + draw(st.integers(0, 2))
    bits = st.sampled_from(edges(size)) | st.integers(0, size - 1)
    return size, floors, draw(st.lists(st.tuples(st.booleans(), bits, bits), max_size=60))


@settings(deadline=None)
@given(histories())
def test_equals_a_sorted_set(history):
    size, floors, steps = history
    bitmap, members, levels = bm.make_bitmap(size, floors), [], np.zeros(size, np.uint32)
    for put, bit, asked in steps:
        there = bit in members
        if put:
            touched = bm.insert(bitmap, u(bit))
            if not there:
                bisect.insort(members, bit)
        else:
            touched = bm.remove(bitmap, u(bit))
            if there:
                members.remove(bit)
        levels[bit] = put
        assert 1 <= touched <= floors
        assert bool(bm.contains(bitmap, u(bit))) == put
        for search, linear, twin in (
            (bm.at_or_above, bm.linear_at_or_above, above),
            (bm.at_or_below, bm.linear_at_or_below, below),
        ):
            wanted = twin(members, asked)
            found, read = search(bitmap, u(asked))
            assert found == wanted
            assert 1 <= read <= 2 * floors
            if size <= 4097:
                found, examined = linear(levels, u(asked))
                assert found == wanted
                if wanted != int(bm.NONE):
                    assert examined == abs(wanted - asked) + 1
                else:
                    assert examined == (size - asked if twin is above else asked + 1)


@pytest.mark.parametrize("size", SIZES)
def test_every_pair_of_edges(size):
    bitmap = bm.make_bitmap(size)
    for bit in edges(size):
        bm.insert(bitmap, u(bit))
        for asked in edges(size):
            assert bm.at_or_above(bitmap, u(asked))[0] == (bit if bit >= asked else int(bm.NONE))
            assert bm.at_or_below(bitmap, u(asked))[0] == (bit if bit <= asked else int(bm.NONE))
        bm.remove(bitmap, u(bit))
        assert not bitmap.words.any(), "every floor is cleared again"


def test_a_search_from_beyond_the_last_bit_finds_nothing():
    bitmap = bm.make_bitmap(65)
    bm.insert(bitmap, u(64))
    for asked in (65, 127, 128, 4096, 2**63, 2**64 - 1):
        assert bm.at_or_above(bitmap, u(asked))[0] == int(bm.NONE)


def test_floors():
    """Claim R12: 2^21 prices need 4 floors and not 5."""
    sizes = (1, 64, 65, 4096, 4097, 1 << 21, 64**4, 64**4 + 1)
    assert [bm.floors_for(size) for size in sizes] == [1, 1, 2, 2, 3, 4, 4, 5]
    assert [len(bm.make_bitmap(1 << 21, floors).starts) - 1 for floors in (0, 4, 5)] == [4, 4, 5]
    assert np.diff(bm.make_bitmap(1 << 21).starts).tolist() == [32768, 512, 8, 1]
    with pytest.raises(ValueError, match="3 floors of 64 children hold fewer than 2097152 bits"):
        bm.make_bitmap(1 << 21, 3)
    with pytest.raises(ValueError, match="0 bits"):
        bm.make_bitmap(0)


def test_removing_what_is_not_there_changes_nothing():
    bitmap = bm.make_bitmap(4096)
    bm.insert(bitmap, u(70))
    before = bitmap.words.copy()
    for bit in (0, 69, 71, 4095):
        bm.remove(bitmap, u(bit))
    assert (bitmap.words == before).all()


def test_churn_leaves_the_set_as_it_was_and_finds_the_same_with_more_floors():
    rng = np.random.default_rng(5)
    members = rng.choice(1 << 21, 500, replace=False).astype(np.uint64)
    others = np.setdiff1d(rng.integers(0, 1 << 21, 2000).astype(np.uint64), members)
    found = {}
    for floors in (4, 5):
        bitmap = bm.make_bitmap(1 << 21, floors)
        for bit in members:
            bm.insert(bitmap, bit)
        before = bitmap.words.copy()
        found[floors], touched = bm.churn(bitmap, others)
        assert (bitmap.words == before).all()
        assert 3 * others.size <= touched <= 4 * floors * others.size
    ordered = sorted(members.tolist())
    expected = sum(above(ordered, int(bit) + 1) for bit in others) % 2**64
    assert found[4] == found[5] == expected
