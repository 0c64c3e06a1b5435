"""The command line: finds the command, and says in one line what went wrong. The commands are in `commands/`."""

import argparse
import contextlib
import importlib
import os
import sys
from importlib import metadata

from photonlab.errors import Failure, UserError

USER, FAILED, INTERRUPTED = 2, 1, 130
COMMANDS = ("synth", "replay", "tables", "days", "feed", "fetch", "report", "verdicts", "compare")
"""Rooms of `commands/`, in the order of the help."""
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
    status = _run(options)
    if arguments is None and getattr(options, "leaves_at_once", False):
        _leave(status)
    return status


def _leave(status):
    """End the process without the teardown of interpreter and compiler.

    It takes longer than the tenth of a second in which Ctrl-C ends a feed. The command has closed its files and sockets
    and joined its threads by now; what is printed is written out here.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the reader has gone
            stream.flush()
    os._exit(status)


def _run(options):
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status or 0
    except UserError as error:
        return _complain(error)
    except Failure as error:
        return _complain(error, FAILED)
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
    for command in COMMANDS:
        importlib.import_module(f"photonlab.commands.{command}").add(commands)
    return top


if __name__ == "__main__":
    sys.exit(main())
