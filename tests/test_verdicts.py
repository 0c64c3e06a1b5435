import dataclasses
import json
import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.lab.judge import claims, consistency, judging, rules, verdicts
from photonlab.lab.judge.claims import Check, Claim, Published

LEDGER = claims.by_id()
seeded = settings(derandomize=True, deadline=None)
POSITIVE = st.floats(1e-6, 1e12)


def row(claim, statistic, value, unit, variant="", low=None, high=None, note="", notebook=""):
    notebook = notebook or LEDGER[claim].notebook
    return locals() | {"run": "r"}


def verdict(claim, *rows):
    return verdicts.judge([LEDGER[claim] if isinstance(claim, str) else claim], list(rows))[0]


def made(*checks, kind="ratio", published=(), built=True):
    return Claim("R1", "r.txt", "s", "t", kind, tuple(published), "", "02-order-book", built, tuple(checks))


# ------------------------------------------------------------------------------------------------ rules of numbers


@seeded
@given(POSITIVE, st.floats(1.01, 3), st.floats(0.2, 5))
def test_ratio_flips_at_its_thresholds(published, tolerance, scale):
    if abs(published - 1) < 1e-3 or abs(math.log(scale / tolerance)) < 1e-9 or abs(math.log(scale * tolerance)) < 1e-9:
        return
    value = published * scale
    if abs(value - 1) < 1e-9:
        return
    word = rules.ratio(published, value, tolerance=tolerance)
    if (value > 1) != (published > 1):
        assert word == rules.FAILS
    elif 1 / tolerance < scale < tolerance:
        assert word == rules.HOLDS
    else:
        assert word == rules.DIRECTION


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (5.1, 5.0, 5.2, "holds"),
        (7.64, None, None, "holds"),  # below 5.1 * 1.5
        (7.66, None, None, "holds in direction"),
        (3.41, None, None, "holds"),  # above 5.1 / 1.5
        (3.39, None, None, "holds in direction"),
        (1.01, 1.001, 1.02, "holds in direction"),
        (1.01, 0.999, 1.02, "too close to call"),
        (1.01, 1.0, 1.02, "too close to call"),
        (1.0, None, None, "too close to call"),
        (0.99, 0.98, 0.999, "does not hold here"),
        (4.0, 0.5, 9.0, "too close to call"),  # an interval that contains 1 decides nothing, wherever its middle
    ],
)
def test_ratio_at_its_edges(value, low, high, word):
    assert rules.ratio(5.1, value, low, high) == word


def test_ratio_published_below_one_mirrors():
    for value in (0.5, 0.1, 0.99, 1.01, 1.0):
        assert rules.ratio(0.5, value) == rules.ratio(2.0, 1 / value)


def test_ratio_published_as_one_is_judged_by_its_band():
    assert rules.ratio(1.0, 1.0, 0.9, 1.1, tolerance=1.25) == "holds"
    assert rules.ratio(1.0, 1.24, tolerance=1.25) == "holds"
    assert rules.ratio(1.0, 1.26, 1.2, 1.3, tolerance=1.25) == "does not hold here"
    assert rules.ratio(1.0, 0.79, tolerance=1.25) == "does not hold here"


def test_ratio_of_a_published_range_uses_both_ends():
    words = [rules.ratio(15, value, upto=40, tolerance=1.25) for value in (11.9, 12, 27, 50, 50.1)]
    assert words == ["holds in direction", "holds", "holds", "holds", "holds in direction"]


def test_only_so_much_is_refuted_by_more():
    words = [rules.ratio(1.05, value, tolerance=1.1, only=True) for value in (1.02, 1.05, 1.15, 1.16, 3.0, 0.9)]
    assert words == ["holds", "holds", "holds", "does not hold here", "does not hold here", "does not hold here"]
    assert rules.ratio(1.05, 3.0, tolerance=1.1) == "holds in direction"
    assert rules.ratio(10, 2, only=True) == "holds in direction"  # less than published is no refutation of "only"
    assert rules.ratio(0.1, 0.5, only=True) == "holds in direction"
    assert rules.ratio(0.1, 0.05, only=True) == "does not hold here"


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (1.2, 1.01, 1.3, "holds in direction"),
        (1.2, 1.0, 1.3, "too close to call"),
        (0.9, 0.8, 0.99, "does not hold here"),
    ],
)
def test_direction_and_effect(value, low, high, word):
    assert rules.direction(value, low, high) == word
    assert rules.effect(value, low, high) == word.replace("holds in direction", "holds")


