"""What this machine can resolve, as tables, charts and sentences: steps and floor of its clock, and its counters."""

from fractions import Fraction

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.measure import histogram, percentiles
from photonlab.lab.publish.figures import COLOURS
from photonlab.lab.publish.tables import MISSING, number
from photonlab.machine import clock, latency, perf_events

SHOWN_STEPS = 12
LOAD = "load at start (1, 5, 15 min)"


BEARING = {
    "processor": ("model", "microarchitecture", "caches", "CPUs allowed", "SMT"),
    "placement": (
        "virtual machine",
        "container",
        "frequency governor",
        "turbo",
        "idle governor",
        "isolcpus",
        "nohz_full",
    ),
    "memory": ("total", "page size", "transparent huge pages"),
    "clock": ("kernel clock source",),
}
"""Facts of a fingerprint that bear on how far to trust a measurement."""


def facts(machine):
    """Lay out the facts that bear on a measurement; the page has the rest of them.

    Parameters
    ----------
    machine : dict
        Of `photonlab.machine.fingerprint.collect`.

    Returns
    -------
    pandas.DataFrame
        Columns Fact, Value, Part; lists are joined by semicolons.
    """
    rows = [
        (name, "; ".join(map(str, value)) if isinstance(value, list) else str(value), part)
        for part, names in BEARING.items()
        for name, value in ((name, machine[part][name]) for name in names)
    ]
    rows.append(("load, steal", f"{machine['placement'][LOAD]}; {machine['placement']['steal']}", "at the start"))
    return pd.DataFrame(rows, columns=["Fact", "Value", "Part"])


def clock_facts(rate, floor):
    """Lay out what is known of the clock.

    Parameters
    ----------
    rate : photonlab.machine.clock.Calibration
    floor : photonlab.machine.clock.Floor

    Returns
    -------
    pandas.DataFrame
        Columns Quantity, Value, How it was found.
    """
    reported = f"{rate.reported_hz / 1e9:.6g} GHz" if rate.reported_hz else MISSING
    rows = [
        ("clock", rate.name, clock.choice().reason),
        ("reported frequency", reported, rate.reported_by),
        ("measured frequency", f"{rate.hz / 1e9:.6f} GHz ± {rate.error_ppm:.1f} ppm", f"{len(rate.windows)} windows"),
        (
            "granularity",
            f"{_ticks(floor.granularity_ticks)} = {number(floor.granularity_ns)} ns",
            "where spans lie",
        ),
        ("spans on that lattice", f"{100 * floor.on_lattice:.1f} %", f"{floor.samples:,} spans"),
        ("smallest difference of two reads", _ticks(floor.smallest_step_ticks), "unordered reads in a row"),
        ("empty region, median", f"{number(floor.empty_median_ns)} ns", f"{floor.samples:,} regions"),
        ("floor", f"{number(floor.ns)} ns", "p99 of empty regions, at least a step"),
        ("cost of a timed region", f"{number(floor.cost_ns)} ns", "in batches"),
    ]
    return pd.DataFrame(rows, columns=["Quantity", "Value", "How it was found"])


def _ticks(count):
    return f"{count:.4g} tick{'' if count == 1 else 's'}"


def granularity_sentence(rate, floor):
    """Say how the clock's steps compare with its frequency.

    Parameters
    ----------
    rate : photonlab.machine.clock.Calibration
    floor : photonlab.machine.clock.Floor

    Returns
    -------
    str
        Markdown.
    """
    hertz = rate.reported_hz or rate.hz
    says = "reports" if rate.reported_hz else "does not report its frequency; measured are"
    unit = 1e9 / hertz
    step = floor.granularity_ns
    head = f"**{rate.name}** {says} {hertz / 1e9:.4g} GHz, a unit of {unit:.3g} ns. "
    if step < 1.05 * unit:
        return head + f"It advances in steps of {step:.3g} ns: here the unit is the step."
    return head + (
        f"It advances in steps of **{step:.4g} ns** ({_ticks(floor.granularity_ticks)}), {1e3 / step:.4g} million "
        f"times a second: the unit is {step / unit:.3g} times finer than what the clock can tell."
    )


def reported_granularity(rate):
    """Return what the reported frequency promises as a granularity, as arguments of `record`."""
    if not rate.reported_hz:
        return {"value": None, "unit": "ns", "note": f"{rate.name}: the system does not report a frequency"}
    return {"value": 1e9 / rate.reported_hz, "unit": "ns", "note": rate.reported_by}


def span_shares(spans, floor):
    """Count spans of reads by their length.

    Parameters
    ----------
    spans : ndarray of uint64
        Of `photonlab.machine.clock.spans_of_reads`, in ticks.
    floor : photonlab.machine.clock.Floor

    Returns
    -------
    pandas.DataFrame
        Columns ticks and share, for spans of up to 12 steps (40 ticks at least).
    """
    values, counts = np.unique(spans, return_counts=True)
    short = values <= max(SHOWN_STEPS * floor.granularity_ticks, 40)
    return pd.DataFrame({"ticks": values[short].astype(np.int64), "share": counts[short] / len(spans)})


