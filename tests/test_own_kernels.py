"""Rings and allocators of one's own: they stand in tables and charts; what harms messages or blocks is refused."""

import inspect
import textwrap

import numpy as np
import pytest

from photonlab.errors import UserError
from photonlab.kernels import ring_variants
from photonlab.lab.publish import figures
from photonlab.lab.studies import own, own_ring, pool_cost, pool_tail, ring_lockstep, ring_placement, ring_regimes
from photonlab.systems.experiments import copied_stress, own_blocks
from tests import own_kernels
from tests.test_spin import two_cpus

NAME = "mine"


def altered(function, *pairs):
    """The function with parts of its text replaced."""
    text = textwrap.dedent(inspect.getsource(function))
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    space = dict(vars(own_kernels))
    exec(compile(text, "altered", "exec"), space)
    return space[function.__name__]


@pytest.fixture(scope="module")
def ring():
    own.add_ring(NAME, *own_kernels.RING)
    figures.use_style()
    yield NAME
    own.remove_ring(NAME)


@pytest.fixture(scope="module")
def allocator():
    own.add_allocator(NAME, *own_kernels.STACK)
    figures.use_style()
    yield NAME
    own.remove_allocator(NAME)


# ------------------------------------------------------------------------------------------------------- rings


def test_without_rings_of_ones_own_nothing_is_added():
    assert ring_variants.added() == {} and tuple(ring_variants.MAKERS) == ring_variants.HOUSE
    assert ring_placement.added_sentence(ring_placement.stress_added(1000, 1)) == ""


def test_an_own_ring_on_one_thread(ring):
    table = ring_regimes.alone_table(ring_regimes.measure_alone(2_000, 3)).set_index("ring")
    assert (table.loc[[NAME, ring_variants.COPIES], "ns a message"] > 0).all()


@two_cpus
def test_an_own_ring_stands_in_tables_and_charts(ring):
    streams = ring_regimes.measure_streams(2_000, [1, 8, 512], 3)
    table = ring_regimes.stream_table(streams).set_index("stream")
    for name in (NAME, ring_variants.COPIES):
        assert table.loc[f"one at a time, {name}", "ns a message"] > 0
        assert table.loc[f"batch of 512, {name}", "ns a message"] > 0
    assert f"batch of 8, {NAME}" not in table.index
    handed = ring_lockstep.measure(300, [1, 4], 3)
    assert (ring_lockstep.table(handed).set_index("handed over by").loc[NAME, "ns one way"]) > 0
    for chart in (ring_regimes.stream_chart(streams, handed), ring_lockstep.chart(handed)):
        assert {NAME, ring_variants.COPIES} <= {text.get_text() for text in chart.axes[0].get_legend().get_texts()}
    said = ring_placement.added_sentence(ring_placement.stress_added(20_000, 1))
    assert said == f"Through the ring {NAME!r} went 20,000 messages, none harmed."


SLOT = "words[SLOTS + ((head + i) & (slots - _1)) * _8 + j] = source"
FLAWED = {
    "overwrites": ("push", ("slots - (head - load_acquire(words, TAIL))", "slots"), "lost, or overtaken"),
    "forgets": ("pop", ("tail + count)", "tail + count + _1)"), "on one thread: "),
    "again": ("pop", ("store_release(words, TAIL, tail + count)", "store_release(words, TAIL, tail + (count >> _1))"),
              "again"),
    "backwards": ("pop", ("((tail + i)", "((tail + count - _1 - i)"), "lost, or overtaken"),
    "half a message": ("push", ("range(_8)", "range(_8 >> _1)"), "torn"),
    "beyond": ("push", ("& (slots - _1)", ""), "push reaches beyond its array of 544 words"),
    "too much": ("pop", ("return count", "return count + _1"), "pop gave"),
    "float": ("pop", ("return count", "return count * 0.5"), "pop returns float64, not how many"),
    "not compiled": ("push", ("return count", "return nowhere"), "push cannot be compiled"),
    "holds too few": ("push", ("slots - (head", "min(slots, _8) - (head"), "it must hold 32 or more"),
    "swallows": ("push", ("count = min(count, slots - (head - load_acquire(words, TAIL)))",
                          "count = count"), "one thread"),
}  # fmt: skip


