"""Messages a second of the full book and of the loop behind claim R1, on memory touched beforehand and not.

Claims R1, F1 and R13.
"""

from dataclasses import dataclass

import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.judge import claims
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.publish.tables import number
from photonlab.machine import perf_events
from photonlab.machine.system import Watch
from photonlab.systems.experiments.passes import BookPass, CorePass

FULL, PUBLISHED = "full book", "published loop"
COLD = "untouched memory"
LOOPS = {FULL: BookPass, PUBLISHED: CorePass}
SLOTS = 1 << 24


@dataclass(frozen=True)
class Throughput:
    """Both loops on one day, each with memory touched beforehand and not.

    Attributes
    ----------
    day : photonlab.lab.studies.day.Day
    comparison : Comparison
        Of four variants: `FULL`, `PUBLISHED`, and each with ", untouched memory".
    faults : dict of str to (int or None)
        Page faults in one pass of each variant.
    memory : dict of str to int
        Bytes that a pass of each variant uses beside the day; 0 where the system does not tell.
    passes : dict of str to photonlab.systems.experiments.passes.Pass
        For further runs.
    """

    day: object
    comparison: Comparison
    faults: dict
    memory: dict
    passes: dict

    def row(self, name) -> dict:
        """Arguments of `record`: messages a second, with the interval of the time turned round."""
        reading = self.comparison.reading(name)
        if reading.ns is None or self.day.too_short:
            return {"value": None, "unit": "M msg/s", "note": self.day.too_short or reading.text}
        rates = {key: 1e3 / ns for key, ns in (("value", reading.ns), ("low", reading.high), ("high", reading.low))}
        return {**rates, "unit": "M msg/s", "note": f"{self.day.name}; {self.comparison.note}"}

    def rate(self, name) -> float:
        """Million messages a second, at the floor of the clock at most."""
        reading = self.comparison.reading(name)
        return 1e3 / (reading.ns or reading.floor_ns)

    def ratio(self, over, under) -> dict:
        """Arguments of `record`: time of one variant over that of another."""
        if self.day.too_short:
            return {"value": None, "unit": "×", "note": self.day.too_short}
        return self.comparison.ratio(over, under).row

    def first_pass(self, loop=FULL) -> dict:
        """Arguments of `record` for claim R13: time on untouched memory over time on memory touched beforehand."""
        cold, warm = self.faults[f"{loop}, {COLD}"], self.faults[loop]
        if not self.memory[loop]:
            return {"value": None, "unit": "×", "note": "the system does not tell which pages a pass uses (mincore)"}
        row = self.ratio(f"{loop}, {COLD}", loop)
        note = f"{self.day.name}: {number(cold)} page faults against {number(warm)}"
        return row if row["value"] is None else row | {"note": "; ".join(filter(None, (note, row["note"])))}


def measure(day, rounds) -> Throughput:
    """Take the four variants in turn.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    rounds : int
        Passes of each variant.
    """
    passes = {name: kind(day.data) for name, kind in LOOPS.items()}
    passes |= {f"{name}, {COLD}": kind(day.data, warm=False) for name, kind in LOOPS.items()}
    setup = {name: one.prepare for name, one in passes.items()}
    compared = timing.compare(
        passes, rounds=rounds, ops=day.messages, setup=setup, same_checksums=False, retakes=rounds // 2
    )
    for name in LOOPS:
        warm, cold = compared[name].checksum, compared[f"{name}, {COLD}"].checksum
        assert warm == cold, f"{name}: the outcome does not depend on the memory"
    faults = {name: _faults(one) for name, one in passes.items()}
    memory = {name: one.resident_bytes for name, one in passes.items() if one.warm}
    return Throughput(day, compared, faults, memory, passes)


def _faults(one):
    one.prepare()
    with Watch() as watched:
        one()
    return watched.usage.minor_faults


def counters(one):
    """Count hardware events over one pass of the full book (claim R6).

    Parameters
    ----------
    one : Throughput

    Returns
    -------
    tuple of (dict, list of dict)
        Counts by event, None for what cannot be counted, and arguments of `record` for each rate.
    """
    book, probe = one.passes[FULL], perf_events.probe()
    book.prepare()
    counted = perf_events.count(book)
    rows = []
    for name, rate in perf_events.rates(counted).items():
        row = {"statistic": name, "unit": "1" if name == "IPC" else "%"}
        if rate is None:
            row |= {"value": None, "note": probe.reason or "the counters never ran during the replay"}
        else:
            row |= {"value": rate if name == "IPC" else 100 * rate, "note": f"{one.day.name}, user mode"}
        rows.append(row)
    return counted, rows