def test_effect_with_a_higher_mark():
    assert [rules.effect(value, at_least=2) for value in (1.9, 2.0, 2.1)] == [
        "does not hold here",
        "too close to call",
        "holds",
    ]


@seeded
@given(st.integers(0, 10**12), st.integers(-3, 3))
def test_exact_is_equality(published, off):
    assert rules.exact(published, published + off) == ("holds" if off == 0 else "does not hold here")


def test_exact_with_a_tolerance_for_rounding_or_pacing():
    assert [rules.exact(1.05, value, tolerance=0.005) for value in (1.0451, 1.0549, 1.056)] == [
        "holds",
        "holds",
        "does not hold here",
    ]
    assert [rules.exact(100, value, relative=0.01) for value in (99, 101, 101.1)] == [
        "holds",
        "holds",
        "does not hold here",
    ]


def test_bound():
    assert [rules.bound(value, at_most=1.5) for value in (1.5, 1.51)] == ["holds", "does not hold here"]
    assert [rules.bound(value, at_least=2) for value in (2, 1.99)] == ["holds", "does not hold here"]
    with pytest.raises(ValueError, match="needs"):
        rules.bound(1)


def points(*values, half=0.0):
    return [(value - half, value + half) for value in values]


@pytest.mark.parametrize(
    ("intervals", "rising", "word"),
    [
        (points(1, 2, 3, 4), True, "holds"),
        (points(4, 3, 2, 1), False, "holds"),
        (points(4, 3, 2, 1), True, "does not hold here"),
        (points(1, 2, 1.5, 4), True, "does not hold here"),  # a clear step against the cause
        (points(1, 2, 1.9, 4, half=0.2), True, "holds"),  # a step that its intervals do not support
        (points(1, 1, 1, 1), True, "too close to call"),
        (points(1, 1.1, 1.2, 1.3, half=0.5), True, "too close to call"),
    ],
)
def test_trend(intervals, rising, word):
    assert rules.trend(intervals, rising) == word


def group(*members):
    return [(value, low, high) for value, low, high in members]


def test_order_needs_separate_intervals_between_groups_and_closeness_within():
    low, high = group((50, 49, 51)), group((140, 139, 141))
    assert rules.order([low, high], 1.25) == "holds in direction"
    assert rules.order([high, low], 1.25) == "does not hold here"
    assert rules.order([low, group((51, 50, 52))], 1.25) == "too close to call"
    tied = group((149, 148, 150), (151, 150, 152))
    assert rules.order([low, tied], 1.25) == "holds in direction"
    assert rules.order([low, group((100, 99, 101), (126, 125, 127))], 1.25) == "does not hold here"


def test_shares():
    published = [5.7, 10.6, 83.6]
    assert rules.shares(published, [6, 11, 83], 1.5) == "holds"
    assert rules.shares(published, [15, 25, 60], 1.5) == "holds in direction"
    assert rules.shares(published, [25, 15, 60], 1.5) == "does not hold here"
    assert rules.shares([96], [40], 1.25) == "does not hold here"  # a single share has no order that could hold


# ------------------------------------------------------------------------------------------------ consistency


def test_contradictions_of_the_sources_are_found_by_arithmetic():
    found = {name: verdict(name) for name in ("T9", "R4", "R12", "P6", "S6")}
    assert {one.verdict for one in found.values()} == {"inconsistent as published"}
    assert found["T9"].value == pytest.approx(3.016, abs=1e-3) and "3.016 GHz" in found["T9"].reason
    assert (found["R4"].published, found["R4"].value) == (620, 1334) and "Replace 1,334 ns" in found["R4"].reason
    assert (found["R12"].published, found["R12"].value) == (5, 4) and "16,777,216" in found["R12"].reason
    assert found["P6"].value == 0.4337
    assert "91.65×" in found["S6"].reason and "33.52×" in found["S6"].reason


def altered(name, statistic, value, variant=""):
    claim = LEDGER[name]
    published = tuple(
        dataclasses.replace(entry, value=value) if (entry.statistic, entry.variant) == (statistic, variant) else entry
        for entry in claim.published
    )
    assert published != claim.published
    return dataclasses.replace(claim, published=published)


