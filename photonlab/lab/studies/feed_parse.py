"""What parsing a packet costs: each by its own readings of the clock, or a whole call's between two (claim P1)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from photonlab.lab.measure import intervals, percentiles
from photonlab.lab.studies import feed_runs
from photonlab.machine import clock

SHARE = 0.1
"""A clock whose step is more than this share of a value does not resolve it."""
PERCENTILES = (50, 95, 99, "99.9")
EACH, CALL = "parse, each message between two readings", "parse, a whole call between two readings"
_FINE = 1000  # parts of a tick: means of calls are no whole ticks


@dataclass(frozen=True)
class Parse:
    """Parsing in ticks.

    Attributes
    ----------
    taken : ndarray of uint64
        Of each message, with what reading the clock twice takes.
    spans : ndarray of uint64, shape (calls, 2)
        Messages and ticks of each full call.
    step : float
        The clock's step in ns.
    reading : float
        ns that two readings with nothing between them show.
    why : str
    """

    taken: np.ndarray
    spans: np.ndarray
    step: float
    reading: float
    why: str = ""

    def each(self, percent) -> dict:
        """Arguments of `record`: of single messages, as read."""
        return self._row(self.taken, percent, 1, "timer included")

    def call(self, percent) -> dict:
        """Arguments of `record`: of means over a call, less the two readings."""
        if self.why or not self.spans.size:
            return {"value": None, "unit": "ns", "note": self.why or "no full calls"}
        messages, ticks = self.spans.T.astype(float)
        net = np.maximum(ticks - self.reading * clock.calibrate().ticks_per_ns, 0) / messages
        return self._row(np.rint(net * _FINE).astype(np.int64), percent, _FINE, "mean of a full call, timer subtracted")

    def _row(self, samples, percent, parts, how) -> dict:
        if self.why:
            return {"value": None, "unit": "ns", "note": self.why}
        found = percentiles.of_samples(samples, percent)
        if found.why or found.value is None:
            return {"value": None, "unit": "ns", "note": f"{how}: {found.why or 'no samples'}"}
        return {
            "value": clock.calibrate().ns(found.value / parts),
            "unit": "ns",
            "note": "; ".join(filter(None, (how, feed_runs.where()))),
        }

    @property
    def resolved(self) -> bool:
        """Whether the clock's step is fine enough for a single message at the median."""
        value = self.each(50)["value"]
        return value is None or self.step <= SHARE * value

    def claimed(self, percent) -> dict:
        """Arguments of `record` for the claim: the median by whole calls where the clock does not resolve it.

        A mean over a call has lost what is slow in one message, so the upper percentiles are those of single ones.
        """
        return self.each(percent) if self.resolved or percent != 50 else self.call(percent)


def of(taken, spans, widest) -> Parse:
    """Return what was measured, of full calls only."""
    floor, spans = clock.floor(), np.concatenate([np.zeros((0, 2), np.uint64), *spans])
    step = floor.granularity_ns or floor.ns
    return Parse(taken, spans[spans[:, 0] == widest], step, floor.empty_median_ns)


def nothing(why) -> Parse:
    """Return that nothing was measured, and why."""
    return Parse(np.zeros(0, np.uint64), np.zeros((0, 2), np.uint64), 0.0, 0.0, why)


def table(found) -> pd.DataFrame:
    """Lay out both ways."""
    return pd.DataFrame(
        [
            {"what": what} | {f"p{p} [ns]": one(p)["value"] for p in PERCENTILES}
            for what, one in ((EACH, found.each), (CALL, found.call))
        ]
    )


def sentence(found) -> str:
    """Say which of the two the claim's median is, and by which rule."""
    if found.why:
        return f"Parsing was not timed: {found.why}."
    one, call = found.each(50)["value"], found.call(50)["value"]
    if one is None or call is None:
        return "Too few messages were timed for a median."
    rule = (
        f"The clock's step is {found.step:.1f} ns, {100 * found.step / one:.0f} % of what a single message shows "
        f"({one:.1f} ns, of which {found.reading:.1f} ns are the readings alone)"
    )
    if found.resolved:
        return f"{rule}: at most {100 * SHARE:.0f} %, so the claim's median is that of single messages."
    means = found.spans[:, 1] / found.spans[:, 0] / clock.calibrate().ticks_per_ns
    at = intervals.median(np.maximum(means, 1e-3))
    return (
        f"{rule}: more than {100 * SHARE:.0f} %, so the claim's median is that of whole calls, **{call:.1f} ns** a "
        f"message (timer not subtracted {at.low:.1f} to {at.high:.1f} ns). Its upper percentiles stay those of single "
        "messages, timer included: a mean has no tail."
    )
