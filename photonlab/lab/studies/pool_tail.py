"""The distribution of single allocations, and what stands behind its slow end (claims A2 and A3).

A single hand-out of the pool is shorter than the clock can tell, so percentiles are taken twice: of single
allocations, refused where the clock does not resolve them, and of the shortest batches that it does resolve, for
both alike. The evidence is taken in a process of its own (`photonlab.lab.studies.malloc_trial`), in which a page
fault and a growth of the heap are looked for after each allocation, outside the timed region.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels import block_pool, pool
from photonlab.lab.judge import claims
from photonlab.lab.measure import intervals, percentiles
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.studies import malloc_trial
from photonlab.lab.studies.pool_cost import ADDED, MALLOC, POOL
from photonlab.machine import clock, libc
from photonlab.systems.experiments import allocators, own_blocks

PERCENTS = (50, 90, 99, "99.9")
BATCHES = (2, 4, 8, 16)
"""In batches longer than these most would hold a page fault of malloc's: 51 of its blocks lie on a page."""

MODE_SHARE = 0.002
"""A mode holds at least this share of all samples in its highest bin."""

VALLEY = 0.5
"""Between two modes lies a bin with less than this share of the lower one."""


class Source:
    """Blocks handed out under the clock, in batches; memory of the pool touched, malloc's heap given back before."""

    def __init__(self, name, count):
        self.name = name
        self.taken = np.zeros(count, np.uint32 if name == POOL else np.uint64)
        self.blocks = block_pool.make_blocks(count) if name == POOL else None
        self.own = ADDED[name].fill(count) if name in ADDED else None

    def spans(self, batch) -> np.ndarray:
        """Return the ticks of each batch of one fill (shape (blocks / batch,))."""
        found = np.zeros(self.taken.size // batch, np.uint64)
        if self.name == POOL:
            pool.clear(self.blocks.pool)
            allocators.pool_spans(self.blocks, self.taken, found)
        elif self.own:
            self.own.prepare()
            own_blocks.spans(self.own.one, self.taken, found)
        else:
            self.close()
            allocators.malloc_spans(self.taken, found)
        return found

    def close(self):
        """Free what was taken."""
        if self.name == MALLOC:
            allocators.free_all(self.taken)
            libc.trim()


@dataclass(frozen=True)
class Tail:
    """Percentiles of both sources.

    Attributes
    ----------
    batch : int
        Blocks in a batch; 1 if the clock resolves single ones, 0 if no batch can be resolved.
    single, batched : dict of str to tuple of Percentile
        By source, in ticks, of the first run.
    ratios : dict of str to (list of float or None)
        By source: p99.9 over p50 of batches in each run; None where one of them is not supported.
    runs, samples : int
    why : str
        Why there is no ratio, if there is none.
    """

    batch: int
    single: dict
    batched: dict
    ratios: dict
    runs: int
    samples: int
    why: str

    def row(self, name, percent) -> dict:
        """Arguments of `record` for a percentile of single allocations."""
        one = next(p for p in self.single[name] if p.parts == percentiles.parts(percent))
        value = clock.calibrate().ns(one.value) if one.supported else None
        note = one.why or "single allocations, timer included"
        return {"statistic": one.name, "variant": name, "value": value, "unit": "ns", "note": note}

    def rows(self, name) -> list[dict]:
        """Arguments of `record` for all that was published of one source."""
        own = {"statistic": "p99.9 over p50", "variant": name, **self.own_row(name)}
        return [*(self.row(name, percent) for percent in (50, 99, "99.9")), own]

    def ratio_row(self) -> dict:
        """Arguments of `record` for claim A2: p99.9 over p50 of malloc, over that of the pool."""
        if self.why:
            return {"value": None, "unit": "×", "note": self.why}
        found = intervals.ratio(self.ratios[MALLOC], self.ratios[POOL])
        note = f"{self._what}, timer included, {self.runs} runs in turn"
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "×", "note": note}

    def own_row(self, name) -> dict:
        """Arguments of `record`: p99.9 over p50 of one source."""
        if self.why:
            return {"value": None, "unit": "×", "note": self.why}
        found = intervals.median(self.ratios[name])
        return {"value": found.value, "low": found.low, "high": found.high, "unit": "×", "note": self._what}

    @property
    def _what(self):
        return f"batches of {self.batch}" if self.batch > 1 else "single allocations"


def _found(spans, floor):
    return tuple(percentiles.of_samples(spans, percent, floor=floor) for percent in PERCENTS)


