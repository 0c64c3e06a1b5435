"""The Jupyter kernel of a run: this Python, this environment, and sockets in a folder of its own."""

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

QUIET = {
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # else debugpy warns about frozen modules on standard error
    "MPLBACKEND": "agg",  # figures are shown by figures.save only, never by accident
    "PYTHONHASHSEED": "0",
}


@contextmanager
def manager_class(variables, log):
    """Make a kernel manager class for one notebook.

    The kernel is `sys.executable -m ipykernel_launcher`, whatever kernel specifications the user has installed, without
    the user's IPython start-up files.

    Parameters
    ----------
    variables : dict of str to str
        Set in the kernel's environment, beside what the driver has.
    log : pathlib.Path
        Takes what the kernel's process itself says (a crash's last words); what cells print is in the notebook.

    Yields
    ------
    type
        For `nbclient.NotebookClient.kernel_manager_class`; one kernel at a time.
    """
    # A socket's path is limited to about a hundred bytes, so not below the run's folder.
    folder = Path(tempfile.mkdtemp(prefix="photonlab-"))
    environment = QUIET | {"IPYTHONDIR": str(folder)} | variables
    spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name="photonlab",
        language="python",
        # jupyter_client substitutes $NAME in these.
        env={name: value.replace("$", "$$") for name, value in environment.items()},
    )

    class Manager(AsyncKernelManager):
        def __init__(self, **options):
            # ipc keeps other users of the machine off the kernel's channels, and ipykernel warns about TCP.
            if os.name == "posix":
                options |= {"transport": "ipc", "ip": str(folder / "kernel")}
            super().__init__(connection_file=str(folder / "kernel.json"), **options)

        @property
        def kernel_spec(self):
            return spec

        async def _async_launch_kernel(self, kernel_cmd, **options):
            with log.open("wb") as file:
                await super()._async_launch_kernel(kernel_cmd, **options | {"stdout": file, "stderr": file})

        _launch_kernel = _async_launch_kernel

    try:
        yield Manager
    finally:
        shutil.rmtree(folder, ignore_errors=True)
