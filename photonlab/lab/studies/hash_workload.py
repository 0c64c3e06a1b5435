"""The published workload on maps of every kind: insert, find with 90 % hits, churn (claims F4 to F8, R10 and R11).

Tables of 2^20 slots hold 500,000 successive references, and what is searched for in vain are random words: with these,
which the source does not name, its average probes and its longest runs come out as published.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from photonlab.kernels import open_table
from photonlab.kernels.hash_policies import POLICIES
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison, Ratio
from photonlab.systems.experiments import map_work, maps, native_map
from photonlab.systems.experiments import reference_streams as streams

IDENTITY, FIBONACCI, SPLITMIX, MURMUR, SHORT, NEIGHBOURS = (
    "identity", "Fibonacci", "splitmix64", "Murmur", "cut-down Murmur", "neighbours",
)  # fmt: skip
TOMBSTONES, AHEAD = "Fibonacci, tombstones", "Fibonacci, looking ahead"
PRIME, POWER, UNORDERED = "chained, prime", "chained, power of two", "std::unordered_map"
PAGED, PAGED_AHEAD = "paged index", "paged index, looking ahead"
TYPED, PYTHON = "numba.typed.Dict", "Python dict"
OPEN = (IDENTITY, FIBONACCI, SPLITMIX, MURMUR, SHORT, NEIGHBOURS)
"""Policies of this house."""

INSERT, FIND, CHURN, OLDEST = "insert", "find", "churn", "churn, oldest first"
JOBS = (INSERT, FIND, CHURN, OLDEST)

PUBLISHED_LIVE = 500_000

SAMPLES = {IDENTITY: {FIND: 2_000, CHURN: 100, OLDEST: 20}}
"""Operations a call where all of them would take hours."""
DICTS = (TYPED, PYTHON)
"""Maps that stand beside the others for context: taken in turn with each other, in the fewest rounds, on one in ten of
the searches and replacements."""
OLDEST_TOO = (IDENTITY, FIBONACCI, SPLITMIX, NEIGHBOURS, AHEAD, PAGED, PRIME, UNORDERED)
"""Maps that are churned oldest first too."""


@dataclass(frozen=True)
class Workload:
    """What the maps took.

    Attributes
    ----------
    live : int
        References in each map.
    slots : int
        Of the open tables.
    comparisons : dict of str to Comparison
        By job.
    probes : dict of str to ndarray
        By policy, the tally of the job FIND's searches (see `map_work`); of identity the searches of its sample.
    runs : dict of str to int
        By policy, the longest run of slots in use.
    memory : dict of str to float
        Bytes a live order.
    why_not : str
        Why std::unordered_map was not measured; empty if it was.
    compiler : str
        What compiled it.
    """

    live: int
    slots: int
    comparisons: dict = field(repr=False)
    probes: dict = field(repr=False)
    runs: dict
    memory: dict
    why_not: str
    compiler: str

    @property
    def note(self) -> str:
        """How undisturbed the rounds were, by job."""
        return "; ".join(f"{job}: {compared.note}" for job, compared in self.comparisons.items())

    @property
    def chained(self) -> str:
        """What stands for the standard library's map: itself, or this house's kernel where it cannot be had."""
        return PRIME if self.why_not else UNORDERED

    def ratio(self, job, over, under) -> dict:
        """Arguments of `record`: time of one map over that of another, with its interval."""
        for name in (over, under):
            if name == UNORDERED and self.why_not:
                return {"value": None, "unit": "×", "note": self.why_not}
        found: Ratio = self.comparisons[job].ratio(over, under)
        note = [words for words in (found.why, found.mark) if words]
        for name in (over, under):
            if name in SAMPLES and job in SAMPLES[name]:
                note.append(f"{name}: {min(SAMPLES[name][job], self.live):,} operations a call")
            if name == UNORDERED:
                note.append(f"chained is std::unordered_map, {self.compiler}")
        return found.row | {"note": "; ".join(note)}

    def ns(self, job, name) -> float | None:
        """Return ns an operation; None if it was not measured or cannot be told."""
        compared = self.comparisons[job]
        return compared.reading(name).ns if name in compared.variants else None

    def time(self, job, name) -> dict:
        """Arguments of `record`: ns an operation."""
        if name == UNORDERED and self.why_not:
            return {"value": None, "unit": "ns", "note": self.why_not}
        return self.comparisons[job].reading(name).row

    @property
    def other_size(self) -> str:
        """Why the published counts cannot be compared with; empty if they can."""
        if self.live == PUBLISHED_LIVE:
            return ""
        return f"the counts published are those of {PUBLISHED_LIVE:,} live orders, not {self.live:,}"

    def average(self, policy) -> float:
        """Slots looked at in a search, on average."""
        tally = self.probes[policy]
        return int(tally[map_work.LOOKED]) / int(tally[map_work.SEARCHES])

    def average_row(self, policy) -> dict:
        """Arguments of `record`."""
        tally = self.probes[policy]
        note = f"{int(tally[map_work.SEARCHES]):,} searches, longest {int(tally[map_work.LONGEST]):,}"
        value = None if self.other_size else self.average(policy)
        return {"statistic": "average probes", "value": value, "unit": "1", "note": self.other_size or note}

    def run_row(self, policy) -> dict:
        """Arguments of `record`."""
        value = None if self.other_size else self.runs[policy]
        note = self.other_size or f"slots in a row of {self.slots:,} that are in use"
        return {"statistic": "worst run", "value": value, "unit": "1", "note": note}

    def rows(self) -> list[dict]:
        """Arguments of `record` for claim F4: ratios of times to Fibonacci's, times, probes and runs."""
        names = {"identity": IDENTITY, "splitmix64": SPLITMIX, "unordered_map": UNORDERED}
        rows = []
        for job in JOBS:
            for name, ours in names.items():
                rows.append({"statistic": job, "variant": f"{name} / Fibonacci"} | self.ratio(job, ours, FIBONACCI))
            for name, ours in (names | {"Fibonacci": FIBONACCI}).items():
                rows.append({"statistic": job, "variant": name} | self.time(job, ours))
        for name in (IDENTITY, FIBONACCI, SPLITMIX):
            rows += [{"variant": name} | self.average_row(name), {"variant": name} | self.run_row(name)]
        return rows

    def memory_ratio(self) -> dict:
        """Arguments of `record`: bytes of the chained map over those of the flat table."""
        note = f"chained is {self.chained}; what malloc says is usable, without its bookkeeping before each block"
        return {"value": self.memory[self.chained] / self.memory[FIBONACCI], "unit": "×", "note": note}


