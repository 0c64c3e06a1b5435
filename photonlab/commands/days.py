"""photonlab days: many days at once, each to a folder of its own."""

from pathlib import Path

from photonlab.commands.options import add_progress, count, shown
from photonlab.commands.tables import add_choice, choice
from photonlab.errors import Failure


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    days = commands.add_parser(
        "days",
        help="many days at once, on all cores or on a cluster",
        description="Work through files, and folders of files, side by side. Every day gets a folder in OUT, and OUT/"
        "summary.csv a row; a day that is done is not done again. Without a choice of tables each is replayed and "
        "summed up only. Exits with 1 if a day failed; the others are done.",
    )
    days.add_argument("paths", metavar="PATH", nargs="+", help="days, or folders of days")
    days.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder for all of it")
    days.add_argument("--workers", type=count, metavar="N", help="local processes (default: one for each core)")
    days.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers do it, tcp://HOST:8786")
    days.add_argument("--shards", type=count, metavar="K", default=1, help="parts of each day, by instrument (1)")
    days.add_argument("--attempts", type=count, metavar="N", default=3, help="at what may end otherwise next time (3)")
    add_choice(days)
    add_progress(days)
    days.set_defaults(run=_run)


def _run(options):
    from photonlab import console
    from photonlab.systems import days

    with console.progress(shown(options)) as progress:
        frame = days.run(
            options.paths, options.out, shards=max(options.shards, 1), workers=options.workers or None,
            scheduler=options.scheduler, attempts=max(options.attempts, 1), progress=progress, **choice(options),
        )  # fmt: skip
    for name, row in frame.set_index("name").iterrows():
        done = row["status"] != "failed"
        said = f"{int(row['messages']):,} messages in {row['seconds']:.1f} s" if done else row["error"]
        print(f"{name}: {row['status']}: {said}")
    failed = int((frame["status"] == "failed").sum())
    if failed:
        raise Failure(f"{failed} of {len(frame)} failed; {options.out / 'summary.csv'} says why")
