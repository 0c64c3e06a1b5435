"""The noise gauge: what is read, and what is complained of, by planted readings."""

import os

import pytest

from photonlab.lab.measure import noise
from photonlab.machine import system


def test_the_gauge_reads_something():
    with noise.Gauge() as gauge:
        pass
    found = gauge.noise
    assert found.hiccups >= 0 and 0 <= found.drift < 10 and found.gaps >= 0
    assert found.waited is None or found.waited >= 0
    assert noise.complaints({}) == []


def test_what_is_beyond_a_limit_is_complained_of():
    assert "a cycle changed by 20%" in noise.complaints(noise.Noise(0.0, 0.0, 0, 0.2).as_dict())[0]
    assert "stolen by the host" in noise.complaints(noise.Noise(0.5, 0.0, 0, 0.0).as_dict())[0]
    assert "gaps of 10 µs" in noise.complaints(noise.Noise(None, 0.5, 9, 0.0).as_dict())[0]
    assert noise.complaints(noise.Noise(None, 0.0, 0, 0.0).as_dict()) == []


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        ({"rounds": 90, "retaken": 10, "disturbed": 0}, []),  # just the limit
        ({"rounds": 90, "retaken": 10, "disturbed": 1},
         ["11% of the rounds in turn were disturbed (10 taken again, 1 kept)"]),
        ({"rounds": 10, "retaken": 0, "disturbed": 10},
         ["100% of the rounds in turn were disturbed (0 taken again, 10 kept)"]),
        ({"rounds": 0, "retaken": 0, "disturbed": 0}, []),
        ({"cells": {"seconds": 2.0, "disturbed seconds": 0.2, "disturbed cells": {}}}, []),
        ({"cells": {"seconds": 2.0, "disturbed seconds": 0.5, "disturbed cells": {}}},
         ["cells that were disturbed take 25% of the time of all"]),
        ({"cells": {"seconds": 0, "disturbed seconds": 0, "disturbed cells": {}}}, []),
        ({}, []),
        (None, []),
    ],
)  # fmt: skip
def test_complaints_follow_what_was_disturbed_while_the_notebook_ran(rounds, words):
    assert noise.complaints({}, rounds) == words


def test_cells_are_watched_by_two_reads_each():
    moment, spent, cpus = [0], [system.Usage(0, 0, 0, 0, 0, 0)], os.cpu_count()
    cells = noise.Cells(lambda: spent[0], lambda: moment[0])

    def ran(number, ms, waited=0, stolen=0):
        cells.begin()
        moment[0] += ms * 1_000_000
        waiting, taken = spent[0].waiting_ns + waited * 1_000_000, spent[0].steal_ns + stolen * 1_000_000
        spent[0] = spent[0]._replace(waiting_ns=waiting, steal_ns=taken)
        cells.end(number)

    ran("1", 99, waited=90)  # too short for the system's counters
    ran("2", 1000, waited=20, stolen=10 * cpus)  # just the limits
    ran("3", 1000, waited=31)
    ran("4", 2000, stolen=50 * cpus)
    cells.end("5")  # never begun
    found = cells.as_dict()
    assert (found["seconds"], found["disturbed seconds"]) == (4.0, 3.0)
    assert found["disturbed cells"] == {
        "3": "its thread waited for a CPU for 3.1% of it", "4": "the host took 2.5% of the CPUs' time",
    }  # fmt: skip
    ran("3", 1000)
    assert "3" not in cells.disturbed, "a cell that ran again, undisturbed"
    silent = noise.Cells(lambda: system.Usage(*(None,) * 6), lambda: moment[0])
    silent.begin()
    moment[0] += 10**9
    silent.end("1")
    assert silent.disturbed == {}, "a system that counts nothing"
