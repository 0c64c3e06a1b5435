"""The message table against the cross-checked reference, the golden bytes and the oracle's formats."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from photonlab.kernels import itch
from tests.oracle import golden
from tests.oracle import itch as oracle

REAL = Path(os.environ.get("PHOTONLAB_REAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SPECIFICATION = REAL.parent / "design" / "itch50_spec.csv"
KINDS = {  # of the specification's table
    "uint16 BE": "uint16",
    "uint32 BE": "uint32",
    "uint64 BE": "uint64",
    "uint48 BE": "timestamp",
    "price(4) uint32 BE": "price4",
    "price(8) uint64 BE": "price8",
}


@pytest.mark.skipif(not SPECIFICATION.exists(), reason=f"{SPECIFICATION} is not there")
def test_table_equals_the_cross_checked_specification():
    with SPECIFICATION.open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = [
        (
            row["msg_type"],
            row["msg_name"],
            int(row["total_len"]),
            row["field"],
            int(row["offset"]),
            int(row["length"]),
            KINDS.get(row["type"]) or ("char" if row["length"] == "1" else "alpha"),
        )
        for row in rows
    ]
    ours = [
        (message.type, message.name, message.length, *field) for message in itch.MESSAGES for field in message.fields
    ]
    assert ours == expected


def test_all_23_types_with_their_lengths():
    assert len(itch.MESSAGES) == 23 == len(itch.BY_TYPE)
    assert {message.type: message.length for message in itch.MESSAGES} == golden.LENGTHS == oracle.LENGTH
    assert {kind: [field.name for field in itch.BY_TYPE[kind].fields] for kind in itch.TYPES} == oracle.NAMES
    assert itch.MAX_LENGTH == 50


def test_fields_leave_no_gap():
    for message in itch.MESSAGES:
        ends = [field.offset + field.width for field in message.fields]
        assert [field.offset for field in message.fields] == [0, *ends[:-1]]


def test_widths_that_others_got_wrong():
    """Trap 8."""
    assert itch.BY_TYPE["Q"].field("cross_shares").width == 8
    assert itch.BY_TYPE["F"].field("attribution").width == 4
    assert itch.BY_TYPE["O"].length == 48


def test_lookup_tables_by_type_byte():
    known = {ord(kind): length for kind, length in golden.LENGTHS.items()}
    assert [int(length) for length in itch.LENGTH_BY_TYPE] == [known.get(kind, 0) for kind in range(256)]
    assert {chr(kind) for kind in np.flatnonzero(itch.HAS_REFERENCE)} == set("AFECXDUP")
    assert {chr(kind) for kind in np.flatnonzero(itch.IS_ORDER)} == set("AFECXDU")
    assert {chr(kind) for kind in np.flatnonzero(itch.SYMBOL_OFFSET_BY_TYPE)} == set("RHYLKJhAFPQINO")
    with pytest.raises(ValueError, match="read-only"):
        itch.LENGTH_BY_TYPE[0] = 1


def test_order_references():
    assert itch.BY_TYPE["U"].references == ("original_order_reference_number", "new_order_reference_number")
    assert itch.BY_TYPE["P"].references == ("order_reference_number",)
    assert itch.BY_TYPE["B"].references == ()
    assert all(itch.BY_TYPE[kind].field(itch.BY_TYPE[kind].references[0]).offset == 11 for kind in "AFECXDUP")


def test_record_types_hold_unsigned_native_integers():
    dtype = itch.BY_TYPE["A"].dtype
    assert dtype["timestamp"] == np.uint64 and dtype["price"] == np.uint32 and dtype["stock"] == np.dtype("S8")
    assert itch.BY_TYPE["V"].dtype["level_3"] == np.uint64
    assert itch.BY_TYPE["S"].dtype.names[-1] == "event_code"


def test_offset_of_and_unknown_fields():
    assert itch.offset_of("U", "price") == 31
    with pytest.raises(KeyError, match=r"D .Order Delete. has no field 'price'"):
        itch.offset_of("D", "price")


def test_time_of_day():
    """Trap 6."""
    assert itch.clock_text(34383145181253) == "09:33:03.145181253"
    assert itch.clock_text(np.uint64(0)) == "00:00:00.000000000"
    assert itch.clock_text(86_399_999_999_999) == "23:59:59.999999999"


def test_prices_are_written_exactly():
    """Trap 5."""
    assert itch.price_text(2_000_000_000) == "200000.0000"
    assert itch.price_text(np.uint32(2**32 - 1)) == "429496.7295"
    assert itch.price_text(1) == "0.0001"
    assert itch.price_text(260_002_000_704, "price8") == "2600.02000704"
    assert itch.price_text(2**64 - 1, "price8") == "184467440737.09551615"


def test_documentation_tables():
    table = itch.message_table()
    assert list(table["type"]) == list(itch.TYPES) and list(table["length"]) == list(golden.LENGTHS.values())
    fields = itch.field_table()
    assert len(fields) == 191
    assert list(itch.field_table("D")["name"])[-1] == "order_reference_number"
    by_type = fields.groupby("type", sort=False)["width"].sum()
    assert by_type.to_dict() == golden.LENGTHS