def measure(live, rounds, seed) -> Workload:
    """Give the workload to all maps in turn.

    Parameters
    ----------
    live : int
        References that are live; the open tables have the power of two above twice as many slots.
    rounds : int
    seed : int
    """
    keys = streams.sequential(live)
    asked = streams.queries(keys, live, seed=seed)
    order = np.random.default_rng(seed).permutation(live)
    slots = 1 << (2 * live - 1).bit_length()
    why_not = "" if native_map.library()[0] else native_map.library()[1]
    every, dicts = _make(live, slots, why_not), {TYPED: maps.TypedDict(), PYTHON: maps.PythonDict()}
    both = every | dicts
    comparisons = {INSERT: _both(_insert(every, rounds, keys), _insert(dicts, 3, keys))}
    for one in both.values():
        one.clear()
        one.insert(keys)
    # a sample has its misses too: as many as nine in ten of its queries leave
    asked_of = {name: streams.queries(keys, _ops(name, FIND, live), seed=seed) for name in SAMPLES}
    comparisons[FIND] = _both(_find(every, rounds, asked, asked_of), _find(dicts, 3, asked, {}))
    probes = {name: every[name].probes(asked) for name in POLICIES if name != IDENTITY}
    probes = {IDENTITY: _identity_probes(every[IDENTITY], asked)} | probes
    runs = {name: every[name].longest_run() for name in POLICIES}
    memory = {name: one.bytes(keys) / live for name, one in every.items()}
    comparisons[CHURN] = _both(_churn(every, rounds, keys, order, CHURN), _churn(dicts, 3, keys, order, CHURN))
    some = {name: one for name, one in every.items() if name in OLDEST_TOO}
    comparisons[OLDEST] = _churn(some, rounds, keys, np.arange(live), OLDEST)
    for one in both.values():
        one.clear()
    return Workload(live, slots, comparisons, probes, runs, memory, why_not, native_map.library()[1])


class Life:
    """A map at a steady number of live references: each goes in its turn, and the next one of the exchange comes.

    Parameters
    ----------
    one : a map of `photonlab.systems.experiments.maps`
    keys : ndarray of uint64
        Live in the beginning.
    order : ndarray of int64
        The order in which their places are vacated, over and over again; whoever came into a place goes from there.
    count : int
        Replacements a step.
    afresh : bool
        Begin anew before each step, as a table that has been healed by its holes is another one.
    """

    def __init__(self, one, keys, order, count, afresh):
        self.one, self.keys, self.order, self.count, self.afresh = one, keys, order, count, afresh
        self._begin()

    def _begin(self):
        self.one.clear()
        self.one.insert(self.keys)
        self.live, self.at, self.next = self.keys.copy(), 0, int(self.keys[-1]) + 1

    def prepare(self):
        """Choose who goes and who comes next."""
        if self.afresh:
            self._begin()
        places = self.order[(self.at + np.arange(self.count)) % self.order.size]
        self.gone = self.live[places]
        self.come = np.arange(self.next, self.next + self.count, dtype=np.uint64)
        self.live[places] = self.come
        self.at, self.next = self.at + self.count, self.next + self.count
        self.sum = int((self.gone + np.uint64(1)).sum())

    def step(self) -> int:
        """Make the replacements; return by how much the sum of what was taken is wrong."""
        return self.one.churn(self.gone, self.come) - self.sum


