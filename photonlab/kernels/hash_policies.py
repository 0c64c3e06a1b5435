"""Hash policies: from a 64-bit key to its home slot in a table of 2^n slots.

A policy is a type without content, so that a table's code is compiled for it: `home` is chosen while the table's
kernels compile. All are bijections of 64-bit words of which n bits are taken, so each can be defeated by keys made for
it (`photonlab.systems.experiments.reference_streams.adversarial` makes them).

Sources: Knuth, TAOCP 3, 6.4 (Fibonacci hashing); Steele, Lea and Flood 2014, in Vigna's form (splitmix64's output
function); Appleby's MurmurHash3 (the finaliser fmix64); claim R5's source (the cut-down one).
"""

from typing import NamedTuple

import numpy as np

from photonlab.machine.choice import by_type
from photonlab.machine.jit import kernel

_1, _2, _3, _27, _30, _31, _33, _62 = (np.uint64(i) for i in (1, 2, 3, 27, 30, 31, 33, 62))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
SPLITMIX_1, SPLITMIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
MURMUR_1, MURMUR_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


class Identity(NamedTuple):
    """The low bits of the key, as std::hash of the common C++ libraries has it."""


class Fibonacci(NamedTuple):
    """The high bits of the product with 2^64 / golden ratio: sequential keys fall evenly apart."""


class Splitmix64(NamedTuple):
    """The low bits of splitmix64's output function: 3 xor-shifts, 2 multiplications."""


class Murmur(NamedTuple):
    """The low bits of MurmurHash3's 64-bit finaliser: 3 xor-shifts, 2 multiplications."""


class ShortMurmur(NamedTuple):
    """The low bits of a cut-down Murmur finaliser: 2 xor-shifts, 1 multiplication."""


class Neighbours(NamedTuple):
    """Our own: Fibonacci hashing of groups of four references, which share a cache line of four entries.

    A reference is turned by 2 bits first, as `kernels/order_index.py` does, since NASDAQ's come in four interleaved
    streams, each of one residue modulo 4: a group is four successive references of one stream.
    """


@by_type
def home(policy, key, shift):
    """Return the home slot of a key in a table of 2^(64 - shift) slots, 4 at least."""


@kernel(inner=True)
def mix_splitmix64(key):
    """Return splitmix64's output function of a word."""
    key = (key ^ (key >> _30)) * SPLITMIX_1
    key = (key ^ (key >> _27)) * SPLITMIX_2
    return key ^ (key >> _31)


@kernel(inner=True)
def mix_murmur(key):
    """Return MurmurHash3's finaliser of a word."""
    key = (key ^ (key >> _33)) * MURMUR_1
    key = (key ^ (key >> _33)) * MURMUR_2
    return key ^ (key >> _33)


@kernel(inner=True)
def mix_short_murmur(key):
    """Return the cut-down finaliser of a word."""
    key = (key ^ (key >> _33)) * MURMUR_1
    return key ^ (key >> _33)


@kernel(inner=True)
def identity_home(policy, key, shift):
    """Return the low bits of a key."""
    return key & (_ALL >> shift)


@kernel(inner=True)
def fibonacci_home(policy, key, shift):
    """Return the high bits of a key's product with `GOLDEN`."""
    return (key * GOLDEN) >> shift


@kernel(inner=True)
def splitmix64_home(policy, key, shift):
    """Return the low bits of the mixed key."""
    return mix_splitmix64(key) & (_ALL >> shift)


@kernel(inner=True)
def murmur_home(policy, key, shift):
    """Return the low bits of the mixed key."""
    return mix_murmur(key) & (_ALL >> shift)


@kernel(inner=True)
def short_murmur_home(policy, key, shift):
    """Return the low bits of the mixed key."""
    return mix_short_murmur(key) & (_ALL >> shift)


@kernel(inner=True)
def neighbours_home(policy, key, shift):
    """Return the place of a key in its group, behind the hashed group number."""
    turned = (key >> _2) | (key << _62)
    return ((((turned >> _2) * GOLDEN) >> shift) & ~_3) | (turned & _3)


home.kernels |= {
    Identity: identity_home,
    Fibonacci: fibonacci_home,
    Splitmix64: splitmix64_home,
    Murmur: murmur_home,
    ShortMurmur: short_murmur_home,
    Neighbours: neighbours_home,
}

POLICIES = {
    "identity": Identity(),
    "Fibonacci": Fibonacci(),
    "splitmix64": Splitmix64(),
    "Murmur": Murmur(),
    "cut-down Murmur": ShortMurmur(),
    "neighbours": Neighbours(),
}
"""Name → policy, in the order of tables and charts."""
