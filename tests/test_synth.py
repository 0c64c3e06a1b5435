"""The synthetic day: the same bytes everywhere, never an impossible message, and a truth that holds."""

import errno
import io
import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from photonlab import paths
from photonlab.errors import UserError
from photonlab.kernels.itch import TYPES
from photonlab.machine.jit import kernel
from photonlab.systems import synth
from photonlab.systems.synth import files, presets, rng
from photonlab.systems.synth.instruments import make_instruments
from photonlab.systems.synth.quotas import make_quotas
from photonlab.systems.synth.timetable import OPEN, SECOND, make_timetable, shared_out
from tests.oracle import itch
from tests.oracle.book import Book, nonzero

MASK = (1 << 64) - 1

# arguments → SHA-256: a change here is a change of the generator, and raises presets.VERSION
GOLDEN = {
    (300, 1, "small", None, "day"): "b238d6d91a8a0c965c6241b4353603ef35db672d1e927ab3a06638450fd77660",
    (5_000, 2, "small", 7, "busiest-second"): "02c0252cced3aa596638e10d2168836bd0082a6cb80cdc33b67dead8b1821bd0",
    (20_000, (1 << 64) - 1, "wide", None, "day"): "f4d9565d1ad3fe5076b3c92f8f66b6e9a907e6b2c174720e63684860a07f5204",
    (100_000, 0, "small", 1, "day"): "96cbf66d8dce335e091d960c520399c59c1184caa27583a6d3b6f0d4781a58bc",
}

VALID = [
    (150, 1, {}),
    (1_000, 2, {"instruments": 1}),
    (12_000, 3, {}),
    (12_000, 4, {"preset": "wide"}),
    (30_000, 5, {"instruments": 3}),
    (12_000, 6, {"profile": "busiest-second"}),
    (12_000, 7, {"channels": 1, "instruments": 400}),
]


class Impossible(AssertionError):
    """A message that no exchange would send."""


class Witness(Book):
    """The plain-Python book, that objects to what is possible for a feed but not for an exchange."""

    def __init__(self):
        super().__init__()
        self.time = 0
        self.references, self.matches, self.broken = set(), [], set()
        self.peak = 0

    def apply(self, message):
        fields = itch.decode(message)
        kind = chr(message[0])
        if fields["timestamp"] < self.time:
            raise Impossible("time runs back")
        self.time = fields["timestamp"]
        getattr(self, f"_before_{kind}", lambda fields: None)(fields)
        super().apply(message)
        if self.crossed(fields["stock_locate"]) or self._locked(fields["stock_locate"]):
            raise Impossible("a crossed or locked book")
        self.peak = max(self.peak, len(self.orders))

    def _locked(self, locate):
        bid, ask = self.best(locate)
        return bid is not None and bid == ask

    def _new(self, reference):
        if reference in self.references:
            raise Impossible("a reference twice")
        self.references.add(reference)

    def _before_A(self, fields):
        self._new(fields["order_reference_number"])
        if fields["shares"] == 0 or fields["price"] == 0:
            raise Impossible("an order of nothing")

    _before_F = _before_A

    def _before_U(self, fields):
        self._known(fields, "original_order_reference_number")
        self._new(fields["new_order_reference_number"])
        if fields["shares"] == 0:
            raise Impossible("an order of nothing")

    def _before_D(self, fields):
        self._known(fields, "order_reference_number")

    def _before_X(self, fields):
        order = self._known(fields, "order_reference_number")
        if not 0 < fields["canceled_shares"] < order.shares:
            raise Impossible("more cancelled than can be")

    def _before_E(self, fields):
        order = self._known(fields, "order_reference_number")
        if not 0 < fields["executed_shares"] <= order.shares:
            raise Impossible("more executed than is open")
        if not 100 < order.price < 1_999_999_900:
            raise Impossible("a stub quote trades")
        best = self.best(order.locate)[order.side == "S"]
        if order.price != best or self.levels[order.locate, order.side][best][0] != order.reference:
            raise Impossible("not the first order at the best price")
        trading = self._trading(order.locate)
        if (trading.state != "T" or trading.halted) and fields.get("printable") != b"N":
            raise Impossible("an execution in a halt")
        self._match(fields["match_number"])

    def _before_C(self, fields):
        self._before_E(fields)
        order = self.orders[fields["order_reference_number"]]
        worse = (
            fields["execution_price"] > order.price if order.side == "B" else fields["execution_price"] < order.price
        )
        if fields["printable"] == b"N" and worse:
            raise Impossible("an order trades in a cross at a price worse than its own")

    def _before_P(self, fields):
        bid, ask = self.best(fields["stock_locate"])
        if not (bid or 0) <= fields["price"] <= (ask or 1 << 31):
            raise Impossible("a hidden trade outside of the spread")
        self._match(fields["match_number"])

    def _before_Q(self, fields):
        self._match(fields["match_number"])

    def _before_B(self, fields):
        if fields["match_number"] not in self.matches or fields["match_number"] in self.broken:
            raise Impossible("a trade broken that was none, or twice")
        self.broken.add(fields["match_number"])

    def _known(self, fields, name):
        order = self.orders.get(fields[name])
        if order is None or order.locate != fields["stock_locate"]:
            raise Impossible("an order that this instrument does not have")
        return order

    def _match(self, number):
        if self.matches and number <= self.matches[-1]:
            raise Impossible("match numbers run back")
        self.matches.append(number)