def measure(count, runs) -> Tail:
    """Take the distributions of both sources in turn, and of allocators that somebody added.

    Parameters
    ----------
    count : int
        Blocks of a run.
    runs : int
    """
    floor = clock.floor().ticks
    sources = {name: Source(name, count) for name in (MALLOC, POOL, *ADDED)}
    for source in sources.values():
        source.spans(1)  # compiled, and the pool's memory warm
    single = {name: _found(source.spans(1), floor) for name, source in sources.items()}
    batch = 1
    if not single[POOL][0].supported:
        batch = _resolved(sources[POOL], floor)
    ratios, batched, why = {name: [] for name in sources}, {}, ""
    if not batch:
        why = f"even {BATCHES[-1]} allocations of the pool are at or below the clock's floor ({floor} ticks)"
    for _ in range(runs if batch else 0):
        for name, source in sources.items():
            found = _found(source.spans(batch), floor)
            batched.setdefault(name, found)
            middle, far = found[0], found[-1]
            why = why if name in ADDED else why or middle.why or far.why
            ratios[name].append(far.value / middle.value if far.supported and middle.supported else None)
    sources[MALLOC].close()
    return Tail(batch, single, batched, ratios, runs, count, why)


def _resolved(source, floor) -> int:
    """Return the shortest of `BATCHES` whose median is above the floor in each of three runs, 0 if there is none."""
    for batch in BATCHES:
        if all(percentiles.of_samples(source.spans(batch), 50, floor=floor).supported for _ in range(3)):
            return batch
    return 0


def table(tail) -> pd.DataFrame:
    """Lay out percentiles of single allocations and of batches, with what was published."""
    scale = 1e9 / clock.calibrate().hz
    published = claims.by_id()["A2"]
    rows = []
    for name in tail.single:
        sets = [(f"{name}, single", tail.single[name])]
        if tail.batch > 1 and name in tail.batched:
            sets.append((f"{name}, batch of {tail.batch}", tail.batched[name]))
        for title, found in sets:
            row = {"allocations [ns]": title, "samples": found[0].count}
            row |= {one.name: one.text(scale) for one in found}
            ends = found[0], found[-1]
            over = f"{ends[1].value / ends[0].value:.1f}" if all(one.supported for one in ends) else "–"
            rows.append(row | {"p99.9 / p50": over})
        if name not in (MALLOC, POOL):
            continue
        row = {"allocations [ns]": f"{name}, published", "samples": None}
        row |= {
            one.name: f"{figure.value:g}" if (figure := published.figure(one.name, name)) else "–"
            for one in tail.single[name]
        }
        rows.append(row | {"p99.9 / p50": f"{published.figure('p99.9 over p50', name).value:g}"})
    return pd.DataFrame(rows)


def notes(tail) -> str:
    """Give the reasons for which figures of the table are not printed."""
    found = {f"{one.name} of {name}: {one.why}" for name, ones in tail.single.items() for one in ones if one.why}
    return "; ".join(sorted(found)) or "Every percentile is supported."


def sentence(tail) -> str:
    """Say what p99.9 is over p50 for both, and on what ground."""
    row = tail.ratio_row()
    if row["value"] is None:
        return f"Nothing can be said of the tails: {row['note']}."
    own = {name: tail.own_row(name)["value"] for name in (MALLOC, POOL)}
    single = tail.single[MALLOC]
    alone = ""
    if tail.batch > 1 and single[0].supported and single[-1].supported:
        alone = f" Of single ones malloc's is {single[-1].value / single[0].value:.0f} times, timer included."
    return (
        f"In {tail._what} p99.9 is **{own[MALLOC]:.1f} times** the median with malloc and **{own[POOL]:.1f} times** "
        f"with the pool: {row['value']:.2f} times as much ({row['low']:.2f} to {row['high']:.2f}).{alone}"
    )


# -- evidence -------------------------------------------------------------------------------------------------


def modes(bins) -> list[int]:
    """Find the modes of a histogram: highest bins, each holding `MODE_SHARE`, with a `VALLEY` between neighbours.

    Parameters
    ----------
    bins : sequence of int

    Returns
    -------
    list of int
        Numbers of the bins, ascending.
    """
    least = max(MODE_SHARE * sum(bins), 1)
    found: list[int] = []
    for here, height in enumerate(bins):
        if height < least:
            continue
        if found and min(bins[found[-1] : here + 1]) >= VALLEY * min(bins[found[-1]], height):
            if height > bins[found[-1]]:
                found[-1] = here  # the same hill, higher up
        else:
            found.append(here)
    return found


def bin_ns(number) -> float:
    """Return the middle of a bin of `malloc_trial.histogram`, in ns."""
    return float(2 ** ((number + 0.5) / malloc_trial.PER_OCTAVE))


def evidence(count) -> dict:
    """Run the trial of glibc's settings; see `photonlab.lab.studies.malloc_trial.evidence`."""
    return malloc_trial.run(trial="evidence", count=count)


