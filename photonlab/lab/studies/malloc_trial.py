"""Trials of malloc in a process of its own: with another allocator preloaded, or with glibc's settings changed.

    python -m photonlab.lab.studies.malloc_trial '{"trial": "evidence", "count": 131072}'

prints what was found as JSON. Neither a preloaded library nor a changed setting can be taken back, so a notebook's
own process is no place for them.
"""

import json
import os
import subprocess
import sys

import numpy as np

from photonlab.kernels import block_pool
from photonlab.lab.studies import pool_cost, pool_walk
from photonlab.machine import clock, libc, system
from photonlab.systems.experiments import allocators

PER_OCTAVE, OCTAVES = 2, 26
"""Bins of a histogram of ns, each half an octave wide, from 1 ns."""

SLOW = 10
"""A block is slow that took longer than so many times the median."""

AS_IT_COMES, BIG_STEPS, TOUCHED, MAPPED = (
    "as it comes",
    "heap grows by 64 MiB",
    "heap touched beforehand",
    "a mapping for each block",
)
WORK = ("fill", "batches", "churn", "walk")
_LARGEST = 2**31 - 1
_CHUNK = 8 << 20
_MOST_MAPPINGS = 1 << 14


def run(preload="", **wanted) -> dict:
    """Run a trial in a process of its own.

    Parameters
    ----------
    preload : str
        Library for LD_PRELOAD.
    **wanted
        What `main` understands.

    Returns
    -------
    dict
        What the trial printed; {"why": reason} if it did not come to that.
    """
    environment = {**os.environ, "LD_PRELOAD": preload} if preload else dict(os.environ)
    command = [sys.executable, "-m", "photonlab.lab.studies.malloc_trial", json.dumps(wanted)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        return {"why": f"the trial could not be run: {error}"}
    if done.returncode:
        last = (done.stderr.strip() or "no word").splitlines()[-1]
        return {"why": f"the trial ended with status {done.returncode}: {last}"}
    return json.loads(done.stdout)


def log_bin(ns) -> np.ndarray:
    """Return the numbers of the bins that some times in ns fall into."""
    steps = np.log2(np.maximum(np.asarray(ns, np.float64), 1.0)) * PER_OCTAVE
    return np.minimum(steps.astype(np.int64), PER_OCTAVE * OCTAVES - 1)


def histogram(ns) -> list[int]:
    """Count times in ns by bins of half an octave."""
    return np.bincount(log_bin(ns), minlength=PER_OCTAVE * OCTAVES).tolist()


def digest(spans, faults, breaks) -> dict:
    """Sum up single allocations.

    Parameters
    ----------
    spans, faults, breaks : ndarray of uint64, shape (n,)
        Ticks, page faults and bytes by which the heap grew, of each.

    Returns
    -------
    dict
        count, median [ns], slow (how many), slow with a fault, slow with growth, faults, growths, bins.
    """
    ns = spans * (1e9 / clock.calibrate().hz)
    median = float(np.sort(ns)[(ns.size - 1) // 2])
    slow = ns > SLOW * median
    return {
        "count": int(ns.size),
        "median": median,
        "slow": int(slow.sum()),
        "slow with a fault": int((faults[slow] > 0).sum()),
        "slow with growth": int((breaks[slow] > 0).sum()),
        "faults": int(faults.sum()),
        "growths": int((breaks > 0).sum()),
        "bins": histogram(ns),
    }


class Evidence:
    """Arrays for `allocators.malloc_evidence`, and blocks that stay until the process ends."""

    def __init__(self, count):
        self.spans, self.faults, self.breaks = (np.ones(count, np.uint64) for _ in range(3))
        self.rusage = np.zeros(libc.RUSAGE_WORDS, np.uint64)
        self.kept = []

    def malloc(self, count) -> dict:
        """Allocate blocks one by one."""
        taken = np.ones(count, np.uint64)  # touched, so that its pages are no faults of malloc's
        self.kept.append(taken)
        spans, faults, breaks = self.spans[:count], self.faults[:count], self.breaks[:count]
        allocators.malloc_evidence(taken, spans, faults, breaks, self.rusage, libc.address_of(self.rusage))
        return digest(spans, faults, breaks)

    def use_up(self, count, tries=50):
        """Allocate until nothing is left of the heap, and each of `count` blocks needs new memory."""
        for _ in range(tries):
            if self.malloc(count)["faults"] >= count:
                break

    def pool(self, count, touched) -> dict:
        """Hand out a pool's blocks one by one."""
        blocks, taken = block_pool.make_blocks(count, populate=touched), np.ones(count, np.uint32)
        self.breaks[:] = 0
        arrays = taken, self.spans[:count], self.faults[:count]
        allocators.pool_evidence(blocks, *arrays, self.rusage, libc.address_of(self.rusage))
        return digest(self.spans[:count], self.faults[:count], self.breaks[:count])


def evidence(count) -> dict:
    """Allocate `count` blocks from a heap that has to grow, under one setting after another.

    Returns
    -------
    dict of str to dict
        By setting, `digest`; {"why": reason} of a setting that malloc refused. Pools for comparison.
    """
    trial = Evidence(count)
    trial.malloc(1000)  # compiled, and the holes of the heap are filled
    trial.pool(1000, True)
    fill_holes()
    found = {AS_IT_COMES: trial.malloc(count)}
    found["pool"] = trial.pool(count, True)
    found["pool, untouched"] = trial.pool(count, False)
    settings = (
        (MAPPED, {"M_TOP_PAD": 0, "M_MMAP_THRESHOLD": 0}),
        (BIG_STEPS, {"M_TOP_PAD": 64 << 20, "M_MMAP_THRESHOLD": 128 << 10}),
        (TOUCHED, {"M_TOP_PAD": 0, "M_TRIM_THRESHOLD": _LARGEST, "M_MMAP_THRESHOLD": 32 << 20}),
    )
    for name, options in settings:
        refused = [option for option, value in options.items() if not libc.set_option(option, value)]
        if refused:
            found[name] = {"why": f"malloc has no {' and no '.join(refused)} here"}
            continue
        if name == MAPPED:
            trial.use_up(min(count, 1 << 12))
        if name == TOUCHED:
            touch_top(count * 2 * block_pool.BLOCK_BYTES)
        found[name] = trial.malloc(min(count, _MOST_MAPPINGS) if name == MAPPED else count)
    return found


def fill_holes(blocks=1 << 15):
    """Use up free chunks of the heap of about the size of the trial's blocks, so that its top must serve those."""
    hole = np.zeros(blocks, np.uint64)
    allocators.malloc_fill(hole)


def touch_top(size):
    """Let the top of the heap grow by `size` bytes and touch them: allocated in a row, written, and freed again."""
    chunks = np.zeros(-(-size // _CHUNK) + 1, np.uint64)
    allocators.malloc_chunks(chunks, np.uint64(_CHUNK))
    for address in chunks:
        libc.window(int(address), _CHUNK)[::1024] = 0
    allocators.free_all(chunks)


def cost(count, live, batch, rounds, seed) -> dict:
    """Compare this process' malloc with the pool.

    Returns
    -------
    dict
        library, and by `WORK` the arguments of `record`: a ratio to the pool, of the walk to one in order.
    """
    names = (pool_cost.MALLOC, pool_cost.POOL)
    found = {"library": libc.provider().library}
    kinds = {
        "fill": pool_cost.measure_fill(count, rounds, names)[0],
        "batches": pool_cost.measure_cycles(batch, rounds, names),
        "churn": pool_cost.measure_churn(live, min(live, 1 << 18), rounds, seed),
    }
    for kind, compared in kinds.items():
        found[kind] = compared.ratio(*names).row
    try:
        walks, step = pool_walk.measure_scattered(count, rounds, seed)
        found["walk"] = walks.ratio(pool_walk.SCATTERED, pool_walk.IN_ORDER).row
        if found["walk"]["value"] is not None:
            found["walk"]["note"] = "; ".join(filter(None, (f"median step {step} bytes", found["walk"]["note"])))
    except MemoryError as error:
        found["walk"] = {"value": None, "unit": "×", "note": str(error)}
    return found


def main(text):
    """Run the trial that a JSON object names, and print what it found."""
    wanted = json.loads(text)
    kind = {"evidence": evidence, "cost": cost}[wanted.pop("trial")]
    with system.pinned(system.choose_cpus(1)):
        print(json.dumps(kind(**wanted)))


if __name__ == "__main__":
    main(sys.argv[1])
