"""The functions of photonlab.machine.lines in plain Python, for kernels that are run without a compiler."""

import numpy as np


def _line(words, at):
    if not 0 <= int(at) <= len(words) - 8:
        raise IndexError(f"line at {at} of {len(words)} words")
    return slice(int(at), int(at) + 8)


def copy_line(source, at, into, to):
    into[_line(into, to)] = source[_line(source, at)].copy()


def count_line(words, at, value):
    words[_line(words, at)] = [np.uint64((int(value) + j) % 2**64) for j in range(8)]


def sum_line(words, at):
    return np.uint64(sum(int(word) for word in words[_line(words, at)]) % 2**64)


def stream_line(source, at, into, to):
    if into[int(to) :].__array_interface__["data"][0] % 64:
        raise ValueError(f"word {to} is not the first of a line")
    copy_line(source, at, into, to)


def count_above(halves, at, value):
    if not 0 <= int(at) <= len(halves) - 16:
        raise IndexError(f"line at {at} of {len(halves)} halves")
    return np.uint64(sum(int(half) > int(value) for half in halves[int(at) : int(at) + 16]))
