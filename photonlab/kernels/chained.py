"""A chained hash table of separately allocated nodes, in the manner of std::unordered_map: the baseline of claim F7.

Each member is a node of three words (next, key, value) that malloc gives and free takes back; a bucket is the address
of its first node. The hash is the identity, as std::hash has it in the common C++ libraries. How a bucket is found is
chosen by type: the remainder by a prime number of buckets, as libstdc++ does, or a mask for a power of two.
"""

from typing import NamedTuple

import numpy as np

from photonlab.machine.choice import by_type
from photonlab.machine.jit import kernel
from photonlab.machine.libc import free, malloc, malloc_usable_size, set_word_at, word_at
from photonlab.machine.memory import huge_array

_0, _1 = np.uint64(0), np.uint64(1)
_KEY, _VALUE, _NODE_BYTES = np.uint64(8), np.uint64(16), np.uint64(24)

BUCKETS, USED = np.uint64(0), np.uint64(1)


class Prime(NamedTuple):
    """A prime number of buckets: a division for each operation."""


class PowerOfTwo(NamedTuple):
    """A power of two of buckets: a mask."""


BUCKETINGS = {"prime": Prime(), "power of two": PowerOfTwo()}


class ChainedTable(NamedTuple):
    """A map from uint64 keys to non-zero uint64 values; `clear` gives its nodes back, nothing else does.

    Attributes
    ----------
    buckets : ndarray of uint64, shape (buckets,)
        Address of the first node; 0 is none.
    state : ndarray of uint64, shape (2,)
        Buckets, members.
    bucketing : NamedTuple
        Of `BUCKETINGS`.
    """

    buckets: np.ndarray
    state: np.ndarray
    bucketing: tuple


def make_chained(members, bucketing="prime") -> ChainedTable:
    """Return an empty table with at least one bucket for each of so many members.

    Parameters
    ----------
    members : int
        It takes more; chains grow longer then.
    bucketing : str
        Name in `BUCKETINGS`.

    Returns
    -------
    ChainedTable
    """
    if members < 1:
        raise ValueError(f"a chained table is for at least one member, not {members}")
    buckets = next_prime(members) if bucketing == "prime" else 1 << (members - 1).bit_length()
    return ChainedTable(huge_array(buckets, np.uint64), np.array([buckets, 0], np.uint64), BUCKETINGS[bucketing])


def next_prime(number) -> int:
    """Return the least prime that is not below `number`."""
    number = max(number, 2)
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += 1
    return number


@by_type
def bucket_of(bucketing, key, buckets):
    """Return the bucket of a key."""


@kernel(inner=True)
def _remainder(bucketing, key, buckets):
    return key % buckets


@kernel(inner=True)
def _masked(bucketing, key, buckets):
    return key & (buckets - _1)


bucket_of.kernels |= {Prime: _remainder, PowerOfTwo: _masked}


@kernel(inner=True)
def node_of(table, key):
    """Return the address of the node of `key`, or 0."""
    node = table.buckets[bucket_of(table.bucketing, key, table.state[BUCKETS])]
    while node != _0 and word_at(node + _KEY) != key:
        node = word_at(node)
    return node


@kernel(inner=True)
def find(table, key):
    """Return the value of `key`, or 0."""
    node = node_of(table, key)
    return word_at(node + _VALUE) if node != _0 else _0


@kernel(inner=True)
def insert(table, key, value):
    """Set the value of `key`; return False, and change nothing, if malloc has no memory for a new node."""
    bucket = bucket_of(table.bucketing, key, table.state[BUCKETS])
    first = table.buckets[bucket]
    node = first
    while node != _0 and word_at(node + _KEY) != key:
        node = word_at(node)
    if node == _0:
        node = malloc(_NODE_BYTES)
        if node == _0:
            return False
        set_word_at(node, first)
        set_word_at(node + _KEY, key)
        table.buckets[bucket] = node
        table.state[USED] += _1
    set_word_at(node + _VALUE, value)
    return True


@kernel(inner=True)
def remove(table, key):
    """Take `key` out, free its node, and return its value, or 0 if it was not there."""
    bucket = bucket_of(table.bucketing, key, table.state[BUCKETS])
    before, node = _0, table.buckets[bucket]
    while node != _0 and word_at(node + _KEY) != key:
        before, node = node, word_at(node)
    if node == _0:
        return _0
    following, value = word_at(node), word_at(node + _VALUE)
    if before == _0:
        table.buckets[bucket] = following
    else:
        set_word_at(before, following)
    free(node)
    table.state[USED] -= _1
    return value


@kernel
def clear(table):
    """Free all nodes."""
    for bucket in range(table.state[BUCKETS]):
        node = table.buckets[bucket]
        while node != _0:
            following = word_at(node)
            free(node)
            node = following
        table.buckets[bucket] = _0
    table.state[USED] = _0


@kernel
def node_bytes(table):
    """Return the bytes that malloc really gave for all nodes, without its bookkeeping in front of each."""
    total = _0
    for bucket in range(table.state[BUCKETS]):
        node = table.buckets[bucket]
        while node != _0:
            total += malloc_usable_size(node)
            node = word_at(node)
    return total
