"""One message of each of the 23 types, written by hand from the specification, field by field as hexadecimal digits.

The widths stand in the digits: a field of 6 bytes has 12. Prices and quantities reach the ends of their ranges, so that
a sign bit or a narrow integer shows.
"""

HEADER = [
    ("stock_locate", "1F41", 8001),
    ("tracking_number", "0002", 2),
    ("timestamp", "1F457327A045", 34383145181253),
]

# type: [(field, bytes as hexadecimal digits, value), …] behind the header
GOLDEN = {
    "S": [("event_code", "51", b"Q")],
    "R": [
        ("stock", "5A565A5A54202020", b"ZVZZT   "),
        ("market_category", "47", b"G"),
        ("financial_status_indicator", "20", b" "),
        ("round_lot_size", "00000064", 100),
        ("round_lots_only", "4E", b"N"),
        ("issue_classification", "43", b"C"),
        ("issue_sub_type", "5A20", b"Z "),
        ("authenticity", "54", b"T"),
        ("short_sale_threshold_indicator", "4E", b"N"),
        ("ipo_flag", "20", b" "),
        ("luld_reference_price_tier", "31", b"1"),
        ("etp_flag", "59", b"Y"),
        ("etp_leverage_factor", "FFFFFFFF", 4294967295),
        ("inverse_indicator", "4E", b"N"),
    ],
    "H": [
        ("stock", "4141504C20202020", b"AAPL    "),
        ("trading_state", "54", b"T"),
        ("reserved", "20", b" "),
        ("reason_code", "4C554450", b"LUDP"),
    ],
    "Y": [("stock", "4141504C20202020", b"AAPL    "), ("reg_sho_action", "31", b"1")],
    "L": [
        ("mpid", "4E495445", b"NITE"),
        ("stock", "4141504C20202020", b"AAPL    "),
        ("primary_market_maker", "59", b"Y"),
        ("market_maker_mode", "4E", b"N"),
        ("market_participant_state", "41", b"A"),
    ],
    "V": [
        ("level_1", "0000003C8953AF40", 260_002_000_704),
        ("level_2", "8000000000000001", 9223372036854775809),
        ("level_3", "FFFFFFFFFFFFFFFF", 18446744073709551615),
    ],
    "W": [("breached_level", "33", b"3")],
    "K": [
        ("stock", "4E45574950202020", b"NEWIP   "),
        ("ipo_quotation_release_time", "0000A8C0", 43200),
        ("ipo_quotation_release_qualifier", "41", b"A"),
        ("ipo_price", "0002BF20", 180000),
    ],
    "J": [
        ("stock", "4141504C20202020", b"AAPL    "),
        ("auction_collar_reference_price", "000F4240", 1000000),
        ("upper_auction_collar_price", "00100590", 1050000),
        ("lower_auction_collar_price", "000E7EF0", 950000),
        ("auction_collar_extension", "00000002", 2),
    ],
    "h": [
        ("stock", "4141504C20202020", b"AAPL    "),
        ("market_code", "51", b"Q"),
        ("operational_halt_action", "48", b"H"),
    ],
    "A": [
        ("order_reference_number", "0020000000000001", 9007199254740993),
        ("buy_sell_indicator", "42", b"B"),
        ("shares", "000000C8", 200),
        ("stock", "4141504C20202020", b"AAPL    "),
        ("price", "77359400", 2_000_000_000),
    ],
    "F": [
        ("order_reference_number", "FFFFFFFFFFFFFFFF", 18446744073709551615),
        ("buy_sell_indicator", "53", b"S"),
        ("shares", "80000000", 2147483648),
        ("stock", "42524B2E41202020", b"BRK.A   "),
        ("price", "FFFFFFFF", 4294967295),
        ("attribution", "4E495445", b"NITE"),
    ],
    "E": [
        ("order_reference_number", "0000000100000000", 4294967296),
        ("executed_shares", "00000032", 50),
        ("match_number", "00000000000F4241", 1000001),
    ],
    "C": [
        ("order_reference_number", "8000000000000000", 9223372036854775808),
        ("executed_shares", "00000001", 1),
        ("match_number", "FFFFFFFFFFFFFFFE", 18446744073709551614),
        ("printable", "4E", b"N"),
        ("execution_price", "80000001", 2147483649),
    ],
    "X": [("order_reference_number", "0000000000000BB8", 3000), ("canceled_shares", "FFFFFFFF", 4294967295)],
    "D": [("order_reference_number", "7FFFFFFFFFFFFFFF", 9223372036854775807)],
    "U": [
        ("original_order_reference_number", "0000000000000001", 1),
        ("new_order_reference_number", "0000000000000102", 258),
        ("shares", "00010203", 66051),
        ("price", "04050607", 67438087),
    ],
    "P": [
        ("order_reference_number", "0000000000000000", 0),
        ("buy_sell_indicator", "42", b"B"),
        ("shares", "00000064", 100),
        ("stock", "4141504C20202020", b"AAPL    "),
        ("price", "0016E360", 1500000),
        ("match_number", "0000000000015F91", 90001),
    ],
    "Q": [
        ("cross_shares", "0000000100000001", 4294967297),
        ("stock", "4141504C20202020", b"AAPL    "),
        ("cross_price", "0016E360", 1500000),
        ("match_number", "0000000000015F92", 90002),
        ("cross_type", "4F", b"O"),
    ],
    "B": [("match_number", "0000000000015F91", 90001)],
    "I": [
        ("paired_shares", "0000000100000000", 4294967296),
        ("imbalance_shares", "FFFFFFFFFFFFFFFF", 18446744073709551615),
        ("imbalance_direction", "42", b"B"),
        ("stock", "4141504C20202020", b"AAPL    "),
        ("far_price", "0016E360", 1500000),
        ("near_price", "0016E361", 1500001),
        ("current_reference_price", "0016E362", 1500002),
        ("cross_type", "43", b"C"),
        ("price_variation_indicator", "4C", b"L"),
    ],
    "N": [("stock", "4141504C20202020", b"AAPL    "), ("interest_flag", "41", b"A")],
    "O": [
        ("stock", "4449524543542020", b"DIRECT  "),
        ("open_eligibility_status", "59", b"Y"),
        ("minimum_allowable_price", "00030D40", 200000),
        ("maximum_allowable_price", "00061A80", 400000),
        ("near_execution_price", "000493E0", 300000),
        ("near_execution_time", "00001F457327A045", 34383145181253),
        ("lower_price_range_collar", "00041EB0", 270000),
        ("upper_price_range_collar", "00050910", 330000),
    ],
}

# and the lengths once more, so that a width that is wrong in a row above still shows
LENGTHS = {
    "S": 12, "R": 39, "H": 25, "Y": 20, "L": 26, "V": 35, "W": 12, "K": 28, "J": 35, "h": 21, "A": 36, "F": 40,
    "E": 31, "C": 36, "X": 23, "D": 19, "U": 35, "P": 44, "Q": 40, "B": 19, "I": 50, "N": 20, "O": 48,
}  # fmt: skip


def golden_bytes(kind):
    """Give the golden message of a type."""
    digits = "".join(digits for _, digits, _ in HEADER + GOLDEN[kind])
    return kind.encode() + bytes.fromhex(digits)


def golden_fields(kind):
    """Give the values of the golden message of a type by field, without the type."""
    return {name: value for name, _, value in HEADER + GOLDEN[kind]}