@pytest.mark.parametrize(
    "claim",
    [
        altered("T9", "core clock", 3.0),
        altered("R4", "p99.9", 619.9, "Replace"),
        altered("R12", "levels", 4),
        altered("P6", "tick", 0.42, "at the core's clock"),
        altered("S6", "gain of batching", 92),
        altered("S6", "gain of batching", 34),
    ],
    ids=lambda claim: claim.id,
)
def test_consistent_figures_would_hold(claim):
    assert verdict(claim).verdict == "holds"


def test_ceiling_is_below_and_not_at():
    assert verdict(altered("R4", "p99.9", 620, "Replace")).verdict == "inconsistent as published"


@pytest.mark.parametrize(
    ("base", "size", "levels"), [(64, 2**21, 4), (64, 64**4, 4), (64, 64**4 + 1, 5), (64, 1, 0), (2, 2**60 + 1, 61)]
)
def test_levels_of_a_tree_in_integers(base, size, levels):
    assert consistency.levels_needed(base, size) == levels


def test_levels_of_a_tree_that_cannot_grow():
    with pytest.raises(ValueError, match="grow"):
        consistency.levels_needed(1, 2)


# ------------------------------------------------------------------------------------------------ claims by their rows


def test_every_word_is_reachable_from_ledger_and_rows():
    found = [
        verdict(
            "R1",
            row("R1", "throughput", 14.0, "M msg/s", "published loop"),
            row("R1", "throughput", 12.0, "M msg/s", "full book"),
        ),
        verdict("T10", row("T10", "cost", 55, "ns")),
        verdict("R14", row("R14", "distinct outcomes", 1, "1")),
        verdict("R13", row("R13", "first pass", 1.8, "×", "untouched / pre-faulted", 1.7, 1.9)),
        verdict("F10", row("F10", "end to end", 1.01, "×", "linear / bitmap", 0.99, 1.03)),
        verdict("R14"),
        verdict("R6", row("R6", "IPC", None, "1", note="perf_event_open: no hardware counters in this guest")),
        verdict("R14", row("R14", "distinct outcomes", 2, "1")),
        verdict("S6"),
        verdict(dataclasses.replace(LEDGER["T2"], built=False)),
    ]
    assert [one.verdict for one in found] == [
        "shown beside",
        "new result",
        "holds",
        "holds in direction",
        "too close to call",
        "not run",
        "cannot be measured here",
        "does not hold here",
        "inconsistent as published",
        "not built yet",
    ]
    assert {one.verdict for one in found} == set(verdicts.WORDS)
    assert all(one.reason.endswith(".") for one in found)


def test_verdict_carries_figures_and_json_holds_it():
    one = verdict("F10", row("F10", "end to end", 1.08, "×", "linear / bitmap", 1.06, 1.1))
    assert one.verdict == "holds"
    assert (one.published, one.value, one.low, one.high, one.unit) == (1.05, 1.08, 1.06, 1.1, "×")
    assert one.notebook == "02-order-book"
    assert "1.08× [1.06, 1.1] here, within a factor 1.1 of the published 1.05×" in one.reason
    for name in ("claim", "verdict", "published", "value", "unit", "low", "high", "notebook", "reason"):
        assert name in json.loads(json.dumps(one.as_dict(), allow_nan=False))


def test_published_figure_stands_even_where_nothing_was_measured():
    one = verdict("F1")
    assert (one.verdict, one.published, one.unit, one.value) == ("not run", 25.8, "M msg/s", None)
    one = verdict("F10", row("F10", "end to end", None, "×", "linear / bitmap", note="at or below the floor"))
    assert (one.verdict, one.published) == ("cannot be measured here", 1.05)


def test_quotient_is_formed_of_two_rows_with_the_widest_interval():
    rows = [row("S2", "time", 20, "ns", "mutex", 18, 22), row("S2", "time", 4, "ns", "one thread", 3.9, 4.4)]
    one = verdict("S2", *rows)
    assert (one.verdict, one.value) == ("holds", 5)
    assert one.low == pytest.approx(18 / 4.4) and one.high == pytest.approx(22 / 3.9)
    direct = row("S2", "time", 9, "×", "mutex / one thread", 8.9, 9.1)  # a paired ratio is better than a quotient
    assert verdict("S2", *rows, direct).value == 9


