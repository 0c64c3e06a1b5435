"""Put every kernel to work on small input in a process with an empty cache, and say what the compiler made of it.

Run as `python -m tests.kernel_survey` with PHOTONLAB_CACHE on an empty folder; prints JSON: for each kernel by name the
number of its signatures, its variables of inferred floating-point type, and its calls of allocating functions. In a
process of its own, since a kernel that comes from the cache has neither types nor readable code.
"""

import importlib
import io
import json
import pkgutil
import socket
import tempfile
from pathlib import Path

import numpy as np
from numba.core import types

import photonlab
from photonlab.kernels import (
    arena,
    bitmap,
    block_pool,
    book,
    book_handle,
    book_views,
    chained,
    decode,
    framing,
    hash_policies,
    hashing,
    level_book,
    list_walk,
    moldudp64,
    pool,
    ring,
    ring_variants,
    soupbintcp,
)
from photonlab.kernels.sbe import walk
from photonlab.lab.measure import allocation, histogram, noise, openloop
from photonlab.lab.studies import day, own, pool_cost, scorecard, trade_core
from photonlab.machine import clock, jit, latency, libc
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import calling, captures, message_loop, sharded, synth
from photonlab.systems.experiments import (
    allocators,
    attribution,
    copied_stress,
    hash_cost,
    maps,
    market_core,
    own_blocks,
    passes,
    probing,
    ring_granule,
    ring_loops,
    ring_stress,
    sanitized_loops,
    store_buffering,
    touch,
)
from photonlab.systems.feed import consumer, receiver, resend, simulator
from photonlab.systems.tick_to_trade import drive, exchange, loops, messages, parts, ticks
from photonlab.systems.tick_to_trade import engine as engines
from photonlab.systems.transports import echo, kinds
from tests import mold_drivers, own_kernels
from tests.oracle import captures as capture_files
from tests.oracle import streams


def use_parser():
    data = as_bytes_array(streams.long_stream(1, 300, faults=0.2))
    framing.index_messages(data)
    decode.decode_all(data, 0)
    decode.decode_messages(data, "A")
    allocation.allocating_walk(data, 0)


def use_order_map():
    table = hashing.make_map()
    for key in range(1, 2000):
        hashing.insert(table, np.uint64(key), np.uint64(key))
    hashing.find(table, np.uint64(7))
    hashing.probes(table, np.uint64(7))
    hashing.remove(table, np.uint64(7))


def use_allocators():
    """Pool, arena, malloc and the walks along their blocks."""
    blocks, small = block_pool.make_blocks(64), np.zeros(32, np.uint32)
    addresses, spans, seen = (np.zeros(32, np.uint64) for _ in range(3))
    rusage = np.zeros(libc.RUSAGE_WORDS, np.uint64)
    at = libc.address_of(rusage)
    pool.refill(blocks.pool, block_pool.hand_out_order("LIFO", 64, 1))
    allocators.pool_list(blocks, small)
    pool.clear(blocks.pool)
    allocators.pool_fill(blocks, small)
    allocators.pool_churn(blocks, small, np.arange(32, dtype=np.uint32))
    allocators.queue_churn(blocks.words, np.full(1, 33, np.uint32), small, np.arange(32, dtype=np.uint32))
    list_walk.link(blocks.words, small * np.uint32(16))
    list_walk.walk(blocks.words, np.uint64(small[0]) * np.uint64(16), np.uint64(32))
    pool.clear(blocks.pool)
    for loop in (allocators.pool_cycles, allocators.pool_cycles_in_memory):
        loop(blocks, small, 2)
    allocators.bare_cycles(np.zeros(1, np.uint32), blocks.words, np.uint64(0), 10)
    allocators.pool_spans(blocks, small, spans)
    allocators.pool_evidence(blocks, small, spans, seen, rusage, at)
    memory = arena.make_arena(4096)
    allocators.arena_cycles(memory, small, 2)
    arena.rewind(memory, arena.mark(memory))
    libc.usable_sizes(np.full(1, 64, np.uint64), spans)
    allocators.malloc_cycles(addresses, 2)
    for fill in (
        lambda: allocators.malloc_fill(addresses),
        lambda: allocators.malloc_spans(addresses, spans),
        lambda: allocators.malloc_evidence(addresses, spans, seen, seen, rusage, at),
        lambda: allocators.malloc_fill_with_decoys(addresses, spans, np.full(32, 40, np.uint32)),
    ):
        fill()
        allocators.free_all(addresses)
    allocators.free_all(spans)
    allocators.malloc_chunks(addresses, np.uint64(64))
    allocators.free_all(addresses)
    allocators.malloc_fill(addresses)
    allocators.malloc_churn(addresses, np.arange(32, dtype=np.uint32))
    allocators.free_all(addresses)
    own.add_allocator("stack", *own_kernels.STACK)
    blocks = pool_cost.ADDED["stack"].blocks(64)
    own_blocks.fill(blocks, addresses)
    own_blocks.churn(blocks, addresses, np.arange(32, dtype=np.uint32))
    own_blocks.cycles(blocks, addresses, 1)
    own_blocks.spans(pool_cost.ADDED["stack"].blocks(64), addresses, spans)
    own.remove_allocator("stack")


