"""Every execution of a small ring: the ring as it is passes, each flaw is found, and the model follows the kernels."""

import random

import numpy as np
import pytest

from photonlab.kernels import ring as rings
from photonlab.lab.studies import ring_model
from photonlab.systems.experiments import model_check
from photonlab.systems.experiments.model_check import CONSUMER, HEAD, PRODUCER, Ring, check
from photonlab.systems.experiments.ring_flaws import ACQUIRE, EARLY, FLAWS, GIVEN_BACK, RELEASE, ROOM, SOUND


@pytest.mark.parametrize(
    "ring",
    [
        Ring(),
        Ring(slots=1, messages=4),
        Ring(slots=2, words=2, messages=5),
        Ring(slots=4, messages=5, batch=3, bits=4),
        Ring(batch=1, messages=6),
        Ring(strong=True),
    ],
)
def test_the_ring_is_right_in_every_execution(ring):
    outcome = check(ring)
    assert outcome.sound and outcome.states > 100 * (ring.slots > 1)


@pytest.mark.parametrize("flaw", FLAWS)
def test_every_flaw_is_a_race(flaw):
    assert "race" in check(Ring(flaw=flaw)).race[-1]


@pytest.mark.parametrize("flaw", [RELEASE, ACQUIRE, EARLY])
def test_flaws_of_the_producers_index_give_wrong_words(flaw):
    outcome = check(Ring(flaw=flaw))
    assert outcome.wrong[-1].startswith("consumer: reads 0 ") and outcome.wrong[-1].endswith("the message is 1")
    assert len(outcome.wrong) == (4 if flaw == EARLY else 5)


@pytest.mark.parametrize("flaw", [RELEASE, ACQUIRE, GIVEN_BACK, ROOM])
def test_weak_orders_do_not_show_where_every_load_takes_the_newest_store(flaw):
    assert check(Ring(flaw=flaw, strong=True)).sound


def test_an_early_publication_shows_on_any_machine():
    assert check(Ring(flaw=EARLY, strong=True)).wrong


def test_an_index_too_short_to_tell_full_from_empty_is_found():
    assert not check(Ring(slots=2, bits=1)).sound


def test_a_side_that_waits_for_ever_is_found(monkeypatch):
    """The consumer never gives back: the producer's last messages find no room."""
    publish = model_check._publish

    def never(ring, state, who, own):
        step = publish(ring, state, who, own)
        if who == PRODUCER:
            return step
        return step._replace(state=step.state._replace(histories=state.histories))

    monkeypatch.setattr(model_check, "_publish", never)
    outcome = check(Ring(messages=4, slots=2))
    assert outcome.stuck and not outcome.sound


def real_step(ring, real, state, draw):
    """Take a random step on the real ring; give the side that took it."""
    who = draw.choice([who for who in (PRODUCER, CONSUMER) if state.sides[who].done < ring.messages])
    side = state.sides[who]
    own = rings.head if who == PRODUCER else rings.tail
    index = np.uint64((int(own.py_func(real)) + side.word) % 2**64)
    place = rings.slot.py_func(real, index)  # an inner kernel cannot be called from Python
    if side.at in ("room", "waiting"):
        wanted = draw.randint(1, min(ring.batch, ring.messages - side.done))
        return who, int((rings.room if who == PRODUCER else rings.waiting)(real, np.uint64(wanted)))
    if side.at == "write":
        real.words[place] = side.done + side.word + 1
    elif side.at == "read":
        return who, int(real.words[place])
    else:
        (rings.publish if who == PRODUCER else rings.release)(real, np.uint64(side.count))
    return who, None


def facts_of(state, who):
    """Give what of a state the real ring has too: the side's copy of the other's index, and both indices."""
    indices = tuple(state.histories[word][-1][0] for word in (HEAD, HEAD + 1))
    return state.sides[who].seen, indices


@pytest.mark.parametrize("seed", range(5))
def test_the_model_follows_the_kernels(seed):
    """A random execution, one step at a time, on the real ring; the model must know each step."""
    draw, ring = random.Random(seed), Ring(slots=4, messages=6, batch=3, bits=4, strong=True)
    real = rings.make_ring(4, 1, start=2**64 - ring.messages // 2)
    state, span, looks = model_check._first(ring), 1 << ring.bits, 0
    while any(side.done < ring.messages for side in state.sides):
        who, result = real_step(ring, real, state, draw)
        at = state.sides[who].at
        own, other = (int(rings.HEAD), int(rings.HEAD + real.apart))[:: 1 if who == PRODUCER else -1]
        seen = int(real.words[own + int(rings.SEEN)]) % span
        indices = tuple(int(real.words[word]) % span for word in sorted((own, other)))
        known = [
            step.state
            for step in model_check._steps(ring, state)
            if step.text.startswith(("producer", "consumer")[who])
        ]
        known = [after for after in known if facts_of(after, who) == (seen, indices)]
        if at in ("room", "waiting"):
            known = [after for after in known if after.sides[who].count == result]
            looks += 1
        elif at == "read":
            assert result == state.sides[who].done + state.sides[who].word + 1
        assert known, (state, who, result)
        state = known[0]
    assert looks >= 4


def test_the_study_tells_of_every_ring():
    found = ring_model.measure(messages=4, words=1)
    frame = ring_model.table(found)
    assert frame["ring"].tolist() == [SOUND, *FLAWS]
    assert frame["data race"].tolist() == ["none", *["after 5 steps"] * 3, *["after 9 steps"] * 2]
    assert "All 5 flaws are found. 4 of them do not show" in ring_model.sentence(found)
    assert f"With {GIVEN_BACK} and {ROOM} the model finds the race" in ring_model.sentence(found)
    assert ring_model.trace(found, RELEASE).count("\n") == 6
    assert "goes wrong" in ring_model.trace(found, SOUND)
