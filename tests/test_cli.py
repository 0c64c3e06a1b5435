"""The command line: quick to start, one clear line for each mistake, and the promised exit statuses."""

import io
import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from photonlab import cli, console
from photonlab.commands import verdicts
from photonlab.errors import ItchFormatError, UserError
from photonlab.lab.publish import rundir, runner


def photonlab(*arguments, **options):
    command = [sys.executable, "-m", "photonlab", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, **options)


def one_line(capsys):
    """What stands on standard error: one line that names the program."""
    said = capsys.readouterr()
    assert said.err.startswith("photonlab: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    return said.err


def test_help_is_quick_and_names_every_command():
    code = "import sys; sys.argv = ['photonlab', '--help']; from photonlab.cli import main\n"
    code += "try: main()\nexcept SystemExit: print(sorted({'numba', 'pandas', 'nbformat'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr
    for command in ("synth", "replay", "report", "verdicts"):
        assert f"\n    {command} " in done.stdout


def test_module_and_script_are_the_same():
    assert photonlab("--version").stdout.startswith("photonlab ")


@pytest.mark.parametrize(
    "arguments",
    [[], ["nothing"], ["replay"], ["replay", "x", "--symbols", ","], ["synth"], ["synth", "x", "--messages", "many"],
     ["synth", "x", "--messages", "-1"], ["synth", "x", "--seed", "1.5"], ["report", "--unknown"], ["verdicts"]],
)  # fmt: skip
def test_wrong_options_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "photonlab" in capsys.readouterr().err.splitlines()[-1]


def test_numbers_may_be_written_as_people_do():
    options = cli.parser().parse_args(["synth", "x", "--messages", "1e6", "--seed", "1_000"])
    assert (options.messages, options.seed) == (1_000_000, 1000)


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (UserError("x.itch: no\nsuch thing"), 2, "photonlab: x.itch: no such thing"),
        (ItchFormatError("x.itch: offset 3"), 2, "photonlab: x.itch: offset 3"),
        (FileNotFoundError(2, "No such file or directory", "x"), 2, "photonlab: x: no such file or directory"),
        (IsADirectoryError(21, "Is a directory", "x"), 2, "photonlab: x: is a directory"),
        (PermissionError(13, "Permission denied", "x"), 2, "photonlab: x: permission denied"),
        (OSError("no space"), 2, "photonlab: no space"),
        (KeyboardInterrupt(), 130, "photonlab: interrupted"),
    ],
)
def test_each_error_is_one_line(monkeypatch, capsys, error, status, line):
    def fail(_):
        raise error

    monkeypatch.setattr(verdicts, "_run", fail)
    assert cli.main(["verdicts", "x"]) == status
    assert one_line(capsys) == f"{line}\n"


def test_a_bug_is_not_hidden(monkeypatch):
    monkeypatch.setattr(verdicts, "_run", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["verdicts", "x"])


