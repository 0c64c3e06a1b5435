"""Intrusive lists: nodes of 64 bytes that hold the place of the next one as a 32-bit index, and the walk along them.

A place is the number of a node's first 32-bit word in one array; so one kernel walks nodes of a pool and nodes that
malloc strewed over its heap, seen through a window. Place 0 holds no node and ends a list.
"""

import numpy as np

from photonlab.machine.jit import kernel

_0, _1 = np.uint64(0), np.uint64(1)


@kernel
def link(words, places):
    """Link nodes into one list, and number them in its order.

    Parameters
    ----------
    words : ndarray of uint32
        The nodes' memory; word 0 of a node becomes the place of the next one, word 1 its number from 0.
    places : ndarray of uint32, shape (n,)
        Places in the order of the walk, each once, none 0.
    """
    following = _0
    for left in range(places.size):
        number = np.uint64(places.size) - _1 - np.uint64(left)
        place = np.uint64(places[number])
        words[place] = following
        words[place + _1] = number
        following = place


@kernel
def walk(words, first, most):
    """Walk a list from its first node.

    Parameters
    ----------
    words : ndarray of uint32
    first : uint64
        Place of the first node; 0 for an empty list.
    most : uint64
        Nodes after which a list that does not end is left.

    Returns
    -------
    total : uint64
        Sum of the nodes' numbers.
    nodes : uint64
        How many there were.
    """
    at, total, nodes = np.uint64(first), _0, _0
    while at != _0 and nodes < np.uint64(most):
        total += np.uint64(words[at + _1])
        nodes += _1
        at = np.uint64(words[at])
    return total, nodes
