"""Synthetic days as files and arrays: written in chunks under a temporary name, renamed when whole."""

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

import numpy as np

from photonlab import paths
from photonlab.errors import UserError
from photonlab.systems.synth import state as st
from photonlab.systems.synth.instruments import CHANNELS
from photonlab.systems.synth.kernel import ROOM, fill
from photonlab.systems.synth.plan import make_day
from photonlab.systems.synth.presets import (
    INSTRUMENTS_LIMIT,
    MESSAGES_LIMIT,
    PRESETS,
    PROFILES,
    VERSION,
    default_instruments,
)
from photonlab.systems.synth.truth import Truth, truth_of

CHUNK = 4 << 20


def write(
    path, messages=None, seed=1, preset="small", instruments=None, *, profile="day", channels=CHANNELS, chunk=CHUNK,
    progress=None,
) -> Truth:  # fmt: skip
    """Write a synthetic day, and the truth about it beside it as ``<path>.truth.json``.

    The file is as an exchange's: messages with two-byte lengths, without an end-of-session mark. Equal arguments give
    equal bytes on every machine. From `presets.ALL_TYPES_MESSAGES` messages on, with the default number of instruments,
    all 23 types occur; smaller days leave out what they have no room for.

    Parameters
    ----------
    path : path-like
        Of the new file. An old file of this name is replaced only when the new one is whole.
    messages : int, optional
        1 to 500,000,000; by default the preset's. Live orders scale with it.
    seed : int
        0 to 2^64 - 1.
    preset : str
        A key of `presets.PRESETS`.
    instruments : int, optional
        1 to 65,535, at least 4 messages each; by default `presets.default_instruments`.
    profile : str
        A key of `presets.PROFILES`.
    channels : int
        1 to 8 streams of references: 4 as on the real feed, 1 for references that are nearly sequential over all.
    chunk : int
        Bytes written at a time, at least 64; the bytes of the day do not depend on it.
    progress : callable, optional
        Called with (messages done, messages in all) after each chunk.

    Returns
    -------
    Truth

    Raises
    ------
    UserError
        For an argument out of its range, or a file that cannot be written; nothing is left behind then.
    """
    arguments = _checked(messages, seed, preset, instruments, profile, channels, chunk)
    path = Path(path)
    token = secrets.token_hex(4)  # of one writer: others may be writing the same day
    partial = path.with_name(f".{path.name}.{token}.part")
    partial_truth = path.with_name(f".{path.name}.{token}.truth")
    try:
        with open(partial, "wb") as file:
            truth = _run(arguments, chunk, file.write, progress)
        truth.write(partial_truth)
        os.replace(partial, path)
        os.replace(partial_truth, truth_path(path))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        for left in (partial, partial_truth):
            with contextlib.suppress(OSError):
                left.unlink()
    return truth


def generate(
    messages=None, seed=1, preset="small", instruments=None, *, profile="day", channels=CHANNELS, chunk=CHUNK
) -> tuple[np.ndarray, Truth]:
    """Return a synthetic day as an array of uint8, and the truth about it; the arguments are those of `write`."""
    arguments = _checked(messages, seed, preset, instruments, profile, channels, chunk)
    pieces: list[bytes] = []
    truth = _run(arguments, chunk, lambda piece: pieces.append(bytes(piece)), None)
    day = np.frombuffer(bytearray().join(pieces), np.uint8)
    return day, truth


def cached(preset="small", messages=None, seed=1, *, instruments=None, profile="day", channels=CHANNELS) -> Path:
    """Return the path of a synthetic day in the cache, writing it first if it is not there.

    Safe against other processes doing the same: each writes a file of its own, equal to the others', and renames it.
    """
    arguments = _checked(messages, seed, preset, instruments, profile, channels, CHUNK)
    name = f"{preset}-{arguments['messages']}-{arguments['instruments']}-{seed}-{profile}-{channels}-v{VERSION}.itch"
    path = paths.CACHE / "synth" / name
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # no truth, or a damaged one: write again
        if path.stat().st_size == Truth.read(truth_path(path)).bytes:
            return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the cache folder {path.parent}: {error.strerror or error}") from None
    write(path, **arguments)
    return path


def truth_path(path) -> Path:
    """Return where the truth about a day stands."""
    return Path(f"{path}.truth.json")


def _run(arguments, chunk, sink, progress) -> Truth:
    """Run the kernel to the end of the day; every chunk goes to `sink` and into the digest."""
    day = make_day(**arguments)
    buffer = np.empty(chunk, np.uint8)
    digest, nbytes = hashlib.sha256(), 0
    while not day.word[st.DONE]:
        size = fill(day, buffer)
        piece = buffer[:size].data
        digest.update(piece)
        sink(piece)
        nbytes += size
        if progress is not None:
            progress(int(day.word[st.SENT]), arguments["messages"])
    return truth_of(day, nbytes, digest.hexdigest(), **{k: v for k, v in arguments.items() if k != "messages"})


def _checked(messages, seed, preset, instruments, profile, channels, chunk) -> dict:
    """Return the arguments complete, or raise `UserError`."""
    if preset not in PRESETS:
        raise UserError(f"no preset {preset!r}; there are {', '.join(PRESETS)}")
    if profile not in PROFILES:
        raise UserError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    messages = _integer("messages", PRESETS[preset].messages if messages is None else messages, 1, MESSAGES_LIMIT)
    seed = _integer("seed", seed, 0, (1 << 64) - 1)
    if instruments is None:
        instruments = default_instruments(preset, messages)
    instruments = _integer("instruments", instruments, 1, INSTRUMENTS_LIMIT)
    if instruments > max(1, messages // 4):
        raise UserError(f"{instruments:,} instruments need at least {4 * instruments:,} messages, not {messages:,}")
    channels = _integer("channels", channels, 1, 8)
    _integer("chunk", chunk, ROOM, 1 << 30)
    return {
        "messages": messages, "seed": seed, "preset": preset, "instruments": instruments, "profile": profile,
        "channels": channels,
    }  # fmt: skip


def _integer(name, value, low, high) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise UserError(f"{name} must be a whole number, not {value!r}")
    if not low <= value <= high:
        raise UserError(f"{name} must be between {low:,} and {high:,}, not {value:,}")
    return int(value)
