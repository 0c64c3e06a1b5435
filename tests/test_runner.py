"""Notebooks run as the driver promises: red stays red, the kernel is ours, folders are whole or absent."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from photonlab.errors import UserError
from photonlab.lab.publish import execution, kernel, profiles, rundir, runner

FIXTURES = Path(__file__).parent / "notebooks"
LIMITS = {name: {"limits": {"cell_seconds": 60}} for name in profiles.NAMES}


# --------------------------------------------------------------------------------------------------- red stays red


@pytest.mark.parametrize(
    ("name", "values", "cell", "words"),
    [
        ("red-exception", {}, 4, "IndexError: list index out of range"),
        ("red-exception", {"count": 4}, 4, "IndexError: list index out of range"),
        ("red-exit", {}, 4, "SystemExit: 0"),
        ("red-exit", {"count": 4}, 4, "SystemExit: 0"),
        ("red-exit-early", {}, 3, "SystemExit"),
        ("red-shell", {}, 3, "!false"),
        ("red-killed", {}, 4, "the kernel died"),
        ("red-timeout", {"count": 4}, 4, "longer than 2 s"),
    ],
)
def test_red_is_red(tmp_path, name, values, cell, words):
    """Trap 24: nothing is exported, and the message names the cell as the author counts them."""
    with pytest.raises(execution.NotebookFailed, match=words) as caught:
        execution.run_notebook(FIXTURES / f"{name}.ipynb", values, tmp_path, cell_seconds=2)
    assert (caught.value.notebook, caught.value.cell) == (name, cell)
    assert not list(tmp_path.glob("notebooks/*"))


def test_an_older_green_copy_does_not_survive_a_red_run(tmp_path):
    stale = tmp_path / "notebooks" / "red-exit.ipynb"
    stale.parent.mkdir()
    stale.write_text("{}")
    with pytest.raises(execution.NotebookFailed):
        execution.run_notebook(FIXTURES / "red-exit.ipynb", {}, tmp_path)
    assert not stale.exists()


@pytest.mark.parametrize(
    "source",
    ["%%bash\nfalse", "!false", "files = !ls", "%run other.py", "get_ipython().system('false')", "exit()", "quit"],
)
def test_cells_that_hide_failures_are_refused(source):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    with pytest.raises(execution.NotebookFailed, match="in cell 1"):
        execution.check_cells("book", book)


def executed(**changes):
    """A cell as papermill leaves it after it ran."""
    cell = nbformat.v4.new_code_cell("1", execution_count=1)
    cell.metadata["papermill"] = {"status": "completed", "exception": False}
    cell.update({name: value for name, value in changes.items() if name != "papermill"})
    cell.metadata["papermill"].update(changes.get("papermill", {}))
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), cell])


def test_a_finished_notebook_is_green():
    assert execution.why_red(executed()) == (None, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"execution_count": None},
        {"execution_count": 2},
        {"papermill": {"status": "pending"}},
        {"papermill": {"status": "failed"}},
        {"papermill": {"exception": True}},
        {"papermill": {"exception": None}},
        {"outputs": [nbformat.v4.new_output("error", ename="SystemExit", evalue="0", traceback=[])]},
    ],
)
def test_each_sign_of_trouble_is_enough(changes):
    cell, reason = execution.why_red(executed(**changes))
    assert cell == 2
    assert reason


# ------------------------------------------------------------------------------------------- what the kernel is


def run_green(out, values=(), **options):
    execution.run_notebook(FIXTURES / "green.ipynb", dict(values), out, **options)
    return json.loads((out / "seen.json").read_text())


def test_kernel_is_this_python_with_the_runs_environment(tmp_path, monkeypatch):
    """Also where the user has a kernel of the same name that is somewhere else."""
    spec = tmp_path / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    wrong = {"argv": ["/bin/false", "{connection_file}"], "display_name": "x", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(wrong))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    seen = run_green(tmp_path, run="the-run")
    assert seen["python"] == sys.executable
    assert (seen["PHOTONLAB_OUT"], seen["PHOTONLAB_RUN"]) == (str(tmp_path), "the-run")
    assert seen["PHOTONLAB_NOTEBOOK"] == "green"
    assert seen["cwd"] == str(FIXTURES)
    book = nbformat.read(tmp_path / "notebooks" / "green.ipynb", 4)
    assert str(tmp_path) not in json.dumps(book.metadata)


def test_working_directory_makes_no_difference(tmp_path, monkeypatch):
    """Trap 27, for the driver's working directory and for the kernel's."""
    here, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    first = run_green(here)
    monkeypatch.chdir(there)
    second = run_green(Path("relative"), folder=there)
    assert second["cwd"] == str(there)
    assert second["values"] == first["values"]
    assert (there / "relative" / "notebooks" / "green.ipynb").exists()


def test_environment_reaches_the_kernel_unaltered(tmp_path):
    """jupyter_client replaces $NAME in a kernel's environment; a path may contain a dollar sign."""
    out = tmp_path / "a$HOME b"
    assert run_green(out)["PHOTONLAB_OUT"] == str(out)


def test_no_files_are_left_where_sockets_were(tmp_path, monkeypatch):
    made = []
    plain = kernel.tempfile.mkdtemp
    monkeypatch.setattr(kernel.tempfile, "mkdtemp", lambda **kw: made.append(plain(**kw)) or made[-1])
    run_green(tmp_path)
    assert made
    assert not any(map(os.path.exists, made))


