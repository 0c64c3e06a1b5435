"""The order map against a dict: growth, runs across the end, hard keys, near full; traps 10, 12, 16, 18."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.kernels import hashing
from tests import drivers
from tests.drivers import FIND, INSERT, REMOVE
from tests.oracle import map as oracle

EDGES = [0, 1, 2, *(2**k + step for k in (16, 32, 53, 63) for step in (-1, 0, 1)), 2**64 - 2, 2**64 - 1]
ACTIONS = {int(FIND): oracle.Map.find, int(INSERT): oracle.Map.insert, int(REMOVE): oracle.Map.remove}


def slots_of(table):
    return int(table.state[hashing.SIZE])


def check(table, twin):
    """Every survivor is found, nothing else is in the table, and the size is the number of survivors."""
    assert int(table.state[hashing.USED]) == len(twin.members)
    slots = slots_of(table)
    rows = table.entries[2 * slots : 4 * slots].reshape(-1, 2)
    there = {int(key): int(value) for key, value in rows[rows[:, 1] != 0]}
    assert there == twin.members
    keys = np.array(list(twin.members), np.uint64)
    found = np.zeros(len(keys), np.uint64)
    drivers.use_map(table, np.full(len(keys), FIND), keys, keys, found)
    assert found.tolist() == list(twin.members.values())


def run(table, twin, actions, keys, values):
    """Apply actions to map and twin; every answer must be equal."""
    results = np.zeros(len(keys), np.uint64)
    drivers.use_map(table, *(np.array(column, np.uint64) for column in (actions, keys, values)), results)
    expected = []
    for action, key, value in zip(actions, keys, values, strict=True):
        arguments = (key, value) if action == int(INSERT) else (key,)
        expected.append(ACTIONS[action](twin, *arguments))
    assert results.tolist() == expected
    check(table, twin)


def random_run(table, twin, keys, count, seed, weights=(2, 4, 3)):
    """Draw actions on a set of keys, in parts, so that it is checked on the way."""
    draw = np.random.default_rng(seed)
    share = np.array(weights) / sum(weights)
    for part in np.array_split(np.arange(count), 10):
        actions = draw.choice(3, len(part), p=share)
        chosen = draw.integers(0, len(keys), len(part))
        values = draw.integers(1, 2**64 - 1, len(part), dtype=np.uint64, endpoint=True)
        run(table, twin, actions.tolist(), [keys[n] for n in chosen], values.tolist())


def dense(count):
    return list(range(2**32 - count // 2, 2**32 + count // 2))


SETS = {
    "edges": lambda count: EDGES,
    "dense": dense,
    "multiples of 2^20": lambda count: [n << 20 for n in range(count)],
    "multiples of 2^44": lambda count: [n << 44 for n in range(count)],
    "high bits only": lambda count: [n << 50 for n in range(1 << 14)],
    "random": lambda count: np.random.default_rng(1).integers(0, 2**64 - 1, count, dtype=np.uint64).tolist(),
    "one home": lambda count: oracle.keys_at(5, 1 << 14, 300),
}


@pytest.mark.parametrize("name", SETS)
def test_random_use_against_a_dict(name):
    """60,000 actions on each kind of key, from a table of 2 slots that grows."""
    keys = SETS[name](40_000)
    table, twin = hashing.make_map(1 << 17, 2), oracle.Map(2**17 - 1)
    random_run(table, twin, keys, 60_000, len(name))
    assert slots_of(table) >= min(1 << 17, 2 * len(twin.members))


def test_trap_10_a_hundred_thousand_inserts_and_as_many_removals():
    table, twin = hashing.make_map(1 << 18, 1 << 4), oracle.Map(2**18 - 1)
    keys = [k * 3 + 2**53 - 1 for k in range(100_000)]
    run(table, twin, [int(INSERT)] * len(keys), keys, range(1, len(keys) + 1))
    assert slots_of(table) == 1 << 18
    run(table, twin, [int(REMOVE)] * 50_000, keys[::2], keys[::2])
    run(table, twin, [int(REMOVE)] * 100_000, keys, keys)
    assert not twin.members
    assert not table.entries[2 << 18 :].reshape(-1, 2)[:, 1].any(), "no mark of what is gone"


@pytest.mark.parametrize("slots", [2, 4, 8, 64, 1024])
def test_trap_10_a_table_that_cannot_grow_is_used_to_its_last_slot_but_one(slots):
    """One slot stays empty, so that every search ends; full is an answer, and known keys can still be set."""
    table, twin = hashing.make_map(slots, slots), oracle.Map(slots - 1)
    keys = [n * n + 7 for n in range(slots + 5)]
    run(table, twin, [int(INSERT)] * len(keys), keys, [9] * len(keys))
    assert len(twin.members) == slots - 1
    run(table, twin, [int(INSERT)] * len(keys), keys, [8] * len(keys))
    assert set(twin.members.values()) == {8}
    random_run(table, twin, keys, 3_000, slots, (1, 5, 4))
    run(table, twin, [int(REMOVE)] * len(keys), keys, keys)


@pytest.mark.parametrize("first", [0, 1, 12, 14, 15])
def test_trap_10_every_removal_from_a_run_across_the_end_of_the_table(first):
    """Runs of keys of neighbouring homes, at every place of a table of 16: each member removed, all others found."""
    slots = 16
    homes = [[(first + d) % slots for d in spread] for spread in ([0] * 6, [0, 1, 1, 2, 5, 5], [0, 0, 1, 3, 3, 3, 2])]
    for spread in homes:
        keys = [oracle.keys_at(slot, slots, n + 1)[n] for n, slot in enumerate(spread)]
        assert [oracle.home(key, slots) for key in keys] == spread
        for gone in range(len(keys)):
            for then in range(len(keys)):
                table, twin = hashing.make_map(slots, slots), oracle.Map(slots - 1)
                run(table, twin, [int(INSERT)] * len(keys), keys, range(1, len(keys) + 1))
                run(table, twin, [int(REMOVE)] * 2, [keys[gone], keys[then]], [0, 0])
                run(table, twin, [int(INSERT)] * 2, [keys[gone], keys[then]], [5, 6])


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(range(3)), st.integers(0, 11), st.integers(1, 9)), max_size=60))
def test_trap_10_wrap_around_by_hypothesis(moves):
    """12 keys whose homes are the last three and the first slots of a table of 16."""
    keys = [oracle.keys_at((13 + n % 4) % 16, 16, 12)[n] for n in range(12)]
    table, twin = hashing.make_map(16, 16), oracle.Map(15)
    run(table, twin, [m[0] for m in moves], [keys[m[1]] for m in moves], [m[2] for m in moves])


@pytest.mark.parametrize("key", EDGES)
def test_trap_12_hard_keys_and_values(key):
    table, twin = hashing.make_map(1 << 8, 1 << 3), oracle.Map(255)
    others = [(key + d) % 2**64 for d in (-1, 1, 2**53)]
    run(table, twin, [int(INSERT)] * 4, [key, *others], [2**64 - 1, 2**63, 2**53 + 1, 1])
    run(table, twin, [int(FIND), int(REMOVE), int(FIND), int(REMOVE)], [key] * 4, [0] * 4)


@pytest.mark.parametrize("shift", range(0, 61, 4))
def test_trap_18_multiples_of_powers_of_two_do_not_gather(shift):
    """Masking the low bits would put all of them into one slot; with the high bits a search looks at a few."""
    count = min(1 << (64 - shift), 4096)
    table, twin = hashing.make_map(1 << 14, 1 << 3), oracle.Map(2**14 - 1)
    keys = [(n << shift) % 2**64 for n in range(count)]
    run(table, twin, [int(INSERT)] * count, keys, [1] * count)
    probes = [int(hashing.probes(table, np.uint64(key))) for key in keys]
    assert sum(probes) <= 2 * count and max(probes) <= 24


def test_trap_18_probing_is_bounded():
    """The worst there is: all keys at home in the last slot, in a table that cannot grow. Every search still ends."""
    slots = 64
    keys = oracle.keys_at(slots - 1, slots, slots)
    table, twin = hashing.make_map(slots, slots), oracle.Map(slots - 1)
    run(table, twin, [int(INSERT)] * slots, keys, [7] * slots)
    assert [int(hashing.probes(table, np.uint64(key))) for key in keys] == [*range(1, slots), slots]
    assert hashing.find(table, np.uint64(keys[-1])) == 0


@pytest.mark.parametrize("load", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("initial", [2, 4, 256])
def test_any_load(load, initial):
    table, twin = hashing.make_map(1 << 12, initial, load), oracle.Map(2**12 - 1)
    random_run(table, twin, dense(2_000), 6_000, 3)


def test_a_small_load_of_a_small_table_does_not_double_at_every_insert():
    table = hashing.make_map(1 << 12, 2, 0.4)
    for key in range(4):
        hashing.insert(table, np.uint64(key), np.uint64(1))
    assert slots_of(table) == 8


def test_trap_16_growing_touches_only_its_own_rows():
    """The rows of a larger table are unused until it grows into them, and those before the first are never used."""
    table, twin = hashing.make_map(1 << 8, 1 << 4), oracle.Map(255)
    whole = np.full(table.entries.size + 64, 0xC0FFEE, np.uint64)
    whole[32:-32] = 0
    table = table._replace(entries=whole[32:-32])
    for count in (7, 8, 15, 60, 255):
        keys = list(range(count))
        run(table, twin, [int(INSERT)] * count, keys, [1] * count)
        slots = slots_of(table)
        assert not table.entries[4 * slots :].any() and not table.entries[: 2 << 4].any()
    assert (whole[:32] == 0xC0FFEE).all() and (whole[-32:] == 0xC0FFEE).all()


@pytest.mark.parametrize(
    ("largest", "initial", "load", "what"),
    [(8, 3, 0.5, "powers of two"), (12, 4, 0.5, "powers of two"), (4, 8, 0.5, "powers of two"), (8, 1, 0.5, "powers"),
     (8, 0, 0.5, "powers"), (8, 4, 0.0, "load"), (8, 4, 1.0, "load")],
)  # fmt: skip
def test_what_makes_no_map(largest, initial, load, what):
    with pytest.raises(ValueError, match=what):
        hashing.make_map(largest, initial, load)
