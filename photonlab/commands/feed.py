"""photonlab feed: an exchange's feed over UDP multicast: send a day, serve what was lost, receive and keep the books.

Each runs until its end or Ctrl-C, says what it did in any case, and exits with 130 if it was interrupted.
"""

import argparse
import contextlib
import time

from photonlab.commands.options import count, symbols
from photonlab.errors import Failure

_LOOK = 0.02  # seconds between two looks at what a thread has done: Ctrl-C waits no longer


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    feed = commands.add_parser("feed", help="an exchange's feed over UDP multicast: send or receive it")
    parts = feed.add_subparsers(title="parts, each a process of its own", required=True, metavar="PART")
    sim = parts.add_parser("sim", help="send a day as MoldUDP64, flat out if no pace is given")
    sim.add_argument("file", metavar="FILE", help="a day of ITCH 5.0, of any kind that replay reads")
    _add_lines(sim)
    pace = sim.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=count, metavar="N", help="N times as fast as the file's own clock")
    pace.add_argument("--rate", type=count, metavar="N", help="N messages a second")
    sim.add_argument("--most", type=count, default=1, metavar="N", help="messages of a packet at most (1)")
    sim.add_argument("--delay", type=float, default=0.0, metavar="S", help="seconds before the first packet (0)")
    sim.add_argument("--schedule", metavar="PATH", help="write when messages are due to this file, for the receiver")
    sim.add_argument("--seed", type=count, default=1, metavar="N", help="of the planted faults (1)")
    for name, said in (("lose", "not sent"), ("repeat", "sent twice"), ("delay-share", "sent behind the next one")):
        sim.add_argument(
            f"--{name}", type=_shares, default=(), metavar="A[,B]", help=f"share of each line's packets that are {said}"
        )
    sim.add_argument(
        "--segments", choices=("auto", "off"), default="auto",
        help="whether the system cuts packets out of longer buffers where it can, or gets each by itself (auto)",
    )  # fmt: skip
    sim.set_defaults(run=_simulate)
    serve = parts.add_parser("serve", help="send again what receivers ask for")
    serve.add_argument("file", metavar="FILE", help="the day that is being sent")
    serve.add_argument("--session", default="PHOTONLAB", help="its session (PHOTONLAB)")
    serve.add_argument("--address", default="127.0.0.1", help="of this machine, where requests come (127.0.0.1)")
    serve.add_argument("--port", type=count, default=30_003, help="(30003)")
    serve.set_defaults(run=_serve)
    receive = parts.add_parser("receive", help="receive a feed, keep its books, and say each second how late it was")
    _add_lines(receive)
    receive.add_argument("--mode", choices=("spin", "poll", "block"), default="spin", help="how it waits (spin)")
    receive.add_argument("--batch", type=count, default=256, metavar="N", help="packets of one call at most (256)")
    receive.add_argument("--drain", type=count, default=1, metavar="N", help="events the consumer takes at once (1)")
    receive.add_argument("--server", type=_host_and_port, metavar="HOST:PORT", help="to ask for what was lost")
    receive.add_argument("--patience", type=float, default=0.5, metavar="S", help="until a gap is given up (0.5)")
    receive.add_argument("--late", action="store_true", help="begin with the first packet that comes")
    receive.add_argument("--schedule", metavar="PATH", help="count latency from when messages were due, by this file")
    receive.add_argument("--busy-poll", type=count, default=0, metavar="US", help="ask for SO_BUSY_POLL")
    receive.add_argument("--ring", type=count, default=1 << 16, metavar="N", help="slots of the ring (65536)")
    receive.add_argument("--buffer", type=count, default=8 << 20, metavar="BYTES", help="receive buffer to ask for")
    receive.add_argument("--symbols", type=symbols, help="keep the books of these only")
    receive.add_argument("--silence", type=float, default=10.0, metavar="S", help="end after S silent seconds (10)")
    receive.set_defaults(run=_receive)


