import gc
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.lab.measure import compilation, intervals, timing
from photonlab.lab.measure.comparison import Comparison, Timed
from photonlab.machine import clock as machine_clock
from photonlab.machine.jit import kernel
from photonlab.machine.system import Usage

seeded = settings(derandomize=True, deadline=None)


class Machine:
    """A pretended machine: its clock moves only when work is done, a call costs 40 ns, a read of the clock 25 ns."""

    CALL, READ = 40, 25

    def __init__(self):
        self.now, self.calls, self.waited, self.stolen = 1_000_000, [], 0, 0

    def clock(self):
        self.now += self.READ
        return self.now

    def usage(self):
        return Usage(self.waited, self.stolen, 0, 0, 0, 0)

    def work(self, name, ns, checksum=7):
        """A variant that takes `ns` (or, of an iterable, the next of them) beside the cost of its call."""
        times = itertools.repeat(ns) if isinstance(ns, int) else iter(ns)

        def call():
            self.calls.append(name)
            self.now += self.CALL + next(times)
            return checksum

        return call

    def compare(self, variants, **options):
        options = {"empty": self.work("empty", 0, 0), "clock": self.clock, "usage": self.usage} | options
        return timing.compare(variants, **options)


@pytest.fixture
def machine():
    return Machine()


# ------------------------------------------------------------------------------------------------ what is measured


def test_times_are_net_of_call_and_clock_and_given_an_operation(machine):
    found = machine.compare({"a": machine.work("a", 100_000)}, ops=1000)
    assert found["a"].reading().ns == pytest.approx(100)
    assert (found["a"].batch, found["a"].checksum) == (1, 7)


def test_short_work_is_batched_until_the_clock_supports_it(machine):
    found = machine.compare({"a": machine.work("a", 10)}, rounds=3)
    assert found["a"].batch >= timing.BATCH_NS / (machine.CALL + machine.READ + 10)
    assert found["a"].raw_ns.min() >= 0.6 * timing.BATCH_NS
    assert found["a"].reading().ns == pytest.approx(10, rel=1e-6)


def test_ratio_is_that_of_the_work(machine):
    found = machine.compare({"slow": machine.work("s", 300_000), "fast": machine.work("f", 100_000)})
    ratio = found.ratio("slow", "fast")
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((3, 3, 3))
    assert found.ratio("fast", "slow").value == pytest.approx(1 / 3)
    assert ratio.row == {"value": ratio.value, "low": ratio.low, "high": ratio.high, "unit": "×", "note": ""}


def test_operations_may_differ_between_variants(machine):
    found = machine.compare(
        {"a": machine.work("a", 200_000), "b": machine.work("b", 200_000)}, ops={"a": 100, "b": 200}
    )
    assert found.ratio("a", "b").value == pytest.approx(2)


def test_drift_of_the_machine_does_not_become_a_ratio(machine):
    """Both slow down by half over the rounds; taken one after the other, b would look a good deal slower than a."""
    slower = [round(100_000 * (1 + i / 40)) for i in range(200)]
    order = iter(slower)
    shared = lambda name: machine.work(name, order)  # noqa: E731
    found = machine.compare({"a": shared("a"), "b": shared("b")}, rounds=20)
    assert found.ratio("b", "a").value == pytest.approx(1, abs=0.001)
    assert found.ratio("b", "a").low < 1 < found.ratio("b", "a").high


def test_variants_are_taken_in_turn_and_the_turn_rotates(machine):
    machine.compare({name: machine.work(name, 10**6) for name in "abc"}, rounds=24)
    taken = "".join(name for name in machine.calls if name != "empty")[-72:]
    rounds = [taken[i : i + 3] for i in range(0, 72, 3)]
    assert {"".join(sorted(one)) for one in rounds} == {"abc"}
    for one, other in itertools.combinations("abc", 2):
        assert sum(order.index(one) < order.index(other) for order in rounds) == 12
    assert {order[0] for order in rounds} == {"a", "b", "c"}


def test_warm_up_is_not_measured(machine):
    cold = itertools.chain([50_000_000, 10_000_000, 10_000_000], itertools.repeat(100_000))
    found = machine.compare({"a": machine.work("a", cold)}, warmup=3, rounds=5)
    assert found["a"].reading().ns == pytest.approx(100_000)


