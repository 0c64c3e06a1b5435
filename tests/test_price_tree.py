"""The price tree against sorted lists: best, next, edges of words on every floor, sweeps, exhaustion; trap 11."""

import random
from bisect import bisect_right, insort

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.kernels import pool, price_tree
from tests import drivers

TOP = 2**32 - 1
# Blocks at the edges of words on every floor: a floor's child covers 2^6, 2^12, 2^18, 2^24 and 2^30 keys.
EDGES = sorted(
    {0, TOP}
    | {min(max((n << shift) + step * 64, 0), TOP) for shift in (6, 12, 18, 24, 30) for n in (1, 2, 3, 31, 63, 64, 65)
       for step in (-1, 0, 1) if n << shift <= TOP + 64}
)  # fmt: skip


class Trees:
    """A tree kernel and, per side, a dict of the blocks that it should hold: block → place."""

    def __init__(self, nodes=1 << 12, sides=8):
        self.tree = price_tree.make_price_tree(nodes, sides)
        self.blocks = [{} for _ in range(sides)]
        self.sorted = [[] for _ in range(sides)]

    def put(self, side, key):
        block = key >> 6
        if block not in self.blocks[side]:
            place = int(drivers.put_block(self.tree, np.uint64(side), np.uint64(key), np.uint64(block + 1)))
            assert place, "the tree is full"
            self.blocks[side][block] = place
            insort(self.sorted[side], block)

    def take(self, side, block):
        best = self.sorted[side][0]
        after = int(drivers.take_block(self.tree, np.uint64(self.blocks[side].pop(block))))
        self.sorted[side].remove(block)
        if block == best:
            assert after == (self.sorted[side][0] + 1 if self.sorted[side] else 0)

    def take_best(self, side):
        self.take(side, self.sorted[side][0])

    def check(self):
        """Walk every side in order, and hold the nodes in use against those that the blocks need."""
        needed, idle = set(), int(self.tree.state[price_tree.IDLE])
        for side, blocks in enumerate(self.blocks):
            walked = []
            if blocks:
                place = blocks[self.sorted[side][0]]
                while place:
                    walked.append(int(self.tree.children[place]) - 1)
                    place = int(price_tree.next_block(self.tree, np.uint64(place)))
            assert walked == self.sorted[side]
            needed |= {(side, floor, block >> (6 * floor)) for block in blocks for floor in range(1, 6)}
        return len(needed), idle, int(self.tree.nodes.state[pool.LIVE])

    def sweep(self):
        drivers.sweep_tree(self.tree)
        needed, idle, live = self.check()
        assert idle == 0 and live == needed, "after a sweep exactly the nodes that are needed are there"


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(EDGES) | st.integers(0, TOP), st.integers(0, 9)),
                max_size=60))  # fmt: skip
def test_against_sorted_lists(moves):
    """Put a block; or take the best, or any; or sweep."""
    trees = Trees()
    for side, key, action in moves:
        blocks = trees.sorted[side]
        if action < 6 or not blocks:
            trees.put(side, key)
        elif action < 8:
            trees.take_best(side)
        elif action < 9:
            trees.take(side, blocks[key % len(blocks)])
        else:
            trees.sweep()
        trees.check()
    trees.sweep()


def test_trap_11_all_edges_at_once_from_the_best_to_the_worst():
    trees = Trees()
    for key in random.Random(1).sample(EDGES, len(EDGES)):
        trees.put(1, key)
    trees.check()
    while trees.sorted[1]:
        trees.take_best(1)
        trees.check()
    trees.sweep()
    assert trees.tree.nodes.state[pool.LIVE] == 0


@pytest.mark.parametrize("floor", range(1, 6))
@pytest.mark.parametrize("slots", [(0,), (63,), (0, 63), (31, 32), tuple(range(64)), (62, 63)])
def test_trap_11_next_bit_at_the_edges_of_a_word(floor, slots):
    """Children 0 and 63 of a node on each floor: nothing is shifted by 64, and an empty word is not scanned."""
    trees, step = Trees(), 1 << (6 * floor)
    base = 0 if floor == 5 else 1 << (6 * floor + 6)
    keys = [base + slot * step for slot in slots if base + slot * step <= TOP]
    for key in keys:
        trees.put(0, key)
    trees.check()
    for key in keys[::-1]:
        place = trees.blocks[0][key >> 6]
        following = int(price_tree.next_block(trees.tree, np.uint64(place)))
        later = bisect_right(trees.sorted[0], key >> 6)
        expected = trees.blocks[0][trees.sorted[0][later]] if later < len(trees.sorted[0]) else 0
        assert following == expected
    while trees.sorted[0]:
        trees.take_best(0)
        trees.check()


