"""photonlab tables: turn a day into tables."""

from pathlib import Path

from photonlab.commands.options import add_progress, count, shown, symbols


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
    for name, words in (
        ("bbo", "best bid and offer, on every change"),
        ("trades", "executions, trades and crosses"),
        ("orders", "what became of each order"),
        ("imbalance", "the imbalance feed (messages I)"),
        ("directory", "the stock directory (messages R)"),
        ("halts", "trading actions and operational halts (messages H and h)"),
    ):
        tables.add_argument(f"--{name}", action="store_true", help=words)
    tables.add_argument("--depth", type=count, metavar="N", help="the best N levels of each side, on every change")
    tables.add_argument("--every", metavar="TIME", help="depth at each multiple of TIME instead, for example 1s")
    tables.add_argument("--messages", metavar="TYPES", help="messages of these types, for example AFECXDU, or all")
    tables.add_argument("--bars", action="append", metavar="SPEC", help="1min, volume:10000 or ticks:100; repeatable")
    tables.add_argument("--symbols", type=symbols, help="these only, for example AAPL,MSFT")
    tables.add_argument("--date", metavar="DAY", help="such as 2019-12-30 (default: as the file's name has it)")
    tables.add_argument("--prices", default="integer", help="integer (units of 0.0001), decimal or float")
    tables.add_argument("--compression", default="lz4", help="lz4, zstd, snappy or none (default: lz4)")
    tables.add_argument("--salvage", action="store_true", help="of a damaged file, take what stands before the damage")
    add_progress(tables)
    tables.set_defaults(run=_run)


def _run(options):
    import photonlab
    from photonlab import console

    names = ("bbo", "trades", "orders", "imbalance", "directory", "halts", "depth", "every", "bars", "symbols", "date")
    chosen = {name: getattr(options, name) or None for name in (*names, "prices", "compression", "salvage")}
    chosen["messages"] = True if options.messages == "all" else options.messages
    if not any(chosen[name] for name in (*names[:7], "bars", "messages")):
        chosen |= {"bbo": True, "trades": True}
    with console.progress(shown(options)) as progress:
        made = photonlab.tables(options.file, out=options.out, progress=progress, **chosen)
    if made.summary.get("damage"):
        print(f"damaged, and salvaged up to there: {made.summary['damage']}")
    for path in made.paths.values():
        print(path)
    print(f"{made.summary['messages']:,} messages")