def test_setup_runs_before_each_run_and_outside_of_it(machine):
    state = []

    def setup():
        machine.now += 10**9
        state.append(1)

    def work():
        machine.now += machine.CALL + 5_000
        return len(state) - len(state) + 3

    found = machine.compare({"a": work}, setup={"a": setup}, rounds=5)
    assert found["a"].reading().ns == pytest.approx(5_000) and found["a"].batch == 1
    assert len(state) >= 6


def test_frame_has_a_row_a_variant(machine):
    frame = machine.compare({"a": machine.work("a", 10**6), "b": machine.work("b", 2 * 10**6)}, ops=1000).frame()
    assert frame.loc["b", "ratio"] == pytest.approx(2) and frame.loc["a", "ns/op"] == pytest.approx(1000)
    assert list(frame["checksum"]) == ["7", "7"] and list(frame["text"]) == ["1 µs", "2 µs"]


def test_measure_is_a_comparison_of_one(machine):
    found = timing.measure(
        machine.work("a", 70_000),
        repeats=5,
        ops=7,
        empty=machine.work("e", 0, 0),
        clock=machine.clock,
        usage=machine.usage,
    )
    assert found.reading().ns == pytest.approx(10_000) and found.raw_ns.shape == (5,)


def test_garbage_collection_waits(machine):
    seen = []

    def work():
        seen.append(gc.isenabled())
        machine.now += 10**6
        return 1

    assert gc.isenabled()
    machine.compare({"a": work}, rounds=3)
    assert not any(seen[-3:]) and gc.isenabled()


# ------------------------------------------------------------------------------------------------ the floor (trap 20)


@pytest.mark.parametrize("extra", [-39, -10, -1, 0, 1, 3])
def test_empty_body_reads_at_or_below_the_floor(machine, extra):
    found = machine.compare({"a": machine.work("a", extra)})["a"]
    reading = found.reading()
    assert reading.ns is None and found.at_floor
    assert reading.text.startswith("at or below the floor (") and reading.text.endswith(" ns)")
    assert 40 <= reading.floor_ns <= 50
    assert reading.row["value"] is None and reading.row["note"] == reading.text
    assert found.per_op.min() > 0  # never 0, negative or 1.8e19


def test_empty_body_on_this_machine_never_reads_zero_or_less():
    found = timing.measure(lambda: 0, repeats=5, retakes=0)
    assert found.per_op.min() > 0 and found.per_op.max() < 1e6
    assert found.reading().ns is None or found.reading().ns > 0


def test_clock_that_steps_back_gives_no_centuries(machine):
    jumps = itertools.chain([50_000] * 3, [-80_000] * 50)
    found = machine.compare({"a": machine.work("a", jumps)}, rounds=5)["a"]
    assert found.raw_ns.min() == 0 and found.at_floor


def test_ratio_to_something_at_the_floor_is_refused(machine):
    found = machine.compare({"a": machine.work("a", 10**6), "nothing": machine.work("n", 0)})
    ratio = found.ratio("a", "nothing")
    assert ratio.value is None and ratio.why.startswith("nothing is at or below the floor")
    assert ratio.row["note"] == ratio.why
    assert np.isnan(found.frame().loc["nothing", "ratio"])


def test_subtraction_in_kernels_is_unsigned_and_clamped():
    big = np.uint64(2**64 - 5)
    assert machine_clock.elapsed(np.uint64(100), np.uint64(99)) == 0
    assert machine_clock.elapsed(big, np.uint64(2**64 - 1)) == 4
    assert machine_clock.elapsed(np.uint64(2**63 - 1), np.uint64(2**63 + 1)) == 2


# ------------------------------------------------------------------------------------------------ checksums


def test_variants_that_did_other_work_are_refused(machine):
    variants = {"a": machine.work("a", 10**6, 1), "b": machine.work("b", 10**6, 2)}
    with pytest.raises(timing.ChecksumError, match="checksums a 1, b 2"):
        machine.compare(variants)
    found = machine.compare(variants, same_checksums=False)
    assert [found[name].checksum for name in "ab"] == [1, 2]


