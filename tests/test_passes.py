"""Passes that are timed: fresh state each time, memory touched beforehand on request, equal outcomes."""

import numpy as np
import pytest

from photonlab.kernels import hashing
from photonlab.machine import residency
from photonlab.machine.memory import as_bytes_array, huge_array
from photonlab.machine.system import Watch
from photonlab.systems import synth
from photonlab.systems.experiments import passes, probing
from photonlab.systems.replayer import Replayer
from tests.oracle import itch, streams


@pytest.fixture(scope="module")
def day():
    return synth.generate(20_000, 6)[0]


@pytest.mark.parametrize("kind", [passes.BookPass, passes.CorePass])
def test_every_pass_has_the_same_outcome_cold_or_warm(kind, day):
    outcomes = set()
    for warm in (False, True):
        one = kind(day, warm=warm)
        for _ in range(2):
            one.prepare()
            outcomes.add(one())
    assert len(outcomes) == 1
    assert one.messages == 20_000


def test_the_outcome_tells_days_apart(day):
    other = synth.generate(20_000, 7)[0]
    outcomes = []
    for data in (day, other, day[: day.size // 2]):
        one = passes.BookPass(data)
        one.prepare()
        outcomes.append(one())
    assert len(set(outcomes)) == 3


def test_chunks_and_looking_ahead_change_nothing(day):
    whole = Replayer()
    whole.feed(day)
    for options in ({"chunk": 777}, {"look_ahead": True}, {"look_ahead": False, "chunk": day.size}):
        one = passes.BookPass(day, **options)
        one.prepare()
        one()
        assert one.replayer.checksum() == whole.checksum()


def test_a_warm_pass_takes_fewer_page_faults(day):
    faults = {}
    for warm in (False, True):
        one = passes.BookPass(day, warm=warm)
        one.prepare()
        one()  # code and tables are there now
        one.prepare()
        with Watch() as watched:
            one()
        faults[warm] = watched.usage.minor_faults
    if None in faults.values() or not one.resident_bytes:
        pytest.skip("the system does not tell")
    assert faults[True] < faults[False] / 2


def test_pages_that_have_memory():
    array = huge_array(1 << 20, np.uint8, huge=False)
    page = residency.mmap.PAGESIZE
    if residency.resident_pages(array) is None:
        pytest.skip("the system does not tell")
    assert residency.resident_pages(array).size == 0
    array[3 * page], array[7 * page + 5] = 1, 2
    assert residency.resident_pages(array).tolist() == [3, 7]
    twin = huge_array(1 << 20, np.uint8, huge=False)
    residency.touch((twin,), residency.footprint((array,)))
    assert residency.resident_pages(twin).tolist() == [3, 7]
    assert residency.resident_bytes(residency.footprint((twin,))) == 2 * page
    assert not twin.any()


def test_pages_of_memory_that_is_no_map_are_not_known():
    assert residency.resident_pages(np.zeros(100, np.uint8)[1:]) is None
    assert residency.footprint((np.zeros(10),)) == [None]


def test_fold_depends_on_order_and_on_all():
    assert len({passes.fold(1, 2, 3), passes.fold(3, 2, 1), passes.fold(1, 2, 4), passes.fold(1, 2)}) == 4
    assert 0 <= passes.fold(2**64 - 1, 2**63) < 2**52


# -- probes of an order map (claim R5) ------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"slots": 1 << 16, "initial": 1 << 16}])
def test_live_references_and_probes_of_a_stream(options):
    data = streams.long_stream(3, 3000, faults=0.02)
    live, searches = {}, 0
    for _, message in itch.walk(data).messages:
        kind = chr(message[0])
        if itch.LENGTH.get(kind) != len(message) or kind not in "AFECXDU":
            continue
        fields = itch.decode(message)
        searches += 1
        new = fields.get("order_reference_number")
        if kind in "AF":
            live[new] = fields["shares"]
        elif kind == "U":
            new = fields["new_order_reference_number"]
            if live.pop(fields["original_order_reference_number"], None) is not None:
                live[new] = fields["shares"]
                searches += 1
        elif kind == "D":
            live.pop(new, None)
        elif new in live:
            less = fields["canceled_shares" if kind == "X" else "executed_shares"]
            live[new] -= less
            if live[new] <= 0:
                del live[new]
    found = probing.probe_day(as_bytes_array(data), **options)
    assert found.map.state[hashing.USED] == len(live)
    for reference, shares in live.items():
        assert hashing.find(found.map, np.uint64(reference)) == shares + 1
    assert found.tally[probing.SEARCHES] == searches
    assert 1 <= found.average <= found.longest
    assert 0 < found.load <= 0.5


def test_probes_of_members_by_hand():
    table = hashing.make_map(1 << 4, 1 << 4, load=0.9)
    for key in range(1, 9):
        hashing.insert(table, np.uint64(key), np.uint64(1))
    found = probing.probe_members(table)
    each = [int(hashing.probes(table, np.uint64(key))) for key in range(1, 9)]
    assert found.tally.tolist() == [8, sum(each), max(each), 8]
    assert found.average == sum(each) / 8 and found.longest == max(each) and found.load == 0.5
