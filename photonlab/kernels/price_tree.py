"""The hierarchical bitmap over price levels: a sparse 64-ary tree of 5 floors over all 2^32 prices.

Where a price stands in the tree is its position: the lower, the better, on both sides, so that one code serves both
and the best is always the lowest set bit. The low 6 bits of a position are left to its block, which holds one level
as a rule and a short chain of levels, in order, where ticks are finer (`kernels/book.py` turns prices into positions
such that this is rare). Above it each node has one bitmap word and 64 children: bit i is set when something lives
below child i. The lowest floor's children are blocks (level handles), the others' are nodes. Best, insertion and
removal therefore touch one word, and climb only when a word becomes empty or stops being empty.

Each book side remembers up to 4 trunks, nodes of the second floor, each of which covers 26 dollars: a price is found
with two loads, without descending from the root. A node that becomes empty is kept, for a level that flickers;
`sweep` gives the empty ones back when they are many.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import pool
from photonlab.machine.bits import ctz64
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

BLOCK_BITS = np.uint64(6)
FLOORS = 5  # of 6 bits each above the block: 30 bits, of which a 32-bit price needs 26
_FLOORS = np.uint64(FLOORS)
_LEAF_SHIFT, _TRUNK_SHIFT = np.uint64(12), np.uint64(18)
_STEP, _LOW = np.uint64(6), np.uint64(63)
_0, _1, _2, _3, _32, _64 = (np.uint64(i) for i in (0, 1, 2, 3, 32, 64))

# A book side's record: 8 words of uint64, one cache line
SIDE_WORDS = 8
BEST_KEY, BEST_LEVEL, ROOT, NAME, TRUNKS = (np.uint64(i) for i in range(5))
NO_KEY = np.uint64(1 << 32)  # the best key of an empty side: worse than any price
_SIDE_SHIFT = np.uint64(3)

IDLE = np.uint64(0)


class PriceTree(NamedTuple):
    """The trees of all book sides.

    Attributes
    ----------
    bits : ndarray of uint64, shape (nodes,)
        Which children are not empty.
    children : ndarray of uint32, shape (64 * nodes,)
        On the lowest floor the first level of each block, above it nodes; 0 is none.
    parent : ndarray of uint32, shape (nodes,)
        Parent node << 6 | place in it; 0 for a root.
    prefix : ndarray of uint32, shape (nodes,)
        Of a lowest-floor node: its positions >> 12; for others unused.
    owner : ndarray of uint32, shape (nodes,)
        Of a lowest-floor node in use: its book side + 1; for others 0.
    nodes : pool.Pool
    sides : ndarray of uint64, shape (8 * sides,)
        A book side's best key and level, root, whether it is named, and 4 trunks (position >> 18 + 1 << 32 | node).
    state : ndarray of uint64, shape (1,)
        Lowest-floor nodes that are kept empty.
    """

    bits: np.ndarray
    children: np.ndarray
    parent: np.ndarray
    prefix: np.ndarray
    owner: np.ndarray
    nodes: pool.Pool
    sides: np.ndarray
    state: np.ndarray


def make_price_tree(nodes=1 << 22, sides=1 << 17) -> PriceTree:
    """Return empty trees for `sides` book sides, with at most `nodes` nodes (2**26) in all."""
    if not 2 <= nodes <= 1 << 26:
        raise ValueError(f"a price tree has 2 to 2**26 nodes, not {nodes}")
    return PriceTree(
        huge_array(nodes, np.uint64),
        huge_array(nodes << 6, np.uint32),
        huge_array(nodes, np.uint32),
        huge_array(nodes, np.uint32),
        huge_array(nodes, np.uint32),
        pool.make_pool(nodes),
        huge_array(sides * SIDE_WORDS, np.uint64),
        np.zeros(1, np.uint64),
    )


@kernel(inner=True)
def side_at(side):
    """Return the index of a book side's record in `sides`."""
    return side << _SIDE_SHIFT


@kernel(inner=True)
def trunk_at(side, position):
    """Return the index of the record word that may hold the trunk above `position`."""
    return (side << _SIDE_SHIFT) + TRUNKS + ((position >> _TRUNK_SHIFT) & _3)


@kernel(inner=True)
def leaf_at(tree, side, position):
    """Return the index in `children` of the lowest-floor node of `position`; 0, where none is, if no trunk is known."""
    word = tree.sides[trunk_at(side, position)]
    at = ((word & np.uint64(0xFFFFFFFF)) << _STEP) | ((position >> _LEAF_SHIFT) & _LOW)
    return at if word >> _32 == (position >> _TRUNK_SHIFT) + _1 else _0


@kernel(inner=True)
def find_leaf(tree, side, position):
    """Return the lowest-floor node of `position` if its trunk is known and has it, else 0."""
    return np.uint64(tree.children[leaf_at(tree, side, position)])


