"""Maps of every kind behind one face: what an experiment can time in turn, each with an array of keys in one call."""

import numpy as np

from photonlab.kernels import chained, hashing, open_table, order_index, pool
from photonlab.machine.jit import kernel
from photonlab.systems.experiments import map_work, native_map, paged_map
from photonlab.systems.experiments.map_work import CHURN, FIND, INSERT, PROBE

_NONE, _NO_TALLY = np.zeros(0, np.uint64), np.zeros(map_work.TALLY_WORDS, np.uint64)
_0, _1 = np.uint64(0), np.uint64(1)


class Flat:
    """An open table.

    Parameters
    ----------
    policy, deletion : str
        See `open_table.make_table`.
    slots : int
        A power of two; the table does not grow.
    ahead : int
        Keys to look ahead.
    """

    def __init__(self, policy, deletion="backward shift", slots=1 << 20, ahead=0):
        self.table = open_table.make_table(policy, deletion, slots)
        self.ahead = np.uint64(ahead)

    def clear(self):
        """Make it empty."""
        slots = int(self.table.state[open_table.SIZE])
        self.table.entries[2 * slots : 4 * slots] = 0
        self.table.state[open_table.USED] = self.table.state[open_table.DEAD] = 0

    def insert(self, keys) -> int:
        """Set the value of each key to the key plus one; return how many were new."""
        return int(map_work.work(self.table, INSERT, keys, _NONE, self.ahead, _NO_TALLY))

    def find(self, keys) -> int:
        """Return the sum of the values of those keys that are there, modulo 2^64."""
        return int(map_work.work(self.table, FIND, keys, _NONE, self.ahead, _NO_TALLY))

    def churn(self, gone, come) -> int:
        """Take each of `gone` out and put the one of `come` in; return the sum of what was taken."""
        return int(map_work.work(self.table, CHURN, gone, come, self.ahead, _NO_TALLY))

    def probes(self, keys, bound=1 << 62) -> np.ndarray:
        """Look keys up within `bound` slots each; return the tally (see `map_work`)."""
        tally = np.zeros(map_work.TALLY_WORDS, np.uint64)
        tally[0] = bound
        map_work.work(self.table, PROBE, keys, _NONE, _0, tally)
        return tally

    def bounded(self, keys, bound) -> int:
        """Look keys up within `bound` slots each; return the slots looked at."""
        return int(self.probes(keys, bound)[map_work.LOOKED])

    def longest_run(self) -> int:
        """Return the longest run of slots that are not empty."""
        return int(map_work.longest_run(self.table.entries, self.table.state[open_table.SIZE]))

    def bytes(self, keys) -> int:
        """Return the bytes of a table with these keys: its entries, empty ones too."""
        return 16 * int(self.table.state[open_table.SIZE])


class Paged:
    """The replay's order index as a map.

    Parameters
    ----------
    members : int
        Keys at once, at most, wherever they lie.
    ahead : int
        Keys to look ahead.
    """

    def __init__(self, members, ahead=0):
        self.paged = paged_map.make_paged_map(2 * members + 2)
        self.ahead = np.uint64(ahead)

    def clear(self):
        """Take out every key; pages and chunks will be handed out from the first one again."""
        paged_map.work(self.paged, paged_map.TAKE, paged_map.members(self.paged), _NONE, self.ahead)
        pool.clear(self.paged.index.page_pool)
        pool.clear(self.paged.index.chunk_pool)

    def insert(self, keys) -> int:
        """See `Flat.insert`."""
        return int(paged_map.work(self.paged, INSERT, keys, _NONE, self.ahead))

    def find(self, keys) -> int:
        """See `Flat.find`."""
        return int(paged_map.work(self.paged, FIND, keys, _NONE, self.ahead))

    def churn(self, gone, come) -> int:
        """See `Flat.churn`."""
        return int(paged_map.work(self.paged, CHURN, gone, come, self.ahead))

    def bytes(self, keys) -> int:
        """Return the bytes of the pages, chunks and directory that its keys take up now."""
        index = self.paged.index
        page = order_index.PAGE_NODES * self.paged.values.itemsize + index.page_first.itemsize
        chunk = (index.chunks.itemsize << int(order_index.CHUNK_BITS)) + index.chunk_pages.itemsize
        used = [int(one.state[pool.LIVE]) for one in (index.page_pool, index.chunk_pool)]
        return used[0] * page + used[1] * chunk + 16 * int(index.directory.state[hashing.SIZE])


