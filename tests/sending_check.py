"""What finds planted bugs in the simulator's loop: what the system is given is held against the rules."""

import itertools
import random
from types import SimpleNamespace

import numpy as np

from photonlab.kernels import moldudp64
from photonlab.machine import udp, udp_segments
from photonlab.systems.feed import faults, schedule, sending
from tests.oracle import itch

LONGEST = 65_507
SHARES = (faults.Faults(0.1, 0.1, 0.1), faults.Faults(0.2, 0.2, 0.3))


def buffers_of(box, count):
    """Return the packets of each buffer that a call is given, cut up as the system does it."""
    data, found = box.data.tobytes(), []
    vectors = box.vectors.reshape(-1, 2)
    for header in box.headers.reshape(-1, 8)[: int(count)]:
        at, run = int(header[2] - box.state[udp_segments.VECTORS]) // 16, int(header[3])
        begins = [int(begin - box.state[udp.DATA]) for begin in vectors[at : at + run, 0]]
        whole = b"".join(
            data[begin : begin + int(size)] for begin, size in zip(begins, vectors[at : at + run, 1], strict=True)
        )
        assert len(whole) <= LONGEST
        size = len(whole)
        if header[5]:
            note = box.control[int(header[4] - box.state[udp_segments.CONTROL]) // 8 :]
            assert (int(note[0]), int(note[1])) == (18, 17 | 103 << 32)
            size = int(note[2])
        found.append([whole[begin : begin + size] for begin in range(0, len(whole), size)])
    return found


def rules(packets, line, seed):
    """Return what a line carries, in order, and what it loses."""
    words, sent, lost, held = faults.words_of(SHARES[line], seed, line), [], [], None
    for number, (first, count, packet) in enumerate(packets):
        what = faults.fate(words, np.uint64(number))
        if what == faults.LOST:
            lost.append((first, count))
        elif what == faults.LATE and held is None:
            held = packet
        else:
            sent += [packet] * (1 + (what == faults.REPEATED))
            if held is not None:
                sent.append(held)
                held = None
    return sent + [held] * (held is not None), lost


def compare(messages, most, together):
    """Send messages by two lines, with a system that takes some buffers of each call only."""
    data, words = np.frombuffer(itch.frame(messages), np.uint8), np.zeros(512, np.uint64)
    words[schedule.MODE] = schedule.FLAT_OUT
    ticks = itertools.count(1)
    sending.clock = SimpleNamespace(ticks=lambda: np.uint64(next(ticks)))
    work = sending.make_sending(
        words, session=moldudp64.session_words("DAY1"), most=most, room=1452, together=0, quiet=1 << 40, lines=2
    )
    keys = [faults.words_of(share, 5, i) for i, share in enumerate(SHARES)]
    first = sending.make_line(0, keys[0], None, together, 1000)
    lines, given, refused = (first, sending.make_line(1, keys[1], first, together, 1000)), [[], []], itertools.count()

    def send(box, fd, begin, count, _):
        taken = max(int(count) - next(refused) % 3, 1)
        given[int(fd)] += itertools.chain(*buffers_of(box, taken))
        return np.uint64(taken), np.uint64(0)

    udp.send = send
    assert sending.send_until(*lines, work, data, np.uint64(0), np.uint64(data.size)) == data.size
    sending.beat(*lines, work, np.uint64(moldudp64.END_OF_SESSION))
    packets, at = [], 0
    for begin in range(0, len(messages), most):
        part = messages[begin : begin + most]
        header = b"DAY1".ljust(10) + (begin + 1).to_bytes(8, "big") + len(part).to_bytes(2, "big")
        packets.append((begin + 1, len(part), header + itch.frame(part)))
        at += len(part)
    end = b"DAY1".ljust(10) + (at + 1).to_bytes(8, "big") + b"\xff\xff"
    for i, line in enumerate(lines):
        sent, lost = rules(packets, i, 5)
        assert given[i] == [*sent, end]
        count = int(line.words[sending.LOST_PACKETS])
        assert line.lost.reshape(-1, 2)[:count].tolist() == [list(one) for one in lost]
        assert int(line.words[sending.SENT]) == len(sent) + 1


def check_sending():
    """Packets of all sizes, one message each; then equal ones, more than a buffer takes bytes."""
    draw = random.Random(7)
    compare([bytes([n % 251]) * draw.choice((19, 36, 36, 36, 35)) for n in range(300)], 1, 64)
    compare([bytes([n % 251]) * 50 for n in range(27 * 70)], 27, 64)
