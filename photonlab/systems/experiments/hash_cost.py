"""Chains of dependent instructions: what a mask, a modulo and a finaliser cost where the next step waits for them."""

import numpy as np

from photonlab.kernels.hash_policies import mix_murmur, mix_short_murmur, mix_splitmix64
from photonlab.machine.jit import kernel

_1 = np.uint64(1)
_STEP = np.uint64(0x9E3779B97F4A7C15)

BARE, MASK, MODULO, MURMUR, SHORT_MURMUR, SPLITMIX64 = (np.uint64(i) for i in range(6))
BARE_CYCLES = 2
"""What a step of the bare chain takes: an addition and an exclusive or, each waiting for the one before."""


@kernel
def chain(what, steps, number):
    """Take a word through so many steps, each of which needs what the one before gave.

    Parameters
    ----------
    what : uint64
        BARE: add a constant of 64 bits, and exclusive-or with the step's number. The others do so first, and then MASK:
        keep the bits of `number` - 1; MODULO: keep the remainder by `number`; or mix the word as a finaliser does.
    steps, number : uint64
        `number` is known at run time only, as the size of a table is.

    Returns
    -------
    uint64
        The last word.
    """
    word, i = number, np.uint64(0)
    if what == BARE:
        while i < steps:
            word = (word + _STEP) ^ i
            i += _1
    elif what == MASK:
        while i < steps:
            word = ((word + _STEP) ^ i) & (number - _1)
            i += _1
    elif what == MODULO:
        while i < steps:
            word = ((word + _STEP) ^ i) % number
            i += _1
    elif what == MURMUR:
        while i < steps:
            word = mix_murmur((word + _STEP) ^ i)
            i += _1
    elif what == SHORT_MURMUR:
        while i < steps:
            word = mix_short_murmur((word + _STEP) ^ i)
            i += _1
    else:
        while i < steps:
            word = mix_splitmix64((word + _STEP) ^ i)
            i += _1
    return word


@kernel
def independent(what, steps, number):
    """Do as `chain` with MASK or MODULO, but on words that do not wait for each other; return what they come to."""
    total, i = np.uint64(0), np.uint64(0)
    if what == MASK:
        while i < steps:
            total ^= ((i * _STEP) & (number - _1)) + i
            i += _1
    elif what == MODULO:
        while i < steps:
            total ^= ((i * _STEP) % number) + i
            i += _1
    else:
        while i < steps:
            total ^= (i * _STEP) + i
            i += _1
    return total
