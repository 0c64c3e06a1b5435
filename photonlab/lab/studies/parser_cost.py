"""What framing and decoding cost, and the proof that nothing is allocated (claim F2)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from photonlab.kernels import decode, framing
from photonlab.lab.measure import allocation, intervals, timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.systems import message_loop
from photonlab.systems.experiments.attribution import decode_for_book
from photonlab.systems.experiments.passes import BookPass

FRAMING, INDEX, BOOK_FIELDS, EVERY_FIELD = (
    "framing alone",
    "framing, index and counts",
    "fields that a book needs",
    "every field of every type",
)
TARGET_FACTOR, TARGET_NS = 1.3, 5.0
"""Decoding every field should cost at most so many times framing alone, plus so many ns a message."""


@dataclass(frozen=True)
class Target:
    """How decoding every field stands to the target, in each round.

    Attributes
    ----------
    limit_ns : float
        Median of the limits that the rounds' framing sets.
    over : intervals.Interval
        Time of decoding over that limit: at most 1 if the target is met.
    """

    limit_ns: float
    over: intervals.Interval

    @property
    def verdict(self) -> str:
        """In a word or two."""
        return "met" if self.over.high <= 1 else "missed" if self.over.low > 1 else "too close to call"


def measure(day, rounds) -> Comparison:
    """Take framing and decoding in turn over a day; every loop returns how many messages it saw.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day
    rounds : int
    """
    data, frames = day.data, framing.frames(day.messages)
    loops = {
        FRAMING: lambda: int(framing.walk(data, 0)[0]),
        INDEX: lambda: int(framing.index(data, 0, frames)[0]),
        BOOK_FIELDS: lambda: int(decode_for_book(data, 0)[0]),
        EVERY_FIELD: lambda: int(decode.decode_all(data, 0)[0]),
    }
    return timing.compare(loops, rounds=rounds, ops=day.messages, retakes=rounds // 2)


def table(compared, day):
    """Lay out the loops.

    Parameters
    ----------
    compared : Comparison
    day : photonlab.lab.studies.day.Day

    Returns
    -------
    DataFrame
    """
    gigabytes = day.data.size / day.messages
    rows = []
    for name in compared.variants:
        reading, ratio = compared.reading(name), compared.ratio(name, FRAMING)
        rows.append(
            {
                "loop": name,
                "ns a message": reading.ns,
                "95 % interval": "" if reading.ns is None else f"{reading.low:.2f} to {reading.high:.2f}",
                "M msg/s": 1e3 / reading.ns if reading.ns else None,
                "GB/s": gigabytes / reading.ns if reading.ns else None,
                "over framing": ratio.why or f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})",
                "messages seen": compared[name].checksum,
                "compile or load [s]": compared[name].compile_s,
            }
        )
    return pd.DataFrame(rows)


def target(compared) -> Target:
    """Judge decoding every field against 1.3 times framing alone plus 5 ns, round by round."""
    limits = TARGET_FACTOR * compared[FRAMING].per_op + TARGET_NS
    return Target(float(np.median(limits)), intervals.ratio(compared[EVERY_FIELD].per_op, limits, compared.seed))


def target_sentence(compared):
    """Say whether the target is met, by how much."""
    found, every = target(compared), compared.reading(EVERY_FIELD)
    how = {"met": "The target is **met**", "missed": "The target is **missed**"}
    head = how.get(found.verdict, "Whether the target is met is **too close to call**")
    return (
        f"{head}: decoding every field takes {every.text} a message where {TARGET_FACTOR:g} × framing + "
        f"{TARGET_NS:g} ns allow {found.limit_ns:.3g} ns, {found.over.value:.2f} of it "
        f"({found.over.low:.2f} to {found.over.high:.2f}). "
        f"{compared.note[:1].upper()}{compared.note[1:]}."
    )


def chart(compared):
    """Draw ns a message of each loop, with the target as a line.

    Parameters
    ----------
    compared : Comparison

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, axes = plt.subplots(figsize=(5.8, 2.6))
    limit = target(compared).limit_ns
    for place, name in enumerate(compared.variants):
        reading = compared.reading(name)
        if reading.ns is not None:
            axes.barh(place, reading.ns, color=COLOURS[place])
            axes.plot([reading.low, reading.high], [place, place], color=MUTED, linewidth=3)
    axes.axvline(limit, color=COLOURS[1], linestyle=(0, (4, 3)))
    axes.annotate(f"target {limit:.3g} ns", (limit, 1), xycoords=("data", "axes fraction"), xytext=(-3, 2), ha="right",
                  textcoords="offset points", color=COLOURS[1], fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(compared.variants)), list(compared.variants))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("ns a message")
    axes.set_ylabel("loop")
    return fig


def proofs(day):
    """Prove, or refute, that the hot kernels allocate nothing, each on the whole day.

    Parameters
    ----------
    day : photonlab.lab.studies.day.Day

    Returns
    -------
    list of photonlab.lab.measure.allocation.Proof
        The last one is that of the planted twin, which must fail.
    """
    data, book = day.data, BookPass(day.data)
    book.prepare()
    begin, end = np.uint64(0), np.uint64(data.size)
    hot = [
        (framing.walk, (data, 0)),
        (framing.index, (data, 0, framing.frames(day.messages))),
        (decode.decode_all, (data, 0)),
        (decode_for_book, (data, 0)),
        (message_loop.replay, (book.state, data, begin, end, False)),
        (allocation.allocating_walk, (data, 0)),
    ]
    return [allocation.prove(kernel, *arguments) for kernel, arguments in hot]


def proof_table(found, day):
    """Lay out what the two witnesses saw of each kernel.

    Parameters
    ----------
    found : list of photonlab.lab.measure.allocation.Proof
    day : photonlab.lab.studies.day.Day

    Returns
    -------
    DataFrame
    """
    return pd.DataFrame(
        [
            {
                "kernel": proof.kernel.removeprefix("photonlab."),
                "messages": day.messages,
                "allocating calls in its code": ", ".join(proof.allocation_calls_in_code) or "none",
                "allocations while it ran": proof.allocations_while_running,
                "allocates nothing": proof.clean,
            }
            for proof in found
        ]
    )


def allocations(found):
    """Return how many allocations the hot kernels made or have in their code, and whether the planted one was caught.

    Parameters
    ----------
    found : list of photonlab.lab.measure.allocation.Proof
        Of `proofs`.

    Returns
    -------
    tuple of (int, int)
    """
    *hot, planted = found
    made = sum(len(proof.allocation_calls_in_code) + proof.allocations_while_running for proof in hot)
    caught = bool(planted.allocation_calls_in_code) and planted.allocations_while_running > 0
    return made, int(caught)


def proof_sentence(found, day):
    """Say what the proof came to, and whether it can fail."""
    made, caught = allocations(found)
    planted = found[-1].allocations_while_running
    first = "allocates nothing" if not made else f"shows **{made:,} allocations**"
    second = (
        f"The twin that allocates once a message is caught: {planted:,} allocations in {day.messages:,} messages."
        if caught
        else "The planted allocation was **not** caught, so the proof proves nothing."
    )
    return f"Over {day.messages:,} messages the hot loop {first}, by both witnesses. {second}"
