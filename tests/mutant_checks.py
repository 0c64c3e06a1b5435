"""What finds planted bugs: rooms and replay against their oracles, on little input that reaches every rule.

Only for tests/mutants.py, which runs it in the planted package without a compiler; the rooms' own tests do far more.
"""

import ctypes
import io
import random
from itertools import pairwise

import numpy as np

from photonlab.kernels import (
    arbitration,
    book_views,
    hashing,
    moldudp64,
    order_index,
    pool,
    price_tree,
    ring,
    ring_variants,
    soupbintcp,
)
from photonlab.kernels.sbe import walk
from photonlab.machine import io_uring
from photonlab.machine.libc import address_of
from photonlab.systems.captures import CaptureStream
from photonlab.systems.experiments import copied_stress
from photonlab.systems.replayer import Replayer
from photonlab.systems.tables.recorder import Recorder, Wanted
from photonlab.systems.tick_to_trade import engine as engines
from photonlab.systems.tick_to_trade import loops, messages
from photonlab.systems.transports import link
from tests import drivers, mold_drivers
from tests.cores_check import check_cores
from tests.oracle import book as oracle
from tests.oracle import captures, itch, streams
from tests.oracle import map as map_oracle
from tests.oracle import moldudp64 as mold
from tests.oracle import soupbintcp as soup
from tests.oracle import tables as tables_oracle
from tests.oracle import tick_to_trade as trade_oracle
from tests.oracle.ring import Queue
from tests.receiving_check import check_receiving
from tests.replays import queue_of, rows_of
from tests.sending_check import check_sending

CAPACITY = {"pages": 1 << 9, "levels": 1 << 9, "tree_nodes": 1 << 10}
LOCATES = 4


def check_all(books_first):
    """Run all checks, those first which a bug of a room is likely to fail."""
    rooms = [
        check_packets,
        check_lines,
        check_soup,
        check_captures,
        check_map,
        check_pool,
        check_ring,
        check_copied_ring,
        check_links,
        check_sending,
        check_receiving,
        check_buffers,
        check_index,
        check_tree,
        check_tables,
        check_cores,
        check_engine,
    ]
    replay = [check_rules, check_streams, check_prices, check_chunks]
    for check in replay + rooms if books_first else rooms + replay:
        check()


def check_links():
    """Bytes through a link of rings, in pieces of any size; then orders that differ in one byte each."""
    there = [ring.make_ring(64) for _ in range(2)]
    words, flags = np.zeros((2, 64), np.uint64), np.zeros(64, np.uint64)
    data = np.zeros((2, (1 << 16) + 64), np.uint8)
    one, other = (link.Link(words[i], data[i], there[1 - i], there[i]) for i in (0, 1))
    words[:, int(link.MODE)], flags[0] = link.RINGS, 1
    for piece, size in ((1, 20), (63, 63), (63, 64), (1000, 150), (7, 50)):
        words[0, int(link.PIECE)] = piece
        sent = np.arange(size, dtype=np.uint8) + np.uint8(size)
        at = int(link.OUT_AT)
        data[0, at : at + size + 8] = np.concatenate([sent, np.full(8, 0xEE, np.uint8)])
        assert link.send(one, link.OUT_AT, np.uint64(size), flags)
        assert link.receive(other, link.IN_AT, np.uint64(size), link.ROOM, flags) == size
        assert data[1, :size].tobytes() == sent.tobytes()
        assert link.receive(other, link.IN_AT, np.uint64(1), link.ROOM, flags) == 0
    order = np.arange(100, 152, dtype=np.uint8)
    for at in range(52):
        data[0, :52] = order
        assert not loops._differs(data[0], order, np.uint64(0), np.uint64(52))
        data[0, at] ^= 4
        assert loops._differs(data[0], order, np.uint64(0), np.uint64(52))


