"""std::unordered_map itself, compiled when it is asked for, if a C++ compiler is there."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from photonlab import paths

SOURCE = Path(__file__).with_name("native") / "unordered_map.cpp"
FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")
COMPILERS = ("g++", "clang++", "c++")
_U64, _POINTER = ctypes.c_uint64, ctypes.c_void_p


@functools.cache
def library(compilers=COMPILERS):
    """Compile the map, or take it from the cache.

    Parameters
    ----------
    compilers : tuple of str
        Looked for in this order; the environment's ``CXX`` comes before them.

    Returns
    -------
    library : ctypes.CDLL or None
    about : str
        The compiler and its flags; without a library the reason why there is none.
    """
    wanted = (os.environ["CXX"], *compilers) if os.environ.get("CXX") and compilers is COMPILERS else compilers
    compiler = next((found for name in wanted if (found := shutil.which(name))), None)
    if compiler is None:
        return None, f"no C++ compiler found (looked for {', '.join(wanted) or 'none'})"
    about = f"{Path(compiler).name} {_version(compiler)}, {' '.join(FLAGS[:3])}"
    key = hashlib.sha256(SOURCE.read_bytes() + about.encode() + _processor().encode()).hexdigest()[:16]
    path = paths.CACHE / "native" / f"unordered_map-{key}.so"
    if not path.exists():
        failed = _compile(compiler, path)
        if failed:
            return None, failed
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        return None, f"what {Path(compiler).name} made could not be loaded: {error}"
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


def _version(compiler):
    done = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True)
    return done.stdout.strip()


def _processor():
    """Return what tells processors apart, as -march=native makes code for one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return "".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))


def _compile(compiler, path):
    """Compile to `path`, whole or not at all; return why not, or an empty text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        try:
            done = subprocess.run(
                [compiler, *FLAGS, "-o", str(made), str(SOURCE)], capture_output=True, text=True, timeout=120
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{Path(compiler).name} did not run: {error}"
        if done.returncode != 0:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
            return f"{Path(compiler).name} failed: {first.strip()}"
        made.replace(path)
    return ""


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
