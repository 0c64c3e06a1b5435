"""The replay's order index as a bare map, for the work that all maps are given (`systems/experiments/map_work.py`).

In the book a node is an order; here it is one word, the value, and 0 says that nothing lives there.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import order_index, pool
from photonlab.kernels.order_index import OrderIndex
from photonlab.machine.bits import prefetch, prefetch_write
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array
from photonlab.systems.experiments.map_work import CHURN, FIND, INSERT

_0, _1 = np.uint64(0), np.uint64(1)
TAKE = np.uint64(4)
"""A job of this map alone: take each of the keys out."""


class PagedMap(NamedTuple):
    """A map from uint64 keys to uint64 values other than 0.

    Attributes
    ----------
    index : OrderIndex
    values : ndarray of uint64, shape (16 * pages,)
        By node.
    """

    index: OrderIndex
    values: np.ndarray


def make_paged_map(pages) -> PagedMap:
    """Return an empty map.

    Parameters
    ----------
    pages : int
        Pages of 16 keys that may be in use at once: as many as keys, if the keys lie far apart.

    Returns
    -------
    PagedMap
    """
    return PagedMap(order_index.make_order_index(pages), huge_array(pages * order_index.PAGE_NODES, np.uint64))


def members(paged) -> np.ndarray:
    """Return the keys of a map, uint64, in the order of their nodes."""
    pages = int(paged.index.page_pool.state[pool.FRESH])
    nodes = np.flatnonzero(paged.values[: pages * order_index.PAGE_NODES]).astype(np.uint64)
    turned = paged.index.page_first[nodes >> order_index.PAGE_BITS] | (nodes & np.uint64(order_index.PAGE_NODES - 1))
    return (turned << np.uint64(2)) | (turned >> np.uint64(62))


@kernel(inner=True)
def _set(paged, key, value):
    """Set the value of `key`; return whether it is new. A full map takes nothing."""
    index, values = paged.index, paged.values
    entry = order_index.entry_of(index, key)
    node = order_index.node_at(index, entry, key)
    if values[node] != _0:
        values[node] = value
        return _0
    node = order_index.claim(index, entry, key)
    if node == _0:
        return _0
    values[node] = value
    return _1


@kernel(inner=True)
def _take(paged, key):
    """Take `key` out and return its value, or 0 if it was not there."""
    index, values = paged.index, paged.values
    entry = order_index.entry_of(index, key)
    node = order_index.node_at(index, entry, key)
    value = values[node]
    if value != _0:
        values[node] = _0
        order_index.release(index, entry, key)
    return value


@kernel(inner=True)
def _ask_for(paged, keys, far, near, count):
    """Ask for the page entry of the key at `far`, and for the value of the one at `near`."""
    index = paged.index
    if far < count:
        prefetch(index.chunks, order_index.entry_of(index, keys[far]))
    if near < count:
        entry = order_index.entry_of(index, keys[near])
        prefetch_write(paged.values, order_index.node_at(index, entry, keys[near]))


@kernel
def work(paged, job, keys, others, ahead):
    """Do the job INSERT, FIND, CHURN or TAKE; parameters and result as for `map_work.work`."""
    total, count, i = _0, np.uint64(keys.size), _0
    known = count if ahead != _0 else _0
    far = ahead
    near = ahead >> _1
    while i < count:
        if known != _0:
            _ask_for(paged, keys, i + far, i + near, count)
        if job == INSERT:
            total += _set(paged, keys[i], keys[i] + _1)
        elif job == FIND:
            index = paged.index
            total += paged.values[order_index.node_at(index, order_index.entry_of(index, keys[i]), keys[i])]
        else:
            total += _take(paged, keys[i])
            if job == CHURN:
                if known != _0:
                    _ask_for(paged, others, i + far, i + near, count)
                _set(paged, others[i], others[i] + _1)
        i += _1
    return total
