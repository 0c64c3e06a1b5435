"""Streams of order references, from the kind that an exchange hands out to the kind that an enemy of a hash would.

All are arrays of distinct uint64, in the order of their arrival, and the same for the same seed.
"""

import numpy as np

from photonlab.kernels.hash_policies import GOLDEN, MURMUR_1, MURMUR_2, SPLITMIX_1, SPLITMIX_2

FIRST = 1_000_000
"""First reference of the sequential stream: with it the longest runs are those that claim F4 publishes."""

POWER = 12
"""The stream of multiples counts in steps of two to this power."""

_U = np.uint64


def sequential(count, seed=1, first=FIRST):
    """Return successive references."""
    return np.arange(first, first + count, dtype=np.uint64)


def as_on_the_feed(count, seed=1, first=FIRST):
    """Return nearly sequential references in four interleaved streams, each of one residue modulo 4.

    As on NASDAQ's feed of 2019: each stream goes up by 4 at a time, sometimes by more, and which stream comes next is
    up to chance, so that they drift apart.
    """
    rng = np.random.default_rng(seed)
    stream = rng.integers(0, 4, count)
    steps = np.where(rng.random(count) < 0.1, rng.integers(2, 5, count), 1)
    references = np.zeros(count, np.uint64)
    for one in range(4):
        mine = np.flatnonzero(stream == one)
        references[mine] = (first & ~3) + one + 4 * np.cumsum(steps[mine])
    return references


def multiples(count, seed=1, power=POWER):
    """Return successive multiples of a power of two."""
    return np.arange(1, count + 1, dtype=np.uint64) << _U(power)


def random(count, seed=1):
    """Return distinct random words of 64 bits."""
    rng = np.random.default_rng(seed)
    found = np.unique(rng.integers(1, 2**64 - 2, count + 16, dtype=np.uint64, endpoint=True))
    return rng.permutation(found)[:count]


STREAMS = {
    "sequential": sequential,
    "as on the feed": as_on_the_feed,
    f"multiples of 2^{POWER}": multiples,
    "random": random,
}
"""Name → function of count and seed."""


ENEMIES = ("identity", "Fibonacci", "splitmix64", "Murmur", "cut-down Murmur", "neighbours")
"""Policies that `adversarial` can undo."""


def adversarial(policy, count, bits):
    """Return references that all have one and the same home under a policy, in a table of 2^bits slots.

    Every policy here is a bijection of which some bits are taken: words that agree in these bits are carried back.

    Parameters
    ----------
    policy : str
        One of `ENEMIES`.
    count : int
        At most 2^(62 - bits).
    bits : int
        Home slot 1 of a table so large is hit by all, and of each smaller one too where the low bits decide.

    Returns
    -------
    ndarray of uint64, shape (count,)
    """
    if not 2 <= bits < 60 or count > 1 << (62 - bits):
        raise ValueError(f"{count} references with one home in 2^{bits} slots cannot be made")
    numbers = np.arange(count, dtype=np.uint64)
    low = (numbers << _U(bits)) | _U(1)  # words whose low bits are 1
    high = (_U(1) << _U(64 - bits)) | numbers  # words whose high bits are 1
    with np.errstate(over="ignore"):
        if policy == "identity":
            return low
        if policy == "Fibonacci":
            return high * _inverse(GOLDEN)
        if policy == "splitmix64":
            word = _unshift(low, 31) * _inverse(SPLITMIX_2)
            word = _unshift(word, 27) * _inverse(SPLITMIX_1)
            return _unshift(word, 30)
        if policy == "Murmur":
            word = _unshift(low, 33) * _inverse(MURMUR_2)
            word = _unshift(word, 33) * _inverse(MURMUR_1)
            return _unshift(word, 33)
        if policy == "cut-down Murmur":
            return _unshift(_unshift(low, 33) * _inverse(MURMUR_1), 33)
        if policy == "neighbours":
            return _neighbours(count, bits)
    raise ValueError(f"no hash policy {policy!r}")


def _neighbours(count, bits):
    """Return references whose groups have one hashed number and whose places in them are 0, so that their home is 4."""
    step = 1 << (64 - bits)
    inverse = int(_inverse(GOLDEN))
    found, low = [], 4 * step  # the high bits of the product shall be 4 to 7: the group's own slots
    while len(found) < count:  # a group number has 62 bits, so only a quarter of the words will do
        group = low * inverse % 2**64
        low += 1
        if group < 2**62:
            turned = group << 2
            found.append(((turned << 2) | (turned >> 62)) % 2**64)
    return np.array(found, np.uint64)


def _inverse(odd):
    return _U(pow(int(odd), -1, 2**64))


def _unshift(words, by):
    """Undo ``word ^ (word >> by)``."""
    out, shift = words.copy(), by
    while shift < 64:
        out ^= out >> _U(shift)
        shift *= 2
    return out


def misses(keys, count, seed=1):
    """Return random words of 64 bits that are none of `keys`: what claim F4's source must have searched for in vain.

    (Its average of probes under identity says so: it is the chance of one slot in two of meeting the block of orders,
    times half of that block.)
    """
    rng = np.random.default_rng(seed)
    found = np.zeros(0, np.uint64)
    while found.size < count:
        drawn = rng.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)
        found = np.concatenate([found, drawn[~np.isin(drawn, keys)]])
    return found[:count]


def queries(keys, count, hits=0.9, seed=1):
    """Return references to look for, in random order, of which a share is there.

    Parameters
    ----------
    keys : ndarray of uint64
        Those that are there.
    count : int
    hits : float
        The share, exact to one reference.
    seed : int

    Returns
    -------
    ndarray of uint64, shape (count,)
    """
    rng = np.random.default_rng(seed)
    there = round(hits * count)
    chosen = rng.permutation(keys)[:there] if there <= keys.size else rng.choice(keys, there)
    return rng.permutation(np.concatenate([chosen, misses(keys, count - there, seed + 1)]))