def mixed(word):
    """mix64 of the generator, in plain Python."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def checksum(orders):
    """The truth's checksum of live orders, in plain Python."""
    total = 0
    for order in orders:
        first = mixed(order.reference ^ (order.locate << 32) ^ (ord(order.side) << 16))
        total += mixed(first ^ (order.price << 32) ^ order.shares)
    return total & MASK


def types_of(day):
    return [chr(message[0]) for _, message in itch.walk(day.tobytes()).messages]


def messages_of(day):
    return [message for _, message in itch.walk(day.tobytes()).messages]


# -- the same bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", GOLDEN)
def test_golden_digests(arguments):
    messages, seed, preset, instruments, profile = arguments
    _, truth = synth.generate(messages, seed, preset, instruments, profile=profile)
    assert truth.version == presets.VERSION
    assert truth.sha256 == GOLDEN[arguments]


def test_chunks_do_not_matter():
    whole, truth = synth.generate(20_000, 9)
    for chunk in (64, 101, 4096):
        pieces, same = synth.generate(20_000, 9, chunk=chunk)
        assert np.array_equal(whole, pieces)
        assert same == truth


def test_seeds_and_presets_matter():
    days = {synth.generate(2_000, seed, preset)[1].sha256 for seed in range(5) for preset in ("small",)}
    assert len(days) == 5


def test_the_kernel_and_the_plan_draw_the_same_numbers():
    @kernel(cache=False)
    def draw(words, out):
        for i in range(out.size):
            out[i] = rng.next64(words)

    words, out = np.array([-5], np.int64), np.zeros(100, np.uint64)
    draw(words, out)
    stream = rng.Stream(-5)
    assert out.tolist() == [stream.next64() for _ in range(100)]
    assert rng.Stream(1234567).next64() == 6457827717110365317, "the published generator's first word for this seed"


# -- what is in them -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("messages", "seed", "options"), VALID)
def test_every_message_is_possible_and_the_truth_is_true(messages, seed, options):
    day, truth = synth.generate(messages, seed, **options)
    witness = Witness()
    walk = witness.feed(day.tobytes())
    assert walk.short_tail == 0
    assert nonzero(witness.anomalies) == {}
    assert nonzero(witness.unknown_reference) == {}
    assert witness.counts.total() == truth.messages == messages
    assert nonzero(witness.counts) == nonzero(Counter(truth.counts))
    assert day.size == truth.bytes
    assert (len(witness.orders), witness.peak) == (truth.live_orders, truth.peak_live_orders)
    assert sum(order.shares for order in witness.orders.values()) == truth.live_shares
    assert checksum(witness.orders.values()) == truth.checksum
    assert sum(witness.volume.values()) == truth.volume
    symbols = witness.names
    assert nonzero(Counter({symbols[i]: shares for i, shares in witness.volume.items()})) == nonzero(
        Counter(truth.volumes)
    )
    assert sorted(symbols) == list(range(1, truth.instruments + 1))
    assert list(truth.bests) == [symbols[i] for i in sorted(symbols)] == sorted(symbols.values())
    for locate, symbol in symbols.items():
        sides = [next(iter(witness.depth(locate, side)), (0, 0)) for side in "BS"]
        assert truth.bests[symbol] == [number for price, shares, *_ in sides for number in (price, shares)]


