"""What notebook 05-ring says of its measurements: the step by its rule, prose that reads right both ways, refusals."""

import subprocess

import numpy as np
import pytest

from photonlab.lab.judge import claims, judging
from photonlab.lab.measure.comparison import Comparison, Timed
from photonlab.lab.studies import (
    ring_granule,
    ring_layout,
    ring_lockstep,
    ring_placement,
    ring_regimes,
    ring_turns,
)
from photonlab.lab.studies.ring_turns import Across
from photonlab.machine import system
from photonlab.systems import spin
from photonlab.systems.experiments.ring_stress import Stressed
from tests.test_spin import two_cpus


@pytest.mark.parametrize(
    ("times", "step"),
    [
        ([17, 17, 16, 17, 2.4, 2.5, 2.4], 64),
        ([17, 17, 16, 17, 9.0, 2.5, 2.4], 128),
        ([17, 2, 2, 2, 2, 2, 2], 16),
        ([3.0, 3.1, 3, 3, 2.9, 3, 3], None),
        ([2, 17, 17, 17, 17, 17, 17], None),
        ([17, 17, 2, 17, 2, 2, 2], None),
        ([2, 2, 2, 17, 17, 17, 17], None),
    ],
)
def test_the_granule_is_where_times_drop_once_and_for_all(times, step):
    found, why = ring_granule.find_step((8, 16, 32, 48, 64, 128, 256), times)
    assert found == step
    assert bool(why) == (step is None)


def test_who_reports_the_granule_and_who_cannot(monkeypatch):
    says = {one.who: one for one in ring_granule.reported()}
    assert says.keys() == {"operating system", "sysfs", "C++ library"}
    for one in says.values():
        assert one.how
        assert one.size is None or one.size in (32, 64, 128, 256)
    monkeypatch.setattr(ring_granule.shutil, "which", lambda name: None)
    (compiler,) = [one for one in ring_granule.reported() if one.who == "C++ library"]
    assert compiler.row == {"value": None, "unit": "bytes", "note": "no C++ compiler was found"}


def test_a_compiler_that_does_not_know_the_granule_is_named(monkeypatch):
    monkeypatch.setattr(ring_granule.shutil, "which", lambda name: name == "clang++")
    done = subprocess.CompletedProcess([], 0, "#define __clang__ 1\n#define X\n", "")
    monkeypatch.setattr(ring_granule.subprocess, "run", lambda *_, **__: done)
    (compiler,) = [one for one in ring_granule.reported() if one.who == "C++ library"]
    assert compiler.size is None
    assert compiler.how == "clang++ defines no __GCC_DESTRUCTIVE_SIZE"


def across(times):
    """What a comparison would be of these times a message in ns, with a little spread."""
    spread = np.linspace(0.99, 1.01, 11)
    timed = {name: Timed(name, 1000, 1, 1000 * ns * spread, 0.0, 0.0, 1, 0.0) for name, ns in times.items()}
    return Across(Comparison(timed, 11, 0, 0, ""), "labelled")


STREAMS = {ring_regimes.SINGLE: 25.0, "batch of 512": 5.0, ring_regimes.ONE: 3.0, ring_regimes.PING_PONG: 60.0}


def streams(**changed):
    times = STREAMS | {ring_regimes.DRAINING: 24.0}
    times |= {getattr(ring_regimes, name): ns for name, ns in changed.items()}
    return ring_regimes.Streams(across(times), [1, 512], {ring_regimes.DRAINING: 1.6})


def test_streams_are_told_as_they_come_out():
    found = streams()
    said = ring_regimes.stream_sentence(found)
    assert "**25.0 ns**" in said
    assert "less than a bare ping-pong one way (0.42 times" in said
    assert "12 % of it" in said
    assert "**5.00 ns**, 5.0 times less" in said
    assert "1.60 messages at a time" in said
    assert found.share()["value"] == pytest.approx(88, abs=0.1)
    assert found.share()["low"] <= found.share()["value"] <= found.share()["high"]
    assert found.gain(512)["value"] == pytest.approx(5)
    assert found.of(64) == {"value": None, "unit": "ns", "note": "batches of 64 were not run"}
    slow = ring_regimes.stream_sentence(streams(SINGLE=100.0))
    assert "more than a bare ping-pong" in slow
    assert "overlap" not in slow


def test_latency_is_told_beside_a_bare_line():
    names = (ring_lockstep.WORD, ring_lockstep.LINE, ring_lockstep.RING, ring_lockstep.SEQUENCED)
    times = dict(zip(names, (50.0, 55.0, 100.0, 60.0), strict=True)) | {"round trip of 8": 260.0}
    found = ring_lockstep.Handed(across(times), [1, 8], {})
    said = ring_lockstep.sentence(found)
    assert "**1.82 times**" in said and "**1.09 times**" in said
    assert found.time(1)["value"] == pytest.approx(100)
    assert found.time(8)["value"] == pytest.approx(160), "of 260 there and back, 100 are the answer's"


def test_padding_is_told_by_side():
    times = {
        ring_layout._padded(kind, work, apart): 10.0 * (apart == 8)
        + 20.0
        + (work == ring_layout.STREAM) * (apart != 8) * 30
        for kind in (ring_layout.CACHED, ring_layout.UNCACHED)
        for work in ring_layout.WORKS
        for apart in (8, 64, 128)
    }
    said = ring_layout.padding_sentence(ring_layout.Padding(across(times)))
    faster, slower = said.split("**slower**")
    assert "**faster** for stream, one at a time with copies" in faster
    assert "one by one, with answers with copies" in slower and "stream, batches of 64 without" in slower
    assert "as fast" not in said


