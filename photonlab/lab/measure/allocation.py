"""Proof that a kernel allocates nothing, in its code and while it runs (claims F2 and T8).

Two witnesses that know nothing of each other: the compiled code, in which every allocation is a call of Numba's runtime
(NRT) or of malloc, and the runtime's own counters before and after a run. Kernels are compiled without that runtime to
begin with, so an allocation would not compile; the witnesses must be able to fail all the same, which the planted twin
of the framing walk shows.
"""

import re
from dataclasses import dataclass

import numba
import numpy as np
from numba import uint64
from numba.core.runtime import _nrt_python, rtsys

from photonlab.kernels.framing import PREFIX
from photonlab.machine.bits import load_be16
from photonlab.machine.jit import kernel

_CALL = re.compile(r"\b(?:call|invoke)\b[^\n@]*@\"?([\w.]+)")
_ALLOCATES = re.compile(
    r"NRT_Allocate\w*|NRT_Reallocate|NRT_MemInfo_(?:alloc|varsize_(?:alloc|realloc|new)|new)\w*|NRT_allocate\w*"
    r"|malloc|calloc|realloc|PyObject_Malloc|_Znwm"
)


@dataclass(frozen=True)
class Proof:
    """What the two witnesses saw of one kernel."""

    kernel: str
    allocation_calls_in_code: tuple[str, ...]
    """Names of the allocating functions that the compiled code calls, once per call."""
    allocations_while_running: int
    """How far the runtime's counters of allocations moved during the run."""

    @property
    def clean(self) -> bool:
        """Whether neither witness saw an allocation."""
        return not self.allocation_calls_in_code and self.allocations_while_running == 0


def prove(kernel, *args) -> Proof:
    """Examine a kernel's code for allocations and count those of a run.

    Parameters
    ----------
    kernel : numba dispatcher
        Compiled anew without the cache, because a kernel from the cache has no readable code.
    *args
        What to run it on. The run changes them.

    Returns
    -------
    Proof
    """
    signature = tuple(numba.typeof(arg) for arg in args)
    fresh = uncached(kernel)
    fresh.compile(signature)
    fresh.disable_compile()
    idle = numba.njit(**_options(kernel))(_idle)
    idle(*args)
    beginning = _allocations()
    idle(*args)  # a kernel with the runtime counts a header for each array that it is given
    before = _allocations()
    fresh(*args)
    while_running = (_allocations() - before) - (before - beginning)
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
    return Proof(name, allocation_calls(fresh.inspect_llvm(signature)), while_running)


def uncached(kernel):
    """Return a dispatcher of the same function and options that neither reads nor writes the cache."""
    return numba.njit(**_options(kernel))(kernel.py_func)


def _options(kernel) -> dict:
    return {name: value for name, value in kernel.targetoptions.items() if name != "nopython"}


def _idle(*args):
    return None


def allocation_calls(llvm: str) -> tuple[str, ...]:
    """Return the names of the allocating functions called in a text of LLVM IR, once per call, in its order."""
    return tuple(name for name in _CALL.findall(llvm) if _ALLOCATES.fullmatch(name))


def _allocations() -> int:
    """Return the runtime's count of allocations so far."""
    rtsys.initialize(numba.core.registry.cpu_target.target_context)
    _nrt_python.memsys_enable_stats()
    return rtsys.get_allocation_stats().alloc


@kernel(_nrt=True)
def allocating_walk(data, begin):
    """Walk as `photonlab.kernels.framing.walk` does, with an allocation planted at each message: the proof must fail.

    Parameters
    ----------
    data : uint8[n]
    begin : int64
        Offset of a prefix.

    Returns
    -------
    messages : uint64
    total : uint64
        Sum of the lengths.
    """
    size = uint64(data.size)
    position, messages, total = uint64(begin), uint64(0), uint64(0)
    while position + uint64(PREFIX) <= size:
        length = load_be16(data, position)
        following = position + length + uint64(PREFIX)
        if length == uint64(0) or following > size:
            break
        planted = np.empty(1, np.uint64)
        planted[0] = length
        messages += uint64(1)
        total += planted[0]
        position = following
    return messages, total
