"""Engines that stamp their parts or end after one: the same books and orders as the whole one, as far as they go."""

import numpy as np
import pytest

from photonlab.systems.tick_to_trade import drive, engine, messages, parts, ticks


def flow(count=600, instruments=3):
    return ticks.as_bytes(ticks.flow(np.arange(count, dtype=np.uint32) % instruments, 1))


def run(variant, data):
    out = np.zeros(2 * messages.ORDER_SIZE, np.uint8)
    return int(drive.drive(variant, data, out)), out


def test_an_engine_with_stamps_does_what_the_engine_does_and_stamps_in_order():
    data, plain, other = flow(), engine.make_engine(3), engine.make_engine(3)
    stamped = parts.stamped(other)
    (done, out), (done_too, out_too) = run(plain, data), run(stamped, data)
    assert done == done_too == 600
    assert out.tobytes() == out_too.tobytes()
    assert (plain.state == other.state).all()
    assert (plain.books.words == other.books.words).all()
    row = parts.stamps_of(stamped)[0]
    assert (np.diff(row[: int(parts.SENT)].astype(np.int64)) > 0).all()
    assert row[int(parts.SENT)] == 0


@pytest.mark.parametrize("variant", [parts.Decoding, parts.Booking, parts.Deciding])
def test_an_engine_that_ends_after_a_part_has_done_that_part_and_no_more(variant):
    data, plain, other = ticks.as_bytes(ticks.crossing(600, 3)[0]), engine.make_engine(3), engine.make_engine(3)
    run(plain, data)
    assert engine.counters(plain)["orders"] == 597
    done, out = run(variant(*other), data)
    assert done == 600
    assert not out.any()
    assert engine.counters(other)["orders"] == (engine.counters(plain)["orders"] if variant is parts.Deciding else 0)
    same = (plain.books.words == other.books.words).all()
    assert same == (variant is parts.Deciding)
    assert other.books.words.reshape(-1, 96)[:, 16:].any() == (variant is not parts.Decoding)
    assert bool(other.state[engine.SEEN]) == (variant is not parts.Booking)
