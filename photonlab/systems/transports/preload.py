"""A library that moves a TCP program's connections over loopback onto AF_UNIX when it is preloaded into it.

The program stays as it is: what the library does, its source (`native/tcp_on_unix.c`) says at its beginning.

    path, why = library()
    subprocess.run(program, env=environment(path))
"""

import ctypes
import os
import platform
from pathlib import Path

from photonlab.machine import compiler

SOURCE = Path(__file__).with_name("native") / "tcp_on_unix.c"
FLAGS = ("-O2", "-std=gnu11", "-shared", "-fPIC")
VARIABLE = "LD_PRELOAD"


def library(compilers=None) -> tuple[Path | None, str]:
    """Compile the library, or take it from the cache.

    Parameters
    ----------
    compilers : tuple of str, optional
        Looked for in this order, in place of the usual ones.

    Returns
    -------
    path : Path or None
    about : str
        The compiler and its flags; without a library the reason why there is none.
    """
    if platform.system() != "Linux":
        return None, f"{platform.system()} has neither abstract names of AF_UNIX nor {VARIABLE}"
    return compiler.shared_library(SOURCE, FLAGS, compilers)


def environment(path: Path) -> dict:
    """Return this process's environment with the library before all that is preloaded already."""
    there = os.environ.get(VARIABLE, "")
    return os.environ | {VARIABLE: f"{path}:{there}" if there else str(path)}


def active() -> bool:
    """Whether the library is in this process."""
    return hasattr(ctypes.CDLL(None), "tcp_on_unix")