def _make(live, slots, why_not):
    every = {name: maps.Flat(name, slots=slots) for name in POLICIES}
    every[TOMBSTONES] = maps.Flat(FIBONACCI, "tombstones", slots)
    every[AHEAD] = maps.Flat(FIBONACCI, slots=slots, ahead=map_work.AHEAD)
    every[PAGED], every[PAGED_AHEAD] = maps.Paged(live), maps.Paged(live, ahead=map_work.AHEAD)
    every[PRIME], every[POWER] = maps.Chained("prime", live), maps.Chained("power of two", live)
    if not why_not:
        every[UNORDERED] = maps.Unordered(live)
    return every


def _ops(name, job, live):
    """Operations a call."""
    if job == INSERT:
        return live
    most = live // 10 if name in DICTS else live // 5 if job in (CHURN, OLDEST) else live
    return max(min(SAMPLES.get(name, {}).get(job, most), most), 1)


def _insert(every, rounds, keys):
    return _compare(
        every, rounds, dict.fromkeys(every, keys.size),
        lambda one, n: one.insert(keys), {name: one.clear for name, one in every.items()},
    )  # fmt: skip


def _find(every, rounds, asked, asked_of):
    ops = {name: _ops(name, FIND, asked.size) for name in every}
    names = {id(one): name for name, one in every.items()}
    return _compare(every, rounds, ops, lambda one, n: one.find(asked_of.get(names[id(one)], asked[:n])))


def _churn(every, rounds, keys, order, job):
    ops = {name: _ops(name, job, keys.size) for name in every}
    lives = {name: Life(one, keys, order, ops[name], name in SAMPLES) for name, one in every.items()}
    return _compare(lives, rounds, ops, lambda one, n: one.step(), {name: one.prepare for name, one in lives.items()})


def _both(compared, beside) -> Comparison:
    """Put two comparisons into one; its rounds are those of the first."""
    reasons = "; ".join(filter(None, (compared.reason, beside.reason)))
    return replace(
        compared, variants=compared.variants | beside.variants, retaken=compared.retaken + beside.retaken,
        disturbed=compared.disturbed + beside.disturbed, reason=reasons,
    )  # fmt: skip


def _compare(every, rounds, ops, call, setup=None) -> Comparison:
    """Take maps in turn; those that do the most operations must agree in their checksums."""
    compared = timing.compare(
        {name: lambda one=one, n=ops[name]: call(one, n) for name, one in every.items()},
        rounds=rounds, ops=ops, setup=setup, same_checksums=False, retakes=rounds // 2,
    )  # fmt: skip
    checksums = {name: compared[name].checksum for name in every if ops[name] == max(ops.values())}
    if len(set(checksums.values())) > 1:
        raise timing.ChecksumError(f"the maps did not do the same work: {checksums}")
    return compared


def _identity_probes(one, asked):
    """Count identity's probes without walking its block for each miss: the walk's length follows from its beginning.

    The references stand in one block of slots, so a search for another one that begins in the block ends behind it.
    """
    size = int(one.table.state[open_table.SIZE])
    values = one.table.entries[2 * size : 4 * size].reshape(-1, 2)[:, 1]
    empty = np.flatnonzero(values == 0)
    tally = np.zeros(map_work.TALLY_WORDS, np.uint64)
    homes = (asked & np.uint64(size - 1)).astype(np.int64)
    keys = one.table.entries[2 * size : 4 * size].reshape(-1, 2)[:, 0]
    at_home = (keys[homes] == asked) & (values[homes] != 0)
    ends = empty[np.searchsorted(empty, homes) % empty.size]
    looked = np.where(at_home, 1, (ends - homes) % size + 1)
    shown = np.minimum(looked, map_work.PROBES_SHOWN - 1)
    tally[: map_work.PROBES_SHOWN] = np.bincount(shown, minlength=map_work.PROBES_SHOWN)
    tally[map_work.SEARCHES], tally[map_work.LOOKED] = asked.size, looked.sum()
    tally[map_work.LONGEST] = looked.max()
    return tally


def table(found):
    """Lay out ns an operation, probes and memory.

    Parameters
    ----------
    found : Workload

    Returns
    -------
    DataFrame
    """
    rows = []
    for name in found.comparisons[INSERT].variants:
        row = {"map": name}
        row |= {f"{job} [ns]": found.ns(job, name) for job in JOBS}
        row["average probes"] = found.average(name) if name in found.probes else None
        row["longest search"] = int(found.probes[name][map_work.LONGEST]) if name in found.probes else None
        row["longest run"] = found.runs.get(name)
        row["memory [B an order]"] = found.memory.get(name)
        rows.append(row)
    frame = pd.DataFrame(rows)
    for column in ("longest search", "longest run"):  # whole numbers and gaps: as floats they would get decimals
        frame[column] = pd.Series([row[column] for row in rows], dtype=object)
    return frame
