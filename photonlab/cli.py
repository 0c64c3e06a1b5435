"""The command line: photonlab synth, replay, report, verdicts."""

import argparse
import json
import os
import sys
from importlib import metadata
from pathlib import Path

from photonlab.errors import UserError

USER, FAILED, INTERRUPTED = 2, 1, 130
DESCRIPTION = """\
photonlab puts published claims about low-latency market data to the test on this machine.

  photonlab report                   run the notebooks, build the page out/quick/report.html
  photonlab verdicts out/quick       the verdicts of a run
  photonlab replay FILE              rebuild every order book from a file of ITCH 5.0
  photonlab synth day.itch           write a synthetic trading day
"""


def main(arguments=None):
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Default: those of the process.

    Returns
    -------
    int
        Exit status: 0 done, 1 a notebook failed, 2 the user can mend it (one line on standard error), 130 interrupted.
    """
    options = parser().parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status or 0
    except UserError as error:
        return _complain(error)
    except BrokenPipeError:
        # The reader has gone (`| head`); Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{(error.strerror or str(error)).lower()}")
    except KeyboardInterrupt:
        print("photonlab: interrupted", file=sys.stderr)
        return INTERRUPTED


def _complain(message, status=USER):
    print(f"photonlab: {' '.join(str(message).split())}", file=sys.stderr)
    return status


def parser():
    """Describe the command line.

    Returns
    -------
    argparse.ArgumentParser
    """
    top = argparse.ArgumentParser(
        "photonlab", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"photonlab {metadata.version('photonlab')}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    synth = commands.add_parser(
        "synth",
        help="write a synthetic trading day",
        description="Write a synthetic day of ITCH 5.0, the same bytes for the same seed on every machine, and the "
        "truth about it (counts, final best prices, live orders) beside it as OUT.truth.json.",
    )
    synth.add_argument("out", metavar="OUT", type=Path, help="the file to write")
    synth.add_argument("--messages", type=_count, metavar="N", help="how many messages (default: as the preset has)")
    synth.add_argument("--seed", type=_count, metavar="S", default=1, help="another seed, another day (default: 1)")
    synth.add_argument("--preset", default="small", help="small (400 instruments) or wide (6,000)")
    synth.add_argument("--instruments", type=_count, metavar="K", help="how many instruments, in place of the preset's")
    synth.add_argument("--profile", default="day", help="day, or busiest-second")
    _add_progress(synth)
    synth.set_defaults(run=_synth)

    replay = commands.add_parser(
        "replay",
        help="rebuild the books from a file",
        description="Replay a file of ITCH 5.0 (messages behind two bytes of length; .gz too) and show what was in it: "
        "counts, anomalies and best prices.",
    )
    replay.add_argument("file", metavar="FILE", help="the file to read")
    replay.add_argument("--symbols", type=_symbols, help="keep the books of these only, for example AAPL,MSFT")
    replay.add_argument("--top", type=_count, default=10, metavar="N", help="show the best prices of N symbols (10)")
    replay.add_argument("--json", action="store_true", help="print JSON in place of tables")
    _add_progress(replay)
    replay.set_defaults(run=_replay)

    report = commands.add_parser(
        "report",
        help="run the notebooks and build the page",
        description="Run the notebooks one after the other and build one HTML page. Exits with 1 if a notebook fails; "
        "there is no page then.",
    )
    report.add_argument("--profile", default="quick", help="smoke, quick or full (default: quick)")
    report.add_argument("--itch", metavar="FILE", help="measure on this file of ITCH 5.0, not on the synthetic day")
    report.add_argument("--only", action="append", metavar="NOTEBOOK", help="run this notebook only; may be repeated")
    report.add_argument("--out", metavar="DIR", help="the run's folder (default: out/PROFILE)")
    report.add_argument(
        "--parameter", action="append", default=[], metavar="NB.name=value", help="set one parameter of one notebook"
    )
    report.set_defaults(run=_report)

    verdicts = commands.add_parser(
        "verdicts", help="show the verdicts of a run", description="Judge the rows of a run by the ledger of claims."
    )
    verdicts.add_argument("folder", metavar="RUN", type=Path, help="the run's folder, for example out/quick")
    verdicts.add_argument("--json", action="store_true", help="print JSON in place of a table")
    verdicts.set_defaults(run=_verdicts)
    return top


def _add_progress(command):
    command.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show progress on standard error (default: if that is a terminal)",
    )


def _count(text):
    """A whole number of at least 0; 1e6 and 1_000_000 are the same."""
    from photonlab.lab.publish.parameters import fit

    try:
        number = fit("number", 0, text)
    except UserError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0")
    return number


def _symbols(text):
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("no symbol given")
    return names


def _synth(options):
    from photonlab import console
    from photonlab.systems import synth

    with console.progress(_shown(options)) as progress:
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


def _replay(options):
    import photonlab
    from photonlab import console

    with console.progress(_shown(options)) as progress:
        result = photonlab.replay(options.file, symbols=options.symbols, progress=progress)
    print(json.dumps(result.summary(), indent=1) if options.json else console.replay_text(result, options.top))


def _shown(options):
    return sys.stderr.isatty() if options.progress is None else options.progress


def _report(options):
    from photonlab.lab.publish import profiles, runner
    from photonlab.lab.publish.report import ReportError

    try:
        page = runner.run_report(
            options.profile, options.itch, options.only, options.out, given=profiles.overrides(options.parameter)
        )
    except runner.NotebookFailed as error:
        print(error.details, end="\n" if error.details else "", file=sys.stderr)
        return _complain(error, FAILED)
    except ReportError as error:
        return _complain(error, FAILED)
    print(page)


def _verdicts(options):
    from photonlab.lab.publish import report, rundir, summary

    rundir.read_facts(options.folder)
    judged = report.judged(options.folder)
    if options.json:
        print(json.dumps([verdict.as_dict() for verdict in judged], indent=1, ensure_ascii=False))
        return
    frame = summary.everything(judged)
    lines = [frame.drop(columns="Statement").to_string(index=False), "", summary.sentence(judged).replace("**", "")]
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
