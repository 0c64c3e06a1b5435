"""The work that maps of every kind are given: insert, find, churn, each on a whole array of keys in one call.

Each job returns a checksum that is the same for every map that did it right: insertions that were new, or the sum of
the values found or taken out, which are the keys plus one.
"""

import numpy as np

from photonlab.kernels import chained, open_table
from photonlab.machine.bits import prefetch_write
from photonlab.machine.jit import kernel

_0, _1 = np.uint64(0), np.uint64(1)
INSERT, FIND, CHURN, PROBE = (np.uint64(i) for i in range(4))

AHEAD = 48
"""Keys that a map looks ahead, if it does: the memory serves so many misses side by side."""

# Words of `tally`, behind the histogram of slots looked at (the last word of that counts all longer searches)
PROBES_SHOWN = 64
SEARCHES, LOOKED, LONGEST, UNDECIDED = (np.uint64(PROBES_SHOWN + i) for i in range(4))
TALLY_WORDS = PROBES_SHOWN + 4


@kernel(inner=True)
def _ask_for(table, key):
    """Ask for the cache line of a key's home slot."""
    slot = table.state[open_table.SIZE] + open_table.home_of(table, key)
    prefetch_write(table.entries, slot << _1)


@kernel
def work(table, job, keys, others, ahead, tally):
    """Do one job on an open table.

    Parameters
    ----------
    table : OpenTable
    job : uint64
        INSERT `keys`; FIND `keys`; CHURN: take each of `keys` out and put the one of `others` in; PROBE: look `keys` up
        within tally[0] slots and count the slots looked at.
    keys, others : ndarray of uint64
    ahead : uint64
        Keys to look ahead in the first three jobs, or 0: their home slots are asked for beforehand.
    tally : ndarray of uint64, shape (TALLY_WORDS,)

    Returns
    -------
    uint64
        The sum of all answers.
    """
    total, count, i = _0, np.uint64(keys.size), _0
    known = count - ahead if _0 < ahead < count else _0
    if job == INSERT:
        while i < count:
            if i < known:
                _ask_for(table, keys[i + ahead])
            total += np.uint64(open_table.insert(table, keys[i], keys[i] + _1))
            i += _1
    elif job == FIND:
        while i < count:
            if i < known:
                _ask_for(table, keys[i + ahead])
            total += open_table.find(table, keys[i])
            i += _1
    elif job == CHURN:
        while i < count:
            if i < known:
                _ask_for(table, keys[i + ahead])
                _ask_for(table, others[i + ahead])
            total += open_table.remove(table, keys[i])
            open_table.insert(table, others[i], others[i] + _1)
            i += _1
    else:
        bound = tally[_0]
        tally[_0] = _0
        while i < count:
            value, looked = open_table.find_within(table, keys[i], bound)
            total += value
            tally[min(looked, SEARCHES - _1)] += _1
            tally[SEARCHES] += _1
            tally[LOOKED] += min(looked, bound)
            tally[LONGEST] = max(tally[LONGEST], looked)
            tally[UNDECIDED] += np.uint64(looked > bound)
            i += _1
    return total


@kernel
def chained_work(table, job, keys, others):
    """Do the job INSERT, FIND or CHURN on a chained table; parameters and result as for `work`."""
    total, count, i = _0, np.uint64(keys.size), _0
    if job == INSERT:
        while i < count:
            total += np.uint64(chained.insert(table, keys[i], keys[i] + _1))
            i += _1
    elif job == FIND:
        while i < count:
            total += chained.find(table, keys[i])
            i += _1
    else:
        while i < count:
            total += chained.remove(table, keys[i])
            chained.insert(table, others[i], others[i] + _1)
            i += _1
    return total


@kernel
def longest_run(entries, size):
    """Return how many slots in a row, across the end too, are not empty in the open table of `size` slots."""
    longest, run, i = _0, _0, _0
    while i < size + size:  # twice round, as a run may cross the end
        if entries[((size + (i & (size - _1))) << _1) + _1] != _0:
            run += _1
        else:
            longest, run = max(longest, run), _0
        i += _1
    return min(max(longest, run), size)
