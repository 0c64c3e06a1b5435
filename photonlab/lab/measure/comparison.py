"""What a comparison found: times with their intervals, ratios, and the finding that a time is too short to be told."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from photonlab.lab.measure import intervals
from photonlab.lab.measure.intervals import Interval


@dataclass(frozen=True)
class Reading:
    """A time, or the finding that it is too short to be told."""

    ns: float | None
    floor_ns: float
    low: float | None = None
    high: float | None = None
    mark: str = ""
    """What disturbed it, if it was taken in spite."""

    @property
    def text(self) -> str:
        """With its unit; never 0 or negative."""
        if self.ns is None:
            return f"at or below the floor ({_ns(self.floor_ns)})"
        return _ns(self.ns)

    @property
    def row(self) -> dict:
        """The arguments that `results.record` takes of it."""
        note = self.text if self.ns is None else self.mark
        return {"value": self.ns, "low": self.low, "high": self.high, "unit": "ns", "note": note}


@dataclass(frozen=True)
class Ratio:
    """A ratio of two times, or the reason why there is none."""

    value: float | None
    low: float | None
    high: float | None
    why: str = ""
    mark: str = ""
    """What disturbed it, if it was taken in spite."""

    @property
    def row(self) -> dict:
        """The arguments that `results.record` takes of it."""
        return {"value": self.value, "low": self.low, "high": self.high, "unit": "×", "note": self.why or self.mark}


@dataclass(frozen=True)
class Timed:
    """One variant after all rounds.

    Attributes
    ----------
    name : str
    ops, batch : int
        Operations a call, and calls a timed run.
    raw_ns : float array, shape (rounds,)
        Duration of each timed run as the clock gave it.
    empty_ns, noise_ns : float
        Duration of a run of as many empty calls: median, and how far above it such runs reach.
    checksum : int
    compile_s : float
        Time that its first call spent compiling or loading kernels.
    """

    name: str
    ops: int
    batch: int
    raw_ns: np.ndarray
    empty_ns: float
    noise_ns: float
    checksum: int
    compile_s: float

    @property
    def per_op(self) -> np.ndarray:
        """Net ns an operation in each round, clamped to what the clock can tell (shape (rounds,))."""
        least = max(self.noise_ns, 1.0)
        return np.maximum(self.raw_ns - self.empty_ns, least) / (self.batch * self.ops)

    @property
    def floor_ns(self) -> float:
        """Shortest time an operation that these batches could have told from nothing."""
        return (self.empty_ns + max(self.noise_ns, 1.0)) / (self.batch * self.ops)

    @property
    def at_floor(self) -> bool:
        """Whether the body could not be told from an empty one."""
        return float(np.median(self.raw_ns)) <= self.empty_ns + max(self.noise_ns, 1.0)

    def reading(self, seed: int = intervals.SEED) -> Reading:
        """Median net time an operation with its interval."""
        if self.at_floor:
            return Reading(None, self.floor_ns)
        found = intervals.median(self.per_op, seed)
        return Reading(found.value, self.floor_ns, found.low, found.high)


@dataclass(frozen=True)
class Comparison:
    """Variants taken in turn.

    Attributes
    ----------
    variants : dict of str to Timed
        In the order given.
    rounds, retaken, disturbed : int
        Rounds kept, rounds thrown away because they were disturbed, and rounds kept although they were.
    reason : str
        What disturbed the kept rounds, in sum; empty if nothing did.
    """

    variants: dict[str, Timed]
    rounds: int
    retaken: int
    disturbed: int
    reason: str
    seed: int = field(default=intervals.SEED, repr=False)

    def __getitem__(self, name: str) -> Timed:
        return self.variants[name]

    def reading(self, name: str) -> Reading:
        """Median net time an operation of one variant."""
        return replace(self.variants[name].reading(self.seed), mark=self.mark)

    def ratio(self, over: str, under: str) -> Ratio:
        """Median of the pairwise ratios ``over / under`` of times an operation, with its 95 % interval."""
        for name in (over, under):
            if self.variants[name].at_floor:
                return Ratio(None, None, None, f"{name} is {self.reading(name).text}")
        found: Interval = intervals.ratio(self.variants[over].per_op, self.variants[under].per_op, self.seed)
        return Ratio(found.value, found.low, found.high, mark=self.mark)

    @property
    def mark(self) -> str:
        """What rows of disturbed rounds carry; an empty text where none was kept."""
        return f"{self.disturbed} of {self.rounds} rounds disturbed and kept ({self.reason})" if self.disturbed else ""

    @property
    def note(self) -> str:
        """How undisturbed the rounds were, in one line."""
        words = [f"{self.rounds} rounds in turn"]
        if self.retaken:
            words.append(f"{self.retaken} disturbed and taken again")
        if self.disturbed:
            words.append(f"{self.disturbed} disturbed and kept ({self.reason})")
        return ", ".join(words)

    def frame(self) -> pd.DataFrame:
        """One row a variant.

        Returns
        -------
        DataFrame
            ns/op with low and high, ratio to the first variant with low and high (NaN at the floor), text, checksum,
            compile_s, batch.
        """
        first = next(iter(self.variants))
        rows = []
        for name, one in self.variants.items():
            reading, ratio = self.reading(name), self.ratio(name, first)
            rows.append(
                {
                    "variant": name,
                    "ns/op": reading.ns,
                    "low": reading.low,
                    "high": reading.high,
                    "ratio": ratio.value,
                    "ratio low": ratio.low,
                    "ratio high": ratio.high,
                    "text": reading.text,
                    "checksum": f"{one.checksum:x}",
                    "compile_s": one.compile_s,
                    "batch": one.batch,
                }
            )
        numeric = ["ns/op", "low", "high", "ratio", "ratio low", "ratio high", "compile_s"]
        return pd.DataFrame(rows).set_index("variant").astype(dict.fromkeys(numeric, "float64"))


def _ns(ns: float) -> str:
    """A duration with three significant digits in the unit that suits it."""
    for scale, unit in ((1, "ns"), (1e3, "µs"), (1e6, "ms")):
        if ns < 999.5 * scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns / 1e9:,.3g} s"
