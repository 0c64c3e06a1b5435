"""photonlab synth: write a synthetic trading day."""

from pathlib import Path

from photonlab.commands.options import add_progress, count, shown


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    synth = commands.add_parser(
        "synth",
        help="write a synthetic trading day",
        description="Write a synthetic day of ITCH 5.0, the same bytes for the same seed on every machine, and the "
        "truth about it (counts, final best prices, live orders) beside it as OUT.truth.json.",
    )
    synth.add_argument("out", metavar="OUT", type=Path, help="the file to write")
    synth.add_argument("--messages", type=count, metavar="N", help="how many messages (default: as the preset has)")
    synth.add_argument("--seed", type=count, metavar="S", default=1, help="another seed, another day (default: 1)")
    synth.add_argument("--preset", default="small", help="small (400 instruments) or wide (6,000)")
    synth.add_argument("--instruments", type=count, metavar="K", help="how many instruments, in place of the preset's")
    synth.add_argument("--profile", default="day", help="day, or busiest-second")
    add_progress(synth)
    synth.set_defaults(run=_run)


def _run(options):
    from photonlab import console
    from photonlab.systems import synth

    with console.progress(shown(options)) as progress:
        truth = synth.write(
            options.out,
            options.messages,
            options.seed,
            options.preset,
            options.instruments,
            profile=options.profile,
            progress=progress,
        )
    print(f"{options.out}: {truth.messages:,} messages, {truth.bytes:,} bytes; the truth: {options.out}.truth.json")