@pytest.mark.parametrize("flaw", FLAWED)
def test_a_ring_that_harms_its_messages_is_refused(flaw):
    verb, pair, words = FLAWED[flaw]
    verbs = {"push": own_kernels.push, "pop": own_kernels.pop}
    verbs[verb] = altered(verbs[verb], pair)
    with pytest.raises(UserError, match=words) as refused:
        own.add_ring(flaw, own_kernels.make_ring, **verbs)
    assert str(refused.value).startswith(f"ring {flaw!r}") and "\n" not in str(refused.value)
    assert tuple(ring_variants.MAKERS) == ring_variants.HOUSE or flaw not in ring_variants.MAKERS


@two_cpus
@pytest.mark.parametrize("verb", ["push", "pop"])
def test_a_ring_that_fails_between_two_threads_only_is_refused(verb, monkeypatch):
    """The index is moved before the slots have been written, or read: on one thread nobody could tell."""
    monkeypatch.setattr(own_ring, "MESSAGES", 2_000_000)  # enough to see it, whatever the machine does
    store = {"push": "store_release(words, HEAD, head + count)", "pop": "store_release(words, TAIL, tail + count)"}[
        verb
    ]
    early = altered(getattr(own_kernels, verb), (f"    {store}\n", ""), ("    for i", f"    {store}\n    for i"))
    verbs = {"push": own_kernels.push, "pop": own_kernels.pop} | {verb: early}
    with pytest.raises(UserError, match=r"between two threads: .*(torn|lost|again)"):
        own.add_ring("early", own_kernels.make_ring, **verbs)
    left = [kind for kind in ring_variants.put.kernels if kind.__name__.startswith("Unsaved")]
    assert len(left) == len(ring_variants.MAKERS) - len(ring_variants.HOUSE), "nothing of it is left"


@two_cpus
def test_a_ring_that_stops_is_refused_in_time():
    stuck = altered(own_kernels.push, ("return count", "return count if head < np.uint64(5000) else _0"),
                    ("head + count)", "head + count if head < np.uint64(5000) else head)"))  # fmt: skip
    compiled = [own_ring._compiled("stuck", *one) for one in (("push", stuck), ("pop", own_kernels.pop))]
    own_type, words = own_ring._register(*compiled), own_kernels.make_ring(64)
    found = copied_stress.stress(own_type(words, *ring_variants.buffers()), 20_000, 16, seconds=0.5)
    own_ring._forget(own_type)
    assert "of 20,000 messages had gone in" in found.reason and found.got < 20_000


@pytest.mark.parametrize("made", [[1, 2], np.zeros(8), np.zeros((8, 8), np.uint64), np.zeros(0, np.uint64)])
def test_what_make_returns_must_be_words(made):
    with pytest.raises(UserError, match="not an array of uint64"):
        own.add_ring("odd", lambda slots: made, own_kernels.push, own_kernels.pop)
    with pytest.raises(UserError, match="not an array of uint64"):
        own.add_allocator("odd", lambda blocks: made, own_kernels.take, own_kernels.give)


def test_names_of_this_house_and_names_that_are_not_there():
    for name in ("ring", "mutex", ring_regimes.ONE, ring_variants.COPIES, ring_lockstep.LINE):
        with pytest.raises(UserError, match="one of this house's"):
            own.add_ring(name, *own_kernels.RING)
    with pytest.raises(UserError, match="no ring 'ring' was added"):
        own.remove_ring("ring")
    with pytest.raises(UserError, match="one of this house's"):
        own.add_allocator("pool", *own_kernels.STACK)
    with pytest.raises(UserError, match="no allocator 'x' was added"):
        own.remove_allocator("x")