def check_buffers():
    """Bytes through buffers handed to a system that takes them in their order, fills them, and says so."""
    of = {width: lambda at, kind=kind: kind.from_address(int(at)) for width, kind in _WIDTHS.items()}
    io_uring.word_at = lambda at: np.uint64(of[64](at).value)
    io_uring.half_word_at = lambda at: np.uint64(of[32](at).value)
    io_uring.set_word_at = lambda at, value: setattr(of[64](at), "value", int(value))
    io_uring._store_release_half = lambda at, value: setattr(of[32](at), "value", int(value))
    io_uring._call = lambda *_: 0
    draw, words, out = random.Random(5), np.zeros(64, np.uint64), np.zeros(64, np.uint8)
    places, *kept = io_uring.register_buffers(io_uring.Ring(0, (), words, ()), 4, 16)
    words[io_uring.BUFFER_TAIL] += np.uint64(65_528)  # near to where 16 bits end
    tail, head = places.view(np.uint16)[7:8], 65_528
    tail += np.uint16(65_528)
    sent, got = b"", b""
    for _ in range(200):
        for _ in range(min(draw.randrange(4), (int(tail[0]) - head) % 65_536)):
            address, how = (int(word) for word in places.reshape(4, 2)[head % 4])
            assert how & 0xFFFFFFFF == 16
            data = draw.randbytes(draw.randrange(1, 17))
            ctypes.memmove(address, data, len(data))
            io_uring.hold(words, np.uint64(len(data)), np.uint64((how >> 32 & 0xFFFF) << 16 | 1))
            sent, head = sent + data, (head + 1) % 65_536
        most = draw.randrange(40)
        came = int(io_uring.take(words, address_of(out), np.uint64(most)))
        assert came == min(most, len(sent) - len(got))
        got += out[:came].tobytes()
        assert got == sent[: len(got)]
    assert len(got) > 2_000 and kept


_WIDTHS = {32: ctypes.c_uint32, 64: ctypes.c_uint64}


def check_packets():
    words, source = moldudp64.session_words("DAY1"), itch.frame([b"a" * n for n in (1, 9, 3, 30, 2)])
    packet, begin, sequence = np.zeros(64, np.uint8), 0, 1
    for expected in (2, 1, 1, 1):
        taken = mold_drivers.pack(
            np.frombuffer(source, np.uint8), np.uint64(begin), np.uint64(2), packet, np.uint64(54), *words,
            np.uint64(sequence),
        )  # fmt: skip
        count, begin, stop = (int(n) for n in taken)
        assert count == expected
        whole = packet[:stop].tobytes()
        for data in (
            whole,
            whole[:-1],
            whole + b"?",
            mold.packet(1, [], count=0xFFFF),
            mold.packet(1, [b"", b"a", b""]),
        ):
            array, status = np.frombuffer(data, np.uint8), mold.parse(data)
            found = mold_drivers.check(array, np.uint64(0), np.uint64(len(data)))
            assert (moldudp64.STATUS[int(found[0])], int(found[2])) == (status[0], len(status[4]))
            size, _ = mold_drivers.copy_blocks(
                array, np.uint64(20), np.uint64(int(found[1])), out := np.zeros(64, np.uint8)
            )
            assert out[: int(size)].tobytes() == itch.frame([one for one in status[4] if one])
        sequence += count
    assert begin == len(source)


def check_lines():
    for seed, window in enumerate((1, 3, 8)):
        draw, stream, twin = random.Random(seed), mold_drivers.Stream(first=1, window=window), mold.Arbiter(1, window)
        arrived = []
        for size in (2, 3):  # the lines put packets together in their own ways
            packets = [mold.packet(n, [b"%d" % i for i in range(n, n + size)]) for n in range(1, 61, size)]
            arrived += [(n * size + draw.random() * 12, one) for n, one in enumerate(packets) if draw.random() < 0.8]
        arrived.sort()
        for data in [*(packet for _, packet in arrived), mold.packet(64, [], count=0xFFFF)]:
            stream.take(data)
            twin.take(data)
            assert int(stream.arbiter.state[arbitration.HELD]) == len(twin.held)
        stream.close()
        twin.close()
        assert stream.delivered == itch.frame([message for _, message in twin.delivered])
        assert stream.gaps == twin.gaps and stream.counters["missing"] == sum(count for _, count in twin.gaps)
        assert stream.counters["duplicates"] == twin.duplicates


