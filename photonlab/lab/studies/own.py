"""Kernels of your own in a study: one call, and they stand in its tables and charts beside those of this house.

`add_hash_policy` is here, `add_ring` in `own_ring`, `add_allocator` in `own_allocator`; all can be had from this room.
What does not do its work is refused with the reason: a time of it would mean nothing.

>>> from photonlab.lab.studies import own
>>> ODD = np.uint64(0xBF58476D1CE4E5B9)
>>> def product(key, shift):
...     return (key * ODD) >> shift
>>> own.add_hash_policy("another product", product)

Such a cell stands in the study's notebook anywhere before the first measurement.
"""

import secrets
from collections import namedtuple

import numba
import numpy as np
from numba.core.errors import NumbaError

from photonlab.errors import UserError
from photonlab.kernels import hash_policies
from photonlab.lab.studies import hash_workload
from photonlab.lab.studies.own_allocator import add_allocator, remove_allocator
from photonlab.lab.studies.own_ring import add_ring, remove_ring
from photonlab.machine.jit import UNSAVED
from photonlab.systems.experiments import reference_streams as streams
from photonlab.systems.experiments.own_blocks import NONE

__all__ = [
    "NONE",
    "add_allocator",
    "add_hash_policy",
    "add_ring",
    "remove_allocator",
    "remove_hash_policy",
    "remove_ring",
]

SHIFTS = (44, 53, 62)
"""log2 of the slots is 64 less these, in the trial of a policy."""
TRIAL = 1 << 16
"""References in the trial of a policy; the table has twice as many slots."""
MOST_SLOTS = 256
"""A policy under which a search of the trial looks at more slots than that on average is not taken: the whole workload
would take hours, as it does with identity."""


def add_hash_policy(name, home):
    """Let a hash policy take part in the notebook on hash policies: its workload, its streams, its replay.

    Parameters
    ----------
    name : str
        As it stands in tables and charts; a name of your own that was added before is replaced.
    home : callable
        A function of `key` and `shift`, both uint64, that returns the home slot, a uint64 below 2^(64 - shift): the
        table has that many slots. A plain function is compiled by Numba; one that is compiled already is taken as it
        is. It may not allocate.

    Raises
    ------
    UserError
        The name is one of this house's, the function cannot be compiled, returns something else than a uint64 or a
        slot that is not there, or crowds references so that the workload would take hours.
    """
    if name in hash_workload.OPEN:
        raise UserError(f"hash policy {name!r} is one of this house's: choose another name")
    chosen = home if hasattr(home, "py_func") else numba.njit(error_model="numpy", nogil=True, _nrt=False)(home)
    _try(name, chosen)

    # Numba tells types apart by their names, so each call makes a name of its own: nothing stale is ever run.
    own_type = namedtuple(f"{UNSAVED}{secrets.token_hex(8)}", ())

    @numba.njit(error_model="numpy", nogil=True, _nrt=False)
    def own_home(policy, key, shift):
        return chosen(key, shift)

    if name in hash_policies.POLICIES:
        remove_hash_policy(name)
    hash_policies.home.kernels[own_type] = own_home
    hash_policies.POLICIES[name] = own_type()


def remove_hash_policy(name):
    """Take a policy that was added out again.

    Parameters
    ----------
    name : str

    Raises
    ------
    UserError
        No such policy was added.
    """
    if name in hash_workload.OPEN or name not in hash_policies.POLICIES:
        raise UserError(f"no hash policy {name!r} was added")
    hash_policies.home.kernels.pop(type(hash_policies.POLICIES.pop(name)))


def _try(name, home):
    """Refuse a function that is no hash policy."""
    try:
        home.compile((numba.uint64, numba.uint64))
        returned = home.overloads[numba.uint64, numba.uint64].signature.return_type
    except (NumbaError, TypeError) as error:
        raise UserError(f"hash policy {name!r} cannot be compiled: {str(error).strip().splitlines()[0]}") from None
    if returned != numba.uint64:
        raise UserError(
            f"hash policy {name!r} returns {returned}, not uint64: constants must be np.uint64 too (uint64 and a plain "
            "integer make an int64 or a float64)"
        )
    keys = np.concatenate([streams.sequential(1_000), streams.random(1_000)])
    for shift in SHIFTS:
        slots = 1 << (64 - shift)
        for key in keys:
            if int(home(key, np.uint64(shift))) >= slots:
                raise UserError(f"hash policy {name!r}: slot {home(key, np.uint64(shift))} of {slots:,} for key {key}")
    keys = streams.sequential(TRIAL)
    shift = np.uint64(64 - TRIAL.bit_length())
    looked = slots_looked_at(np.array([home(key, shift) for key in keys], np.uint64), 2 * TRIAL)
    if looked > MOST_SLOTS:
        raise UserError(
            f"hash policy {name!r}: searches among {TRIAL:,} successive references would look at {looked:,.0f} slots "
            f"on average, more than {MOST_SLOTS}: the workload would take hours"
        )


def slots_looked_at(homes, slots) -> float:
    """Return how many slots a search looks at on average, the worse of hits and of misses that come anywhere.

    Parameters
    ----------
    homes : ndarray of uint64
        Home slots of the members of a table with linear probing.
    slots : int
        More than members.
    """
    counts = np.bincount(homes.astype(np.int64), minlength=slots)
    waiting, empty, displaced, in_vain = 0, [], 0, 0
    for _ in range(2):  # twice round, as a run may cross the end
        displaced, empty = 0, []
        for slot, count in enumerate(counts.tolist()):
            waiting += count
            if waiting:
                waiting -= 1
                displaced += waiting
            else:
                empty.append(slot)
    for before, after in zip(empty, [*empty[1:], empty[0] + slots], strict=True):
        run = after - before
        in_vain += run * (run + 1) // 2
    return max(1 + displaced / len(homes), in_vain / slots)