def use_ring():
    """The ring and its variants; where two threads would spin, each side is called with the stop flag up."""
    one, words = ring.make_ring(8), np.zeros(64, np.uint64)
    for into_ring, out_of_it, number in (
        (ring.push, ring.pop, ()),
        (ring.push_many, ring.pop_many, (np.uint64(8),)),
        (ring.room, ring.waiting, ()),
        (ring.publish, ring.release, ()),
    ):
        place = (words, np.uint64(0)) if into_ring in (ring.push, ring.push_many) else (np.uint64(2),)
        into_ring(one, *place, *number)
        out_of_it(one, *place, *number)
    flags, report, count = np.ones(64, np.uint64), np.zeros(4, np.uint64), np.uint64(8)
    for make in ring_variants.MAKERS.values():
        queue = make(8)
        ring_loops.alone(queue, count)
        ring_loops.produce(queue, flags, count, count, report)
        ring_loops.consume(queue, flags, count, count, report)
    ring_loops.call(queue, queue, flags, count, words, report)
    ring_loops.answer(queue, queue, flags, count, count, report)
    ring_loops.serve(words, count, count, count, flags, words, report)
    ring_loops.play_back(words, count, count, count, flags, count, report)
    ring_granule.count_up(words, count, flags, np.uint64(0), count, report)
    ring_stress.pour(one, flags, count, count, count, report)
    ring_stress.drain(one, flags, count, count, count, report)
    report = np.zeros(12, np.uint64)
    copied_stress.pour(ring_variants.make_copied(8), flags, count, count, count, report)
    copied_stress.drain(ring_variants.make_copied(8), flags, count, count, count, report)
    one, buffers = ring.make_ring(8), np.zeros((2, sanitized_loops.BATCH * 8), np.uint64)
    sanitized_loops.produce(one, buffers[0], np.uint64(4))
    assert sanitized_loops.consume(one, buffers[1], np.uint64(4)) == 0
    store_buffering.store_and_look(words, np.uint64(0), True, flags, np.zeros(8, np.uint8))


def use_bitmap():
    prices = bitmap.make_bitmap(1 << 13)
    bits = np.arange(0, 4000, 7, dtype=np.uint64)
    bitmap.churn(prices, bits)
    bitmap.insert(prices, bits[5])
    assert bitmap.contains(prices, bits[5])
    levels = np.zeros(100, np.uint64)
    for search in (bitmap.at_or_above, bitmap.at_or_below):
        search(prices, bits[5])
    for search in (bitmap.linear_at_or_above, bitmap.linear_at_or_below):
        search(levels, np.uint64(50))
    bitmap.remove(prices, bits[5])


def use_feed_formats():
    """MoldUDP64 and arbitration, by the kernels that their tests call them through."""
    source, packet, words = (
        as_bytes_array(streams.long_stream(1, 40)),
        np.zeros(1500, np.uint8),
        moldudp64.session_words("DAY1"),
    )
    one, size = np.uint64(1), np.uint64(packet.size)
    stop = np.uint64(mold_drivers.pack(source, np.uint64(0), np.uint64(40), packet, size, *words, one)[2])
    mold_drivers.check(packet, np.uint64(0), stop)
    mold_drivers.write_header(packet.copy(), *words, one, one)
    mold_drivers.read_header(packet)
    mold_drivers.copy_blocks(packet, np.uint64(20), stop, packet.copy())
    stream = mold_drivers.Stream()
    stream.take(packet[:stop])
    stream.close()
    for kind in (capture_files.pcap, capture_files.pcapng):
        captured = captures.CaptureStream(
            io.BytesIO(kind([capture_files.ethernet(capture_files.ipv4(packet[:stop].tobytes()))]))
        )
        assert captured.readinto(packet.copy())
        assert not captured.readinto(packet.copy())
    soupbintcp.unframe(soupbintcp.make_state(), source, np.uint64(0), np.uint64(0), packet)
    mold_drivers.missing(stream.arbiter)
    mold_drivers.complete(stream.arbiter)


