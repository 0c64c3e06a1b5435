"""photonlab report: run the notebooks and build the page."""

import sys

from photonlab.errors import Failure


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    report = commands.add_parser(
        "report",
        help="run the notebooks and build the page",
        description="Run the notebooks one after the other and build one HTML page. Exits with 1 if a notebook fails; "
        "the page then says which and why, and shows no figures.",
    )
    report.add_argument("--profile", default="quick", help="smoke, quick or full (default: quick)")
    report.add_argument("--itch", metavar="FILE", help="measure on this file of ITCH 5.0, not on the synthetic day")
    report.add_argument("--only", action="append", metavar="NOTEBOOK", help="run this notebook only; may be repeated")
    report.add_argument("--out", metavar="DIR", help="the run's folder (default: out/PROFILE)")
    report.add_argument(
        "--parameter", action="append", default=[], metavar="NB.name=value", help="set one parameter of one notebook"
    )
    report.set_defaults(run=_run)


def _run(options):
    from photonlab.lab.publish import profiles, runner
    from photonlab.lab.publish.report import ReportError

    try:
        page = runner.run_report(
            options.profile, options.itch, options.only, options.out, given=profiles.overrides(options.parameter)
        )
    except runner.NotebookFailed as error:
        print(error.details, end="\n" if error.details else "", file=sys.stderr)
        raise Failure(str(error)) from None
    except ReportError as error:
        raise Failure(str(error)) from None
    print(page)