def check_soup():
    packets = ((b"S", b"ab"), (b"S", b"c"), (b"H", b""), (b"S", b"de"))
    data = b"".join(soup.packet(kind, payload) for kind, payload in packets)
    state, out = soupbintcp.make_state(2), np.zeros(64, np.uint8)
    state[soupbintcp.NEXT] = 1
    end = soupbintcp.unframe(state, np.frombuffer(data, np.uint8), np.uint64(0), np.uint64(len(data)), out)
    messages, _, taken = soup.unframe(data, 1, 2)
    assert out[: int(end[2])].tobytes() == itch.frame(messages) and int(end[1]) == taken


def check_captures():
    packets = [mold.packet(n, [b"message %d" % n]) for n in (1, 2, 4)]
    fragment = captures.ethernet(captures.ipv4(mold.packet(3, [b"message 3"]), fragment=0x2000))
    frames = [captures.ethernet(captures.ipv4(packets[0]), [0x88A8, 0x8100]) + b"padding", fragment]
    frames += [
        captures.ethernet(captures.ipv4(packets[1], options=b"\1" * 8)),
        captures.framed(captures.ipv4(packets[2]), 1),
    ]
    wanted = itch.frame([b"message %d" % n for n in (1, 2, 4)])
    for data in (captures.pcap(frames), captures.pcapng(frames, order=">", resolution=9)):
        for cut in (0, 1):
            stream, out, buffer = CaptureStream(io.BytesIO(data[: len(data) - cut])), b"", np.zeros(99, np.uint8)
            while count := stream.readinto(buffer):
                out += buffer[:count].tobytes()
            assert out == wanted[: -cut * 11 or None] and bool(stream.short_tail) == bool(cut)
            assert stream.counters["fragments_refused"] == 1 and stream.counters["trailing"] == 0
            assert stream.gaps == ([] if cut else [(3, 1)])
    assert stream.times[0] == 5


def check_map():
    keys = [map_oracle.keys_at((13 + n % 4) % 16, 16, 12)[n] for n in range(12)]
    for seed, largest in ((1, 16), (2, 16), (3, 64)):
        draw = random.Random(seed)
        table, twin = hashing.make_map(largest, min(largest, 16)), map_oracle.Map(largest - 1)
        mine = keys if seed == 1 else list(range(2 * largest))
        for n in range(600):
            key = draw.choice(mine)
            if draw.random() < (0.8 if n < 200 else 0.45):
                assert bool(hashing.insert(table, np.uint64(key), np.uint64(n + 1))) == bool(twin.insert(key, n + 1))
            else:
                assert int(hashing.remove(table, np.uint64(key))) == twin.remove(key)
            assert int(table.state[hashing.USED]) == len(twin.members)
            if n % 4 == 0:
                assert all(int(hashing.find(table, np.uint64(key))) == twin.find(key) for key in mine)
    table = hashing.make_map(1 << 10, 2)
    for key in range(400):
        assert hashing.insert(table, np.uint64(key), np.uint64(1))
    assert sum(int(hashing.probes(table, np.uint64(key))) for key in range(400)) < 800


def check_pool():
    slots = pool.make_pool(6)
    taken = [int(pool.take(slots)) for _ in range(7)]
    assert taken == [1, 2, 3, 4, 5, 0, 0]
    for slot in (2, 4, 5):
        pool.give(slots, np.uint64(slot))
    assert [int(pool.take(slots)) for _ in range(4)] == [5, 4, 2, 0]