def _add_lines(part):
    part.add_argument("--group", default="239.1.1.1", help="of line A; an address that is no group is sent to as it is")
    part.add_argument("--group-b", metavar="GROUP", help="of line B, if there is one")
    part.add_argument("--port", type=count, default=30_001, help="of both lines (30001)")
    part.add_argument("--interface", default="lo", help="name or address of the network interface (lo)")


def _lines(options):
    from photonlab.systems.feed.simulator import Endpoint

    groups = [options.group] + ([options.group_b] if options.group_b else [])
    return [Endpoint(group, options.port, options.interface) for group in groups]


def _shares(text):
    try:
        shares = tuple(float(part) for part in text.split(","))
        if len(shares) > 2:
            raise ValueError
        return shares
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no share from 0 to 1, nor two of them") from None


def _host_and_port(text):
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT")
    return host, int(port)


def _simulate(options):
    from photonlab.machine import udp_segments
    from photonlab.systems.feed import simulator
    from photonlab.systems.feed.faults import Faults

    lines = _lines(options)
    shares = [(*given, 0.0, 0.0)[:2] for given in (options.lose, options.repeat, options.delay_share)]
    data = simulator.load(options.file)
    with simulator.Simulator(
        data, lines, speed=options.speed, rate=options.rate, most=options.most, seed=options.seed,
        planted=[Faults(*line) for line in zip(*shares, strict=True)], schedule_path=options.schedule,
        segments=1 if options.segments == "off" else udp_segments.MOST,
    ) as sending:  # fmt: skip
        print(f"sending session {sending.session} to {' and '.join(map(str, lines))}", flush=True)
        sending.start(options.delay)
        try:
            while not sending.wait(_LOOK):
                pass
        finally:
            sending.stop()
            _say_sent(sending.sent())


def _say_sent(sent):
    from photonlab.lab.measure import histogram

    print(f"{sent.messages:,} messages in {sent.packets:,} packets, {sent.seconds:.2f} s; {sent.segments}")
    for name, line in zip("AB", sent.lines, strict=False):
        print(f"line {name}: " + ", ".join(f"{what} {number:,}" for what, number in line.items() if number))
    if sent.errors.totals[1]:
        late = histogram.summary(sent.errors, unit="64 ns").cells(64 / 1000, " µs")
        print("sent later than due: " + ", ".join(f"{name} {late[name]}" for name in ("p50", "p99", "max")))


def _serve(options):
    from photonlab.systems.feed import resend, simulator

    data = simulator.load(options.file)
    with resend.ResendServer(data, options.session, options.address, options.port) as server:
        try:
            print(f"serving session {options.session} on {options.address}:{server.port}", flush=True)
            while server.running:
                time.sleep(_LOOK)
        finally:
            print(", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in server.counters.items()))


def _receive(options):
    from photonlab.systems.feed import consumer, receiver, schedule

    ring = receiver.make_ring(options.ring)
    lines, first = _lines(options), 0 if options.late else 1
    page = schedule.open_schedule(options.schedule) if options.schedule else None
    with contextlib.ExitStack() as stack:
        receiving = stack.enter_context(
            receiver.Receiver(
                ring, lines, mode=options.mode, batch=options.batch, server=options.server, first=first,
                patience=options.patience, buffer=options.buffer, busy_poll=options.busy_poll,
            )
        )  # fmt: skip
        consuming = stack.enter_context(
            consumer.Consumer(ring, receiving.control, page, batch=options.drain, first=first, symbols=options.symbols)
        )
        granted = receiving.granted[0]
        try:
            receiving.start()
            consuming.start()
            print(f"receiving {' and '.join(map(str, lines))}; buffer {granted.buffer:,} bytes", flush=True)
            _watch(receiving, consuming, lines, options.silence)
        finally:
            receiving.close()
            consuming.close()
            _say_received(receiving.received(), consuming)


def _watch(receiving, consuming, lines, silence):
    """Report each second, from a thread that nobody waits for, until the session has ended."""
    began = reported = time.monotonic()
    before = 0
    while not consuming.wait(_LOOK):
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
