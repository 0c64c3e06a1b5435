"""The bump arena against plain arithmetic: aligned, never overlapping, never beyond its end, taken back all at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from photonlab.kernels import arena
from photonlab.lab.measure.allocation import prove
from photonlab.systems.experiments import allocators
from tests.oracle import blocks as oracle

ALIGNMENTS = st.sampled_from([1, 2, 4, 8, 16, 64, 4096])
SIZES = st.one_of(st.integers(0, 200), st.sampled_from([2**63, 2**64 - 1, 2**64 - 64]))


@given(st.integers(1, 500), st.lists(st.tuples(SIZES, ALIGNMENTS), max_size=60))
def test_against_arithmetic(words, requests):
    one, twin, end = arena.make_arena(words * 4), oracle.Bump(words * 4), 0
    for size, alignment in requests:
        offset = int(arena.allot(one, np.uint64(size), np.uint64(alignment)))
        expected = twin.allot(size, alignment)
        if expected is None:
            assert offset == arena.FULL
        else:
            assert offset == expected and offset % alignment == 0 and offset >= end
            end = offset + size
        assert one.used[0] == twin.used <= words * 4


def test_mark_and_rewind():
    one, size = arena.make_arena(1000), np.uint64(100)
    arena.allot(one, size, np.uint64(1))
    here = arena.mark(one)
    assert [int(arena.allot(one, size, np.uint64(1))) for _ in range(10)] == [*range(100, 1000, 100), int(arena.FULL)]
    arena.rewind(one, here)
    assert int(arena.allot(one, size, np.uint64(1))) == 100
    arena.rewind(one, np.uint64(0))
    assert int(arena.allot(one, np.uint64(1000), np.uint64(1))) == 0


def test_a_refusal_hands_out_nothing():
    one = arena.make_arena(128)
    assert arena.allot(one, np.uint64(129), np.uint64(1)) == arena.FULL and one.used[0] == 0
    assert arena.allot(one, np.uint64(128), np.uint64(64)) == 0, "what was left is still there"


def test_cycles_count_what_they_hand_out_within_their_memory():
    memory = np.full(100 * 16 + 64, 0xDEADBEEF, np.uint32)
    one, taken = arena.Arena(memory[32:-32], np.zeros(1, np.uint64)), np.zeros(120, np.uint32)
    assert allocators.arena_cycles(one, taken, 3) == 300
    assert taken[:100].tolist() == list(range(0, 6400, 64)) and (taken[100:] == 0xFFFF_FFFF).all()
    assert (memory[:32] == 0xDEADBEEF).all() and (memory[-32:] == 0xDEADBEEF).all()
    assert prove(allocators.arena_cycles, one, taken, 1).clean


@pytest.mark.parametrize("size", [0, -1])
def test_sizes_that_make_no_arena(size):
    with pytest.raises(ValueError, match="1 byte or more"):
        arena.make_arena(size)
