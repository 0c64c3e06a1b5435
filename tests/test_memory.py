"""Memory: zeroed, writable, committed on touch, and one type for every input; traps 14 and 16."""

import gc

import numpy as np
import pytest
from numba import typeof

from photonlab.machine import memory
from photonlab.machine.memory import as_bytes_array, huge_array


def resident():
    """Bytes of this process in physical memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("length", [0, 1, 7, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1])
@pytest.mark.parametrize("huge", [True, False])
@pytest.mark.parametrize("populate", [True, False])
def test_arrays_are_zero_writable_and_of_the_length_asked_for(length, huge, populate):
    array = huge_array(length, np.uint8, huge=huge, populate=populate)
    assert array.shape == (length,) and array.dtype == np.uint8 and array.flags.writeable
    assert not array.any()
    array[:] = 255
    assert array.all()
    assert typeof(array) == typeof(np.zeros(1, np.uint8)), "no other type to Numba"


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int64])
def test_dtypes(dtype):
    array = huge_array(1000, dtype)
    assert array.dtype == dtype and array.size == 1000
    assert array.ctypes.data % 4096 == 0


def test_address_space_is_not_memory():
    before = resident()
    array = huge_array(1 << 34, np.uint8)
    array[:: 1 << 31] = 1
    assert resident() - before < 64 << 20
    assert array[:: 1 << 31].tolist() == [1] * 8 and not array[1 :: 1 << 31].any()


def test_memory_goes_back_with_the_last_view():
    before = resident()
    for _ in range(20):
        view = huge_array(16 << 20, np.uint8, huge=False, populate=True)[5:]
        assert view[0] == 0
        del view
    gc.collect()
    assert resident() - before < 64 << 20


def test_what_cannot_be_reserved_is_a_memory_error():
    with pytest.raises(MemoryError, match=r"cannot reserve .* MiB"):
        huge_array(1 << 60, np.uint64)


def test_a_system_without_advice(monkeypatch):
    monkeypatch.delattr(memory.mmap, "MADV_HUGEPAGE", raising=False)
    assert not huge_array(4 << 20, np.uint8).any()


DATA = bytes(range(256)) * 2


def forms():
    array = np.frombuffer(DATA, np.uint8)
    strided = np.zeros(2 * len(DATA), np.uint8)
    strided[::2] = array
    two = array.copy().reshape(2, -1)
    frozen = array.copy()
    frozen.flags.writeable = False
    return {
        "bytes": DATA,
        "bytearray": bytearray(DATA),
        "memoryview": memoryview(DATA),
        "writable array": array.copy(),
        "read-only array": frozen,
        "strided array": strided[::2],
        "matrix": two,
        "transposed": np.asfortranarray(two),
        "signed": array.view(np.int8),
        "unaligned": np.frombuffer(b"x" + DATA, np.uint8)[1:],
        "huge": huge_array(len(DATA), np.uint8),
    }


@pytest.mark.parametrize("form", forms())
def test_trap_14_every_input_is_one_and_the_same_type(form):
    data = forms()[form]
    if form == "huge":
        data[:] = np.frombuffer(DATA, np.uint8)
    array = as_bytes_array(data)
    assert typeof(array) == typeof(np.zeros(1, np.uint8))
    assert array.tobytes() == DATA
    assert array.flags.c_contiguous


@pytest.mark.parametrize("empty", [b"", bytearray(), np.zeros(0, np.uint8), np.frombuffer(b"", np.uint8)])
def test_empty_input(empty):
    array = as_bytes_array(empty)
    assert array.size == 0 and typeof(array) == typeof(np.zeros(1, np.uint8))


def test_no_copy_is_made():
    data = bytearray(DATA)
    array = as_bytes_array(data)
    data[3] = 77
    assert array[3] == 77
    frozen = np.frombuffer(DATA, np.uint8)
    assert as_bytes_array(frozen).ctypes.data == frozen.ctypes.data


def test_the_owner_lives_as_long_as_the_array():
    array = as_bytes_array(bytes(bytearray(b"\x05" * 1_000_000)))
    gc.collect()
    junk = [bytes([n]) * 1_000_000 for n in range(1, 20)]
    assert (array == 5).all() and junk


@pytest.mark.parametrize("wrong", ["text", 5, None, [1, 2]])
def test_what_is_no_bytes(wrong):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        as_bytes_array(wrong)
