"""Policies by stream of references: probes, longest runs and times, from the feed's own to those of an enemy."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from photonlab.kernels.hash_policies import POLICIES
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.studies.hash_workload import FIBONACCI, FIND, IDENTITY, INSERT, PAGED, PRIME, UNORDERED
from photonlab.systems.experiments import map_work, maps, native_map
from photonlab.systems.experiments import reference_streams as streams


def _slots(live):
    """Slots of a table for so many references: the power of two above twice as many."""
    return 1 << (2 * live - 1).bit_length()


def _crowded(policy, keys, slots):
    """Whether 64 references or more share each home: inserting them would take the square of their number."""
    return policy == IDENTITY and np.unique(keys & np.uint64(slots - 1)).size < keys.size // 64


def stream_table(live, seed, bound=1 << 12):
    """Count the probes of each policy on each stream, at 90 % hits.

    Parameters
    ----------
    live : int
        References in the table.
    seed : int
    bound : int
        Slots a search looks at, at most. Where 64 references or more share each home under identity, inserting them
        would take the square of their number, and the pair is left out.

    Returns
    -------
    DataFrame
        One row a policy; average probes and longest run by stream.
    """
    slots = _slots(live)
    rows = {name: {"policy": name} for name in POLICIES}
    for stream, make in streams.STREAMS.items():
        keys = make(live, seed)
        asked = streams.queries(keys, live, seed=seed)
        for name, row in rows.items():
            crowded = _crowded(name, keys, slots)
            if not crowded:
                one = maps.Flat(name, slots=slots)
                one.insert(keys)
                tally = one.probes(asked, bound)
            row[f"{stream}: probes"] = None if crowded else int(tally[map_work.LOOKED]) / live
            row[f"{stream}: longest run"] = None if crowded else one.longest_run()
    frame = pd.DataFrame(list(rows.values()))
    for column in [column for column in frame if column.endswith("run")]:
        frame[column] = pd.Series([row[column] for row in rows.values()], dtype=object)
    return frame


def enemy_table(count=512, bits=11):
    """Count average probes of each policy on references made to meet in one slot under each of the policies.

    Parameters
    ----------
    count, bits : int
        References, and log2 of the slots.

    Returns
    -------
    DataFrame
        One row a policy, one column an enemy.
    """
    rows = []
    for name in POLICIES:
        row = {"policy": name}
        for enemy in streams.ENEMIES:
            keys = streams.adversarial(enemy, count, bits)
            one = maps.Flat(name, slots=1 << bits)
            one.insert(keys)
            row[f"against {enemy}"] = int(one.probes(keys)[map_work.LOOKED]) / count
        rows.append(row)
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class StreamTimes:
    """What insertions and searches of the maps took, by stream.

    Attributes
    ----------
    live : int
        References in each map.
    inserts, finds : dict of str to Comparison
        By stream; searches are 90 % hits in random order.
    """

    live: int
    inserts: dict
    finds: dict


def times(live, rounds, seed) -> StreamTimes:
    """Give the references of every stream to the open tables, the paged index and a chained map, in turn.

    Parameters
    ----------
    live, rounds, seed : int
    """
    slots = _slots(live)
    inserts, finds = {}, {}
    for stream, make in streams.STREAMS.items():
        keys = make(live, seed)
        asked = streams.queries(keys, live, seed=seed)
        every = {name: maps.Flat(name, slots=slots) for name in POLICIES if not _crowded(name, keys, slots)}
        every[PAGED] = maps.Paged(live)
        if native_map.library()[0]:
            every[UNORDERED] = maps.Unordered(live)
        else:
            every[PRIME] = maps.Chained("prime", live)
        inserts[stream] = _compare(every, rounds, live, lambda one, keys=keys: one.insert(keys), clear=True)
        finds[stream] = _compare(every, rounds, live, lambda one, asked=asked: one.find(asked))
    return StreamTimes(live, inserts, finds)


def _compare(every, rounds, ops, call, clear=False) -> Comparison:
    setup = {name: one.clear for name, one in every.items()} if clear else None
    calls = {name: lambda one=one: call(one) for name, one in every.items()}
    return timing.compare(calls, rounds=rounds, ops=ops, setup=setup, retakes=rounds // 2)


def times_table(found):
    """Lay out ns an operation.

    Parameters
    ----------
    found : StreamTimes

    Returns
    -------
    DataFrame
        One row a map; insert and find by stream, missing where inserting would take the square of the references.
    """
    rows = {}
    for stream in found.inserts:
        for job, compared in ((INSERT, found.inserts[stream]), (FIND, found.finds[stream])):
            for name in compared.variants:
                row = rows.setdefault(name, {"map": name})
                row[f"{stream}: {job} [ns]"] = compared.reading(name).ns
    return pd.DataFrame(list(rows.values()))


def times_sentence(found):
    """Say where the paged index wins over Fibonacci and where it loses.

    Parameters
    ----------
    found : StreamTimes

    Returns
    -------
    str
        Markdown.
    """
    parts = []
    for stream, compared in found.finds.items():
        ratio, insert = compared.ratio(FIBONACCI, PAGED), found.inserts[stream].ratio(FIBONACCI, PAGED)
        if ratio.value is None or insert.value is None:
            parts.append(f"{stream}, it cannot be told ({ratio.why or insert.why})")
            continue
        interval = f"({ratio.low:.2f} to {ratio.high:.2f})"
        parts.append(f"{stream}, {ratio.value:.2f} {interval}, inserting {insert.value:.2f}")
    return (
        f"Searching by Fibonacci takes so many times as long as by the paged index, by stream: {'; '.join(parts)}. The "
        "paged index is made for references that come nearly in sequence, as an exchange's do, and not for any others."
    )


def enemy_times(rounds, count=512, bits=11):
    """Time searches of every policy for references that were made to meet in one slot under each of the policies.

    Parameters
    ----------
    rounds, count, bits : int
        References, and log2 of the slots.

    Returns
    -------
    DataFrame
        ns a search; one row a policy, one column an enemy.
    """
    rows = {name: {"policy": name} for name in POLICIES}
    for enemy in streams.ENEMIES:
        keys = streams.adversarial(enemy, count, bits)
        every = {name: maps.Flat(name, slots=1 << bits) for name in POLICIES}
        for one in every.values():
            one.insert(keys)
        compared = _compare(every, rounds, count, lambda one, keys=keys: one.find(keys))
        for name, row in rows.items():
            row[f"against {enemy} [ns]"] = compared.reading(name).ns
    return pd.DataFrame(list(rows.values()))
