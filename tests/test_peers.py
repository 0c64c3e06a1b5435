"""Notebook 09: the peers agree, calls and cores change nothing, and the words fit the figures."""

from dataclasses import replace

import numpy as np
import pytest

from photonlab.lab.measure.comparison import Comparison, Timed
from photonlab.lab.publish import figures
from photonlab.lab.studies import day, own_code, packed, peers, shards
from photonlab.systems import synth
from photonlab.systems.experiments import order_flow, peer_packages
from photonlab.systems.experiments.peer_packages import MESSAGES, SYMBOL


@pytest.fixture(scope="module")
def today():
    data, truth = synth.generate(20_000, 3)
    return day.Day("small", "a day", data, truth.messages)


def timed(**series):
    return Comparison(
        {name: Timed(name, 1, 1_000_000, np.array(ns, float) * 1e6, 0.0, 1.0, 7, 0.0) for name, ns in series.items()},
        3, 0, 0, "",
    )  # fmt: skip


@pytest.fixture(scope="module")
def race():
    return peers.measure(20_000, 3, 1)


def test_all_packages_do_the_same_work(race):
    """What they agree on is checked while they run: rows, shares, best prices at the end."""
    assert all(race.versions.values()), "the tests install all of them"
    assert not race.failed
    assert set(race.facts[MESSAGES]) == {"rows", "shares added"} and set(race.facts[SYMBOL]) == {"rows", "last"}
    assert set(race.comparisons[MESSAGES].variants) == set(peer_packages.PEERS)
    table = peers.table([race])
    assert len(table) == sum(len(one.jobs) for one in peer_packages.PEERS.values()) and table.notna().all(axis=None)


def test_who_finds_something_else_is_found_out():
    with pytest.raises(peers.PeerError, match="itch-book finds rows 4, the others 5"):
        agreed = {}
        peers._agree(agreed, {"rows": 5}, "photonlab", "x")
        peers._agree(agreed, {"rows": 4}, "itch-book", "x")


def test_a_package_that_fails_or_is_absent_is_told(monkeypatch):
    monkeypatch.setattr(peers, "LEFT_OUT", "-")  # one package stops at type O
    monkeypatch.setitem(peer_packages.MODULES, "itchcpp", "no_such_module")
    race = peers.measure(5_000, 3, 1, ("photonlab", "meatpy", "itchcpp"), (SYMBOL,))
    assert ("meatpy", SYMBOL) in race.failed and race.versions["itchcpp"] == ""
    assert "failed: " in peers.table([race])["agreed"].iloc[-1]
    assert "ot installed: itchcpp" in peers.sentence([race])
    assert any(row["value"] is None and "pip install" in row["note"] for row in race.rows())


def test_words_of_a_race(race):
    told = replace(race, comparisons={"job": timed(photonlab=[2.0] * 3, meatpy=[4.0] * 3, itchcpp=[1.0] * 3)})
    said = peers.sentence([told])
    assert "faster at job against meatpy (2.00 times" in said and "**slower** at job against itchcpp (0.50" in said
    figures.use_style()
    figures._check_labels(peers.chart([told, race]), "peers")


def test_own_code(today):
    found = own_code.measure(today, "1min", 3)
    assert len(own_code.table(found)) == 5 and all(row["value"] is None for row in found.rows())
    long = replace(found, day=replace(today, messages=day.FEWEST))
    assert all(row["value"] > 0 for row in long.rows()) and "times as long" in own_code.sentence(long)
    assert found.places.executed[1:].sum() == 0, "who trades is first in the queue"
    assert found.places.joined.sum() > 100
    figures.use_style()
    figures._check_labels(own_code.chart(found), "own")
    assert "add_flow" in own_code.source(order_flow.add_flow)


def test_order_flow_adds_up():
    """Flow is the change of the bid's shares less that of the ask's as long as prices stand still."""
    kept = order_flow.make_imbalance(3, 10)
    event = np.zeros(17, np.uint64)

    def change(**words):
        event[:] = 0
        event[order_flow.event.LOCATE] = 3
        for name, value in words.items():
            event[getattr(order_flow.event, name)] = value
        before = int(kept.flow[3])
        order_flow.add_flow(np.zeros(1, np.uint64), event, kept)
        return int(kept.flow[3]) - before

    still = {"BID": 10, "OLD_BID": 10, "ASK": 12, "OLD_ASK": 12}
    assert change(**still, BID_SHARES=70, OLD_BID_SHARES=50, ASK_SHARES=5, OLD_ASK_SHARES=5) == 20
    assert change(**still, BID_SHARES=50, OLD_BID_SHARES=50, ASK_SHARES=9, OLD_ASK_SHARES=5) == -4
    assert change(BID=11, OLD_BID=10, BID_SHARES=7, OLD_BID_SHARES=50) == 7
    assert change(BID=9, OLD_BID=10, BID_SHARES=7, OLD_BID_SHARES=50) == -50
    assert change(ASK=11, OLD_ASK=12, ASK_SHARES=7, OLD_ASK_SHARES=50) == -7
    assert change(ASK=13, OLD_ASK=12, ASK_SHARES=7, OLD_ASK_SHARES=50) == 50
    assert change(OLD_ASK=12, OLD_ASK_SHARES=50) == 50
    assert change(ASK=12, ASK_SHARES=50) == -50


def test_cores(today, monkeypatch):
    found = shards.measure(today, 2, 3)
    assert found.rows()[0]["value"] is None and "Not measured" in shards.sentence(found)
    long = replace(found, day=replace(today, messages=day.FEWEST))
    assert long.rows()[0]["value"] > 0 and "times as fast as on one" in shards.sentence(long)
    assert len(shards.table(long)) == 3 and sum(long.parts) == pytest.approx(1)
    assert long.rows()[1]["variant"] == "1 core / 2 whole days at once, each on 1 core"
    monkeypatch.setattr(shards.system, "allowed_cpus", lambda: (0,))
    alone = shards.measure(today, 2, 3)
    assert "may use 1 cores, 2 are asked for" in shards.sentence(alone) and len(shards.table(alone)) == 1


def test_packed(today):
    found = packed.measure(today, 3)
    assert [row["value"] for row in found.rows()] == [None, None] and "Not measured" in packed.sentence(found)
    assert 0 < found.stored < found.size == today.data.size and len(packed.table(found)) == 3
    long = replace(found, why_not="")
    assert all(row["value"] > 0 for row in long.rows()) and f"here the {long.longer}" in packed.sentence(long)
