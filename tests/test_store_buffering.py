"""Under sequential consistency one of two threads always sees the other's store."""

import numpy as np
import pytest

from photonlab.lab.studies import store_buffering
from photonlab.lab.studies.store_buffering import STRONG, WEAK, Buffered
from photonlab.machine.system import PlacementError
from photonlab.systems import spin

ROUNDS = 20_000


def test_sequential_consistency_forbids_that_both_miss():
    found = store_buffering.measure(ROUNDS)
    if found.why:
        pytest.skip(found.why)
    assert found.missed[STRONG] == 0 and 0 <= found.missed[WEAK] <= ROUNDS
    assert [row["value"] for row in found.rows()] == [found.missed[WEAK], 0]
    assert len(store_buffering.table(found)) == 2


@pytest.mark.parametrize(
    ("weak", "strong", "says"), [(5, 0, "It shows"), (0, 0, "did not show"), (5, 1, "which forbids it")]
)
def test_the_sentence_reads_right_whichever_way_it_falls(weak, strong, says):
    assert says in store_buffering.sentence(Buffered(100, {WEAK: weak, STRONG: strong}))


def test_a_refusal_is_told(monkeypatch):
    def refuse(*sides):
        raise PlacementError("one CPU")

    monkeypatch.setattr(spin, "together", refuse)
    found = store_buffering.measure(10)
    assert [(row["value"], row["note"]) for row in found.rows()] == [(None, "one CPU")] * 2
    assert "one CPU" in store_buffering.sentence(found)
    assert store_buffering.table(found).iloc[:, 2].isna().all()
    assert np.isfinite(found.rounds)
