"""What each step of preparing a machine changed here: computed from rows, settings and facts, none of them typed."""

from pathlib import Path

import pandas as pd
import pytest

from photonlab.lab.publish import preparing
from photonlab.lab.studies import ring_placement, ring_turns
from tests.test_ring_studies import across

COLUMNS = ("claim", "statistic", "variant", "value", "unit", "low", "high", "note")
NAN = float("nan")
ABOUT = {"placement": {"frequency governor": "unknown (no cpufreq)", "load at start (1, 5, 15 min)": [0.1, 0.2, 0.3]},
         "memory": {"transparent huge pages": "madvise"}}  # fmt: skip
ROUNDS, NOISE = {"rounds": 90, "retaken": 10, "disturbed": 5}, {"stolen": 0.02, "drift": 0.03}
FACTS = {"notebooks": {"a": {"rounds": ROUNDS, "noise": NOISE}, "b": {}}}


def told(*rows, facts=FACTS):
    frame = pd.DataFrame([dict(zip(COLUMNS, row, strict=True)) for row in rows], columns=COLUMNS)
    return {one["step"]: one for one in preparing.effects(frame, ABOUT, facts)}


def test_every_step_of_the_appendix_is_told_of():
    text = Path(preparing.__file__).with_name("appendix").joinpath("preparing.md").read_text()
    steps = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:]
    assert [step.split(",")[0] for step in steps] == [step.split(",")[0] for step in told()]


def test_without_rows_nothing_is_claimed():
    found = told(facts={"notebooks": {}})
    for step in ("leave it alone", "huge pages", "cores of their own", "receive buffers", "io_uring allowed"):
        assert found[step]["effect"] == preparing.NOTHING and not found[step]["claims"], step
    assert found["performance governor"]["setting"] == "unknown (no cpufreq)"
    assert found["no turbo"]["setting"] == "unknown"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((1.5, "×", 1.4, 1.6, ""), "a fill: without it 1.5× (1.4 to 1.6)"),
        ((0.5, "×", 0.4, 0.6, ""), "a fill: without it 0.5× (0.4 to 0.6)"),
        ((1.1, "×", 0.9, 1.2, ""), "a fill: without it 1.1× (0.9 to 1.2, too close to call)"),
        ((2.0, "×", NAN, NAN, ""), "a fill: without it 2×"),
        ((NAN, "×", NAN, NAN, "the probe said no"), "a fill: the probe said no"),
    ],
)
def test_ratios_are_told_as_they_fall(row, words):
    found = told(("A7", "first pass", "untouched / pre-faulted", *row))["memory touched beforehand"]
    assert (found["effect"], found["claims"]) == (words, ["A7"])


def test_pages_rounds_losses_and_counters():
    found = told(
        ("", "latency", "8 MiB, small pages", 20.0, "ns", NAN, NAN, ""),
        ("", "latency", "8 MiB, huge pages", 10.0, "ns", NAN, NAN, ""),
        ("P11", "loss", "slow reader", 79.4, "%", NAN, NAN, ""),
        ("R6", "IPC", "", NAN, "1", NAN, NAN, "cycles: not supported"),
    )
    assert found["huge pages"]["effect"] == "a dependent load in 8 MiB: without it 2×"
    assert found["huge pages"]["setting"] == "madvise"
    assert found["receive buffers"]["effect"] == "slow reader lost 79.4 %"
    assert found["counters allowed"]["effect"] == "cycles: not supported"
    assert found["leave it alone"]["effect"] == (
        "15.0% of 100 rounds were disturbed; the host took up to 2.0% of a notebook's time"
    )
    assert "changed by 3.0% at most" in found["performance governor"]["effect"]
    counted = told(("R6", "IPC", "", 0.5, "1", NAN, NAN, ""))["counters allowed"]
    assert counted["effect"] == "0.5 instructions a cycle could be counted"


def test_what_pinning_changes_is_told_as_it_falls():
    for free, words in ((20.0, "takes longer: **2.00 times**"), (5.0, "takes less long"), (10.0, "not clearly"),
                        (10_000.0, "put both on one CPU")):  # fmt: skip
        assert words in ring_placement.pinning_sentence(across({"pinned": 10.0, "not pinned": free}))
    assert "cannot be told: why" in ring_placement.pinning_sentence(ring_turns.nothing("why"))
