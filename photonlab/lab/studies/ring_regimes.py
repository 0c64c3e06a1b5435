"""Three regimes of a ring: on one thread, one message at a time across cores, in batches (claims S1 to S3, S5, S7).

The reader of a stream takes what there is, up to a batch; that of the one-at-a-time regime takes one message, like its
writer. What it would take if it took all that is there is counted in runs of their own.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from photonlab.errors import UserError
from photonlab.kernels.ring_variants import HOUSE, MAKERS, added
from photonlab.lab.judge import claims
from photonlab.lab.measure import timing
from photonlab.lab.measure.comparison import Comparison
from photonlab.lab.publish.figures import COLOURS, MUTED
from photonlab.lab.studies import ring_turns
from photonlab.lab.studies.ring_turns import SLOTS, Across, Alone, PingPong, Stopwatch, Stream
from photonlab.machine import system
from photonlab.systems.experiments import ring_loops

ONE, MUTEX, UNCACHED, SEQUENCED = "one thread", "mutex", "no copies of indices", "sequenced slots"
KINDS = {ONE: "ring", MUTEX: "locked", UNCACHED: "uncached", SEQUENCED: "sequenced"}
SINGLE, PING_PONG = "one at a time", "ping-pong one way"
DRAINING = "one at a time, drained"


def of_batch(batch) -> str:
    """Name of the stream in batches of that size."""
    return SINGLE if batch == 1 else f"batch of {batch}"


def measure_alone(messages, rounds) -> Comparison:
    """Push and pop one message after the other on one pinned thread, in each kind of ring in turn, added ones too.

    Parameters
    ----------
    messages, rounds : int
    """
    queues = {name: MAKERS[kind](SLOTS) for name, kind in (KINDS | added()).items()}
    count = np.uint64(messages)
    works = {name: lambda queue=queue: int(ring_loops.alone(queue, count)) for name, queue in queues.items()}
    with system.pinned(system.choose_cpus(1)):
        found = timing.compare(works, rounds=rounds, ops=messages, same_checksums=False)
    sums = {found[name].checksum for name in (ONE, MUTEX, UNCACHED)}
    assert len(sums) == 1, f"rings read different sums: {sums}"
    _sound(found, messages)
    return found


def _sound(compared, messages):
    """Refuse the times of an added ring from which other words were read than were sent."""
    total = sum(8 * number + 28 for number in range(messages)) % 2**64
    for name, one in compared.variants.items():
        ring = next((kind for kind in added().values() if kind not in HOUSE and name.endswith(kind)), None)
        if ring and one.checksum != total:
            raise UserError(f"ring {ring!r}: other words were read than were sent ({name}); its times mean nothing")


def alone_table(found) -> pd.DataFrame:
    """Lay out push and pop on one thread: ns a message and over the ring as it is."""
    ledger = {ONE: "S1", MUTEX: "S2"}
    published = {name: claims.by_id()[claim].figure("time", name).value for name, claim in ledger.items()}
    rows = []
    for name in found.variants:
        ratio = found.ratio(name, ONE)
        rows.append(
            {
                "ring": "as it is" if name == ONE else name,
                "ns a message": found.reading(name).ns,
                "over the ring as it is": ratio.value,
                "95 %": ratio.why or f"{ratio.low:.2f}–{ratio.high:.2f}",
                "published [ns]": published.get(name),
            }
        )
    return pd.DataFrame(rows)


def alone_sentence(found) -> str:
    """Say what a message costs on one thread, and what the mutex adds."""
    one, ratio = found.reading(ONE), found.ratio(MUTEX, ONE)
    if ratio.value is None:
        return f"Nothing can be said: {ratio.why}."
    return (
        f"A message of 64 bytes, written, published, read and released on one thread, takes **{one.text}**; under an "
        f"uncontended mutex, locked once for each push and each pop, **{ratio.value:.1f} times** as long "
        f"({ratio.low:.1f} to {ratio.high:.1f})."
    )


@dataclass(frozen=True)
class Streams:
    """Streams across cores.

    Attributes
    ----------
    across : Across
        Times a message: the stream for each batch, the mutex, the sequenced ring, one thread and the ping-pong.
    batches : list of int
    drained : dict of str to float
        Messages that the reader took at a time, on average, by stream.
    added : tuple of str
        Rings that somebody added, and the house's own with the same copies before them.
    """

    across: Across
    batches: list
    drained: dict
    added: tuple = ()

    def share(self) -> dict:
        """Arguments of `record`: which share of a message's time is not that of the ring on one thread."""
        row = self.across.ratio(ONE, SINGLE)
        if row["value"] is None:
            return {"value": None, "unit": "%", "note": row["note"]}
        ends = {end: 100 * (1 - row[other]) for end, other in (("value", "value"), ("low", "high"), ("high", "low"))}
        return {**ends, "unit": "%", "note": row["note"]}

    def of(self, batch) -> dict:
        """Arguments of `record`: ns a message in batches."""
        return self.across.time(of_batch(batch)) if batch in self.batches else self._not_run(batch, "ns")

    def gain(self, batch) -> dict:
        """Arguments of `record`: one at a time over batches."""
        ran = batch in self.batches
        return self.across.ratio(SINGLE, of_batch(batch)) if ran else self._not_run(batch, "×")

    def _not_run(self, batch, unit) -> dict:
        return {"value": None, "unit": unit, "note": f"batches of {batch} were not run"}

    def drain(self) -> dict:
        """Arguments of `record`: messages that the reader finds at a time."""
        if self.across.comparison is None:
            return {"value": None, "unit": "1", "note": self.across.why}
        return {"value": self.drained[DRAINING], "unit": "1", "note": self.across.note}