def test_the_witness_can_object():
    """Planted faults: an execution twice, an order moved across the touch, time turned back, an order left out."""
    day, _ = synth.generate(12_000, 3)
    good = messages_of(day)
    executions = [i for i, message in enumerate(good) if message[0:1] == b"E"]

    def objection(messages):
        witness = Witness()
        with pytest.raises(Impossible) as caught:
            for message in messages:
                witness.apply(message)
        return str(caught.value)

    at = next(i for i in executions if good[i + 1][0:1] != b"E")
    assert objection([*good[: at + 1], good[at], *good[at + 1 :]])
    add = next(i for i, message in enumerate(good) if i > 6_000 and message[0:1] == b"A" and message[19:20] == b"B")
    high = good[add][:32] + (1_900_000_000).to_bytes(4, "big") + good[add][36:]
    assert objection([*good[:add], high, *good[add + 1 :]]) == "a crossed or locked book"
    assert objection([*good[:5_000], good[4_000], *good[5_000:]]) == "time runs back"
    second = next(i for i in executions if i > 3_000)
    reference = good[second][11:19]
    born = next(
        i for i, message in enumerate(good) if message[0:1] in b"AFU" and reference in (message[11:19], message[19:27])
    )
    assert objection([*good[:born], *good[born + 1 :]])


def test_the_mix_is_that_of_claim_r3():
    for preset, plateau in (("small", 14_600), ("wide", 65_000)):
        _, truth = synth.generate(1_000_000, 11, preset)
        classes = {"add": "AF", "execute": "EC", "cancel": "X", "delete": "D", "replace": "U"}
        for name, types in classes.items():
            share = sum(truth.counts[t] for t in types) / truth.messages
            assert share == pytest.approx(presets.MIX[name] / presets.MIX_TOTAL, abs=0.002), (preset, name)
        assert truth.peak_live_orders == pytest.approx(plateau, rel=0.03)
        assert truth.counts["F"] == pytest.approx(0.02 * (truth.counts["A"] + truth.counts["F"]), rel=0.01)
        assert truth.counts["C"] == pytest.approx(0.08 * (truth.counts["E"] + truth.counts["C"]), rel=0.02)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("preset", synth.PRESETS)
@pytest.mark.parametrize("messages", [presets.ALL_TYPES_MESSAGES, 400, 2_000])
def test_all_types_occur(messages, preset, seed):
    _, truth = synth.generate(messages, seed, preset)
    assert sorted(truth.counts) == sorted(TYPES)
    assert [type_ for type_, count in truth.counts.items() if not count] == []


@pytest.mark.parametrize("messages", [*range(1, 40), 63, 64, 65, 99, 149, 255, 500])
def test_days_of_a_few_messages(messages):
    day, truth = synth.generate(messages, messages)
    witness = Witness()
    witness.feed(day.tobytes())
    assert witness.counts.total() == truth.messages == messages
    assert types_of(day)[0] == "S"


def test_more_instruments_than_the_day_has_room_for_still_add_up():
    for messages, instruments in ((40, 10), (400, 100), (4_000, 1_000)):
        _, truth = synth.generate(messages, 1, instruments=instruments)
        assert (truth.messages, truth.instruments, truth.counts["R"]) == (messages, instruments, instruments)


def test_the_order_of_a_day():
    day, truth = synth.generate(20_000, 8)
    messages = messages_of(day)
    codes = [(message[11:12], int.from_bytes(message[5:11], "big")) for message in messages if message[0:1] == b"S"]
    assert [code for code, _ in codes] == [b"O", b"S", b"Q", b"M", b"E", b"C"]
    assert messages[0][0:1] == messages[-1][0:1] == b"S"
    hours = {b"Q": 9.5, b"M": 16, b"E": 20}
    for code, time in codes:
        if code in hours:
            assert 0 <= time - hours[code] * 3600e9 < 1e6, "an event comes within a millisecond of its hour"
    place = {kind: [i for i, m in enumerate(messages) if m[0:1] == kind.encode()] for kind in TYPES}
    system = {code: i for i, code in zip(place["S"], [code for code, _ in codes], strict=True)}
    assert max(place["R"]) < min(place["A"])
    crosses = Counter(messages[i][39:40] for i in place["Q"])
    assert crosses[b"C"] == truth.instruments
    assert crosses[b"O"] + 2 == truth.instruments, "the two new ones open by a cross of their own"
    assert crosses[b"I"] == 2 and crosses[b"H"] > 0
    opening = [i for i in place["Q"] if messages[i][39:40] == b"O"]
    assert system[b"Q"] < min(opening) and max(opening) < system[b"M"]
    assert system[b"M"] < min(i for i in place["Q"] if messages[i][39:40] == b"C")
    assert max(place["Q"]) < system[b"E"]