def test_variant_that_does_other_work_each_time_is_refused(machine):
    numbers = itertools.count()
    with pytest.raises(timing.ChecksumError, match="one call returned 0, another"):
        machine.compare({"a": lambda: next(numbers)}, same_checksums=False)


def test_change_of_work_in_a_late_round_is_noticed(machine):
    numbers = itertools.chain([5] * 5, itertools.repeat(6))

    def work():
        machine.now += 10**6
        return next(numbers)

    with pytest.raises(timing.ChecksumError):
        machine.compare({"a": work}, rounds=10)


@pytest.mark.parametrize("checksum", [None, 1.0, True, "7", np.float64(7)])
def test_checksum_is_an_integer(machine, checksum):
    with pytest.raises(TypeError, match="integer checksum"):
        machine.compare({"a": machine.work("a", 100, checksum)})


def test_checksums_of_all_widths_are_equal_by_value(machine):
    variants = {"a": machine.work("a", 10**6, np.uint64(2**64 - 1)), "b": machine.work("b", 10**6, 2**64 - 1)}
    assert machine.compare(variants)["a"].checksum == 2**64 - 1


@pytest.mark.parametrize("options", [{"rounds": 2}, {"warmup": 0}, {"ops": 0}])
def test_senseless_options_are_refused(machine, options):
    with pytest.raises(ValueError, match=r"needs|operations"):
        machine.compare({"a": machine.work("a", 100)}, **options)


# ------------------------------------------------------------------------------------------------ compilation (trap 14)


def total_kernel():
    @kernel(cache=False)
    def total(array):
        sum_ = 0
        for i in range(array.size):
            sum_ += array[i]
        return sum_

    return total


def test_compile_time_is_a_column_of_its_own():
    total, array = total_kernel(), np.arange(10_000)
    found = timing.compare({"a": lambda: total(array)}, rounds=3, kernels=[total], retakes=0)
    assert found["a"].compile_s > 0.01
    again = timing.compare({"a": lambda: total(array)}, rounds=3, kernels=[total], retakes=0)
    assert again["a"].compile_s == 0
    assert found["a"].reading().ns < 1e9 * found["a"].compile_s  # nothing of it is in the time


@pytest.mark.parametrize("named", [True, False])
def test_read_only_array_inside_a_timed_run_discards_the_measurement(named):
    total, array = total_kernel(), np.arange(100_000)
    frozen = array.copy()
    frozen.setflags(write=False)
    arrays = itertools.chain([array] * 5, itertools.repeat(frozen))
    with pytest.raises(compilation.CompiledWhileTiming, match=r"discarded.*read-only"):
        timing.compare(
            {"a": lambda: total(next(arrays))}, rounds=9, kernels=[total] if named else [], batch_ns=1, retakes=0
        )


def test_named_kernel_is_in_the_message():
    total = total_kernel()
    before = compilation.signatures([total])
    total(np.arange(3))
    with pytest.raises(compilation.CompiledWhileTiming, match=r"total compiled"):
        compilation.refuse(compilation.Compiling(), before, compilation.signatures([total]), "a")


def test_loading_from_the_cache_counts_as_compiling(monkeypatch, tmp_path):
    from photonlab import paths

    monkeypatch.setattr(paths, "CACHE", tmp_path)

    def total(array):
        return array.size

    kernel(total)(np.arange(3))
    loaded = kernel(total)
    with compilation.Compiling() as seen:
        loaded(np.arange(3))
    assert seen.count == 1 and seen.seconds > 0
    with compilation.Compiling() as seen:
        loaded(np.arange(3))
    assert seen.count == 0


# ------------------------------------------------------------------------------------------------ contamination


def disturbed_work(machine, rounds, waited=0, stolen=0):
    """Work of 1 ms; in the calls numbered in `rounds` somebody else has the processor for another while."""
    numbers = itertools.count()

    def call():
        if next(numbers) in rounds:
            machine.waited += waited
            machine.stolen += stolen
            machine.now += waited + stolen
        machine.now += machine.CALL + 10**6
        return 1

    return call


