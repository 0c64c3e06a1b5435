"""ThreadSanitizer on the ring's own kernels: clean as they are, a data race with each flaw (claim S11, trap 30)."""

import subprocess
import sys

import pytest

from photonlab.lab.judge import claims, judging
from photonlab.lab.studies import ring_sanitizer as study
from photonlab.machine import jit, sanitizer
from photonlab.systems.experiments import ring_flaws
from photonlab.systems.experiments import sanitizer as runs

MESSAGES, FLAWED = 2_000_000, 20_000

REPORT = """==================
WARNING: ThreadSanitizer: data race (pid=1)
  Read of size 8 at 0x7f0000000240 by thread T3:
    #0 <null> <null> (0x7fffe8f00284)

  Previous atomic write of size 8 at 0x7f0000000240 by thread T2:
    #0 <null> <null> (0x7fffeeab2278)

SUMMARY: ThreadSanitizer: data race (<unknown module>)
==================
"""
FACTS = (
    '{"address": 139637976727552, "base": 48, "slot_words": 8, "slots": 4, "messages": 9, "wrong": 0, "passed_s": 1}'
)


@pytest.fixture(scope="module")
def found():
    if sanitizer.runtime() is None:
        pytest.skip("ThreadSanitizer's runtime is not installed")
    return {run.name: run for run in runs.run_all(MESSAGES, list(ring_flaws.FLAWS), FLAWED)}


def test_the_ring_is_clean(found):
    run = found[ring_flaws.SOUND]
    assert run.why == ""
    assert (run.messages, run.warnings, run.races, run.wrong) == (MESSAGES, 0, (), 0)


@pytest.mark.parametrize("flaw", ring_flaws.FLAWS)
def test_every_flaw_is_a_race_on_a_slot(flaw, found):
    run = found[flaw]
    assert run.why == ""
    assert run.messages == FLAWED and run.races and run.warnings >= len(run.races)
    back = flaw in (ring_flaws.GIVEN_BACK, ring_flaws.ROOM)
    for race in run.races:
        assert race.place.startswith("slot ")
        assert {race.later, race.earlier} == {"read", "write"}
        if back:  # the slot is written again before it has been read
            assert race.later == "write"


@pytest.mark.parametrize("flaw", ring_flaws.FLAWS)
def test_a_flaw_applies_to_the_ring_as_it_stands(flaw):
    assert ring_flaws.flawed_source(flaw).count(ring_flaws.FLAWS[flaw].new) >= 1


def test_a_flaw_is_planted_before_the_ring_is_loaded():
    script = (
        "import photonlab.kernels.ring\n"
        "from photonlab.systems.experiments import ring_flaws as f\n"
        "try: f.plant(f.EARLY)\n"
        "except RuntimeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "a flaw must be planted before the ring is loaded", done.stderr


def test_a_report_is_read_and_its_place_named():
    run = runs.read("x", 66, FACTS, REPORT + REPORT.replace("240", "080").replace("atomic ", ""))
    assert run.why == "" and run.warnings == 2 and run.messages == 9
    assert run.races[0] == runs.Race("read", "atomic write", "slot 3, word 0")
    assert run.races[1] == runs.Race("read", "write", "the ring's indices")


@pytest.mark.parametrize(
    ("code", "output", "errors", "why"),
    [
        (66, "", "FATAL: ThreadSanitizer: unexpected memory mapping 0x1\nmore", "unexpected memory mapping 0x1"),
        (-11, "", "", "signal 11"),
        (1, "", "Traceback\nValueError: no", "exit code 1: ValueError: no"),
        (0, FACTS, REPORT, "does not agree with 1 reports"),
        (66, FACTS, "", "does not agree with 0 reports"),
        (-6, FACTS, "", "signal 6 after the messages had passed"),
    ],
)
def test_no_result_is_taken_for_a_clean_one(code, output, errors, why):
    run = runs.read("x", code, output, errors)
    assert why in run.why and run.warnings == 0


def test_without_a_runtime_the_reason_is_given(monkeypatch):
    monkeypatch.setattr(sanitizer, "runtime", lambda: None)
    assert "not installed" in runs.run(ring_flaws.SOUND, 10).why


def test_a_library_that_is_no_runtime_is_refused(monkeypatch, tmp_path):
    (tmp_path / "libtsan.so").write_bytes(b"")
    monkeypatch.setattr(sanitizer, "runtime", lambda: tmp_path / "libtsan.so")
    assert "runtime is not in this process" in runs.run(ring_flaws.SOUND, 10).why


def test_where_addresses_stay_random_the_runtime_is_tried_and_a_failure_explained(monkeypatch):
    """A container may refuse: the launcher goes on, and what it said explains why the runtime then died."""
    refusing = runs._LAUNCH.replace("libc.personality(0xFFFFFFFF)", "-1")
    monkeypatch.setattr(runs, "_LAUNCH", refusing.replace("os.execv(", "os.kill(os.getpid(), 11); os.execv("))
    if sanitizer.runtime() is None:
        pytest.skip("ThreadSanitizer's runtime is not installed")
    why = runs.run(ring_flaws.SOUND, 10).why
    assert "signal 11" in why and "refuses to switch off the randomisation" in why
    monkeypatch.setattr(runs, "_LAUNCH", refusing)
    run = runs.run(ring_flaws.SOUND, 1000)
    assert run.messages == 1000 or "randomisation" in run.why or "memory mapping" in run.why


def test_hooks_are_part_of_the_key_of_the_cache(monkeypatch):
    stamp = jit.source_stamp(sanitizer.__file__)
    monkeypatch.setattr(sanitizer, "HOOKED", not sanitizer.HOOKED)
    assert jit.source_stamp(sanitizer.__file__) != stamp


def test_the_rows_are_those_that_the_verdict_wants(found):
    sanitized = study.Sanitized(tuple(found.values()), 1.0)
    rows = {(row["statistic"], row["variant"], row["unit"]): row["value"] for row in sanitized.rows()}
    assert set(judging.wanted(claims.by_id()["S11"])) <= set(rows)
    assert rows["warnings", "correct ring", "1"] == 0 and rows["weakened ring caught", "", "1"] == 1
    assert "nothing to report" in study.sentence(sanitized) and "Flaws caught: 5 of 5." in study.sentence(sanitized)
    assert study.table(sanitized)["ring"].tolist() == [ring_flaws.SOUND, *ring_flaws.FLAWS]


def test_rows_without_a_result_carry_the_reason():
    none = study.Sanitized((runs.Run(ring_flaws.SOUND, why="no runtime"), runs.Run(ring_flaws.RELEASE, why="no")), 0.0)
    assert [(row["value"], row["note"]) for row in none.rows()] == [(None, "no runtime"), (None, "no")]
    assert "no runtime" in study.sentence(none)
    assert study.table(none)["first of them"].tolist() == ["no runtime", "no"]
    untried = study.Sanitized((runs.Run(ring_flaws.SOUND, 9),), 0.0)
    assert [row["value"] for row in untried.rows()] == [0, None]


def test_a_flaw_that_is_missed_and_a_warning_are_told():
    ran = (runs.Run(ring_flaws.SOUND, 9, warnings=2), runs.Run(ring_flaws.RELEASE, 9))
    found = study.Sanitized(ran, 0.0)
    assert [row["value"] for row in found.rows()] == [2, 0]
    assert "reports 2 times" in study.sentence(found) and "not publish relaxed" in study.sentence(found)
