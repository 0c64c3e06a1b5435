"""What a feed does where the network refuses something: an error that says what, or unicast instead, which it says too.

In a network namespace of its own where one can be made; the rest on loopback.
"""

import os
import re

import pytest

from photonlab.errors import UserError
from photonlab.lab.studies import feed_runs
from photonlab.machine import multicast, udp
from photonlab.systems import synth
from photonlab.systems.feed import fallback
from photonlab.systems.feed.simulator import LINE_A, LINE_B, Endpoint
from tests import namespaces

pytestmark = pytest.mark.skipif(not udp.available(), reason="no recvmmsg")
CLI = "tests/test_feed_cli.py::test_three_processes_bring_a_day_across_with_losses_on_both_lines"
UP, ALONE = ("up",), ("up", "no-groups")
NO_GROUP = "239.1.1.1: the group cannot be joined on lo: no buffer space available"


def skip_without(steps):
    if why := namespaces.why_not(*steps):
        pytest.skip(f"no network namespace with {' and '.join(steps) or 'nothing'}: {why}")


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    path = tmp_path_factory.mktemp("feed") / "day.itch"
    synth.generate(500, 1)[0].tofile(path)
    return path


@pytest.mark.parametrize("steps", [UP, ALONE])
def test_the_whole_feed_works_in_a_namespace_with_multicast_and_without(steps):
    skip_without(steps)
    done = namespaces.inside(steps, "-m", "pytest", "-q", "-p", "no:cacheprovider", CLI)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_system_without_sendmmsg_is_given_each_buffer_by_a_call(day):
    skip_without(steps := ("up", "no-sendmmsg"))
    done = namespaces.inside(steps, "-m", "photonlab", "feed", "sim", day)
    assert "a buffer, one buffer a call (no sendmmsg here)" in done.stdout
    sent = int(re.search(r"^line A: sent (\d+),", done.stdout, re.MULTILINE)[1])
    assert sent >= 505  # the end is announced five times, and then on for a while


@pytest.mark.parametrize("command", ["sim", "receive"])
def test_what_replaces_multicast_is_said_first(day, command):
    skip_without(ALONE)
    files = [day] if command == "sim" else ["--silence", 0.1]
    done = namespaces.inside(ALONE, "-m", "photonlab", "feed", command, *files, "--group-b", "239.1.1.2")
    said = done.stdout.splitlines()
    assert said[0] == f"no multicast: {NO_GROUP}; unicast to 127.0.0.1, port 30001 and 30002, is used instead"
    assert "127.0.0.1:30001 on lo and 127.0.0.1:30002 on lo" in said[1]


@pytest.mark.parametrize(
    ("steps", "arguments", "said"),
    [
        (ALONE, ["--no-fallback"], NO_GROUP),
        ((), [], "interface lo: it has no IPv4 address (Cannot assign requested address)"),
        ((), ["--interface", "lo0"], "interface lo0: there is none of this name; there are lo"),
    ],
)
def test_what_cannot_be_replaced_is_an_error_of_one_line(day, steps, arguments, said):
    skip_without(steps)
    done = namespaces.inside(steps, "-m", "photonlab", "feed", "sim", day, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"photonlab: {said}")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def refused(monkeypatch):
    """A machine on which no group can be joined."""
    real = multicast.receiver

    def receiver(address, *arguments, **options):
        if multicast.is_group(address):
            raise UserError(f"{address}: refused")
        return real(address, *arguments, **options)

    monkeypatch.setattr(multicast, "receiver", receiver)


def test_lines_that_can_be_had_stay_as_they_are():
    assert fallback.usable([LINE_A, LINE_B]) == ([LINE_A, LINE_B], "")


def test_lines_that_cannot_are_replaced_all_at_once_or_refused(refused):
    lines = [Endpoint("127.0.0.1", 5000), Endpoint("239.1.1.2", 5000, "lo")]
    found = fallback.usable(lines)
    assert [(line.address, line.port) for line in found.lines] == [("127.0.0.1", 5000), ("127.0.0.1", 5001)]
    assert found.said == "239.1.1.2: refused; unicast to 127.0.0.1, port 5000 and 5001, is used instead"
    with pytest.raises(UserError, match=r"239.1.1.2: refused$"):
        fallback.usable(lines, strict=True)
    with pytest.raises(UserError, match="interface none0"):
        fallback.usable([Endpoint("239.1.1.2", 5000, "none0")])


def test_a_packet_that_does_not_come_back_is_a_reason(monkeypatch):
    class Deaf:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def send(self, _):
            pass

    monkeypatch.setattr(multicast, "sender", lambda *_: Deaf())
    said = "a packet sent to 239.1.1.1 on lo does not come back: timed out"
    assert multicast.why_not("lo") == said


def test_the_notebook_runs_over_unicast_and_says_so(refused):
    assert [line.address for line in feed_runs.lines(2)] == ["127.0.0.1"] * 2
    if not feed_runs.refused():
        assert "no multicast: 239.1.1.1: refused; unicast" in feed_runs.where()
    run = feed_runs.together(feed_runs.day(300, 1), 2, rate=5000)
    assert run.consumer.counters["messages"] == 300


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a namespace without a user's")
def test_a_namespace_is_one_of_its_own():
    skip_without(())
    done = namespaces.inside((), "-c", "import socket; print(socket.if_nameindex())")
    assert done.stdout == "[(1, 'lo')]\n"
