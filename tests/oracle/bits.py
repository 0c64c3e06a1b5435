"""The functions of photonlab.machine.bits in plain Python, for kernels that are run without a compiler."""

import numpy as np


def _loader(width, order):
    def load(array, offset):
        data = array.view(np.uint8)[int(offset) : int(offset) + width].tobytes()
        if len(data) < width:
            raise IndexError(f"{width} bytes at {offset}: beyond the array")
        return np.uint64(int.from_bytes(data, order))

    return load


def _storer(width, order):
    def store(array, offset, value):
        data = (int(value) % 2 ** (8 * width)).to_bytes(width, order)
        array.view(np.uint8)[int(offset) : int(offset) + width] = np.frombuffer(data, np.uint8)

    return store


load_u8, store_u8 = _loader(1, "big"), _storer(1, "big")
load_be16, load_be32, load_be48, load_be64 = (_loader(width, "big") for width in (2, 4, 6, 8))
load_le16, load_le32, load_le64 = (_loader(width, "little") for width in (2, 4, 8))
store_be16, store_be32, store_be48, store_be64 = (_storer(width, "big") for width in (2, 4, 6, 8))
store_le16, store_le32, store_le64 = (_storer(width, "little") for width in (2, 4, 8))


def ctz64(value):
    value = int(value)
    return np.uint64((value & -value).bit_length() - 1 if value else 64)


def clz64(value):
    return np.uint64(64 - int(value).bit_length())


def popcount64(value):
    return np.uint64(int(value).bit_count())


def prefetch(array, index):
    pass


prefetch_write = prefetch


def address_of(array):
    return np.uint64(array.__array_interface__["data"][0])
