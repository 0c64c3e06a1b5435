"""The random numbers of the synthetic day: splitmix64, and integers drawn from it without a float or a library call.

Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014); the constants are those of its
published mixer. Kernels use the functions with a state array, plans use `Stream`, the same generator in Python
integers.
"""

import numpy as np

from photonlab.machine.jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MASK = (1 << 64) - 1


inner = kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Decorator of the generator's kernels that only kernels call: without entry points for others they compile in half the
time."""

inline = kernel(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@inline
def mix64(word):
    """Return a uint64 with its bits stirred: the finaliser of splitmix64, a bijection."""
    word = (word ^ (word >> _30)) * _MIX1
    word = (word ^ (word >> _27)) * _MIX2
    return word ^ (word >> _31)


@inline
def next64(words):
    """Return the next 64 random bits; word 0 of `words`, an array of int64, is the state and moves on."""
    state = np.uint64(words[0]) + _GOLDEN
    words[0] = np.int64(state)
    return mix64(state)


@inline
def below(words, n):
    """Return an int64 in [0, n), 1 <= n < 2^32; the bias of the multiplication is below 2^-32 n."""
    return np.int64(((next64(words) >> _32) * np.uint64(n)) >> _32)


@inner
def pick(words, table, column):
    """Return an index drawn from the alias table (see `alias_table`) in two columns of a table of int64."""
    bits = next64(words)
    index = np.int64(((bits >> _32) * np.uint64(table.shape[0])) >> _32)
    return index if np.int64(bits & _LOW) < table[index, column] else table[index, column + 1]


class Stream:
    """splitmix64 in Python integers, for what is planned before a kernel runs."""

    def __init__(self, seed: int):
        self.state = seed & _MASK

    def next64(self) -> int:
        """Return the next 64 random bits."""
        self.state = (self.state + int(_GOLDEN)) & _MASK
        word = self.state
        word = ((word ^ (word >> 30)) * int(_MIX1)) & _MASK
        word = ((word ^ (word >> 27)) * int(_MIX2)) & _MASK
        return word ^ (word >> 31)

    def below(self, n: int) -> int:
        """Return an integer in [0, n)."""
        return ((self.next64() >> 32) * n) >> 32

    def shuffled(self, n: int) -> list[int]:
        """Return the integers below n in random order (Fisher and Yates)."""
        order = list(range(n))
        for i in range(n - 1, 0, -1):
            j = self.below(i + 1)
            order[i], order[j] = order[j], order[i]
        return order


def alias_table(weights: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return Vose's alias table in integers.

    Parameters
    ----------
    weights : list of int
        Not negative, their sum positive.

    Returns
    -------
    chance : ndarray of int64, shape (n,)
        The share, times 2^32, of draws of an index that stay there.
    other : ndarray of int64, shape (n,)
        Where the other draws of the index go.
    """
    n, total = len(weights), sum(weights)
    scaled = [weight * n for weight in weights]
    chance, other = [1 << 32] * n, list(range(n))
    small = [i for i in range(n) if scaled[i] < total]
    large = [i for i in range(n) if scaled[i] >= total]
    while small and large:
        low, high = small.pop(), large[-1]
        chance[low], other[low] = (scaled[low] << 32) // total, high
        scaled[high] -= total - scaled[low]
        if scaled[high] < total:
            small.append(large.pop())
    return np.array(chance, np.int64), np.array(other, np.int64)
