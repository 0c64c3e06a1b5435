"""A ring of your own in the notebook on rings: put to the test, then timed beside those of this house.

>>> own.add_ring("mine", make, push, pop)

The same verbs in front of the house's own ring, copies and all, stand beside it, so that like is compared with like.
"""

import secrets
from collections import deque, namedtuple

import numba
import numpy as np
from numba.core.errors import NumbaError

from photonlab.errors import UserError
from photonlab.kernels import ring_variants
from photonlab.kernels.ring_variants import MOST_COPIED, Copied
from photonlab.lab.studies import ring_lockstep, ring_regimes
from photonlab.machine import system
from photonlab.machine.jit import UNSAVED
from photonlab.machine.memory import huge_array
from photonlab.systems.experiments import copied_stress

WORDS = 8
"""Words of a message: a line of 64 bytes."""
TRIED = (64, 1024)
"""Slots of the rings in the trial; the studies use these and multiples of two."""
STEPS, MESSAGES = 400, 200_000
"""Steps of the trial on one thread, and messages between two threads, for each ring."""
TAKEN = {*ring_variants.HOUSE, *ring_regimes.KINDS, *ring_lockstep.NAMES, ring_variants.COPIES, ring_regimes.SINGLE}
_OPTIONS = {"error_model": "numpy", "nogil": True, "_nrt": False}


def add_ring(name, make, push, pop):
    """Let a ring take part in the notebook on rings: one thread, streams, latency, stress.

    Parameters
    ----------
    name : str
        As it stands in tables and charts; a ring of your own that was added before is replaced.
    make : callable
        Takes a number of slots (a power of two); returns an array of uint64 with all that the empty ring is, its slots
        of 8 words (64 bytes) included. It must have room for half as many messages, or more. A copy of it, which begins
        with a page, is what `push` and `pop` get.
    push, pop : callable
        ``push(words, source, count)`` copies the first `count` messages of `source` in, as many as there is room for,
        and ``pop(words, into, count)`` up to `count` messages out, to the beginning of `into`; both return how many.
        The one runs in one thread, the other in another: what one side writes and the other reads, be it an index,
        goes through `load_acquire` and `store_release` of `photonlab.machine.atomics`. Plain functions are compiled by
        Numba; `count` is a uint64. They may not allocate.

    Raises
    ------
    UserError
        The name is one of this house's; a function cannot be compiled, or reaches beyond its array; or messages are
        lost, repeated, overtaken or torn, on one thread or between two, so that a time would mean nothing. On a
        processor that keeps stores in order, as x86-64 does, a ring that forgets to release may pass.
    """
    if name in TAKEN:
        raise UserError(f"ring {name!r} is one of this house's: choose another name")
    verbs = {"push": push, "pop": pop}
    functions = {verb: getattr(function, "py_func", function) for verb, function in verbs.items()}
    _one_thread(name, make, *(_compiled(name, verb, one, boundscheck=True) for verb, one in functions.items()))
    own_type = _register(*(_compiled(name, verb, one) for verb, one in functions.items()))

    def make_own(slots, words=WORDS, **_):
        if words != WORDS:
            raise UserError(f"ring {name!r} has messages of {WORDS} words, not {words}")
        return own_type(_made(name, make, slots), *ring_variants.buffers())

    try:
        _two_threads(name, make_own)
    except BaseException:
        _forget(own_type)
        raise
    if name in ring_variants.MAKERS:
        remove_ring(name)
    make_own.own_type = own_type
    ring_variants.MAKERS[name] = make_own


def remove_ring(name):
    """Take a ring that was added out again.

    Raises
    ------
    UserError
        No such ring was added.
    """
    if name in ring_variants.HOUSE or name not in ring_variants.MAKERS:
        raise UserError(f"no ring {name!r} was added")
    _forget(ring_variants.MAKERS.pop(name).own_type)


def _compiled(name, verb, function, **options):
    """Compile a verb, and refuse one that is none."""
    words = numba.types.Array(numba.uint64, 1, "C")
    chosen = numba.njit(**_OPTIONS, **options)(function)
    try:
        chosen.compile((words, words, numba.uint64))
    except (NumbaError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"ring {name!r}: {verb} cannot be compiled: {reason}") from None
    returned = chosen.overloads[words, words, numba.uint64].signature.return_type
    if not isinstance(returned, numba.types.Integer):
        raise UserError(f"ring {name!r}: {verb} returns {returned}, not how many messages it copied")
    return chosen


