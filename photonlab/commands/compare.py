"""photonlab compare: two runs or more on one page."""

from pathlib import Path

from photonlab.errors import Failure


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    compare = commands.add_parser(
        "compare",
        help="two runs or more side by side",
        description="Build one page of several runs: verdicts side by side, ratios with intervals, and which claims "
        "travel from machine to machine.",
    )
    compare.add_argument(
        "runs", metavar="RUN", type=Path, nargs="+", help="folders of runs, such as data/reference/quick"
    )
    compare.add_argument(
        "--out", metavar="FILE", type=Path, default=Path("compare.html"), help="the page (compare.html)"
    )
    compare.set_defaults(run=_run)


def _run(options):
    from photonlab.lab.publish import compare, rundir
    from photonlab.lab.publish.report import ReportError

    try:
        page = compare.build(options.runs)
    except ReportError as error:
        raise Failure(str(error)) from None
    options.out.absolute().parent.mkdir(parents=True, exist_ok=True)
    rundir.write_text(options.out.absolute(), page)
    print(options.out)
