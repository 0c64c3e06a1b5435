"""Two threads that spin, each in a kernel without the GIL on a CPU of its own: started together, always ended.

A spinning kernel hears nothing of Ctrl-C, and a partner that died would never answer. So every loop that waits asks
`given_up` now and then: a word that either side and the main thread may set, and a deadline. The main thread only
waits, so that it receives signals; whatever happens to it, it raises the flag and sees both threads end.

    @kernel
    def ping(flags, words): ...             # meet(flags, 0), then spin with given_up(flags, spins)

    done = together(lambda flags: ping(flags, words), lambda flags: pong(flags, words))
"""

import threading
from typing import NamedTuple

import numpy as np

from photonlab.errors import UserError
from photonlab.machine import clock, system
from photonlab.machine.atomics import load_acquire, store_release
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_0, _1 = np.uint64(0), np.uint64(1)
STOP, DEADLINE, MET = np.uint64(0), np.uint64(1), np.uint64(16)
_APART, _FLAG_WORDS = np.uint64(16), 64
ENDED, LATE = 1, 2
"""Values of STOP: somebody ended it; the deadline passed."""

_NOW_AND_THEN = np.uint64(0x3F)
_PAST = np.uint64(1) << np.uint64(63)


class LostPartnerError(UserError):
    """One of two threads waited for the other beyond the deadline."""


class Together(NamedTuple):
    """What became of two threads."""

    first: object
    """What the first callable returned."""
    second: object
    usage: system.Usage
    """Of both threads, in sum."""
    cpus: tuple[int, ...]
    """Where they were pinned; empty where they could not be."""
    label: str
    """What must be said of the placement, or an empty text (claim M4)."""


@kernel(inner=True)
def given_up(flags, spins):
    """Tell whether a wait must end; a flag and the clock are looked at in every 64th spin.

    Parameters
    ----------
    flags : ndarray of uint64
        As `together` hands them out.
    spins : uint64
        How often was spun in this wait.
    """
    if spins & _NOW_AND_THEN != _NOW_AND_THEN:
        return False
    if load_acquire(flags, STOP) != _0:
        return True
    if clock.ticks() - flags[DEADLINE] < _PAST:
        store_release(flags, STOP, np.uint64(LATE))
        return True
    return False


@kernel(inner=True)
def meet(flags, side):
    """Wait until the other side (of 0 and 1) has come here too; return False if it has been told to stop."""
    store_release(flags, MET + _APART * side, _1)
    spins = _0
    while load_acquire(flags, MET + _APART * (_1 - side)) == _0:
        if given_up(flags, spins):
            return False
        spins += _1
    return load_acquire(flags, STOP) == _0


def placement(pinning: bool = True) -> tuple[tuple[int, ...], str]:
    """Return two CPUs for spinning threads and what must be said of them; no CPUs where threads cannot be pinned.

    Parameters
    ----------
    pinning : bool
        Whether threads are to be pinned at all.

    Raises
    ------
    PlacementError
        There is one CPU only: two threads that spin on it would wait for each other's time slices.
    """
    cpus = system.choose_cpus(2)
    if len(cpus) < 2:
        raise system.PlacementError(
            f"two spinning threads need two CPUs, and this process may use only CPU {', '.join(map(str, cpus))}"
        )
    if not pinning:
        return (), "indicative: not pinned (not asked for)"
    try:
        with system.pinned([cpus[1]], strict=True), system.pinned([cpus[0]], strict=True):
            return cpus, system.placement_label(cpus, 2)
    except system.PlacementError as error:
        return (), f"indicative: not pinned ({error})"


def together(first, second, seconds: float = 20.0, pinning: bool = True) -> Together:
    """Run two callables in two threads at the same time, each on a CPU of its own.

    Parameters
    ----------
    first, second : callable
        Take the flags, and call a kernel that begins with `meet` and asks `given_up` wherever it waits. Each is called
        once beforehand with the stop flag up, so that nothing is compiled while the other one spins.
    seconds : float
        Deadline.
    pinning : bool
        Whether to pin them.

    Returns
    -------
    Together

    Raises
    ------
    PlacementError
        See `placement`.
    LostPartnerError
        The deadline passed before both had ended.
    """
    cpus, label = placement(pinning)
    clock.name()  # which clock kernels read is settled before a deadline is set in it
    flags = huge_array(_FLAG_WORDS, np.uint64, populate=True)
    flags[STOP] = ENDED
    for one in (first, second):
        one(flags)
    flags[:] = 0
    flags[DEADLINE] = clock_now() + np.uint64(seconds * clock.calibrate().hz)
    results, failures, ready = [None, None], [], threading.Barrier(2)

    def run(side, call):
        try:
            if cpus:
                system.pin([cpus[side]])
            ready.wait()  # what a thread waits for a CPU before this is no disturbance
            with system.Watch() as watch:
                outcome = call(flags)
            results[side] = outcome, watch.usage
        except BaseException as error:
            failures.append(error)
            flags[STOP] = ENDED
            ready.abort()

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate((first, second))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        late = flags[STOP] == LATE
        flags[STOP] = max(int(flags[STOP]), ENDED)
        ready.abort()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if failures:
        raise failures[0]
    if late:
        raise LostPartnerError(f"two threads did not get on with each other within {seconds:g} s")
    (one, used), (two, used_too) = results
    return Together(one, two, _sum(used, used_too), cpus, label)


@kernel
def clock_now():
    """Return the clock's ticks."""
    return clock.ticks()


def _sum(one, two):
    """Add the counters of two threads; steal time is the machine's and counts once."""
    both = [None if a is None or b is None else a + b for a, b in zip(one, two, strict=True)]
    return system.Usage(*both)._replace(steal_ns=one.steal_ns)
