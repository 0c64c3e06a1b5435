"""ITCH 5.0 in plain Python: `struct` formats written by hand from the specification, nothing shared with the package.

The reference that the kernels' framing, decoding and encoding are held against. Slow and obvious on purpose.
"""

import struct
from dataclasses import dataclass, field

HEADER = "c H H 6s"
HEADER_NAMES = "message_type stock_locate tracking_number timestamp"

# type: (struct format after the header, names of those fields). 6s is the 48-bit timestamp; s fields are text.
BODY = {
    "S": ("c", "event_code"),
    "R": (
        "8s c c I c c 2s c c c c c I c",
        "stock market_category financial_status_indicator round_lot_size round_lots_only issue_classification "
        "issue_sub_type authenticity short_sale_threshold_indicator ipo_flag luld_reference_price_tier etp_flag "
        "etp_leverage_factor inverse_indicator",
    ),
    "H": ("8s c c 4s", "stock trading_state reserved reason_code"),
    "Y": ("8s c", "stock reg_sho_action"),
    "L": ("4s 8s c c c", "mpid stock primary_market_maker market_maker_mode market_participant_state"),
    "V": ("Q Q Q", "level_1 level_2 level_3"),
    "W": ("c", "breached_level"),
    "K": ("8s I c I", "stock ipo_quotation_release_time ipo_quotation_release_qualifier ipo_price"),
    "J": (
        "8s I I I I",
        "stock auction_collar_reference_price upper_auction_collar_price lower_auction_collar_price "
        "auction_collar_extension",
    ),
    "h": ("8s c c", "stock market_code operational_halt_action"),
    "A": ("Q c I 8s I", "order_reference_number buy_sell_indicator shares stock price"),
    "F": ("Q c I 8s I 4s", "order_reference_number buy_sell_indicator shares stock price attribution"),
    "E": ("Q I Q", "order_reference_number executed_shares match_number"),
    "C": ("Q I Q c I", "order_reference_number executed_shares match_number printable execution_price"),
    "X": ("Q I", "order_reference_number canceled_shares"),
    "D": ("Q", "order_reference_number"),
    "U": ("Q Q I I", "original_order_reference_number new_order_reference_number shares price"),
    "P": ("Q c I 8s I Q", "order_reference_number buy_sell_indicator shares stock price match_number"),
    "Q": ("Q 8s I Q c", "cross_shares stock cross_price match_number cross_type"),
    "B": ("Q", "match_number"),
    "I": (
        "Q Q c 8s I I I c c",
        "paired_shares imbalance_shares imbalance_direction stock far_price near_price current_reference_price "
        "cross_type price_variation_indicator",
    ),
    "N": ("8s c", "stock interest_flag"),
    "O": (
        "8s c I I I Q I I",
        "stock open_eligibility_status minimum_allowable_price maximum_allowable_price near_execution_price "
        "near_execution_time lower_price_range_collar upper_price_range_collar",
    ),
}
FORMAT = {kind: ">" + HEADER + " " + body for kind, (body, _) in BODY.items()}
NAMES = {kind: (HEADER_NAMES + " " + names).split() for kind, (_, names) in BODY.items()}
LENGTH = {kind: struct.calcsize(form) for kind, form in FORMAT.items()}


def decode(message):
    """Give the fields of one message (without its length prefix): integers, and text as `bytes` with its padding."""
    kind = chr(message[0])
    values = dict(zip(NAMES[kind], struct.unpack(FORMAT[kind], message), strict=True))
    values["timestamp"] = int.from_bytes(values["timestamp"], "big")
    return values


def encode(kind, **fields):
    """Give the bytes of one message; fields that are not named are zero, or spaces where they are text."""
    values = []
    for name, form in zip(NAMES[kind], FORMAT[kind][1:].split(), strict=True):
        if name == "message_type":
            values.append(kind.encode())
        elif name == "timestamp":
            values.append(int(fields.pop(name, 0)).to_bytes(6, "big"))
        elif form[-1] in "cs":
            width = struct.calcsize(form)
            values.append(fields.pop(name, b"").ljust(width))
        else:
            values.append(fields.pop(name, 0))
    assert not fields, f"unknown fields of {kind}: {sorted(fields)}"
    return struct.pack(FORMAT[kind], *values)


def frame(messages):
    """Give the messages in one piece, each behind its length in two bytes, as NASDAQ's files hold them."""
    return b"".join(struct.pack(">H", len(message)) + message for message in messages)


@dataclass
class Walk:
    """What a walk over length-prefixed bytes found.

    `messages` holds (offset of the prefix, bytes of the message). `ended` says that a zero prefix closed the session,
    `consumed` counts the bytes of all prefixes (the zero one too) and messages, `short_tail` the bytes of a message
    that is not whole. What stands behind a zero prefix is neither.
    """

    messages: list = field(default_factory=list)
    ended: bool = False
    consumed: int = 0
    short_tail: int = 0


def walk(data):
    """Split `data` by its length prefixes up to a zero prefix or to the last whole message."""
    found = Walk()
    while found.consumed + 2 <= len(data):
        (length,) = struct.unpack_from(">H", data, found.consumed)
        if length == 0:
            found.ended = True
            found.consumed += 2
            return found
        end = found.consumed + 2 + length
        if end > len(data):
            break
        found.messages.append((found.consumed, bytes(data[found.consumed + 2 : end])))
        found.consumed = end
    found.short_tail = len(data) - found.consumed
    return found
