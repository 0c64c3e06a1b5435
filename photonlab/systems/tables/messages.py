"""Message tables: every field of every message of the chosen types, written to the columns of its type's table.

One loop serves all types: a type's plan says, for each field, where the 8 bytes end that hold it, its mask, and its
column. A value is stored with all 8 bytes; what is too much of it is overwritten by the next row's.
"""

from typing import NamedTuple

import numpy as np

from photonlab.kernels.itch import BY_TYPE, SYMBOL_OFFSET_BY_TYPE
from photonlab.machine.bits import load_be16, load_be48, load_be64, load_u8, store_be64, store_le64
from photonlab.machine.jit import kernel
from photonlab.systems.batch import MORE, SKIP, WHOLE, walk_on

_0, _1, _2, _3, _8, _16 = (np.uint64(i) for i in (0, 1, 2, 3, 8, 16))
_LOW, _R = np.uint64(255), np.uint64(ord("R"))
_FIELDS = max(len(message.fields) for message in BY_TYPE.values())
_STRIDE = np.uint64(2 + 2 * _FIELDS)
ROWS_FULL = np.uint64(4)


class Plan(NamedTuple):
    """What becomes of each type.

    Attributes
    ----------
    words : ndarray of uint64
        By type byte a row: table number + 1 (0: none), number of fields | length << 8 | tracking number's column << 16
        | type's column << 24; then for each field its description and its mask. A description is the offset of the 8
        bytes that end with it | shift << 8 | width << 16 | whether text << 24 | column << 32. Columns count from the
        table's first; 0 for one that is not there.
    """

    words: np.ndarray


def make_plan(tables) -> Plan:
    """Return the plan of message tables.

    Parameters
    ----------
    tables : dict of str to (int, Layout)
        By type: the table's number among all, and its layout.

    Returns
    -------
    Plan
    """
    words = np.zeros((256, int(_STRIDE)), np.uint64)
    for type_, (number, layout) in tables.items():
        message = BY_TYPE[type_]
        columns = {column.name: place for place, column in enumerate(layout.columns)}
        fields = [field for field in message.fields[4:] if field.name != "stock"]
        row = words[ord(type_)]
        row[0] = number + 1
        row[1] = len(fields) | message.length << 8 | columns["tracking_number"] << 16 | columns.get("type", 0) << 24
        for k, field in enumerate(fields):
            column, width = columns[field.name], layout.columns[columns[field.name]].width
            begin = field.offset + field.width - 8
            shift = 64 - 8 * field.width if field.is_text else 0
            row[2 + 2 * k] = begin | shift << 8 | width << 16 | field.is_text << 24 | column << 32
            row[3 + 2 * k] = (1 << (8 * field.width)) - 1
    return Plan(words.reshape(-1))


@kernel
def write_messages(plan, rows, names, numbers, counts, anomalies, data, begin, end, number):
    """Write the whole messages of a chunk, those of the types that the plan has.

    Parameters
    ----------
    plan : Plan
    rows : Rows
    names : ndarray of uint64, shape (65536,)
        Takes the symbol of each locate that a message names.
    numbers : ndarray of uint64
        Of messages that were sifted; empty otherwise.
    counts, anomalies : ndarray of uint64
        As in `message_loop.Feed`; framing's anomalies only.
    data : ndarray of uint8
    begin, end, number : uint64
        Where a prefix stands, where the chunk ends, and the number of the first message.

    Returns
    -------
    at, outcome, number : uint64
        Where it stopped and why, as the replay does, or `ROWS_FULL`; and the number of the next message.
    """
    at, memory, sifted = begin, rows.memory, numbers.size != 0
    while at + _2 <= end:
        if rows.full[_0] != _0:
            return at, ROWS_FULL, number
        message, class_, following, ended = walk_on(counts, anomalies, data, at, end)
        if ended != WHOLE:
            return following, ended, number
        if class_ != SKIP:
            kind = load_u8(data, message)
            locate = load_be16(data, message + _1)
            symbol = np.uint64(SYMBOL_OFFSET_BY_TYPE[kind])
            if symbol != _0 and (names[locate] == _0 or kind == _R):
                names[locate] = load_be64(data, message + symbol)
            place = kind * _STRIDE
            table = plan.words[place]
            if table != _0:
                table -= _1
                about = plan.words[place + _1]
                row, first = rows.counts[table], rows.first[table]
                sequence = number
                if sifted:
                    sequence = numbers[number]
                store_le64(memory, rows.at[first] + (row << _3), sequence)
                store_le64(memory, rows.at[first + _1] + (row << _3), load_be48(data, message + np.uint64(5)))
                store_le64(memory, rows.at[first + _2] + (row << _1), locate)
                tracking, type_ = (about >> _16) & _LOW, (about >> np.uint64(24)) & _LOW
                store_le64(memory, rows.at[first + tracking] + (row << _1), load_be16(data, message + _3))
                if type_ != _0:
                    store_le64(memory, rows.at[first + type_] + row, kind)
                field, last = place + _2, place + _2 + _2 * (about & _LOW)
                while field < last:
                    what, mask = plan.words[field], plan.words[field + _1]
                    value = load_be64(data, message + (what & _LOW)) & mask
                    to = rows.at[first + (what >> np.uint64(32))] + row * ((what >> _16) & _LOW)
                    if what & np.uint64(1 << 24) != _0:
                        store_be64(memory, to, value << ((what >> _8) & _LOW))
                    else:
                        store_le64(memory, to, value)
                    field += _2
                rows.counts[table] = row + _1
                if row + _1 >= rows.limits[table]:
                    rows.full[_0] = _1
        number += _1
        at = following
    return at, MORE, number
