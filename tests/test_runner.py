"""Notebooks run as the driver promises: red stays red, parameters keep their types, folders are whole or absent."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from photonlab import paths
from photonlab.errors import UserError
from photonlab.lab import execution, kernel, parameters, profiles, rundir, runner

FIXTURES = Path(__file__).parent / "notebooks"
LIMITS = {name: {"limits": {"cell_seconds": 60}} for name in profiles.NAMES}
READ_ALL = 'count = 3\nrate = 0.5\nsymbol = "AAPL"\nitch = ""\nfast = True\nsizes = [1, 8]'


def write_notebook(path, *cells):
    """A notebook of code cells; the first is the parameters cell."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    if cells:
        book.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(book, path)
    return path


# --------------------------------------------------------------------------------------------------- red stays red


@pytest.mark.parametrize(
    ("name", "cell", "words"),
    [
        ("red-exception", 4, "IndexError: list index out of range"),
        ("red-exit", 4, "SystemExit: 0"),
        ("red-exit-early", 3, "SystemExit"),
        ("red-shell", 3, "!false"),
        ("red-killed", 4, "the kernel died"),
        ("red-timeout", 4, "longer than 3 s"),
    ],
)
@pytest.mark.parametrize("values", [{}, {"count": 4}], ids=["defaults", "given"])
def test_red_is_red(tmp_path, name, cell, words, values):
    """Trap 24: nothing is exported, and the message names the cell as the author counts them."""
    with pytest.raises(execution.NotebookFailed, match=words) as caught:
        execution.run_notebook(FIXTURES / f"{name}.ipynb", values, tmp_path, cell_seconds=3)
    assert (caught.value.notebook, caught.value.cell) == (name, cell)
    assert not list((tmp_path / "notebooks").glob("*")) if (tmp_path / "notebooks").exists() else True


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


# ------------------------------------------------------------------------------------------------- parameters


def test_types_are_those_of_the_declaration(tmp_path):
    """Trap 25: symbols stay text, whole numbers stay whole; and the kernel sees exactly that."""
    given = {"count": "1e6", "rate": "3", "symbol": "010", "fast": "no", "sizes": "1,2,3"}
    assert run_green(tmp_path, given)["values"] == [1_000_000, 3.0, "010", "", False, [1, 2, 3]]


@pytest.mark.parametrize("text", ["010", "NAN", "1e6", "True", "None", "", "a,b", "'x'", "inf"])
def test_text_stays_text(text):
    assert parameters.fit("symbol", "AAPL", text) == text


@pytest.mark.parametrize(
    ("default", "text", "expected"),
    [
        (1, "1e6", 1_000_000),
        (1, "1_000", 1000),
        (1, "-5", -5),
        (1, "010", 10),
        (1, str(2**63 + 1), 2**63 + 1),
        (1.0, "1e-3", 0.001),
        (1.0, "2", 2.0),
        (1.0, 2, 2.0),
        (True, "off", False),
        ([1, 2], "4", [4]),
        ([1, 2], "1e3, 2", [1000, 2]),
        (["a"], "010,NAN", ["010", "NAN"]),
        ([], "x", ["x"]),
    ],
)
def test_values_that_fit(default, text, expected):
    value = parameters.fit("x", default, text)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("default", "value"),
    [
        (1, "1.5"), (1, "NAN"), (1, "inf"), (1, ""), (1, "0x10"), (1, "1e400"), (1, 1.0), (1, True), (1, [1]),
        (1.0, "nan"), (1.0, "inf"), (1.0, "x"), (1.0, True), (True, "maybe"), (True, 1), ("a", 1), ("a", None),
        ([1], "1,x"), ([1], 1), ([1], [1.5]),
    ],
)  # fmt: skip
def test_values_that_do_not_fit(default, value):
    with pytest.raises(UserError, match=r"^x: expected"):
        parameters.fit("x", default, value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a = 1\nb = 2 * a", "b is derived"),
        ("import os", "only 'name = literal'"),
        ("a = b = 1", "only 'name = literal'"),
        ("a, b = 1, 2", "only 'name = literal'"),
        ("a += 1", "only 'name = literal'"),
        ("a: int", "only 'name = literal'"),
        ("print(1)", "only 'name = literal'"),
        ("a = None", "neither"),
        ("a = {'x': 1}", "neither"),
        ("a = [1, 'x']", "neither"),
        ("a = 1\na = 2", "set twice"),
        ("a = (", "not Python"),
        ("a = 10**6", "derived"),
        ("a = f'{1}'", "derived"),
    ],
)
def test_the_parameters_cell_holds_literals_only(tmp_path, source, words):
    with pytest.raises(UserError, match=words):
        parameters.declared(write_notebook(tmp_path / "book.ipynb", source))


