"""photonlab replay: rebuild the books from a file."""

import json

from photonlab.commands.options import add_capture, add_progress, capture, count, shown, symbols


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    replay = commands.add_parser(
        "replay",
        help="rebuild the books from a file",
        description="Replay a file of ITCH 5.0 (messages behind two bytes of length, or a capture; gzip and zstd too, "
        "and - for standard input) and show what was in it: counts, anomalies and best prices.",
    )
    replay.add_argument("file", metavar="FILE", help="the file to read")
    replay.add_argument("--symbols", type=symbols, help="keep the books of these only, for example AAPL,MSFT")
    replay.add_argument("--top", type=count, default=10, metavar="N", help="show the best prices of N symbols (10)")
    replay.add_argument("--json", action="store_true", help="print JSON in place of tables")
    replay.add_argument("--salvage", action="store_true", help="of a damaged file, take what stands before the damage")
    add_capture(replay)
    add_progress(replay)
    replay.set_defaults(run=_run)


def _run(options):
    import photonlab
    from photonlab import console

    with console.progress(shown(options)) as progress:
        result = photonlab.replay(
            options.file, symbols=options.symbols, salvage=options.salvage, progress=progress, **capture(options)
        )
    print(json.dumps(result.summary(), indent=1) if options.json else console.replay_text(result, options.top))
