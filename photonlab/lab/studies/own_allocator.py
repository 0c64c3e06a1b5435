"""An allocator of your own in the notebook on pools: put to the test, then timed beside those of this house.

>>> own.add_allocator("mine", make, take, give)
"""

import secrets
from collections import namedtuple

import numba
import numpy as np
from numba.core.errors import NumbaError

from photonlab.errors import UserError
from photonlab.lab.studies import pool_cost
from photonlab.machine.jit import UNSAVED
from photonlab.machine.memory import huge_array
from photonlab.systems.experiments import own_blocks
from photonlab.systems.experiments.own_blocks import NONE

WORDS = 8
"""Words of a block: 64 bytes."""
TRIED = (1, 100, 5_000)
"""Blocks of the allocators in the trial."""
STEPS = 20_000
_OPTIONS = {"error_model": "numpy", "nogil": True, "_nrt": False}


class Own:
    """An allocator that somebody added: a fresh one for each fill, in memory that was touched before."""

    def __init__(self, name, make, take, give):
        self.name, self._make = name, make
        self.type = namedtuple(f"{UNSAVED}{secrets.token_hex(8)}", ["words"])
        none = NONE

        @numba.njit(**_OPTIONS)
        def own_take(blocks):
            return np.uint64(take(blocks.words))

        @numba.njit(**_OPTIONS)
        def own_give(blocks, at):
            if at != none:
                give(blocks.words, at)

        own_blocks.take.kernels[self.type], own_blocks.give.kernels[self.type] = own_take, own_give

    def forget(self):
        """Take its verbs out of the loops."""
        own_blocks.take.kernels.pop(self.type)
        own_blocks.give.kernels.pop(self.type)

    def blocks(self, count):
        """Return an allocator with all its blocks free."""
        return self.type(made(self.name, self._make, count))

    def fill(self, count):
        """Return a fill; see `photonlab.lab.studies.pool_cost.MallocFill`."""
        return _Fill(self, count)


class _Fill:
    def __init__(self, own, count):
        self.one = own.blocks(count)
        self.fresh = self.one.words.copy()
        self.taken = np.zeros(count, np.uint64)

    def prepare(self):
        """Make all blocks free and fresh."""
        self.one.words[:] = self.fresh

    def __call__(self):
        """Fill once; return how many blocks there were."""
        return int(own_blocks.fill(self.one, self.taken))


def add_allocator(name, make, take, give):
    """Let an allocator of blocks of 64 bytes take part in the notebook on pools: fill, batches, churn, tail.

    Parameters
    ----------
    name : str
        As it stands in tables and charts; an allocator of your own that was added before is replaced.
    make : callable
        Takes a number of blocks; returns an array of uint64 with all that the allocator is, its blocks of 8 words
        included, from which so many blocks can be handed out. A copy of it, which begins with a page, is what `take`
        and `give` get.
    take, give : callable
        ``take(words)`` hands out a block, the place in `words` of the first of its 8 words, or `own.NONE` if none is
        left; ``give(words, at)`` takes it back. Plain functions are compiled by Numba, `at` is a uint64. They may not
        allocate.

    Raises
    ------
    UserError
        The name is one of this house's; a function cannot be compiled, or reaches beyond the array; a block is handed
        out that is in use, or that lies outside; blocks in use are written to; or blocks get lost.
    """
    if name in pool_cost.TAKEN:
        raise UserError(f"allocator {name!r} is one of this house's: choose another name")
    functions = {"take": getattr(take, "py_func", take), "give": getattr(give, "py_func", give)}
    _try(name, make, *(_compiled(name, verb, one, boundscheck=True) for verb, one in functions.items()))
    if name in pool_cost.ADDED:
        remove_allocator(name)
    pool_cost.ADDED[name] = Own(name, make, *(_compiled(name, verb, one) for verb, one in functions.items()))


def remove_allocator(name):
    """Take an allocator that was added out again.

    Raises
    ------
    UserError
        No such allocator was added.
    """
    if name not in pool_cost.ADDED:
        raise UserError(f"no allocator {name!r} was added")
    pool_cost.ADDED.pop(name).forget()