def test_types_are_those_of_the_declaration(tmp_path):
    """Trap 25: symbols stay text, whole numbers stay whole; and the kernel sees exactly that."""
    given = {"count": "1e6", "rate": "3", "symbol": "010", "fast": "no", "sizes": "1,2,3"}
    assert run_green(tmp_path, given)["values"] == [1_000_000, 3.0, "010", "", False, [1, 2, 3]]


# ------------------------------------------------------------------------------------------- the run's folder


def test_a_run_appears_whole(tmp_path):
    out = tmp_path / "run"
    with rundir.building(out) as (folder, _):
        rundir.write_json(folder / rundir.MARKER, {"photonlab": "0"})
        assert not out.exists()
    assert rundir.read_facts(out) == {"photonlab": "0"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_that_broke_off_leaves_the_older_one(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    rundir.write_json(out / rundir.MARKER, {"photonlab": "old"})
    with pytest.raises(KeyboardInterrupt), rundir.building(out) as (folder, _):
        (folder / "half").write_text("x")
        raise KeyboardInterrupt
    assert rundir.read_facts(out) == {"photonlab": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("make", ["file", "folder", "link", "other-json"])
def test_nothing_else_is_replaced(tmp_path, make):
    out = tmp_path / "run"
    if make == "file":
        out.write_text("mine")
    elif make == "link":
        out.symlink_to(tmp_path)
    else:
        out.mkdir()
        (out / ("run.json" if make == "other-json" else "mine.txt")).write_text("{}")
    with pytest.raises(UserError), rundir.building(out):
        pass
    assert out.exists()


def test_what_killed_drivers_left_is_swept(tmp_path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    left, other = tmp_path / f".run.partial-{done.pid}", tmp_path / f".run.partial-{os.getppid()}"
    left.mkdir()
    other.mkdir()
    with rundir.building(tmp_path / "run") as (folder, _):
        rundir.write_json(folder / rundir.MARKER, {"photonlab": "0"})
    assert not left.exists()
    assert other.exists()


# --------------------------------------------------------------------------------------------- the whole run


def use_limits(monkeypatch):
    monkeypatch.setattr(profiles, "load", lambda file=None: LIMITS)


def folder_of(tmp_path, *names):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name in names:
        (folder / f"{name}.ipynb").write_bytes((FIXTURES / f"{name}.ipynb").read_bytes())
    return folder


def test_a_failed_notebook_leaves_a_page_that_says_so(tmp_path, monkeypatch):
    """And nothing of an older run in its place; what ran before it is there to look at."""
    use_limits(monkeypatch)
    folder, out, said = folder_of(tmp_path, "green", "red-exit"), tmp_path / "run", []
    out.mkdir()
    rundir.write_json(out / rundir.MARKER, {"photonlab": "old"})
    (out / "report.html").write_text("stale")
    with pytest.raises(runner.NotebookFailed, match="red-exit failed in cell 4"):
        runner.run_report("smoke", out=out, notebooks=folder, tell=said.append)
    facts = rundir.read_facts(out)
    assert facts["status"] == "failed"
    assert "red-exit failed in cell 4" in facts["failure"]
    page = (out / "report.html").read_text()
    assert "red-exit failed in cell 4" in page and "stale" not in page
    assert "<code>green</code>" in page and "<figure" not in page and 'class="verdict' not in page
    assert {path.name for path in (out / "notebooks").iterdir()} == {"green.ipynb"}
    assert "".join(said).startswith("[1/2] green … ")
    assert not list(tmp_path.glob(".run*"))


def test_user_errors_leave_everything_as_it_was(tmp_path, monkeypatch):
    use_limits(monkeypatch)
    folder, out = folder_of(tmp_path, "green", "red-input"), tmp_path / "run"
    given = {"red-input": {"itch": "some.itch"}}
    with pytest.raises(UserError, match="no feed of ITCH"):  # the notebook's own complaint
        runner.run_report("smoke", only=["red-input"], out=out, notebooks=folder, given=given, tell=len)
    usual = {"profile": "smoke", "out": out, "notebooks": folder, "tell": len}
    wrong = ({"profile": "slow"}, {"only": ["x"]}, {"itch": tmp_path / "none"}, {"given": {"green": {"x": "1"}}})
    for options in wrong:
        with pytest.raises((UserError, OSError)):
            runner.run_report(**usual | options)
    with pytest.raises(UserError, match="no notebooks"):
        runner.run_report("smoke", out=out, notebooks=tmp_path, tell=len)
    assert not out.exists()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
def test_the_kernel_does_not_outlive_its_driver(tmp_path, number):
    folder, out = folder_of(tmp_path, "sleeper"), tmp_path / "run"
    code = (
        "import sys; from photonlab import cli, paths; from pathlib import Path; "
        "paths.NOTEBOOKS = Path(sys.argv[1]); sys.exit(cli.main(sys.argv[2:]))"
    )
    command = [sys.executable, "-c", code, str(folder), "report", "--profile", "smoke", "--out", str(out)]
    driver = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (found := list(tmp_path.glob(".run.partial-*/pid"))) or not found[0].read_text():
        assert time.monotonic() < deadline
        assert driver.poll() is None, driver.stderr.read()
        time.sleep(0.05)
    pid = int(found[0].read_text())
    driver.send_signal(number)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == (130 if number == signal.SIGINT else -number), said
    while alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not out.exists()
    if number == signal.SIGINT:
        assert said.splitlines()[-1] == "photonlab: interrupted"
        assert "Traceback" not in said
        assert not list(tmp_path.glob(".run*"))
