"""Kernels that let Python call the parts of open and chained tables one by one, for the tests of those rooms."""

import numpy as np

from photonlab.kernels import chained, hash_policies, open_table
from photonlab.machine.jit import kernel

FIND, INSERT, REMOVE = (np.uint64(i) for i in range(3))


@kernel
def use_open(table, actions, keys, values, results):
    """Apply FIND, INSERT and REMOVE in turn; write what each returns."""
    for i in range(keys.size):
        if actions[i] == FIND:
            results[i] = open_table.find(table, keys[i])
        elif actions[i] == INSERT:
            results[i] = np.uint64(open_table.insert(table, keys[i], values[i]))
        else:
            results[i] = open_table.remove(table, keys[i])


@kernel
def use_chained(table, actions, keys, values, results):
    """Do as `use_open` on a chained table."""
    for i in range(keys.size):
        if actions[i] == FIND:
            results[i] = chained.find(table, keys[i])
        elif actions[i] == INSERT:
            results[i] = np.uint64(chained.insert(table, keys[i], values[i]))
        else:
            results[i] = chained.remove(table, keys[i])


@kernel
def homes(policy, keys, shift, out):
    """Write each key's home slot."""
    for i in range(keys.size):
        out[i] = hash_policies.home(policy, keys[i], shift)


@kernel
def within(table, keys, bound, values, looked):
    """Write value and slots looked at of each bounded search."""
    for i in range(keys.size):
        values[i], looked[i] = open_table.find_within(table, keys[i], bound)
