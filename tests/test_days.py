"""Many days: done once, done again when something changed, tried again when killed, and never half done."""

import json
import os
import signal
import threading
import time

import pandas as pd
import pytest

import photonlab
from photonlab import cli
from photonlab.errors import UserError
from photonlab.systems import days, synth
from photonlab.systems.days import local, many, unit

MESSAGES = 3_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("days")
    for seed in range(4):
        synth.write(where / f"0{seed + 1}302019.NASDAQ_ITCH50", MESSAGES, seed=seed)
    (where / "notes.txt").write_text("not a day")
    (where / ".hidden.gz").write_bytes(b"")
    return where


def test_days_are_found_by_their_names(folder, tmp_path):
    assert [one.name for one in unit.find(folder)] == ["01302019", "02302019", "03302019", "04302019"]
    assert [one.name for one in unit.find(folder / "01302019.NASDAQ_ITCH50", 2)] == [
        "01302019.1-of-2",
        "01302019.2-of-2",
    ]
    names = {"S071321-v50.txt.gz": "S071321", "a.itch.zst": "a", "20190730.BX_ITCH_50.gz": "20190730", "x": "x"}
    assert {name: unit.name_of(name) for name in names} == names
    with pytest.raises(UserError, match="holds no day"):
        unit.find(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        unit.find([folder, tmp_path / "nothing"])
    (tmp_path / "01302019.itch").touch()
    with pytest.raises(UserError, match="would both be called 01302019"):
        unit.find([folder, tmp_path / "01302019.itch"])


def test_a_run_and_the_same_again(folder, tmp_path):
    seen = []
    frame = days.run(folder, tmp_path, workers=2, progress=lambda *done: seen.append(done))
    assert list(frame["status"]) == ["done"] * 4 and seen[-1] == (4, 4) and list(frame["messages"]) == [MESSAGES] * 4
    alone = photonlab.replay(folder / "02302019.NASDAQ_ITCH50")
    assert frame.set_index("name").loc["02302019", "checksum"] == alone.checksum
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "summary.parquet"), frame)
    kept = {one.name for one in tmp_path.iterdir()}
    assert kept == {"01302019", "02302019", "03302019", "04302019", "summary.parquet", "summary.csv", ".lock"}
    again = days.run(folder, tmp_path, workers=2)
    assert list(again["status"]) == ["done before"] * 4
    assert list(again["checksum"]) == list(frame["checksum"])


def test_what_changed_is_done_again(folder, tmp_path):
    file = tmp_path / "a.itch"
    synth.write(file, MESSAGES, seed=1)
    first = days.run(file, tmp_path / "out", workers=1)
    synth.write(file, MESSAGES, seed=2)
    second = days.run(file, tmp_path / "out", workers=1)
    assert first.checksum[0] != second.checksum[0] and second.status[0] == "done"
    (tmp_path / "out" / "a" / unit.MARKER).write_text("{")
    assert days.run(file, tmp_path / "out", workers=1).status[0] == "done"


def test_left_over_halves_go(folder, tmp_path):
    half = tmp_path / f"{unit.UNFINISHED}01302019-x"
    half.mkdir()
    (half / "bbo.parquet").write_bytes(b"half")
    frame = days.run(folder / "01302019.NASDAQ_ITCH50", tmp_path, workers=1)
    assert list(frame.status) == ["done"] and not half.exists()


def test_a_bad_day_fails_alone_and_once(folder, tmp_path):
    bad = tmp_path / "bad.itch"
    bad.write_bytes(b"nothing of the kind" * 10)
    frame = days.run([folder / "01302019.NASDAQ_ITCH50", bad], tmp_path / "out", workers=2).set_index("name")
    assert frame.loc["01302019", "status"] == "done"
    assert frame.loc["bad", "status"] == "failed" and frame.loc["bad", "attempt"] == 1
    assert "not a file of ITCH 5.0" in frame.loc["bad", "error"]
    assert not (tmp_path / "out" / "bad").exists()


def killer(out, pid_of, killed):
    """Kill the process that is on a unit, once."""

    def watch():
        while not killed:
            for place in out.glob(f"{unit.UNFINISHED}*"):
                pid = pid_of(place)
                if pid:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    return
            time.sleep(0.001)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_a_killed_process_is_replaced(folder, tmp_path):
    """The kernel of the system may kill a worker for its memory: its day is done by another one."""
    killed = []

    def any_child(_):
        children = [one.pid for one in local.multiprocessing.active_children() if one.name == "photonlab-day"]
        return children[0] if children else None

    thread = killer(tmp_path, any_child, killed)
    frame = days.run(folder, tmp_path, workers=2)
    thread.join(5)
    assert len(killed) == 1 and list(frame["status"]) == ["done"] * 4
    assert list(frame["messages"]) == [MESSAGES] * 4
    assert not list(tmp_path.glob(f"{unit.UNFINISHED}*"))


