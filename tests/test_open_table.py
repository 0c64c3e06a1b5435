"""Open tables of every policy and way of deleting against a dict: hard keys, near full, wrapped, a million steps."""

import numpy as np
import pytest

from photonlab.kernels import open_table
from photonlab.kernels.hash_policies import POLICIES
from photonlab.kernels.open_table import DEAD, DELETIONS, SIZE, TOMBSTONE, USED
from photonlab.systems.experiments import map_work, maps
from photonlab.systems.experiments import reference_streams as streams
from tests import map_drivers
from tests.map_drivers import FIND, INSERT, REMOVE
from tests.oracle import hashes

EDGES = [0, 1, 2, *(2**k + step for k in (16, 32, 53, 63) for step in (-1, 0, 1)), 2**64 - 2, 2**64 - 1]
every_table = pytest.mark.parametrize("deletion", DELETIONS)
each_policy = pytest.mark.parametrize("policy", POLICIES)


def check(table, members):
    """Every survivor is found, nothing else is in the table, and the size is the number of survivors."""
    slots = int(table.state[SIZE])
    rows = table.entries[2 * slots : 4 * slots].reshape(-1, 2)
    dead = rows[:, 1] == TOMBSTONE
    alive = (rows[:, 1] != 0) & ~dead
    assert int(table.state[USED]) == len(members) == int(alive.sum())
    assert int(table.state[DEAD]) == int(dead.sum())
    assert (rows[:, 1] == 0).any(), "a search in vain would not end"
    keys = np.array(list(members), np.uint64)
    found = np.zeros(keys.size, np.uint64)
    map_drivers.use_open(table, np.full(keys.size, FIND), keys, keys, found)
    assert found.tolist() == list(members.values())


def run(table, members, actions, keys, values, most=2**62):
    """Apply actions to table and dict; every answer must be equal."""
    columns = [np.array(column, np.uint64) for column in (actions, keys, values)]
    results = np.zeros(columns[1].size, np.uint64)
    map_drivers.use_open(table, *columns, results)
    expected = []
    for action, key, value in zip(*(column.tolist() for column in columns), strict=True):
        if action == INSERT:
            fits = key in members or len(members) < most
            if fits:
                members[key] = value
            expected.append(int(fits))
        else:
            expected.append(members.pop(key, 0) if action == REMOVE else members.get(key, 0))
    assert results.tolist() == expected
    check(table, members)


@each_policy
@every_table
def test_hard_keys_growing_from_four_slots(policy, deletion):
    rng = np.random.default_rng(5)
    keys = np.array(EDGES + list(range(2**63 - 40, 2**63 + 40)) + [n << 50 for n in range(200)], np.uint64)
    table, members = open_table.make_table(policy, deletion, 1 << 10, 4), {}
    for _ in range(5):
        run(table, members, rng.integers(0, 3, 4_000), rng.choice(keys, 4_000), rng.integers(1, 2**63, 4_000))


@each_policy
@every_table
def test_a_million_inserts_and_deletes_at_half_load_and_near_full(policy, deletion):
    """Survivors of a million random steps in 2^16 slots, a tenth of them at load 0.95."""
    rng = np.random.default_rng(7)
    for load, steps in ((0.5, 900_000), (0.95, 100_000)):
        live = int(load * (1 << 16))
        keys = streams.random(2 * live, 3)
        table, members = open_table.make_table(policy, deletion, 1 << 16), {}
        fill = keys[:live]
        run(table, members, np.full(live, INSERT), fill, fill | np.uint64(1))
        # each step takes a member out and puts another key in: the load stays
        inside, outside = fill.copy(), keys[live:].copy()
        for part in range(2):
            count = steps // 4
            actions = np.tile([REMOVE, INSERT], count)
            moved = np.empty(2 * count, np.uint64)
            for n, (i, j) in enumerate(zip(rng.integers(0, live, count), rng.integers(0, live, count), strict=True)):
                moved[2 * n], moved[2 * n + 1] = inside[i], outside[j]
                inside[i], outside[j] = outside[j], inside[i]
            run(table, members, actions, moved, moved | np.uint64(1))
            assert len(members) == live, part


@each_policy
@every_table
def test_full_to_the_last_slot_but_one(policy, deletion):
    """Full is an answer, known keys can still be set, and every search ends."""
    rng = np.random.default_rng(1)
    for slots in (4, 8, 64):
        table, members = open_table.make_table(policy, deletion, slots), {}
        keys = np.array([n * n + 7 for n in range(slots + 6)], np.uint64)
        run(table, members, np.full(keys.size, INSERT), keys, keys + np.uint64(1), most=slots - 1)
        assert len(members) == slots - 1
        for _ in range(10):
            chosen = rng.choice(keys, 300)
            run(table, members, rng.choice([0, 1, 1, 2], 300), chosen, chosen + np.uint64(2), most=slots - 1)
        run(table, members, np.full(keys.size, REMOVE), keys, keys, most=slots - 1)
        assert members == {}