def evidence_table(found) -> pd.DataFrame:
    """Lay out the evidence by setting: modes, slow allocations, and what happened in them."""
    rows = []
    for name, one in found.items():
        if name == "why" or "why" in one:
            reason = one if name == "why" else one["why"]
            rows.append({"blocks from": _titled(name), "modes [ns]": reason})
            continue
        rows.append(
            {
                "blocks from": _titled(name),
                "modes [ns]": ", ".join(f"{bin_ns(number):,.0f}" for number in modes(one["bins"])),
                "allocations": one["count"],
                "page faults": one["faults"],
                "heap growths": one["growths"],
                "slow": one["slow"],
                "slow with a fault": one["slow with a fault"],
                "slow with growth": one["slow with growth"],
            }
        )
    return pd.DataFrame(rows)


def _titled(setting):
    return setting if setting.startswith(POOL) or setting == "why" else f"malloc, {setting}"


def evidence_rows(found) -> tuple[dict, dict]:
    """Arguments of `record` for claim A3: how many modes, and the share of slow allocations with a page fault."""
    one = found.get(malloc_trial.AS_IT_COMES, {"why": found.get("why", "the trial did not run")})
    names = ({"statistic": "modes", "unit": "1"}, {"statistic": "slow allocations with a page fault", "unit": "%"})
    if "why" in one:
        return tuple({**name, "variant": MALLOC, "value": None, "note": one["why"]} for name in names)
    places = modes(one["bins"])
    where = "at about " + ", ".join(f"{bin_ns(number):,.0f} ns" for number in places)
    share = 100 * one["slow with a fault"] / one["slow"] if one["slow"] else None
    slow = f"{one['slow']:,} of {one['count']:,} took more than {malloc_trial.SLOW} times the median"
    return (
        {**names[0], "variant": MALLOC, "value": len(places), "note": where},
        {**names[1], "variant": MALLOC, "value": share, "note": slow},
    )


def chart(found):
    """Draw the distributions of single allocations, one above the other.

    Parameters
    ----------
    found : dict
        Of `evidence`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    shown = {name: one for name, one in found.items() if name != "why" and "why" not in one}
    fig, all_axes = plt.subplots(max(len(shown), 1), sharex=True, squeeze=False, figsize=(5.8, 1.05 * len(shown) + 1.2))
    for axes, (name, one) in zip(all_axes[:, 0], shown.items(), strict=False):
        bins = np.array(one["bins"], float) / one["count"] * 100
        left = 2.0 ** (np.arange(bins.size) / malloc_trial.PER_OCTAVE)
        width = left * (2 ** (1 / malloc_trial.PER_OCTAVE) - 1)
        axes.bar(left, np.maximum(bins - 1e-3, 0), width, 1e-3, align="edge",
                 color=COLOURS[0] if name.startswith(POOL) else COLOURS[1])  # fmt: skip
        axes.set_yscale("log")
        axes.set_ylim(1e-3, 300)
        axes.set_yticks([1e-2, 1, 100], ["0.01", "1", "100"])
        faults = f"page faults {one['faults']:,}, growths {one['growths']:,}, of {one['count']:,}"
        axes.set_title(f"{_titled(name)}: {faults}", fontsize=9, fontweight="normal")
        axes.set_ylabel("%")
    last = all_axes[-1, 0]
    last.set_xscale("log")
    last.set_xlim(8, 1e5)
    last.set_xlabel("ns an allocation, timer included")
    if not shown:
        last.set_ylabel("%")
    last.axvline(clock.floor().ns, color=MUTED, linewidth=0)
    return fig


def evidence_sentence(found) -> str:
    """Say how many modes malloc has, what the slow one is, and what happens to it when its cause is taken away."""
    first, second = evidence_rows(found)
    if first["value"] is None:
        return f"Nothing can be said: {first['note']}."
    one = found[malloc_trial.AS_IT_COMES]
    text = f"malloc has **{first['value']}** mode{'s' if first['value'] != 1 else ''} here, {first['note']}. "
    if second["value"] is None:
        return text + "No allocation was slow."
    text += (
        f"{second['note']}; of these **{second['value']:.1f} %** had a page fault in them, and only "
        f"{100 * one['slow with growth'] / one['slow']:.1f} % a growth of the heap by a system call. "
    )
    steps, touched, mapped = (
        found.get(name, {"why": ""}) for name in (malloc_trial.BIG_STEPS, malloc_trial.TOUCHED, malloc_trial.MAPPED)
    )
    if "why" not in steps:
        text += f"With steps of 64 MiB the heap grows {steps['growths']:,}×, and {steps['slow']:,} are slow. "
    if "why" not in touched:
        left = len(modes(touched["bins"]))
        text += f"On a heap touched beforehand {touched['slow']:,} are slow ({left} mode{'s' if left != 1 else ''}). "
    if "why" not in mapped:
        text += (
            f"With a mapping for each block the median itself is {mapped['median']:,.0f} ns, against "
            f"{one['median']:,.0f} ns. "
        )
    untouched = found.get("pool, untouched")
    if untouched:
        text += f"A pool on untouched memory has {untouched['slow']:,} slow hand-outs: it is the memory, not malloc."
    return text