def test_quotient_of_a_time_at_the_floor_cannot_be_measured():
    rows = [
        row("S2", "time", 20, "ns", "mutex"),
        row("S2", "time", None, "ns", "one thread", note="at or below the floor (9 ns)"),
    ]
    one = verdict("S2", *rows)
    assert one.verdict == "cannot be measured here" and "at or below the floor (9 ns)." in one.reason
    zero = [row("S2", "time", 20, "ns", "mutex"), row("S2", "time", 0, "ns", "one thread")]
    assert verdict("S2", *zero).verdict == "cannot be measured here"


def test_one_refuted_part_refutes_and_an_unknown_part_leaves_open():
    def f2(allocations, caught):
        note = "" if caught is not None else "no such probe"
        return verdict(
            "F2",
            row("F2", "allocations", allocations, "1"),
            row("F2", "planted allocation caught", caught, "1", note=note),
        )

    assert f2(0, 1).verdict == "holds"
    assert f2(0, 0).verdict == "does not hold here"
    assert f2(3, 1).verdict == "does not hold here"
    assert f2(0, None).verdict == "cannot be measured here"
    assert f2(3, None).verdict == "does not hold here"
    assert "not the published 0" in f2(3, 1).reason and f2(3, 1).value == 3


def test_missing_row_of_a_claim_that_ran_is_named():
    one = verdict("F2", row("F2", "allocations", 0, "1"))
    assert one.verdict == "not run" and "The row planted allocation caught is missing" in one.reason


SCORECARD = {"Cancel": 20, "Add": 60, "Execute": 80, "Delete": 81, "Replace": 130}


def scorecard(**changes):
    return [row("R2", "p50", value, "ns", name) for name, value in (SCORECARD | changes).items()]


def test_scorecard_is_judged_by_the_order_of_its_medians():
    one = verdict("R2", *scorecard())
    assert one.verdict == "holds in direction"
    assert "Cancel 20 ns, Add 60 ns, Execute 80 ns, Delete 81 ns, Replace 130 ns" in one.reason
    assert verdict("R2", *scorecard(Cancel=61)).verdict == "does not hold here"
    assert verdict("R2", *scorecard(Delete=60)).verdict == "does not hold here"  # not within 1.25 of Execute
    assert verdict("R2", *scorecard(Execute=60, Delete=61)).verdict == "too close to call"
    refused = row("R2", "p50", None, "ns", "Cancel", note="500 samples, too few")
    assert verdict("R2", *scorecard()[1:], refused).verdict == "cannot be measured here"


def test_figures_shown_beside_do_not_judge():
    fast = [row("R2", "p99.9", 1, "ns", name) for name in SCORECARD]
    assert verdict("R2", *scorecard(), *fast).verdict == "holds in direction"
    for throughput in (0.001, 25.8, 1e6):
        one = verdict("F1", row("F1", "throughput", throughput, "M msg/s", "full book"))
        assert one.verdict == "shown beside" and one.published == 25.8 and one.value == throughput


def test_some_figures_beside_are_enough():
    one = verdict("R6", row("R6", "IPC", 0.5, "1"), row("R6", "cache-miss share", None, "%", note="no such event"))
    assert one.verdict == "shown beside" and "cache-miss share: no such event." in one.reason


def test_one_finding_is_said_once_for_all_figures_that_it_concerns():
    names = [("IPC", "1"), ("cache-miss share", "%"), ("branch-miss rate", "%"), ("dTLB-miss rate", "%")]
    one = verdict("R6", *(row("R6", name, None, unit, note="no counters in this guest") for name, unit in names))
    assert one.reason == "IPC, cache-miss share, branch-miss rate, dTLB-miss rate: no counters in this guest."


def day(scale=1.0, total=None, **changes):
    entries = {entry.variant: entry.value for entry in LEDGER["R3"].published}
    counts = {name: round(value * scale) for name, value in entries.items()} | changes
    counts["all messages"] = counts["all messages"] if total is None else total
    return [row("R3", "count", value, "1", name) for name, value in counts.items()]