def check_copied_ring():
    """Messages copied in and out, told by their sums; and the stress, which must see two that changed places."""
    draw, queue, twin, sent = random.Random(2), ring_variants.make_copied(4), Queue(4), 0
    for _ in range(40):
        count = draw.randrange(1, 7)
        if draw.randrange(2):
            taken = twin.push(list(range(sent, sent + count)))
            assert ring_variants.offer(queue, np.uint64(sent), np.uint64(count)) == taken
            sent += taken
        else:
            expected = twin.pop(count)
            there, total = ring_variants.accept(queue, np.uint64(count))
            assert there == len(expected) and total == sum(8 * value + 28 for value in expected)
    for swapped in (False, True):
        queue, flags, report = ring_variants.make_copied(8), np.ones(64, np.uint64), np.zeros(12, np.uint64)
        flags[0], flags[1] = 0, 1 << 62
        arguments = flags, np.uint64(6), np.uint64(3), np.uint64(1), report
        copied_stress.pour(queue, *arguments)
        slots = queue.ring.words[int(queue.ring.base) :].reshape(-1, 8)
        if swapped:
            slots[[2, 3]] = slots[[3, 2]]
        copied_stress.drain(queue, *arguments)
        assert bool(report[copied_stress.WRONG]) == swapped


def check_ring():
    draw, into = random.Random(1), np.zeros(64, np.uint64)
    for slots, words, start in ((1, 1, 0), (4, 3, 2**64 - 5), (8, 8, 2**64 - 3)):
        one, twin, sent = ring.make_ring(slots, words, start=start), Queue(slots), 0
        for _ in range(60):
            count, source = np.uint64(draw.randrange(9)), np.arange(sent, sent + 64, dtype=np.uint64)
            rows = source[: 8 * words].reshape(-1, words).tolist()
            what = draw.choice(("push", "pop", "push_many", "pop_many"))
            if what.startswith("push"):
                taken = twin.push(rows[:1] if what == "push" else rows[: int(count)])
                passed = (
                    ring.push_many(one, source, np.uint64(0), count)
                    if what == "push_many"
                    else ring.push(one, source, np.uint64(0))
                )
                assert passed == taken
                sent += words * taken
            else:
                expected = twin.pop(1 if what == "pop" else int(count))
                passed = (
                    ring.pop_many(one, into, np.uint64(0), count)
                    if what == "pop_many"
                    else ring.pop(one, into, np.uint64(0))
                )
                assert passed == len(expected)
                assert into[: words * len(expected)].reshape(-1, words).tolist() == expected


class Kept:
    """Takes rows from a recorder as they are."""

    keeps = True

    def __init__(self):
        self.rows = {}

    def batch(self, layout, views, copy):
        names = [column.name for column in layout.columns]
        return [dict(zip(names, (int(v) for v in row), strict=True)) for row in zip(*views, strict=True)]

    def put(self, layout, rows):
        self.rows.setdefault(layout.name, []).extend(rows)


def check_tables():
    """Tables of a little stream, of all instruments and of one that the directory names anew."""
    directory = itch.encode("R", stock_locate=2, stock=b"ONE")
    early = [add(900, b"B", 5, 100, 2, b"OTHER"), directory, add(901, b"S", 5, 200, 2, b"ONE")]
    data = itch.frame(early) + streams.long_stream(8, 350, instruments=4, faults=0.05)
    for symbols in (None, ["ONE"]):
        kept, twin = Kept(), tables_oracle.Tables(2)
        recorder = Recorder(Wanted(bbo=True, trades=True, depth=2, orders=True), symbols=symbols, capacity=CAPACITY)
        recorder.start(kept, kept)
        recorder.feed(data if symbols is None else itch.frame(early))
        recorder.finish()
        if symbols:
            assert [row["sequence"] for row in kept.rows["bbo"]] == [2]
            return
        twin.feed(data)
        expected = [(n, ns, locate, *(value or 0 for value in rest)) for n, ns, locate, *rest in twin.depth_rows]
        assert [tuple(row.values()) for row in kept.rows["depth"]] == expected
        head = [(n, locate, bids or 0, asks or 0) for n, _, locate, _, bids, _, asks in twin.bbo]
        names = ("sequence", "symbol", "bid_shares", "ask_shares")
        assert [tuple(row[name] for name in names) for row in kept.rows["bbo"]] == head
        assert [row["shares"] for row in kept.rows["trades"]] == [row[6] for row in twin.trades]
        lives = sorted((row[1], row[5], row[6], row[7]) for row in twin.all_lives())
        names = ("reference", "shares", "executed", "cancelled")
        assert sorted(tuple(row[name] for name in names) for row in kept.rows["orders"]) == lives