def _register(push, pop):
    """Make a type of its own for a ring, and let the loops know what its verbs are."""
    # Numba tells types apart by their names, so each call makes a name of its own: nothing stale is ever run.
    own_type = namedtuple(f"{UNSAVED}{secrets.token_hex(8)}", Copied._fields)
    count_type = np.uint64

    @numba.njit(**_OPTIONS)
    def own_put(queue, count):
        return count_type(push(queue.ring, queue.source, count))

    @numba.njit(**_OPTIONS)
    def own_fetch(queue, count):
        return count_type(pop(queue.ring, queue.into, count))

    ring_variants.put.kernels[own_type], ring_variants.fetch.kernels[own_type] = own_put, own_fetch
    ring_variants.offer.kernels[own_type] = ring_variants.offer_copied
    ring_variants.accept.kernels[own_type] = ring_variants.accept_copied
    return own_type


def _forget(own_type):
    for verb in (ring_variants.put, ring_variants.fetch, ring_variants.offer, ring_variants.accept):
        verb.kernels.pop(own_type)


def _made(name, make, slots):
    """Make an empty ring; its words begin with a page and have been touched."""
    words = make(slots)
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.ndim != 1 or not words.size:
        shown = f"{words.dtype}, {words.ndim} axes" if isinstance(words, np.ndarray) else type(words).__name__
        raise UserError(f"ring {name!r}: make({slots}) returns {shown}, not an array of uint64 with one axis")
    kept = huge_array(words.size, np.uint64, populate=True)
    kept[:] = words
    return kept


def _one_thread(name, make, push, pop):
    """Hold a ring against a queue of Python's, step by step, with bounds checks."""
    rng = np.random.default_rng(1)
    for slots in TRIED:
        words, twin, sent = _made(name, make, slots), deque(), 0
        source, into = (np.zeros(MOST_COPIED * WORDS, np.uint64) for _ in range(2))
        most = min(slots, MOST_COPIED)
        steps = [(True, slots // 2), (False, slots // 2), (False, 1), (True, 1), (False, 1)]
        steps += [(bool(rng.integers(2)), int(rng.integers(1, most + 1))) for _ in range(STEPS)]
        for is_push, count in steps:
            where = f"ring {name!r} of {slots} slots, on one thread"
            before = len(twin)
            if is_push:
                numbers = range(sent, sent + count)
                source[: count * WORDS] = np.concatenate([copied_stress.words_of(number) for number in numbers])
            try:
                done = int(push(words, source, np.uint64(count)) if is_push else pop(words, into, np.uint64(count)))
            except IndexError:
                verb = "push" if is_push else "pop"
                raise UserError(f"{where}: {verb} reaches beyond its array of {words.size:,} words") from None
            if not is_push:
                _compare(where, into, done, count, twin, sent)
                continue
            if not 0 <= done <= count:
                raise UserError(f"{where}: push took {done} messages when it was given {count}")
            if done < count and before + done < slots // 2:
                raise UserError(
                    f"{where}: push took {done} of {count} messages, with {before} in the ring: it must hold "
                    f"{slots // 2} or more"
                )
            twin.extend(range(sent, sent + done))
            sent += done


def _compare(where, into, done, count, twin, sent):
    """Refuse a ring whose pop gave something else than what was due."""
    if not 0 <= done <= min(count, len(twin)):
        raise UserError(f"{where}: pop gave {done} of {count} asked for, with {len(twin)} in the ring: some came again")
    if not done and twin:
        raise UserError(f"{where}: pop gave nothing, with {len(twin)} messages in the ring: they were lost")
    for place in range(done):
        due, came = twin.popleft(), into[place * WORDS : (place + 1) * WORDS]
        if (came != copied_stress.words_of(due)).any():
            raise UserError(f"{where}: {copied_stress.told(came, due, sent)}")


def _two_threads(name, make):
    """Send messages between two threads, in batches that leave the ring full and empty; refuse what harms them."""
    for slots in TRIED:
        try:
            found = copied_stress.stress(make(slots), MESSAGES, min(slots, MOST_COPIED))
        except system.PlacementError:
            return  # the studies say so themselves
        if found.reason:
            raise UserError(f"ring {name!r} of {slots} slots, between two threads: {found.reason}")
