"""The L3 book: every order of every instrument in its queue, with the best bid and offer always at hand.

Orders and price levels are nodes of one array, 16 bytes to the node. An order is one node: the orders before and
after it in its queue, its open shares, its level. A level is two nodes: the first closes its queue to a ring, so
that taking an order out needs no case for the head or the tail; the second carries its volume and its place in the
price tree. An order knows its level by handle, so executions, cancels, deletes and the first half of a replace never
look for a price.

A book side is stock locate * 2 + (0 for bids, 1 for asks). Sources: TotalView-ITCH 5.0, sections 1.3 and 1.4.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels import order_indices, pool, price_tree
from photonlab.kernels.price_tree import BEST_KEY, BEST_LEVEL, NO_KEY, PriceTree, side_at
from photonlab.machine.bits import prefetch_write
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array

_0, _1, _2, _6, _16 = (np.uint64(i) for i in (0, 1, 2, 6, 16))
_DOLLAR, _MASK33 = np.uint64(10_000), np.uint64((1 << 33) - 1)
_MASK32 = np.uint64(0xFFFFFFFF)
_NODE_SHIFT = np.uint64(2)  # 4 words of 32 bits to the node

# Words of an order's node
BEFORE, AFTER, SHARES, LEVEL = (np.uint64(i) for i in range(4))
# Words of a level's two nodes; the volume is the uint64 at words 4 and 5
LAST, FIRST, KEY, SIDE, VOLUME, CHAIN, PLACE = (np.uint64(i) for i in (0, 1, 2, 3, 4, 6, 7))

# Words of `tally`
ORDERS, LEVELS, BEST_CHANGES = (np.uint64(i) for i in range(3))


class Book(NamedTuple):
    """The books of all instruments.

    Attributes
    ----------
    words : ndarray of uint32, shape (4 * nodes,)
        The nodes: orders first, then levels.
    pairs : ndarray of uint64, shape (2 * nodes,)
        The same memory.
    index : OrderIndex or HashedIndex
    tree : PriceTree
    levels : pool.Pool
        Slot s is the level at node `level_base` + 2 s.
    tally : ndarray of uint64, shape (8,)
        Live orders, live levels, changes of a best price, and the node at which levels begin.
    """

    words: np.ndarray
    pairs: np.ndarray
    index: tuple
    tree: PriceTree
    levels: pool.Pool
    tally: np.ndarray


LEVEL_BASE = np.uint64(7)


def make_book(pages=1 << 24, levels=1 << 24, tree_nodes=1 << 22, policy="") -> Book:
    """Return empty books for all 65,536 stock locates.

    Parameters
    ----------
    pages, levels, tree_nodes : int
        Bounds, in address space only: pages of 16 order references, price levels, nodes of the price tree.
    policy : str
        Of the order index; see `order_indices.make_index`.

    Returns
    -------
    Book

    Raises
    ------
    MemoryError
        If so much address space cannot be reserved.
    """
    index = order_indices.make_index(policy, pages)
    orders = order_indices.nodes_of(index)
    nodes = orders + 2 * levels
    if nodes > 1 << 32:
        raise ValueError(f"{pages} pages and {levels} levels need more than 2**32 nodes")
    words = huge_array(4 * nodes, np.uint32)
    tally = np.zeros(8, np.uint64)
    tally[LEVEL_BASE] = orders
    return Book(
        words,
        words.view(np.uint64),
        index,
        price_tree.make_price_tree(tree_nodes),
        pool.make_pool(levels),
        tally,
    )


@kernel(inner=True)
def key_of(side, price):
    """Return the key of a price on a side: the lower, the better."""
    return price ^ (((side & _1) - _1) & _MASK32)


@kernel(inner=True)
def position_of(side, price):
    """Return where a price stands in the tree of its side: the lower, the better.

    A block of the tree is 64 units of position, and is to hold one level. From a dollar on prices tick by a penny, 100
    units of 0.0001, so that a position is the price itself; below, by one unit, which therefore takes a whole block.
    """
    spread = price << _6 if price < _DOLLAR else price + _DOLLAR * np.uint64(63)
    return spread ^ (((side & _1) - _1) & _MASK33)


@kernel(inner=True)
def word_at(node):
    """Return the index of a node's first word in `words`."""
    return node << _NODE_SHIFT


@kernel(inner=True)
def volume_at(level):
    """Return the index of a level's volume in `pairs`."""
    return (level << _1) + _2


@kernel(inner=True)
def level_of(book, node):
    """Return the level of an order's node, 0 if the node is no live order."""
    return np.uint64(book.words[word_at(node) + LEVEL])


@kernel(inner=True)
def make_room(book, messages):
    """Give empty nodes of the tree back if need be; return whether `messages` more messages find room."""
    if room(book, messages):
        return True
    price_tree.sweep(book.tree)
    return room(book, messages)


@kernel(inner=True)
def room(book, messages):
    """Return whether `messages` more messages find room whatever they are."""
    return (
        order_indices.has_room(book.index, messages)
        and pool.left(book.levels) > messages
        and pool.left(book.tree.nodes) > messages * np.uint64(price_tree.FLOORS)
    )