def measure_streams(messages, batches, rounds) -> Streams:
    """Send messages from one core to another, in batches of each size in turn.

    Parameters
    ----------
    messages : int
        In a run.
    batches : list of int
        With 1 in it.
    rounds : int
    """
    why = ring_turns.refused()
    if why:
        return Streams(ring_turns.nothing(why), batches, {})
    watch, slots = Stopwatch(), max(SLOTS, *batches)
    works = {of_batch(batch): Stream(watch, MAKERS["ring"](slots), messages, batch) for batch in batches}
    works[DRAINING] = Stream(watch, MAKERS["ring"](slots), messages, 1, drain=slots)
    for name in (UNCACHED, SEQUENCED, MUTEX):
        works[f"{SINGLE}, {name}"] = Stream(
            watch, MAKERS[KINDS[name]](slots), messages // (8 if name == MUTEX else 1), 1
        )
    for name, kind in added().items():
        for batch in batches:
            works[f"{of_batch(batch)}, {name}"] = Stream(watch, MAKERS[kind](slots), messages, batch)
    works[f"{of_batch(batches[-1])}, {SEQUENCED}"] = Stream(watch, MAKERS["sequenced"](slots), messages, batches[-1])
    works[ONE] = Alone(watch, MAKERS["ring"](slots), messages)
    works[PING_PONG] = PingPong(watch, max(messages // 4, 1), to=32, line=True)
    ops = {name: int(work.spans.size if name == PING_PONG else work.count) for name, work in works.items()}
    across = ring_turns.in_turn(works, watch, ops, rounds)
    _sound(across.comparison, messages)
    drained = {name: float(np.median(work.drained)) for name, work in works.items() if isinstance(work, Stream)}
    return Streams(across, list(batches), drained, tuple(added()))


def stream_table(found) -> pd.DataFrame:
    """Lay out the streams: ns a message, against one at a time, and what the reader took at a time."""
    if found.across.comparison is None:
        return pd.DataFrame([{"stream": "none", "why": found.across.why}])
    ledger = claims.by_id()
    published = {
        SINGLE: ledger["S3"].figure("time", "across cores").value,
        "batch of 512": ledger["S5"].figure("time", "batch of 512").value,
        ONE: ledger["S1"].figure("time", ONE).value,
        PING_PONG: ledger["S3"].figure("time", PING_PONG).value,
    }
    rows, ends = [], {of_batch(found.batches[0]), of_batch(found.batches[-1])}
    for name in found.across.comparison.variants:
        stream, _, ring = name.partition(", ")
        if ring in found.added and stream not in ends:
            continue  # the chart shows them
        ns = found.across.ns(name)
        rows.append(
            {
                "stream": name,
                "ns a message": ns,
                "M messages/s": None if ns is None else 1e3 / ns,
                "one at a time over this": found.across.ratio(SINGLE, name)["value"],
                "95 %": found.across.interval(SINGLE, name),
                "read at a time": found.drained.get(name),
                "published [ns]": published.get(name),
            }
        )
    return pd.DataFrame(rows)


def stream_sentence(found) -> str:
    """Say what a message costs across cores, alone and in batches, and how that compares with a bare ping-pong."""
    across, last = found.across, of_batch(found.batches[-1])
    if across.comparison is None:
        return f"Nothing was sent across cores: {across.why}."
    single, bare, gain = across.time(SINGLE), across.ratio(SINGLE, PING_PONG), across.ratio(SINGLE, last)
    if None in (single["value"], bare["value"], gain["value"]):
        return f"Nothing can be said: {single['note'] or bare['note'] or gain['note']}."
    side = "less than" if bare["high"] < 1 else "more than" if bare["low"] > 1 else "about as much as"
    why = ", for a stream's transfers overlap, and those of a ping-pong cannot" if bare["high"] < 1 else ""
    return (
        f"One at a time, a message takes **{single['value']:.1f} ns** from core to core, {side} a bare ping-pong one "
        f"way ({bare['value']:.2f} times, {bare['low']:.2f} to {bare['high']:.2f}){why}. What the ring takes on one "
        f"thread is {100 - found.share()['value']:.0f} % of it. In batches of {found.batches[-1]} a message takes "
        f"**{across.ns(last):.2f} ns**, {gain['value']:.1f} times less ({gain['low']:.1f} to {gain['high']:.1f}). "
        f"A reader that takes all that is there finds {found.drained[DRAINING]:.2f} messages at a time."
    )


def stream_chart(found, handed):
    """Draw ns a message of the stream, and ns until a batch has been handed over, against the batch.

    Parameters
    ----------
    found : Streams
    handed : photonlab.lab.studies.ring_lockstep.Handed
    """
    if found.across.comparison is None:
        return ring_turns.empty_chart(found.across.why)
    fig, panels = plt.subplots(2, 1, figsize=(5.8, 5.6), sharex=True)
    batches = found.batches
    _line(panels[0], batches, [found.across.time(of_batch(batch)) for batch in batches], COLOURS[0])
    for number, name in enumerate(found.added):
        rows = [found.across.time(f"{of_batch(batch)}, {name}") for batch in batches]
        _line(panels[0], batches, rows, COLOURS[2 + number % 4], label=name)
    panels[0].axhline(
        found.across.ns(PING_PONG), color=MUTED, linestyle=(0, (4, 3)), label="ping-pong of a line, one way"
    )
    panels[0].axhline(found.across.ns(ONE), color=MUTED, linestyle=":", label="push and pop on one thread")
    panels[0].set_ylabel("ns a message, streaming")
    panels[0].legend(loc="center right", bbox_to_anchor=(1, 0.7))
    _line(panels[1], handed.batches, [handed.time(batch) for batch in handed.batches], COLOURS[1])
    panels[1].set_ylabel("ns until a batch is read")
    for panel in panels:
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    panels[1].set_xticks(batches, [str(batch) for batch in batches])
    panels[1].set_xlabel("messages of 64 bytes in a batch")
    return fig


def _line(axes, batches, rows, colour, label=None):
    values = [row["value"] for row in rows]
    axes.plot(batches, values, "o-", color=colour, label=label)
    lows, highs = [row.get("low") or row["value"] for row in rows], [row.get("high") or row["value"] for row in rows]
    axes.fill_between(batches, lows, highs, color=colour, alpha=0.2, linewidth=0)
