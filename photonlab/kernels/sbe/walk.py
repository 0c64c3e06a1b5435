"""Where the blocks of a message lie: repeating groups, nested ones too, and variable data, found by a kernel.

One kernel for all schemas: a message's structure is a small program in arrays. It checks all that a message says of
its own sizes against the buffer, so that fields may then be read without checks (`fields.get_or` where a block may be
that of an older version).
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from photonlab.kernels.sbe import fields
from photonlab.kernels.sbe.schema import DEEPEST, Group, Tables
from photonlab.kernels.sbe.schema_file import SbeError
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array

PART, AT, LENGTH, PARENT = (np.uint64(n) for n in range(4))
"""Columns of the index: the number of the group (0 is the message) or data, its block's offset and length, and the row
of the entry that it stands in."""

HEADER_SIZE, BLOCK, TEMPLATE, SCHEMA, VERSION, IS_TEMPLATE, IS_SCHEMA = (np.uint64(n) for n in range(7))
SHORT, OTHER_SCHEMA, OTHER_TEMPLATE, FULL = 1, 2, 3, 4
"""What can be wrong."""

_0, _1, _2, _3, _4, _5 = (np.uint64(n) for n in range(6))
_IS_DATA, _NODE, _SINCE = _0, _1, _2
_FIRST, _END, _SIZE, _CODE_LENGTH, _CODE_COUNT = (np.uint64(n) for n in range(5))
_DATA_SIZE, _CODE_DATA = _3, _4
_ENTRY = ~_0  # in place of a step: the next entry begins


class Plan(NamedTuple):
    """A message's structure.

    Attributes
    ----------
    facts : uint64[7]
        Of the header.
    nodes : uint64[groups, 5]
        First and last step of each group, size of its dimensions, codes of the length of its block and the count.
    steps : uint64[n, 5]
        What follows a block: whether it is data, its number, its first version, size and code of its length.
    stack : uint64[33, 5]
        Of the walk: node, entries to come, step, length of the block, row.
    """

    facts: np.ndarray
    nodes: np.ndarray
    steps: np.ndarray
    stack: np.ndarray


def make_plan(tables: Tables, name) -> Plan:
    """Make the tables for a message.

    Parameters
    ----------
    tables : Tables
    name : str or int
    """
    message, header = tables.message(name), {one.name: one for one in tables.header.members}
    every = list(parts(message).values())
    numbers = {id(part): number for number, part in enumerate(every)}
    nodes, steps = np.zeros((len(every), 5), np.uint64), []
    for group in [part for part in every if isinstance(part, Group)]:
        first = len(steps)
        for inner in group.groups:
            steps.append((0, numbers[id(inner)], inner.since, 0, 0))
        for data in group.data:
            steps.append((1, numbers[id(data)], data.since, data.length.offset + data.length.size, data.length.code))
        sizes = (0, 0, 0)
        if group.dimension is not None:
            members = {one.name: one.code for one in group.dimension.members if one.size}
            sizes = group.dimension.size, members["blockLength"], members["numInGroup"]
        nodes[numbers[id(group)]] = (first, len(steps), *sizes)
    codes = [header[name].code for name in ("blockLength", "templateId", "schemaId", "version")]
    facts = np.array([tables.header.size, *codes, message.id, tables.id], np.uint64)
    return Plan(facts, nodes, np.array(steps, np.uint64).reshape(-1, 5), np.zeros((DEEPEST + 2, 5), np.uint64))


def parts(message: Group) -> dict:
    """Return a message's groups and data by path, in the order of their numbers; the message itself has path ""."""
    found = {"": message}

    def visit(group, path):
        for inner in group.groups:
            found[path + inner.name] = inner
            visit(inner, f"{path}{inner.name}.")
        for data in group.data:
            found[path + data.name] = data

    visit(message, "")
    return found


