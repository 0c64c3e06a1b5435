"""Do all cores read the same counter? Two pinned threads pass a word to and fro, and causality bounds the difference.

Comparing each core's counter with the system's clock would prove nothing: that clock is computed from the same
counter, on the same core. So one thread reads its counter (t1) and asks; the other reads its own (t2) and answers;
the first reads again (t3). Whatever the delays, t1 <= t2 - offset <= t3. Every round narrows the interval of possible
offsets, and when zero falls out of it, some core saw the answer before the question.
"""

import threading
from typing import NamedTuple

import numpy as np

from photonlab.machine.atomics import load_acquire, store_release
from photonlab.machine.counter import ticks_begin, ticks_end
from photonlab.machine.jit import kernel
from photonlab.machine.system import PlacementError, allowed_cpus, pin, pinned

_QUESTION, _ANSWER, _TICKS, _STOP, _WORDS = 0, 16, 17, 32, 48  # indices: what each side writes has lines of its own


class Pair(NamedTuple):
    """How far the counter of `other` may be ahead of that of `first`, in ticks (negative: behind)."""

    first: int
    other: int
    low: int
    high: int
    rounds: int


class Agreement(NamedTuple):
    """The verdict over all CPUs that may be used."""

    agree: bool | None
    """None when it could not be tested."""
    pairs: tuple[Pair, ...]
    note: str


@kernel
def ask(cells, low_high, rounds, patience):
    """Put `rounds` questions and narrow the interval of the offset.

    Parameters
    ----------
    cells : ndarray of uint64, shape (48,)
        The shared words, zeroed.
    low_high : ndarray of int64, shape (2,)
        Largest t2 - t3 and smallest t2 - t1 so far; updated in place.
    rounds : int64
        Questions to ask.
    patience : int64
        Spins to wait for an answer before giving up.

    Returns
    -------
    int64
        Rounds that were answered.
    """
    done = 0
    for number in range(1, rounds + 1):
        question = np.uint64(number)
        before = ticks_begin()
        store_release(cells, _QUESTION, question)
        spins = 0
        while load_acquire(cells, _ANSWER) != question and spins < patience:
            spins += 1
        after = ticks_end()
        if spins >= patience:
            break
        there = load_acquire(cells, _TICKS)
        low_high[0] = max(low_high[0], np.int64(there - after))
        low_high[1] = min(low_high[1], np.int64(there - before))
        done += 1
    store_release(cells, _STOP, np.uint64(1))
    return done


@kernel
def answer(cells, patience, skew):
    """Answer with this core's ticks plus `skew` until told to stop, or until no question came for `patience` spins."""
    seen = np.uint64(0)
    spins = 0
    while spins < patience and load_acquire(cells, _STOP) == np.uint64(0):
        question = load_acquire(cells, _QUESTION)
        if question != seen:
            store_release(cells, _TICKS, ticks_begin() + np.uint64(skew))
            store_release(cells, _ANSWER, question)
            seen = question
            spins = 0
        spins += 1


def compare(first: int, other: int, rounds: int = 2_000, patience: int = 20_000_000, skew: int = 0) -> Pair:
    """Bound the offset between the counters of two CPUs.

    Parameters
    ----------
    first, other : int
        Two different CPUs that this thread may use.
    rounds : int
        Questions; some hundreds suffice on a quiet machine.
    patience : int
        Spins before a silent partner is given up (about 20 ms).
    skew : int
        Ticks to add to the counter of `other`: a planted fault, for tests.

    Returns
    -------
    Pair
        With zero rounds, the interval is all of int64: nothing is known.

    Raises
    ------
    PlacementError
        If a thread cannot be put on its CPU.
    """
    cells = np.zeros(_WORDS, np.uint64)
    low_high = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    failure = []

    def partner():
        try:
            pin([other])
            answer(cells, patience, skew)
        except PlacementError as error:
            failure.append(error)

    ask(np.zeros(_WORDS, np.uint64), low_high.copy(), 1, 0)  # compiled, or loaded, before anybody waits
    answer(np.ones(_WORDS, np.uint64), 0, skew)
    with pinned([first], strict=True):
        thread = threading.Thread(target=partner)
        thread.start()
        done = ask(cells, low_high, rounds, patience)
        thread.join()
    if failure:
        raise failure[0]
    return Pair(first, other, int(low_high[0]), int(low_high[1]), int(done))


def judge(pairs, tolerance: int) -> Agreement:
    """Say whether the counters agree.

    Parameters
    ----------
    pairs : iterable of Pair
        One for each CPU against the first.
    tolerance : int
        Ticks by which zero may lie outside an interval: the counter's own step, since both ends are read in such steps.

    Returns
    -------
    Agreement
    """
    pairs = tuple(pairs)
    apart = [pair for pair in pairs if pair.rounds and (pair.low > tolerance or pair.high < -tolerance)]
    silent = [pair for pair in pairs if not pair.rounds]
    if apart:
        worst = max(apart, key=lambda pair: max(pair.low, -pair.high))
        return Agreement(
            False, pairs, f"CPU {worst.other} is {worst.low} to {worst.high} ticks ahead of CPU {worst.first}"
        )
    if silent or not pairs:
        return Agreement(None, pairs, "no answer from CPU " + ", ".join(str(pair.other) for pair in silent))
    widest = max(max(-pair.low, pair.high) for pair in pairs)
    return Agreement(True, pairs, f"{len(pairs) + 1} CPUs agree to within {widest} ticks")


def measure(tolerance: int, most: int = 64) -> Agreement:
    """Compare the counters of all allowed CPUs (of the first `most`) with that of the lowest.

    Parameters
    ----------
    tolerance : int
        As for `judge`.
    most : int
        CPUs to compare at most: a few ms each.

    Returns
    -------
    Agreement
    """
    cpus = allowed_cpus()[:most]
    if len(cpus) == 1:
        return Agreement(True, (), "one CPU: there is no other to disagree with")
    try:
        return judge((compare(cpus[0], cpu) for cpu in cpus[1:]), tolerance)
    except PlacementError as error:
        return Agreement(None, (), f"not tested: {error}")
