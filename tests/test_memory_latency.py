"""The walk through memory: one cycle through all lines, the same on every machine, held against a plain twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.machine import latency

MASK = 2**64 - 1
GOLDEN = [2, 0, 7, 5, 1, 6, 4, 3]


def twin(count, seed):
    """Return the successor of each line by Sattolo's algorithm with splitmix64, in plain Python."""
    follow, state = list(range(count)), seed
    for last in range(count - 1, 0, -1):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        mixed ^= mixed >> 31
        other = ((mixed >> 32) * last) >> 32
        follow[last], follow[other] = follow[other], follow[last]
    return follow


def cycle(follow):
    seen, at = [], 0
    while not seen or at != 0:
        seen.append(at)
        at = follow[at]
        assert len(seen) <= len(follow)
    return seen


def linked(count, seed):
    lines = np.zeros(count * latency.WORDS, np.uint64)
    latency.link_lines(lines, np.uint64(seed))
    return lines


@given(count=st.integers(1, 300), seed=st.integers(0, MASK))
@settings(max_examples=60, deadline=None)
def test_links_equal_the_twin_and_form_one_cycle(count, seed):
    lines = linked(count, seed)
    follow = twin(count, seed)
    assert (lines[:: latency.WORDS] // latency.WORDS).tolist() == follow
    assert not lines.reshape(count, -1)[:, 1:].any()  # the rest of each line is left alone
    assert sorted(cycle(follow)) == list(range(count))
    assert latency.cycle_length(lines, np.zeros(1, np.uint64)) == count


def test_order_is_the_same_on_every_machine():
    assert twin(8, 1) == GOLDEN
    assert (linked(8, 1)[:: latency.WORDS] // latency.WORDS).tolist() == GOLDEN


def test_a_shuffle_that_is_not_one_cycle_is_noticed():
    """The checksum can fail: two cycles of two lines instead of one of four."""
    lines = np.zeros(4 * latency.WORDS, np.uint64)
    lines[:: latency.WORDS] = np.array([1, 0, 3, 2]) * latency.WORDS
    assert latency.cycle_length(lines, np.zeros(1, np.uint64)) == 2
    lines[:: latency.WORDS] = np.array([1, 2, 3, 1]) * latency.WORDS  # never comes back to where it started
    assert latency.cycle_length(lines, np.zeros(1, np.uint64)) == 5


def test_no_line_is_next_to_its_successor_more_than_by_chance():
    follow = np.array(twin(5000, 3), np.int64)
    assert np.mean(np.abs(follow - np.arange(5000)) <= 1) < 0.005


def test_walk_goes_on_where_it_stopped():
    one = latency.new_walk(100 * latency.LINE_BYTES, huge=False, seed=5)
    order = cycle(twin(100, 5))
    at = 0
    for steps in (1, 7, 50, 120):
        latency.walk(*one, steps)
        at = (at + steps) % 100
        assert int(one.position[0]) // latency.WORDS == order[at]
        assert int(one.clocked[0]) < 2**62


def test_measurement_of_small_working_sets():
    sizes = latency.working_sets(4096, 65536, per_octave=1)
    found = latency.measure(sizes, rounds=3, steps=2_000, seed=9)
    assert [(one.working_set, one.pages) for one in found] == [
        (size, pages) for size in sizes for pages in ("small", "huge")
    ]
    for one in found:
        assert len(one.ns) == 3
        assert one.median == sorted(one.ns)[1] > 0
        assert one.visited == one.working_set // latency.LINE_BYTES
        assert one.huge_share in (None, 0.0)  # less than a huge page


def test_large_working_set_is_not_walked_whole_and_says_so():
    found = latency.measure([1 << 20], rounds=1, steps=100, seed=9)
    assert [one.visited for one in found] == [-1, -1]


def test_share_of_huge_pages_is_what_the_system_gave():
    for huge in (False, True):
        one = latency.new_walk(8 << 20, huge=huge, seed=1)
        share = latency.huge_share(one.lines)
        assert share is None or 0 <= share <= 1
        if not huge:
            assert not share


@pytest.mark.parametrize("size", [0, 64, 100, -64, 1 << 38])
def test_impossible_working_sets(size):
    with pytest.raises(ValueError, match="working set"):
        latency.new_walk(size, huge=False, seed=1)


def test_working_sets_are_whole_lines_in_even_steps():
    sizes = latency.working_sets(4096, 1 << 28)
    assert sizes[0] == 4096
    assert sizes[-1] == 1 << 28
    assert len(sizes) == 33
    assert all(size % latency.LINE_BYTES == 0 for size in sizes)
    assert np.diff(np.log2(sizes)) == pytest.approx(0.5, abs=0.02)


def test_cache_steps_lie_within_the_range():
    caches = [{"level": 1, "bytes": 32768}, {"level": 2, "bytes": 1 << 20}, {"level": 3, "bytes": 1 << 30}]
    assert latency.cache_steps(caches, (4096, 1 << 28)) == [("L1", 32768), ("L2", 1 << 20)]
    assert latency.cache_steps([], (4096, 1 << 28)) == []
