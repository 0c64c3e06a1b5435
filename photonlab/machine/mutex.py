"""A mutex of the threads library, locked and unlocked from kernels by its symbols (which can be cached)."""

import numpy as np
from numba.core import types

from photonlab.machine.jit import kernel
from photonlab.machine.libc import address_of
from photonlab.machine.memory import huge_array

MUTEX_WORDS = 16
"""Words of 64 bits that hold a pthread_mutex_t (40 bytes on Linux, 64 on macOS) on lines of its own."""

# (address of the mutex) -> 0, or a number of an error that cannot happen to a mutex of this kind
lock = types.ExternalFunction("pthread_mutex_lock", types.int32(types.uint64))
unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(types.uint64))
_init = types.ExternalFunction("pthread_mutex_init", types.int32(types.uint64, types.uint64))


def make_mutex() -> np.ndarray:
    """Return memory with an unlocked mutex in it, which is at `address_of` it as long as the array lives."""
    memory = huge_array(MUTEX_WORDS, np.uint64, populate=True)
    _initialise(address_of(memory))
    return memory


@kernel
def _initialise(address):
    return _init(address, np.uint64(0))
