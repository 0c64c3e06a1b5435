"""Who is faster: this package and the Python packages that one could take instead, on the same file, in turn."""

import contextlib
import json
import selectors
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab import paths
from photonlab.lab.measure.comparison import Comparison, Timed
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.systems import replay, synth
from photonlab.systems.experiments import peer_packages
from photonlab.systems.experiments.peer_packages import JOBS, PEERS

OURS, INTERPRETED = "photonlab", ("itchfeed", "meatpy")
LEFT_OUT = "O"
"""Message types that are taken out of the file: one package knows them by another length, and stops."""
SECONDS = 300


class PeerError(Exception):
    """A package failed, or found something else than the others."""


@dataclass(frozen=True)
class Race:
    """What the packages took for the jobs on one file.

    Attributes
    ----------
    messages : int
        In the file.
    versions : dict of str to str
        By package; empty if it is not installed.
    comparisons : dict of str to Comparison
        By job, of ns a message; packages that failed are missing.
    facts : dict of str to dict
        By job, what all packages that state it agree on.
    failed : dict of (str, str) to str
        By package and job, what went wrong.
    """

    messages: int
    versions: dict
    comparisons: dict
    facts: dict
    failed: dict

    def rows(self) -> list[dict]:
        """Arguments of `record`: time of each package over ours, by job."""
        rows = []
        for job, compared in self.comparisons.items():
            for name in compared.variants:
                if name != OURS:
                    rows.append({"statistic": job, "variant": f"{name} / {OURS}"} | compared.ratio(name, OURS).row)
        for name, version in self.versions.items():
            if not version:
                rows.append({"statistic": "time", "variant": f"{name} / {OURS}", "value": None, "unit": "×",
                             "note": f"{name} is not installed: pip install 'photonlab[peers]'"})  # fmt: skip
        return rows


