"""What notebook 00 shows: unsupported percentiles stay out, rates need counters, and every system has its sentence."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from photonlab.lab.measure import histogram, percentiles
from photonlab.lab.studies import resolution, working_sets
from photonlab.machine import clock, fingerprint, perf_events
from photonlab.machine.latency import Latency

RATE = clock.Calibration("a clock", 2_600_000_000, 1.5, (2_600_000_000,) * 3, 2_600_000_000, "a test")
FLOOR = clock.Floor("a clock", 26.0, 10.0, 1.0, 1, 1, 20.0, 20.0, 30.0, 48.0, 78, 1000)


def counted(values):
    filled = histogram.empty(1_000)
    histogram.add_all(filled, np.asarray(values, np.uint64))
    return filled


SAMPLES = {
    "below the floor": counted([52] * 20_000),
    "few": counted([500 + i for i in range(300)]),
    "enough": counted([500 + i % 300 for i in range(20_000)]),
    "beyond the bound": counted([5_000] * 20_000),
}


def test_nothing_unsupported_is_printed():
    wrong, refused = resolution.printed_in_spite(SAMPLES, FLOOR)
    assert wrong == 0
    assert refused == 4 + 2  # all of the first; p99 and p99.9 of 300
    card = resolution.scorecard(SAMPLES, RATE, FLOOR)
    assert card.loc[0, ["p50", "p99.9"]].tolist() == ["≤\N{NO-BREAK SPACE}30"] * 2
    assert card.loc[1, ["p99", "p99.9"]].tolist() == ["–", "–"]
    assert card.loc[0, "why not"] == "p50, p90, p99, p99.9: at or below the floor"
    assert card.loc[1, "why not"].startswith("p99: 300 samples leave 3 beyond it")
    assert card.loc[2, "why not"] == ""


@pytest.mark.parametrize("broken", ["unsupported", "below_floor"])
def test_a_rule_that_prints_too_much_is_counted(monkeypatch, broken):
    monkeypatch.setattr(percentiles, broken, lambda *_, **__: "")
    wrong, _ = resolution.printed_in_spite(SAMPLES, FLOOR)
    assert wrong == {"unsupported": 2, "below_floor": 4}[broken]


def test_a_rate_without_counters_is_counted():
    probe = perf_events.Probe(dict.fromkeys(perf_events.EVENTS, False), "ENOENT")
    nothing = dict.fromkeys(perf_events.RATES)
    assert resolution.printed_without_counters(probe, nothing) == 0
    assert resolution.printed_without_counters(probe, nothing | {"IPC": 0.0}) == 1
    full = perf_events.Probe(dict.fromkeys(perf_events.EVENTS, True), "")
    assert resolution.printed_without_counters(full, dict.fromkeys(perf_events.RATES, 0.5)) == 0
    assert "ENOENT" in resolution.counter_sentence(probe, nothing)
    halves = dict.fromkeys(perf_events.RATES, 0.5)
    assert resolution.counter_sentence(full, halves).startswith("Counted in this walk: IPC 0.5")
    table = resolution.counter_table(probe, dict.fromkeys(perf_events.EVENTS))
    assert set(table.counted) == {"–"}


@pytest.mark.parametrize(
    ("reported", "step_ns", "expected"),
    [
        (1_000_000_000, 125 / 3, "steps of **41.67 ns**"),
        (2_600_000_000, 1 / 2.6, "here the unit is the step"),
        (None, 10.0, "does not report its frequency; measured are 2.6 GHz"),
    ],
)
def test_sentence_of_the_step(reported, step_ns, expected):
    rate = RATE._replace(reported_hz=reported)
    floor = FLOOR._replace(granularity_ns=step_ns)
    assert expected in resolution.granularity_sentence(rate, floor)
    row = resolution.reported_granularity(rate)
    assert row["value"] == (1e9 / reported if reported else None)
    assert row["note"]


def costs(system_call):
    ns = {"in a kernel, unordered: ticks()": 10, "in a kernel: ticks_begin()": 25, "in a kernel, through libc": 20}
    found = [clock.Cost("x", how, value) for how, value in ns.items()]
    return found + ([clock.Cost("x", "in a kernel, by a system call", system_call)] if system_call else [])


@pytest.mark.parametrize(
    ("system_call", "expected"),
    [
        (200, "**10 times** as much, by a system call: through libc it does not enter"),
        (25, "may well"),
        (None, "not measured"),
    ],
)
def test_sentence_of_the_cost(system_call, expected):
    assert expected in resolution.cost_sentence(costs(system_call))


def latencies(share, factor=1.5):
    sizes = (4096, 32 << 10, 1 << 20, 4 << 20, 64 << 20)
    return [
        Latency(
            size, pages, share if pages == "huge" and size >= 2 << 20 else share and 0.0, (ns * 0.9, ns, ns), -1, label
        )
        for size, base, label in zip(sizes, (1, 1.5, 5, 20, 100), ("", "", "", "waited 3 ms", ""), strict=True)
        for pages, ns in (("small", base * factor), ("huge", base))
    ]


CACHES = [("L1", 32 << 10), ("L2", 1 << 20), ("L3", 16 << 20)]


@pytest.mark.parametrize(
    ("share", "factor", "expected"),
    [
        (1.0, 1.5, "slower: **1.50×**"),
        (1.0, 0.5, "faster: **0.50×**"),
        (1.0, 1.0, "neither clearly"),
        (0.0, 1.5, "the system gave none"),
        (None, 1.5, "does not tell"),
    ],
)
def test_memory_of_every_kind_of_system(share, factor, expected):
    frame = working_sets.latency_table(latencies(share, factor))
    assert expected in working_sets.page_sentence(frame)
    text = working_sets.latency_sentence(frame, CACHES)
    assert f"**{100 * min(factor, 1):.3g} ns** in memory (64 MiB)" in text
    assert "(half of L1)" in text
    assert "in the largest working set" in working_sets.latency_sentence(frame, [])
    for chart in (working_sets.latency_chart, working_sets.page_chart):
        for caches in (CACHES, []):
            fig = chart(frame, caches)
            fig.canvas.draw()
            plt.close(fig)
    drawn = working_sets.page_chart(frame, CACHES)
    assert len(drawn.axes[0].lines[1].get_xdata()) == {1.0: 2, 0.0: 0, None: 5}[share]
    plt.close(drawn)
    assert "1 of 5 working sets (4 MiB waited 3 ms)" in working_sets.disturbances(frame)
    assert len(working_sets.latency_rows(frame, 2)) == 3


def test_quiet_walks_need_no_excuse():
    quiet = [one._replace(disturbed="") for one in latencies(1.0)]
    assert working_sets.disturbances(working_sets.latency_table(quiet)) == "No walk that counts had to wait for a CPU."


def test_facts_of_a_machine():
    machine = fingerprint.collect()
    frame = resolution.facts(machine)
    assert frame.Value[frame.Fact == "model"].tolist() == [str(machine["processor"]["model"])]
    assert all(frame.Value.str.len() > 0)
    assert not frame.duplicated("Fact").any()


@pytest.mark.parametrize(
    ("size", "text"), [(64, "64 bytes"), (4096, "4 KiB"), (741440, "724 KiB"), (32 << 20, "32 MiB"), (1 << 30, "1 GiB")]
)
def test_sizes(size, text):
    assert working_sets.size_text(size) == text


def test_chart_of_spans():
    spans = np.array([52] * 50 + [78] * 50 + [10**6], np.uint64)
    shares = resolution.span_shares(spans, FLOOR)
    assert shares.ticks.tolist() == [52, 78]
    fig = resolution.span_chart(shares, RATE, FLOOR)
    fig.canvas.draw()
    plt.close(fig)
