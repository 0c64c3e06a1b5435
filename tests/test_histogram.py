import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.lab.measure import histogram, openloop, percentiles
from tests.oracle import percentile as oracle

PERCENTS = ["0", "0.001", "1", "50", "90", "95", "99", "99.9", "99.99", "99.999", "100"]
seeded = settings(derandomize=True, deadline=None)
SAMPLES = st.lists(st.integers(0, 40) | st.integers(0, 2**63 + 5), max_size=60)


def filled(samples, bound=30):
    made = histogram.empty(bound)
    histogram.add_all(made, np.array(samples, np.uint64))
    return made


# ------------------------------------------------------------------------------------------------ rank (trap 19)


def test_rank_of_p999_of_a_thousand_is_999_where_floats_say_1000():
    assert int(np.ceil(99.9 / 100 * 1000)) == 1000  # what this test is about
    assert percentiles.nearest_rank(percentiles.parts("99.9"), 1000) == 999
    assert percentiles.nearest_rank(percentiles.parts(99.9), 1000) == 999


@pytest.mark.parametrize("percent", ["7", "14", "28", "55", "56"])  # floats give one more: 0.07 * 100 > 7
def test_rank_of_whole_percents_of_a_hundred(percent):
    assert percentiles.nearest_rank(percentiles.parts(percent), 100) == int(percent)


@seeded
@given(st.sampled_from(PERCENTS), st.integers(0, 10**14))
def test_rank_equals_exact_fractions(percent, count):
    assert percentiles.nearest_rank(percentiles.parts(percent), count) == oracle.nearest_rank(percent, count)


@pytest.mark.parametrize(
    ("percent", "parts"), [(99.9, 99_900), ("99.9", 99_900), (50, 50_000), ("0.001", 1), (100, 100_000)]
)
def test_parts_are_exact(percent, parts):
    assert percentiles.parts(percent) == parts


@pytest.mark.parametrize("percent", [-1, 100.001, "99.9999", "1/3"])
def test_parts_refuse_what_they_cannot_hold(percent):
    with pytest.raises(ValueError, match="percentile"):
        percentiles.parts(percent)


@pytest.mark.parametrize(
    ("parts", "name"), [(99_900, "p99.9"), (50_000, "p50"), (99_999, "p99.999"), (100_000, "p100"), (99_090, "p99.09")]
)
def test_name_of_a_percentile(parts, name):
    assert percentiles.Percentile(parts, 0, 0, None).name == name


# ------------------------------------------------------------------------------------------------ values


@seeded
@given(SAMPLES, st.sampled_from(PERCENTS))
def test_samples_and_histogram_agree_with_the_oracle(samples, percent):
    bound = 30
    expected = oracle.percentile(samples, percent)
    assert percentiles.of_samples(np.array(samples, np.uint64), percent).value == expected
    found = histogram.percentile(filled(samples, bound), percent)
    assert found.rank == oracle.nearest_rank(percent, len(samples))
    if expected is None or expected <= bound or expected == max(samples) == found.value:
        assert (found.value, found.above) == (expected, None)
    else:
        assert (found.value, found.above) == (None, bound)


@seeded
@given(SAMPLES, st.integers(0, 35))
def test_histogram_keeps_what_the_oracle_keeps(samples, bound):
    made, expected = filled(samples, bound), oracle.totals(samples, bound)
    assert {i: int(n) for i, n in enumerate(made.buckets) if n} == expected["buckets"]
    summary = histogram.summary(made)
    assert (summary.count, summary.overflow, summary.least, summary.most) == tuple(
        expected[name] for name in ("count", "overflow", "least", "most")
    )
    assert int(made.totals[2]) == expected["sum"] % 2**64


@seeded
@given(SAMPLES, SAMPLES)
def test_merge_equals_one_histogram_of_both(one, other):
    into = filled(one)
    histogram.merge(into, filled(other))
    whole = filled(one + other)
    assert np.array_equal(into.buckets, whole.buckets) and np.array_equal(into.totals, whole.totals)


def test_merge_refuses_other_bounds():
    with pytest.raises(ValueError, match="differ"):
        histogram.merge(histogram.empty(3), histogram.empty(4))


def test_default_is_that_of_the_published_histogram():
    made = histogram.empty()
    assert made.buckets.size == 10_001
    for value in (0, 10_000, 10_001):
        histogram.add(made, np.uint64(value))
    assert (made.buckets[0], made.buckets[10_000], made.totals[0]) == (1, 1, 1)


