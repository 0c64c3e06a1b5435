"""Rounds from tick to trade by placement (claim T7), and at a fixed rate, counted from when each tick was due."""

import contextlib
import threading

import numpy as np
import pandas as pd

from photonlab.lab.measure import intervals
from photonlab.lab.studies.tick_to_trade import BLOCKING, PERCENTILES, SPINNING, Rounds, refused
from photonlab.machine import system
from photonlab.systems import spin
from photonlab.systems.tick_to_trade import exchange as exchanges
from photonlab.systems.tick_to_trade import loops
from photonlab.systems.tick_to_trade import run as runs
from photonlab.systems.transports import kinds

OWN, SHARED = f"{SPINNING}, own cores", f"{SPINNING}, a busy thread on the engine's core"
WAITING, TOGETHER = f"{BLOCKING}, own cores", f"{BLOCKING}, both on one core"


def measure(rounds, taken, warm_up, seconds=60.0) -> dict:
    """Make rounds by placement, in turn.

    Returns
    -------
    dict of str to Rounds
    """
    found = {name: Rounds(why=refused()) for name in (OWN, SHARED, WAITING, TOGETHER)}
    if refused():
        return found
    with runs.Exchange(rounds + warm_up + 1) as exchange:
        for _ in range(taken):
            for name, one in found.items():
                place = runs.place(shared=name == TOGETHER)
                kind = kinds.KINDS[SPINNING if name in (OWN, SHARED) else BLOCKING]
                with _busy(place.engine) if name == SHARED else contextlib.nullcontext():
                    trip = exchange.run(kind, rounds, warm_up=warm_up, placement=place, seconds=seconds)
                one.spans.append(trip.spans)
                one.where = place.text(kind) + (f", busy thread {place.engine}" if name == SHARED else "")
                one.waited += trip.usage.waiting_ns or 0
    return found


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


def at_rate(per_second, rounds, warm_up, seconds=60.0) -> dict:
    """Make rounds at fixed rates by `SPINNING`, each counted from when its tick was due, whatever held it up.

    Returns
    -------
    dict of int to Rounds
        By the rate; 0 for each as soon as the one before is over.
    """
    found = {rate: Rounds(why=refused()) for rate in (0, *per_second)}
    if refused():
        return found
    with runs.Exchange(rounds + warm_up + 1) as exchange:
        for rate, one in found.items():
            trip = exchange.run(
                kinds.KINDS[SPINNING],
                rounds,
                warm_up=warm_up,
                per_second=rate,
                seconds=seconds + rounds / (rate or 1e9),
            )
            one.spans.append(trip.spans)
    return found


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
