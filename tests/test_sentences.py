"""Computed prose reads right whichever way a result falls: rendered from altered results, ratio by ratio.

Each study runs once, small. Then what its comparisons answer is altered: one side wins, the other does, neither can be
told from the other, or nothing could be measured. Where words take sides they must turn with the figures.
"""

import re

import pytest
from matplotlib import pyplot as plt

from photonlab.lab.measure.comparison import Comparison, Ratio, Reading
from photonlab.lab.publish import figures
from photonlab.lab.studies import (
    day,
    hash_cost,
    hash_policies,
    hash_replay,
    hash_streams,
    hash_workload,
    parser_cost,
    pool_cost,
    pool_orders,
    pool_pages,
    pool_walk,
    ring_regimes,
    stages,
    throughput,
    touch_search,
)

WHY = "the probe said why"
ALTERED = {
    "above": (3.0, 2.5, 3.5),
    "below": (1 / 3, 1 / 3.5, 1 / 2.5),
    "straddling": (1.05, 0.8, 1.4),
    "equal": (1.0, 1.0, 1.0),
    "huge": (1e6, 9e5, 2e6),
    "none": (None, None, None),
}
BROKEN = re.compile(r"(?<!\w)(nan|None|inf|NaN|NaT|\{|\}|\[\]|--)(?!\w)|\.\.|  |: ?\.|, ?,|\( |; ?\.|\*\*0 times")
SIDES = re.compile(r"\b(faster|slower|less|more|beats?|wins?|loses?|cheaper|slowest|fastest|as fast|too close)\b")
NEUTRAL = {
    "hash_streams.times_sentence": "its last sentence is on what the paged index is made for",
    "stages.sentence": "it speaks of what each stage adds, which no ratio of two variants is",
    "touch_search.sentence": "more of a count, not of a time",
}
"""Sentences whose words of more and less do not turn with the ratio, and why."""


@pytest.fixture(scope="module")
def today():
    (small, _) = day.days("", 6_000, 6_000, 1, 6_000)
    return small


@pytest.fixture(scope="module")
def workload():
    return hash_workload.measure(2_000, 3, 1)


@pytest.fixture(autouse=True)
def small_is_enough(monkeypatch):
    """What is too short to be believed is told all the same, as nothing here is believed."""
    monkeypatch.setattr(day, "FEWEST", 0)
    monkeypatch.setattr(touch_search, "FEWEST", 0)
    monkeypatch.setattr(pool_pages, "BACKED", 0)
    figures.use_style()
    yield
    plt.close("all")


def _ring(_):
    return ring_regimes.measure_alone(2_000, 3)


STUDIES = {
    "hash_policies.sentence": (lambda one: one("workload"), hash_policies.sentence, hash_policies.effect_chart),
    "hash_policies.chained_sentence": (lambda one: one("workload"), hash_policies.chained_sentence, None),
    "hash_policies.collapse_sentence": (
        lambda _: hash_policies.collapse(500, 20, [16, 64], 3, 1), hash_policies.collapse_sentence, None),
    "hash_cost.sentence": (lambda _: hash_cost.measure(500, 3), hash_cost.sentence, None),
    "hash_streams.times_sentence": (lambda _: hash_streams.times(500, 3, 1), hash_streams.times_sentence, None),
    "hash_replay.sentence": (
        lambda one: hash_replay.measure(one("today"), ["Fibonacci"], 3), hash_replay.sentence, None),
    "parser_cost.target_sentence": (
        lambda one: parser_cost.measure(one("today"), 3), parser_cost.target_sentence, parser_cost.chart),
    "pool_cost.sentence": (lambda _: pool_cost.measure(2_000, 500, [16], 3, 1), pool_cost.sentence, pool_cost.chart),
    "pool_orders.sentence": (lambda _: pool_orders.measure(1_024, 3, 1), pool_orders.sentence, pool_orders.chart),
    "pool_pages.page_sentence": (lambda _: pool_pages.measure_pages(1_024, 3, 1), pool_pages.page_sentence, None),
    "pool_pages.first_pass_sentence": (
        lambda _: pool_pages.measure_first_pass(1_024, 3), pool_pages.first_pass_sentence, None),
    "pool_walk.sentence": (lambda _: pool_walk.measure(1_024, 1, 1, 3, 1), pool_walk.sentence, pool_walk.chart),
    "ring_regimes.alone_sentence": (_ring, ring_regimes.alone_sentence, None),
    "stages.sentence": (lambda one: stages.measure(one("today"), 3), stages.sentence, None),
    "throughput.sentence": (lambda one: throughput.measure(one("today"), 3), throughput.sentence, None),
    "throughput.memory_sentence": (lambda one: throughput.measure(one("today"), 3), throughput.memory_sentence, None),
    "touch_search.sentence": (
        lambda one: touch_search.measure(one("today"), 1, 3), touch_search.sentence, touch_search.chart),
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_prose_follows_the_results(name, request, monkeypatch):
    measure, sentence, chart = STUDIES[name]
    found = measure(request.getfixturevalue)
    said = {}
    for what, (value, low, high) in ALTERED.items():
        ratio = Ratio(value, low, high, WHY if value is None else "")
        reading = Reading(value, 1.0, low, high)
        monkeypatch.setattr(Comparison, "ratio", lambda *_, ratio=ratio: ratio)
        monkeypatch.setattr(Comparison, "reading", lambda *_, reading=reading: reading)
        said[what] = sentence(found)
        assert said[what].strip() and not BROKEN.search(said[what]), (what, said[what])
        if chart:
            chart(found)
    above, below = (re.sub(r"[\d.,]+", "", said[what]) for what in ("above", "below"))
    if SIDES.search(above) and name not in NEUTRAL:
        assert above != below, said
    if name == "stages.sentence":
        return  # computed from the rounds themselves
    assert above != re.sub(r"[\d.,]+", "", said["none"]), "what could not be measured is told as if it had been"


def test_the_mix_is_told_beside_the_published_one():
    counts = dict.fromkeys(day.CLASSES, 10) | {"all messages": 10 * len(day.CLASSES)}
    assert "points apart" in day.mix_sentence(counts)
    assert day.mix_sentence(dict.fromkeys(counts, 0)) == "There was no message."
