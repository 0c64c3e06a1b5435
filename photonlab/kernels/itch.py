"""The messages of NASDAQ TotalView-ITCH 5.0 as data, once: decoders, encoder, documentation and tests derive from it.

Source: "NASDAQ TotalView-ITCH 5.0" specification, section 1 (message formats). All integers are unsigned and
big-endian, text is ASCII, left-justified and padded with spaces, prices are integers with implied decimals.
"""

from typing import NamedTuple

import numpy as np

# section, type and name of a message; below it its fields in order, as name:kind. The header is every message's.
_HEADER = "message_type:char stock_locate:uint16 tracking_number:uint16 timestamp:timestamp"
_TABLE = """
1.1     S  System Event
    event_code:char
1.2.1   R  Stock Directory
    stock:alpha8 market_category:char financial_status_indicator:char round_lot_size:uint32 round_lots_only:char
    issue_classification:char issue_sub_type:alpha2 authenticity:char short_sale_threshold_indicator:char ipo_flag:char
    luld_reference_price_tier:char etp_flag:char etp_leverage_factor:uint32 inverse_indicator:char
1.2.2   H  Stock Trading Action
    stock:alpha8 trading_state:char reserved:char reason_code:alpha4
1.2.3   Y  Reg SHO Short Sale Price Test Restricted Indicator
    stock:alpha8 reg_sho_action:char
1.2.4   L  Market Participant Position
    mpid:alpha4 stock:alpha8 primary_market_maker:char market_maker_mode:char market_participant_state:char
1.2.5.1 V  MWCB Decline Level
    level_1:price8 level_2:price8 level_3:price8
1.2.5.2 W  MWCB Status
    breached_level:char
1.2.6   K  IPO Quoting Period Update
    stock:alpha8 ipo_quotation_release_time:uint32 ipo_quotation_release_qualifier:char ipo_price:price4
1.2.7   J  LULD Auction Collar
    stock:alpha8 auction_collar_reference_price:price4 upper_auction_collar_price:price4
    lower_auction_collar_price:price4 auction_collar_extension:uint32
1.2.8   h  Operational Halt
    stock:alpha8 market_code:char operational_halt_action:char
1.3.1   A  Add Order - No MPID Attribution
    order_reference_number:uint64 buy_sell_indicator:char shares:uint32 stock:alpha8 price:price4
1.3.2   F  Add Order with MPID Attribution
    order_reference_number:uint64 buy_sell_indicator:char shares:uint32 stock:alpha8 price:price4 attribution:alpha4
1.4.1   E  Order Executed
    order_reference_number:uint64 executed_shares:uint32 match_number:uint64
1.4.2   C  Order Executed With Price
    order_reference_number:uint64 executed_shares:uint32 match_number:uint64 printable:char execution_price:price4
1.4.3   X  Order Cancel
    order_reference_number:uint64 canceled_shares:uint32
1.4.4   D  Order Delete
    order_reference_number:uint64
1.4.5   U  Order Replace
    original_order_reference_number:uint64 new_order_reference_number:uint64 shares:uint32 price:price4
1.5.1   P  Trade (Non-Cross)
    order_reference_number:uint64 buy_sell_indicator:char shares:uint32 stock:alpha8 price:price4 match_number:uint64
1.5.2   Q  Cross Trade
    cross_shares:uint64 stock:alpha8 cross_price:price4 match_number:uint64 cross_type:char
1.5.3   B  Broken Trade
    match_number:uint64
1.6     I  Net Order Imbalance Indicator (NOII)
    paired_shares:uint64 imbalance_shares:uint64 imbalance_direction:char stock:alpha8 far_price:price4
    near_price:price4 current_reference_price:price4 cross_type:char price_variation_indicator:char
1.7     N  Retail Price Improvement Indicator (RPII)
    stock:alpha8 interest_flag:char
1.8     O  Direct Listing with Capital Raise Price Discovery
    stock:alpha8 open_eligibility_status:char minimum_allowable_price:price4 maximum_allowable_price:price4
    near_execution_price:price4 near_execution_time:uint64 lower_price_range_collar:price4
    upper_price_range_collar:price4
"""

_WIDTH = {"char": 1, "uint16": 2, "uint32": 4, "uint64": 8, "price4": 4, "price8": 8, "timestamp": 6}

ORDER_TYPES = "AFECXDU"
"""The types that change an order book."""

ADDING_TYPES = "AFU"
"""The types that bring a new order; `U` takes an old one away too."""

REFERENCING_TYPES = "ECXDU"
"""The types that name an order which must be known already. `P` carries a reference of no meaning for the book."""

DECIMALS = {"price4": 4, "price8": 8}
"""Implied decimals of a price by its kind."""


