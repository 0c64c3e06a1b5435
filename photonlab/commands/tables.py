"""photonlab tables: turn a day into tables."""

from pathlib import Path

from photonlab.commands.options import add_capture, add_progress, capture, count, shown, symbols


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    tables = commands.add_parser(
        "tables",
        help="turn a day into Parquet tables",
        description="Replay a file of ITCH 5.0 (plain, gzip, zstd, pcap, pcapng, or - for standard input) once, and "
        "write tables as Parquet files into a folder. Without a choice of tables: best bid and offer, and trades.",
    )
    tables.add_argument("file", metavar="FILE", help="the file to read")
    tables.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder for the tables")
    add_choice(tables)
    tables.add_argument("--salvage", action="store_true", help="of a damaged file, take what stands before the damage")
    add_capture(tables)
    add_progress(tables)
    tables.set_defaults(run=_run)


def add_choice(command):
    """Give a command the options that say which tables are wanted, and how.

    Parameters
    ----------
    command : argparse.ArgumentParser
    """
    for name, words in (
        ("bbo", "best bid and offer, on every change"),
        ("trades", "executions, trades and crosses"),
        ("orders", "what became of each order"),
        ("imbalance", "the imbalance feed (messages I)"),
        ("directory", "the stock directory (messages R)"),
        ("halts", "trading actions and operational halts (messages H and h)"),
    ):
        command.add_argument(f"--{name}", action="store_true", help=words)
    command.add_argument("--depth", type=count, metavar="N", help="the best N levels of each side, on every change")
    command.add_argument("--every", metavar="TIME", help="depth at each multiple of TIME instead, for example 1s")
    command.add_argument("--messages", metavar="TYPES", help="messages of these types, for example AFECXDU, or all")
    command.add_argument("--bars", action="append", metavar="SPEC", help="1min, volume:10000 or ticks:100; repeatable")
    command.add_argument("--symbols", type=symbols, help="these only, for example AAPL,MSFT")
    command.add_argument("--date", metavar="DAY", help="such as 2019-12-30 (default: as the file's name has it)")
    command.add_argument("--prices", default="integer", help="integer (units of 0.0001), decimal or float")
    command.add_argument("--compression", default="lz4", help="lz4, zstd, snappy or none (default: lz4)")


def choice(options, default=()) -> dict:
    """Return the arguments of `photonlab.tables` that were chosen.

    Parameters
    ----------
    options : argparse.Namespace
    default : sequence of str
        Tables to make if none was chosen.

    Returns
    -------
    dict
        Empty if no table is wanted.
    """
    tables = ("bbo", "trades", "orders", "imbalance", "directory", "halts", "depth", "bars", "messages")
    chosen = {name: getattr(options, name) for name in (*tables, "every", "symbols", "date") if getattr(options, name)}
    if not any(name in chosen for name in tables):
        chosen |= dict.fromkeys(default, True)
    if not any(name in chosen for name in tables):
        return {}
    if chosen.get("messages") == "all":
        chosen["messages"] = True
    return chosen | {"prices": options.prices, "compression": options.compression}


def _run(options):
    import photonlab
    from photonlab import console

    chosen = choice(options, ("bbo", "trades")) | {"salvage": options.salvage} | capture(options)
    with console.progress(shown(options)) as progress:
        made = photonlab.tables(options.file, out=options.out, progress=progress, **chosen)
    if made.summary.get("damage"):
        print(f"damaged, and salvaged up to there: {made.summary['damage']}")
    if "capture" in made.summary:
        print("\n".join(console.capture_lines(made.summary["capture"])))
    for path in made.paths.values():
        print(path)
    print(f"{made.summary['messages']:,} messages")
