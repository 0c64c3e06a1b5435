"""Hash policies against plain Python, and the streams of references: their kind, and enemies made for each policy."""

import numpy as np
import pytest

from photonlab.kernels import hash_policies
from photonlab.kernels.hash_policies import POLICIES
from photonlab.machine.choice import by_type
from photonlab.systems.experiments import reference_streams as streams
from tests import map_drivers
from tests.oracle import hashes

EDGES = [0, 1, 2, 3, *(2**k + step for k in (16, 32, 53, 63) for step in (-1, 0, 1)), 2**64 - 2, 2**64 - 1]
each_policy = pytest.mark.parametrize("name", POLICIES)


def homes_of(name, keys, bits):
    keys = np.array(keys, np.uint64)
    out = np.zeros(keys.size, np.uint64)
    map_drivers.homes(POLICIES[name], keys, np.uint64(64 - bits), out)
    return out.tolist()


@each_policy
@pytest.mark.parametrize("bits", [2, 10, 20, 40])
def test_homes_are_those_of_plain_python(name, bits):
    """Beyond 2^53 too, where a stray floating-point number would lose bits (trap 12)."""
    keys = EDGES + streams.random(2_000, bits).tolist()
    assert homes_of(name, keys, bits) == [hashes.HOMES[name](key, bits) for key in keys]


def test_known_values():
    """The first outputs of published generators and finalisers."""
    assert hashes.splitmix64(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF  # splitmix64 with seed 0, first output
    assert hashes.murmur(1) == 0xB456BCFC34C2CB2C  # fmix64(1)


@each_policy
@pytest.mark.parametrize("bits", [4, 11, 20])
def test_an_enemy_meets_in_one_slot(name, bits):
    keys = streams.adversarial(name, 300, bits)
    assert len(set(keys.tolist())) == 300
    found = homes_of(name, keys, bits)
    assert set(found) <= {found[0]}
    assert [hashes.HOMES[name](key, bits) for key in keys.tolist()] == found


def test_what_no_enemy_can_be_made_for():
    with pytest.raises(ValueError, match="cannot be made"):
        streams.adversarial("identity", 1 << 20, 50)
    with pytest.raises(ValueError, match="no hash policy"):
        streams.adversarial("sha", 10, 10)


def test_trap_18_high_bits_of_a_product_tell_multiples_apart():
    """Low bits of it would not: all multiples of 2^20 have a product that ends in 20 zeros."""
    keys = [n << 44 for n in range(1, 1 << 10)]
    assert len(set(homes_of("Fibonacci", keys, 14))) > 900
    assert len({key * hashes.GOLDEN % 2**14 for key in keys}) == 1


def test_neighbours_share_a_cache_line():
    """Four successive references of one stream: the four slots of one line, each its own."""
    for first in (1_000_000, 2**63 - 64, 2**53):
        base = first & ~15
        for stream in range(4):
            group = homes_of("neighbours", [base + stream + 4 * n for n in range(4)], 20)
            assert {slot // 4 for slot in group} == {group[0] // 4} and len(set(group)) == 4


@pytest.mark.parametrize("name", streams.STREAMS)
def test_streams_are_distinct_and_repeatable(name):
    make = streams.STREAMS[name]
    keys = make(10_000, 3)
    assert keys.dtype == np.uint64 and keys.size == len(set(keys.tolist())) == 10_000
    assert np.array_equal(keys, make(10_000, 3))


def test_the_stream_of_the_feed():
    keys = streams.as_on_the_feed(40_000, 2).astype(np.int64)
    for residue in range(4):
        mine = keys[keys % 4 == residue]
        steps = np.diff(mine)
        assert 9_000 < mine.size < 11_000 and set(steps.tolist()) == {4, 8, 12, 16}
        assert 0.88 < (steps == 4).mean() < 0.92
    assert (np.diff(keys) < 0).any(), "they interleave"


def test_queries_hit_as_often_as_asked():
    keys = streams.random(1_000, 1)
    for hits in (0.0, 0.9, 1.0):
        asked = streams.queries(keys, 5_000, hits, 4)
        assert asked.size == 5_000 and np.isin(asked, keys).sum() == 5_000 * hits


def test_a_choice_that_was_not_registered():
    @by_type
    def nothing(first):
        """Nothing."""

    with pytest.raises(KeyError):
        nothing(hash_policies.Identity())
    assert nothing.__doc__ == "Nothing."
    assert hash_policies.home.kernels[hash_policies.Identity] is hash_policies.identity_home