def test_crosses_are_what_their_executions_say():
    day, _ = synth.generate(200_000, 8, instruments=200)
    messages = messages_of(day)
    taken, crosses, different = Counter(), 0, 0
    for message in messages:
        fields = itch.decode(message)
        if message[0:1] == b"C" and fields["printable"] == b"N":
            taken[fields["stock_locate"], fields["timestamp"]] += fields["executed_shares"]
        elif message[0:1] == b"Q":
            shares = taken[fields["stock_locate"], fields["timestamp"]]
            crosses += shares > 0
            different += shares < fields["cross_shares"]
            assert shares <= fields["cross_shares"]
            assert (fields["cross_price"] == 0) == (fields["cross_shares"] == 0)
    assert crosses > 50 and different > 50


def test_references_run_in_channels_as_on_the_real_feed():
    day, _ = synth.generate(50_000, 8)
    by_channel = {}
    for message in messages_of(day):
        if message[0:1] in b"AFU":
            at = 19 if message[0:1] == b"U" else 11
            reference = int.from_bytes(message[at : at + 8], "big")
            by_channel.setdefault(reference % 4, []).append((int.from_bytes(message[1:3], "big"), reference))
    assert len(by_channel) == 4
    ranges = sorted(
        (min(locate for locate, _ in rows), max(locate for locate, _ in rows)) for rows in by_channel.values()
    )
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))
    for rows in by_channel.values():
        steps = np.diff([reference for _, reference in rows])
        assert 0.9 < np.mean(steps > 0) < 1, "nearly sequential"
        assert np.median(steps) in (4, 8)


def test_one_channel_of_references():
    day, _ = synth.generate(50_000, 8, channels=1)
    references = [int.from_bytes(m[11:19], "big") for m in messages_of(day) if m[0:1] in b"AF"]
    steps = np.diff(references)
    assert 0.9 < np.mean(steps > 0) < 1
    assert abs(steps).max() < 10_000


def test_prices_have_their_ticks_and_extremes():
    day, _ = synth.generate(400_000, 8)
    prices = np.array([int.from_bytes(m[32:36], "big") for m in messages_of(day) if m[0:1] in b"AF"])
    dollar = prices >= 10_000
    assert (prices[dollar] % 100 == 0).all()
    assert (prices[~dollar] % 100 != 0).any()
    assert prices.min() == 100 or prices.min() == 1
    assert prices.max() == 1_999_999_900
    assert np.quantile(prices, 0.99) > 2_000_000 > 300_000 > np.quantile(prices, 0.3)


def test_the_busiest_second_is_one_second():
    for messages in (500, 100_000):
        day, truth = synth.generate(messages, 4, profile="busiest-second")
        times = [int.from_bytes(message[5:11], "big") for message in messages_of(day)]
        assert times == sorted(times)
        assert times[-1] - times[0] < SECOND
        assert times[0] < OPEN < times[-1]
        assert truth.profile == "busiest-second"


def test_activity_is_skewed_and_bursty():
    day, _ = synth.generate(400_000, 5)
    table = synth.statistics(day).set_index(["statistic", "unit"])["this day"]
    assert 3 < table["the most active instrument", "% of order messages"] < 8
    assert 0.4 < table["busiest second", "% of messages"] < 1
    assert table["busiest millisecond", "messages"] > 20
    assert 20 < table["new orders that open a level", "% of A, F and U"] < 60
    assert table["lifetime of an order, 99 %", "ns"] > 1_000 * table["lifetime of an order, 10 %", "ns"]


# -- files ---------------------------------------------------------------------------------------------------------


