"""The order index on a hash table: the same books as with the paged one, and its five questions against a dict."""

import numpy as np
import pytest

from photonlab.errors import UserError
from photonlab.kernels import book as books
from photonlab.kernels import book_views, hashed_index, order_indices
from photonlab.kernels.hashed_index import make_hashed_index
from photonlab.machine.jit import kernel
from photonlab.systems import synth
from photonlab.systems.experiments import reference_streams
from photonlab.systems.replayer import Replayer
from tests.oracle import streams


@kernel
def toggle(index, references, nodes, back, size):
    """Claim each reference that has no node, release each that has; write its node and that node's reference."""
    for i in range(references.size):
        reference = references[i]
        entry = order_indices.entry_of(index, reference)
        order_indices.ask_for(index, entry)
        node = order_indices.node_at(index, entry, reference)
        if node != np.uint64(0):
            back[i] = order_indices.reference_of(index, node)
            order_indices.release(index, entry, reference)
        else:
            node = order_indices.claim(index, entry, reference)
            back[i] = order_indices.reference_of(index, node) if node != np.uint64(0) else np.uint64(0)
        nodes[i] = node
        size[i] = order_indices.changes_of(index)


@pytest.mark.parametrize("policy", ["Fibonacci", "splitmix64"])
def test_claims_and_releases_against_a_dict(policy):
    rng = np.random.default_rng(2)
    for keys in (reference_streams.as_on_the_feed(3_000, 1), reference_streams.random(3_000, 1)):
        index, there = make_hashed_index(policy, orders=1 << 12), {}
        for _ in range(4):
            references = rng.choice(keys, 5_000)
            nodes, back, changes = (np.zeros(5_000, np.uint64) for _ in range(3))
            toggle(index, references, nodes, back, changes)
            assert np.array_equal(back, references)
            for reference, node in zip(references.tolist(), nodes.tolist(), strict=True):
                if reference in there:
                    assert there.pop(reference) == node
                else:
                    assert node not in there.values() and node != 0
                    there[reference] = node
        assert int(index.changes[0]) == 2, "it doubled from 2^10 to 2^12 slots"


def test_a_full_index_hands_out_nothing():
    index = make_hashed_index("Fibonacci", orders=16)
    references = np.arange(1, 21, dtype=np.uint64)
    nodes, back, changes = (np.zeros(20, np.uint64) for _ in range(3))
    toggle(index, references, nodes, back, changes)
    assert sorted(nodes.tolist()) == [0] * 5 + list(range(1, 16))


@pytest.mark.parametrize("policy", ["Fibonacci", "splitmix64"])
@pytest.mark.parametrize("look_ahead", [False, True])
def test_the_books_are_those_of_the_paged_index(policy, look_ahead):
    """On feeds with faults of every kind, in chunks, and on a synthetic day with tens of thousands of orders."""
    for data in (streams.long_stream(11, 6_000, faults=0.15), bytes(synth.generate(40_000, 5, "wide")[0])):
        paged = Replayer(look_ahead=look_ahead)
        hashed = Replayer(look_ahead=look_ahead, capacity={"policy": policy})
        paged.feed(data)
        for begin in range(0, len(data), 7_001):
            hashed.feed(data[begin : begin + 7_001])
        assert hashed.checksum() == paged.checksum() and hashed.anomalies == paged.anomalies
        assert book_views.faults(hashed.feed_state.book) == 0
        assert hashed.live_orders == paged.live_orders > 30


def test_a_book_that_is_full_says_so():
    data = bytes(synth.generate(40_000, 5, "wide")[0])
    small = Replayer(capacity={"policy": "Fibonacci", "pages": 1 << 6})
    with pytest.raises(UserError, match="the books are full"):
        small.feed(data)
    assert book_views.faults(small.feed_state.book) == 0 and small.live_orders > 800


def test_nodes_and_unknown_policies():
    assert order_indices.nodes_of(order_indices.make_index("", 100)) == 1_600
    assert order_indices.nodes_of(order_indices.make_index("splitmix64", 100)) == 2_048
    with pytest.raises(KeyError):
        books.make_book(policy="none")
    assert isinstance(order_indices.make_index("Fibonacci", 64), hashed_index.HashedIndex)