def test_a_full_leaf_is_emptied_bit_by_bit():
    trees = Trees()
    for slot in range(64):
        trees.put(2, (1 << 31) + (slot << 6))
    assert (trees.tree.bits == np.uint64(2**64 - 1)).any()
    for _ in range(64):
        trees.take_best(2)
    trees.check()
    assert not trees.tree.bits.any()


def test_sides_do_not_meet():
    trees = Trees()
    for side in range(8):
        trees.put(side, 640 * side)
        trees.put(side, 99)
    trees.take_best(3)
    trees.check()
    assert [len(blocks) for blocks in trees.sorted] == [2, 2, 2, 1, 2, 2, 2, 2]


def test_a_node_that_flickers_is_kept_until_a_sweep():
    trees = Trees()
    trees.put(0, 5000)
    nodes = int(trees.tree.nodes.state[pool.LIVE])
    for _ in range(10):
        trees.take_best(0)
        assert trees.tree.state[price_tree.IDLE] == 1
        trees.put(0, 5000)
        assert trees.tree.state[price_tree.IDLE] == 0
    assert trees.tree.nodes.state[pool.LIVE] == nodes == price_tree.FLOORS
    trees.take_best(0)
    trees.sweep()
    assert trees.tree.nodes.state[pool.LIVE] == 0
    assert not trees.tree.children.any() and not trees.tree.owner.any()


@pytest.mark.parametrize("shift", [12, 18, 24])
def test_a_sweep_forgets_the_nodes_that_it_takes(shift):
    """Nodes are used again for another price and another side; what a side remembers must not lead there."""
    trees = Trees()
    for number in range(4):  # one for each node that the side can remember
        trees.put(0, number << shift)
    for number in (0, 1, 3):
        trees.take(0, number << (shift - 6))
    trees.sweep()
    for number in range(8, 12):
        trees.put(1, number << shift)
    for number in range(4):
        trees.put(0, number << shift)
    trees.check()
    for side in (0, 1):
        while trees.sorted[side]:
            trees.take_best(side)
    trees.sweep()
    trees.put(0, 1 << shift)
    trees.put(1, 2 << shift)
    trees.check()


def test_prices_without_end_in_few_nodes():
    """Ten times more prices than the tree has nodes, with a sweep when it is needed."""
    draw, trees = random.Random(4), Trees(nodes=1 << 11)
    for n in range(4_000):
        trees.put(draw.randrange(8), draw.getrandbits(32))
        side = draw.randrange(8)
        if len(trees.sorted[side]) > 8:
            trees.take(side, draw.choice(trees.sorted[side]))
        if pool.left(trees.tree.nodes) < 40:
            trees.sweep()
        if n % 100 == 0:
            trees.check()
    trees.sweep()


def test_a_tree_is_crowded_when_a_quarter_of_many_nodes_is_empty():
    """Also where every leaf has a chain of its own above it, so that leaves can never be half of all nodes."""
    trees = Trees(nodes=1 << 16)
    for n in range(5_000):
        trees.put(0, n << 18)
    for _ in range(4_096):
        trees.take_best(0)
    assert not drivers.is_crowded(trees.tree)
    trees.take_best(0)
    assert drivers.is_crowded(trees.tree)
    trees.sweep()
    assert not drivers.is_crowded(trees.tree)


def test_a_full_tree_says_so_and_stays_sound():
    trees, n = Trees(nodes=64), 0
    while pool.left(trees.tree.nodes) >= 2:
        trees.put(0, n << 18)
        n += 1
    assert n > 20
    for key in (n << 18, n << 24, TOP):
        assert drivers.put_block(trees.tree, np.uint64(0), np.uint64(key), np.uint64(1)) == 0
    trees.put(0, 64)  # in a node that is there
    trees.check()
    while trees.sorted[0]:
        trees.take_best(0)
    trees.check()


@pytest.mark.parametrize("nodes", [0, 1, (1 << 26) + 1])
def test_node_numbers_that_make_no_tree(nodes):
    with pytest.raises(ValueError, match="2 to 2"):
        price_tree.make_price_tree(nodes)


def test_trap_16_canaries():
    trees, arrays = Trees(nodes=1 << 10), {}
    for name in ("bits", "children", "parent", "prefix", "owner", "sides"):
        array = getattr(trees.tree, name)
        arrays[name] = np.full(array.size + 256, 0xAB, array.dtype)
        arrays[name][128:-128] = array
    trees.tree = trees.tree._replace(**{name: array[128:-128] for name, array in arrays.items()})
    draw = random.Random(2)
    for _ in range(1_000):
        trees.put(draw.randrange(8), draw.choice(EDGES))
        side = draw.randrange(8)
        if trees.sorted[side]:
            trees.take_best(side)
        if pool.left(trees.tree.nodes) < 40:
            trees.sweep()
    trees.check()
    for array in arrays.values():
        assert (array[:128] == 0xAB).all() and (array[-128:] == 0xAB).all()
