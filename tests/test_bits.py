"""Loads, stores and bit scans against Python's integers; traps 11, 12 and 16."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config

from photonlab import paths
from tests import drivers

WIDTHS = (1, 2, 4, 6, 8, 2, 4, 8)
ORDERS = ("big",) * 5 + ("little",) * 3
EDGES = sorted(
    {0, 1, *(2**k + step for k in (7, 8, 15, 16, 31, 32, 47, 48, 52, 53, 63) for step in (-1, 0, 1)), 2**64 - 1}
)
words = st.sampled_from(EDGES) | st.integers(0, 2**64 - 1)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 8))
def test_loads(data, offset):
    out = np.zeros(8, np.uint64)
    drivers.load_all(np.frombuffer(bytearray(data), np.uint8), np.uint64(offset), out)
    for value, width, order in zip(out, WIDTHS, ORDERS, strict=True):
        assert int(value) == int.from_bytes(data[offset : offset + width], order)


@given(words, st.integers(0, 8), st.sampled_from(range(8)))
def test_stores_write_their_bytes_and_no_other(value, offset, form):
    """Trap 16: canaries on both sides."""
    canaries = bytes(range(100, 116))
    array = np.frombuffer(bytearray(canaries), np.uint8)
    drivers.store(array, np.uint64(offset), np.uint64(value), form)
    width = WIDTHS[form]
    kept = (value % 2 ** (8 * width)).to_bytes(width, ORDERS[form])
    assert array.tobytes() == canaries[:offset] + kept + canaries[offset + width :]
    assert int(drivers.load_one(array, np.uint64(offset), form)) == value % 2 ** (8 * width)


@pytest.mark.parametrize("value", EDGES)
def test_trap_12_no_word_loses_a_bit(value):
    array = np.zeros(8, np.uint8)
    drivers.store(array, np.uint64(0), np.uint64(value), 4)
    loaded = drivers.load_one(array, np.uint64(0), 4)
    assert loaded == value and isinstance(loaded, int)


def test_trap_6_the_time_stamp_of_the_specification():
    array = np.frombuffer(bytearray.fromhex("1F457327A045"), np.uint8)
    assert drivers.load_one(array, np.uint64(0), 3) == 34383145181253


def check_scans(value):
    out = np.zeros(3, np.uint64)
    drivers.scan(np.uint64(value), out)
    trailing = (value & -value).bit_length() - 1 if value else 64
    assert out.tolist() == [trailing, 64 - value.bit_length(), value.bit_count()]


@pytest.mark.parametrize("bit", range(64))
def test_trap_11_scans_of_single_bits(bit):
    for value in (1 << bit, (1 << bit) - 1, 2**64 - (1 << bit), (1 << 63) | (1 << bit)):
        check_scans(value)


def test_trap_11_scans_of_zero_are_64_and_not_undefined():
    check_scans(0)


@given(words)
def test_scans(value):
    check_scans(value)


def test_scans_of_signed_words_see_their_bits():
    out = np.zeros(3, np.uint64)
    drivers.scan_signed(-1, out)
    assert out.tolist() == [0, 0, 64]


def test_prefetch_takes_any_index_and_changes_nothing():
    array = np.arange(8, dtype=np.uint64)
    address = array.__array_interface__["data"][0]
    for index in (0, 7, 8, 10**9, 2**62, 2**64 - 1):
        assert drivers.prefetch_at(array, np.uint64(index)) == address
    assert array.tolist() == list(range(8))


PLANTED = """
import numpy as np
from numba.core import config
from tests import drivers
assert config.BOUNDSCHECK == 1
array = np.zeros(16, np.uint8)
whole = np.zeros(64, np.uint8)
inside = whole[24:40]  # 16 bytes with room on both sides, where a wild access would do no harm
for form, width in enumerate((1, 2, 4, 6, 8, 2, 4, 8)):
    for target in (array, inside):
        drivers.load_one(target, np.uint64(16 - width), form)
        drivers.store(target, np.uint64(16 - width), np.uint64(2**64 - 1), form)
        for offset in (17 - width, 16, 10**6, 2**63, 2**64 - 1, 2**64 - width):
            for access in (
                lambda: drivers.load_one(target, np.uint64(offset), form),
                lambda: drivers.store(target, np.uint64(offset), np.uint64(0), form),
            ):
                try:
                    access()
                except IndexError:
                    continue
                raise SystemExit(f"width {width} at {offset}: not caught")
assert whole[:24].sum() == whole[40:].sum() == 0
try:
    drivers.element(array, np.uint64(16))
except IndexError:
    print("caught")
"""


def test_trap_16_bounds_checks_catch_planted_accesses():
    done = subprocess.run(
        [sys.executable, "-c", PLANTED],
        cwd=paths.ROOT,
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (done.returncode, done.stdout) == (0, "caught\n"), done.stderr


@pytest.mark.skipif(config.BOUNDSCHECK == 1, reason="bounds checks are on")
def test_trap_16_without_them_a_wild_load_is_just_made():
    """Why the suite runs a second time with them: nothing else would notice. The byte beyond is ours here."""
    whole = np.arange(64, dtype=np.uint8)
    assert drivers.load_one(whole[:16], np.uint64(16), 0) == 16
