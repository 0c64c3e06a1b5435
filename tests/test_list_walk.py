"""Lists of nodes and the walk along them: every node once, in the order of the links, wherever the nodes lie."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from photonlab.kernels import block_pool, list_walk
from photonlab.lab.measure.allocation import prove
from photonlab.lab.studies.pool_walk import Heap
from photonlab.systems.experiments import allocators


def follow(words, first):
    """Places of a list, by plain steps."""
    places = []
    while first:
        assert len(places) < words.size, "the list does not end"
        places.append(int(first))
        first = words[first]
    return places


@given(st.integers(1, 40), st.integers(0, 1000))
def test_a_linked_list_is_walked_in_its_order(count, seed):
    order = np.random.default_rng(seed).permutation(np.arange(1, count + 1, dtype=np.uint32)) * np.uint32(16)
    words = np.full((count + 1) * 16, 0xDEADBEEF, np.uint32)
    list_walk.link(words, order)
    assert follow(words, order[0]) == order.tolist()
    assert words[order.astype(int) + 1].tolist() == list(range(count))
    total, nodes = list_walk.walk(words, np.uint64(order[0]), np.uint64(count + 1))
    assert (total, nodes) == (count * (count - 1) // 2, count)
    untouched = np.delete(words.reshape(-1, 16), [0, 1], axis=1)
    assert (untouched == 0xDEADBEEF).all() and (words[:16] == 0xDEADBEEF).all()


def test_an_empty_list_and_one_that_never_ends():
    words = np.zeros(64, np.uint32)
    assert list_walk.walk(words, np.uint64(0), np.uint64(9)) == (0, 0)
    words[16], words[17] = 16, 5
    assert list_walk.walk(words, np.uint64(16), np.uint64(9)) == (45, 9), "left after `most` nodes"


def test_a_pool_links_as_it_hands_out():
    blocks, taken = block_pool.make_blocks(30), np.zeros(30, np.uint32)
    assert allocators.pool_list(blocks, taken) == 30
    assert follow(blocks.words, 16) == [16 * n for n in range(1, 31)]
    assert list_walk.walk(blocks.words, np.uint64(16), np.uint64(31)) == (435, 30)


def test_nodes_on_the_heap_are_found_through_a_window():
    heap = Heap(300, seed=1)
    nodes = heap.nodes()
    first = nodes.linked(300)
    base = int(heap.taken.min()) - 64
    assert follow(nodes.words, first) == [(int(address) - base) // 4 for address in heap.taken]
    assert list_walk.walk(nodes.words, first, np.uint64(301)) == (300 * 299 // 2, 300)
    before = set(heap.taken.tolist())
    heap.reuse()
    assert len(before & set(heap.taken.tolist())) > 100, "blocks from the holes of before"
    heap.close()
    assert not heap.taken.any() and not heap.decoys.any()


def test_the_walk_allocates_nothing():
    words = np.zeros(64, np.uint32)
    assert prove(list_walk.walk, words, np.uint64(16), np.uint64(3)).clean
    assert prove(list_walk.link, words, np.array([16, 32], np.uint32)).clean
