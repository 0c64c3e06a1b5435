"""Compilation kept apart from measurement: seen when it happens, timed on its own, and never inside a timed run.

A kernel compiles, or is loaded from the disk, at its first call with each combination of argument types; a read-only
array (a memory map, bytes) is another type than a writable one. Either would be measured as work of the kernel.
"""

import time
from collections.abc import Iterable

from numba.core import event


class CompiledWhileTiming(RuntimeError):
    """A kernel was compiled or loaded inside a timed run; what was measured is discarded."""


class Compiling(event.Listener):
    """A block in which compilations are seen: ``with Compiling() as seen: …``.

    Attributes
    ----------
    count : int
        Compilations and loads from the disk cache, nested ones not counted.
    seconds : float
        Time spent in them.
    """

    def __init__(self):
        self.count, self.seconds = 0, 0.0
        self._depth, self._began = 0, 0.0

    def on_start(self, _event):
        """Numba's compiler lock was taken."""
        if self._depth == 0:
            self.count += 1
            self._began = time.perf_counter()
        self._depth += 1

    def on_end(self, _event):
        """Numba's compiler lock was let go."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began

    def __enter__(self):
        # the lock is taken for compiling and for loading alike; "numba:compile" would miss the loading
        event.register("numba:compiler_lock", self)
        return self

    def __exit__(self, *_):
        event.unregister("numba:compiler_lock", self)


def signatures(kernels: Iterable) -> dict[str, int]:
    """Number of compiled signatures of each kernel, by name."""
    return {f"{one.py_func.__module__}.{one.py_func.__qualname__}": len(one.signatures) for one in kernels}


def refuse(seen: Compiling, before: dict[str, int], after: dict[str, int], what: str) -> None:
    """Discard a measurement during which something was compiled.

    Raises
    ------
    CompiledWhileTiming
        With the names of the kernels that gained a signature, as far as they were named.
    """
    grown = sorted(name for name in after if after[name] != before.get(name))
    if grown or seen.count:
        which = ", ".join(grown) or "a kernel"
        raise CompiledWhileTiming(
            f"{what}: {which} compiled or was loaded while the clock ran ({seen.count} times, {seen.seconds:.3f} s);"
            " the measurement is discarded. Call it beforehand with the same types (a read-only array is another type)"
        )
