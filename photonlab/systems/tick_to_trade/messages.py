"""The messages of the tick-to-trade path: their schema, and the fields that kernels use, as constants.

Each message stands behind four bytes: its length with these four, and `FRAMED`, little-endian, as CME's order entry
has it. A stream is cut into messages by that length alone.
"""

from pathlib import Path

import numpy as np

from photonlab.kernels.sbe import schema

FILE = Path(__file__).with_name("schema.xml")
TABLES = schema.compile_file(FILE)

VENUES, DEPTH = 2, 10
FRAMED = 0xCAFE
FRAME, HEADER = 4, TABLES.header.size


def _code(path):
    return TABLES.find(path).code


LENGTH, ENCODING = (schema.Encoding("framing", "number", "uint16", offset, 2).code for offset in (0, 2))
BLOCK_LENGTH, TEMPLATE, SCHEMA, VERSION = (
    _code(f"header.{name}") for name in ("blockLength", "templateId", "schemaId", "version")
)

_TICK, _ORDER = TABLES.message("BookRefresh"), TABLES.message("NewOrder")
TICK_TEMPLATE, ORDER_TEMPLATE, SCHEMA_ID = np.uint64(_TICK.id), np.uint64(_ORDER.id), np.uint64(TABLES.id)

TIME, SEQUENCE, VENUE = (_code(f"BookRefresh.{name}") for name in ("transactTime", "sequence", "venue"))
ENTRY_LENGTH, ENTRIES = (_code(f"BookRefresh.entries.{name}") for name in ("blockLength", "numInGroup"))
DIMENSION = _TICK.groups[0].dimension.size
PRICE = _code("BookRefresh.entries.price.mantissa")
SIZE, SECURITY, ORDERS, LEVEL, ACTION, SIDE = (
    _code(f"BookRefresh.entries.{name}") for name in ("size", "security", "orders", "level", "action", "type")
)


def _end(*codes):
    """Return how long a block must be to hold fields."""
    return max((int(code) & 0xFFFFFFFF) + (int(code) >> 32 & 0xFF) for code in codes)


LEAST_ROOT = _end(TIME, SEQUENCE, VENUE)
LEAST_ENTRY = _end(PRICE, SIZE, SECURITY, ORDERS, LEVEL, ACTION, SIDE)

ORDER_ID, ORDER_TIME, ORDER_SECURITY, ORDER_QUANTITY, ORDER_TICK, ORDER_VENUE, ORDER_SIDE, ORDER_TYPE, ORDER_FORCE = (
    _code(f"NewOrder.{name}")
    for name in (
        "orderId", "transactTime", "security", "quantity", "tickSequence", "venue", "side", "orderType", "timeInForce",
    )
)  # fmt: skip
ORDER_PRICE = _code("NewOrder.price.mantissa")
ORDER_SIZE = FRAME + HEADER + _ORDER.block
TICK_SIZE = FRAME + HEADER + _TICK.block + DIMENSION + _TICK.groups[0].block
"""Bytes of an order, and of a tick with one entry, with their framing."""

ORDER_FRAMING = np.uint64(ORDER_SIZE | FRAMED << 16)
ORDER_HEADER = np.uint64(_ORDER.block | _ORDER.id << 16 | TABLES.id << 32 | TABLES.version << 48)
TICK_HEADER = np.uint64(_TICK.id | TABLES.id << 16)
"""First word of an order; its header; template and schema of a tick's header."""
BUY, SELL, LIMIT, IMMEDIATE = (np.uint64(ord(letter)) for letter in "1223")
"""FIX's letters of tags 54 (two), 40 and 59."""
