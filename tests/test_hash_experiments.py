"""What the notebook on hash policies records, draws and says: complete, and right whichever way the figures fall."""

from dataclasses import replace

import numpy as np
import pytest

from photonlab.lab.judge import claims
from photonlab.lab.measure.comparison import Comparison, Timed
from photonlab.lab.publish import figures
from photonlab.lab.studies import day, hash_cost, hash_policies, hash_replay, hash_scaling, hash_streams, hash_workload
from photonlab.systems import synth
from photonlab.systems.experiments import map_work, maps, native_map
from photonlab.systems.experiments import reference_streams as streams


def compared(**series):
    """A comparison whose variants took these ns an operation in each round."""
    timed = {
        name: Timed(name, 1, 1_000_000, np.array(values, float) * 1e6, 0.0, 1.0, 7, 0.0)
        for name, values in series.items()
    }
    return Comparison(timed, len(next(iter(series.values()))), 0, 0, "")


@pytest.fixture(scope="module")
def found():
    return hash_workload.measure(2_000, 3, 1)


@pytest.fixture(autouse=True)
def style():
    figures.use_style()


def test_the_workload_measures_every_map(found, told):
    table = hash_workload.table(found)
    wanted = {*hash_workload.OPEN, hash_workload.AHEAD, hash_workload.PRIME, hash_workload.TYPED, hash_workload.PYTHON}
    assert wanted <= set(table["map"])
    timed = table.set_index("map")
    assert timed[["insert [ns]", "find [ns]", "churn [ns]"]].notna().all().all()
    assert timed.loc["identity", "longest run"] == 2_000
    assert found.slots == 4096 and timed.loc["Fibonacci", "memory [B an order]"] == 16 * 4096 / 2_000


def test_counts_of_another_size_are_not_compared(found):
    assert found.run_row("identity")["value"] is None and "not 2,000" in found.run_row("identity")["note"]
    whole = replace(found, live=hash_workload.PUBLISHED_LIVE)
    assert whole.run_row("identity")["value"] == 2_000 and whole.average_row("Fibonacci")["value"] < 2


def test_every_row_of_the_claims_is_there(found):
    rows = {(row["statistic"], row["variant"]) for row in found.rows()}
    assert {(one.statistic, one.variant) for one in claims.by_id()["F4"].published} <= rows
    for row in found.rows():
        assert row["value"] is not None or row["note"]


def test_identity_probes_are_those_of_a_search():
    keys = streams.sequential(3_000)
    asked = streams.queries(keys, 2_000, seed=5)
    asked[:50] = keys[0] + np.uint64(4096) * np.arange(1, 51, dtype=np.uint64)  # in vain, from the head of the block
    one = maps.Flat("identity", slots=1 << 12)
    one.insert(keys)
    assert np.array_equal(hash_workload._identity_probes(one, asked), one.probes(asked))


def test_life_keeps_its_number_and_its_order():
    one = maps.PythonDict()
    keys = streams.sequential(10)
    life = hash_workload.Life(one, keys, np.arange(10), 4, False)
    for first in (1_000_004, 1_000_008, 1_000_012):
        life.prepare()
        assert life.step() == 0
        assert sorted(one.members) == list(range(first, first + 10))
    life.prepare()
    one.members.pop(int(life.gone[0]))
    assert life.step() != 0, "a map that lost a member is found out"


def test_without_a_compiler_the_rows_say_so(monkeypatch):
    monkeypatch.setattr(native_map, "library", lambda: (None, "no C++ compiler found"))
    lone = hash_workload.measure(500, 3, 2)
    assert lone.chained == hash_workload.PRIME
    row = lone.ratio("find", hash_workload.UNORDERED, "Fibonacci")
    assert row["value"] is None and row["note"] == "no C++ compiler found"
    assert lone.time("find", hash_workload.UNORDERED)["value"] is None
    assert lone.memory_ratio()["value"] > 0 and "chained, prime" in lone.memory_ratio()["note"]
    figures._check_labels(hash_policies.effect_chart(lone), "effect")
    assert "chained, prime" in hash_policies.sentence(lone)


def test_wrong_work_is_refused(monkeypatch):
    monkeypatch.setattr(maps.PythonDict, "find", lambda self, keys: 1)
    monkeypatch.setattr(maps.TypedDict, "find", lambda self, keys: 2)
    with pytest.raises(hash_workload.timing.ChecksumError, match="same work"):
        hash_workload.measure(300, 3, 2)


def test_charts_of_the_workload(found):
    for draw in (hash_policies.effect_chart, hash_policies.spread_chart):
        figures._check_labels(draw(found), "hash")
    assert "Searches look at" in hash_policies.sentence(found)


