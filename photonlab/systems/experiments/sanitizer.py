"""Run rings under ThreadSanitizer, each in a process of its own, and read what it reports (claim S11)."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from photonlab.machine import sanitizer
from photonlab.systems.experiments import ring_flaws

_WORKER = "photonlab.systems.experiments.sanitized_ring"
_FOUND, _SECONDS = 66, 240

_LAUNCH = """
import ctypes, os, sys
library, *command = sys.argv[1:]
libc = ctypes.CDLL(None)
here = libc.personality(0xFFFFFFFF)
if here < 0 or libc.personality(here | 0x0040000) < 0:
    print("the system refuses to switch off the randomisation of addresses", file=sys.stderr, flush=True)
os.environ["LD_PRELOAD"] = library
os.execv(sys.executable, [sys.executable, *command])
"""
# The runtime wants memory at fixed addresses, so their randomisation is switched off where the system lets us, and the
# runtime is loaded only after that. Where it does not, the runtime may work nevertheless: that depends on the kernel.

_REPORT = re.compile(
    r"WARNING: ThreadSanitizer: (?P<kind>[^(\n]+?) \(pid=\d+\)\n"
    r"\s*(?P<later>\w[\w ]*?) of size (?P<size>\d+) at 0x(?P<address>[0-9a-f]+) by [^\n]*\n"
    r"(?P<rest>.*?)(?=^==================|\Z)",
    re.DOTALL | re.MULTILINE,
)
_EARLIER = re.compile(r"^\s*Previous (\w[\w ]*?) of size", re.MULTILINE)
_ANY = re.compile(r"WARNING: ThreadSanitizer: ([^(\n]+)")


@dataclass(frozen=True)
class Race:
    """One report.

    Attributes
    ----------
    later, earlier : str
        The two accesses: "read", "write", "atomic write" …
    place : str
        Where: slot and word, or what else of the ring.
    """

    later: str
    earlier: str
    place: str


@dataclass(frozen=True)
class Run:
    """One ring under the sanitizer.

    Attributes
    ----------
    name : str
        `ring_flaws.SOUND`, or that of a flaw.
    messages : int
        Passed from one thread to the other.
    races : tuple of Race
        What was reported as a data race; never more than one a pair of instructions.
    warnings : int
        All reports, of whatever kind.
    wrong : int
        Words that arrived other than they were written.
    seconds : float
        Of the passing alone.
    why : str
        Why there is no result; empty if there is one.
    """

    name: str
    messages: int = 0
    races: tuple[Race, ...] = ()
    warnings: int = 0
    wrong: int = 0
    seconds: float = 0.0
    why: str = ""


def run(name, messages) -> Run:
    """Pass messages through a ring under the sanitizer.

    Parameters
    ----------
    name : str
        `ring_flaws.SOUND`, or a key of `ring_flaws.FLAWS`.
    messages : int
        2 and more.

    Returns
    -------
    Run
        Where the sanitizer cannot be had, with the reason.
    """
    library = sanitizer.runtime()
    if library is None:
        return Run(name, why="ThreadSanitizer's runtime (libtsan) is not installed")
    # the child's own decisions: nothing of TSAN_OPTIONS or of another preloaded library
    environment = os.environ | {
        sanitizer.VARIABLE: "1",
        "TSAN_OPTIONS": f"exitcode={_FOUND} halt_on_error=0 atexit_sleep_ms=0 log_path=stderr color=never",
    }
    environment.pop("LD_PRELOAD", None)
    command = [sys.executable, "-c", _LAUNCH, str(library), "-m", _WORKER, name, str(messages)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return Run(name, why=f"it did not end within {_SECONDS} s under ThreadSanitizer")
    return read(name, done.returncode, done.stdout, done.stderr)


def run_all(messages, flaws, flawed_messages) -> list[Run]:
    """Run the ring as it is, and with each flaw, two at a time.

    Parameters
    ----------
    messages : int
        Through the ring as it is.
    flaws : sequence of str
        Keys of `ring_flaws.FLAWS`.
    flawed_messages : int
        Through each flawed one: a race is found at the first chance.

    Returns
    -------
    list of Run
    """
    with ThreadPoolExecutor(2) as pool:
        works = [(ring_flaws.SOUND, messages), *((name, flawed_messages) for name in flaws)]
        return list(pool.map(run, *zip(*works, strict=True)))


def read(name, code, output, errors) -> Run:
    """Make a `Run` of what the process printed.

    Parameters
    ----------
    name : str
    code : int
        Its exit code.
    output, errors : str

    Returns
    -------
    Run
    """
    try:
        facts = json.loads(output)
    except json.JSONDecodeError:
        facts = None
    if facts is None or code not in (0, _FOUND):
        return Run(name, why=_reason(code, errors, facts))
    races = []
    for found in _REPORT.finditer(errors):
        if found["kind"] == "data race":
            earlier = _EARLIER.search(found["rest"])
            place = _place(int(found["address"], 16), facts)
            races.append(Race(found["later"].lower(), earlier[1].lower() if earlier else "access", place))
    warnings = len(_ANY.findall(errors))
    if (code == _FOUND) != (warnings > 0):
        return Run(name, why=f"its exit code {code} does not agree with {warnings} reports")
    return Run(name, facts["messages"], tuple(races), warnings, facts["wrong"], facts["passed_s"])


def _place(address, facts):
    """Say what of the ring lies at an address."""
    word, rest = divmod(address - facts["address"], 8)
    slot, within = divmod(word - facts["base"], facts["slot_words"])
    if 0 <= slot < facts["slots"] and not rest:
        return f"slot {slot}, word {within}"
    return "the ring's indices" if 0 <= word < facts["base"] else "outside of the ring"


def _reason(code, errors, facts):
    """Say why there is no result."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    fatal = next((line for line in lines if "FATAL" in line), lines[-1] if lines else "")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    where = "" if facts is None else " after the messages had passed"
    return f"the process under ThreadSanitizer ended with {how}{where}" + (f": {fatal}" if fatal else "")
