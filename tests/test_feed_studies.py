"""What notebook 06-feed says of its measurements: prose that reads right both ways, counts compared, refusals."""

import numpy as np
import pytest

from photonlab.lab.measure import histogram
from photonlab.lab.studies import feed_latency, feed_losses, feed_runs


def filled(few, many, first, last):
    total = histogram.empty()
    histogram.add_all(total, np.full(1000, 900, np.uint64))
    return feed_latency.Filled(
        np.full(100, 60, np.uint64), {1: total, 256: total}, total, {1: few, 256: many}, {1: [9.0], 256: [5.0]},
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
    assert found.percentile("parse", 50)["value"] is not None
    row = found.percentile("parse", "99.9")
    assert row["value"] is None
    assert "samples" in row["note"]


def test_what_was_refused_gives_rows_with_the_reason():
    found = feed_latency.Filled(np.zeros(0, np.uint64), {}, None, {}, {}, [], np.zeros(0), 0, "no multicast")
    for row in (found.percentile("parse", 50), found.series("means", 1), found.place_ratio()):
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


@pytest.mark.parametrize(("missing", "dropped", "apart"), [(7, 7, 0), (7, 12, 0), (7, 13, 1), (9, 7, 2)])
def test_counts_agree_up_to_the_packets_without_a_number(missing, dropped, apart):
    found = [feed_losses.Loss("keen reader", 100, 0, 0), feed_losses.Loss("slow reader", 100, missing, dropped)]
    assert found[1].disagreement == apart
    assert ("both counts agree" in feed_losses.loss_sentence(found)) == (apart == 0)
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