def test_largest_values_are_counted_and_not_wrapped():
    made = filled([2**64 - 1, 2**63, 2**53 + 1], 10)
    summary = histogram.summary(made)
    assert (summary.least, summary.most, summary.overflow) == (2**53 + 1, 2**64 - 1, 3)
    assert histogram.summary(filled([2**64 - 1])).least == 2**64 - 1


def test_empty_is_explicit():
    summary = histogram.summary(histogram.empty())
    assert (summary.count, summary.mean, summary.least, summary.most) == (0, None, None, None)
    assert {one.value for one in summary.percentiles} == {None}
    assert summary.note == "no samples"
    assert {text for name, text in summary.cells().items() if name.startswith("p")} == {"–"}
    assert percentiles.of_samples([], 50).why == "no samples"


def test_one_sample_is_every_percentile():
    made = filled([7])
    assert {histogram.percentile(made, percent).value for percent in PERCENTS} == {7}
    assert {percentiles.of_samples([7], percent).value for percent in PERCENTS} == {7}


def test_clear_forgets():
    made = filled([3, 99])
    histogram.clear(made)
    assert all(np.array_equal(a, b) for a, b in zip(made, histogram.empty(30), strict=True))


# --------------------------------------------------------------------------------------------- what is not printed (M2)


def test_percentile_without_enough_samples_beyond_is_refused_and_says_why():
    assert histogram.percentile(filled([1] * 9_990 + [5] * 10), "99.9").text() == "1"
    refused = histogram.percentile(filled([1] * 9_990 + [5] * 9), "99.9")
    assert not refused.supported and refused.text() == "–"
    assert "9,999 samples leave 9 beyond it, 10 are needed" in refused.why
    assert refused.value == 1  # the definition is not bent, only the printing


def test_extremes_need_no_support():
    made = filled([1, 2])
    assert histogram.percentile(made, 100).text() == "2"
    assert histogram.percentile(made, 0).text() == "1"


def test_value_at_the_floor_is_refused():
    made = filled([18] * 1000)
    at = histogram.percentile(made, 50, floor=18, unit="ns")
    assert at.why == "at or below the clock's floor (18 ns)" and at.text(unit="ns") == "≤ 18 ns"
    assert histogram.percentile(made, 50, floor=17.9).supported
    cells = histogram.summary(filled([0] * 1000), floor=18).cells(0.5, "ns")
    assert {cells[name] for name in ("avg", "min", "p50", "max")} == {"≤ 9 ns"}  # trap 20: an empty body never reads 0


def test_overflow_is_a_bound_unless_it_is_the_maximum():
    made = filled([1] * 50 + [1000 + i for i in range(50)])
    assert histogram.percentile(made, 75).text(unit="ns") == "> 30 ns"
    assert histogram.percentile(made, 100).text(unit="ns") == "1,049 ns"
    assert histogram.summary(made).cells()["above bound"] == "50"


def test_percentiles_of_floats_are_refused():
    with pytest.raises(TypeError, match="integers"):
        percentiles.of_samples([1.5], 50)


# ------------------------------------------------------------------------------------------------ open loop (trap 21)


def stalled():
    """10,000 ticks due each 10 µs, served in 100 ns each, but for one stall of 50 ms; times in ns."""
    due = openloop.due_times(10_000, 10_000)
    service = np.full(due.size, 100, np.uint64)
    service[2_000] = 50_000_000
    taken, finished = np.zeros_like(due), np.zeros_like(due)
    openloop.serve(due, service, taken, finished)
    return due, service, taken, finished


def test_one_stall_makes_five_thousand_ticks_late():
    due, _, taken, finished = stalled()
    latency, service_time = np.zeros_like(due), np.zeros_like(due)
    openloop.since_due(due, finished, latency)
    openloop.since_due(taken, finished, service_time)
    assert 4_950 <= np.count_nonzero(latency > 10_000) <= 5_060
    assert np.count_nonzero(service_time > 10_000) == 1  # what coordinated omission would have reported
    assert percentiles.of_samples(latency, "75").value > 20_000_000
    assert percentiles.of_samples(service_time, "99.9").value == 100


def test_open_loop_equals_the_oracle():
    due, service, taken, finished = stalled()
    assert list(zip(taken.tolist(), finished.tolist(), strict=True)) == oracle.serve(due.tolist(), service.tolist())


def test_event_finished_before_it_was_due_has_no_latency_of_many_centuries():
    latency = np.ones(1, np.uint64)
    openloop.since_due(np.array([10], np.uint64), np.array([9], np.uint64), latency)
    assert latency[0] == 0
