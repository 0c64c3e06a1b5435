"""The ring does what a bounded list does, whatever its size, its layout and the index that it starts at."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from photonlab.errors import UserError
from photonlab.kernels import ring
from photonlab.machine.memory import huge_array
from tests.oracle.ring import Queue

U = np.uint64
CANARY = U(0xC0FFEE)
STARTS = (0, 5, 2**32 - 3, 2**53 - 1, 2**63 - 2, 2**64 - 1, 2**64 - 4)


def messages(first, count, words):
    """Distinct messages, one row each."""
    numbers = np.arange(first, first + count, dtype=U)
    return (numbers[:, None] * U(0x9E3779B97F4A7C15) ^ np.arange(words, dtype=U)).reshape(-1)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    slots=st.sampled_from([1, 2, 4, 8, 32]),
    words=st.sampled_from([1, 3, 8, 9, 16]),
    apart=st.sampled_from([1, 4, 8, 16]),
    start=st.sampled_from(STARTS),
    steps=st.lists(st.tuples(st.sampled_from("pqrw"), st.integers(0, 40)), max_size=40),
)
def test_ring_is_a_bounded_queue(slots, words, apart, start, steps):
    one, twin, sent = ring.make_ring(slots, words, apart=apart, start=start), Queue(slots), 0
    into = np.empty(40 * words, U)
    for kind, count in steps:
        source, into[:] = messages(sent, 40, words), CANARY
        rows = list(source.reshape(-1, words).tolist())
        if kind == "p":
            taken = twin.push(rows[:1])
            assert ring.push(one, source, U(0)) == taken
        elif kind == "q":
            taken = twin.push(rows[:count])
            assert ring.push_many(one, source, U(0), U(count)) == taken
        else:
            taken, expected = 0, twin.pop(1 if kind == "r" else count)
            popped = ring.pop(one, into, U(0)) if kind == "r" else ring.pop_many(one, into, U(0), U(count))
            assert popped == len(expected)
            assert into[: popped * words].reshape(-1, words).tolist() == expected
            assert (into[popped * words :] == CANARY).all()
        sent += taken
        assert ring.waiting(one, U(2**40)) == len(twin.messages)
        assert ring.room(one, U(2**40)) == slots - len(twin.messages)


@pytest.mark.parametrize("start", STARTS)
def test_room_and_waiting_never_say_more_than_wanted_and_look_only_when_they_must(start):
    one = ring.make_ring(8, start=start)
    tail_seen = ring.HEAD + ring.SEEN
    assert ring.room(one, U(3)) == 3
    ring.publish(one, U(3))
    assert ring.waiting(one, U(2)) == 2
    ring.release(one, U(2))
    assert ring.room(one, U(5)) == 5
    assert one.words[tail_seen] == U(start), "the producer's old copy of the tail shows room for five"
    assert ring.room(one, U(6)) == 6
    assert one.words[tail_seen] == U((start + 2) % 2**64), "and had to be renewed for six"
    assert ring.room(one, U(100)) == 7
    assert ring.room(one, U(0)) == 0


def test_slots_lie_one_after_the_other_and_within_the_array():
    for words in (8, 9, 12, 16):
        one = ring.make_ring(4, words)
        assert one.words.size == ring.size_in_words(4, words)
        assert int(one.base) % 16 == 0
        source, into = messages(0, 4, words), np.empty(words, U)
        assert ring.push_many(one, source, U(0), U(9)) == 4
        assert (one.words[int(one.base) :] == source).all()
        assert ring.pop(one, into, U(0))
        assert (into == source[:words]).all()


def test_two_views_of_one_buffer_are_one_ring():
    """What a second process does with the shared memory of the first."""
    memory = huge_array(4096, np.uint8)
    memory[:] = 255
    ours = ring.make_ring(16, 9, apart=8, start=2**64 - 2, buffer=memory)
    theirs = ring.attach(memory)
    assert theirs[1:] == ours[1:]
    source, into = messages(3, 10, 9), np.empty(90, U)
    assert ring.push_many(ours, source, U(0), U(10)) == 10
    assert ring.pop_many(theirs, into, U(0), U(100)) == 10
    assert (into == source).all()
    assert ring.room(ours, U(99)) == 16
    assert (memory[ring.size_in_words(16, 9, 8) * 8 :] == 255).all(), "nothing is written behind the ring"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"slots": 0}, "slots, not 0"),
        ({"slots": 24}, "slots, not 24"),
        ({"slots": 2**33}, "slots, not"),
        ({"slots": 8, "words": 0}, "65,536 words, not 0"),
        ({"slots": 8, "apart": 2}, "words apart, not 2"),
        ({"slots": 8, "buffer": bytearray(64)}, "the buffer has 64 bytes|multiple of 128"),
        ({"slots": 8, "buffer": huge_array(64, np.uint64)}, "512 bytes; 8 slots of 64 bytes need 896"),
        ({"slots": 8, "buffer": huge_array(4096, np.uint8)[8:]}, "multiple of 128"),
        ({"slots": 8, "buffer": bytes(4096)}, "writable"),
    ],
)
def test_a_ring_that_cannot_be_is_refused(options, says):
    with pytest.raises(UserError, match=says):
        ring.make_ring(**options)


def test_a_buffer_without_a_ring_is_refused():
    memory = huge_array(512, np.uint64)
    with pytest.raises(UserError, match="holds no ring"):
        ring.attach(memory)
    with pytest.raises(UserError, match="holds no ring"):
        ring.attach(memory[:8])
    ring.make_ring(32, buffer=memory)
    for at, wrong in ((1, 64), (1, 24), (2, 0), (3, 2**40)):
        damaged = huge_array(512, np.uint64)
        damaged[:] = memory
        damaged[at] = wrong
        with pytest.raises(UserError, match="does not fit"):
            ring.attach(damaged)
