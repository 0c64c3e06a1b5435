"""Shared libraries of C and C++ that the package brings as source, compiled when asked for if a compiler is there."""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from photonlab import paths

LANGUAGES = {".c": ("C", "CC", ("cc", "gcc", "clang")), ".cpp": ("C++", "CXX", ("g++", "clang++", "c++"))}
"""By a source's suffix: the language, the environment's word for its compiler, and compilers looked for after that."""


@functools.cache
def shared_library(source: Path, flags: tuple, compilers: tuple | None = None) -> tuple[Path | None, str]:
    """Compile a source to a shared library, or take that from the cache.

    Parameters
    ----------
    source : Path
    flags : tuple of str
    compilers : tuple of str, optional
        Looked for in this order, in place of the usual ones of `LANGUAGES`.

    Returns
    -------
    path : Path or None
    about : str
        The compiler and its first flags; without a library the reason why there is none.
    """
    language, variable, usual = LANGUAGES[source.suffix]
    named = (os.environ[variable],) if os.environ.get(variable) and compilers is None else ()
    wanted = (*named, *usual) if compilers is None else compilers
    compiler = next((found for name in wanted if (found := shutil.which(name))), None)
    if compiler is None:
        return None, f"no {language} compiler found (looked for {', '.join(wanted) or 'none'})"
    about = f"{Path(compiler).name} {_version(compiler)}, {' '.join(flags[:3])}"
    key = hashlib.sha256(source.read_bytes() + " ".join((about, *flags)).encode() + _processor().encode()).hexdigest()
    path = paths.CACHE / "native" / f"{source.stem}-{key[:16]}.so"
    if not path.exists() and (failed := _compile(compiler, flags, source, path)):
        return None, failed
    return path, about


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


def _compile(compiler, flags, source, path):
    """Compile to `path`, whole or not at all; return why not, or an empty text."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            done = subprocess.run(
                [compiler, *flags, "-o", str(made), str(source)], capture_output=True, text=True, timeout=120
            )
            if done.returncode == 0:
                made.replace(path)
                return ""
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{Path(compiler).name} did not run: {error}"
    first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
    return f"{Path(compiler).name} failed: {first.strip()}"
