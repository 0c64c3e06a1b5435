"""Eight words at once are eight words one after the other, at any place, beside each other's neighbours untouched."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.machine import lines
from photonlab.machine.jit import kernel
from photonlab.machine.memory import huge_array
from tests.oracle import lines as oracle

U = np.uint64
WORD = st.integers(0, 2**64 - 1)


@kernel
def copied(source, at, into, to):
    lines.copy_line(source, at, into, to)


@kernel
def counted(words, at, value):
    lines.count_line(words, at, value)


@kernel
def summed(words, at):
    return lines.sum_line(words, at)


@kernel
def streamed(source, at, into, to):
    lines.stream_line(source, at, into, to)


@kernel
def above(halves, at, value):
    return lines.count_above(halves, at, value)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(WORD, min_size=24, max_size=24), st.integers(0, 16), st.integers(0, 16), WORD)
def test_lines_are_eight_words(content, at, to, value):
    words, other = np.array(content, U), np.arange(24, dtype=U)
    twin, other_twin = words.copy(), other.copy()
    assert summed(words, U(at)) == oracle.sum_line(twin, at)
    copied(words, U(at), other, U(to))
    oracle.copy_line(twin, at, other_twin, to)
    copied(words, U(at), words, U(to))  # overlapping
    oracle.copy_line(twin, at, twin, to)
    counted(other, U(at), U(value))
    oracle.count_line(other_twin, at, value)
    assert (words == twin).all()
    assert (other == other_twin).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(WORD, min_size=24, max_size=24), st.integers(0, 16), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_lines_past_the_cache_and_of_halves(content, at, line, value):
    words, other = np.array(content, U), huge_array(24, U)
    twin = other.copy()
    streamed(words, U(at), other, U(8 * line))
    oracle.copy_line(words, at, twin, 8 * line)
    assert (other == twin).all()
    halves = words.view(np.uint32)
    for pivot in (value, int(halves[at]), 2**32 - 1):
        assert above(halves, U(at), U(pivot)) == oracle.count_above(halves, at, pivot)
