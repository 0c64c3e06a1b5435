"""photonlab feed sim and serve: a day sent as an exchange sends it, and sent again where a receiver has lost it."""

import contextlib
import time

from photonlab.commands.feed_options import LOOK, add_lines, lines_of, shares
from photonlab.commands.options import count
from photonlab.errors import UserError

_RESEND_PORT = 30_003
_ANNOUNCED = 1.5  # seconds: a receiver with a full buffer loses what is announced only once


def add(parts):
    """Describe both to argparse."""
    sim = parts.add_parser("sim", help="send a day as MoldUDP64, flat out if no pace is given")
    _add_day(sim, "a day of ITCH 5.0, of any kind that replay reads")
    add_lines(sim)
    pace = sim.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=count, metavar="N", help="N times as fast as the file's own clock")
    pace.add_argument("--rate", type=count, metavar="N", help="N messages a second")
    pace.add_argument("--packets-per-second", type=count, metavar="N", help="N packets a second")
    sim.add_argument("--most", type=count, default=1, metavar="N", help="messages of a packet at most (1)")
    sim.add_argument("--delay", type=float, default=0.0, metavar="S", help="seconds before the first packet (0)")
    sim.add_argument("--schedule", metavar="PATH", help="write when messages are due to this file, for the receiver")
    sim.add_argument("--seed", type=count, default=1, metavar="N", help="of planted faults and a synthetic day (1)")
    for name, said in (("lose", "not sent"), ("repeat", "sent twice"), ("delay-share", "sent behind the next one")):
        sim.add_argument(
            f"--{name}", type=shares, default=(), metavar="A[,B]", help=f"share of each line's packets that are {said}"
        )
    sim.add_argument(
        "--segments", choices=("auto", "off"), default="auto",
        help="whether the system cuts packets out of longer buffers where it can, or gets each by itself (auto)",
    )  # fmt: skip
    sim.add_argument("--planted", metavar="PATH", help="write as JSON which messages were lost on purpose")
    sim.add_argument(
        "--serve", type=count, nargs="?", const=_RESEND_PORT, metavar="PORT",
        help=f"also send again what receivers ask for ({_RESEND_PORT})",
    )  # fmt: skip
    sim.add_argument(
        "--linger", type=float, default=1.0, metavar="S", help="serve until S seconds without a request (1)"
    )
    sim.set_defaults(run=_simulate)
    serve = parts.add_parser("serve", help="send again what receivers ask for")
    _add_day(serve, "the day that is being sent")
    serve.add_argument("--seed", type=count, default=1, metavar="N", help="of a synthetic day (1)")
    serve.add_argument("--session", default="PHOTONLAB", help="its session (PHOTONLAB)")
    serve.add_argument("--address", default="127.0.0.1", help="of this machine, where requests come (127.0.0.1)")
    serve.add_argument("--port", type=count, default=_RESEND_PORT, help=f"({_RESEND_PORT})")
    serve.set_defaults(run=_serve)


def _add_day(part, said):
    part.add_argument("file", metavar="FILE", nargs="?", help=said)
    part.add_argument("--synth", metavar="PRESET", help="in place of a file a synthetic day, small or wide")
    part.add_argument("--messages", type=count, metavar="N", help="of the synthetic day (as the preset has)")


def _day(options):
    from photonlab.systems import synth
    from photonlab.systems.feed import simulator

    if (options.file is None) == (options.synth is None):
        raise UserError("give either a FILE or --synth PRESET")
    path = synth.cached(options.synth, options.messages, options.seed) if options.synth else options.file
    return simulator.load(path)


def _simulate(options):
    from photonlab.machine import udp_segments
    from photonlab.systems.feed import planted, resend, simulator
    from photonlab.systems.feed.faults import Faults

    lines, data = lines_of(options), _day(options)
    each = [(*given, 0.0, 0.0)[:2] for given in (options.lose, options.repeat, options.delay_share)]
    with contextlib.ExitStack() as stack:
        sending = stack.enter_context(
            simulator.Simulator(
                data, lines, speed=options.speed, rate=options.rate, packet_rate=options.packets_per_second,
                most=options.most, planted=[Faults(*line) for line in zip(*each, strict=True)], seed=options.seed,
                schedule_path=options.schedule, segments=1 if options.segments == "off" else udp_segments.MOST,
                announcing=_ANNOUNCED,
            )
        )  # fmt: skip
        server = None
        if options.serve is not None:
            server = stack.enter_context(resend.ResendServer(data, sending.session, port=options.serve))
        try:
            print(f"sending session {sending.session} to {' and '.join(map(str, lines))}", flush=True)
            if server:
                print(f"serving it on 127.0.0.1:{server.port}", flush=True)
            sending.start(options.delay)
            while not sending.wait(LOOK):
                pass
            if server:
                _linger(server, options.linger)
        finally:
            sending.stop()
            _say_sent(sending)
            if server:
                _say_served(server)
            if options.planted:
                planted.write(options.planted, sending)


def _linger(server, seconds):
    """Wait until nobody has asked for so many seconds."""
    before, since = server.counters, time.monotonic()
    while server.running and time.monotonic() - since < seconds:
        time.sleep(LOOK)
        if server.counters != before:
            before, since = server.counters, time.monotonic()


def _say_sent(sending):
    from photonlab.lab.measure import histogram
    from photonlab.systems.feed import planted

    sent = sending.sent()
    print(f"{sent.messages:,} messages in {sent.packets:,} packets, {sent.seconds:.2f} s; {sent.segments}")
    for name, line in zip("AB", sent.lines, strict=False):
        print(f"line {name}: " + ", ".join(f"{what} {number:,}" for what, number in line.items() if number))
    if any(line["lost"] for line in sent.lines):
        missing = planted.missing(sending.lost)
        print(f"lost on every line: {int(missing[:, 1].sum()):,} messages in {len(missing):,} gaps")
    if sent.errors.totals[1]:
        late = histogram.summary(sent.errors, unit="64 ns").cells(64 / 1000, " µs")
        print("sent later than due: " + ", ".join(f"{name} {late[name]}" for name in ("p50", "p99", "max")))


def _serve(options):
    from photonlab.systems.feed import resend

    with resend.ResendServer(_day(options), options.session, options.address, options.port) as server:
        try:
            print(f"serving session {options.session} on {options.address}:{server.port}", flush=True)
            while server.running:
                time.sleep(LOOK)
        finally:
            _say_served(server)


def _say_served(server):
    print(", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in server.counters.items()))
