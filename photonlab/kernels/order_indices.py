"""What a book asks of its order index, for whichever index it was made with: chosen by type when it is compiled.

The paged index (`kernels/order_index.py`) is the default; the hashed one (`kernels/hashed_index.py`) exists to see what
a hash policy is worth end to end.
"""

from photonlab.kernels import hashed_index, order_index, pool
from photonlab.kernels.hashed_index import HashedIndex
from photonlab.kernels.order_index import OrderIndex
from photonlab.machine.bits import prefetch
from photonlab.machine.choice import by_type
from photonlab.machine.jit import kernel


@by_type
def entry_of(index, reference):
    """Return where the index keeps `reference`; good until `changes_of` moves."""


@by_type
def ask_for(index, entry):
    """Ask for the cache line of an entry."""


@by_type
def node_at(index, entry, reference):
    """Return the node of `reference`; if it has none, a node that is never live."""


@by_type
def reference_of(index, node):
    """Return the reference of a live node."""


@by_type
def claim(index, entry, reference):
    """Return a node for a reference that has none, or 0 if the index is full."""


@by_type
def release(index, entry, reference):
    """Give back the node of a reference. Its memory must hold no live order any more."""


@by_type
def changes_of(index):
    """Return a number that moves when entries may have become stale."""


@by_type
def has_room(index, orders):
    """Return whether so many more orders find room."""


@kernel(inner=True)
def _ask_for_page(index, entry):
    prefetch(index.chunks, entry)


@kernel(inner=True)
def _changes_of_pages(index):
    return index.recent[order_index.CHANGES]


@kernel(inner=True)
def _has_pages(index, orders):
    return pool.left(index.page_pool) > orders and pool.left(index.chunk_pool) > orders


for _room, _type in ((order_index, OrderIndex), (hashed_index, HashedIndex)):
    for _question in (entry_of, node_at, reference_of, claim, release):
        _question.kernels[_type] = getattr(_room, _question.__name__)
ask_for.kernels |= {OrderIndex: _ask_for_page, HashedIndex: hashed_index.ask_for}
changes_of.kernels |= {OrderIndex: _changes_of_pages, HashedIndex: hashed_index.changes_of}
has_room.kernels |= {OrderIndex: _has_pages, HashedIndex: hashed_index.has_room}


def nodes_of(index) -> int:
    """Return how many nodes an index may hand out, the one that is never live included."""
    if isinstance(index, OrderIndex):
        return int(index.page_pool.state[pool.CAPACITY]) * order_index.PAGE_NODES
    return int(index.nodes.state[pool.CAPACITY])


def make_index(policy="", pages=1 << 24):
    """Return an empty index.

    Parameters
    ----------
    policy : str
        Empty for the paged index, else a hash policy's name (see `hash_policies.POLICIES`).
    pages : int
        As many orders at most as so many pages hold when they are full, 16 to the page.

    Returns
    -------
    OrderIndex or HashedIndex
    """
    if not policy:
        return order_index.make_order_index(pages)
    return hashed_index.make_hashed_index(policy, orders=1 << (pages * order_index.PAGE_NODES - 1).bit_length())


del _room, _type, _question
