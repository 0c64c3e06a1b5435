"""The coherence granule: measured by a step, beside what the system and the C++ compiler say (claims S8 and S9)."""

import os
import shutil
import subprocess
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.studies import ring_turns
from photonlab.lab.studies.ring_turns import Across, Stopwatch
from photonlab.machine import system
from photonlab.systems.experiments.ring_granule import Counters

SEPARATIONS = (8, 16, 24, 32, 40, 48, 56, 64, 72, 96, 120, 128, 136, 192, 248, 256, 264, 384, 512)
_LINE_OF_GLIBC = 190  # _SC_LEVEL1_DCACHE_LINESIZE, which Python does not name

CLEAR = 1.5
"""How much longer an increment takes below a step than above it, at least."""


@dataclass(frozen=True)
class Reported:
    """What somebody says the granule is.

    Attributes
    ----------
    who : str
    size : int or None
        Bytes.
    how : str
        Where it was read, or why it was not.
    """

    who: str
    size: int | None
    how: str

    @property
    def row(self) -> dict:
        """Arguments of `record`."""
        return {"value": self.size, "unit": "bytes", "note": self.how}


@dataclass(frozen=True)
class Granule:
    """Increments of two counters by two threads.

    Attributes
    ----------
    across : Across
        Times an increment by separation.
    step : int or None
        Bytes from which on the counters do not disturb each other.
    why : str
        The reason for which there is no step.
    """

    across: Across
    step: int | None
    why: str

    @property
    def row(self) -> dict:
        """Arguments of `record`: the granule as measured."""
        return {"value": self.step, "unit": "bytes", "note": self.why or self.across.note}


class _Counting:
    """Two threads that count, as a work that can be taken in turn."""

    def __init__(self, watch, separation, steps):
        self.watch, self.counters = watch, Counters(separation, steps)

    def __call__(self) -> int:
        self.counters.run(self.watch.run)
        self.watch.add(self.counters.ticks / self.counters.increments * int(self.counters.steps))
        return 0


def find_step(separations, times) -> tuple[int | None, str]:
    """Find the separation from which on all times are short, below which all are long.

    Short and long are told apart by the geometric mean of the shortest and the longest, which must lie a factor `CLEAR`
    apart.

    Parameters
    ----------
    separations : sequence of int
        Ascending.
    times : sequence of float

    Returns
    -------
    tuple of (int or None, str)
        The step, or None with the reason.
    """
    least, most = min(times), max(times)
    if most < CLEAR * least:
        return None, f"no step: the longest time is only {most / least:.2f} times the shortest"
    long = [time > (least * most) ** 0.5 for time in times]
    first = long.index(False)
    if first == 0 or any(long[first:]):
        return None, "no clean step: times rise and fall with the separation"
    return separations[first], ""


def measure(steps, rounds, separations=SEPARATIONS) -> Granule:
    """Count at each separation in turn.

    Parameters
    ----------
    steps : int
        Increments of a thread in a run.
    rounds : int
    separations : sequence of int
        In bytes, ascending.
    """
    why = ring_turns.refused()
    if why:
        return Granule(ring_turns.nothing(why), None, why)
    watch = Stopwatch()
    works = {str(separation): _Counting(watch, separation, steps) for separation in separations}
    across = ring_turns.in_turn(works, watch, steps, rounds)
    times = [float(np.median(across.comparison[name].per_op)) for name in works]
    return Granule(across, *find_step(separations, times))


def reported() -> list[Reported]:
    """Return what the operating system and the C++ compiler say."""
    return [_system_says(), _sysfs_says(), _compiler_says()]


def _system_says() -> Reported:
    size = system.sysctl("hw.cachelinesize")
    if size:
        return Reported("operating system", int(size), "sysctl hw.cachelinesize")
    try:
        size = os.sysconf(_LINE_OF_GLIBC)
    except (ValueError, OSError) as error:
        return Reported("operating system", None, f"sysconf does not say: {error}")
    if size <= 0:
        return Reported("operating system", None, "sysconf(_SC_LEVEL1_DCACHE_LINESIZE) says nothing")
    return Reported("operating system", size, "sysconf(_SC_LEVEL1_DCACHE_LINESIZE)")


def _sysfs_says() -> Reported:
    path = "/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size"
    text = system.read_text(path) or ""
    return Reported("sysfs", int(text), path) if text.isdecimal() else Reported("sysfs", None, f"no {path}")


def _compiler_says() -> Reported:
    """Ask a compiler for the value behind std::hardware_destructive_interference_size."""
    who, tried = "C++ library", []
    for compiler in ("c++", "g++", "clang++"):
        if not shutil.which(compiler):
            continue
        tried.append(compiler)
        asked = subprocess.run(
            [compiler, "-x", "c++", "-std=c++17", "-dM", "-E", "-"],
            input="",
            capture_output=True,
            text=True,
            timeout=20,
        )
        for line in asked.stdout.splitlines():
            words = line.split()
            if words[1:2] == ["__GCC_DESTRUCTIVE_SIZE"] and words[2].isdecimal():
                return Reported(who, int(words[2]), f"__GCC_DESTRUCTIVE_SIZE of {compiler}")
    said = f"{', '.join(tried)} defines no __GCC_DESTRUCTIVE_SIZE" if tried else "no C++ compiler was found"
    return Reported(who, None, said)


def table(found, says) -> pd.DataFrame:
    """Lay out who says what."""
    rows = [{"source": one.who, "bytes": one.size, "how": one.how} for one in says]
    how = found.why or "two threads, two counters, one step"
    return pd.DataFrame([*rows, {"source": "measured", "bytes": found.step, "how": how}], dtype=object)


def chart(found, says):
    """Draw ns an increment over the separation, with what is reported."""
    if found.across.comparison is None:
        return ring_turns.empty_chart(found.across.why)
    names = list(found.across.comparison.variants)
    rows = [found.across.time(name) for name in names]
    at = [int(name) for name in names]
    fig, axes = plt.subplots(figsize=(5.8, 3.6))
    axes.plot(at, [row["value"] for row in rows], "o-", color=COLOURS[0])
    lows, highs = [row["low"] or row["value"] for row in rows], [row["high"] or row["value"] for row in rows]
    axes.fill_between(at, lows, highs, color=COLOURS[0], alpha=0.2, linewidth=0)
    for size in sorted({one.size for one in says if one.size}):
        who = ",\n".join(one.who for one in says if one.size == size)
        axes.axvline(size, color=MUTED, linestyle=(0, (4, 3)))
        axes.annotate(f"{size}: {who}", (size, 0.02), xycoords=("data", "axes fraction"), xytext=(4, 2),
                      textcoords="offset points", color=MUTED, fontsize=9)  # fmt: skip
    axes.set_xscale("log", base=2)
    ticks = [8, 16, 32, 64, 128, 256, 512]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("bytes between the two counters")
    axes.set_ylabel("ns an increment")
    return fig


def sentence(found) -> str:
    """Say where the step is, and what an increment costs on either side."""
    if found.step is None:
        return f"The granule could not be measured: {found.why}."
    ratio, below, above = found.across.ratio("8", "512"), found.across.ns("8"), found.across.ns("512")
    return (
        f"From **{found.step} bytes** on, the counters no longer disturb each other. Below, an atomic increment takes "
        f"{below:.1f} ns, above {above:.2f} ns: **{ratio['value']:.1f} times** ({ratio['low']:.1f} to "
        f"{ratio['high']:.1f})."
    )
