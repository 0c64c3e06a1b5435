"""Chained tables against a dict; std::unordered_map and the dicts do the same work; a machine without a compiler."""

import numpy as np
import pytest

from photonlab import paths
from photonlab.kernels import chained
from photonlab.kernels.chained import BUCKETINGS, USED
from photonlab.systems.experiments import maps, native_map
from photonlab.systems.experiments import reference_streams as streams
from tests import map_drivers

EDGES = [0, 1, *(2**k + step for k in (16, 32, 53, 63) for step in (-1, 0, 1)), 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize("bucketing", BUCKETINGS)
@pytest.mark.parametrize("members", [1, 7, 500])
def test_random_use_against_a_dict(bucketing, members):
    """From chains of hundreds in one bucket to one node a bucket; memory of all nodes is given back."""
    rng = np.random.default_rng(members)
    keys = np.array(EDGES + list(range(400)) + [n << 44 for n in range(200)], np.uint64)
    table, twin = chained.make_chained(members, bucketing), {}
    for _ in range(5):
        actions = rng.integers(0, 3, 3_000).astype(np.uint64)
        chosen, values = rng.choice(keys, 3_000), rng.integers(1, 2**63, 3_000).astype(np.uint64)
        results = np.zeros(3_000, np.uint64)
        map_drivers.use_chained(table, actions, chosen, values, results)
        expected = []
        for action, key, value in zip(actions.tolist(), chosen.tolist(), values.tolist(), strict=True):
            if action == map_drivers.INSERT:
                twin[key] = value
                expected.append(1)
            else:
                expected.append(twin.pop(key, 0) if action == map_drivers.REMOVE else twin.get(key, 0))
        assert results.tolist() == expected
        assert int(table.state[USED]) == len(twin)
        assert int(chained.node_bytes(table)) >= 24 * len(twin)
    chained.clear(table)
    assert int(table.state[USED]) == 0 and not table.buckets.any() and int(chained.node_bytes(table)) == 0


def test_buckets():
    assert [chained.next_prime(n) for n in (1, 2, 3, 4, 90, 500_000)] == [2, 2, 3, 5, 97, 500_009]
    assert chained.make_chained(100).buckets.size == 101
    assert chained.make_chained(100, "power of two").buckets.size == 128
    with pytest.raises(ValueError, match="at least one"):
        chained.make_chained(0)


def others():
    yield "chained", lambda: maps.Chained("prime", 1000)
    yield "typed", maps.TypedDict
    yield "python", maps.PythonDict
    yield "unordered", lambda: maps.Unordered(1000)


@pytest.mark.parametrize(("name", "make"), list(others()))
def test_every_map_does_the_work_of_the_flat_one(name, make):
    if name == "unordered" and native_map.library()[0] is None:
        pytest.skip(native_map.library()[1])
    flat, one = maps.Flat("Fibonacci", slots=1 << 13), make()
    keys, come = streams.as_on_the_feed(3_000, 5), streams.random(3_000, 6)
    asked = streams.queries(keys, 2_000, seed=7)
    for _ in range(2):
        assert one.insert(keys) == flat.insert(keys) == 3_000
        assert one.find(asked) == flat.find(asked) != 0
        assert one.churn(keys, come) == flat.churn(keys, come) != 0
        assert one.find(keys) == flat.find(keys) == 0
        assert one.find(come) == flat.find(come)
        one.clear()
        flat.clear()
    assert one.find(come) == 0


def test_unordered_map_is_what_the_claims_say_it_is():
    if native_map.library()[0] is None:
        pytest.skip(native_map.library()[1])
    assert native_map.hash_is_identity()
    keys = streams.sequential(1_000)
    one = maps.Unordered(10)
    one.insert(keys)
    assert len(one) == 1_000
    assert 24 < one.bytes(keys) / 1_000 < 80


def test_without_a_compiler_the_reason_is_given(monkeypatch, tmp_path):
    found, why = native_map.library(("no-such-compiler", "nor-this"))
    assert found is None and why == "no C++ compiler found (looked for no-such-compiler, nor-this)"
    broken = tmp_path / "broken-compiler"
    broken.write_text("#!/bin/sh\n[ $1 = -dumpversion ] && echo 1 && exit 0\necho 'x.cpp:1: error: no' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    found, why = native_map.library((str(broken),))
    assert found is None and why == "broken-compiler failed: x.cpp:1: error: no"
    assert not list((tmp_path / "native").iterdir())
