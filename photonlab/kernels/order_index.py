"""The order index: from an order reference to its node, by paging, as an address becomes a memory page.

An exchange hands out references almost in sequence, and a hash would scatter what it has already sorted. NASDAQ's
come in streams, each of one residue modulo 4 (seen in a day of 2019), so a reference is first turned by 2 bits. Of what
results the low 4 bits are a place in a page of 16 nodes, the next 8 bits a place in a chunk of 256 page entries, and
the rest is looked up in a small hash map, the directory. A page or chunk is taken when its first order comes and given
back when its last one goes, so memory follows the live orders, however many have been seen and however their references
are spread: at worst one page, one chunk and one directory entry each (1.3 kB), and on a feed about one page for
several orders.

The node itself is the place in the page: there is no pointer from the index to the order, and no second cache miss.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import hashing, pool
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

PAGE_BITS, CHUNK_BITS, COUNT_BITS = np.uint64(4), np.uint64(8), np.uint64(5)
PAGE_NODES = 1 << int(PAGE_BITS)
_KEY_SHIFT = PAGE_BITS + CHUNK_BITS
_PAGE_MASK, _CHUNK_MASK, _COUNT_MASK = np.uint64(15), np.uint64(255), np.uint64(31)
_0, _1 = np.uint64(0), np.uint64(1)

_TURN, _BACK, _STREAM_MASK = np.uint64(2), np.uint64(62), np.uint64(3)

CHANGES = np.uint64(8)  # word of `recent`, behind a key and a chunk for each of the 4 streams


class OrderIndex(NamedTuple):
    """Where each live reference has its node.

    Attributes
    ----------
    directory : hashing.Map
        Turned reference >> 12 → chunk.
    chunks : ndarray of uint32, shape (256 * chunks,)
        Page number << 5 | live orders in the page (1 to 16); 0 where there is no page.
    chunk_pages : ndarray of uint16, shape (chunks,)
        Pages in the chunk.
    page_first : ndarray of uint64, shape (pages,)
        The turned reference of a page's first node.
    chunk_pool, page_pool : pool.Pool
    recent : ndarray of uint64, shape (9,)
        Of each stream the last key that got a chunk, and that chunk, as references come in sequence; and how often
        chunks came or went: an entry found before is good as long as that stands still.
    """

    directory: hashing.Map
    chunks: np.ndarray
    chunk_pages: np.ndarray
    page_first: np.ndarray
    chunk_pool: pool.Pool
    page_pool: pool.Pool
    recent: np.ndarray


def make_order_index(pages=1 << 24) -> OrderIndex:
    """Return an empty index.

    Parameters
    ----------
    pages : int
        Pages of 16 references that may be in use at once, at most 2**27: a bound on live orders, in address space
        only.

    Returns
    -------
    OrderIndex
    """
    if not 2 <= pages <= 1 << 27:
        raise ValueError(f"an order index has 2 to 2**27 pages, not {pages}")
    largest = 1 << max(pages.bit_length(), 4)
    return OrderIndex(
        hashing.make_map(largest, min(1 << 10, largest)),
        huge_array(pages << int(CHUNK_BITS), np.uint32),
        huge_array(pages, np.uint16),
        huge_array(pages, np.uint64),
        pool.make_pool(pages),
        pool.make_pool(pages),
        np.zeros(9, np.uint64),
    )


@kernel(inner=True)
def _turned(reference):
    return (reference >> _TURN) | (reference << _BACK)


@kernel(inner=True)
def _recent_at(reference):
    """Return the index in `recent` of the key of a reference's stream; its chunk stands behind it."""
    return (reference & _STREAM_MASK) << _1


@kernel(inner=True)
def entry_of(index, reference):
    """Return the place in `chunks` of the page entry of `reference`, or 0 if its chunk does not exist."""
    turned, recent = _turned(reference), _recent_at(reference)
    key = turned >> _KEY_SHIFT
    if index.recent[recent] == key:
        chunk = index.recent[recent + _1]
    else:
        chunk = hashing.find(index.directory, key)
    # chunk 0 is never handed out, so its 256 entries are all 0
    return (chunk << CHUNK_BITS) | ((turned >> PAGE_BITS) & _CHUNK_MASK)


@kernel(inner=True)
def node_at(index, entry, reference):
    """Return the node of `reference` in the page of `entry`; if there is none one of page 0, which is never live."""
    page = np.uint64(index.chunks[entry]) >> COUNT_BITS
    return (page << PAGE_BITS) | (_turned(reference) & _PAGE_MASK)


@kernel(inner=True)
def reference_of(index, node):
    """Return the reference of a live node."""
    turned = index.page_first[node >> PAGE_BITS] | (node & _PAGE_MASK)
    return (turned << _TURN) | (turned >> _BACK)


@kernel(inner=True)
def claim(index, entry, reference):
    """Return a node for a reference that has none, or 0 if the index is full; `entry` is what `entry_of` gives."""
    page = np.uint64(index.chunks[entry])
    if page == _0:
        entry = _new_page(index, reference, entry)
        if entry == _0:
            return _0
        page = np.uint64(index.chunks[entry])
    index.chunks[entry] = page + _1
    return ((page >> COUNT_BITS) << PAGE_BITS) | (_turned(reference) & _PAGE_MASK)


@kernel(inner=True)
def _new_page(index, reference, entry):
    """Set an empty page up for `reference`, and its chunk if need be; return its entry, or 0 if the index is full."""
    key = _turned(reference) >> _KEY_SHIFT
    chunk = entry >> CHUNK_BITS
    if chunk == _0:
        if pool.left(index.page_pool) == _0:
            return _0
        chunk = pool.take(index.chunk_pool)
        if chunk == _0:
            return _0
        if not hashing.insert(index.directory, key, chunk):
            pool.give(index.chunk_pool, chunk)
            return _0
        recent = _recent_at(reference)
        index.recent[recent] = key
        index.recent[recent + _1] = chunk
        index.recent[CHANGES] += _1
        entry |= chunk << CHUNK_BITS
    page = pool.take(index.page_pool)
    if page == _0:
        return _0
    index.chunks[entry] = page << COUNT_BITS
    index.chunk_pages[chunk] += np.uint16(1)
    index.page_first[page] = _turned(reference) & ~_PAGE_MASK
    return entry


@kernel(inner=True)
def release(index, entry, reference):
    """Give back the node of a reference that stands at `entry`. Its memory must hold no live order any more."""
    count = np.uint64(index.chunks[entry]) - _1
    index.chunks[entry] = count
    if count & _COUNT_MASK == _0:
        _drop_page(index, entry, reference)


@kernel(inner=True)
def _drop_page(index, entry, reference):
    """Give an empty page back, and its chunk with its last page."""
    pool.give(index.page_pool, np.uint64(index.chunks[entry]) >> COUNT_BITS)
    index.chunks[entry] = _0
    chunk = entry >> CHUNK_BITS
    index.chunk_pages[chunk] -= np.uint16(1)
    if index.chunk_pages[chunk] == 0:
        key, recent = _turned(reference) >> _KEY_SHIFT, _recent_at(reference)
        hashing.remove(index.directory, key)
        pool.give(index.chunk_pool, chunk)
        index.recent[CHANGES] += _1
        if index.recent[recent] == key:
            index.recent[recent] = ~_0  # no reference has this key: it is longer than 52 bits