def made(name, make, count):
    """Make an allocator; its words begin with a page and have been touched."""
    words = make(count)
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.ndim != 1 or not words.size:
        shown = f"{words.dtype}, {words.ndim} axes" if isinstance(words, np.ndarray) else type(words).__name__
        raise UserError(f"allocator {name!r}: make({count}) returns {shown}, not an array of uint64 with one axis")
    kept = huge_array(words.size, np.uint64, huge=False, populate=True)
    kept[:] = words
    return kept


def _compiled(name, verb, function, **options):
    """Compile a verb, and refuse one that is none."""
    words = numba.types.Array(numba.uint64, 1, "C")
    arguments = (words,) if verb == "take" else (words, numba.uint64)
    chosen = numba.njit(**_OPTIONS, **options)(function)
    try:
        chosen.compile(arguments)
    except (NumbaError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"allocator {name!r}: {verb} cannot be compiled: {reason}") from None
    returned = chosen.overloads[arguments].signature.return_type
    if verb == "take" and not isinstance(returned, numba.types.Integer):
        raise UserError(f"allocator {name!r}: take returns {returned}, not the place of a block")
    return chosen


class _Trial:
    """An allocator and the blocks that it has handed out, each filled with words of its own."""

    def __init__(self, name, words, take, give):
        self.where = f"allocator {name!r}"
        self.words, self._take, self._give = words, take, give
        self.live, self.owner = [], np.full(words.size, -1, np.int64)
        self.number = 0

    def take(self) -> bool:
        """Take a block and fill it; False if there was none."""
        try:
            at = int(self._take(self.words)) % 2**64
        except IndexError:
            raise UserError(f"{self.where}: take reaches beyond its array of {self.words.size:,} words") from None
        if at == int(NONE):
            return False
        if at + WORDS > self.words.size:
            raise UserError(f"{self.where}: hands out a block at word {at:,}, outside its {self.words.size:,} words")
        used = self.owner[at : at + WORDS]
        if (used >= 0).any():
            raise UserError(f"{self.where}: hands out a block at word {at:,}, while the block there is in use")
        used[:] = self.number
        self.words[at : at + WORDS] = self._filling(self.number)
        self.live.append((at, self.number))
        self.number += 1
        return True

    def give(self, which):
        """Give one of the live blocks back, after a look at its words."""
        self.live[which], self.live[-1] = self.live[-1], self.live[which]
        at, number = self.live.pop()
        if (self.words[at : at + WORDS] != self._filling(number)).any():
            raise UserError(f"{self.where}: somebody wrote to the block at word {at:,} while it was in use")
        self.owner[at : at + WORDS] = -1
        try:
            self._give(self.words, np.uint64(at))
        except IndexError:
            raise UserError(f"{self.where}: give reaches beyond its array of {self.words.size:,} words") from None

    @staticmethod
    def _filling(number):
        return np.uint64(0xA5A5 << 48 | number << 8) + np.arange(WORDS, dtype=np.uint64)


def _try(name, make, take, give):
    """Hold an allocator to its promise: distinct blocks, left alone while in use, and none lost."""
    rng = np.random.default_rng(1)
    for count in TRIED:
        trial = _Trial(name, made(name, make, count), take, give)
        for turn in range(3):
            while len(trial.live) < count:
                if not trial.take():
                    lost = "blocks that came back were lost" if turn else f"it was made for {count:,}"
                    raise UserError(f"allocator {name!r}: nothing is left with {len(trial.live):,} in use: {lost}")
            more = sum(trial.take() for _ in range(3))  # it may have more, or none, but not one that is in use
            for _ in range(more):
                trial.give(len(trial.live) - 1)
            for _ in range(min(count, STEPS // 4)):  # all of them, in any order
                trial.give(int(rng.integers(len(trial.live))))
        for _ in range(STEPS if count > 1 else 0):
            if trial.live and (len(trial.live) == count or rng.integers(2)):
                trial.give(int(rng.integers(len(trial.live))))
            elif not trial.take():
                lost = f"of {count:,}: blocks that came back were lost"
                raise UserError(f"allocator {name!r}: nothing is left with {len(trial.live):,} in use {lost}")