def use_feed():
    """A feed over real sockets, from the simulator to the books."""
    day, ring = synth.generate(500)[0], receiver.make_ring(1 << 10)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        line = simulator.Endpoint(*free.getsockname())
    with resend.ResendServer(day, "DAY1", port=0):
        receiving = receiver.Receiver(ring, [line], mode="poll")
        sending = simulator.Simulator(day, [line], rate=20_000)
        small = {"pages": 1 << 16, "levels": 1 << 16, "tree_nodes": 1 << 16}
        consuming = consumer.Consumer(ring, receiving.control, sending.schedule, capacity=small)
        with sending, receiving, consuming:
            receiving.start()
            consuming.start()
            sending.start()
            assert consuming.wait(20)
            receiving.received()
            receiver.is_set(receiving.control, np.uint64(0))


def use_hash_tables():
    """Put tables of every policy, chained ones, the dict's and the index that stands on a table to work."""
    keys = np.arange(5, 900, 3, dtype=np.uint64)
    every = [maps.Flat(policy, slots=1 << 10) for policy in hash_policies.POLICIES]
    every += [maps.Flat("Fibonacci", "tombstones", 1 << 10), maps.TypedDict(), maps.Paged(1 << 10)]
    every += [maps.Chained(bucketing, 100) for bucketing in chained.BUCKETINGS]
    for one in every:
        one.insert(keys)
        one.churn(keys, keys + np.uint64(1))
        if hasattr(one, "bytes"):
            one.bytes(keys)
        one.clear()
    every[0].longest_run()
    hash_cost.chain(hash_cost.MASK, np.uint64(5), np.uint64(8))
    hash_cost.independent(hash_cost.MASK, np.uint64(5), np.uint64(8))
    data = as_bytes_array(streams.long_stream(2, 2000, faults=0.1))
    feed = message_loop.make_feed(book.make_book(1 << 16, 1 << 16, 1 << 16, "Fibonacci"))
    message_loop.replay(feed, data, np.uint64(0), np.uint64(data.size), True)
    assert book_views.faults(feed.book) == 0


def use_synthetic_day():
    for preset in synth.PRESETS:
        synth.generate(2000, 1, preset)
    synth.statistics(synth.generate(2000)[0])


def use_book():
    data = as_bytes_array(streams.long_stream(2, 2000, faults=0.1))
    for symbols in (None, ["S1"]):
        feed = message_loop.make_feed(book.make_book(1 << 16, 1 << 16, 1 << 16), symbols)
        message_loop.replay(feed, data, np.uint64(0), np.uint64(data.size), True)
        assert book_views.faults(feed.book) == 0


def use_replay():
    """Replay from a file, with everything that a user can ask of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "day.itch")
        path.write_bytes(streams.long_stream(3, 2000, faults=0.1))
        for symbols in (None, ["S1"]):
            done = photonlab.replay(path, symbols=symbols)
            done.summary()
            done.bbo()
            done.bbo("S1")
            done.depth("S1", levels=10)
            done.orders("S1")


@jit.kernel
def ask_everything(books, locate, reference):
    """Every question to the books behind a handle."""
    side = locate << np.uint64(1)
    total = book_handle.bid(books, locate)[0] + book_handle.ask(books, locate)[0] + book_handle.best(books, side)[0]
    total += book_handle.level(books, side, np.uint64(1))[0] + book_handle.depth(books, side, np.uint64(3))
    total += book_handle.order(books, reference)[0] + book_handle.queue_ahead(books, reference)[0]
    return total + book_handle.first_in_queue(books, side)[0] + book_handle.next_in_queue(books, reference)[0]


def use_calls():
    """The replay that calls functions of one's own, the one on several cores, and that of a part."""
    data, capacity = (
        streams.long_stream(4, 2000, faults=0.1),
        {"pages": 1 << 16, "levels": 1 << 16, "tree_nodes": 1 << 16},
    )
    one = calling.CallingReplayer(capacity=capacity)
    two = sharded.Shards(2, capacity=capacity)
    for replayer in (one, two, sharded.Shard(0, 2, capacity=capacity)):
        replayer.feed(data)
        replayer.close()
        replayer.checksum()
    ask_everything(one.calls.books, np.uint64(1), np.uint64(1))