def check_engine():
    rng, mine, his, sent = random.Random(3), engines.make_engine(2), trade_oracle.Engine(2), []
    data, at = b"", [0, 0]
    for time in range(600):
        venue = rng.randrange(2)
        at[venue] += rng.choice([1] * 20 + [0]) if time < 400 else 2
        entries = [
            (rng.randrange(95, 105), rng.randrange(1, 9), rng.randrange(2), 1, rng.randrange(1, 11),
             rng.choice([0, 0, 0, 1, 2, 3, 4]), rng.randrange(2))
            for _ in range(rng.randrange(3))
        ]  # fmt: skip
        data += trade_oracle.tick(time, max(at[venue], 1), venue, entries, spare=time % 3)
        sent += his.on_tick(time, max(at[venue], 1), venue, entries)
    out = np.zeros(1 << 16, np.uint8)
    data = np.frombuffer(bytearray(data), np.uint8)
    following, written, outcome = engines.run(mine, data, np.uint64(0), np.uint64(data.size), out)
    assert (following, outcome) == (data.size, 0) and sent
    assert trade_oracle.orders_of(out[:written].tobytes()) == sent
    assert engines.counters(mine) == his.counts
    index, one = np.zeros((9, 4), np.uint64), trade_oracle.tick(1, 1, 0, [(1, 1, 0, 1, 1, 0, 0)] * 2)[4:]
    for cut in (len(one), len(one) - 1):
        plan = walk.make_plan(messages.TABLES, "BookRefresh")
        rows, _, fault = walk.find(plan, np.frombuffer(one, np.uint8), np.uint64(0), np.uint64(cut), index)
        assert (rows, fault) == ((3, 0) if cut == len(one) else (2, walk.SHORT))
        assert index[:2].tolist() == [[0, 8, 16, 0], [1, 27, 32, 0]]


def check_index():
    draw, live = random.Random(1), set()
    index, marks = order_index.make_order_index(64), np.zeros(16 * 64, np.bool_)
    references = [*range(20), *(n << 14 for n in range(30)), 2**53 + 1, 2**63 + 1, 2**64 - 1]
    for _ in range(600):
        reference = draw.choice(references)
        nodes = np.zeros(1, np.uint64)
        drivers.toggle(index, marks, np.array([reference], np.uint64), nodes)
        live ^= {reference}
        assert nodes[0] and bool(marks[int(nodes[0])]) == (reference in live)
        there = np.array(sorted(live), np.uint64)
        nodes, back = np.zeros((2, len(there)), np.uint64)
        drivers.look_up(index, there, nodes, back)
        assert back.tolist() == there.tolist() and sorted(nodes.tolist()) == np.flatnonzero(marks).tolist()
    for reference in live:
        drivers.toggle(index, marks, np.array([reference], np.uint64), np.zeros(1, np.uint64))
    assert not marks.any() and not index.directory.state[hashing.USED]
    assert index.page_pool.state[pool.LIVE] == index.chunk_pool.state[pool.LIVE] == 0


