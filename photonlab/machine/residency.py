"""Which pages of an array the system has given memory to, and how to give them memory beforehand (claim R13).

Reserved address space costs nothing until it is touched, and a first touch is a page fault: the kernel finds a page,
zeroes it and enters it. What one pass over a feed touched can be read off afterwards and touched for the next pass
before its clock starts, which is what MAP_POPULATE does, only that it would also fill what is never used.
"""

import ctypes
import mmap
from collections.abc import Iterator

import numpy as np

_WORTH = 1 << 16
"""Arrays smaller than this many bytes are not looked at: NumPy has touched them when it made them."""


def arrays_of(state) -> Iterator[np.ndarray]:
    """Yield the arrays of a kernel's state: a NamedTuple of arrays and of such tuples, in order."""
    for part in state:
        if isinstance(part, np.ndarray):
            yield part
        elif isinstance(part, tuple):
            yield from arrays_of(part)


def resident_pages(array: np.ndarray) -> np.ndarray | None:
    """Return the numbers of the pages of an array that have memory, in order from its first byte.

    Parameters
    ----------
    array : ndarray
        Contiguous; its own memory map, so that it begins with a page.

    Returns
    -------
    ndarray of int64, or None
        None where the system does not tell.
    """
    address = array.__array_interface__["data"][0]
    if address % mmap.PAGESIZE or not array.nbytes:
        return None
    pages = -(-array.nbytes // mmap.PAGESIZE)
    seen = np.zeros(pages, np.uint8)
    try:
        mincore = ctypes.CDLL(None).mincore
    except (AttributeError, OSError):
        return None
    size = ctypes.c_size_t(array.nbytes)
    if mincore(ctypes.c_void_p(address), size, ctypes.c_void_p(seen.ctypes.data)) != 0:
        return None
    return np.flatnonzero(seen & 1)


def footprint(state) -> list[np.ndarray | None]:
    """Return, for each large array of a state, the pages that have memory; None for the others.

    Parameters
    ----------
    state : NamedTuple
        As for `arrays_of`.
    """
    return [resident_pages(array) if array.nbytes >= _WORTH else None for array in arrays_of(state)]


def resident_bytes(pages: list[np.ndarray | None]) -> int:
    """Return how many bytes the pages of a footprint are."""
    return sum(one.size for one in pages if one is not None) * mmap.PAGESIZE


def touch(state, pages: list[np.ndarray | None]) -> None:
    """Touch the pages that another state of the same shape came to use; the arrays must be untouched (they stay zero).

    Parameters
    ----------
    state : NamedTuple
        As for `arrays_of`, of arrays that hold zeros in those pages.
    pages : list
        Of `footprint`.
    """
    for array, numbers in zip(arrays_of(state), pages, strict=True):
        if numbers is not None and numbers.size:
            # a write of what is there already: a read would only map the system's one page of zeros
            firsts = array.reshape(-1).view(np.uint8)[:: mmap.PAGESIZE]
            firsts[numbers] = firsts[numbers]
