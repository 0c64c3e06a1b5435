"""Timing: variants taken in turn in one process, in batches where they are short, with a checksum beside every number.

    pair = timing.compare({"linear": linear, "bitmap": bitmap}, rounds=15, ops=messages, kernels=[replay_kernel])
    pair.ratio("linear", "bitmap")      # median of the pairwise ratios with its 95 % interval
    pair.frame()                        # one row a variant: time, interval, ratio, checksum, compile time

Each variant is a callable without arguments that does its work and returns an integer checksum of it. What is not the
work stays out of the number: compilation (its own column; inside a timed run it discards the measurement), the clock
and the call (an empty body is timed in the same rounds and subtracted), the garbage collector, and rounds in which
somebody else had the processor (taken again, up to a limit, and reported).
"""

import gc
import math
import numbers
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from photonlab.lab.measure import compilation, intervals, percentiles
from photonlab.lab.measure.comparison import Comparison, Ratio, Reading, Timed  # noqa: F401  (what a comparison returns)
from photonlab.machine import system

BATCH_NS = 50_000
"""A timed run lasts at least this long: long against a read of the clock (tens of ns)."""

LONGEST_BATCH = 1_000_000

UNSURE = 0.1
"""Share of an empty call's time that such calls may differ by without anything having been done."""

TOLERATED = 0.02
"""Share of a timed run that may be spent waiting for a processor (or taken by the host) before a round counts as
disturbed; never less than `TOLERATED_NS`."""

TOLERATED_NS = 20_000


class Tally:
    """What the comparisons of this process came to, for whoever wants to say how quiet they were."""

    comparisons = rounds = retaken = disturbed = 0

    def add(self, rounds, retaken, disturbed):
        """Count one comparison: rounds kept, thrown away and taken again, kept although disturbed."""
        self.comparisons += 1
        self.rounds, self.retaken, self.disturbed = (
            self.rounds + rounds, self.retaken + retaken, self.disturbed + disturbed,
        )  # fmt: skip

    def as_dict(self) -> dict:
        """Return the counts."""
        return {name: getattr(self, name) for name in ("comparisons", "rounds", "retaken", "disturbed")}


TALLY = Tally()


class ChecksumError(RuntimeError):
    """Variants that should have done the same work returned different checksums."""


def measure(work: Callable[[], int], *, repeats: int = 15, ops: int = 1, **options) -> Timed:
    """Time one callable; see `compare` for the options.

    Returns
    -------
    Timed
        ``measure(…).reading()`` is the time an operation, ``.checksum`` and ``.compile_s`` stand beside it.
    """
    return compare({"work": work}, rounds=repeats, ops=ops, **options)["work"]


def compare(
    variants: Mapping[str, Callable[[], int]],
    *,
    rounds: int = 15,
    ops: int | Mapping[str, int] = 1,
    warmup: int = 1,
    kernels: Iterable = (),
    same_checksums: bool = True,
    setup: Mapping[str, Callable] | None = None,
    empty: Callable[[], int] | None = None,
    retakes: int | None = None,
    batch_ns: int = BATCH_NS,
    seed: int = intervals.SEED,
    clock: Callable[[], int] = time.perf_counter_ns,
    usage: Callable[[], system.Usage] = system.usage,
) -> Comparison:
    """Time variants in turn: A B, B A, A B, … in one process.

    Parameters
    ----------
    variants : mapping of str to callable
        Each does its work and returns an integer checksum, the same at every call.
    rounds : int
        Timed runs of each variant; at least 3.
    ops : int or mapping
        Operations that one call does (times are given an operation).
    warmup : int
        Untimed calls of each variant beforehand, at least 1; compile time is that of the first.
    kernels : iterable of dispatchers
        Kernels whose signatures must not grow while the clock runs; any compilation is noticed also without it.
    same_checksums : bool
        Whether all variants must return the same checksum.
    setup : mapping of str to callable, optional
        Called before each timed run of that variant, untimed (such a variant is not batched).
    empty : callable, optional
        What a call costs that does nothing, subtracted; a Python function that returns 0 by default.
    retakes : int, optional
        Disturbed rounds to take again at most; as many as `rounds` by default.
    batch_ns : int
        Calls are batched until a run lasts so long.
    seed : int
        Of the bootstrap.
    clock, usage : callable
        The clock in ns and the system's account of this thread; for tests.

    Raises
    ------
    ChecksumError
        Checksums differ between variants, or between two calls of one.
    photonlab.lab.measure.compilation.CompiledWhileTiming
        Something was compiled inside a timed run.
    """
    if rounds < 3 or warmup < 1 or not variants:
        raise ValueError("a comparison needs variants, 3 rounds or more, and a warm-up")
    kernels, setup = list(kernels), dict(setup or {})
    works = [
        _Work(name, work, setup.get(name), ops if isinstance(ops, int) else ops[name])
        for name, work in variants.items()
    ]
    for work in works:
        work.warm_up(warmup, batch_ns, clock)
    if same_checksums:
        _equal({work.name: work.checksum for work in works})
    # an empty body beside each variant, in the same batches, so that drift of the machine meets both
    nothing = [_Work("", empty or _nothing, None, 1, batch) for batch in dict.fromkeys(work.batch for work in works)]
    for work in nothing:
        work.warm_up(warmup, batch_ns, clock)
    before = compilation.signatures(kernels)
    with compilation.Compiling() as seen:
        kept, retaken = _rounds([*works, *nothing], rounds, rounds if retakes is None else retakes, clock, usage)
    compilation.refuse(seen, before, compilation.signatures(kernels), ", ".join(variants))
    TALLY.add(rounds, retaken, kept.disturbed)
    bare = {work.batch: kept.times(len(works) + i) for i, work in enumerate(nothing)}
    timed = {work.name: work.timed(kept.times(i), bare[work.batch]) for i, work in enumerate(works)}
    return Comparison(timed, rounds, retaken, kept.disturbed, kept.reason, seed)