@each_policy
@every_table
def test_trap_10_runs_across_the_end_of_the_table(policy, deletion):
    """Keys whose homes are the last slots of 16: each pair taken out, all others found, both put in again."""
    homes = {}
    for key in range(20_000):
        homes.setdefault(hashes.HOMES[policy](key, 4), []).append(key)
    for spread in ([15] * 6, [14, 15, 15, 0, 0, 1], [13, 13, 15, 15, 15, 0, 2], [12, 13, 14, 15, 0, 12]):
        keys = [homes[slot].pop() for slot in spread]
        for gone in keys:
            for then in keys:
                table, members = open_table.make_table(policy, deletion, 16), {}
                run(table, members, [INSERT] * len(keys), keys, [key + 1 for key in keys])
                run(table, members, [REMOVE, REMOVE, INSERT, INSERT], [gone, then, then, gone], [9] * 4)


@each_policy
def test_a_key_that_comes_and_goes_leaves_no_room_lost(policy):
    """Tombstones are cleaned away before they fill the table: the same few members, replaced again and again."""
    table, members = open_table.make_table(policy, "tombstones", 64), {}
    keys = np.arange(40, dtype=np.uint64) * np.uint64(3)
    run(table, members, np.full(40, INSERT), keys, keys + np.uint64(1))
    for start in range(1000, 1600, 3):
        new = np.array([start], np.uint64)
        run(table, members, [REMOVE, INSERT], [next(iter(members)), new[0]], [5, 5])
        free = 64 - int(table.state[USED])
        assert free - int(table.state[DEAD]) >= max(free // 4, 1) - 1


@each_policy
@every_table
def test_bounded_searches(policy, deletion):
    """A search looks at as many slots as plain probing does, or at the bound and says that it did not end."""
    slots, keys = 256, streams.as_on_the_feed(180, 2)
    table = open_table.make_table(policy, deletion, slots)
    results = np.zeros(keys.size, np.uint64)
    map_drivers.use_open(table, np.full(keys.size, INSERT), keys, keys, results)
    full = hashes.occupied([hashes.HOMES[policy](key, 8) for key in keys.tolist()], slots)
    absent = streams.misses(keys, 500, 3)
    steps = [hashes.walk(hashes.HOMES[policy](key, 8), full, slots) for key in absent.tolist()]
    for bound in (1, 3, 10_000):
        values, looked = np.zeros(500, np.uint64), np.zeros(500, np.uint64)
        map_drivers.within(table, absent, np.uint64(bound), values, looked)
        assert not values.any()
        assert looked.tolist() == [step if step <= bound else bound + 1 for step in steps]
    values, looked = np.zeros(keys.size, np.uint64), np.zeros(keys.size, np.uint64)
    map_drivers.within(table, keys, np.uint64(10_000), values, looked)
    assert np.array_equal(values, keys)


@pytest.mark.parametrize("name", ["identity", "Fibonacci", "splitmix64"])
def test_claim_f4_longest_runs_come_out_as_published(name):
    one = maps.Flat(name)
    one.insert(streams.sequential(500_000))
    assert one.longest_run() == {"identity": 500_000, "Fibonacci": 2, "splitmix64": 35}[name]


@each_policy
def test_jobs_agree_with_plain_python(policy):
    keys, come = streams.as_on_the_feed(3_000, 1), streams.random(3_000, 2)
    asked = streams.queries(keys, 2_000, seed=3)
    for ahead in (0, 1, 48, 10_000):
        one = maps.Flat(policy, slots=1 << 13, ahead=ahead)
        assert one.insert(keys) == 3_000 and one.insert(keys[:5]) == 5
        there = set(keys.tolist())
        assert one.find(asked) == sum(key + 1 for key in asked.tolist() if key in there) % 2**64
        tally = one.probes(asked)
        assert int(tally[: map_work.PROBES_SHOWN].sum()) == int(tally[map_work.SEARCHES]) == 2_000
        assert int(tally[map_work.LOOKED]) == one.bounded(asked, 1 << 40)
        assert one.churn(keys, come) == sum(key + 1 for key in there)
        assert one.find(keys) == 0 and one.find(come) == sum(key + 1 for key in come.tolist()) % 2**64
        one.clear()
        assert one.find(come) == 0 and one.longest_run() == 0


def test_a_run_across_the_end_is_one_run():
    one = maps.Flat("identity", slots=64)
    one.insert(np.array([61, 62, 63, 64, 65, 10], np.uint64))
    assert one.longest_run() == 5
    one.insert(np.arange(1000, 1100, dtype=np.uint64))
    assert one.longest_run() == 63


@pytest.mark.parametrize(
    "wrong", [{"slots": 100}, {"slots": 16, "initial": 2}, {"slots": 8, "initial": 16}, {"load": 1}]
)
def test_sizes_that_make_no_table(wrong):
    with pytest.raises(ValueError, match=r"table sizes|load must"):
        open_table.make_table(**wrong)
