"""photonlab feed receive: a feed kept as books, with a line each second on how late it was."""

import contextlib
import json
import time

from photonlab.commands.feed_options import LOOK, add_lines, host_and_port, lines_of
from photonlab.commands.options import count, symbols
from photonlab.errors import Failure


def add(parts):
    """Describe it to argparse."""
    receive = parts.add_parser("receive", help="receive a feed, keep its books, and say each second how late it was")
    add_lines(receive)
    modes = ("spin", "poll", "block", "yield")
    receive.add_argument("--mode", choices=modes, help="how it waits (spin; on fewer than 3 CPUs yield)")
    receive.add_argument("--batch", type=count, default=256, metavar="N", help="packets of one call at most (256)")
    receive.add_argument("--drain", type=count, default=1, metavar="N", help="events the consumer takes at once (1)")
    receive.add_argument("--server", type=host_and_port, metavar="HOST:PORT", help="to ask for what was lost")
    receive.add_argument("--patience", type=float, default=0.5, metavar="S", help="until a gap is given up (0.5)")
    receive.add_argument("--late", action="store_true", help="begin with the first packet that comes")
    receive.add_argument("--schedule", metavar="PATH", help="count latency from when messages were due, by this file")
    receive.add_argument("--busy-poll", type=count, default=0, metavar="US", help="ask for SO_BUSY_POLL")
    receive.add_argument("--ring", type=count, default=1 << 16, metavar="N", help="slots of the ring (65536)")
    receive.add_argument("--buffer", type=count, default=8 << 20, metavar="BYTES", help="receive buffer to ask for")
    receive.add_argument("--symbols", type=symbols, help="keep the books of these only")
    receive.add_argument("--silence", type=float, default=10.0, metavar="S", help="end after S silent seconds (10)")
    receive.add_argument("--gaps", metavar="PATH", help="write as JSON which messages are missing, and why")
    receive.set_defaults(run=_receive)


def _receive(options):
    from photonlab.systems.feed import consumer, receiver, schedule

    ring, (mode, cpu) = receiver.make_ring(options.ring), _placed(options)
    lines, first = lines_of(options), 0 if options.late else 1
    page = schedule.open_schedule(options.schedule) if options.schedule else None
    with contextlib.ExitStack() as stack:
        receiving = stack.enter_context(
            receiver.Receiver(
                ring, lines, mode=mode, batch=options.batch, server=options.server, first=first,
                patience=options.patience, buffer=options.buffer, busy_poll=options.busy_poll, cpu=cpu,
            )
        )  # fmt: skip
        consuming = stack.enter_context(
            consumer.Consumer(
                ring, receiving.control, page, batch=options.drain, first=first, symbols=options.symbols, cpu=cpu,
                yields=mode == "yield",
            )
        )  # fmt: skip
        granted = receiving.granted[0]
        try:
            receiving.start()
            consuming.start()
            named = f"receiving {' and '.join(map(str, lines))}; buffer {granted.buffer:,} bytes"
            print(f"{named}; {_said(mode, cpu)}", flush=True)
            _watch(receiving, consuming, lines, options.silence)
        finally:
            receiving.close()
            consuming.close()
            _say_received(receiving.received(), consuming)
            if options.gaps:
                _write_gaps(options.gaps, consuming)


def _placed(options):
    """Return how it waits, and the CPU that receiver and consumer share where there are too few for three that spin."""
    from photonlab.machine import system
    from photonlab.systems.feed import receiver

    mode = options.mode or receiver.usual_mode()
    shared = mode == "yield" and len(system.allowed_cpus()) == 2
    return mode, system.choose_cpus(1)[0] if shared else None


def _said(mode, cpu):
    """Say how it waits, and where if that was settled."""
    if cpu is None:
        return f"waiting by {mode}"
    return f"2 CPUs, so receiver and consumer take turns on CPU {cpu} (mode {mode}) and leave the other to the exchange"


def _write_gaps(path, consuming):
    counters = consuming.counters
    found = {"messages": counters["messages"], "gaps": consuming.gaps, "gaps_counted": counters["gaps"]}
    with open(path, "w") as file:
        json.dump(found, file)


def _watch(receiving, consuming, lines, silence):
    """Report each second, from a thread that nobody waits for, until the session has ended."""
    began = reported = time.monotonic()
    before = 0
    while not consuming.wait(LOOK):
        now = time.monotonic()
        silent = receiving.received().silent
        if (now - began if silent is None else silent) > silence:
            raise Failure(f"{' and '.join(map(str, lines))}: nothing has come for {silence:g} s; is it being sent?")
        if now - reported >= 1:
            messages = consuming.counters["messages"]
            print(f"{(messages - before) / (now - reported):,.0f} messages/s; {_latencies(consuming)}", flush=True)
            before, reported = messages, now


def _latencies(consuming):
    from photonlab.lab.measure import histogram
    from photonlab.machine import clock

    scale, said = 1e9 / clock.calibrate().hz, []
    for name in ("parse", "total", "since_due"):
        filled = getattr(consuming, name)
        if filled.totals[1]:
            cells = histogram.summary(filled).cells(scale, " ns")
            said.append(f"{name.replace('_', ' ')} p50 {cells['p50']} p99 {cells['p99']}")
    return "; ".join(said) or "no latencies yet"


def _say_received(received, consuming):
    counters = received.counters | consuming.counters
    names = ("messages", "packets", "kernel_drops", "ring_drops", "unknown", "cut", "requests")
    print(", ".join(f"{name.replace('_', ' ')} {counters[name]:,}" for name in names))
    print(_latencies(consuming))
    for first, missing, why in consuming.gaps[:10]:
        print(f"gap: {missing:,} messages from number {first:,} on: {why}")
    if consuming.incomplete:
        print(
            f"no book is known to be right from message {counters['incomplete_from']:,} on: {counters['gaps']:,} gaps"
        )
    elif not received.ended:
        print("stopped before the end of the session")
    else:
        print(f"the session is complete; books: {consuming.books.checksum()}")