@kernel(inner=True)
def place_in(leaf, position):
    """Return the index in `children` of the block of `position`."""
    return (leaf << _STEP) | ((position >> BLOCK_BITS) & _LOW)


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def descend(tree, side, position):
    """Return the lowest-floor node of `position`, made if need be, and remember its trunk; 0 if no node is left."""
    record = side_at(side)
    node, trunk = tree.sides[record + ROOT], _0
    if node == _0:
        node = _fresh(tree, _0)
        if node == _0:
            return _0
        tree.sides[record + ROOT] = node
        tree.sides[record + BEST_KEY] = NO_KEY
    floor = _FLOORS - _1
    while floor != _0:
        trunk = node
        at = (node << _STEP) | ((position >> (BLOCK_BITS + _STEP * floor)) & _LOW)
        child = np.uint64(tree.children[at])
        if child == _0:
            child = _fresh(tree, at)
            if child == _0:
                return _0
            tree.children[at] = child
            if floor == _1:
                tree.owner[child] = side + _1
                tree.prefix[child] = position >> _LEAF_SHIFT
                tree.state[IDLE] += _1
        node = child
        floor -= _1
    tree.sides[trunk_at(side, position)] = ((position >> _TRUNK_SHIFT) + _1) << _32 | trunk
    return node


@kernel(inner=True)
def _fresh(tree, parent):
    node = pool.take(tree.nodes)
    if node != _0:
        tree.parent[node] = parent
        tree.owner[node] = np.uint32(0)
    return node


@kernel(inner=True)
def mark(tree, place):
    """Note that the block at `place` is no longer empty."""
    node = place >> _STEP
    old = tree.bits[node]
    tree.bits[node] = old | (_1 << (place & _LOW))
    if old == _0:
        tree.state[IDLE] -= _1
        while old == _0:
            at = np.uint64(tree.parent[node])
            if at == _0:
                break
            node = at >> _STEP
            old = tree.bits[node]
            tree.bits[node] = old | (_1 << (at & _LOW))


@kernel(inner=True)
def unmark(tree, place):
    """Note that the block at `place` is empty."""
    node = place >> _STEP
    new = tree.bits[node] & ~(_1 << (place & _LOW))
    tree.bits[node] = new
    if new == _0:
        tree.state[IDLE] += _1
        while new == _0:
            at = np.uint64(tree.parent[node])
            if at == _0:
                break
            node = at >> _STEP
            new = tree.bits[node] & ~(_1 << (at & _LOW))
            tree.bits[node] = new


@kernel(inner=True)
def first_from(tree, leaf):
    """Return the first level of the best block of a tree whose best block was in `leaf`, or 0 if the tree is empty."""
    word = tree.bits[leaf]
    if word != _0:
        return np.uint64(tree.children[(leaf << _STEP) | ctz64(word)])
    return _first_above(tree.bits, tree.children, tree.parent, leaf)


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _first_above(bits, children, parent, node):
    floors = _0
    while bits[node] == _0:
        node = np.uint64(parent[node]) >> _STEP
        if node == _0:
            return _0
        floors += _1
    while True:
        node = np.uint64(children[(node << _STEP) | ctz64(bits[node])])
        if floors == _0:
            return node
        floors -= _1


@kernel
def next_block(tree, place):
    """Return the place of the next non-empty block after `place` (worse in price), or 0 if there is none."""
    node = place >> _STEP
    slot = place & _LOW
    floors = _0
    while True:
        later = tree.bits[node] & ~((_1 << slot) | ((_1 << slot) - _1))
        if later != _0:
            break
        at = np.uint64(tree.parent[node])
        if at == _0:
            return _0
        node = at >> _STEP
        slot = at & _LOW
        floors += _1
    place = (node << _STEP) | ctz64(later)
    while floors != _0:
        node = np.uint64(tree.children[place])
        place = (node << _STEP) | ctz64(tree.bits[node])
        floors -= _1
    return place


@kernel(inner=True)
def crowded(tree):
    """Return whether empty lowest-floor nodes are so many that a sweep pays for itself.

    A quarter, not a half: where prices are far apart each has a chain of nodes of its own above it.
    """
    return tree.state[IDLE] > np.uint64(4096) and tree.state[IDLE] > tree.nodes.state[pool.LIVE] >> _2


@kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def sweep(tree):
    """Give back all empty nodes, and forget them. Cost: one look at every node ever made."""
    number = _0
    while number + _1 < tree.nodes.state[pool.FRESH]:
        number += _1
        node = number
        if tree.owner[node] == 0 or tree.bits[node] != _0:
            continue
        record = side_at(np.uint64(tree.owner[node]) - _1)
        remembered = trunk_at(np.uint64(tree.owner[node]) - _1, np.uint64(tree.prefix[node]) << _LEAF_SHIFT)
        tree.state[IDLE] -= _1
        while node != _0 and tree.bits[node] == _0:
            at = np.uint64(tree.parent[node])
            if at == _0:
                tree.sides[record + ROOT] = _0
            else:
                tree.children[at] = np.uint32(0)
            if tree.sides[remembered] & np.uint64(0xFFFFFFFF) == node:
                tree.sides[remembered] = _0
            tree.owner[node] = np.uint32(0)
            pool.give(tree.nodes, node)
            node = at >> _STEP
            if node != _0 and _has_child(tree, node):
                break


@kernel(inner=True)
def _has_child(tree, node):
    slot = _0
    while slot < _64:
        if tree.children[(node << _STEP) | slot] != 0:
            return True
        slot += _1
    return False
