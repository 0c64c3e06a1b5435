"""Whether kernels are built with the hooks of ThreadSanitizer, and where its runtime is.

With PHOTONLAB_TSAN=1 in the environment of a process every operation of `photonlab.machine.atomics` becomes a call of
the sanitizer's runtime, which keeps for each word by whom it was last touched and what each thread has seen of the
others. The runtime must be in the process from its start (LD_PRELOAD), so such kernels run in a process of their own.
"""

import ctypes
import os
import subprocess
from pathlib import Path

from photonlab.errors import UserError

VARIABLE = "PHOTONLAB_TSAN"
HOOKED = os.environ.get(VARIABLE, "") not in ("", "0")
"""Kernels of this process are built with hooks; part of the key under which they are cached."""

_PLACES = ("/usr/lib/*/libtsan.so.*", "/usr/lib64/libtsan.so.*", "/usr/lib/gcc/*/*/libtsan.so", "/usr/lib/libtsan.so.*")


def runtime() -> Path | None:
    """Return the path of ThreadSanitizer's runtime, or None: as the compiler names it, or where systems put it."""
    try:
        asked = subprocess.run(["gcc", "-print-file-name=libtsan.so"], capture_output=True, text=True, timeout=10)
        named = [Path(asked.stdout.strip())]
    except (OSError, subprocess.TimeoutExpired):
        named = []
    named += [path for place in _PLACES for path in sorted(Path("/").glob(place[1:]))]
    return next((path.resolve() for path in named if path.is_absolute() and path.is_file()), None)


def check_runtime():
    """Refuse to build kernels whose hooks lead nowhere: the compiler would end the process.

    Raises
    ------
    UserError
        Hooks are wanted, and the runtime is not in this process.
    """
    if HOOKED and not hasattr(ctypes.CDLL(None), "__tsan_read8"):
        raise UserError(f"{VARIABLE} is set, but ThreadSanitizer's runtime is not in this process; see LD_PRELOAD")
