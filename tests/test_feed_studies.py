"""What notebook 06-feed says of its measurements: prose that reads right both ways, counts compared, refusals."""

from types import SimpleNamespace

import numpy as np
import pytest

from photonlab.lab.judge import claims, verdicts
from photonlab.lab.measure import histogram
from photonlab.lab.studies import feed_latency, feed_losses, feed_parse, feed_runs
from photonlab.machine import clock


def timed(each, call, step=10.0, calls=100, why=""):
    """Parsing where each message shows so many ns, and a call of 256 so many a message."""
    per = clock.calibrate().ticks_per_ns
    spans = np.tile(np.array([[256, round(256 * call * per)]], np.uint64), (calls, 1))
    return feed_parse.Parse(np.full(100, round(each * per), np.uint64), spans, step, 0.0, why)


def filled(few, many, first, last):
    total = histogram.empty()
    histogram.add_all(total, np.full(1000, 900, np.uint64))
    return feed_latency.Filled(
        timed(60, 50), {1: total, 256: total}, total, {1: few, 256: many}, {1: [9.0], 256: [5.0]},
        list(zip(first, last, strict=True)), np.arange(256.0), 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("few", "many", "last", "says"),
    [
        ([100.0] * 9, [900.0] * 9, [400.0] * 9, ("grows with the batch", "waits longer than who comes first")),
        ([900.0] * 9, [100.0] * 9, [100.0] * 9, ("falls with the batch", "does not wait longer")),
        ([100.0] * 9, [100.0] * 9, [200.0] * 9, ("cannot be told apart", "first and last of a call cannot")),
    ],
)
def test_the_sentence_on_batches_follows_the_figures(few, many, last, says):
    text = feed_latency.sentence(filled(few, many, [200.0] * 9, last))
    assert all(one in text for one in says)


def test_percentiles_without_support_are_not_recorded():
    found = filled([1.0], [1.0], [1.0], [1.0])
    for one in (found.parse.each, found.parse.call):
        assert one(50)["value"] is not None
        row = one("99.9")
        assert row["value"] is None
        assert "samples" in row["note"]


@pytest.mark.parametrize(("step", "whole"), [(10.0, True), (4.1, True), (3.9, False), (1.0, False)])
def test_the_median_is_that_of_whole_calls_where_the_clock_is_too_coarse(step, whole):
    found = timed(40, 15, step)
    assert found.resolved != whole
    assert found.claimed(50)["value"] == pytest.approx(15 if whole else 40, abs=1)
    assert found.claimed(95) == found.each(95)
    assert ("that of whole calls" in feed_parse.sentence(found)) == whole
    assert ("that of single messages" in feed_parse.sentence(found)) != whole


def test_calls_that_were_not_full_do_not_count():
    spans = [np.array([[256, 5120], [3, 900]], np.uint64), np.array([[256, 2560]], np.uint64)]
    assert feed_parse.of(np.zeros(1, np.uint64), spans, 256).spans.tolist() == [[256, 5120], [256, 2560]]
    assert feed_parse.of(np.zeros(1, np.uint64), [], 256).call(50)["value"] is None


def test_what_was_refused_gives_rows_with_the_reason():
    found = feed_latency.Filled(
        feed_parse.nothing("no multicast"), {}, None, {}, {}, [], np.zeros(0), 0, "no multicast"
    )
    assert "no multicast" in feed_parse.sentence(found.parse)
    for row in (
        found.parse.claimed(50),
        found.parse.call(50),
        found.percentile("total", 50),
        found.series("means", 1),
        found.place_ratio(),
    ):
        assert (row["value"], row["note"]) == (None, "no multicast")
    assert "no multicast" in feed_latency.sentence(found)
    assert feed_latency.table(found)["why"].tolist() == ["no multicast"]
    assert "no multicast" in feed_losses.fidelity_sentence(feed_losses.Fidelity([], None, "no multicast"))


@pytest.mark.parametrize(
    ("block", "spin", "says"), [(9, 3, "spinning is faster"), (3, 9, "blocking is faster"), (5, 5, "told apart")]
)
def test_the_sentence_on_waiting_follows_the_figures(block, spin, says):
    late = {"spinning": [np.full(9, spin)] * 7, "poll": [], "blocking": [np.full(9, block)] * 7}
    assert says in feed_latency.waiting_sentence(feed_latency.Waiting(late))
    assert "was refused" in feed_latency.waiting_sentence(feed_latency.Waiting(late, granted="refused"))
    late["spinning, no busy poll"] = [np.full(9, 2 * spin)] * 7
    assert "helps even here" in feed_latency.waiting_sentence(feed_latency.Waiting(late, granted="50 µs"))