def test_write_and_generate_agree(tmp_path):
    seen = []
    truth = synth.write(tmp_path / "day.itch", 5_000, 3, chunk=10_000, progress=lambda *done: seen.append(done))
    day, same = synth.generate(5_000, 3)
    assert (tmp_path / "day.itch").read_bytes() == day.tobytes()
    assert truth == same == synth.Truth.read(tmp_path / "day.itch.truth.json")
    assert json.loads(synth.truth_path(tmp_path / "day.itch").read_text())["sha256"] == truth.sha256
    assert sorted(path.name for path in tmp_path.iterdir()) == ["day.itch", "day.itch.truth.json"]
    assert len(seen) > 10 and seen[-1] == (5_000, 5_000) and seen == sorted(seen)


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    class Full:
        def __init__(self, file):
            self.file, self.room = file, 100_000

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, piece):
            self.room -= len(piece)
            if self.room < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(piece)

    monkeypatch.setattr(files, "open", lambda *arguments: Full(io.FileIO(arguments[0], "w")), raising=False)
    (tmp_path / "day.itch").write_bytes(b"an older day")
    with pytest.raises(UserError, match=r"cannot write .*day.itch: No space left"):
        synth.write(tmp_path / "day.itch", 20_000, chunk=1_000)
    assert [path.name for path in tmp_path.iterdir()] == ["day.itch"]
    assert (tmp_path / "day.itch").read_bytes() == b"an older day"


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synth.write(tmp_path / "day.itch", 1_000, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"messages": 0}, "messages must be between 1 and 500,000,000, not 0"),
        ({"messages": -5}, "messages must be"),
        ({"messages": 500_000_001}, "messages must be"),
        ({"messages": 1e6}, "messages must be a whole number"),
        ({"messages": True}, "messages must be a whole number"),
        ({"messages": "many"}, "messages must be a whole number"),
        ({"messages": 100, "seed": -1}, "seed must be"),
        ({"messages": 100, "seed": 1 << 64}, "seed must be"),
        ({"preset": "huge"}, "no preset 'huge'; there are small, wide"),
        ({"profile": "night"}, "no profile 'night'; there are day, busiest-second"),
        ({"messages": 100, "instruments": 26}, "26 instruments need at least 104 messages, not 100"),
        ({"messages": 100, "instruments": 0}, "instruments must be"),
        ({"instruments": 65_536}, "instruments must be"),
        ({"channels": 9}, "channels must be"),
        ({"chunk": 63}, "chunk must be"),
    ],
)
def test_bad_arguments(options, said):
    with pytest.raises(UserError, match=said):
        synth.generate(**options)


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="No such file or directory"):
        synth.write(tmp_path / "nowhere" / "day.itch", 100)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="Is a directory"):
        synth.write(tmp_path / "folder", 100)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_cache_writes_once_and_mends_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    path = synth.cached("small", 2_000, 5)
    assert path.parent == tmp_path / "synth" and f"v{presets.VERSION}" in path.name
    first = path.stat().st_mtime_ns, path.read_bytes()
    assert synth.cached("small", 2_000, 5) == path
    assert (path.stat().st_mtime_ns, path.read_bytes()) == first
    others = {synth.cached("small", 2_000, 6), synth.cached("wide", 2_000, 5), synth.cached("small", 2_001, 5)}
    assert len(others | {path}) == 4
    for damage in (b"", b"{"):
        synth.truth_path(path).write_bytes(damage)
        path.write_bytes(first[1][:-1])
        assert synth.cached("small", 2_000, 5).read_bytes() == first[1]