def table(measured):
    """Lay out what was measured on one or more days.

    Parameters
    ----------
    measured : list of Throughput

    Returns
    -------
    DataFrame
    """
    rows = []
    for one in measured:
        for name in one.comparison.variants:
            reading, loop = one.comparison.reading(name), name.split(",")[0]
            ratio = one.comparison.ratio(loop, PUBLISHED)
            rows.append(
                {
                    "day": one.day.name,
                    "loop": name,
                    "M msg/s": one.rate(name),
                    "ns a message": reading.text,
                    "page faults": one.faults[name],
                    "memory [MiB]": one.memory[loop] / 2**20,
                    "time over published loop's": f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
                    if name == FULL and ratio.value
                    else None,
                    "checksum": f"{one.comparison[name].checksum:x}",
                    "compile or load [s]": one.comparison[name].compile_s,
                }
            )
    return pd.DataFrame(rows)


def chart(measured):
    """Draw messages a second as bars, with the published figures as marks.

    Parameters
    ----------
    measured : list of Throughput

    Returns
    -------
    matplotlib.figure.Figure
    """
    bars = [
        (f"{name}\n{one.day.name}", one.row(name), one.rate(name))
        for one in measured
        for name in one.comparison.variants
    ]
    fig, axes = plt.subplots(figsize=(5.8, 0.42 * len(bars) + 1.3))
    for place, (label, row, rate) in enumerate(bars):
        colour = COLOURS[0] if label.startswith(FULL) else COLOURS[4]
        axes.barh(place, rate, color=colour, alpha=0.5 if COLD in label else 1)
        if row["value"] is not None:
            axes.plot([row["low"], row["high"]], [place, place], color=MUTED, linewidth=3)
    marks = (("R1", PUBLISHED, COLOURS[1]), ("F1", FULL, COLOURS[2]))
    for id_, variant, colour in marks:
        published = claims.by_id()[id_].figure("throughput", variant).value
        axes.axvline(published, color=colour, linestyle=(0, (4, 3)))
        axes.annotate(f"{id_}: {published:g}", (published, 1), xycoords=("data", "axes fraction"), xytext=(3, 2),
                      textcoords="offset points", color=colour, fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(bars)), [label.replace(f", {COLD}", " (untouched)") for label, *_ in bars], fontsize=8.5)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("million messages a second, one core")
    axes.set_ylabel("loop and day")
    return fig


def sentence(one):
    """Say how the two loops compare on one day.

    Parameters
    ----------
    one : Throughput

    Returns
    -------
    str
        Markdown.
    """
    if one.day.too_short:
        return f"Nothing can be said of the {one.day.name} day: {one.day.too_short}."
    ratio = one.comparison.ratio(FULL, PUBLISHED)
    full, published = (one.rate(name) for name in (FULL, PUBLISHED))
    head = (
        f"On the {one.day.name} day the full book takes **{full:.1f} M messages a second**, the published loop, "
        f"which does less, {published:.1f}. "
    )
    if ratio.value is None:
        return head + ratio.why
    interval = f"{ratio.value:.2f} times the time ({ratio.low:.2f} to {ratio.high:.2f})"
    if ratio.low > 1:
        return head + f"What the loop leaves out is worth something: the full book takes {interval}."
    if ratio.high < 1:
        return head + f"What it leaves out does not make it faster than this book: that takes {interval}."
    return head + f"The two are too close to tell apart: {interval}."


def memory_sentence(one):
    """Say what touching the memory beforehand does to each loop on one day (claim R13).

    Parameters
    ----------
    one : Throughput

    Returns
    -------
    str
        Markdown.
    """
    return f"On the {one.day.name} day: " + "; ".join(_memory(one, loop) for loop in LOOPS) + "."


def _memory(one, loop):
    row, faults = one.first_pass(loop), one.faults
    if row["value"] is None:
        return f"nothing can be said of the {loop}, because {row['note']}"
    cold, warm = number(faults[f"{loop}, {COLD}"]), number(faults[loop])
    side = "helps" if row["low"] > 1 else "does harm" if row["high"] < 1 else "makes no difference that can be told"
    return (
        f"touching the {one.memory[loop] / 2**20:,.0f} MiB of the {loop} beforehand {side}, a first pass takes "
        f"**{row['value']:.2f}×** as long on untouched memory ({row['low']:.2f} to {row['high']:.2f}), with {cold} "
        f"page faults against {warm}"
    )