class Field(NamedTuple):
    """A field of a message: its place in bytes from the type byte, and what its bytes mean."""

    name: str
    offset: int
    width: int
    kind: str  # char, alpha, uint16, uint32, uint64, price4, price8 or timestamp (uint48)

    @property
    def is_text(self) -> bool:
        """Whether the bytes are characters."""
        return self.kind in ("char", "alpha")

    @property
    def dtype(self) -> str:
        """NumPy type of the decoded value: bytes for text, else the unsigned integer that holds it."""
        return f"S{self.width}" if self.is_text else f"u{1 << (self.width - 1).bit_length()}"


class Message(NamedTuple):
    """A message type: its character, its name and section in the specification, its fields in order."""

    type: str
    name: str
    section: str
    fields: tuple[Field, ...]

    @property
    def length(self) -> int:
        """Bytes of the message, without its length prefix."""
        return self.fields[-1].offset + self.fields[-1].width

    @property
    def dtype(self) -> np.dtype:
        """Structured type of the decoded message: native integers, text as bytes, no padding."""
        return np.dtype([(field.name, field.dtype) for field in self.fields])

    @property
    def references(self) -> tuple[str, ...]:
        """Names of the fields that carry an order reference."""
        return tuple(field.name for field in self.fields if field.name.endswith("order_reference_number"))

    def field(self, name: str) -> Field:
        """Return a field by name; `KeyError` if the message has none of it."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.type} ({self.name}) has no field {name!r}")


def _parse(table: str) -> tuple[Message, ...]:
    """Read the table above; offsets follow from the widths, as the messages have no gaps."""
    found: list[tuple[list[str], list[str]]] = []
    for line in table.strip("\n").splitlines():
        if line[0] == " ":
            found[-1][1].extend(line.split())
        else:
            found.append((line.split(maxsplit=2), _HEADER.split()))
    messages = []
    for (section, type_, name), descriptions in found:
        fields, offset = [], 0
        for description in descriptions:
            field_name, kind = description.split(":")
            width = _WIDTH.get(kind) or int(kind.removeprefix("alpha"))
            fields.append(Field(field_name, offset, width, kind if kind in _WIDTH else "alpha"))
            offset += width
        messages.append(Message(type_, name, section, tuple(fields)))
    return tuple(messages)


MESSAGES: tuple[Message, ...] = _parse(_TABLE)
"""All 23 types in the order of the specification."""

BY_TYPE: dict[str, Message] = {message.type: message for message in MESSAGES}

TYPES = "".join(BY_TYPE)


def _by_type(values: dict[str, int], dtype) -> np.ndarray:
    """Return a table of 256 entries by type byte, zero where nothing is said."""
    table = np.zeros(256, dtype)
    for type_, value in values.items():
        table[ord(type_)] = value
    table.flags.writeable = False
    return table


LENGTH_BY_TYPE = _by_type({message.type: message.length for message in MESSAGES}, np.uint16)
"""uint16[256]: bytes of a message by its type byte; 0 is an unknown type."""

MAX_LENGTH = int(LENGTH_BY_TYPE.max())

HAS_REFERENCE = _by_type({message.type: 1 for message in MESSAGES if message.references}, np.uint8)
"""uint8[256]: 1 where bytes 11 to 18 are an order reference (of `U` the original one)."""

IS_ORDER = _by_type(dict.fromkeys(ORDER_TYPES, 1), np.uint8)
"""uint8[256]: 1 for the types that change an order book."""

SYMBOL_OFFSET_BY_TYPE = _by_type(
    {m.type: field.offset for m in MESSAGES for field in m.fields if field.name == "stock"}, np.uint8
)
"""uint8[256]: where the 8 characters of the symbol begin; 0 where a message has none."""


def offset_of(type_: str, field: str) -> int:
    """Return the offset of a field from the type byte; meant for the constants of kernels."""
    return BY_TYPE[type_].field(field).offset


def message_table():
    """Return a DataFrame with one row a message type, as the documentation shows it."""
    import pandas as pd  # here, because a replay from the command line needs no pandas, which takes long to load

    return pd.DataFrame(
        [
            {
                "type": message.type,
                "name": message.name,
                "section": message.section,
                "length": message.length,
                "fields": len(message.fields),
                "changes the book": message.type in ORDER_TYPES,
                "order references": ", ".join(message.references),
            }
            for message in MESSAGES
        ]
    )


def field_table(types: str = TYPES):
    """Return a DataFrame with one row a field of the types named, in their order in the message."""
    import pandas as pd

    return pd.DataFrame([{"type": t, **field._asdict()} for t in types for field in BY_TYPE[t].fields])


def clock_text(ns: int) -> str:
    """Write nanoseconds since midnight as a time of day: 34383145181253 is 09:33:03.145181253."""
    seconds, fraction = divmod(int(ns), 1_000_000_000)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{fraction:09d}"


def price_text(raw: int, kind: str = "price4") -> str:
    """Write a raw price with its implied decimals, exactly: 2_000_000_000 is 200000.0000."""
    decimals = DECIMALS[kind]
    whole, fraction = divmod(int(raw), 10**decimals)
    return f"{whole}.{fraction:0{decimals}d}"
