"""photonlab feed: three processes of their own that find each other, and end with a summary when they are told to."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from photonlab.machine import udp
from photonlab.systems import synth
from photonlab.systems.replayer import Replayer

pytestmark = pytest.mark.skipif(not udp.available(), reason="no recvmmsg")
PORT = 41_000 + os.getpid() % 500 * 4


_started = []


@pytest.fixture(autouse=True)
def nothing_runs_on():
    """End what a test that failed has left, lest the next ones meet it on their ports."""
    yield
    while _started:
        with _started.pop() as process:
            process.kill()


def start(*arguments):
    process = subprocess.Popen(
        [sys.executable, "-m", "photonlab", "feed", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    _started.append(process)
    return process


def first_line(process):
    """Return the first line but for one that says what multicast is replaced by."""
    line = process.stdout.readline()
    return process.stdout.readline() if line.startswith("no multicast: ") else line


def interrupted(process):
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=20)
    return said


def test_three_processes_bring_a_day_across_with_losses_on_both_lines(tmp_path):
    day, path, page = synth.generate(4000, 1)[0], tmp_path / "day.itch", tmp_path / "schedule"
    day.tofile(path)
    lines = ("--group-b", "239.1.1.2", "--port", PORT, "--schedule", page)
    serving = start("serve", path, "--port", PORT + 2)
    assert "serving session PHOTONLAB" in first_line(serving)
    receiving = start("receive", *lines, "--mode", "poll", "--server", f"127.0.0.1:{PORT + 2}", "--patience", 10)
    assert "receiving " in first_line(receiving)
    sending = start("sim", path, *lines, "--rate", 8000, "--lose", "0.03,0.03")
    sent, _ = sending.communicate(timeout=30)
    received, _ = receiving.communicate(timeout=30)
    served = interrupted(serving)
    replayed = Replayer()
    replayed.feed(day)
    assert sending.returncode == receiving.returncode == 0, (sent, received)
    assert "4,000 messages in 4,000 packets" in sent
    assert "since due" in received
    assert f"the session is complete; books: {replayed.checksum()}" in received
    assert serving.returncode == 130
    assert "answers " in served


def test_a_silent_feed_can_be_left_and_ends_by_itself():
    receiving = start("receive", "--port", PORT + 3)
    assert "receiving" in first_line(receiving)
    taken = start("receive", "--port", PORT + 3)
    said, _ = taken.communicate(timeout=30)
    assert f":{PORT + 3}: the port is in use" in said
    assert taken.returncode == 2
    assert "stopped before the end of the session" in interrupted(receiving)
    assert receiving.returncode == 130
    receiving = start("receive", "--port", PORT + 3, "--silence", 0.1)
    said, _ = receiving.communicate(timeout=30)
    assert "nothing has come for 0.1 s" in said
    assert receiving.returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [("sim", "DAY", "--rate", 10), ("sim", "DAY", "--delay", 60), ("serve", "DAY", "--port", PORT + 2), ("receive",)],
)
def test_ctrl_c_ends_the_process_at_once_and_nothing_said_is_lost(tmp_path, arguments):
    path = tmp_path / "day.itch"
    synth.generate(4000, 1)[0].tofile(path)
    arguments = [path if one == "DAY" else one for one in arguments]
    process = start(*arguments, *(() if arguments[0] == "serve" else ("--port", PORT + 1)))
    assert first_line(process)
    began = time.perf_counter()
    said = interrupted(process)
    assert time.perf_counter() - began < 5  # a tenth, on a machine that is not busy
    assert process.returncode == 130
    assert said.endswith("photonlab: interrupted\n")
    assert {"sim": "messages in", "serve": "requests 0", "receive": "messages 0, packets 0"}[arguments[0]] in said


def test_a_synthetic_day_is_sent_and_served_by_one_process_and_gaps_are_those_planted(tmp_path):
    planted, gaps = tmp_path / "planted.json", tmp_path / "gaps.json"
    receive = ("receive", "--port", PORT, "--mode", "poll", "--patience", 0.005)
    sim = ("sim", "--synth", "small", "--messages", 4000, "--seed", 3, "--port", PORT, "--packets-per-second", 8000)
    for server in (False, True):
        asking, serving = (
            (("--server", f"127.0.0.1:{PORT + 2}", "--patience", 10), ("--serve", PORT + 2)) if server else ((), ())
        )
        receiving = start(*receive, *asking, "--gaps", gaps)
        assert "receiving " in first_line(receiving)
        sending = start(*sim, *serving, "--lose", 0.03, "--planted", planted)
        sent, _ = sending.communicate(timeout=30)
        received, _ = receiving.communicate(timeout=30)
        assert sending.returncode == receiving.returncode == 0, (sent, received)
        lost = json.loads(planted.read_text())["lost_on_every_line"]
        assert len(lost) > 50
        found = [[first, count] for first, count, _ in json.loads(gaps.read_text())["gaps"]]
        assert found == ([] if server else lost)
        assert ("answers " in sent) == server
    neither = start("sim", "--port", PORT)
    assert "give either a FILE or --synth PRESET" in neither.communicate(timeout=30)[0]
    assert neither.returncode == 2
