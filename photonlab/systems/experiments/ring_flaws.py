"""The ring with one flaw in its order, made from the ring's own source: what a sanitizer and a model check must find.

Nothing in `photonlab.kernels.ring` is there for the sake of this. A flaw replaces a text that stands in that file
once; the changed module takes the real one's place in a process that has loaded neither.
"""

import hashlib
import sys
import types
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from photonlab import kernels, paths

_RING = "photonlab.kernels.ring"
_SOURCE = Path(kernels.__file__).with_name("ring.py")


class Flaw(NamedTuple):
    """One change.

    Attributes
    ----------
    name : str
    old, new : str
        The text of the ring that is replaced, and by what.
    why : str
        What no longer holds.
    """

    name: str
    old: str
    new: str
    why: str


SOUND = "correct ring"
RELEASE, ACQUIRE, EARLY = "publish relaxed", "waiting relaxed", "published before written"
GIVEN_BACK, ROOM = "release relaxed", "room relaxed"

FLAWS = {
    flaw.name: flaw
    for flaw in (
        Flaw(
            RELEASE, "store_release(ring.words, HEAD, index)", "store_relaxed(ring.words, HEAD, index)",
            "the producer's index may be seen before the message",
        ),
        Flaw(
            ACQUIRE, "head = load_acquire(words, HEAD)", "head = load_relaxed(words, HEAD)",
            "the consumer may read the message before the index",
        ),
        Flaw(
            EARLY,
            "    _copy(source, at, ring.words, slot(ring, first), ring.slot_words)\n    publish_to(ring, first + _1)\n",
            "    publish_to(ring, first + _1)\n    _copy(source, at, ring.words, slot(ring, first), ring.slot_words)\n",
            "the message is written when the consumer may already read it",
        ),
        Flaw(
            GIVEN_BACK, "store_release(ring.words, HEAD + ring.apart, index)",
            "store_relaxed(ring.words, HEAD + ring.apart, index)",
            "a slot may be given back before it has been read",
        ),
        Flaw(
            ROOM, "tail = load_acquire(words, HEAD + ring.apart)", "tail = load_relaxed(words, HEAD + ring.apart)",
            "a slot may be written again before the look at the consumer's index",
        ),
    )
}  # fmt: skip
"""Name → flaw: the three of the producer's index, and the same orders on the way back."""


def flawed_source(name) -> str:
    """Return the ring's source with a flaw.

    Raises
    ------
    LookupError
        The text to be replaced does not stand in the source exactly once.
    """
    text, flaw = _SOURCE.read_text(), FLAWS[name]
    if text.count(flaw.old) != 1:
        raise LookupError(f"the flaw {name!r} no longer applies: the ring has its text {text.count(flaw.old)} times")
    return text.replace(flaw.old, flaw.new)


def plant(name):
    """Let a flawed ring be what this process imports as the ring.

    What is built upon it is cached in a folder of the flaw's own: the key there is made of the sources on disk, which
    know nothing of it.

    Raises
    ------
    RuntimeError
        The process has the real one already.
    """
    if _RING in sys.modules:
        raise RuntimeError("a flaw must be planted before the ring is loaded")
    flaw = FLAWS[name]
    paths.CACHE = paths.CACHE / "flawed" / hashlib.sha256(f"{flaw.old}\0{flaw.new}".encode()).hexdigest()[:16]
    atomics = import_module("photonlab.machine.atomics")
    module = types.ModuleType(_RING)
    module.__dict__.update(load_relaxed=atomics.load_relaxed, store_relaxed=atomics.store_relaxed)
    sys.modules[_RING] = kernels.ring = module  # no file: nothing of it is cached
    exec(compile(flawed_source(name), f"<ring: {name}>", "exec"), module.__dict__)