def check_tree():
    tree, blocks, draw = price_tree.make_price_tree(1 << 10, 2), [{}, {}], random.Random(2)
    for n in range(400):
        side = draw.randrange(2)
        key = draw.choice((draw.getrandbits(32), draw.randrange(1 << 14), draw.randrange(4) << draw.randrange(6, 30)))
        mine = blocks[side]
        if key >> 6 not in mine and (n < 100 or draw.random() < 0.5):
            place = int(drivers.put_block(tree, np.uint64(side), np.uint64(key), np.uint64((key >> 6) + 1)))
            assert place
            mine[key >> 6] = place
        elif mine:
            best = min(mine)
            after = int(drivers.take_block(tree, np.uint64(mine.pop(best))))
            assert after == (min(mine) + 1 if mine else 0)
        if n % 50 == 49:
            drivers.sweep_tree(tree)
            needed = {(s, f, block >> 6 * f) for s in (0, 1) for block in blocks[s] for f in range(1, 6)}
            assert int(tree.nodes.state[pool.LIVE]) == len(needed) and not tree.state[price_tree.IDLE]
        for side in (0, 1):
            walked, place = [], blocks[side][min(blocks[side])] if blocks[side] else 0
            while place:
                walked.append(int(tree.children[int(place)]) - 1)
                place = price_tree.next_block(tree, np.uint64(int(place)))
                assert len(walked) < 2_000
            assert walked == sorted(blocks[side])
    for shift in (12, 18, 24):  # what a side remembers of nodes that were swept and are others now
        tree = price_tree.make_price_tree(1 << 10, 2)
        for side, first in ((0, 0), (1, 8), (0, 0), (1, 20)):
            put = {n << shift: np.uint64(side) for n in range(first, first + 4)}
            places = [drivers.put_block(tree, side, np.uint64(key), np.uint64(7)) for key, side in put.items()]
            assert len({int(place) for place in places}) == 4
            assert all(int(price_tree.next_block(tree, a)) == int(b) for a, b in pairwise(places))
            for place in places[: 4 if side == 0 else 0]:
                drivers.take_block(tree, place)
            drivers.sweep_tree(tree)


def replayed(data, look_ahead=True, cuts=()):
    done = Replayer(look_ahead=look_ahead, capacity=CAPACITY)
    edges = [0, *cuts, len(data)]
    for begin, end in pairwise(edges):
        done.feed(data[begin:end])
    return done


def compare(data, **options):
    """Hold a replay against the oracle, queue by queue; of few instruments, for the views are slow here."""
    done, book = replayed(data, **options), oracle.Book()
    walk = book.feed(data)
    feed = done.feed_state
    assert done.position == walk.consumed and done.ended == walk.ended
    assert {chr(n): int(feed.counts[n]) for n in np.flatnonzero(feed.counts)} == dict(book.counts)
    unknown = {chr(n): int(feed.unknown_reference[n]) for n in np.flatnonzero(feed.unknown_reference)}
    assert unknown == dict(book.unknown_reference)
    odd = {name: n for name, n in done.anomalies.items() if n and name not in ("unknown_reference", "after_end")}
    assert odd == {name: n for name, n in book.anomalies.items() if n and name != "short_tail"}
    assert {int(n): int(feed.volume[n]) for n in np.flatnonzero(feed.volume)} == oracle.nonzero(book.volume)
    names = {int(n): oracle.text(int(feed.names[n]).to_bytes(8, "big")) for n in np.flatnonzero(feed.names)}
    assert names == book.names
    assert done.live_orders == len(book.orders)
    levels = 0
    for locate in book.locates():
        assert locate < LOCATES
        for offset, side in enumerate("BS"):
            number = 2 * locate + offset
            expected = book.depth(locate, side)
            levels += len(expected)
            assert rows_of(book_views.depth, feed.book, number) == expected
            assert queue_of(feed.book, number) == book.queue(locate, side)
    assert int(feed.book.levels.state[pool.LIVE]) == levels
    pages = {(reference >> 2 | (reference & 3) << 62) >> 4 for reference in book.orders}
    assert int(feed.book.index.page_pool.state[pool.LIVE]) == len(pages)
    assert int(feed.book.index.chunk_pool.state[pool.LIVE]) == len({page >> 8 for page in pages})
    return done


