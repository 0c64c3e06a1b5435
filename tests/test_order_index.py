"""The order index against a set of references: all found, all memory given back, exhaustion; traps 9, 12, 18."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.kernels import hashing, order_index, pool
from tests import drivers

PAGES = 256
EDGES = [
    *range(40), 4080, 4095, 4096, 4097, *(64 << k for k in range(0, 58, 3)),
    *(edge + step for edge in (2**32, 2**53, 2**63) for step in (-17, -16, -1, 0, 1, 16)), 2**64 - 4096, 2**64 - 1,
]  # fmt: skip


def turned(reference):
    """Give a reference as the index pages it: NASDAQ's streams are residues modulo 4."""
    return reference >> 2 | (reference & 3) << 62


class Index:
    """An index with the marks of live nodes that its user must keep, beside the set that it should be."""

    def __init__(self, pages=PAGES):
        self.index = order_index.make_order_index(pages)
        self.live = np.zeros(16 * pages, np.bool_)
        self.references = set()
        self.pages = pages

    def toggle(self, references):
        """Add those that are missing, remove those that are there; nothing may be refused. Then check."""
        nodes = np.zeros(len(references), np.uint64)
        drivers.toggle(self.index, self.live, np.array(references, np.uint64), nodes)
        for reference, node in zip(references, nodes, strict=True):
            assert 16 <= node < 16 * self.pages
            self.references ^= {reference}
        self.check()
        return nodes

    def check(self):
        references = np.array(sorted(self.references), np.uint64)
        nodes, back = np.zeros((2, len(references)), np.uint64)
        drivers.look_up(self.index, references, nodes, back)
        assert back.tolist() == references.tolist(), "a node knows its reference"
        assert len(set(nodes.tolist())) == len(nodes), "no node twice"
        assert set(nodes.tolist()) == set(np.flatnonzero(self.live).tolist())
        keys = [turned(reference) for reference in references.tolist()]
        assert [node & 15 for node in nodes.tolist()] == [key & 15 for key in keys]
        chunks = {key >> 12 for key in keys}
        assert self.index.page_pool.state[pool.LIVE] == len({key >> 4 for key in keys})
        assert self.index.chunk_pool.state[pool.LIVE] == len(chunks)
        assert self.index.directory.state[hashing.USED] == len(chunks)
        for chunk in chunks:
            number = int(hashing.find(self.index.directory, np.uint64(chunk)))
            pages = len({key >> 4 for key in keys if key >> 12 == chunk})
            assert self.index.chunk_pages[number] == pages

    def empty(self):
        self.toggle(sorted(self.references))
        assert not self.index.chunks.any() and not self.index.chunk_pages.any()
        assert not self.live.any()


@settings(max_examples=300)
@given(st.lists(st.sampled_from(EDGES) | st.integers(0, 2**64 - 1), max_size=120))
def test_against_a_set(references):
    index = Index()
    for part in (references[:50], references[50:]):
        index.toggle(part)
    index.empty()


@pytest.mark.parametrize("step", [1, 2, 15, 16, 17, 255, 4096, 4097, 1 << 20, 1 << 40, 1 << 58])
def test_trap_9_and_18_spread_references_in_and_out(step):
    """Few at a time, many in all: pages, chunks and directory entries come back, whatever distinguishes them."""
    draw, index, live = random.Random(step), Index(), []
    for start in range(0, 3_000, 100):
        fresh = sorted({n * step % 2**64 for n in range(start, start + 100)} - set(live) - index.references)
        draw.shuffle(fresh)
        index.toggle(fresh)
        live += fresh
        draw.shuffle(live)
        gone, live = live[60:], live[:60]
        index.toggle(gone)
    index.empty()


def test_trap_12_neighbours_beyond_the_precision_of_floats():
    for edge in (2**53, 2**63, 2**64 - 3):
        index = Index()
        nodes = index.toggle([edge - 1, edge, edge + 1, edge + 2])
        assert len(set(nodes.tolist())) == 4
        index.toggle([edge])
        assert edge + 1 in index.references
        index.empty()


def test_a_page_keeps_its_place_while_one_order_lives():
    index = Index()
    first = index.toggle([4 * n for n in range(32, 48)])
    index.toggle([4 * n for n in (33, 34, 47, 32)])
    again = index.toggle([4 * 34])
    assert again[0] == first[2]
    index.empty()
    assert index.toggle([5000])[0] >> np.uint64(4) == first[0] >> np.uint64(4), "the page that came back goes out first"


def test_the_remembered_chunk_is_forgotten_with_the_chunk():
    """A chunk dies and is born again under another number while it is the last one that was asked for."""
    index = Index()
    for stream in range(4):
        near, far, farther = (4 * chunk * 4096 + stream for chunk in (1, 2, 3))
        index.toggle([near, far])
        index.toggle([near])
        index.toggle([farther, near])
        index.toggle([stream])
        index.toggle([stream, stream, stream])
        index.empty()


def test_streams_do_not_share_pages():
    index = Index()
    index.toggle(list(range(64)))
    assert index.index.page_pool.state[pool.LIVE] == 4
    index.toggle([n for n in range(64) if n % 4 != 1])
    assert index.index.page_pool.state[pool.LIVE] == 1
    index.empty()


@pytest.mark.parametrize("step", [64, 16384])
def test_a_full_index_says_so_and_stays_sound(step):
    index = Index(pages=8)
    index.toggle([n * step for n in range(7)])
    nodes = np.zeros(3, np.uint64)
    more = np.array([7 * step, 8 * step, 2**60], np.uint64)
    drivers.toggle(index.index, index.live, more, nodes)
    assert nodes.tolist() == [0, 0, 0]
    index.check()
    index.toggle([3 * step + 4])  # a place in a page that exists needs no new page
    index.toggle([0])
    index.toggle([7 * step])
    index.empty()
    assert pool.left(index.index.page_pool) == pool.left(index.index.chunk_pool) == 7


@pytest.mark.parametrize("pages", [0, 1, (1 << 27) + 1])
def test_page_numbers_that_make_no_index(pages):
    with pytest.raises(ValueError, match="2 to 2"):
        order_index.make_order_index(pages)


def test_trap_16_canaries():
    """Every array of the index as a view inside a larger one."""
    index, arrays = Index(64), {}
    for name in ("chunks", "chunk_pages", "page_first"):
        array = getattr(index.index, name)
        arrays[name] = np.full(array.size + 128, 0xAB, array.dtype)
        arrays[name][64:-64] = 0
    index.index = index.index._replace(**{name: array[64:-64] for name, array in arrays.items()})
    draw = random.Random(1)
    for _ in range(50):
        index.toggle(draw.sample(range(0, 60 * 4096, 4096), 30))
    for array in arrays.values():
        assert (array[:64] == 0xAB).all() and (array[-64:] == 0xAB).all()