def test_two_processes_may_fill_the_cache_at_once(tmp_path):
    program = (
        "import sys, pathlib\n"
        "from photonlab import paths\n"
        "from photonlab.systems import synth\n"
        "paths.CACHE = pathlib.Path(sys.argv[1])\n"
        "print(synth.cached('small', 300_000, 5))\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in "ab"
    ]
    found = {process.communicate(timeout=250)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    (path,) = found
    assert Path(path).stat().st_size == synth.Truth.read(synth.truth_path(path)).bytes
    assert len(list(Path(path).parent.iterdir())) == 2


# -- its parts -----------------------------------------------------------------------------------------------------


def test_alias_tables_keep_the_weights():
    stream = rng.Stream(3)
    for n in (1, 2, 3, 50):
        weights = [stream.below(1000) for _ in range(n - 1)] + [7]
        chance, other = rng.alias_table(weights)
        share = [0] * n
        for i in range(n):
            share[i] += int(chance[i])
            share[other[i]] += (1 << 32) - int(chance[i])
        for weight, got in zip(weights, share, strict=True):
            assert abs(got - (weight * n << 32) // sum(weights)) <= n


def test_sharing_out_is_exact():
    assert shared_out(10, [1, 1, 1]) == [3, 4, 3]
    assert shared_out(1, [1, 2, 1]) == [0, 1, 0]
    assert shared_out(0, [3, 4]) == [0, 0]
    assert shared_out(5, [0, 0]) == [0, 0]
    for total in range(50):
        assert sum(shared_out(total, [5, 0, 2, 9])) == total


def test_quotas_add_up():
    for messages in (*range(60, 400, 7), 10_000, 999_999):
        quotas = make_quotas(messages, 40, 6, 1, True)
        sent = sum(quotas) - quotas.full - quotas.positions + quotas.positions * 1
        assert sent + 40 == messages
        assert quotas.live_at_end >= 0


def test_the_timetable_has_no_gaps_that_messages_could_fall_into():
    for seed in range(20):
        day = make_timetable(rng.Stream(seed))
        assert all(stretch.begin < stretch.end for stretch in day)
        assert all(one.end <= two.begin for one, two in itertools.pairwise(day))
        assert all(one.orders > 0 for one in day if OPEN <= one.begin < 57_600 * SECOND)


def test_instruments_are_plausible():
    listed = make_instruments(2_000, rng.Stream(1))
    symbols = [instrument.symbol for instrument in listed]
    assert symbols == sorted(set(symbols))
    prices = sorted(instrument.anchor for instrument in listed)
    assert 3_000 <= prices[0] < 9_000 and 3_500_000 < prices[-1] <= 35_000_000
    assert 200_000 < prices[1_000] < 400_000, "the median price is between 20 and 40 dollars"
    assert {instrument.rank for instrument in listed} == set(range(2_000))


# -- statistics ----------------------------------------------------------------------------------------------------


def test_statistics_of_a_stream_made_by_hand():
    def add(time, reference, price, side=b"B"):
        return itch.encode(
            "A", timestamp=time, stock_locate=1, order_reference_number=reference, shares=100, price=price,
            buy_sell_indicator=side,
        )  # fmt: skip

    replace = itch.encode(
        "U",
        timestamp=1_000_003_000,
        original_order_reference_number=2,
        new_order_reference_number=4,
        shares=7,
        price=90,
    )
    stream = [
        itch.encode("S", event_code=b"O"),
        add(1_000, 1, 100),
        add(2_000, 2, 100),
        add(3_000, 3, 100, b"S"),
        itch.encode("X", timestamp=4_000, order_reference_number=1, canceled_shares=40),
        itch.encode("E", timestamp=1_000_002_000, order_reference_number=1, executed_shares=60),
        replace,
        itch.encode("D", timestamp=1_000_003_500, order_reference_number=99),
    ]
    data = b"".join(len(message).to_bytes(2, "big") + message for message in stream)
    table = synth.statistics(data).set_index(["statistic", "unit"])["this day"]
    assert table["messages", ""] == 8
    assert table["live orders, most", "orders"] == 3
    assert table["live orders, at the end", "orders"] == 2
    assert table["orders a level, when most are live", "orders"] == 1.5
    assert table["new orders that open a level", "% of A, F and U"] == 75
    assert table["lifetime of an order, 10 %", "ns"] == pytest.approx(1_000_001_000, rel=0.07)
    assert ("busiest second", "messages") in table.index and table["busiest second", "messages"] == 5
    assert table["mean size of a new order", "shares"] == pytest.approx(307 / 4)
    assert table["types that occur", "of 23"] == 6


def test_statistics_agree_with_the_truth(tmp_path):
    truth = synth.write(tmp_path / "day.itch", 100_000, 2)
    table = synth.statistics(tmp_path / "day.itch")
    value = table.set_index(["statistic", "unit"])["this day"]
    assert value["messages", ""] == truth.messages
    assert value["live orders, most", "orders"] == truth.peak_live_orders
    assert value["live orders, at the end", "orders"] == truth.live_orders
    assert value["mean length of a message", "bytes"] == pytest.approx(truth.bytes / truth.messages - 2)
    assert set(table.loc[table["real day"] != "not published", "source"]) == {
        "claim R1", "claim R3", "claims R1 and R3", "claim F1, peak of the feed",
    }  # fmt: skip
    assert synth.statistics(b"")["this day"].iloc[0] == 0


def test_statistics_of_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        synth.statistics(tmp_path / "none.itch")