def test_counts_of_the_day_are_exact_on_that_day_and_out_of_reach_on_another():
    assert verdict("R3", *day()).verdict == "holds"
    wrong = verdict("R3", *day(Cancel=4_990_971))
    assert wrong.verdict == "does not hold here" and "Cancel 4,990,971 instead of 4,990,972" in wrong.reason
    other = verdict("R3", *day(scale=0.01))
    assert other.verdict == "cannot be measured here" and "at most 0.00 percentage points" in other.reason
    nothing = verdict("R3", *day(scale=0.0))
    assert nothing.verdict == "cannot be measured here"


def test_levels_examined_are_exact_for_the_bitmap_and_a_ratio_for_the_scan():
    def f9(linear, bitmap):
        return verdict(
            "F9",
            row("F9", "levels examined", linear, "1", "linear"),
            row("F9", "levels examined", bitmap, "1", "bitmap"),
        )

    assert f9(431_072, 1.0).verdict == "holds"
    assert f9(90, 1.0).verdict == "holds in direction"
    assert f9(90, 1.01).verdict == "does not hold here"
    assert f9(1.0, 1.0).verdict == "too close to call"


def test_only_the_claims_own_notebook_judges_where_it_ran():
    own, other = row("R5", "probe length", 1.0, "1"), row("R5", "probe length", 9.0, "1", notebook="03-hash-policies")
    assert verdict("R5", other, own).verdict == "holds"
    assert verdict("R5", other).verdict == "does not hold here"


def test_row_in_another_unit_is_an_error_and_not_a_verdict():
    with pytest.raises(ValueError, match="recorded in 'ms'"):
        verdict("F1", row("F1", "throughput", 20, "ms", "full book"))
    with pytest.raises(ValueError, match="mixes"):
        verdict("S2", row("S2", "time", 20, "ns", "mutex"), row("S2", "time", 4, "cycles", "one thread"))


def test_optional_part_is_mentioned_and_does_not_judge():
    one = verdict("S8", row("S8", "granule", 64, "bytes", "measured"))
    assert one.verdict == "holds" and "missing" in one.reason


def test_optional_part_does_not_refute():
    published = [Published("x", "a", 1, "1"), Published("x", "b", 2, "1")]
    checks = [Check("exact", {"statistic": "x", "variants": [name], "optional": name == "b"}) for name in "ab"]
    rows = [row("R1", "x", 1, "1", "a"), row("R1", "x", 3, "1", "b")]
    one = verdict(made(*checks, published=published), *rows)
    assert one.verdict == "holds" and "x (b) is 3 here, not the published 2." in one.reason


def test_unbuilt_claim_with_rows_is_judged():
    assert verdict("P3", row("P3", "ring drops", 0, "1")).verdict == "holds"


def test_a_frame_of_results_judges_as_its_rows_do():
    rows = [*scorecard(), row("R6", "IPC", None, "1", note="no counters"), *day(0.1)]
    assert verdicts.judge(None, pd.DataFrame(rows)) == verdicts.judge(None, rows)


def test_judging_nothing_gives_one_verdict_a_claim():
    found = verdicts.judge(None, [])
    assert [one.claim for one in found] == [claim.id for claim in claims.load()]
    assert {one.verdict for one in found} == {"not run", "inconsistent as published"}


def test_unknown_rule_is_an_error():
    with pytest.raises(ValueError, match="no rule"):
        verdict(made(Check("guess")))


def test_check_of_an_unpublished_figure_is_an_error():
    claim = made(Check("ratio", {"statistic": "x", "variant": "a / b"}), published=[Published("x", "a", 1, "ns")])
    with pytest.raises(ValueError, match="no published"):
        verdict(claim, row("R1", "x", 1, "ns", "a"))


@pytest.mark.parametrize("claim", claims.load(), ids=lambda claim: claim.id)
def test_wanted_rows_are_all_that_a_claim_needs(claim):
    wanted = judging.wanted(claim)
    rows = [row(claim.id, statistic, 1, unit or "ns", variant) for statistic, variant, unit in wanted]
    assert "missing" not in verdict(claim, *rows).reason
    none = [
        row(claim.id, statistic, None, unit or "ns", variant, note="not here") for statistic, variant, unit in wanted
    ]
    if none:
        assert verdict(claim, *none).verdict == "cannot be measured here"
