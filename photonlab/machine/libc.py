"""The C library in kernels, by its symbols (which can be cached): its allocator, and the errno of its calls.

A kernel calls whatever `malloc` the process has: the C library's, or that of an allocator preloaded into it. Blocks are
addresses as uint64; `word_at` and `set_word_at` reach into them.
"""

import ctypes
import ctypes.util
import platform
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from photonlab.machine.jit import kernel

# (bytes) -> address, 0 for none; (address) -> nothing. As integers: LLVM knows malloc by its pointers, and would
# remove pairs of calls whose block nobody looks at.
malloc = types.ExternalFunction("malloc", types.uint64(types.uint64))
free = types.ExternalFunction("free", types.void(types.uint64))
malloc_usable_size = types.ExternalFunction(
    "malloc_size" if platform.system() == "Darwin" else "malloc_usable_size", types.uint64(types.uint64)
)
_getrusage = types.ExternalFunction("getrusage", types.int32(types.int32, types.uint64))
_errno_location = types.ExternalFunction(
    "__error" if platform.system() == "Darwin" else "__errno_location", types.uint64()
)
_sbrk = types.ExternalFunction("sbrk", types.uint64(types.int64))

_WHO = 1 if platform.system() == "Linux" else 0  # RUSAGE_THREAD, else RUSAGE_SELF
RUSAGE_WORDS = 32
"""Words of 64 bits that hold a struct rusage (144 bytes on 64-bit systems), with room to spare."""
_MINOR_FAULTS = 8  # the word of ru_minflt: two times of 16 bytes and four longs come before it

OPTIONS = {"M_TRIM_THRESHOLD": -1, "M_TOP_PAD": -2, "M_MMAP_THRESHOLD": -3, "M_MMAP_MAX": -4}
"""Settings of glibc's malloc, by the names and numbers of its malloc.h."""


@intrinsic
def word_at(typingctx, address):
    """Return the 64-bit word at an address as uint64. Nothing checks the address."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        return builder.load(builder.inttoptr(args[0], word.as_pointer()), align=1)

    return types.uint64(types.uint64), codegen


@intrinsic
def set_word_at(typingctx, address, value):
    """Write a 64-bit word to an address. Nothing checks the address."""

    def codegen(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen


@intrinsic
def half_word_at(typingctx, address):
    """Return the 32-bit word at an address, as uint64. Nothing checks the address."""

    def codegen(context, builder, signature, args):
        half = ir.IntType(32)
        value = builder.load(builder.inttoptr(args[0], half.as_pointer()), align=1)
        return builder.zext(value, ir.IntType(64))

    return types.uint64(types.uint64), codegen


@kernel(inner=True)
def errno():
    """Return why this thread's last call that failed did so, as uint64; to be asked right after the call."""
    return half_word_at(_errno_location())


@kernel(inner=True)
def minor_faults(rusage, address):
    """Return how many pages this thread has been given on first touch so far, without a read from disk.

    Parameters
    ----------
    rusage : ndarray of uint64, shape (RUSAGE_WORDS,)
        Receives the system's account.
    address : uint64
        Of `rusage` (`address_of`).
    """
    _getrusage(types.int32(_WHO), types.uint64(address))
    return rusage[_MINOR_FAULTS]


@kernel(inner=True)
def program_break():
    """Return where the heap that brk grows ends, as an address. No system call on Linux."""
    return _sbrk(types.int64(0))


@kernel
def usable_sizes(sizes, out):
    """Fill `out` with the bytes that a block of each of some `sizes` really holds, 0 where there is none (uint64)."""
    for i in range(sizes.size):
        block = malloc(sizes[i])
        if block != types.uint64(0):
            out[i] = malloc_usable_size(block)
            free(block)


def address_of(array: np.ndarray) -> np.uint64:
    """Return the address of an array's first byte."""
    return np.uint64(array.__array_interface__["data"][0])


def window(address: int, size: int) -> np.ndarray:
    """Return memory that somebody else owns as an array; only blocks that are still allocated may be touched.

    Parameters
    ----------
    address, size : int
        In bytes; the address a multiple of 4, the size too.

    Returns
    -------
    ndarray of uint32, shape (size / 4,)
    """
    return np.frombuffer((ctypes.c_uint32 * (size // 4)).from_address(address), np.uint32)


class Provider(NamedTuple):
    """Who answers a call of malloc in this process."""

    library: str
    """File of the library; "unknown" where the system does not tell."""
    glibc: str
    """Version of glibc if that is who answers, else an empty text."""


class _DlInfo(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def provider() -> Provider:
    """Ask the dynamic linker in whose library malloc lies."""
    try:
        process, info = ctypes.CDLL(None), _DlInfo()
        found = process.dladdr(ctypes.cast(process.malloc, ctypes.c_void_p), ctypes.byref(info))
        library = info.file.decode() if found and info.file else "unknown"
    except (AttributeError, OSError, TypeError):
        return Provider("unknown", "")
    version = ""
    if "libc.so" in library and hasattr(process, "gnu_get_libc_version"):
        process.gnu_get_libc_version.restype = ctypes.c_char_p
        version = process.gnu_get_libc_version().decode()
    return Provider(library, version)


def set_option(name: str, value: int) -> bool:
    """Change a setting of glibc's malloc for the rest of the process.

    Parameters
    ----------
    name : str
        One of `OPTIONS`.
    value : int
        Below 2**31.

    Returns
    -------
    bool
        Whether there is such a setting and it took the value.
    """
    if not provider().glibc:
        return False
    return ctypes.CDLL(None).mallopt(ctypes.c_int(OPTIONS[name]), ctypes.c_int(value)) == 1


def trim() -> bool:
    """Give the free end of glibc's heap back to the system, so that the next blocks come from untouched memory.

    Returns
    -------
    bool
        Whether there was something to ask (glibc) and it said that memory went back.
    """
    if not provider().glibc:
        return False
    return ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0)) == 1


def preloadable(name: str) -> str:
    """Return the file name of an allocator's library for LD_PRELOAD; an empty text where there is none.

    Parameters
    ----------
    name : str
        As the linker knows it: "jemalloc", "mimalloc".
    """
    if platform.system() != "Linux":
        return ""
    return ctypes.util.find_library(name) or ""
