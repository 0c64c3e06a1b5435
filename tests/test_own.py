"""Kernels of one's own: they take part in the study's tables and charts, and what is no hash policy is refused."""

import re

import numpy as np
import pytest

from photonlab import paths
from photonlab.errors import UserError
from photonlab.kernels import hash_policies
from photonlab.lab.publish import figures
from photonlab.lab.studies import hash_policies as study
from photonlab.lab.studies import hash_streams, hash_workload, own
from photonlab.systems.experiments import maps
from photonlab.systems.experiments import reference_streams as streams

NAME = "golden, rotated"
_ODD, _7, _57 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(7), np.uint64(57)


def rotated(key, shift):
    return (((key << _7) | (key >> _57)) * _ODD) >> shift


def twice(key, shift):
    return (key << np.uint64(1)) * _ODD >> shift


@pytest.fixture
def added():
    own.add_hash_policy(NAME, rotated)
    yield NAME
    own.remove_hash_policy(NAME)


def test_an_own_policy_stands_in_tables_and_charts(added, told):
    figures.use_style()
    found = hash_workload.measure(2_000, 3, 1)
    table = hash_workload.table(found).set_index("map")
    assert table.loc[NAME, ["insert [ns]", "find [ns]", "churn [ns]", "average probes"]].notna().all()
    chart = study.spread_chart(found)
    assert NAME in [text.get_text() for text in chart.axes[0].get_legend().get_texts()]
    labels = [text.get_text() for text in study.effect_chart(found).axes[0].get_yticklabels()]
    assert f"find, {NAME}" in labels and "find, splitmix64" in labels
    assert NAME in set(hash_streams.stream_table(2_000, 1)["policy"])
    enemies = hash_streams.enemy_table(64, 8).set_index("policy")
    assert enemies.loc[NAME].notna().all() and f"against {NAME}" not in enemies.columns


def test_the_home_is_that_of_the_function_given(added):
    """A function that was given anew under the same name is taken, not the code of the former one."""
    keys = streams.sequential(1_000)

    def homes(function):
        return {int(function(key, np.uint64(53))) for key in keys}

    def slots():
        one = maps.Flat(NAME, slots=1 << 11)
        one.insert(keys)
        values = one.table.entries[1 << 12 : 1 << 13].reshape(-1, 2)
        return np.flatnonzero(values[:, 1]).tolist()

    with np.errstate(over="ignore"):
        for function in (rotated, twice):
            own.add_hash_policy(NAME, function)
            assert homes(function) <= set(slots()), function  # the home of each is in use, if only by another
        assert homes(rotated) != homes(twice)


def test_it_is_gone_when_it_is_removed(added):
    own.remove_hash_policy(NAME)
    assert NAME not in hash_policies.POLICIES and tuple(hash_policies.POLICIES) == hash_workload.OPEN
    with pytest.raises(UserError, match="no hash policy"):
        own.remove_hash_policy(NAME)
    with pytest.raises(UserError, match="no hash policy"):
        own.remove_hash_policy("Fibonacci")
    own.add_hash_policy(NAME, rotated)


@pytest.mark.parametrize(
    ("name", "home", "words"),
    [
        ("Fibonacci", rotated, "one of this house's"),
        ("signed", lambda key, shift: (key + 1) >> 3, "not uint64"),
        ("words", lambda key, shift: "x", "not uint64"),
        ("too far", lambda key, shift: key, "slot [0-9]+ of"),
        ("crowded", lambda key, shift: key >> shift, "would take hours"),
        ("one block", lambda key, shift: key & ((np.uint64(1) << (np.uint64(64) - shift)) - np.uint64(1)), "hours"),
        ("unknown name", lambda key, shift: nowhere(key), "cannot be compiled"),  # noqa: F821
        ("three", lambda a, b, c: a, "cannot be compiled"),
    ],
)
def test_what_is_no_hash_policy_is_refused(name, home, words):
    with pytest.raises(UserError, match=words):
        own.add_hash_policy(name, home)
    assert tuple(hash_policies.POLICIES) == hash_workload.OPEN


def test_slots_looked_at_are_those_of_a_table():
    keys = streams.random(700, 3)
    homes_of = {"Fibonacci": (keys * hash_policies.GOLDEN) >> np.uint64(54), "identity": keys & np.uint64(1023)}
    for policy, homes in homes_of.items():
        one = maps.Flat(policy, slots=1 << 10)
        one.insert(keys)
        hits = int(one.probes(keys)[hash_workload.map_work.LOOKED]) / keys.size
        values = one.table.entries[1 << 11 : 1 << 12].reshape(-1, 2)[:, 1]
        looked = 0
        for slot in range(1 << 10):
            at = slot
            while values[at % 1024]:
                at += 1
            looked += at - slot + 1
        assert own.slots_looked_at(homes, 1 << 10) == pytest.approx(max(hits, looked / 1024))


@pytest.mark.parametrize("call", ["add_hash_policy", "add_allocator", "add_ring"])
def test_the_examples_of_the_readme_work(call):
    text = (paths.ROOT / "README.md").read_text()
    (example,) = [part.partition("```")[0] for part in text.split("```python\n")[1:] if call in part]
    exec(compile(example, "README.md", "exec"), {})
    name = re.search(rf'{call}\("([^"]+)"', example)[1]
    getattr(own, call.replace("add", "remove"))(name)