def test_collapse_extrapolates_to_what_it_measures():
    ruin = hash_policies.collapse(4_000, 60, [16, 128], 3, 1)
    table = hash_policies.collapse_table(ruin)
    assert table["ended by the bound [%]"].iloc[-1] == 0 < table["ended by the bound [%]"].iloc[0]
    assert ruin.expected == table["slots looked at"].iloc[-1] > 200
    told = replace(ruin, comparison=compared(**{"16": [8.0] * 3, "128": [64.0] * 3, "none": [500.0] * 3}))
    looked = int(ruin.tallies["128"][map_work.LOOKED]) / 60
    assert told.extrapolated_ns == pytest.approx(64 / looked * ruin.expected)
    assert "0.5 µs" in hash_policies.collapse_sentence(told)


def test_streams_and_enemies():
    table = hash_streams.stream_table(3_000, 1).set_index("policy")
    assert np.isnan(table.loc["identity", "multiples of 2^12: probes"])
    assert table.loc["Fibonacci", "as on the feed: probes"] < 1.2 < table.loc["splitmix64", "random: probes"]
    enemies = hash_streams.enemy_table(64, 8).set_index("policy")
    for policy in enemies.index:
        assert enemies.loc[policy, f"against {policy}"] == 32.5
    assert enemies.loc["Fibonacci", "against splitmix64"] < 3


def test_times_by_stream(told):
    found = hash_streams.times(3_000, 3, 1)
    table = hash_streams.times_table(found).set_index("map")
    assert np.isnan(table.loc["identity", "multiples of 2^12: find [ns]"])
    assert table.drop("identity").notna().all().all() and hash_workload.PAGED in table.index
    assert "as on the feed" in hash_streams.times_sentence(found)
    assert hash_streams.enemy_times(3, 64, 8).notna().all().all()


@pytest.mark.parametrize("ahead", [0, 7])
@pytest.mark.parametrize("stream", streams.STREAMS)
def test_the_paged_index_is_a_map(stream, ahead):
    keys = streams.STREAMS[stream](3_000, 4)
    paged, plain = maps.Paged(keys.size, ahead=ahead), maps.PythonDict()
    for one in (paged, plain):
        assert one.insert(keys[:2_000]) == 2_000
    assert paged.insert(keys[:2_000]) == 0, "the same keys once more are not new"
    asked = streams.queries(keys[:2_000], 500, seed=4)
    assert paged.find(asked) == plain.find(asked)
    gone, come = np.random.default_rng(4).permutation(keys[:2_000])[:1_000], keys[2_000:]
    assert paged.churn(gone, come) == plain.churn(gone, come)
    assert paged.find(keys) == plain.find(keys) and paged.bytes(keys) > 8 * 2_000
    paged.clear()
    assert paged.find(keys) == 0 and paged.insert(keys) == keys.size


def test_scaling():
    loads = hash_scaling.by_load(8, [0.1, 0.5, 0.95], 300, 3, 1)
    assert len(loads) == 12 and (loads.probes >= 1).all()
    assert "at 0.95" in hash_scaling.load_sentence(loads)
    sizes = hash_scaling.by_size(6, 8, 200, 3, 1)
    assert set(sizes.bytes) == {1024, 4096}
    for fig in (hash_scaling.load_chart(loads), hash_scaling.size_chart(sizes)):
        figures._check_labels(fig, "scaling")


def costs_of(mask, modulo):
    one = compared(**{name: [1.0] * 3 for name in hash_cost._CHAINS} | {"mask": mask, "modulo": modulo})
    return hash_cost.Costs(one, one, 0.5)


def test_costs():
    real = hash_cost.measure(500, 3)
    assert len(hash_cost.table(real)) == 6
    told = hash_cost.sentence(costs_of([0.5] * 3, [10.0] * 3))
    assert "a mask takes 1.00 cycles" in told and "**20.0**: 20.0 times as much" in told
    assert "could not be told" in hash_cost.sentence(costs_of([1e-7] * 3, [10.0] * 3))


def test_end_to_end():
    data, truth = synth.generate(20_000, 3)
    short = day.Day("small", "a day", data, truth.messages)
    one = hash_replay.measure(short, ["Fibonacci"], 3)
    assert set(one.comparison.variants) == {hash_replay.PAGED, "Fibonacci"}
    assert one.ratio("Fibonacci")["value"] is None and "20,000 messages" in hash_replay.sentence(one)
    long = replace(one, day=replace(short, messages=day.FEWEST))
    assert long.ratio("Fibonacci")["value"] > 0 and "Fibonacci" in hash_replay.sentence(long)
    assert len(hash_replay.table([long])) == 2 and len(long.rows()) == len(long.times()) == 1
    assert 1 <= long.probes["Fibonacci"][0] < 2
    figures._check_labels(hash_replay.chart([long]), "replay")