class Worker:
    """A process with one package in it."""

    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", peer_packages.__name__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, cwd=paths.ROOT,
        )  # fmt: skip

    def do(self, job, path, symbol):
        """Have one job done; return the answer."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps([job, str(path), symbol]), file=self.process.stdin, flush=True)
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            if not waiting.select(SECONDS):
                self.stop()
                return {"error": f"no answer within {SECONDS} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with {self.process.wait()}"}

    def stop(self):
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def file_without(messages, seed) -> Path:
    """Return a synthetic day without the types `LEFT_OUT`, written once.

    Parameters
    ----------
    messages, seed : int
    """
    source = synth.cached("small", messages, seed)
    path = source.with_name(f"{source.stem}-without-{LEFT_OUT}.itch")
    if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
        data, kept, at = source.read_bytes(), bytearray(), 0
        while at + 2 < len(data) and (length := int.from_bytes(data[at : at + 2], "big")):
            if chr(data[at + 2]) not in LEFT_OUT:
                kept += data[at : at + 2 + length]
            at += 2 + length
        part = path.with_suffix(".part")
        part.write_bytes(kept)
        part.rename(path)
    return path


def measure(messages, rounds, seed, packages=tuple(PEERS), jobs=JOBS) -> Race:
    """Give every job to every package that can do it, in turn, each in a process of its own.

    Parameters
    ----------
    messages, rounds, seed : int
    packages, jobs : sequence of str

    Raises
    ------
    PeerError
        If two packages state different facts, or ours fails.
    """
    path = file_without(messages, seed)
    known = replay.replay(path)
    symbol = known.bbo()["volume"].idxmax()
    versions = {name: peer_packages.version(name) for name in packages}
    workers = {name: Worker(name) for name in packages if versions[name]}
    comparisons, facts, failed = {}, {}, {}
    try:
        for job in jobs:
            able = [name for name in workers if job in PEERS[name].jobs]
            times, facts[job] = {name: [] for name in able}, {}
            for turn in range(rounds + 1):  # the first one warms up
                for name in [one for one in able if (one, job) not in failed]:
                    answer = workers[name].do(job, path, symbol)
                    if "error" in answer:
                        failed[name, job] = answer["error"]
                        workers[name] = workers[name] if workers[name].process.poll() is None else Worker(name)
                    else:
                        _agree(facts[job], answer["facts"], name, job)
                        times[name] += [answer["seconds"] * 1e9] if turn else []
            variants = {
                name: Timed(name, known.messages, 1, np.array(found), 0.0, 1.0, 0, 0.0)
                for name, found in times.items()
                if len(found) == rounds
            }
            if OURS not in variants:
                raise PeerError(f"{job}: {failed[OURS, job]}")
            comparisons[job] = Comparison(variants, rounds, 0, 0, "")
    finally:
        for worker in workers.values():
            worker.stop()
    return Race(known.messages, versions, comparisons, facts, failed)


def _agree(agreed, facts, name, job):
    for fact, value in facts.items():
        if agreed.setdefault(fact, value) != value:
            raise PeerError(f"{job}: {name} finds {fact} {value}, the others {agreed[fact]}")


def table(races):
    """Lay out the jobs.

    Parameters
    ----------
    races : list of Race

    Returns
    -------
    DataFrame
        One row a package and job: rate, its time over ours with the interval, what they agree on.
    """
    rows = []
    for race in races:
        for job, compared in race.comparisons.items():
            for name in compared.variants:
                ratio = compared.ratio(name, OURS)
                rows.append(
                    {
                        "job": job,
                        "package": f"{name} {race.versions[name]}",
                        "messages": race.messages,
                        "M msg/s": 1e3 / compared.reading(name).ns,
                        "time over ours": ratio.value,
                        "95 %": f"{ratio.low:.2f}–{ratio.high:.2f}",
                        "agreed": ", ".join(race.facts[job]),
                    }
                )
            for (name, of), why in race.failed.items():
                if of == job:
                    rows.append({"job": job, "package": f"{name} {race.versions[name]}", "agreed": f"failed: {why}"})
    return pd.DataFrame(rows)


def chart(races):
    """Draw the time of each package over ours, by job.

    Parameters
    ----------
    races : list of Race

    Returns
    -------
    matplotlib.figure.Figure
    """
    bars = [
        (f"{job}: {name}", compared.ratio(name, OURS))
        for race in races
        for job, compared in race.comparisons.items()
        for name in compared.variants
        if name != OURS
    ]
    fig, axes = plt.subplots(figsize=(5.8, 0.8 + 0.26 * max(len(bars), 1)))
    for place, (_, ratio) in enumerate(bars):
        axes.barh(place, ratio.value - 1, left=1, height=0.7, color=COLOURS[0] if ratio.value >= 1 else COLOURS[1])
        axes.plot([ratio.low, ratio.high], [place, place], color=MUTED, linewidth=1)
        axes.annotate(f"{ratio.value:.3g}", (max(ratio.high, 1), place), xytext=(3, 0), textcoords="offset points",
                      va="center", color=MUTED, fontsize=8)  # fmt: skip
    axes.axvline(1, color=MUTED, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.3, max([3.0, *(4 * ratio.value for _, ratio in bars)]))
    axes.set_yticks(range(len(bars)), [name for name, _ in bars], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time over that of photonlab (blue: photonlab is faster)")
    axes.set_ylabel("job and package")
    return fig


def sentence(races):
    """Say who won what.

    Parameters
    ----------
    races : list of Race

    Returns
    -------
    str
        Markdown.
    """
    won, lost, close = [], [], []
    for race in races:
        for job, compared in race.comparisons.items():
            for name in [one for one in compared.variants if one != OURS]:
                ratio = compared.ratio(name, OURS)
                said = f"{job} against {name} ({ratio.value:.2f} times our time, {ratio.low:.2f} to {ratio.high:.2f})"
                (won if ratio.low > 1 else lost if ratio.high < 1 else close).append(said)
    parts = [f"photonlab is faster at {'; '.join(won)}"] if won else ["photonlab is faster at nothing here"]
    if lost:
        parts.append(f"**slower** at {'; '.join(lost)}")
    if close:
        parts.append(f"too close to call: {'; '.join(close)}")
    absent = [name for race in races for name, version in race.versions.items() if not version]
    if absent:
        parts.append(f"not installed: {', '.join(dict.fromkeys(absent))}")
    return ". ".join(part[0].upper() + part[1:] if number else part for number, part in enumerate(parts)) + "."
