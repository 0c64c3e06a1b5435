"""Blocks of 64 bytes against plain lists: no slot twice, orders as promised, survivors, canaries, no allocation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from photonlab.kernels import block_pool, pool
from photonlab.lab.measure.allocation import prove
from photonlab.machine import clock, libc
from photonlab.machine.jit import kernel
from photonlab.systems.experiments import allocators
from tests.oracle import blocks as oracle

CANARY = 0xDEADBEEF


@kernel(cache=False)
def play(slots, moves, taken):
    """Take for a move of 0, else give back slot `move`, with the state in registers; `taken` receives what came."""
    held = pool.hold(slots)
    for i in range(moves.size):
        if moves[i] == np.uint64(0):
            taken[i], held = pool.take_held(slots, held)
        else:
            held = pool.give_held(slots, held, moves[i])
    pool.put_down(slots, held)


def script(count, choices, order=None):
    """Moves that a pool can follow, and what the oracle takes."""
    slots, moves, expected = oracle.Slots(count, order), [], []
    for choice in choices:
        if choice and slots.live:
            slot = sorted(slots.live)[choice % len(slots.live)]
            slots.give(slot)
            moves.append(slot)
            expected.append(0)
        else:
            moves.append(0)
            expected.append(slots.take())
    return np.array(moves, np.uint64), expected, slots


@given(st.integers(1, 12), st.lists(st.integers(0, 20), max_size=80), st.booleans())
def test_state_in_registers_is_state_in_memory(count, choices, refilled):
    order = np.random.default_rng(count).permutation(np.arange(1, count + 1, dtype=np.uint32)) if refilled else None
    moves, expected, left = script(count, choices, order)
    in_registers, in_memory = pool.make_pool(count + 1), pool.make_pool(count + 1)
    if refilled:
        pool.refill(in_registers, order)
        pool.refill(in_memory, order)
    taken = np.zeros(len(moves), np.uint64)
    play(in_registers, moves, taken)
    for i, move in enumerate(moves):
        if move:
            pool.give(in_memory, move)
        else:
            assert int(pool.take(in_memory)) == expected[i]
    assert taken.tolist() == expected
    assert in_registers.state.tolist() == in_memory.state.tolist()
    assert pool.left(in_registers) == count - len(left.live)


@pytest.mark.parametrize("name", block_pool.ORDERS)
def test_hand_out_in_the_order_promised(name):
    order = block_pool.hand_out_order(name, 500, 3)
    assert order.dtype == np.uint32 and sorted(order) == list(range(1, 501))
    blocks = block_pool.make_blocks(500)
    pool.refill(blocks.pool, order)
    taken = np.zeros(600, np.uint32)
    assert allocators.pool_fill(blocks, taken) == 500
    assert taken[:500].tolist() == order.tolist() and not taken[500:].any(), "0 is none: the pool is exhausted"
    assert np.array_equal(order, block_pool.hand_out_order(name, 500, 3)), "seeded"


def test_orders_are_what_their_names_say():
    orders = {name: block_pool.hand_out_order(name, 1000, 1).astype(int) for name in block_pool.ORDERS}
    assert (np.diff(orders["forward"]) == 1).all() and (np.diff(orders["reverse"]) == -1).all()
    assert not np.array_equal(orders["shuffled"], block_pool.hand_out_order("shuffled", 1000, 2))
    assert np.corrcoef(orders["LIFO"], orders["reverse"])[0, 1] > 0.5, "the oldest die first, and come back last"
    with pytest.raises(ValueError, match="no order 'sideways'"):
        block_pool.hand_out_order("sideways", 10, 1)


def test_lifo_order_is_that_of_a_pool_after_use():
    order = block_pool.hand_out_order("LIFO", 200, 7)
    blocks, taken = block_pool.make_blocks(200), np.zeros(200, np.uint32)
    allocators.pool_fill(blocks, taken)
    for slot in order[::-1]:  # as they died
        pool.give(blocks.pool, np.uint64(slot))
    allocators.pool_fill(blocks, taken)
    assert taken.tolist() == order.tolist()


def test_clear_hands_out_upwards_again():
    blocks, taken = block_pool.make_blocks(50), np.zeros(50, np.uint32)
    pool.refill(blocks.pool, block_pool.hand_out_order("shuffled", 50, 1))
    allocators.pool_fill(blocks, taken)
    pool.clear(blocks.pool)
    allocators.pool_fill(blocks, taken)
    assert taken.tolist() == list(range(1, 51)) and pool.left(blocks.pool) == 0


@pytest.mark.parametrize("count", [0, -1, 1 << 28])
def test_counts_that_make_no_pool(count):
    with pytest.raises(ValueError, match=r"1 to 2\*\*28 - 1"):
        block_pool.make_blocks(count)


def test_trap_16_canaries():
    """Every loop over a pool stays inside its links and its blocks."""
    count, words = 40, block_pool.BLOCK_WORDS
    links = np.full(count + 1 + 64, CANARY, np.uint32)
    memory = np.full((count + 1 + 64) * words, CANARY, np.uint32)
    slots = pool.Pool(links[32 : 33 + count], np.array([0, 1, count + 1, 0], np.uint64))
    blocks = block_pool.BlockPool(slots, memory[32 * words : (33 + count) * words])
    many, some, spans = np.zeros(60, np.uint32), np.zeros(20, np.uint32), np.zeros(20, np.uint64)
    rusage = np.zeros(libc.RUSAGE_WORDS, np.uint64)
    allocators.pool_fill(blocks, many)  # exhausted on the way: block 0 is written, and nobody's
    for start in (
        lambda: pool.clear(slots),
        lambda: pool.refill(slots, block_pool.hand_out_order("reverse", count, 1)),
    ):
        start()
        allocators.pool_cycles(blocks, some, 2)
        allocators.pool_cycles_in_memory(blocks, some, 2)
        allocators.pool_fill(blocks, some)
        allocators.pool_churn(blocks, some, np.arange(20, dtype=np.uint32))
        start()
        allocators.pool_list(blocks, many)
        start()
        allocators.pool_spans(blocks, some, spans)
        start()
        allocators.pool_evidence(blocks, some, spans, spans.copy(), rusage, libc.address_of(rusage))
    assert (links[:32] == CANARY).all() and (links[33 + count :] == CANARY).all()
    assert (memory[: 32 * words] == CANARY).all() and (memory[(33 + count) * words :] == CANARY).all()


def test_loops_hand_out_all_they_say():
    blocks, taken = block_pool.make_blocks(100), np.zeros(100, np.uint32)
    for loop in (allocators.pool_cycles, allocators.pool_cycles_in_memory):
        assert loop(blocks, taken, 3) == 300
        assert pool.left(blocks.pool) == 100 and sorted(taken) == list(range(1, 101))
    addresses = np.zeros(100, np.uint64)
    assert allocators.malloc_cycles(addresses, 3) == allocators.malloc_fill(addresses) * 3 == 300
    assert np.unique(addresses).size == 100 and (addresses % np.uint64(8) == 0).all()
    assert np.diff(np.sort(addresses)).min() >= block_pool.BLOCK_BYTES
    allocators.free_all(addresses)
    assert not addresses.any()
    links = np.roll(np.arange(101, dtype=np.uint32), -1)
    links[100] = 1
    assert allocators.bare_cycles(links, blocks.words, np.uint64(1), np.uint64(250)) == 1 + 250 % 100


@pytest.mark.parametrize("seed", range(3))
def test_churn_against_the_oracle(seed):
    live, steps = 60, 1500
    victims = np.random.default_rng(seed).integers(0, live, steps).astype(np.uint32)
    blocks, queue = block_pool.make_blocks(live + 9), block_pool.make_blocks(live + 9)
    slots, in_queue, addresses = np.zeros(live, np.uint32), np.zeros(live, np.uint32), np.zeros(live, np.uint64)
    allocators.pool_fill(blocks, slots)
    allocators.pool_fill(queue, in_queue)
    allocators.malloc_fill(addresses)
    for words, used in ((blocks.words, slots), (queue.words, in_queue)):
        words[used.astype(int) * block_pool.BLOCK_WORDS] = 0
    for address in addresses:
        libc.window(int(address), 8)[:] = 0
    twin = oracle.Slots(live + 9)
    expected = oracle.churn(twin, [twin.take() for _ in range(live)], victims)
    free = np.arange(live + 1, live + 10, dtype=np.uint32)
    assert allocators.pool_churn(blocks, slots, victims) == expected
    assert allocators.queue_churn(queue.words, free, in_queue, victims) == expected
    assert allocators.malloc_churn(addresses, victims) == expected
    assert set(slots.tolist()) == twin.live, "the survivors"
    assert sorted([*free, *in_queue]) == list(range(1, live + 10)), "no block is lost or twice there"
    allocators.free_all(addresses)


def test_a_queue_hands_out_what_was_free_for_longest():
    blocks = block_pool.make_blocks(10)
    live, free = np.array([1, 2, 3], np.uint32), np.array([4, 5], np.uint32)
    allocators.queue_churn(blocks.words, free, live, np.array([0, 1, 2, 0], np.uint32))
    assert live.tolist() == [2, 5, 1] and free.tolist() == [3, 4]


def test_spans_cover_every_block_and_the_clock_ran():
    blocks, taken, spans = block_pool.make_blocks(64), np.zeros(64, np.uint32), np.zeros(16, np.uint64)
    allocators.pool_spans(blocks, taken, spans)
    assert taken.tolist() == list(range(1, 65)) and spans.any()
    addresses = np.zeros(64, np.uint64)
    allocators.malloc_spans(addresses, spans)
    assert addresses.all() and clock.calibrate().ns(int(spans.max())) < 1e9
    allocators.free_all(addresses)


def loop_arguments():
    blocks, taken = block_pool.make_blocks(64), np.zeros(32, np.uint32)
    return {
        "pool_cycles": (allocators.pool_cycles, (blocks, taken, 2)),
        "pool_cycles_in_memory": (allocators.pool_cycles_in_memory, (blocks, taken, 2)),
        "pool_fill": (allocators.pool_fill, (blocks, taken)),
        "pool_list": (allocators.pool_list, (blocks, taken)),
        "refill": (pool.refill, (blocks.pool, block_pool.hand_out_order("forward", 64, 1))),
    }


@pytest.mark.parametrize("name", loop_arguments())
def test_loops_over_a_pool_allocate_nothing(name):
    loop, arguments = loop_arguments()[name]
    assert prove(loop, *arguments).clean


def test_the_proof_sees_malloc():
    proof = prove(allocators.malloc_fill, np.zeros(4, np.uint64))
    assert "malloc" in proof.allocation_calls_in_code and not proof.clean


def test_pages_faulted_are_counted_where_they_happen():
    """A block a page on untouched memory: a fault each time the memory is new, none when it is not."""
    rusage = np.zeros(libc.RUSAGE_WORDS, np.uint64)
    for touched in (True, False):
        blocks, taken = block_pool.make_blocks(1 << 12, populate=touched), np.ones(1 << 12, np.uint32)
        spans, faults = np.ones(1 << 12, np.uint64), np.ones(1 << 12, np.uint64)
        allocators.pool_evidence(blocks, taken, spans, faults, rusage, libc.address_of(rusage))
        pages = (1 << 12) * block_pool.BLOCK_BYTES // 4096
        assert (faults.sum() == 0) if touched else (pages // 8 <= faults.sum() <= pages + 2)
