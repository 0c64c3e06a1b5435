"""How long this machine's memory takes to answer, as tables, charts and sentences: by working set and by page size."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from photonlab.lab.measure import intervals
from photonlab.lab.publish.figures import COLOURS, MUTED

SMALL, HUGE = "4 KiB pages", "huge pages, where the system gave them"


def latency_table(found):
    """Lay out latencies by working set.

    Parameters
    ----------
    found : list of photonlab.machine.latency.Latency
        Small and huge pages in turn.

    Returns
    -------
    pandas.DataFrame
        One row a working set: bytes, median ns a load with each kind of pages and its range over the rounds, and the
        median of the pairwise ratios small / huge with its interval; ``huge share`` is the share of
        memory in huge pages where they were asked for (NaN: unknown), ``disturbed`` what kept the thread waiting.
    """
    rows = []
    for small, huge in zip(found[::2], found[1::2], strict=True):
        ratio = intervals.ratio(small.ns, huge.ns)
        rows.append(
            {
                "bytes": small.working_set,
                "small": small.median,
                "small low": min(small.ns),
                "small high": max(small.ns),
                "huge": huge.median,
                "huge low": min(huge.ns),
                "huge high": max(huge.ns),
                "ratio": ratio.value,
                "ratio low": ratio.low,
                "ratio high": ratio.high,
                "huge share": np.nan if huge.huge_share is None else huge.huge_share,
                "disturbed": "; ".join(dict.fromkeys(filter(None, (small.disturbed, huge.disturbed)))),
            }
        )
    return pd.DataFrame(rows)


def latency_rows(frame, per_octave):
    """Return every doubling of the working set for a printed table.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `latency_table`.
    per_octave : int
        Rows of `frame` for each doubling.

    Returns
    -------
    pandas.DataFrame
    """
    rows = frame.iloc[::per_octave]
    interval = [f"{low:.2f} to {high:.2f}" for low, high in zip(rows["ratio low"], rows["ratio high"], strict=True)]
    return pd.DataFrame(
        {
            "Working set": [size_text(size) for size in rows.bytes],
            "4 KiB pages [ns]": rows.small.to_numpy(),
            "huge pages [ns]": rows.huge.to_numpy(),
            "ratio": rows.ratio.to_numpy(),
            "95 % interval": interval,
            "in huge pages [%]": 100 * rows["huge share"].to_numpy(),
        }
    )


def size_text(size):
    """Write a power of two of bytes in KiB, MiB or GiB.

    Examples
    --------
    >>> size_text(4096), size_text(32 << 20), size_text(741440)
    ('4 KiB', '32 MiB', '724 KiB')
    """
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.3g} {unit}"
    return f"{size} bytes"


def latency_chart(frame, caches):
    """Draw latency against working set, with the caches' sizes marked.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `latency_table`.
    caches : list of (str, int)
        Of `photonlab.machine.latency.cache_steps`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots()
    for kind, label, colour in (("small", SMALL, COLOURS[1]), ("huge", HUGE, COLOURS[0])):
        axes.fill_between(
            frame.bytes, frame[f"{kind} low"], frame[f"{kind} high"], color=colour, alpha=0.2, linewidth=0
        )
        axes.plot(frame.bytes, frame[kind], color=colour, marker="o", markersize=3, label=label)
    _size_axis(axes, frame.bytes)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    axes.set_ylabel("ns a dependent load")
    _mark_caches(axes, caches, top=False)
    axes.legend(loc="upper left")
    return fig


def page_chart(frame, caches):
    """Draw how much longer a load takes with small pages than with huge ones, with the interval of the ratio.

    Parameters
    ----------
    frame, caches
        As for `latency_chart`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots(figsize=(5.8, 2.6))
    part = _with_huge_pages(frame)
    axes.axhline(1, color=MUTED, linewidth=1)
    axes.fill_between(part.bytes, part["ratio low"], part["ratio high"], color=COLOURS[0], alpha=0.2, linewidth=0)
    axes.plot(part.bytes, part.ratio, color=COLOURS[0], marker="o", markersize=3)
    sizes = part.bytes if len(part) else frame.bytes
    _size_axis(axes, sizes)
    axes.set_ylabel("time with 4 KiB pages\n/ with huge pages")
    _mark_caches(axes, [(name, size) for name, size in caches if size >= min(sizes)], top=True)
    if not len(part):
        axes.set_title("The system gave no huge pages")
    return fig


def _with_huge_pages(frame):
    """Return the working sets that the system really put into huge pages, as far as it tells."""
    return frame[frame["huge share"].isna() | (frame["huge share"] > 0.5)]


def _size_axis(axes, sizes):
    powers = [1 << p for p in range(6, 50, 2) if min(sizes) <= 1 << p <= max(sizes)]
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(powers))
    axes.xaxis.set_major_formatter(FixedFormatter([size_text(size).replace(" ", "\n") for size in powers]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("working set")


def _mark_caches(axes, caches, top):
    for name, size in caches:
        axes.axvline(size, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            name,
            (size, 1 if top else 0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2 if top else 3),
            textcoords="offset points",
            va="top" if top else "bottom",
            color=MUTED,
        )


def latency_sentence(frame, caches):
    """Say what a load costs in each cache and beyond, in the largest working set that each surely holds.

    Parameters
    ----------
    frame, caches
        As for `latency_chart`.

    Returns
    -------
    str
        Markdown.
    """
    least = frame[["small", "huge"]].min(axis=1)
    parts = []
    for name, size in caches:
        inside = frame.bytes <= size / 2
        if inside.any():
            at = inside.to_numpy().nonzero()[0][-1]
            parts.append(f"{least[at]:.3g} ns within {size_text(frame.bytes[at])} (half of {name})")
    last = frame.bytes.iloc[-1]
    beyond = "in memory" if caches and last > 2 * max(size for _, size in caches) else "in the largest working set"
    parts.append(f"**{least.iloc[-1]:.3g} ns** {beyond} ({size_text(last)})")
    return f"A dependent load takes {', '.join(parts)}: the quicker of the two sizes of pages."


def page_sentence(frame):
    """Say what the size of the pages does to the largest working set.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `latency_table`.

    Returns
    -------
    str
        Markdown.
    """
    last = frame.iloc[-1]
    share, low, high = last["huge share"], last["ratio low"], last["ratio high"]
    if not share > 0:
        why = "the system does not tell whether it used them" if np.isnan(share) else "the system gave none"
        return f"Huge pages were asked for, but {why}: nothing can be said of their effect."
    side = "slower" if low > 1 else "faster" if high < 1 else "neither clearly slower nor faster"
    return (
        f"In {size_text(last.bytes)}, {100 * share:.0f} % of it in huge pages where they were asked for, a load with "
        f"4 KiB pages is {side}: **{last.ratio:.2f}×** the time ({low:.2f} to {high:.2f})."
    )


def disturbances(frame):
    """Say how many of the measurements were disturbed and by what, from the scheduler's own account.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of `latency_table`.

    Returns
    -------
    str
    """
    sizes = dict(zip(frame.bytes, frame.disturbed, strict=True))
    disturbed = [f"{size_text(size)} {why}" for size, why in sizes.items() if why]
    if not disturbed:
        return "No walk that counts had to wait for a CPU."
    return f"Disturbed although taken again: {len(disturbed)} of {len(sizes)} working sets ({'; '.join(disturbed)})."
