"""The orders that a stream of crossing ticks calls for, made from the ticks alone and not by the engine's code."""

import numpy as np

from photonlab.systems.tick_to_trade import messages, ticks

_FIELDS = {
    "order": (messages.ORDER_ID, "u"), "price": (messages.ORDER_PRICE, "i"), "time": (messages.ORDER_TIME, "u"),
    "security": (messages.ORDER_SECURITY, "u"), "quantity": (messages.ORDER_QUANTITY, "u"),
    "tick": (messages.ORDER_TICK, "u"), "venue": (messages.ORDER_VENUE, "u"), "side": (messages.ORDER_SIDE, "u"),
    "type": (messages.ORDER_TYPE, "u"), "force": (messages.ORDER_FORCE, "u"),
}  # fmt: skip
_ROOT = messages.FRAME + messages.HEADER

ORDER = np.dtype(
    {
        "names": ["length", "encoding", "block", "template", "schema", "version", *_FIELDS],
        "formats": ["<u2"] * 6 + [f"<{sign}{int(code) >> 32 & 0xFF}" for code, sign in _FIELDS.values()],
        "offsets": [0, 2, 4, 6, 8, 10, *(_ROOT + (int(code) & 0xFFFFFFFF) for code, _ in _FIELDS.values())],
        "itemsize": messages.ORDER_SIZE,
    }
)


def crossing(count):
    """Return ticks of one instrument each of which, but the first, calls for an order, and those orders.

    Returns
    -------
    ticks, orders : structured arrays, shape (count,)
        Of the first tick the order is zero.
    """
    given, quantity = ticks.crossing(count)
    orders = np.zeros(count, ORDER)
    orders["length"], orders["encoding"] = messages.ORDER_SIZE, messages.FRAMED
    orders["block"], orders["template"] = messages.TABLES.message("NewOrder").block, messages.ORDER_TEMPLATE
    orders["schema"], orders["version"] = messages.SCHEMA_ID, messages.TABLES.version
    orders["order"], orders["time"] = np.arange(count), given["time"]
    orders["price"][1:] = given["price"][:-1]  # the other venue's quote, which is the tick before
    orders["quantity"], orders["tick"], orders["venue"] = quantity, given["sequence"], 1 - given["venue"]
    orders["side"] = np.where(given["type"] == ord("0"), ord("1"), ord("2"))  # a bid that is high: buy over there
    orders["type"], orders["force"] = ord("2"), ord("3")
    orders[:1] = np.zeros(1, ORDER)
    return given, orders


def stream_of(rows):
    """Return rows as bytes, 64 longer than they are, so that whole words may be read at the end."""
    return np.concatenate([np.ascontiguousarray(rows).view(np.uint8).reshape(-1), np.zeros(64, np.uint8)])
