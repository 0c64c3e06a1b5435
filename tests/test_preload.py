"""TCP moved onto AF_UNIX by a preloaded library: programs that know nothing of it do what they do without it."""

import os
import pickle
import platform
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from photonlab import paths
from photonlab.errors import UserError
from photonlab.machine import system
from photonlab.systems.tick_to_trade import apart
from photonlab.systems.transports import kinds, preload
from tests import tcp_programs
from tests.tcp_programs import asked_by_a_kernel, call, connected, dribbled, events, listen, mixed, refused

LIBRARY, WHY = preload.library()
ENVIRONMENTS = {"plain": None, "preloaded": LIBRARY and preload.environment(LIBRARY)}

pytestmark = pytest.mark.skipif(LIBRARY is None, reason=WHY)


def start(function, *arguments, preloaded):
    """Run one of the programs."""
    return subprocess.Popen(
        [sys.executable, tcp_programs.__file__, function.__name__, *map(str, arguments)], text=True,
        env=ENVIRONMENTS["preloaded" if preloaded else "plain"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def output_of(function, *arguments, preloaded):
    said, _ = start(function, *arguments, preloaded=preloaded).communicate(timeout=20)
    return said.splitlines()


@pytest.mark.parametrize("program", [connected, dribbled, refused, mixed, events])
def test_a_program_says_the_same_with_the_library_and_without(program):
    plain, moved = (output_of(program, preloaded=way) for way in (False, True))
    if program is connected:
        assert (plain.pop(), moved.pop()) == ("AF_INET AF_INET AF_INET", "AF_UNIX AF_UNIX AF_UNIX")
    assert moved == plain
    assert len(plain) >= 1


@pytest.mark.parametrize("serving", [False, True])
@pytest.mark.parametrize("calling", [False, True])
def test_two_programs_meet_where_the_server_is_not_moved_or_both_are(serving, calling):
    server = start(listen, preloaded=serving)
    port = server.stdout.readline().strip()
    said = output_of(call, port, preloaded=calling) if calling or not serving else []
    if serving and not calling:
        server.kill()
        server.communicate()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)))
        return
    family = "AF_UNIX" if serving and calling else "AF_INET"
    assert said == [f"b'hello' {family}"]
    assert server.communicate(timeout=10)[0].split() == [family]


def test_pythons_own_web_server_is_moved_and_found(tmp_path):
    (tmp_path / "page.txt").write_text("a page")
    serve = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]
    fetch = [sys.executable, "-c", "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"]
    server = subprocess.Popen(
        serve, cwd=tmp_path, env=ENVIRONMENTS["preloaded"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        port = server.stdout.readline().split(" port ")[1].split()[0]
        call = [*fetch, f"http://127.0.0.1:{port}/page.txt"]
        moved = subprocess.run(call, env=ENVIRONMENTS["preloaded"], capture_output=True, text=True, timeout=20)
        plain = subprocess.run(call, capture_output=True, text=True, timeout=20)
    finally:
        server.kill()
        server.communicate()
    assert moved.stdout == "a page\n"
    assert "Connection refused" in plain.stderr  # it went by AF_UNIX: at the port itself nobody listens


def test_kernels_call_the_librarys_functions_too():
    """A kernel's symbols are resolved in the whole process, as those of CDLL(None) are; libc's own handle is not."""
    plain, moved = (output_of(asked_by_a_kernel, preloaded=way) for way in (False, True))
    assert plain == ["AF_INET AF_INET AF_INET"]
    assert moved == ["AF_INET AF_INET AF_UNIX"]


@pytest.mark.skipif(len(system.allowed_cpus()) < 2, reason="two CPUs")
def test_the_engine_and_its_exchange_are_moved_and_every_order_is_right():
    with apart.Apart(1_000, ENVIRONMENTS["preloaded"]) as one:
        one.wait()
        assert one.preloaded
        trip = one.run(kinds.KINDS["TCP spinning"], 300, warm_up=20)
        assert trip.spans.shape == (300,)
        with pytest.raises(UserError, match="this exchange was made for 1000 ticks a run, not 2001"):
            one.run(kinds.KINDS["TCP spinning"], 2_000)
        assert one.run(kinds.KINDS["TCP blocking"], 20).spans.min() > np.uint64(0)
        one.process.kill()
        with pytest.raises(UserError, match="the engine's process ended with status -9"):
            one.run(kinds.KINDS["TCP spinning"], 20)
    assert one.process.returncode == -9


@pytest.mark.skipif(len(system.allowed_cpus()) < 2, reason="two CPUs")
def test_a_run_ends_when_nobody_waits_for_it_any_more():
    with apart.Apart(100_000, ENVIRONMENTS["preloaded"]) as one:
        one.wait()
        job = (kinds.KINDS["TCP spinning"], 90_000, {"per_second": 100, "seconds": 600.0})
        one.process.stdin.write(pickle.dumps(job))
        time.sleep(0.2)
        one.process.stdin.close()
        assert one.process.wait(5) == 0


def test_a_process_that_cannot_start_says_why():
    ended = pytest.raises(UserError, match="the engine's process ended with status 1")
    with apart.Apart("many", dict(os.environ)) as one, ended:
        one.run(kinds.KINDS["TCP spinning"], 20)


def test_without_a_compiler_the_reason_is_given(monkeypatch, tmp_path):
    assert preload.library(("no-such-compiler",)) == (None, "no C compiler found (looked for no-such-compiler)")
    broken = tmp_path / "broken-compiler"
    broken.write_text("#!/bin/sh\n[ $1 = -dumpversion ] && echo 1 && exit 0\necho 'x.c:1: error: no' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    assert preload.library((str(broken),)) == (None, "broken-compiler failed: x.c:1: error: no")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert preload.library()[1].startswith("Darwin has neither")