def _nothing() -> int:
    return 0


class _Work:
    """One variant while it is being measured."""

    def __init__(self, name, call, setup, ops, batch=None):
        if ops < 1:
            raise ValueError(f"{name}: {ops} operations a call")
        self.name, self.call, self.setup, self.ops, self.batch = name, call, setup, ops, batch
        self.checksum, self.compile_s = None, 0.0

    def warm_up(self, calls, batch_ns, clock):
        with compilation.Compiling() as seen:
            self._once()
        self.compile_s = seen.seconds
        duration = math.inf
        for _ in range(max(calls, 2) if self.batch is None else calls):
            begin = clock()
            self._once()
            duration = min(duration, clock() - begin)
        if self.batch is None:
            wanted = 1 if self.setup else -(-batch_ns // max(int(duration), 1))
            self.batch = min(max(wanted, 1), LONGEST_BATCH)

    def run(self, clock) -> int:
        """One timed run; returns its duration in ns."""
        if self.setup:
            self.setup()
        call, checksum = self.call, 0
        begin = clock()
        for _ in repeat(None, self.batch):
            checksum = call()
        end = clock()
        self._check(checksum)
        return max(end - begin, 0)

    def timed(self, raw: Sequence[int], bare: Sequence[int]) -> Timed:
        half, most = (percentiles.of_samples(bare, p, beyond=0).value for p in (50, 90))
        noise = max(most - half, UNSURE * half)
        raw = np.asarray(raw, np.float64)
        return Timed(self.name, self.ops, self.batch, raw, float(half), float(noise), self.checksum, self.compile_s)

    def _once(self):
        if self.setup:
            self.setup()
        self._check(self.call())

    def _check(self, checksum):
        if isinstance(checksum, bool) or not isinstance(checksum, numbers.Integral):
            raise TypeError(f"{self.name or 'the empty body'} returned {checksum!r} and not an integer checksum")
        if self.checksum is None:
            self.checksum = int(checksum)
        elif self.checksum != int(checksum):
            raise ChecksumError(f"{self.name}: one call returned {self.checksum:x}, another {int(checksum):x}")


@dataclass
class _Kept:
    """The rounds that count: durations, and what disturbed them."""

    durations: list[list[int]] = field(default_factory=list)
    usages: list[system.Usage] = field(default_factory=list)

    def times(self, index: int) -> list[int]:
        return [row[index] for row in self.durations]

    @property
    def disturbed(self) -> int:
        return len(self.usages)

    @property
    def reason(self) -> str:
        if not self.usages:
            return ""
        return system.Usage(*(_sum(column) for column in zip(*self.usages, strict=True))).label(tolerated_ns=0)


def _rounds(works: list[_Work], rounds: int, retakes: int, clock, usage) -> tuple[_Kept, int]:
    """Take all works in turn; returns what counts and how many rounds do not.

    Every other round goes backwards, and every other pair of rounds begins with another work, so that each work comes
    before each other one as often as after it: steady drift of the machine cancels out.
    """
    kept, retaken = _Kept(), 0
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        while len(kept.durations) < rounds:
            pair, backwards = divmod(len(kept.durations), 2)
            turn = pair % len(works)
            order = [*range(turn, len(works)), *range(turn)]
            durations, disturbances = [0] * len(works), []
            for index in reversed(order) if backwards else order:
                before = usage()
                durations[index] = works[index].run(clock)
                used = usage().since(before)
                if _disturbed(used, durations[index]):
                    disturbances.append(used)
            if disturbances and retaken < retakes:
                retaken += 1
                continue
            kept.durations.append(durations)
            if disturbances:
                kept.usages.append(system.Usage(*(_sum(column) for column in zip(*disturbances, strict=True))))
    finally:
        if collecting:
            gc.enable()
    return kept, retaken


def _disturbed(used: system.Usage, duration: int) -> bool:
    allowed = max(TOLERATED_NS, TOLERATED * duration)
    return any(ns is not None and ns > allowed for ns in (used.waiting_ns, used.steal_ns))


def _sum(column) -> int | None:
    known = [number for number in column if number is not None]
    return sum(known) if known else None


def _equal(checksums: dict[str, int]) -> None:
    if len(set(checksums.values())) > 1:
        shown = ", ".join(f"{name} {checksum:x}" for name, checksum in checksums.items())
        raise ChecksumError(f"the variants did not do the same work: checksums {shown}")