def test_a_time_of_other_words_than_were_sent_is_refused(ring, monkeypatch):
    """The last line of defence, in the study itself."""
    monkeypatch.setattr(ring_regimes, "added", lambda: {NAME: NAME})
    found = ring_regimes.measure_alone(2_000, 3)
    with pytest.raises(UserError, match="its times mean nothing"):
        ring_regimes._sound(found, 2_001)


# -------------------------------------------------------------------------------------------------- allocators


def test_an_own_allocator_stands_in_tables_and_charts(allocator):
    costs = pool_cost.measure(3_000, 500, [64], 3, 1)
    fills = pool_cost.fill_table(costs).set_index("blocks from")
    assert fills.loc[NAME, "blocks handed out"] == 3_000
    assert NAME in set(pool_cost.cycle_table(costs)["blocks from"])
    assert costs.churn[NAME].checksum == costs.churn[pool_cost.POOL].checksum, "the same work"
    labels = [text.get_text() for text in pool_cost.chart(costs).axes[0].get_yticklabels()]
    assert {f"{NAME}: fill", f"{NAME}: batches of 64", f"{NAME}: churn"} <= set(labels)
    tail = pool_tail.measure(4_000, 3)
    assert f"{NAME}, single" in set(pool_tail.table(tail)["allocations [ns]"])
    assert set(tail.ratios) == {pool_cost.MALLOC, pool_cost.POOL, NAME}


def test_what_the_cheap_measures_take_is_left_alone(allocator):
    compared, _ = pool_cost.measure_fill(500, 3, names=(pool_cost.POOL, pool_cost.MALLOC))
    assert tuple(compared.variants) == (pool_cost.POOL, pool_cost.MALLOC)


FLAWED_BLOCKS = {
    "twice": ("give", ("words[1] = at", "words[1] = at\n    words[0] = min(words[0], at)"), "is in use"),
    "half a block": ("take", ("at + _8\n", "at + (_8 >> _1)\n"), "in use|outside"),
    "outside": ("take", ("at == np.uint64(words.size)", "at > np.uint64(words.size)"), "outside its"),
    "lost": ("give", ("words[1] = at", "words[1] = _0"), "were lost"),
    "writes": ("give", ("words[1] = at", "words[1] = at\n    words[words.size - 3] = at"), "somebody wrote"),
    "beyond": ("give", ("words[1] = at", "words[at + np.uint64(words.size)] = at"), "give reaches beyond"),
    "float": ("take", ("return NONE", "return 0.5"), "take returns float64"),
    "not compiled": ("give", ("words[1] = at", "nowhere(at)"), "give cannot be compiled"),
    "fewer": ("take", ("at == np.uint64(words.size)", "at + _8 == np.uint64(words.size)"), "it was made for 1"),
}


@pytest.mark.parametrize("flaw", FLAWED_BLOCKS)
def test_an_allocator_that_does_not_keep_its_promise_is_refused(flaw):
    verb, pair, words = FLAWED_BLOCKS[flaw]
    verbs = {"take": own_kernels.take, "give": own_kernels.give}
    verbs[verb] = altered(verbs[verb], pair)
    with pytest.raises(UserError, match=words) as refused:
        own.add_allocator(flaw, own_kernels.make_stack, **verbs)
    assert str(refused.value).startswith(f"allocator {flaw!r}") and "\n" not in str(refused.value)
    assert flaw not in pool_cost.ADDED


def test_loops_of_an_allocator_that_has_run_out(allocator):
    blocks, taken = pool_cost.ADDED[NAME].blocks(4), np.zeros(6, np.uint64)
    assert own_blocks.fill(blocks, taken) == 4 and taken.tolist() == [8, 16, 24, 32, *2 * [int(own.NONE)]]
    assert own_blocks.churn(blocks, taken, np.zeros(1, np.uint32)) == own.NONE
    assert own_blocks.cycles(pool_cost.ADDED[NAME].blocks(4), taken, 3) == 12