def add(reference, side, shares, price, locate=1, stock=b"X"):
    return itch.encode(
        "A", stock_locate=locate, order_reference_number=reference, buy_sell_indicator=side, shares=shares,
        price=price, stock=stock,
    )  # fmt: skip


def message(kind, reference=0, **fields):
    if reference:
        fields["original_order_reference_number" if kind == "U" else "order_reference_number"] = reference
    return itch.encode(kind, stock_locate=1, **fields)


def check_rules():
    """The examples of traps 1 to 4."""
    market = [message("S", event_code=b"Q"), message("Q", cross_type=b"O", cross_shares=5)]
    three = [add(1, b"S", 100, 10), add(2, b"S", 50, 10), add(3, b"S", 7, 12)]
    states = [
        [],
        [message("S", event_code=b"M")],
        [message("H", trading_state=b"H")],
        [message("h", operational_halt_action=b"H")],
    ]
    for rest in (
        [message("U", 1, new_order_reference_number=9, shares=30, price=10)],
        [message("U", 1, new_order_reference_number=2, shares=30, price=11)],
        [message("U", 8, new_order_reference_number=9, shares=30, price=11)],
        [message("E", 1, executed_shares=30), message("E", 1, executed_shares=70), message("E", 1, executed_shares=1)],
        [message("E", 2, executed_shares=51), message("X", 1, canceled_shares=500), message("D", 3)],
        [message("C", 1, executed_shares=30, printable=p, execution_price=12) for p in (b"Y", b"N")],
        [message("X", 1, canceled_shares=30), message("D", 2), message("D", 2)],
        [add(1, b"B", 5, 9), add(2, b"S", 5, 10)],
        [message("R", stock=b"NEW"), add(4, b"B", 5, 9, stock=b"OTHER")],
        [b"zz", three[0] + b"\0", message("D", 1)[:-1], add(6, b"?", 1, 1)],
        *([*market, *state, add(4, b"B", 1, price)] for state in states for price in (9, 10, 11)),
        [*market, add(4, b"B", 1, 11), add(5, b"B", 1, 12), message("D", 4), message("D", 5), add(4, b"B", 1, 10)],
    ):
        compare(itch.frame([*three, *rest]))
        compare(itch.frame([*three, *rest]) + b"\0\0" + itch.frame(three), look_ahead=False)
    for first, second in ((b"B", b"S"), (b"S", b"B")):
        compare(itch.frame([*market, add(1, first, 1, 10), add(2, second, 1, 10)]))


def check_streams():
    for seed, options in enumerate(({}, {"spread": 40}, {"spread": 3000}, {"faults": 0.2})):
        data = streams.long_stream(seed, 500, instruments=LOCATES, **options)
        compare(data, look_ahead=bool(seed % 2))


def check_prices():
    """Sub-penny chains; then far-away prices without end, which need the sweep."""
    draw, live, messages = random.Random(5), [], []
    for n in range(1, 1_200):
        price = 6_400 + draw.randrange(64) if n < 300 else draw.getrandbits(32)
        messages.append(add(n, draw.choice((b"B", b"S")), 1 + n % 7, price, locate=draw.randrange(LOCATES)))
        live.append(n)
        if len(live) > 40:
            messages.append(message("D", live.pop(draw.randrange(len(live)))))
    compare(itch.frame(messages))
    compare(itch.frame(messages[:500]))
    dollar = (9_999, 10_000, 9_998, 15_000, 10_001, 1)
    compare(itch.frame([add(n, side, 5, price) for side in (b"B", b"S") for n, price in enumerate(dollar)]))


def check_chunks():
    data = streams.long_stream(9, 100, instruments=LOCATES)
    for size in (1, 7, 50):
        compare(data, cuts=range(size, len(data), size))