@kernel(inner=True)
def reduce_order(book, node, level, shares):
    """Take shares off an order that keeps some: it keeps its place."""
    at = word_at(node) + SHARES
    book.words[at] = np.uint64(book.words[at]) - shares
    book.pairs[volume_at(level)] -= shares


@kernel(inner=True)
def remove_order(book, entry, node, level, reference):
    """Take an order out of its queue, its level and the index."""
    words = book.words
    at = word_at(node)
    before, after = np.uint64(words[at + BEFORE]), np.uint64(words[at + AFTER])
    words[word_at(before) + AFTER] = after
    words[word_at(after) + BEFORE] = before
    book.pairs[volume_at(level)] -= np.uint64(words[at + SHARES])
    words[at + LEVEL] = np.uint32(0)
    order_indices.release(book.index, entry, reference)
    book.tally[ORDERS] -= _1
    if before == after and before == level:
        _remove_level(book, level)


@kernel(inner=True)
def _remove_level(book, level):
    """Take an empty level out of the tree, and find the next best price if it was the best."""
    words, tree = book.words, book.tree
    at = word_at(level)
    side = np.uint64(words[at + SIDE])
    place = np.uint64(words[at + PLACE])
    chain = np.uint64(words[at + CHAIN])
    record = side_at(side)
    first = np.uint64(tree.children[place])
    if first == level:
        tree.children[place] = chain
        if chain == _0:
            price_tree.unmark(tree, place)
        if tree.sides[record + BEST_LEVEL] == level:
            best = price_tree.first_from(tree, place >> np.uint64(6))
            tree.sides[record + BEST_LEVEL] = best
            tree.sides[record + BEST_KEY] = np.uint64(words[word_at(best) + KEY]) if best != _0 else NO_KEY
            book.tally[BEST_CHANGES] += _1
    else:
        while np.uint64(words[word_at(first) + CHAIN]) != level:
            first = np.uint64(words[word_at(first) + CHAIN])
        words[word_at(first) + CHAIN] = chain
    pool.give(book.levels, (level - book.tally[LEVEL_BASE]) >> _1)
    book.tally[LEVELS] -= _1


@kernel(inner=True)
def add_order(book, entry, reference, side, shares, price):
    """Put a new order at the end of its queue; return whether its price is a new best one.

    The caller has seen to it that the reference, whose entry in the index is `entry`, is not live and that there is
    `room`.
    """
    words, tree = book.words, book.tree
    key = key_of(side, price)
    improved = False
    position = position_of(side, price)
    leaf = price_tree.find_leaf(tree, side, position)
    if leaf == _0:
        leaf = price_tree.descend(tree, side, position)
    place = price_tree.place_in(leaf, position)
    level = np.uint64(tree.children[place])
    if level == _0 or np.uint64(words[word_at(level) + KEY]) != key:
        level = _level(book, side, key, place)
        record = side_at(side)
        if key < tree.sides[record + BEST_KEY]:
            tree.sides[record + BEST_KEY] = key
            tree.sides[record + BEST_LEVEL] = level
            book.tally[BEST_CHANGES] += _1
            improved = True
    node = order_indices.claim(book.index, entry, reference)
    at, ring = word_at(node), word_at(level)
    prefetch_write(words, at + _16)  # references come in sequence: the next orders' nodes
    last = np.uint64(words[ring + LAST])
    words[at + BEFORE] = last
    words[at + AFTER] = level
    words[at + SHARES] = shares
    words[at + LEVEL] = level
    words[word_at(last) + AFTER] = node
    words[ring + LAST] = node
    book.pairs[volume_at(level)] += shares
    book.tally[ORDERS] += _1
    return improved


@kernel(inner=True)
def _level(book, side, key, place):
    """Return the level of `key` in the block at `place`, made if need be."""
    words, tree = book.words, book.tree
    previous = _0
    following = np.uint64(tree.children[place])
    while following != _0 and np.uint64(words[word_at(following) + KEY]) < key:
        previous = following
        following = np.uint64(words[word_at(following) + CHAIN])
    if following != _0 and np.uint64(words[word_at(following) + KEY]) == key:
        return following
    level = (pool.take(book.levels) << _1) + book.tally[LEVEL_BASE]
    at = word_at(level)
    words[at + LAST] = level
    words[at + FIRST] = level
    words[at + KEY] = key
    words[at + SIDE] = side
    book.pairs[volume_at(level)] = _0
    words[at + CHAIN] = following
    words[at + PLACE] = place
    if previous != _0:
        words[word_at(previous) + CHAIN] = level
    else:
        if following == _0:
            price_tree.mark(tree, place)
        tree.children[place] = level
    book.tally[LEVELS] += _1
    return level


@kernel(inner=True)
def crossed(book, side):
    """Return whether the bid of this side's instrument stands at or above its ask."""
    record = side_at(side & ~_1)
    sides = book.tree.sides
    bid, ask = sides[record + BEST_LEVEL], sides[record + np.uint64(price_tree.SIDE_WORDS) + BEST_LEVEL]
    if bid == _0 or ask == _0:
        return False
    bid_price = sides[record + BEST_KEY] ^ _MASK32
    return bid_price >= sides[record + np.uint64(price_tree.SIDE_WORDS) + BEST_KEY]
