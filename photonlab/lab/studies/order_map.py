"""Probes that searches take in the order map and in the order index, on the references of a day (claim R5)."""

import pandas as pd

from photonlab.kernels import hashing
from photonlab.systems.experiments import probing

PUBLISHED_SLOTS = 1 << 24
AS_PUBLISHED = "map of 2^24 slots, as published"
GROWING = "map that doubles when half full"
DIRECTORY = "directory of the order index, at the end"


def measure(day, index):
    """Keep a day's live references in two order maps, and search the members of an order index's directory.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    index : photonlab.kernels.order_index.OrderIndex
        After a replay of the day.

    Returns
    -------
    dict of str to photonlab.systems.experiments.probing.Probing
    """
    return {
        AS_PUBLISHED: probing.probe_day(day.data, initial=PUBLISHED_SLOTS, slots=PUBLISHED_SLOTS),
        GROWING: probing.probe_day(day.data, slots=PUBLISHED_SLOTS),
        DIRECTORY: probing.probe_members(index.directory),
    }


def table(found):
    """Lay out the probes.

    Parameters
    ----------
    found : dict of str to photonlab.systems.experiments.probing.Probing

    Returns
    -------
    DataFrame
    """
    rows = []
    for name, one in found.items():
        rows.append(
            {
                "map": name,
                "slots": int(one.map.state[hashing.SIZE]),
                "members at most": int(one.tally[probing.MEMBERS]),
                "load at most [%]": 100 * one.load,
                "searches": int(one.tally[probing.SEARCHES]),
                "average probes": one.average,
                "longest": one.longest,
            }
        )
    return pd.DataFrame(rows)


def row(name, one):
    """Return the arguments of `record` for a map: the published configuration is the one that is judged."""
    note = f"load {100 * one.load:.2f} % at most, longest {one.longest}"
    value = {"value": one.average} if one.tally[probing.SEARCHES] else {"value": None}
    variant = "" if name == AS_PUBLISHED else name
    return {"statistic": "probe length", "variant": variant, **value, "unit": "1", "note": note}


def sentence(found):
    """Say what the averages are worth, given how full the tables are.

    Parameters
    ----------
    found : dict of str to photonlab.systems.experiments.probing.Probing

    Returns
    -------
    str
        Markdown.
    """
    wide, tight = found[AS_PUBLISHED], found[GROWING]
    text = (
        f"With 2^24 slots a search looks at **{wide.average:.3f}** slots on average and at {wide.longest} at most, but "
        f"no more than {100 * wide.load:.2f} % of the table is in use: any hash that spreads does that. At loads "
        f"up to {100 * tight.load:.0f} % the same references take {tight.average:.3f} probes, {tight.longest} at most. "
    )
    directory = found[DIRECTORY]
    chunks = int(directory.tally[probing.MEMBERS])
    return text + (
        f"The book itself asks its directory for chunks of 4,096 references in place of single ones: "
        f"{directory.average:.3f} probes for each of the {chunks:,} chunks that live orders need in the end."
    )
