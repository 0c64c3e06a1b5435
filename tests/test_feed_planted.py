"""What is lost on purpose is listed as it is lost, and a receiver's gaps are those that the list foretells."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from photonlab.errors import UserError
from photonlab.lab.studies.feed_runs import lines
from photonlab.machine import clock, multicast, udp
from photonlab.machine.jit import kernel
from photonlab.systems import synth
from photonlab.systems.feed import planted, schedule, simulator
from photonlab.systems.feed.faults import Faults
from tests.test_feed import run

pytestmark = pytest.mark.skipif(not udp.available(), reason="no recvmmsg")
MESSAGES = 3000
sets = st.sets(st.integers(1, 60))


@pytest.fixture(scope="module")
def day():
    return synth.generate(MESSAGES, 1)[0]


def pairs_of(numbers):
    return np.array([(number, 1) for number in sorted(numbers)], np.uint64).reshape(-1, 2)


@kernel
def due(words, number, stamp):
    return schedule.due(words, number, stamp)


@given(sets, sets)
def test_ranges_hold_the_numbers_that_every_list_holds(one, other):
    for lists, numbers in (([one], one), ([one, other], one & other)):
        found = planted.missing([pairs_of(each) for each in lists]).tolist()
        assert {number for first, count in found for number in range(first, first + count)} == numbers
        assert all(first + count < after for (first, count), (after, _) in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("count", "planted_faults", "patience"),
    [(1, (Faults(0.05, 0.02),), 0.002), (2, (Faults(0.05, 0.02, 0.02), Faults(0.05, 0.1, 0.1)), 0.2)],
)
@pytest.mark.parametrize("most", [1, 7])
def test_gaps_are_those_that_were_planted(day, count, planted_faults, patience, most, monkeypatch, tmp_path):
    made, real = [], simulator.Simulator
    monkeypatch.setattr(simulator, "Simulator", lambda *a, **b: made.append(real(*a, **b)) or made[0])
    consuming, _, sent = run(day, lines(count), planted=planted_faults, most=most, patience=patience)
    missing = planted.missing(made[0].lost).tolist()
    assert missing
    assert [[first, lost] for first, lost, _ in consuming.gaps] == missing
    assert [sum(lost) for lost in (made[0].lost[i][:, 1] for i in range(count))] == [
        line["lost messages"] for line in sent.lines
    ]
    planted.write(tmp_path / "planted.json", made[0])
    found = json.loads((tmp_path / "planted.json").read_text())
    assert found["lost_on_every_line"] == missing
    assert [line["not_listed"] for line in found["lines"]] == [0] * count
    with pytest.raises(UserError, match="cannot be written"):
        planted.write(tmp_path / "nowhere" / "planted.json", made[0])


def test_packets_a_second_are_paced_by_packet_and_both_sides_know_when(day):
    (line,) = lines(1)
    listening, _ = multicast.receiver(*line, buffer=8 << 20)
    with listening, simulator.Simulator(day, [line], packet_rate=20_000, most=7) as sending:
        sending.start()
        assert sending.wait(20)
        sent = sending.sent()
    assert sent.packets == -(-MESSAGES // 7)
    assert sent.seconds > (sent.packets - 1) / 20_000
    start, hz = int(sending.schedule[schedule.START]), clock.calibrate().hz
    for number in (1, 7, 8, 14, 15, MESSAGES):
        assert int(due(sending.schedule, np.uint64(number), np.uint64(0))) == start + (number - 1) // 7 * hz // 20_000