def span_chart(shares, rate, floor):
    """Draw the lengths that spans take: a clock with coarse steps leaves gaps.

    Parameters
    ----------
    shares : pandas.DataFrame
        Of `span_shares`.
    rate, floor
        As elsewhere.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots(figsize=(5.8, 2.8))
    axes.vlines(shares.ticks, 0, 100 * shares.share, color=COLOURS[0], linewidth=2)
    axes.set_xlabel(f"span between two reads [ticks of {1e9 / rate.hz:.3g} ns]")
    axes.set_ylabel("share of spans [%]")
    axes.set_title(f"Steps of {floor.granularity_ticks:.4g} ticks = {floor.granularity_ns:.3g} ns")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return fig


def cost_table(costs):
    """Lay out what reading each clock costs.

    Parameters
    ----------
    costs : iterable of photonlab.machine.clock.Cost

    Returns
    -------
    pandas.DataFrame
        Columns Clock, Read, ns a read.
    """
    return pd.DataFrame([(one.clock, one.how, one.ns) for one in costs], columns=["Clock", "Read", "ns a read"])


def cost_sentence(costs):
    """Say what the fences cost, and what a system call would.

    Parameters
    ----------
    costs : iterable of photonlab.machine.clock.Cost

    Returns
    -------
    str
        Markdown.
    """
    ns = {one.how: one.ns for one in costs}
    plain, fenced = ns["in a kernel, unordered: ticks()"], ns["in a kernel: ticks_begin()"]
    text = f"With its fences an opening read costs {fenced:.3g} ns, without them {plain:.3g} ns. "
    library, call = ns["in a kernel, through libc"], ns.get("in a kernel, by a system call")
    if call is None:
        return text + "What clock_gettime costs by a system call was not measured on this system."
    return text + (
        f"clock_gettime costs {library:.3g} ns through libc and {call:.3g} ns, **{call / library:.3g} times** as much, "
        f"by a system call: through libc it {'does not enter' if call > 2 * library else 'may well enter'} the kernel."
    )


def samples_of_one(walks, steps, count):
    """Time walks of some loads one by one, as single samples.

    Parameters
    ----------
    walks : photonlab.machine.latency.Walk
    steps : int
        Loads in each sample; 0 is an empty region.
    count : int
        Samples.

    Returns
    -------
    photonlab.lab.measure.histogram.Histogram
        In ticks.
    """
    spans = np.zeros(count, np.uint64)
    latency.walk_each(walks.lines, walks.position, spans[:1], steps)  # compiled, or loaded, before it counts
    latency.walk_each(walks.lines, walks.position, spans, steps)
    counted = histogram.empty(1_000_000)
    histogram.add_all(counted, spans)
    return counted


def scorecard(samples, rate, floor):
    """Lay out distributions of single samples, with what the clock or their number does not support left out.

    Parameters
    ----------
    samples : dict of str to photonlab.lab.measure.histogram.Histogram
        In ticks.
    rate, floor
        As elsewhere.

    Returns
    -------
    pandas.DataFrame
        Percentiles in ns; the last column says why some are not printed.
    """
    rows = []
    for what, counted in samples.items():
        summary = histogram.summary(counted, floor=floor.ticks)
        cells = summary.cells(scale=1e9 / rate.hz)
        del cells["above bound"], cells["note"]
        reasons: dict[str, list[str]] = {}
        for one in summary.percentiles:
            reasons.setdefault("at or below the floor" if one.floor else one.why, []).append(one.name)
        why = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items() if reason)
        cells = {name: text.replace("≤ ", "≤\N{NO-BREAK SPACE}") for name, text in cells.items()}
        rows.append({"single samples of": what, **cells, "why not": why})
    return pd.DataFrame(rows)


def printed_in_spite(samples, floor):
    """Count percentiles that are printed as a figure although the clock or the number of samples does not support them.

    The support is worked out anew, by fractions and from the sorted samples' ranks, not by the rule that prints.

    Parameters
    ----------
    samples : dict of str to photonlab.lab.measure.histogram.Histogram
        In ticks.
    floor : photonlab.machine.clock.Floor

    Returns
    -------
    tuple of int
        Printed without support (which should be 0), and refused.
    """
    wrong = refused = 0
    for counted in samples.values():
        summary = histogram.summary(counted, floor=floor.ticks)
        reached = np.cumsum(counted.buckets)
        for percent, one in zip(histogram.PERCENTILES, summary.percentiles, strict=True):
            rank = -(-Fraction(str(percent)) * summary.count // 100)
            value = int(np.searchsorted(reached, int(rank)))
            supported = summary.count - rank >= percentiles.BEYOND and value > floor.ticks
            printed = one.text()[:1] not in (MISSING, "≤")
            wrong += printed and not supported
            refused += not printed
    return int(wrong), int(refused)


def counter_table(probe, counted):
    """Lay out which events can be counted and what was counted.

    Parameters
    ----------
    probe : photonlab.machine.perf_events.Probe
    counted : dict
        Of `photonlab.machine.perf_events.count`.

    Returns
    -------
    pandas.DataFrame
        Columns Event, available, counted (text; a dash for what cannot be).
    """
    rows = [(name, "yes" if there else "no", number(counted[name])) for name, there in probe.available.items()]
    return pd.DataFrame(rows, columns=["Event", "available", "counted"])


def printed_without_counters(probe, rates):
    """Count the rates that have a figure although one of their events cannot be counted (claim M3: none may)."""
    return sum(
        value is not None and not all(probe.available[event] for event in perf_events.RATES[name])
        for name, value in rates.items()
    )


def counter_sentence(probe, rates):
    """Say which of the rates of claim R6 this machine can show, and why not the others.

    Parameters
    ----------
    probe : photonlab.machine.perf_events.Probe
    rates : dict of str to (float or None)

    Returns
    -------
    str
        Markdown.
    """
    shown = [f"{name} {value:.3g}" for name, value in rates.items() if value is not None]
    lost = [name for name, value in rates.items() if value is None]
    parts = [f"Counted in this walk: {', '.join(shown)}."] if shown else []
    if lost:
        parts.append(
            f"Not printed: {', '.join(lost)}. What the probe found: {probe.reason or 'the counters never ran'}."
        )
    return " ".join(parts)
