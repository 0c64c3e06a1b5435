"""Kernels that let Python call what is only ever inlined: one thin wrapper each, for the tests of those rooms."""

import numpy as np

from photonlab.kernels import book, hashing, order_index, price_tree
from photonlab.machine import bits
from photonlab.machine.jit import kernel

_0, _1, _6 = np.uint64(0), np.uint64(1), np.uint64(6)

FIND, INSERT, REMOVE = (np.uint64(i) for i in range(3))


@kernel
def load_all(array, offset, out):
    """Write what each load finds at a byte offset, the widest last."""
    out[0] = bits.load_u8(array, offset)
    out[1] = bits.load_be16(array, offset)
    out[2] = bits.load_be32(array, offset)
    out[3] = bits.load_be48(array, offset)
    out[4] = bits.load_be64(array, offset)
    out[5] = bits.load_le16(array, offset)
    out[6] = bits.load_le32(array, offset)
    out[7] = bits.load_le64(array, offset)


@kernel
def store(array, offset, value, form):
    """Store with the function of that number in the order of `load_all`."""
    if form == 0:
        bits.store_u8(array, offset, value)
    elif form == 1:
        bits.store_be16(array, offset, value)
    elif form == 2:
        bits.store_be32(array, offset, value)
    elif form == 3:
        bits.store_be48(array, offset, value)
    elif form == 4:
        bits.store_be64(array, offset, value)
    elif form == 5:
        bits.store_le16(array, offset, value)
    elif form == 6:
        bits.store_le32(array, offset, value)
    else:
        bits.store_le64(array, offset, value)


@kernel
def load_one(array, offset, form):
    """Load with the function of that number in the order of `load_all`."""
    if form == 0:
        return bits.load_u8(array, offset)
    if form == 1:
        return bits.load_be16(array, offset)
    if form == 2:
        return bits.load_be32(array, offset)
    if form == 3:
        return bits.load_be48(array, offset)
    if form == 4:
        return bits.load_be64(array, offset)
    if form == 5:
        return bits.load_le16(array, offset)
    if form == 6:
        return bits.load_le32(array, offset)
    return bits.load_le64(array, offset)


@kernel
def scan(value, out):
    """Write the trailing zeros, leading zeros and set bits of a word."""
    out[0] = bits.ctz64(value)
    out[1] = bits.clz64(value)
    out[2] = bits.popcount64(value)


@kernel
def scan_signed(value, out):
    """Do as `scan` for an int64: its bits, not its value, count."""
    out[0] = bits.ctz64(value)
    out[1] = bits.clz64(value)
    out[2] = bits.popcount64(value)


@kernel
def prefetch_at(array, index):
    """Prefetch an element that may not exist."""
    bits.prefetch(array, index)
    bits.prefetch_write(array, index)
    return bits.address_of(array)


@kernel
def element(array, index):
    """Return an element by plain indexing."""
    return array[index]


@kernel
def use_map(table, actions, keys, values, results):
    """Apply FIND, INSERT and REMOVE in turn; write what each returns."""
    for i in range(len(keys)):
        if actions[i] == FIND:
            results[i] = hashing.find(table, keys[i])
        elif actions[i] == INSERT:
            results[i] = np.uint64(hashing.insert(table, keys[i], values[i]))
        else:
            results[i] = hashing.remove(table, keys[i])


@kernel
def toggle(index, live, references, nodes):
    """Claim each reference that is not live, release each that is; write its node, 0 if the index was full."""
    for i in range(len(references)):
        reference = references[i]
        entry = order_index.entry_of(index, reference)
        node = order_index.node_at(index, entry, reference)
        if live[node]:
            live[node] = False
            order_index.release(index, entry, reference)
        else:
            node = order_index.claim(index, entry, reference)
            if node != _0:
                live[node] = True
        nodes[i] = node


@kernel
def look_up(index, references, nodes, back):
    """Write the node of each reference, and the reference of that node."""
    for i in range(len(references)):
        nodes[i] = order_index.node_at(index, order_index.entry_of(index, references[i]), references[i])
        back[i] = order_index.reference_of(index, nodes[i])


@kernel
def position_of(side, price):
    """Return the position of a price in the tree of its side."""
    return book.position_of(side, price)


@kernel
def put_block(tree, side, key, handle):
    """Make the block of a key non-empty, as a book does; return its place, 0 if the tree is full."""
    leaf = price_tree.find_leaf(tree, side, key)
    if leaf == _0:
        leaf = price_tree.descend(tree, side, key)
        if leaf == _0:
            return _0
    place = price_tree.place_in(leaf, key)
    tree.children[place] = handle
    price_tree.mark(tree, place)
    return place


@kernel
def take_block(tree, place):
    """Make a block empty; if it was the best one, what is returned is what stands in the next."""
    tree.children[place] = np.uint32(0)
    price_tree.unmark(tree, place)
    return price_tree.first_from(tree, place >> _6)


@kernel
def is_crowded(tree):
    """Ask whether a sweep is due."""
    return price_tree.crowded(tree)


@kernel
def sweep_tree(tree):
    """Sweep."""
    price_tree.sweep(tree)
