"""Is the ring's order right? ThreadSanitizer on its kernels, as they are and with flaws (claim S11)."""

import time
from dataclasses import dataclass

import pandas as pd

from photonlab.systems.experiments import sanitizer
from photonlab.systems.experiments.ring_flaws import ACQUIRE, EARLY, FLAWS, RELEASE, SOUND
from photonlab.systems.experiments.sanitized_ring import SLOTS
from photonlab.systems.experiments.sanitizer import Run

WEAKENED = (RELEASE, ACQUIRE, EARLY)
"""The flaws of the producer's index; `FLAWS` has those of the way back too."""


@dataclass(frozen=True)
class Sanitized:
    """The ring under ThreadSanitizer.

    Attributes
    ----------
    runs : tuple of Run
        The ring as it is first.
    seconds : float
        Of all, compilation included.
    """

    runs: tuple[Run, ...]
    seconds: float

    @property
    def why(self) -> str:
        """Why there is no result for the ring as it is; empty if there is one."""
        return self.runs[0].why

    def rows(self) -> list[dict]:
        """Arguments of `record` for claim S11; a flaw beyond the published one is a variant."""
        sound, *flawed = self.runs
        found = [_row("warnings", SOUND, sound, sound.warnings)]
        for run in flawed:
            caught = int(bool(run.races))
            if run.name == RELEASE:
                found.append(_row("weakened ring caught", "", run, caught))
            else:
                found.append(_row("weakened ring caught", run.name, run, caught))
        if not any(run.name == RELEASE for run in flawed):
            missing = Run(RELEASE, why="no ring with a weakened release was run")
            found.append(_row("weakened ring caught", "", missing, 0))
        return found


def measure(messages, flaws=WEAKENED, flawed_messages=20_000) -> Sanitized:
    """Pass messages through the ring as it is and through flawed ones, each in a process with the sanitizer.

    Parameters
    ----------
    messages : int
        Through the ring as it is.
    flaws : sequence of str
        Keys of `ring_flaws.FLAWS`; the others are left out.
    flawed_messages : int
        Through each flawed ring.

    Returns
    -------
    Sanitized
    """
    begin = time.monotonic()
    runs = sanitizer.run_all(messages, list(flaws), flawed_messages)
    return Sanitized(tuple(runs), time.monotonic() - begin)


def table(found) -> pd.DataFrame:
    """Lay out what the sanitizer said of each ring."""
    rows = []
    for run in found.runs:
        first = run.races[0] if run.races else None
        rows.append(
            {
                "ring": run.name,
                "change": change(run.name),
                "messages": run.messages if not run.why else None,
                "reports": run.warnings if not run.why else None,
                "first of them": f"{first.later} after {first.earlier}, {first.place}" if first else run.why or "none",
                "wrong words": run.wrong if not run.why else None,
            }
        )
    return pd.DataFrame(rows)


def change(name) -> str:
    """Say in few words what is different in a flawed ring."""
    return FLAWS[name].why if name in FLAWS else "none"


def sentence(found) -> str:
    """Say whether the ring is clean, and which flaws were found; Markdown."""
    if found.why:
        return f"Nothing can be said here: {found.why}."
    sound, *flawed = found.runs
    clean = (
        f"Over {sound.messages:,} messages through {SLOTS} slots, the indices wrapping around half way, the sanitizer "
        + ("has nothing to report" if not sound.warnings else f"**reports {sound.warnings} times**")
        + (", and every word arrived as it was written." if not sound.wrong else f"; {sound.wrong} words were wrong.")
    )
    ran = [run for run in flawed if not run.why]
    caught, missed = [run for run in ran if run.races], [run.name for run in ran if not run.races]
    if not ran:
        return clean + " No flaw was tried."
    says = f" Flaws caught: {len(caught)} of {len(ran)}" + (f", not {', '.join(missed)}." if missed else ".")
    arrived = [run.name for run in caught if not run.wrong]
    harmless = (
        f" Yet with {', '.join(arrived)} every word arrived as it was written: a test that only looks at what arrives, "
        "on this processor, would see nothing."
        if arrived
        else ""
    )
    return clean + says + harmless


def _row(statistic, variant, run, value):
    """One row, or the reason for which there is none."""
    note = run.why or f"{run.messages:,} messages, {run.warnings} reports"
    value = None if run.why else value
    return {"statistic": statistic, "variant": variant, "value": value, "unit": "1", "note": note}