@pytest.mark.parametrize(
    ("missing", "dropped", "ends", "apart"),
    [(7, 7, 0, 0), (7, 9, 2, 0), (7, 8, 0, 1), (9, 7, 0, 2), (7, None, 0, None)],
)
def test_counts_agree_to_the_packet(missing, dropped, ends, apart):
    found = [feed_losses.Loss("keen reader", 100, 0, 0), feed_losses.Loss("slow reader", 100, missing, dropped, ends)]
    assert found[1].disagreement == apart
    assert ("both counts agree" in feed_losses.loss_sentence(found)) == (apart == 0)
    assert ("does not say" in feed_losses.loss_sentence(found)) == (apart is None)
    assert feed_losses.loss_rows(found)[-1]["value"] == apart


@pytest.mark.parametrize(("equal", "said", "honest"), [("yes", "no", True), ("no", "yes", True), ("no", "no", False)])
def test_books_that_are_wrong_in_silence_are_called_so(equal, said, honest):
    row = {"ring drops": 0, "books equal": equal, "said to be incomplete": said}
    assert ("do not agree" in feed_losses.fidelity_sentence(feed_losses.Fidelity([row], 0))) != honest


@pytest.mark.parametrize(("kept", "says"), [(0.995, "All rates"), (0.95, "Not kept to 1 %: 1×")])
def test_a_rate_counts_as_kept_within_a_hundredth(kept, says):
    assert says in feed_losses.rate_sentence([{"speed": "1×", "kept [×]": kept}])


def test_stamps_are_read_where_messages_begin():
    data = feed_runs.day(500, 1)
    starts = feed_runs.offsets(data)
    assert starts.size == 500
    at = int(starts[123]) + 7
    assert feed_runs.stamps(data, starts)[123] == int.from_bytes(data[at : at + 6].tobytes(), "big")


@pytest.mark.skipif(bool(feed_losses.refused()), reason="no multicast here")
def test_a_slow_reader_loses_and_both_counts_agree():
    if feed_runs.refused():
        pytest.skip(feed_runs.refused())
    _, slow = feed_losses.measure_loss(4000, 100_000, 1)
    assert slow.missing > 0
    assert slow.disagreement == 0


def test_a_speed_that_was_reached_is_the_published_one(monkeypatch):
    """The figures once were shares of the speed asked for, and a simulator that kept all three failed the claim."""

    def sent_in_time(_data, _mode, pacing):
        monkeypatch.setattr(run.sent, "seconds", spans.pop(0) / pacing["speed"])
        return run

    run = SimpleNamespace(sent=SimpleNamespace(errors=histogram.empty(), seconds=0.0))
    spans = [0.0] * 3
    monkeypatch.setattr(feed_losses, "refused", lambda: "")
    monkeypatch.setattr(feed_runs, "paced", sent_in_time)
    data = feed_runs.day(4000, 1)
    starts = feed_runs.offsets(data)
    stamps = feed_runs.stamps(data, starts).astype(np.int64)
    first = int(np.searchsorted(stamps, 34_200_000_000_000))
    for i, speed in enumerate(feed_losses.SPEEDS):
        behind = int(np.searchsorted(stamps, stamps[first] + int(60 * speed * 1e9))) + 1
        spans[i] = int(stamps[min(behind, starts.size - 1) - 1] - stamps[first]) / 1e9
    rows = feed_losses.measure_rates(4000, 60, 1)
    assert [row["reached [×]"] for row in rows] == pytest.approx(feed_losses.SPEEDS)
    assert [row["kept [×]"] for row in rows] == pytest.approx([1.0] * 3)
    judged = verdicts.judge(
        [claims.by_id()["P14"]],
        [
            {
                "run": "r", "claim": "P14", "statistic": "rate", "variant": row["speed"], "value": row["reached [×]"],
                "unit": "×", "low": None, "high": None, "note": "", "notebook": "06-feed",
            }
            for row in rows
        ],
    )[0]  # fmt: skip
    assert judged.verdict == "holds"
