"""photonlab verdicts: judge the rows of a run."""

import json
from pathlib import Path


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    verdicts = commands.add_parser(
        "verdicts", help="show the verdicts of a run", description="Judge the rows of a run by the ledger of claims."
    )
    verdicts.add_argument("folder", metavar="RUN", type=Path, help="the run's folder, for example out/quick")
    verdicts.add_argument("--json", action="store_true", help="print JSON in place of a table")
    verdicts.set_defaults(run=_run)


def _run(options):
    from photonlab.lab.publish import report, rundir, summary

    rundir.read_facts(options.folder)
    judged = report.judged(options.folder)
    if options.json:
        print(json.dumps([verdict.as_dict() for verdict in judged], indent=1, ensure_ascii=False))
        return
    frame = summary.everything(judged)
    lines = [frame.drop(columns="Statement").to_string(index=False), "", summary.sentence(judged).replace("**", "")]
    print("\n".join(lines))