class Chained:
    """A chained table of this house.

    Parameters
    ----------
    bucketing : str
        See `chained.make_chained`.
    members : int
    """

    def __init__(self, bucketing, members):
        self.table = chained.make_chained(members, bucketing)

    def __del__(self):
        if hasattr(self, "table"):
            self.clear()

    def clear(self):
        """Free all nodes."""
        chained.clear(self.table)

    def insert(self, keys) -> int:
        """See `Flat.insert`."""
        return int(map_work.chained_work(self.table, INSERT, keys, _NONE))

    def find(self, keys) -> int:
        """See `Flat.find`."""
        return int(map_work.chained_work(self.table, FIND, keys, _NONE))

    def churn(self, gone, come) -> int:
        """See `Flat.churn`."""
        return int(map_work.chained_work(self.table, CHURN, gone, come))

    def bytes(self, keys) -> int:
        """Return the bytes that malloc gave for the nodes that there are now, and those of the buckets."""
        return int(chained.node_bytes(self.table)) + self.table.buckets.nbytes


class Unordered(native_map.UnorderedMap):
    """std::unordered_map itself."""

    def bytes(self, keys) -> int:
        """Return the bytes that malloc gives for a map of these keys."""
        return native_map.bytes_of(keys)


class PythonDict:
    """Python's own dict of Python's own integers."""

    def __init__(self):
        self.members = {}

    def clear(self):
        """Make it empty."""
        self.members = {}

    def insert(self, keys) -> int:
        """See `Flat.insert`."""
        members = self.members
        for key in keys.tolist():
            members[key] = key + 1
        return len(members)

    def find(self, keys) -> int:
        """See `Flat.find`."""
        get = self.members.get
        return sum([get(key, 0) for key in keys.tolist()]) % 2**64

    def churn(self, gone, come) -> int:
        """See `Flat.churn`."""
        members, total = self.members, 0
        for old, new in zip(gone.tolist(), come.tolist(), strict=True):
            total += members.pop(old, 0)
            members[new] = new + 1
        return total % 2**64


class TypedDict:
    """numba.typed.Dict, worked on by a kernel; that may allocate, as the dict does."""

    def __init__(self):
        self.members = typed_dict()

    def clear(self):
        """Begin anew."""
        self.members = typed_dict()

    def insert(self, keys) -> int:
        """See `Flat.insert`."""
        return int(typed_work(self.members, INSERT, keys, _NONE))

    def find(self, keys) -> int:
        """See `Flat.find`."""
        return int(typed_work(self.members, FIND, keys, _NONE))

    def churn(self, gone, come) -> int:
        """See `Flat.churn`."""
        return int(typed_work(self.members, CHURN, gone, come))


@kernel(_nrt=True)
def typed_dict():
    """Return an empty numba.typed.Dict from uint64 to uint64."""
    members = {_0: _0}
    members.clear()
    return members


@kernel(_nrt=True)
def typed_work(members, job, keys, others):
    """Do the job INSERT, FIND or CHURN on a numba.typed.Dict; parameters and result as for `map_work.work`."""
    total, count, i = _0, np.uint64(keys.size), _0
    if job == INSERT:
        before = np.uint64(len(members))
        while i < count:
            members[keys[i]] = keys[i] + _1
            i += _1
        total = np.uint64(len(members)) - before
    elif job == FIND:
        while i < count:
            total += members.get(keys[i], _0)
            i += _1
    else:
        while i < count:
            total += members.pop(keys[i], _0)
            members[others[i]] = others[i] + _1
            i += _1
    return total
