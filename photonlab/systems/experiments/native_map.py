"""std::unordered_map itself, compiled when it is asked for, if a C++ compiler is there."""

import ctypes
import functools
from pathlib import Path

import numpy as np

from photonlab.machine import compiler

SOURCE = Path(__file__).with_name("native") / "unordered_map.cpp"
FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")
_U64, _POINTER = ctypes.c_uint64, ctypes.c_void_p


@functools.cache
def library(compilers=None):
    """Compile the map, or take it from the cache.

    Parameters
    ----------
    compilers : tuple of str, optional
        Looked for in this order, in place of the usual ones.

    Returns
    -------
    library : ctypes.CDLL or None
    about : str
        The compiler and its flags; without a library the reason why there is none.
    """
    path, about = compiler.shared_library(SOURCE, FLAGS, compilers)
    if path is None:
        return None, about
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        return None, f"what the C++ compiler made could not be loaded: {error}"
    loaded.map_make.restype = _POINTER
    for name, arguments in {
        "map_make": [_U64],
        "map_free": [_POINTER],
        "map_size": [_POINTER],
        "map_insert": [_POINTER, _POINTER, _U64],
        "map_find": [_POINTER, _POINTER, _U64],
        "map_churn": [_POINTER, _POINTER, _POINTER, _U64],
        "map_bytes": [_POINTER, _U64],
    }.items():
        getattr(loaded, name).argtypes = arguments
    for name in ("map_size", "map_insert", "map_find", "map_churn", "map_bytes"):
        getattr(loaded, name).restype = _U64
    return loaded, about


class UnorderedMap:
    """A std::unordered_map from uint64 to uint64, worked on a whole array at a time; sums as in `map_work.work`.

    Parameters
    ----------
    members : int
        Reserved beforehand.
    """

    def __init__(self, members):
        self._library, about = library()
        if self._library is None:
            raise RuntimeError(about)
        self._members, self._map = members, self._library.map_make(members)

    def __del__(self):
        if getattr(self, "_map", None):
            self._library.map_free(self._map)

    def __len__(self):
        return self._library.map_size(self._map)

    def clear(self):
        """Begin anew: free it all, and reserve again."""
        self._library.map_free(self._map)
        self._map = self._library.map_make(self._members)

    def insert(self, keys) -> int:
        """Set the value of each key to the key plus one; return how many were new."""
        return self._library.map_insert(self._map, keys.ctypes.data, keys.size)

    def find(self, keys) -> int:
        """Return the sum of the values of those keys that are there, modulo 2^64."""
        return self._library.map_find(self._map, keys.ctypes.data, keys.size)

    def churn(self, gone, come) -> int:
        """Take each of `gone` out and put the one of `come` in; return the sum of what was taken."""
        return self._library.map_churn(self._map, gone.ctypes.data, come.ctypes.data, gone.size)


def bytes_of(keys: np.ndarray) -> int:
    """Return the bytes that malloc gives for a map of these keys: nodes and buckets."""
    return library()[0].map_bytes(keys.ctypes.data, keys.size)


def hash_is_identity() -> bool:
    """Whether this library's std::hash of a 64-bit integer is the integer."""
    return bool(library()[0].hash_is_identity())