def test_a_failed_notebook_exits_with_1(monkeypatch, capsys):
    def fail(*_, **__):
        raise runner.NotebookFailed("01-parser", 7, "ValueError: x", "Traceback\n  line")

    monkeypatch.setattr(runner, "run_report", fail)
    assert cli.main(["report"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said == ["Traceback", "  line", "photonlab: 01-parser failed in cell 7: ValueError: x"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "--profile", "slow"], "no profile 'slow'; there are: smoke, quick, full"),
        (["report", "--only", "77"], "no notebook '77'"),
        (["report", "--itch", "/nonexistent.itch"], "/nonexistent.itch: no such file"),
        (["report", "--itch", "/"], "/: is a directory"),
        (["report", "--parameter", "x"], "'x' is not of the form NOTEBOOK.name=value"),
        (["report", "--parameter", "99.nothing=1"], "99-verdicts has no parameter 'nothing'"),
        (["verdicts", "/nonexistent"], "/nonexistent: no such folder"),
        (["verdicts", "/"], "/: not the folder of a photonlab run"),
    ],
)
def test_mistakes_of_the_user(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    extra = ["--out", str(tmp_path / "out")] if arguments[0] == "report" else []
    assert cli.main([*arguments, *extra]) == 2
    assert words in one_line(capsys)
    assert list(tmp_path.iterdir()) == []


def test_verdicts_of_a_run(tmp_path, capsys):
    (tmp_path / "rows").mkdir()
    rundir.write_json(tmp_path / rundir.MARKER, {"photonlab": "0"})
    assert cli.main(["verdicts", str(tmp_path), "--json"]) == 0
    judged = json.loads(capsys.readouterr().out)
    wanted = {"claim", "verdict", "published", "value", "unit", "low", "high", "notebook", "reason"}
    assert all(wanted <= set(one) for one in judged)
    assert {one["claim"] for one in judged} >= {"T1", "R1", "P1", "F1", "S1", "A1", "M1"}
    assert cli.main(["verdicts", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "inconsistent as published" in said
    assert said.splitlines()[-1].startswith(f"Of {len(judged)} claims, ")


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    (tmp_path / "rows").mkdir()
    rundir.write_json(tmp_path / rundir.MARKER, {"photonlab": "0"})
    read, write = os.pipe()
    command = [sys.executable, "-m", "photonlab", "verdicts", str(tmp_path), "--json"]
    process = subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    os.close(read)
    _, said = process.communicate(timeout=120)
    assert said == ""
    assert process.returncode == 0


# ------------------------------------------------------------------------------------------------- on a terminal


def test_progress_is_drawn_and_wiped():
    stream = io.StringIO()
    with console.progress(True, stream) as draw:
        draw(0, 10)
        draw(5, 10)
        draw(10, 10)
    drawn = stream.getvalue()
    assert "100 %" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_no_progress_where_none_is_wanted():
    stream = io.StringIO()
    with console.progress(False, stream) as draw:
        assert draw is None
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("done", "total", "seconds", "text"),
    [
        (0, 10, 1.0, "[" + " " * 30 + "]   0 %"),
        (5, 10, 2.0, "[" + "#" * 15 + " " * 15 + "]  50 %, 2.5/s, 2 s left"),
        (6_240_000, 0, 20.0, "6,240,000 … 20 s, 312 k/s"),
        (4e9, 8e9, 10.0, "[" + "#" * 15 + " " * 15 + "]  50 %, 400 M/s, 10 s left"),
        (12, 10, 2.0, "[" + "#" * 30 + "] 100 %, 6/s, 0 s left"),
        (1234, 0, 2.0, "1,234 … 2 s, 617/s"),
    ],
)
def test_bar(done, total, seconds, text):
    assert console.bar(done, total, seconds) == text


def test_replay_of_a_file(tmp_path, capsys):
    """From a synthetic day to its books, in words and as JSON; symbols that are not there are refused."""
    day = tmp_path / "day.itch"
    assert cli.main(["synth", str(day), "--messages", "3e4", "--seed", "7"]) == 0
    assert "30,000 messages" in capsys.readouterr().out
    truth = json.loads((tmp_path / "day.itch.truth.json").read_text())
    assert cli.main(["replay", str(day), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    keys = "messages bytes seconds messages_per_second counts anomalies live_orders checksum"
    assert set(keys.split()) <= set(facts)
    assert facts["messages"] == truth["messages"] == 30_000
    assert facts["bytes"] == day.stat().st_size
    assert cli.main(["replay", str(day), "--top", "3", "--progress"]) == 0
    said = capsys.readouterr()
    assert "30,000 messages" in said.out
    assert "A  Add Order" in said.out
    assert "No anomalies." in said.out
    assert "(3 of" in said.out
    assert len(said.out.split("Best prices")[1].splitlines()) == 5
    assert cli.main(["replay", str(day), "--symbols", "NOSUCH"]) == 2
    assert "NOSUCH" in one_line(capsys)


@pytest.mark.parametrize("content", [b"", b"# a text\n" * 100, None])
def test_replay_of_what_is_no_feed(tmp_path, capsys, content):
    path = tmp_path / "x.itch"
    path.mkdir() if content is None else path.write_bytes(content)
    assert cli.main(["replay", str(path), "--json"]) == 2
    assert str(path) in one_line(capsys)


def test_a_side_without_orders_shows_a_dash():
    sides = {"bid": [1_000_000, None], "bid_shares": [5, None], "ask": [None, 2], "ask_shares": [None, 1_000]}
    frame = pd.DataFrame(sides, index=["AAPL", "B"], dtype="Int64").assign(volume=[7, 0])
    lines = [line.split() for line in console.best_lines(frame)[1:]]
    assert lines == [["AAPL", "5", "100.0000", "–", "–", "7"], ["B", "–", "–", "0.0002", "1,000", "0"]]
