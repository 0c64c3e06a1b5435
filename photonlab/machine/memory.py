"""Memory as the system gives it: address space committed on touch, huge pages, views without copies."""

import contextlib
import mmap

import numpy as np

_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_HUGE_PAGE = 2 << 20


def huge_array(length, dtype, *, huge=True, populate=False):
    """Return a zeroed array in anonymous memory that is committed page by page when first touched.

    Parameters
    ----------
    length : int
        Elements. Address space is cheap: reserve the largest that may be needed.
    dtype : dtype
        Any fixed-size NumPy dtype.
    huge : bool
        Ask for 2 MiB pages with ``madvise(MADV_HUGEPAGE)``; advice, which the system may ignore.
        False asks for small pages with ``MADV_NOHUGEPAGE``.
    populate : bool
        Touch every page now, so that no page fault remains for later.

    Returns
    -------
    ndarray, shape (length,)
        Its memory is returned to the system with the last view of it.

    Raises
    ------
    MemoryError
        If the address space cannot be reserved.
    """
    dtype = np.dtype(dtype)
    size = max(int(length) * dtype.itemsize, 1)
    rounded = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    if huge and size >= _HUGE_PAGE:
        rounded = -(-size // _HUGE_PAGE) * _HUGE_PAGE
    try:
        area = mmap.mmap(-1, rounded, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    except (OSError, ValueError, OverflowError) as error:
        raise MemoryError(f"cannot reserve {rounded / 2**20:.0f} MiB of address space: {error}") from None
    advice = getattr(mmap, "MADV_HUGEPAGE" if huge else "MADV_NOHUGEPAGE", None)
    if advice is not None and rounded >= _HUGE_PAGE:
        with contextlib.suppress(OSError):  # a system without transparent huge pages: small pages serve
            area.madvise(advice)
    array = np.frombuffer(area, dtype=dtype, count=int(length))
    if populate:
        array.view(np.uint8)[:: mmap.PAGESIZE] = 0
    return array


class _Exposed:
    """Somebody's memory with the array interface of a writable byte array; keeps its owner alive."""

    def __init__(self, owner, address, length):
        self.owner = owner
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (length,), "data": (address, False)}


def as_bytes_array(data):
    """Return any bytes-like object as a uint8 array of one and the same Numba type, without a copy.

    A read-only array is another type to Numba, and would compile every kernel again,
    perhaps in the middle of a measurement.

    Parameters
    ----------
    data : bytes-like or ndarray of uint8
        C-contiguous.

    Returns
    -------
    ndarray of uint8, shape (length,)
        Typed as writable whatever `data` was. Kernels only read their input; so must you.
    """
    array = np.frombuffer(data, dtype=np.uint8) if not isinstance(data, np.ndarray) else data.view(np.uint8).reshape(-1)
    if array.flags.writeable and array.flags.c_contiguous:
        return array
    array = np.ascontiguousarray(array)
    if array.size == 0:
        return np.empty(0, np.uint8)
    return np.asarray(_Exposed(array, array.__array_interface__["data"][0], array.size))