@pytest.mark.parametrize("cause", [{"waited": 3 * 10**6}, {"stolen": 10**7}])
def test_disturbed_round_is_taken_again(machine, cause):
    found = machine.compare({"a": disturbed_work(machine, {4, 6}, **cause)}, rounds=5)
    assert (found.rounds, found.retaken, found.disturbed) == (5, 2, 0)
    assert found["a"].raw_ns.max() < 1.1 * 10**6
    assert found.note == "5 rounds in turn, 2 disturbed and taken again"


def test_retakes_are_limited_and_what_is_kept_is_reported(machine):
    found = machine.compare({"a": disturbed_work(machine, range(3, 99), waited=3 * 10**6)}, rounds=5, retakes=2)
    assert (found.rounds, found.retaken, found.disturbed) == (5, 2, 5)
    assert "5 disturbed and kept (waited 15.0 ms for a CPU)" in found.note


def test_waiting_below_the_tolerance_is_no_disturbance(machine):
    found = machine.compare({"a": disturbed_work(machine, range(99), waited=19_000)}, rounds=5)
    assert (found.retaken, found.disturbed) == (0, 0)


def test_system_that_tells_nothing_is_not_called_quiet_or_disturbed(machine):
    found = machine.compare({"a": machine.work("a", 10**6)}, usage=lambda: Usage(*[None] * 6))
    assert (found.retaken, found.disturbed, found.reason) == (0, 0, "")


# ------------------------------------------------------------------------------------------------ intervals


@seeded
@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0.1, 1e6)), min_size=1, max_size=12))
def test_interval_holds_its_median_and_inverts_exactly(pairs):
    over, under = (np.array(column) for column in zip(*pairs, strict=True))
    one, inverse = intervals.ratio(over, under), intervals.ratio(under, over)
    assert one.low <= one.value <= one.high
    assert (over / under).min() * (1 - 1e-12) <= one.low and one.high <= (over / under).max() * (1 + 1e-12)
    assert np.allclose([1 / inverse.value, 1 / inverse.high, 1 / inverse.low], one, rtol=1e-9)


def test_interval_is_seeded():
    samples = np.random.default_rng(1).lognormal(size=15)
    assert intervals.median(samples) == intervals.median(samples)
    assert intervals.median(samples) != intervals.median(samples, seed=2)


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(200):
        found = intervals.median(rng.lognormal(sigma=0.3, size=15))
        inside += found.low <= 1 <= found.high
    assert 180 <= inside <= 199


def test_pairs_are_resampled_and_not_their_members():
    """A machine that drifts by a factor of ten, and a ratio of exactly two in each round."""
    drift = np.geomspace(1, 10, 15)
    assert intervals.ratio(2 * drift, drift) == pytest.approx((2, 2, 2))


@pytest.mark.parametrize("samples", [[], [0.0], [-1.0], [1.0, float("nan")], [float("inf")]])
def test_median_of_what_is_not_positive_is_refused(samples):
    with pytest.raises(ValueError, match="positive"):
        intervals.median(samples)


def test_pairs_of_unequal_number_are_refused():
    with pytest.raises(ValueError, match="pairs"):
        intervals.ratio([1.0, 2.0], [1.0])


def test_the_process_counts_its_rounds():
    before = timing.TALLY.as_dict()
    found = timing.compare({"a": lambda: 1, "b": lambda: 1}, rounds=4, batch_ns=1_000)
    after = timing.TALLY.as_dict()
    assert {name: after[name] - before[name] for name in after} == {
        "comparisons": 1, "rounds": 4, "retaken": found.retaken, "disturbed": found.disturbed,
    }  # fmt: skip


def test_figures_of_disturbed_rounds_are_marked():
    """What was kept in spite says so in each row that is recorded of it."""
    spread = np.linspace(90.0, 110.0, 11)
    timed = {name: Timed(name, 1, 1, scale * spread, 0.0, 0.0, 1, 0.0) for name, scale in (("a", 1), ("b", 2))}
    kept = Comparison(timed, 11, 4, 3, "waited 1 ms for a CPU")
    for row in (kept.ratio("b", "a").row, kept.reading("a").row):
        assert row["value"] and row["note"] == "3 of 11 rounds disturbed and kept (waited 1 ms for a CPU)"
    quiet = Comparison(timed, 11, 4, 0, "")
    assert quiet.ratio("b", "a").row["note"] == quiet.reading("a").row["note"] == ""
