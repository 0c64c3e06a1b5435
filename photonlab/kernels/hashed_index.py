"""The order index as a hash table: from an order reference to its node through `kernels/open_table.py`, by any policy.

It does what the paged index of `kernels/order_index.py` does, so that the book can stand on either. The entry of a
reference is its home slot, known without a look at memory; the table's value is the node's number, from a pool.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import open_table, pool
from photonlab.kernels.open_table import LARGEST, LIMIT, SIZE, USED, OpenTable
from photonlab.machine.bits import prefetch
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_0, _1 = np.uint64(0), np.uint64(1)


class HashedIndex(NamedTuple):
    """Where each live reference has its node.

    Attributes
    ----------
    table : OpenTable
        Reference → node.
    nodes : pool.Pool
    references : ndarray of uint64, shape (nodes,)
        The reference of a live node.
    changes : ndarray of uint64, shape (1,)
        How often the table doubled: entries found before are good as long as that stands still.
    """

    table: OpenTable
    nodes: pool.Pool
    references: np.ndarray
    changes: np.ndarray


def make_hashed_index(policy, deletion="backward shift", orders=1 << 26) -> HashedIndex:
    """Return an empty index.

    Parameters
    ----------
    policy, deletion : str
        See `open_table.make_table`; the table doubles when it is half full.
    orders : int
        Orders that may be live at once, a power of two, at most 2**31: a bound in address space only.

    Returns
    -------
    HashedIndex
    """
    return HashedIndex(
        open_table.make_table(policy, deletion, 2 * orders, min(1 << 10, 2 * orders)),
        pool.make_pool(orders),
        huge_array(orders, np.uint64),
        np.zeros(1, np.uint64),
    )


@kernel(inner=True)
def entry_of(index, reference):
    """Return the home slot of a reference."""
    return open_table.home_of(index.table, reference)


@kernel(inner=True)
def ask_for(index, entry):
    """Ask for the cache line of an entry."""
    prefetch(index.table.entries, (index.table.state[SIZE] + entry) << _1)


@kernel(inner=True)
def node_at(index, entry, reference):
    """Return the node of `reference`, or 0."""
    value = index.table.entries[open_table.search_from(index.table, entry, reference) + _1]
    return _0 if value == open_table.TOMBSTONE else value


@kernel(inner=True)
def reference_of(index, node):
    """Return the reference of a live node."""
    return index.references[node]


@kernel(inner=True)
def claim(index, entry, reference):
    """Return a node for a reference that has none, or 0 if the index is full."""
    node = pool.take(index.nodes)
    if node != _0:
        size = index.table.state[SIZE]
        if not open_table.insert(index.table, reference, node):
            pool.give(index.nodes, node)
            return _0
        index.changes[_0] += np.uint64(index.table.state[SIZE] != size)
        index.references[node] = reference
    return node


@kernel(inner=True)
def release(index, entry, reference):
    """Give back the node of a reference that is there."""
    pool.give(index.nodes, open_table.remove_from(index.table, entry, reference))


@kernel(inner=True)
def changes_of(index):
    """Return how often entries may have become stale."""
    return index.changes[_0]


@kernel(inner=True)
def has_room(index, orders):
    """Return whether so many more orders find room."""
    state = index.table.state
    limit = state[LARGEST] >> _1 if state[SIZE] < state[LARGEST] else state[LIMIT]
    return pool.left(index.nodes) > orders and state[USED] + orders < limit