@pytest.fixture
def one_cpu(monkeypatch):
    monkeypatch.setattr(system, "allowed_cpus", lambda: (5,))


WHY = "two spinning threads need two CPUs, and this process may use only CPU 5"


def test_on_one_cpu_each_row_across_cores_says_why_it_is_not_there(one_cpu):
    assert ring_turns.where() == f"refused ({WHY})"
    streamed, handed = ring_regimes.measure_streams(10, [1, 512], 3), ring_lockstep.measure(10, [1], 3)
    padding, slots = ring_layout.measure_padding(10, 10, 3), ring_layout.measure_slots(10, 10, 3)
    granule = ring_granule.measure(10, 3)
    rows = [
        streamed.share(), streamed.drain(), streamed.gain(512), streamed.across.time("across cores"),
        handed.time(1), handed.across.ratio(ring_lockstep.RING, ring_lockstep.LINE), granule.row,
        padding.row(ring_layout.STREAM, 8, 128), slots.row(ring_layout.LOCKSTEP, 72), granule.across.time("8"),
    ]  # fmt: skip
    for row in rows:
        assert row["value"] is None
        assert row["note"] == WHY
    for frame in (
        ring_regimes.stream_table(streamed),
        ring_lockstep.table(handed),
        ring_layout.padding_table(padding),
        ring_layout.slot_table(slots),
        ring_granule.table(granule, []),
    ):
        assert WHY in frame.to_string()
    for said in (
        ring_regimes.stream_sentence(streamed),
        ring_lockstep.sentence(handed),
        ring_layout.padding_sentence(padding),
        ring_layout.slot_sentence(slots),
        ring_granule.sentence(granule),
    ):
        assert WHY in said
    for figure in (
        ring_regimes.stream_chart(streamed, handed),
        ring_lockstep.chart(handed),
        ring_layout.padding_chart(padding),
        ring_granule.chart(granule, []),
    ):
        assert WHY in figure.axes[0].texts[0].get_text()


def test_on_one_cpu_the_placements_are_refused_and_nothing_lacks_a_label(one_cpu):
    found = ring_placement.trials(100)
    assert [one.ns for one in found[:2]] == [None, None]
    assert all(one.label.startswith(("refused", "not tried")) for one in found)
    assert ring_placement.unlabelled(found, [ring_turns.nothing(WHY)]) == 0
    stressed, why = ring_placement.stress(0, 100, 1)
    assert ring_placement.stress_row(stressed, why) == {"value": None, "unit": "1", "note": WHY}
    assert WHY in ring_placement.stress_sentence(stressed, why)


@two_cpus
def test_figures_of_threads_that_are_not_pinned_carry_their_label():
    pinned, free, together = ring_placement.trials(2000)
    assert not pinned.label.startswith("indicative: not pinned")
    assert free.label.startswith("indicative: not pinned")
    assert "two CPUs" in together.label and together.ns is None
    assert pinned.ns > 0 and free.ns > 0
    assert ring_placement.unlabelled([pinned, free, together], []) == 0


def test_a_figure_without_its_label_is_counted(monkeypatch):
    """What M4 forbids: not pinned, and nothing says so."""
    done = spin.Together(None, None, system.Usage(*(0,) * 6), (), "")
    monkeypatch.setattr(ring_turns.spin, "together", lambda *_, **__: done)
    watch = ring_turns.Stopwatch()
    watch.run(None, None)
    assert watch.unlabelled == 1
    assert ring_placement.unlabelled([], [Across(None, "", "", watch.unlabelled)]) == 1


@two_cpus
def test_measurements_hold_together():
    found = ring_regimes.measure_streams(2000, [1, 16], 3)
    table = ring_regimes.stream_table(found)
    assert (table["ns a message"] > 0).all()
    assert 1 <= found.drained["batch of 16"] <= 16
    assert found.across.label == spin.placement()[1]
    handed = ring_lockstep.measure(500, [1, 4], 3)
    assert all(counts.totals[1] >= 3 * 499 for counts in handed.counts.values())
    assert handed.time(4)["value"] > 0


def test_stress_is_told_as_it_comes_out():
    sound, broken = Stressed(100, 100, 0, True, 5, 6, 1), Stressed(100, 99, 8, False, 5, 6, 1)
    assert "nothing was lost, repeated, reordered or torn" in ring_placement.stress_sentence(sound, "")
    assert "**the ring failed**" in ring_placement.stress_sentence(broken, "")
    assert ring_placement.stress_row(sound, "")["value"] == 0
    assert ring_placement.stress_row(broken, "")["value"] == 10
    assert (sound + broken).sent == 200 and not (sound + broken).sound


def test_what_the_claims_want_is_what_the_studies_call_it():
    ledger = claims.by_id()
    assert ("time", f"{ring_regimes.MUTEX} / {ring_regimes.ONE}", "×") in judging.wanted(ledger["S2"])
    assert ("drained at a time", "", "1") in judging.wanted(ledger["S7"])
    assert ("time", f"{ring_regimes.SINGLE} / {ring_regimes.of_batch(512)}", "×") in judging.wanted(ledger["S5"])
