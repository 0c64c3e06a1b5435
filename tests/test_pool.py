"""The slot pool against a list: no slot twice, never zero, last in first out, exhaustion, canaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from photonlab.kernels import pool


@given(st.integers(2, 12), st.lists(st.integers(0, 3), max_size=80))
def test_against_a_list(capacity, moves):
    """A move of 0 gives a slot back (the oldest or the newest), any other takes one."""
    slots = pool.make_pool(capacity)
    free, fresh, live = [], 1, []
    for number, move in enumerate(moves):
        if move == 0 and live:
            slot = live.pop(0 if number % 2 else -1)
            pool.give(slots, np.uint64(slot))
            free.append(slot)
        else:
            slot = int(pool.take(slots))
            if free:
                assert slot == free.pop(), "what came back last goes out first"
            elif fresh < capacity:
                assert slot == fresh, "fresh slots upwards"
                fresh += 1
            else:
                assert slot == 0, "0 is no slot: the pool is exhausted"
                continue
            assert slot not in live and 0 < slot < capacity
            live.append(slot)
        assert slots.state[pool.LIVE] == len(live)
        assert pool.left(slots) == capacity - 1 - len(live)


def test_exhaustion_and_recovery():
    slots = pool.make_pool(100)
    taken = [int(pool.take(slots)) for _ in range(99)]
    assert sorted(taken) == list(range(1, 100))
    assert [int(pool.take(slots)) for _ in range(3)] == [0, 0, 0]
    assert pool.left(slots) == 0
    for slot in taken:
        pool.give(slots, np.uint64(slot))
    assert sorted(int(pool.take(slots)) for _ in range(99)) == list(range(1, 100))
    assert pool.take(slots) == 0


def test_trap_16_canaries():
    """The links beyond the capacity and before the pool stay as they were."""
    whole = np.full(100 + 64, 0xDEADBEEF, np.uint32)
    slots = pool.Pool(whole[32:132], np.array([0, 1, 100, 0], np.uint64))
    taken = [pool.take(slots) for _ in range(120)]
    for slot in taken:
        if slot:
            pool.give(slots, slot)
    assert (whole[:32] == 0xDEADBEEF).all() and (whole[132:] == 0xDEADBEEF).all()


@pytest.mark.parametrize("capacity", [-1, 0, 1, (1 << 32) + 1])
def test_capacities_that_make_no_pool(capacity):
    with pytest.raises(ValueError, match=r"2 to 2\*\*32 slots"):
        pool.make_pool(capacity)


def test_slots_beyond_31_bits():
    """A pool's last slots do not turn negative, and need no memory until they are used."""
    slots = pool.make_pool(1 << 32)
    slots.state[pool.FRESH] = 2**32 - 2
    top = [int(pool.take(slots)) for _ in range(3)]
    assert top == [2**32 - 2, 2**32 - 1, 0]
    for slot in top[:2]:
        pool.give(slots, np.uint64(slot))
    assert [int(pool.take(slots)) for _ in range(3)] == [2**32 - 1, 2**32 - 2, 0]
