"""What the notebooks on parser and order book record, draw and say: right whichever way the figures fall."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from photonlab.errors import UserError
from photonlab.lab.judge import claims, judging, verdicts
from photonlab.lab.measure import allocation
from photonlab.lab.measure.comparison import Comparison, Timed
from photonlab.lab.publish import figures, profiles, runner
from photonlab.lab.studies import day, order_map, parser_cost, scorecard, stages, throughput, touch_search
from photonlab.machine import clock
from photonlab.systems import synth
from photonlab.systems.experiments import scorecard as timed_loop
from photonlab.systems.experiments import touch
from tests.oracle import itch, streams


def compared(**series):
    """A comparison whose variants took these ns a message in each round."""
    rounds = len(next(iter(series.values())))
    return Comparison(
        {
            name.replace("_", " "): Timed(name, 1, 1_000_000, np.array(values) * 1e6, 0.0, 1.0, 7, 0.0)
            for name, values in series.items()
        },
        rounds,
        0,
        0,
        "",
    )


@pytest.fixture(scope="module")
def today():
    data, truth = synth.generate(20_000, 3)
    return day.Day("small", "a day", data, truth.messages)


@pytest.fixture
def style():
    figures.use_style()


# -- the input -----------------------------------------------------------------------------------------------


def test_synthetic_days_come_in_two_sizes():
    small, wide = day.days("", 2_000, 3_000, 5, 1)
    assert (small.name, small.messages, wide.name, wide.messages) == ("small", 2_000, "wide", 3_000)
    assert "2,000 messages of" in small.about


@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_takes_the_place_of_both(tmp_path, zipped):
    stream = streams.long_stream(1, 500, faults=0)
    path = tmp_path / "feed.itch"
    path.write_bytes(gzip.compress(stream) if zipped else stream)
    one, other = day.days(str(path), 1, 1, 1, 10_000)
    assert one is other and one.messages == len(itch.walk(stream).messages) and one.data.tobytes() == stream
    part, _ = day.days(str(path), 1, 1, 1, 100)
    assert part.data.size == 4_000 and part.messages < one.messages and "the beginning of" in part.about


def test_a_file_without_a_message_is_refused(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        day.days(str(tmp_path / "no.itch"), 1, 1, 1, 1)
    empty = tmp_path / "empty.itch"
    empty.write_bytes(b"")
    with pytest.raises(UserError, match="no whole message"):
        day.days(str(empty), 1, 1, 1, 100)


def test_mix_and_its_distance_from_the_published_one():
    found = day.mix({"A": 40, "F": 4, "E": 2, "C": 1, "X": 1, "D": 42, "U": 8, "S": 2})
    assert found == {"Add": 44, "Execute": 3, "Cancel": 1, "Delete": 42, "Replace": 8, "all messages": 100}
    table = day.mix_table(found)
    assert table["share here [%]"].tolist() == [44, 3, 1, 42, 8, 100]
    assert table["published share [%]"].iloc[0] == pytest.approx(44.086, abs=1e-3)
    assert day.mix_table(day.mix({}))["share here [%]"].tolist() == [0] * 6


def test_replays_in_every_way_have_one_outcome(today):
    found = day.outcomes(today, [1_000, 1 << 16], 2)
    assert len(found) == 5 and found.checksum.nunique() == 1 and found.chunks.tolist()[0] == 1
    other = day.outcomes(replace(today, data=today.data[:-40]), [], 1)
    assert other.checksum.iloc[0] != found.checksum.iloc[0]


# -- throughput ----------------------------------------------------------------------------------------------


def test_throughput_of_both_loops(today, style):
    one = throughput.measure(today, 3)
    assert one.row(throughput.FULL)["value"] is None and "20,000 messages" in one.row(throughput.FULL)["note"]
    assert one.first_pass()["value"] is one.ratio(throughput.FULL, throughput.PUBLISHED)["value"] is None
    assert "20,000 messages" in throughput.sentence(one) + throughput.memory_sentence(one)
    one = replace(one, day=replace(today, messages=day.FEWEST))
    assert set(one.comparison.variants) == {f"{n}{m}" for n in throughput.LOOPS for m in ("", ", untouched memory")}
    row = one.row(throughput.FULL)
    assert row["low"] <= row["value"] <= row["high"] and row["unit"] == "M msg/s"
    assert row["value"] == pytest.approx(1e3 / one.comparison.reading(throughput.FULL).ns)
    table = throughput.table([one])
    assert len(table) == 4 and table.checksum.nunique() == 2
    figures._check_labels(throughput.chart([one]), "throughput")
    counted, rows = throughput.counters(one)
    assert [row["statistic"] for row in rows] == ["IPC", "cache-miss share", "branch-miss rate", "dTLB-miss rate"]
    assert all(row["value"] is not None or row["note"] for row in rows)
    assert set(counted)


def throughput_of(full, published, cold, faults=(5, 0), used=1 << 20):
    series = {"full book": full, "published loop": published}
    series |= {"full book, untouched memory": cold, "published loop, untouched memory": published}
    return throughput.Throughput(
        day.Day("small", "", np.zeros(0, np.uint8), day.FEWEST),
        compared(**{name.replace(" ", "_"): values for name, values in series.items()}),
        dict.fromkeys(throughput.LOOPS, faults[1])
        | {f"{loop}, untouched memory": faults[0] for loop in throughput.LOOPS},
        {"full book": used, "published loop": used},
        {},
    )


@pytest.mark.parametrize(
    ("full", "published", "words"),
    [
        ([50, 51, 52], [25, 25, 26], "What the loop leaves out is worth something"),
        ([25, 25, 26], [50, 51, 52], "does not make it faster"),
        ([50, 40, 60], [50, 50, 50], "too close to tell apart"),
    ],
)
def test_sentence_on_the_loops_whichever_wins(full, published, words):
    one = throughput_of(full, published, full)
    assert words in throughput.sentence(one)
    assert f"{1e3 / np.median(full):.1f} M messages a second" in throughput.sentence(one)


@pytest.mark.parametrize(
    ("cold", "words"), [([60, 61, 62], "helps"), ([40, 41, 42], "does harm"), ([45, 50, 55], "no difference")]
)
def test_sentence_on_memory_whichever_way(cold, words):
    one = throughput_of([50, 50, 50], [50, 50, 50], cold)
    assert words in throughput.memory_sentence(one)
    assert one.first_pass()["value"] == pytest.approx(np.median(cold) / 50)
    assert "5 page faults against 0" in one.first_pass()["note"]


def test_unknown_memory_is_no_figure():
    one = throughput_of([50, 50, 50], [50, 50, 50], [60, 60, 60], used=0)
    assert one.first_pass()["value"] is None and "does not tell" in one.first_pass()["note"]
    assert "does not tell" in throughput.memory_sentence(one)


# -- scorecard -----------------------------------------------------------------------------------------------


def test_scorecard_counts_every_message_of_a_class(today, style):
    card = scorecard.measure(today, 2)
    truth = synth.generate(20_000, 3)[1].counts
    for name, types in timed_loop.CLASSES.items():
        assert card.summary(name).count == 2 * sum(truth[type_] for type_ in types)
        assert [row["statistic"] for row in card.rows(name)] == list(scorecard.STATISTICS)
        assert all(row["value"] is not None or row["note"] for row in card.rows(name))
    table = scorecard.table(card)
    assert table["where"].tolist() == ["here", "published"] * 5
    assert table["p50"].iloc[1] == "138" and table["max"].iloc[9] == "2,462,268"
    figures._check_labels(scorecard.chart(card), "scorecard")


RATE = clock.Calibration("a clock", 1_000_000_000, 0.0, (), None, "")
FLOOR = clock.Floor("a clock", 1.0, 1.0, 1.0, 1, 1, 5.0, 6.0, 10.0, 20.0, 10, 100)


def card_of(ticks):
    """A scorecard of these samples by class, with a clock of 1 ns a tick and a floor of 10 ns."""
    histograms = {}
    for name in scorecard.NAMES:
        histograms[name] = scorecard.histogram.empty(1000)
        scorecard.histogram.add_all(histograms[name], np.array(ticks.get(name, []), np.uint64))
    medians = {name: [int(np.median(ticks.get(name, [0])))] * 2 for name in scorecard.NAMES}
    one = day.Day("small", "", np.zeros(0, np.uint8), 100)
    return scorecard.Scorecard(one, histograms, medians, RATE, FLOOR, 1e-5, 1, 0)


def test_what_cannot_be_told_is_not_recorded():
    card = card_of({"Add": [50] * 100, "Cancel": [8] * 100, "Delete": [40] * 30})
    rows = {(row["variant"], row["statistic"]): row for name in scorecard.NAMES for row in card.rows(name)}
    assert rows["Add", "p50"]["value"] == 50 and rows["Add", "p50"]["low"] == 50
    assert rows["Add", "p99.9"]["value"] is None and "beyond it" in rows["Add", "p99.9"]["note"]
    assert rows["Cancel", "p50"]["value"] is None and "floor" in rows["Cancel", "p50"]["note"]
    assert rows["Cancel", "min"]["value"] is None and rows["Cancel", "avg"]["value"] is None
    assert rows["Delete", "p90"]["value"] is None and rows["Delete", "max"]["value"] == 40
    assert rows["Execute", "p50"]["value"] is None and rows["Execute", "p50"]["note"] == "no samples"
    text = scorecard.sentence(card, 50.0)
    assert "Delete 40.0 < Add 50.0" in text and "clock or samples: Execute, Cancel, Replace" in text


def test_sentence_marks_equal_medians():
    card = card_of({name: [50] * 100 for name in scorecard.NAMES})
    assert scorecard.sentence(card, 50.0).count(" = ") == 4
    assert "No median is supported" in scorecard.sentence(card_of({"Add": [1] * 100}), 50.0)


def test_headline_against_its_table_and_ours():
    plain = {name: [50] * 20_000 for name in scorecard.NAMES}
    assert "has Replace 1,334 ns" in scorecard.headline(card_of(plain))
    assert "none lies above it" in scorecard.headline(card_of(plain))
    assert "above it are Add 900 ns" in scorecard.headline(card_of(plain | {"Add": [900] * 20_000}))
    assert "no p99.9 is supported" in scorecard.headline(card_of({}))


# -- stages --------------------------------------------------------------------------------------------------


def stages_of(framing, decoding, whole, messages=day.FEWEST):
    series = {"framing": framing, "framing_and_decoding": decoding, "whole_replay": whole}
    return stages.Stages(day.Day("small", "", np.zeros(0, np.uint8), messages), compared(**series))


def test_a_stage_costs_what_it_adds():
    one = stages_of([2, 2, 2], [6, 6, 6], [40, 40, 40])
    assert [one.time(stage)["value"] for stage in (*stages.STAGES, "total")] == pytest.approx([2, 4, 34, 40])
    assert [one.share(stage)["value"] for stage in stages.STAGES] == pytest.approx([5, 10, 85])
    assert "**the book** with 85 %" in stages.sentence(one)


def test_a_stage_may_add_nothing_or_less(style):
    one = stages_of([5, 5, 6], [4, 5, 5], [6, 6, 7])
    row = one.share("decoding")
    assert row["low"] <= row["value"] <= 0 <= row["high"] + 1e-12
    assert "**framing**" in stages.sentence(one)
    figures._check_labels(stages.chart([one]), "stages")
    assert len(stages.table([one])) == 4


def test_stages_of_a_short_day_are_no_figures(style):
    one = stages_of([2, 2, 2], [6, 6, 6], [40, 40, 40], messages=1000)
    assert one.share("book")["value"] is None and "1,000 messages" in one.time("total")["note"]
    assert "1,000 messages" in stages.sentence(one)
    assert stages.table([one])["small [ns]"].tolist() == [None] * 4
    stages.chart([one])


def test_stages_of_a_day_see_the_same_messages(today):
    one = stages.measure(today, 3)
    assert {timed.checksum for timed in one.comparison.variants.values()} == {today.messages}


# -- touch search and order map ------------------------------------------------------------------------------


def test_touch_search_of_a_day(today, style):
    found = touch_search.measure(today, 2, 3)
    assert len(found.comparisons) == 2
    assert found.examined(touch_search.BITMAP) == 1
    assert found.examined(touch_search.LINEAR) > found.examined(touch_search.LINEAR, in_vain=False) > 1
    assert found.total(touch_search.LINEAR, touch.TOUCHED) == found.total(touch_search.BITMAP, touch.TOUCHED)
    assert len(touch_search.table(found)) == 2
    figures._check_labels(touch_search.chart(found), "touch")


def touch_of(linear, bitmap, times):
    tallies = {touch_search.LINEAR: [linear], touch_search.BITMAP: [bitmap]}
    return touch_search.TouchSearch({1: compared(**times)}, tallies)


def test_touch_sentence_whichever_way():
    linear, by_bitmap = [4, 1000, 900, 1, 900, 0, 0, 5, 10_000], [4, 4, 1, 1, 1, 12, 0, 5, 10_000]
    dear = touch_of(linear, by_bitmap, {"linear": [50, 50, 51], "bitmap": [40, 40, 40]})
    assert dear.row("linear")["value"] == 250 and dear.row("bitmap")["value"] == 1
    text = touch_search.sentence(dear)
    assert "90.0 % of these steps" in text and "33 levels away" in text and "takes more time" in text
    cheap = touch_of(linear, by_bitmap, {"linear": [30, 30, 31], "bitmap": [40, 40, 40]})
    assert "takes less time" in touch_search.sentence(cheap)
    equal = touch_of(linear, by_bitmap, {"linear": [39, 40, 41], "bitmap": [40, 40, 40]})
    assert "neither more nor less time" in touch_search.sentence(equal)
    short = touch_of([*linear[:8], 99], [*by_bitmap[:8], 99], {"linear": [39, 40, 41], "bitmap": [40, 40, 40]})
    assert short.effect["value"] is None and "has 99 messages" in touch_search.sentence(short)


def test_nothing_to_search(style):
    none = touch_of([0] * 9, [0] * 9, {"linear": [1, 1, 1], "bitmap": [1, 1, 1]})
    assert none.row("linear")["value"] is None and "no best price went away" in touch_search.sentence(none)
    nobody = touch_search.TouchSearch({}, {touch_search.LINEAR: [], touch_search.BITMAP: []})
    assert nobody.effect["value"] is None and "fit the array" in touch_search.sentence(nobody)
    touch_search.chart(nobody)
    assert touch_search.table(nobody).empty


def test_floors_do_the_same_work():
    found = touch_search.floors(100, 500, 3, 1)
    assert list(found.variants) == ["4 floors", "5 floors"]


def test_order_map_judges_the_published_configuration(today):
    book = throughput.BookPass(today.data)
    book.prepare()
    book()
    found = order_map.measure(today, book.state.book.index)
    rows = {name: order_map.row(name, one) for name, one in found.items()}
    assert [row["variant"] for row in rows.values()] == ["", order_map.GROWING, order_map.DIRECTORY]
    assert 1 <= rows[order_map.AS_PUBLISHED]["value"] <= rows[order_map.GROWING]["value"]
    assert len(order_map.table(found)) == 3 and "2^24 slots" in order_map.sentence(found)


# -- parser --------------------------------------------------------------------------------------------------


def parser_of(framing, every):
    return compared(framing_alone=framing, every_field_of_every_type=every)


@pytest.mark.parametrize(
    ("every", "verdict"), [([7, 7, 7], "met"), ([8, 8, 8], "missed"), ([7, 7.6, 9], "too close to call")]
)
def test_target_of_decoding(every, verdict):
    """2 ns of framing allow 1.3 * 2 + 5 = 7.6 ns."""
    found = parser_of([2, 2, 2], every)
    assert parser_cost.target(found).limit_ns == pytest.approx(7.6)
    assert parser_cost.target(found).verdict == verdict
    assert f"**{verdict}**" in parser_cost.target_sentence(found)


def test_parser_loops_see_the_same_messages(today, style):
    found = parser_cost.measure(today, 3)
    assert {timed.checksum for timed in found.variants.values()} == {today.messages}
    table = parser_cost.table(found, today)
    assert len(table) == 4
    figures._check_labels(parser_cost.chart(found), "parser")


def test_proofs_of_the_hot_kernels_and_of_the_planted_one(today):
    found = parser_cost.proofs(today)
    assert parser_cost.allocations(found) == (0, 1)
    assert found[-1].allocations_while_running == today.messages
    assert "allocates nothing" in parser_cost.proof_sentence(found, today)
    assert parser_cost.proof_table(found, today)["allocates nothing"].tolist() == [True] * 5 + [False]


def test_a_proof_that_cannot_fail_or_that_fails_is_said_so(today):
    clean = allocation.Proof("photonlab.a", (), 0)
    dirty = allocation.Proof("photonlab.b", ("malloc",), 3)
    assert parser_cost.allocations([clean, clean]) == (0, 0)
    assert "proves nothing" in parser_cost.proof_sentence([clean, clean], today)
    assert parser_cost.allocations([dirty, dirty]) == (4, 1)
    assert "**4 allocations**" in parser_cost.proof_sentence([dirty, dirty], today)


# -- the notebooks -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    runner.run_report("smoke", only=["01-parser", "02-order-book"], out=out, tell=len)
    return out


def test_every_claim_of_the_notebooks_has_its_rows(run):
    """No verdict waits for a row that the notebook forgot, and no row is left of a claim that is not there."""
    frame = runner.results.read(run)
    for claim in claims.load():
        if claim.built and claim.notebook in ("01-parser", "02-order-book"):
            rows = {(r.statistic, r.variant) for r in frame[frame.claim == claim.id].itertuples()}
            for statistic, variant, _ in judging.wanted(claim):
                over, _, under = variant.partition(" / ")
                assert (statistic, variant) in rows or {(statistic, over), (statistic, under)} <= rows, claim.id
    found = {one.claim: one.verdict for one in verdicts.judge(claims.load(), frame)}
    assert found["F2"] == found["R14"] == "holds"
    assert found["R4"] == found["R12"] == "inconsistent as published"


def test_a_file_serves_as_input(tmp_path, run):
    path = tmp_path / "feed.itch"
    path.write_bytes(streams.long_stream(7, 3_000, faults=0.02))
    given = {"02-order-book": {"rounds": 3}, "01-parser": {"rounds": 3}}
    out = tmp_path / "out"
    runner.run_report("smoke", itch=path, only=["01", "02"], out=out, given=given, tell=len)
    page = (out / "report.html").read_text()
    assert "feed.itch" in page
    counts = runner.results.read(out).query("claim == 'R3' and variant == 'all messages'").value
    assert counts.tolist() == [len(itch.walk(path.read_bytes()).messages)]


def test_profiles_name_parameters_that_are_there():
    for profile in profiles.NAMES:
        folder = runner.paths.NOTEBOOKS
        profiles.resolve(profile, [folder / "01-parser.ipynb", folder / "02-order-book.ipynb"])
