"""Rounds from tick to trade by placement, of a polling thread too (claim T7), and at a fixed rate from when due."""

import contextlib
import threading

import numpy as np
import pandas as pd

from photonlab.lab.measure import intervals
from photonlab.lab.studies.tick_to_trade import BLOCKING, PERCENTILES, SPINNING, SQPOLL, Rounds
from photonlab.machine import system
from photonlab.systems import spin
from photonlab.systems.tick_to_trade import exchange as exchanges
from photonlab.systems.tick_to_trade import loops
from photonlab.systems.tick_to_trade import run as runs
from photonlab.systems.transports import kinds
from photonlab.systems.transports import link as links

OWN, SHARED = f"{SPINNING}, own cores", f"{SPINNING}, a busy thread on the engine's core"
WAITING, TOGETHER = f"{BLOCKING}, own cores", f"{BLOCKING}, both on one core"
THREAD_OWN, THREAD_THERE, THREAD_HERE, THREAD_AGAINST = (
    "SQ thread on a core of its own; both sides spin",
    "SQ thread on the exchange's core; that side waits",
    "SQ thread on the engine's core; that side waits",
    "SQ thread on the engine's core; both sides spin",
)
_FEWER = 100
"""A thread that polls and one that spins on one core take turns by time slices of milliseconds: rounds are fewer."""


def measure(bench, rounds, taken, warm_up, seconds=60.0) -> dict:
    """Make rounds by placement, in turn.

    Parameters
    ----------
    bench : photonlab.lab.studies.tick_to_trade.Bench
    rounds, taken, warm_up : int
        Rounds of a run, runs of each placement, and rounds before those that count.
    seconds : float
        Deadline of a run.

    Returns
    -------
    dict of str to Rounds
    """
    found = {name: Rounds(why=bench.why) for name in (OWN, SHARED, WAITING, TOGETHER)}
    if bench.why:
        return found
    for _ in range(taken):
        for name, one in found.items():
            place = runs.place(shared=name == TOGETHER)
            kind = kinds.KINDS[SPINNING if name in (OWN, SHARED) else BLOCKING]
            with _busy(place.engine) if name == SHARED else contextlib.nullcontext():
                trip = bench.exchange.run(kind, rounds, warm_up=warm_up, placement=place, seconds=seconds)
            one.spans.append(trip.spans)
            one.where = place.text(kind) + (f", busy thread {place.engine}" if name == SHARED else "")
            one.waited += trip.usage.waiting_ns or 0
    return found