def test_a_unit_that_always_kills_is_given_up(folder, tmp_path, monkeypatch):
    tasks = [many.Task(one) for one in unit.find(folder / "01302019.NASDAQ_ITCH50")]
    monkeypatch.setattr(local, "_serve", die)
    work, ended = local.run(tasks, tmp_path, 1), []
    answer = next(work)
    for _ in range(2):
        ended.append(answer[1:])
        answer = work.send(True)
    with pytest.raises(StopIteration):
        work.send(False)
    assert ended == [(False, local.KILLED, True)] * 2


def die(pipe):
    pipe.recv()
    os.kill(os.getpid(), signal.SIGKILL)


def test_tables_of_days_and_of_shards(folder, tmp_path):
    day = folder / "02302019.NASDAQ_ITCH50"
    whole = days.run(day, tmp_path / "whole", workers=1, bbo=True, messages="AD")
    parts = days.run(day, tmp_path / "parts", workers=2, shards=2, bbo=True, messages="AD")
    assert list(whole["status"]) == ["done"] and list(parts["name"]) == ["02302019.1-of-2", "02302019.2-of-2"]
    (one,) = [pd.read_parquet(path) for path in (tmp_path / "whole").rglob("bbo.parquet")]
    both = pd.concat([pd.read_parquet(path) for path in (tmp_path / "parts").rglob("bbo.parquet")])
    assert len(one) == len(both) > 100
    key = ["sequence", "symbol"]
    columns = ["bid", "bid_shares", "ask", "ask_shares"]
    left, right = (frame.astype({"symbol": str}).sort_values(key).set_index(key)[columns] for frame in (one, both))
    pd.testing.assert_frame_equal(left, right)
    assert days.run(day, tmp_path / "whole", workers=1, bbo=True, messages="AD").status[0] == "done before"
    assert days.run(day, tmp_path / "whole", workers=1, bbo=True).status[0] == "done", "other tables, done again"


def test_shards_without_tables(folder, tmp_path):
    frame = days.run(folder / "03302019.NASDAQ_ITCH50", tmp_path, workers=2, shards=3)
    alone = photonlab.replay(folder / "03302019.NASDAQ_ITCH50")
    assert frame["live_orders"].sum() == alone.live_orders and set(frame["messages"]) == {alone.messages}


def test_two_runs_at_a_time_are_refused(folder, tmp_path):
    with many._alone(tmp_path), pytest.raises(UserError, match="another run is working on it"):
        days.run(folder, tmp_path)


def test_on_a_cluster_of_which_a_worker_is_killed(folder, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        killed = []
        thread = killer(tmp_path, lambda _: pids[0], killed)
        frame = days.run(folder, tmp_path, scheduler=cluster.scheduler_address)
        thread.join(5)
    assert killed == pids[:1] and list(frame["status"]) == ["done"] * 4
    assert {json.loads((tmp_path / name / unit.MARKER).read_text())["name"] for name in frame["name"]} == set(
        frame["name"]
    )


def test_no_scheduler(folder, tmp_path):
    with pytest.raises(UserError, match="no Dask scheduler answers"):
        days.run(folder, tmp_path, scheduler="tcp://127.0.0.1:9")


def test_the_command(folder, tmp_path, capsys):
    bad = tmp_path / "bad.itch"
    bad.write_bytes(b"x" * 99)
    arguments = ["days", str(folder / "01302019.NASDAQ_ITCH50"), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.startswith("01302019: done: 3,000 messages in ")
    assert cli.main(["days", str(bad), *arguments[1:]]) == 1
    said = capsys.readouterr()
    assert "01302019: done before" in said.out and "bad: failed: " in said.out
    assert said.err.startswith("photonlab: 1 of 2 failed; ") and said.err.count("\n") == 1
    assert cli.main(["days", str(tmp_path / "nothing"), "--out", str(tmp_path / "out")]) == 2
    assert cli.main([*arguments, "--bbo", "--messages", "AD", "--shards", "2"]) == 0
    made = {path.name for path in (tmp_path / "out").rglob("*.parquet")} - {"summary.parquet"}
    assert "bbo.parquet" in made and any(name.startswith("messages_A") for name in made)
