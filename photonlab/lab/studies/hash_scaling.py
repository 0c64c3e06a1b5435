"""A search's time by how full the table is, and by how large it is: from the first-level cache to memory."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.lab.measure import timing
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.studies.hash_workload import AHEAD, FIBONACCI, NEIGHBOURS, POWER, SPLITMIX, UNORDERED
from photonlab.machine import system
from photonlab.systems.experiments import map_work, maps, native_map
from photonlab.systems.experiments import reference_streams as streams

FILL = 0.477
"""Load of the tables by size: 500,000 of 2^20 slots."""

BY_LOAD = {
    f"{FIBONACCI}, as on the feed": (FIBONACCI, streams.as_on_the_feed),
    f"{FIBONACCI}, random": (FIBONACCI, streams.random),
    f"{SPLITMIX}, random": (SPLITMIX, streams.random),
    f"{NEIGHBOURS}, as on the feed": (NEIGHBOURS, streams.as_on_the_feed),
}
"""Policy and stream of each curve by load: with a hash that mixes it makes no difference which stream."""


def by_load(bits, loads, searches, rounds, seed):
    """Search tables of 2^bits slots at several loads, 90 % hits, in turn at each.

    Parameters
    ----------
    bits : int
    loads : list of float
    searches, rounds, seed : int

    Returns
    -------
    DataFrame
        Columns load, curve, ns, low, high, probes.
    """
    rows = []
    for load in loads:
        tables, asked = {}, {}
        for name, (policy, make) in BY_LOAD.items():
            keys = make(int(load * (1 << bits)), seed)
            asked[name] = streams.queries(keys, searches, seed=seed)
            tables[name] = maps.Flat(policy, slots=1 << bits)
            tables[name].insert(keys)
        compared = timing.compare(
            {name: lambda one=one, q=asked[name]: one.find(q) for name, one in tables.items()},
            rounds=rounds, ops=searches, same_checksums=False, retakes=rounds // 2,
        )  # fmt: skip
        for name, one in tables.items():
            reading, tally = compared.reading(name), one.probes(asked[name])
            probes = int(tally[map_work.LOOKED]) / searches
            rows.append((load, name, reading.ns, reading.low, reading.high, probes))
    return pd.DataFrame(rows, columns=["load", "curve", "ns", "low", "high", "probes"])


def by_size(smallest, largest, searches, rounds, seed):
    """Search maps of several sizes, 90 % hits, in turn at each.

    Parameters
    ----------
    smallest, largest : int
        log2 of the slots; every other one between them is taken.
    searches, rounds, seed : int
        As many searches a call as there are references, or `searches` if they are more.

    Returns
    -------
    DataFrame
        Columns bytes (of the flat table), curve, ns, low, high.
    """
    rows = []
    for bits in range(smallest, largest + 1, 2):
        live = int(FILL * (1 << bits))
        keys = streams.sequential(live)
        count = max(searches, live)  # else the searches themselves fit into a cache
        asked = streams.queries(keys, count, seed=seed)
        every = {name: maps.Flat(name, slots=1 << bits) for name in (FIBONACCI, SPLITMIX)}
        every[AHEAD] = maps.Flat(FIBONACCI, slots=1 << bits, ahead=map_work.AHEAD)
        every[POWER] = maps.Chained("power of two", live)
        if native_map.library()[0]:
            every[UNORDERED] = maps.Unordered(live)
        for one in every.values():
            one.insert(keys)
        compared = timing.compare(
            {name: lambda one=one: one.find(asked) for name, one in every.items()},  # noqa: B023 (used here only)
            rounds=rounds, ops=count, retakes=rounds // 2,
        )  # fmt: skip
        for name in every:
            reading = compared.reading(name)
            rows.append((16 << bits, name, reading.ns, reading.low, reading.high))
    return pd.DataFrame(rows, columns=["bytes", "curve", "ns", "low", "high"])


def load_chart(found):
    """Draw ns a search and probes by load.

    Parameters
    ----------
    found : DataFrame
        Of `by_load`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, (time, probes) = plt.subplots(2, 1, figsize=(5.8, 5.2), sharex=True)
    for (name, part), colour in zip(found.groupby("curve", sort=False), COLOURS, strict=False):
        time.plot(part.load, part.ns.astype(float), color=colour, label=name, marker="o")
        probes.plot(part.load, part.probes, color=colour, marker="o")
    time.set_ylabel("ns a search")
    time.set_ylim(0)
    time.legend()
    probes.set_yscale("log")
    probes.set_ylabel("slots a search")
    probes.set_xlabel("share of the slots in use")
    return fig


def size_chart(found):
    """Draw ns a search by the size of the flat table, with the caches' sizes as the system tells them.

    Parameters
    ----------
    found : DataFrame
        Of `by_size`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots()
    for (name, part), colour in zip(found.groupby("curve", sort=False), COLOURS, strict=False):
        axes.plot(part.bytes, part.ns.astype(float), color=colour, label=name, marker="o")
    axes.set_xscale("log", base=2)
    axes.set_ylim(0)
    sizes = sorted(found.bytes.unique())
    axes.set_xticks(sizes, [_size(size) for size in sizes])
    for level, size in caches().items():
        if sizes[0] <= size <= sizes[-1]:
            axes.axvline(size, color=MUTED, linewidth=1, linestyle="--")
            axes.annotate(level, (size, 1), xycoords=("data", "axes fraction"), xytext=(-3, -10),
                          textcoords="offset points", ha="right", color=MUTED, fontsize=9)  # fmt: skip
    axes.set_xlabel("size of the flat table; chained maps of as many references")
    axes.set_ylabel("ns a search")
    axes.legend()
    return fig


def caches() -> dict:
    """Return the sizes in bytes of the data caches of the first processor, as far as the system tells."""
    found = {}
    for number in range(5):
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{number}/"
        kind, level, size = (system.read_text(folder + part) for part in ("type", "level", "size"))
        if size and level and (kind or "").strip() in ("Data", "Unified"):
            size = size.strip()
            factor = {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 1)
            found[f"L{level.strip()}"] = int(size.rstrip("KM")) * factor
    return found


def _size(count):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"


def load_sentence(found):
    """Say what the last tenth of the slots costs.

    Parameters
    ----------
    found : DataFrame
        Of `by_load`.

    Returns
    -------
    str
        Markdown.
    """
    parts = []
    for name, part in found.groupby("curve", sort=False):
        half, full = part.iloc[int(np.argmin(np.abs(part.load - 0.5)))], part.iloc[-1]
        parts.append(f"{name}: {half.probes:.2f} slots at {half.load:g}, {full.probes:.1f} at {full.load:g}")
    return "Slots looked at in a search: " + "; ".join(parts) + "."