@kernel
def find(plan, data, begin, end, index):
    """Find all blocks of the message at `begin`.

    Parameters
    ----------
    plan : Plan
    data : uint8[n]
    begin, end : uint64
        The buffer may not be read beyond `end`.
    index : uint64[rows, 4]
        Filled from its first row on.

    Returns
    -------
    rows : uint64
    at : uint64
        Offset behind the message; of what is wrong, if something is.
    fault : uint64
        0, SHORT, OTHER_SCHEMA, OTHER_TEMPLATE or FULL.
    """
    facts, nodes, steps, stack = plan.facts, plan.nodes, plan.steps, plan.stack
    rows, deep, at = _0, _0, begin + facts[HEADER_SIZE]
    if begin > end or end - begin < facts[HEADER_SIZE]:
        return rows, begin, uint64(SHORT)
    if fields.get(data, begin, facts[SCHEMA]) != facts[IS_SCHEMA]:
        return rows, begin, uint64(OTHER_SCHEMA)
    if fields.get(data, begin, facts[TEMPLATE]) != facts[IS_TEMPLATE]:
        return rows, begin, uint64(OTHER_TEMPLATE)
    version = fields.get(data, begin, facts[VERSION])
    _push(stack, _0, _0, _1, fields.get(data, begin, facts[BLOCK]), _0)
    while True:
        node, step = stack[deep, _0], stack[deep, _2]
        if step == _ENTRY:
            if stack[deep, _1] == _0:
                if deep == _0:
                    return rows, at, _0
                deep -= _1
                continue
            length = stack[deep, _3]
            if length > end - at:
                return rows, at, uint64(SHORT)
            if rows == uint64(index.shape[0]):
                return rows, at, uint64(FULL)
            parent = stack[deep - _1, _4] if deep != _0 else _0
            _note(index, rows, node, at, length, parent)
            stack[deep, _1] -= _1
            stack[deep, _2], stack[deep, _4] = nodes[node, _FIRST], rows
            rows += _1
            at += length
            continue
        if step == nodes[node, _END]:
            stack[deep, _2] = _ENTRY
            continue
        stack[deep, _2] = step + _1
        if steps[step, _SINCE] > version:
            continue
        if steps[step, _IS_DATA] != _0:
            size = steps[step, _DATA_SIZE]
            if size > end - at:
                return rows, at, uint64(SHORT)
            length = fields.get(data, at, steps[step, _CODE_DATA])
            at += size
            if length > end - at:
                return rows, at, uint64(SHORT)
            if rows == uint64(index.shape[0]):
                return rows, at, uint64(FULL)
            _note(index, rows, steps[step, _NODE], at, length, stack[deep, _4])
            rows += _1
            at += length
            continue
        inner = steps[step, _NODE]
        size = nodes[inner, _SIZE]
        if size > end - at:
            return rows, at, uint64(SHORT)
        length = fields.get(data, at, nodes[inner, _CODE_LENGTH])
        count = fields.get(data, at, nodes[inner, _CODE_COUNT])
        deep += _1
        _push(stack, deep, inner, count, length, _0)
        at += size


@kernel(inner=True)
def _push(stack, deep, node, count, length, row):
    """Begin a group."""
    stack[deep, _0], stack[deep, _1], stack[deep, _2] = node, count, _ENTRY
    stack[deep, _3], stack[deep, _4] = length, row


@kernel(inner=True)
def _note(index, row, part, at, length, parent):
    """Fill a row of the index."""
    index[row, PART], index[row, AT], index[row, LENGTH], index[row, PARENT] = part, at, length, parent


@kernel
def column(data, index, rows, part, code, null, out):
    """Gather one field of all entries of a group.

    Parameters
    ----------
    data : uint8[n]
    index : uint64[m, 4]
        Of `find`.
    rows : uint64
    part : uint64
        The group's number.
    code : uint64
        Of the field.
    null : int64
        Given for entries that are too short to have it.
    out : int64[k]

    Returns
    -------
    uint64
        Entries gathered, k at most.
    """
    found = _0
    for row in range(rows):
        if index[row, PART] == part and found < uint64(out.size):
            out[found] = fields.get_or(data, index[row, AT], index[row, LENGTH], code, null)
            found += _1
    return found


def find_blocks(plan, data, offset, end, index) -> int:
    """Call `find` and say in words what is wrong.

    Raises
    ------
    SbeError
        With the offset.
    """
    data = as_bytes_array(data)
    if not 0 <= offset <= end <= data.size:
        raise SbeError(f"offsets {offset} to {end} of a buffer of {data.size} bytes")
    rows, at, fault = find(plan, data, np.uint64(offset), np.uint64(end), index)
    if fault:
        why = {
            SHORT: f"the message ends beyond the buffer's end at {end}",
            OTHER_SCHEMA: "a message of another schema",
            OTHER_TEMPLATE: f"a message of another template than {int(plan.facts[IS_TEMPLATE])}",
            FULL: f"more than the {len(index)} blocks that the index has room for",
        }
        raise SbeError(f"offset {at}: {why[int(fault)]}")
    return int(rows)