def use_tables():
    """All tables there are, of all instruments and of one, and depth on a grid."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "day.itch")
        path.write_bytes(streams.long_stream(3, 2000, faults=0.1))
        wanted = {"bbo": True, "trades": True, "depth": 2, "orders": True, "messages": True, "bars": "1min"}
        for symbols in (None, ["S1"]):
            photonlab.tables(path, **wanted, symbols=symbols)
        path.write_bytes(synth.generate(2000)[0])
        photonlab.tables(path, depth=2, every="1h")


def use_measuring():
    clock.calibrate()
    clock.floor()
    with noise.Gauge():
        pass
    counts = histogram.empty()
    histogram.add_all(counts, np.arange(1000, dtype=np.uint64))
    histogram.summary(counts)
    latency.measure([1 << 16], rounds=1, steps=100)
    due = openloop.due_times(10, 10)
    openloop.since_due(due, due + np.uint64(1), np.zeros(10, np.uint64))


def use_experiments():
    """Everything that the notebooks on the parser and the order book put to work."""
    today, _ = synth.generate(3000, 1)
    attribution.decode_for_book(today, 0)
    probing.probe_members(probing.probe_day(today).map)
    for one in (passes.CorePass(today, slots=1 << 12), touch.TouchPass(today, by_bitmap=True)):
        one.prepare()
        one()
    core = market_core.make_core(1 << 12)
    market_core.digest(core)
    market_core.queue(core, np.uint64(0), np.zeros(1, np.uint64))
    touch.day_of(today, touch.busiest(today)[0])
    scorecard.measure(day.Day("day", "a day", today, 3000), 1)


def use_tick_to_trade():
    """The engine on order flow of three instruments, and the levels of its books."""
    chosen = np.arange(300, dtype=np.uint32) % 3
    data, engine = ticks.as_bytes(ticks.flow(chosen, 1)), engines.make_engine(3)
    engines.run(engine, data, np.uint64(0), np.uint64(data.size), np.zeros(1 << 14, np.uint8))
    level_book.levels_of(engine.books.words, np.uint64(0), np.uint64(1), np.zeros((10, 3), np.int64))
    work = trade_core.Work(data, 3)
    work()
    for variant in (parts.Decoding, parts.Booking, parts.Deciding):
        drive.drive(variant(*work.engine), data, work.out)
    drive.drive(parts.stamped(work.engine), data, work.out)
    drive.spans(work.engine, data, work.out, np.uint64(8), np.uint64(1), histogram.empty())
    drive.stream(np.zeros(64, np.uint64), np.ones(1, np.uint64))


def use_transports():
    """Both sides of links, each called with the stop flag up: what it does besides, tests/test_transports.py shows."""
    end, flags, report = (
        kinds.make_end(kinds.KINDS["TCP spinning"], (0, 0), 0),
        exchange.idle_flags(),
        np.zeros(64, np.uint64),
    )
    few, none = np.uint64(8), np.zeros(0, np.uint64)
    echo.ping(end.link, flags, few, few, none)
    echo.pong(end.link, flags, few, few)
    for engine in (one := engines.make_engine(1), parts.stamped(one)):
        loops.trade(engine, end.link, flags, few, report)
    given = np.zeros(64, np.uint8)
    loops.quote(end.link, flags, report, given, few, given, few, none, none, report)
    loops.burn(flags)


def use_sbe():
    """The walk over an SBE message, and a field of all entries."""
    tables, index = messages.TABLES, np.zeros((9, 4), np.uint64)
    data = ticks.as_bytes(ticks.crossing(1)[0])[4:]
    rows, _, _ = walk.find(walk.make_plan(tables, "BookRefresh"), data, np.uint64(0), np.uint64(data.size), index)
    level, out = tables.find("BookRefresh.entries.level").code, np.zeros(9, np.int64)
    walk.column(data, index, rows, np.uint64(1), level, np.int64(-1), out)


def import_all():
    """Import every module, so that every kernel is in the register."""
    for module in pkgutil.walk_packages(photonlab.__path__, "photonlab."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def has_floats(kind):
    """Tell whether values of a Numba type are, or hold, floating-point numbers."""
    if isinstance(kind, types.Float | types.Complex):
        return True
    if isinstance(kind, types.Array | types.Optional):
        return has_floats(kind.dtype if isinstance(kind, types.Array) else kind.type)
    return isinstance(kind, types.BaseTuple) and any(has_floats(part) for part in kind)


def survey():
    """Give name → facts of every kernel of the package."""
    facts = {}
    for name, dispatcher in jit.KERNELS.items():
        if not name.startswith("photonlab."):
            continue
        floats, calls = {}, []
        for signature, compiled in dispatcher.overloads.items():
            typed = compiled.type_annotation.typemap
            floats |= {variable: str(kind) for variable, kind in typed.items() if has_floats(kind)}
            calls += allocation.allocation_calls(dispatcher.inspect_llvm(signature))
        facts[name] = {"signatures": len(dispatcher.overloads), "floats": floats, "calls": calls}
    return facts


if __name__ == "__main__":
    import_all()
    for use in (
        use_parser,
        use_order_map,
        use_feed_formats,
        use_feed,
        use_hash_tables,
        use_allocators,
        use_ring,
        use_bitmap,
        use_synthetic_day,
        use_book,
        use_calls,
        use_replay,
        use_tables,
        use_experiments,
        use_tick_to_trade,
        use_transports,
        use_sbe,
    ):
        use()
    use_measuring()
    print(json.dumps(survey(), indent=1))