def threads(bench, rounds, taken, warm_up, seconds=60.0) -> dict:
    """Make rounds through io_uring with SQPOLL, its thread on one core after the other, in turn.

    Who shares a core with it waits in its calls, as far as that is not what is tried.

    Parameters
    ----------
    bench, rounds, taken, warm_up, seconds
        As of `measure`.

    Returns
    -------
    dict of str to Rounds
    """
    found = {name: Rounds(why=bench.why) for name in (THREAD_OWN, THREAD_THERE, THREAD_HERE, THREAD_AGAINST)}
    if bench.why:
        return found
    place, cpus, kind = runs.place(), system.choose_cpus(3), kinds.KINDS[SQPOLL]
    engine_waits = kind._replace(mode=links.URING_WAITS, peer=links.SPINNING)
    if len(cpus) < 3:
        found[THREAD_OWN].why = f"needs three CPUs, and there are {len(cpus)}: too few for an SQ thread of its own"
    if why := kinds.refused(kind, place.exchange):
        return {name: Rounds(why=why) for name in found}
    plan = {
        THREAD_OWN: (kind, cpus[-1], rounds),
        THREAD_THERE: (kind, place.exchange, rounds),
        THREAD_HERE: (engine_waits, place.engine, rounds),
        THREAD_AGAINST: (kind._replace(peer=links.SPINNING), place.engine, max(rounds // _FEWER, 10)),
    }
    for _ in range(taken):
        for name, (kind, polling, count) in plan.items():
            if not found[name].why:
                here = place._replace(polling=polling)
                trip = bench.exchange.run(
                    kind, count, warm_up=warm_up * count // rounds, placement=here, seconds=seconds
                )
                found[name].spans.append(trip.spans)
                found[name].where = f"engine CPU {here.engine}, exchange {here.exchange}, SQ thread {polling}"
                found[name].waited += trip.usage.waiting_ns or 0
    return found


def threads_sentence(found) -> str:
    """Say where the thread that polls does least harm, and what is missing for it."""
    rows = {name: one.ns(50) for name, one in found.items() if one.ns(50) is not None}
    if not rows:
        return f"No thread was placed: {found[THREAD_OWN].why}."
    best, worst = min(rows, key=rows.get), max(rows, key=rows.get)
    text = (
        f"Fastest, with {rows[best]:,.0f} ns at the median: **{best}**. Slowest, with {rows[worst]:,.0f} ns, "
        f"{rows[worst] / rows[best]:,.0f} times as long: {worst}."
    )
    if found[THREAD_OWN].spans:
        return f"{text} There is a core for each of the three."
    return (
        f"{text} A core of its own for the thread {found[THREAD_OWN].why}; the source has five cores. Whoever shares a "
        "core with the thread must wait in its calls, and pays for being woken; if it spins, the two take turns by the "
        "scheduler's time slices."
    )


@contextlib.contextmanager
def _busy(cpu):
    """Let a thread spin on a CPU for the length of a block."""
    flags = exchanges.idle_flags()
    loops.burn(flags)
    flags[:] = 0
    flags[spin.DEADLINE] = spin.clock_now() + np.uint64(1 << 62)

    def run():
        system.pin([cpu])
        loops.burn(flags)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        flags[spin.STOP] = spin.ENDED
        thread.join()


def effect(found) -> dict:
    """Arguments of `record`: p99 over p50 with a busy thread on the engine's core, over that on cores of their own."""
    one, other = found[SHARED], found[OWN]
    if not one.spans or not other.spans:
        return {"value": None, "unit": "×", "note": one.why or other.why}
    shared, own = (each.each(99) / each.each(50) for each in (one, other))
    ratio = intervals.ratio(shared, own)
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high, "unit": "×", "note": one.where}


def sentence(found) -> str:
    """Say what sharing a core does to the tail, and what being on one core does for calls that wait."""
    if not found[OWN].spans:
        return f"Nothing was measured: {found[OWN].why}."
    ratio = effect(found)
    tails = [found[name].ns("99.9") for name in (OWN, SHARED)]
    tail = f" At p99.9 it is {tails[0]:,.0f} against {tails[1]:,.0f} ns." if None not in tails else ""
    apart, together = (found[name].ns(50) for name in (WAITING, TOGETHER))
    return (
        f"Beside a busy thread on the engine's core, p99 over p50 is **{ratio['value']:.2f} times** "
        f"({ratio['low']:.2f} to {ratio['high']:.2f}) that on cores of their own.{tail} "
        f"Calls that wait take {apart:,.0f} ns across cores "
        f"and {together:,.0f} ns where both sides share one: the difference is what waking another core costs."
    )


def at_rate(bench, per_second, rounds, warm_up, seconds=60.0) -> dict:
    """Make rounds at fixed rates by `SPINNING`, each counted from when its tick was due, whatever held it up.

    Returns
    -------
    dict of int to Rounds
        By the rate; 0 for each as soon as the one before is over.
    """
    found = {rate: Rounds(why=bench.why) for rate in (0, *per_second)}
    if bench.why:
        return found
    for rate, one in found.items():
        trip = bench.exchange.run(
            kinds.KINDS[SPINNING],
            rounds,
            warm_up=warm_up,
            per_second=rate,
            seconds=seconds + rounds / (rate or 1e9),
        )
        one.spans.append(trip.spans)
    return found


def rate_sentence(found) -> str:
    """Say what counting from when a tick was due does to the tail."""
    rates = [rate for rate, one in found.items() if rate and one.spans]
    if not rates:
        return f"Nothing was measured: {found[0].why}."
    closed, paced = found[0], {rate: found[rate] for rate in rates}
    worst = max(rates, key=lambda rate: paced[rate].ns(99) or 0.0)
    high, usual = paced[worst].ns(99), closed.ns(99)
    if high is None or usual is None:
        return "There are too few rounds to speak of the tail."
    middles = sorted({f"{one.ns(50):,.0f}" for one in paced.values()}, key=lambda ns: float(ns.replace(",", "")))
    what = "stalls hold up rounds that fall due meanwhile" if high > 1.5 * usual else "few rounds fall into a stall"
    return (
        f"At {' and '.join(f'{rate:,}' for rate in rates)} rounds a second the median is "
        f"{' to '.join(dict.fromkeys((middles[0], middles[-1])))} ns, against {closed.ns(50):,.0f} ns where each round "
        "begins when the one before is over. "
        f"The largest p99, at {worst:,} a second, is **{high:,.0f} ns**, {high / usual:.1f} times that of rounds one "
        f"after the other: {what}."
    )


def rate_table(found) -> pd.DataFrame:
    """Lay out the percentiles by rate."""
    return pd.DataFrame(
        [
            {"rounds due a second": f"{rate:,}" if rate else "as soon as the one before is over"}
            | {f"p{percent} [ns]": one.ns(percent) for percent in PERCENTILES}
            | {"rounds": sum(map(len, one.spans))}
            for rate, one in found.items()
        ]
    )
