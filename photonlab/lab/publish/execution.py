"""Runs notebooks, one at a time, and calls a run green only when nothing speaks against it.

papermill alone is too kind: a cell that calls `sys.exit(0)`, a failing `!command`, a killed kernel and a time-out all
leave a notebook that looks finished. So the cells must be plain Python, and afterwards each must have run to its end.
"""

import ast
import logging
import os
import re
import time
from pathlib import Path

import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

from photonlab import paths
from photonlab.errors import UserError
from photonlab.lab.publish import kernel, parameters

USER_ERRORS = {"UserError", "ItchFormatError"}
HIDDEN_EXITS = {"exit", "quit", "get_ipython"}
ANSI = re.compile(r"\x1b\[[0-9;]*m")

# The driver tells the user itself; the loggers would say the same again, less clearly.
logging.getLogger("papermill").addHandler(logging.NullHandler())
logging.getLogger("traitlets").addHandler(logging.NullHandler())


class NotebookFailed(Exception):
    """A notebook that did not run to its end.

    Parameters
    ----------
    notebook : str
    cell : int or None
        Number among all cells, from 1, of the notebook as it lies in the repository.
    reason : str
        One line.
    details : str
        The traceback, if there is one.
    """

    def __init__(self, notebook, cell, reason, details=""):
        where = f"{notebook} failed" if cell is None else f"{notebook} failed in cell {cell}"
        super().__init__(f"{where}: {reason}")
        self.notebook, self.cell, self.reason, self.details = notebook, cell, reason, details


def find(name):
    """Find a notebook by name.

    Parameters
    ----------
    name : str or pathlib.Path
        A path to an .ipynb file, or the name of one in notebooks/.

    Returns
    -------
    pathlib.Path
    """
    path = Path(name) if str(name).endswith(".ipynb") else paths.NOTEBOOKS / f"{name}.ipynb"
    if not path.is_file():
        raise UserError(f"no notebook {path}")
    return path.resolve()


def run_notebook(name, values, out, *, run="", cell_seconds=600, folder=None):
    """Execute one notebook into the folder of a run.

    Parameters
    ----------
    name : str or pathlib.Path
        As for `find`.
    values : dict
        Parameters that differ from the defaults, or their text; they are typed by declaration.
    out : pathlib.Path
        The run's folder; the kernel finds it in PHOTONLAB_OUT.
    run : str
        The run's id, for PHOTONLAB_RUN.
    cell_seconds : float
        The longest time for one cell.
    folder : pathlib.Path, optional
        The kernel's working directory; default: that of the notebook, as in JupyterLab.

    Returns
    -------
    float
        Seconds from the kernel's start to its end. The executed notebook is `out/notebooks/<name>.ipynb`.

    Raises
    ------
    NotebookFailed
        Nothing lies in out/notebooks then; what there is of the notebook lies in out/failed.
    UserError
        An unknown parameter, a value of the wrong type or a missing parameters cell, before anything ran; or the
        notebook itself raised one (an input file that is none).
    """
    source, out = find(name), Path(out).resolve()
    stem = source.stem
    values = parameters.fit_all(source, values)
    check_cells(stem, parameters.read_notebook(source))
    for part in ("notebooks", "failed", "figures", "rows"):
        (out / part).mkdir(parents=True, exist_ok=True)
    attempt, finished = out / "failed" / f"{stem}.ipynb", out / "notebooks" / f"{stem}.ipynb"
    finished.unlink(missing_ok=True)
    log = attempt.with_suffix(".log")
    variables = {"PHOTONLAB_OUT": str(out), "PHOTONLAB_RUN": run, "PHOTONLAB_NOTEBOOK": stem}
    shift = 1 if values else 0  # papermill puts a cell with the given values behind the parameters cell
    started = time.perf_counter()
    with kernel.manager_class(variables, log) as manager_class:
        try:
            executed = papermill.execute_notebook(
                source,
                attempt,
                parameters=values,
                kernel_name="python3",  # only chooses papermill's dialect; the manager decides what is started
                kernel_manager_class=manager_class,
                execution_timeout=cell_seconds,
                cwd=source.parent if folder is None else folder,
                progress_bar=False,
            )
        except PapermillExecutionError as error:
            if error.ename in USER_ERRORS:
                raise UserError(f"{stem}: {error.evalue}") from None
            cell = error.cell_index + 1 - shift
            details = ANSI.sub("", "\n".join(error.traceback))
            raise NotebookFailed(stem, cell, _summary(error.ename, error.evalue), details) from None
        except CellTimeoutError:
            reason = f"the cell took longer than {cell_seconds} s"
            raise NotebookFailed(stem, _last_cell(attempt, shift), reason) from None
        except DeadKernelError:
            reason = "the kernel died (killed, or out of memory)"
            raise NotebookFailed(stem, _last_cell(attempt, shift), reason, _text(log)) from None
        except RuntimeError as error:  # nbclient: the kernel did not answer in time after its start
            raise NotebookFailed(stem, None, str(error), _text(log)) from error
    seconds = time.perf_counter() - started
    cell, reason = why_red(executed)
    if reason:
        raise NotebookFailed(stem, cell - shift, reason)
    for key in ("input_path", "output_path"):  # where the run happened is nobody's business
        executed.metadata.papermill.pop(key, None)
    nbformat.write(executed, attempt)
    os.replace(attempt, finished)
    log.unlink(missing_ok=True)
    return seconds


def check_cells(stem, notebook):
    """Refuse cells that could fail without anybody noticing: not plain Python, or leaving by IPython's back door.

    Parameters
    ----------
    stem : str
    notebook : nbformat.NotebookNode

    Raises
    ------
    NotebookFailed
    """
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type != "code":
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError as error:
            line = (cell.source.splitlines() or [""])[(error.lineno or 1) - 1 :][:1]
            reason = f"not plain Python: {''.join(line).strip()!r} (shell and magic commands hide their failures)"
            raise NotebookFailed(stem, number, reason) from None
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in HIDDEN_EXITS:
                raise NotebookFailed(stem, number, f"{node.id} is not allowed in a notebook: it hides failures")


def why_red(executed):
    """Say what speaks against an executed notebook.

    Parameters
    ----------
    executed : nbformat.NotebookNode
        As papermill returns it.

    Returns
    -------
    tuple of (int or None, str)
        Number of the cell among all of the executed notebook, and the reason; (None, "") if it is green.
    """
    expected = 0
    for number, cell in enumerate(executed.cells, 1):
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        expected += 1
        for output in cell.outputs:
            if output.output_type == "error":
                return number, _summary(output.ename, output.evalue)
        if cell.execution_count is None:
            return number, "the cell never ran"
        if cell.execution_count != expected:
            return number, f"the cell ran as number {cell.execution_count}, expected {expected}"
        state = cell.metadata.get("papermill", {})
        if state.get("status") != "completed" or state.get("exception") is not False:
            return number, f"the cell ended as {state.get('status', 'unknown')}"
    return None, ""


def _summary(name, value):
    first = (value or "").strip().splitlines()[:1]
    return ": ".join([name, *first])


def _text(log):
    return log.read_text(errors="replace").strip() if log.exists() else ""


def _last_cell(attempt, shift):
    """The cell that was running when the kernel was lost, by the start times that papermill left."""
    try:
        cells = nbformat.read(attempt, as_version=4).cells
    except (OSError, ValueError):
        return None
    states = [cell.metadata.get("papermill", {}) for cell in cells]
    running = [number for number, state in enumerate(states, 1) if state.get("start_time")]
    return running[-1] - shift if running else None
