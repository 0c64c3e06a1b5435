"""The decorator of every kernel: compiled without the GIL, cached by the text of all that it is built from.

Numba's own on-disk cache looks at one file's time stamp, so a changed callee in another module brings back a stale
kernel, and a damaged index ends the process. This cache keys each kernel by the source of its module *and of every
photonlab module that it imports, however indirectly*, seals each file with a digest, and treats whatever it cannot
read as a miss, with one warning. The globals that a kernel freezes are part of the key too: not all stand in a text.
"""

import ast
import contextlib
import functools
import hashlib
import os
import pickle
import sys
import types
import warnings
from pathlib import Path

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, _CacheLocator

from photonlab import paths
from photonlab.machine import sanitizer

llvmlite.binding.initialize_native_target()
llvmlite.binding.initialize_native_asmparser()  # inline assembly aborts the process without it

KERNELS: dict[str, object] = {}
"""Every kernel by ``module.name``, for the tests that walk over all of them."""

UNSAVED = "Unsaved"
"""What is compiled for a type whose name begins so is of this process only, and is not written to the disk."""

_PACKAGE = Path(__file__).resolve().parent.parent
_DIGEST_BYTES = 32
_warned: set[int] = set()  # processes that have had their warning


def kernel(function=None, **options):
    """Compile a free function of arrays and integers as a cached Numba kernel that releases the GIL.

    Parameters
    ----------
    function : callable, optional
        The Python function. Its first call with new argument types compiles, or loads from the cache.
    **options
        Passed on to `numba.njit`, such as ``forceinline=True``. ``cache=False`` leaves the disk alone.
        ``inner=True`` marks a part of another kernel: always inlined, and without the wrappers by which Python would
        call it, which take longest to compile.

    Returns
    -------
    numba dispatcher

    Notes ----- ``error_model="numpy"`` is the default: no kernel may raise, so a division needs no check for zero.
    ``_nrt=False`` too: without Numba's runtime there is nothing to allocate with (it would be an error of
    compilation), and no array is counted in and out by atomic operations wherever it is passed on: those cost 50
    times the work of the order book.
    """
    if function is None:
        return functools.partial(kernel, **options)
    cached = options.pop("cache", True)
    if options.pop("inner", False):
        options.update(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    options.setdefault("nogil", True)
    options.setdefault("error_model", "numpy")
    options.setdefault("_nrt", False)
    dispatcher = numba.njit(**options)(function)
    if cached and os.path.isfile(function.__code__.co_filename):  # not so in a notebook's cell
        dispatcher._cache = KernelCache(function)
    KERNELS[f"{function.__module__}.{function.__qualname__}"] = dispatcher
    return dispatcher


def source_stamp(module_path: Path) -> str:
    """Digest of a module's text, of all photonlab modules that it imports, and of what else decides the code.

    Parameters
    ----------
    module_path : Path
        The source file.

    Returns
    -------
    str
        Hexadecimal SHA-256.
    """
    digest = hashlib.sha256()
    settings = (config.BOUNDSCHECK, config.OPT, sanitizer.HOOKED)
    for fact in (numba.__version__, llvmlite.__version__, sys.version, *map(str, settings)):
        digest.update(fact.encode())
    for path in sorted(_closure(Path(module_path).resolve())):
        digest.update(str(path.name).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _closure(start: Path) -> set[Path]:
    """Return the file and every photonlab file that it reaches by imports."""
    found, todo = set(), [start]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo.extend(_imports(path, path.stat().st_mtime_ns))
    return found


@functools.cache
def _imports(path: Path, _mtime: int) -> tuple[Path, ...]:
    """Return the photonlab files named by one file's import statements."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    files = []
    for name in names:
        if name.startswith("photonlab."):
            base = _PACKAGE.joinpath(*name.split(".")[1:])
            files += [p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()]
    return tuple(dict.fromkeys(files))


def _frozen(function, seen):
    """Yield the values of the globals that a function and the kernels that it calls are compiled with."""
    if function in seen:
        return
    seen.add(function)
    names = sorted(function.__code__.co_names)
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    for module in [value for value in values if isinstance(value, types.ModuleType)]:
        values += [getattr(module, name) for name in names if hasattr(module, name)]
    for value in values:
        if isinstance(value, np.ndarray):
            yield value.tobytes()
        elif isinstance(value, int | float | complex | str | bytes | np.generic):
            yield repr(value).encode()
        elif isinstance(value, tuple):
            yield repr([part for part in value if isinstance(part, int | float | np.generic)]).encode()
        elif hasattr(value, "py_func"):
            yield from _frozen(value.py_func, seen)
        elif isinstance(getattr(value, "kernels", None), dict):  # of `machine.choice.by_type`
            for chosen in value.kernels.values():
                yield from _frozen(getattr(chosen, "py_func", chosen), seen)


class _Locator(_CacheLocator):
    """One folder a module and stamp below photonlab's own cache folder."""

    def __init__(self, py_func, source):
        self._py_file = str(source)  # Numba names it where it tells that something cannot be cached
        self._stamp = source_stamp(source)
        self._line = py_func.__code__.co_firstlineno
        self._path = paths.CACHE / "kernels" / f"{py_func.__module__}-{self._stamp[:16]}"

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls(py_func, Path(py_file))

    def get_cache_path(self):
        return str(self._path)

    def get_source_stamp(self):
        return self._stamp

    def get_disambiguator(self):
        return str(self._line)

    def ensure_cache_path(self):
        self._path.mkdir(parents=True, exist_ok=True)
        for sibling in self._path.parent.glob(self._path.name.rsplit("-", 1)[0] + "-*"):
            with contextlib.suppress(OSError):  # another process may be doing the same
                if sibling != self._path and sibling.stat().st_mtime < self._path.stat().st_mtime - 14 * 86400:
                    for file in sibling.iterdir():
                        file.unlink(missing_ok=True)
                    sibling.rmdir()


class _SealedFile(IndexDataCacheFile):
    """Numba's index and data files, each behind a digest of its content.

    The data carries its key: two processes that fill one folder number their files alike, and the index that is written
    last may name a file for one signature that holds the code of another.
    """

    def save(self, key, data):
        super().save(key, (key, data))

    def load(self, key):
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _dump(self, obj):
        payload = super()._dump(obj)
        return hashlib.sha256(payload).digest() + payload

    def _load_index(self):
        try:
            raw = Path(self._index_path).read_bytes()
        except FileNotFoundError:
            return {}
        version_end = len(pickle.dumps(self._version, protocol=-1))
        if raw[:version_end] != pickle.dumps(self._version, protocol=-1):
            raise ValueError("not an index of this Numba version")
        stamp, overloads = _unseal(raw[version_end:])
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name):
        return _unseal(Path(self._data_path(name)).read_bytes())


def _unseal(raw: bytes):
    digest, payload = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
    if hashlib.sha256(payload).digest() != digest:
        raise ValueError("digest does not match")
    return pickle.loads(payload)


class KernelCache(FunctionCache):
    """A function cache for which damage, or a folder that cannot be written, is a miss with one warning."""

    def __init__(self, py_func):
        self._name = repr(py_func)
        self._py_func = py_func
        self._impl = _Impl(py_func)
        self._cache_path = self._impl.locator.get_cache_path()
        self._cache_file = _SealedFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )
        self.enable()

    def _index_key(self, sig, codegen):
        frozen = hashlib.sha256(b"\0".join(_frozen(self._py_func, set()))).hexdigest()
        return (*super()._index_key(sig, codegen), frozen)

    def load_overload(self, sig, target_context):
        """Return the cached machine code of a signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            self._warn("read", error)
            return None

    def save_overload(self, sig, data):
        """Write the machine code of a signature, if that can be done."""
        if UNSAVED in str(sig):
            return
        try:
            try:
                super().save_overload(sig, data)
            except (ValueError, EOFError, pickle.UnpicklingError):  # a damaged index: begin it anew
                self.flush()
                super().save_overload(sig, data)
        except Exception as error:
            self._warn("written", error)

    def _warn(self, what, error):
        if os.getpid() not in _warned:
            _warned.add(os.getpid())
            warnings.warn(
                f"a cached kernel could not be {what} ({self._cache_path}: {error or type(error).__name__}); "
                "it is compiled anew",
                RuntimeWarning,
                stacklevel=3,
            )


class _Impl(FunctionCache._impl_class):
    _locator_classes = (_Locator,)
