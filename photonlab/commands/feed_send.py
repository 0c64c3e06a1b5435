"""photonlab feed sim and serve: a day sent as an exchange sends it, and sent again where a receiver has lost it."""

import time

from photonlab.commands.feed_options import LOOK, add_lines, lines_of, shares
from photonlab.commands.options import count


def add(parts):
    """Describe both to argparse."""
    sim = parts.add_parser("sim", help="send a day as MoldUDP64, flat out if no pace is given")
    sim.add_argument("file", metavar="FILE", help="a day of ITCH 5.0, of any kind that replay reads")
    add_lines(sim)
    pace = sim.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=count, metavar="N", help="N times as fast as the file's own clock")
    pace.add_argument("--rate", type=count, metavar="N", help="N messages a second")
    sim.add_argument("--most", type=count, default=1, metavar="N", help="messages of a packet at most (1)")
    sim.add_argument("--delay", type=float, default=0.0, metavar="S", help="seconds before the first packet (0)")
    sim.add_argument("--schedule", metavar="PATH", help="write when messages are due to this file, for the receiver")
    sim.add_argument("--seed", type=count, default=1, metavar="N", help="of the planted faults (1)")
    for name, said in (("lose", "not sent"), ("repeat", "sent twice"), ("delay-share", "sent behind the next one")):
        sim.add_argument(
            f"--{name}", type=shares, default=(), metavar="A[,B]", help=f"share of each line's packets that are {said}"
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


def _simulate(options):
    from photonlab.machine import udp_segments
    from photonlab.systems.feed import simulator
    from photonlab.systems.feed.faults import Faults

    lines = lines_of(options)
    each = [(*given, 0.0, 0.0)[:2] for given in (options.lose, options.repeat, options.delay_share)]
    data = simulator.load(options.file)
    with simulator.Simulator(
        data, lines, speed=options.speed, rate=options.rate, most=options.most, seed=options.seed,
        planted=[Faults(*line) for line in zip(*each, strict=True)], schedule_path=options.schedule,
        segments=1 if options.segments == "off" else udp_segments.MOST,
    ) as sending:  # fmt: skip
        try:
            print(f"sending session {sending.session} to {' and '.join(map(str, lines))}", flush=True)
            sending.start(options.delay)
            while not sending.wait(LOOK):
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
                time.sleep(LOOK)
        finally:
            print(", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in server.counters.items()))