def test_declarations_are_those_that_papermill_sees():
    import papermill

    seen = papermill.inspect_notebook(FIXTURES / "green.ipynb")
    assert list(parameters.declared(FIXTURES / "green.ipynb")) == list(seen)


def test_a_misspelt_or_untagged_parameter_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(UserError, match="no parameter 'cuont'; it has: count"):
        execution.run_notebook(FIXTURES / "green.ipynb", {"cuont": 1}, tmp_path / "out")
    with pytest.raises(UserError, match="0 cells have the tag"):
        execution.run_notebook(FIXTURES / "red-untagged.ipynb", {"count": 1}, tmp_path / "out")
    with pytest.raises(UserError, match="double is derived"):
        execution.run_notebook(FIXTURES / "red-derived.ipynb", {}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\x00\x01", '{"nbformat": 4, "cells": 3}'])
def test_a_file_that_is_no_notebook(tmp_path, content):
    path = tmp_path / "book.ipynb"
    path.write_text(content)
    with pytest.raises(UserError, match=r"book\.ipynb: "):
        parameters.declared(path)


# --------------------------------------------------------------------------------------------------- profiles


def test_the_profiles_of_the_project_fit_its_notebooks():
    """Every entry names a notebook and a parameter that exist, with a value of the declared type."""
    notebooks = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    names = {path.stem for path in notebooks}
    for name, profile in profiles.load().items():
        assert set(profile) - {"limits"} <= names, name
        profiles.resolve(name, notebooks)
        assert profiles.cell_seconds(name) > 0


def test_overrides_win_over_the_profile(tmp_path):
    book = write_notebook(tmp_path / "02-book.ipynb", READ_ALL)
    mine = LIMITS | {"smoke": {"02-book": {"count": 7, "symbol": "X"}}}
    given = profiles.overrides(["02.count=1e3", "02-book.symbol=010", "02.rate=1", "02.rate=2"])
    got = profiles.resolve("smoke", [book], given=given, profiles=mine)
    assert got == {"02-book": {"count": 1000, "symbol": "010", "rate": 2.0}}


def test_itch_goes_to_every_notebook_that_can_read_a_file(tmp_path):
    reads = write_notebook(tmp_path / "reads.ipynb", READ_ALL)
    other = write_notebook(tmp_path / "other.ipynb", "n = 1")
    file = tmp_path / "day.itch"
    got = profiles.resolve("quick", [reads, other], itch=file, profiles=LIMITS)
    assert got == {"reads": {"itch": str(file)}, "other": {}}
    with pytest.raises(UserError, match="--itch: none of other"):
        profiles.resolve("quick", [other], itch=file, profiles=LIMITS)


@pytest.mark.parametrize("text", ["", "x", "x=1", "=1", ".x=1", "x.=1", "02.count"])
def test_override_of_another_form(text):
    with pytest.raises(UserError, match="not of the form"):
        profiles.overrides([text])


def test_names_may_be_cut_short_while_they_are_clear():
    stems = ["01-parser", "02-order-book", "02-other"]
    assert profiles.match("01", stems) == "01-parser"
    assert profiles.match("02-order-book.ipynb", stems) == "02-order-book"
    for word in ("02", "03", ""):
        with pytest.raises(UserError, match="notebook '"):
            profiles.match(word, stems)


def test_damaged_profiles(tmp_path):
    file = tmp_path / "profiles.toml"
    file.write_text("smoke = [")
    with pytest.raises(UserError, match=r"profiles\.toml"):
        profiles.load(file)
    file.write_text("[smoke.limits]\ncell_seconds = 1")
    with pytest.raises(UserError, match="expected smoke, quick, full"):
        profiles.load(file)


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


def test_a_failed_notebook_leaves_no_page(tmp_path, monkeypatch):
    """And no page of an older run in its place; what ran before it is there to look at."""
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
    assert not (out / "report.html").exists()
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
