"""Options that several commands share."""

import argparse
import sys

from photonlab.errors import UserError


def add_progress(command):
    """Give a command --progress and --no-progress.

    Parameters
    ----------
    command : argparse.ArgumentParser
    """
    command.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show progress on standard error (default: if that is a terminal)",
    )


def add_capture(command):
    """Give a command --session and --lines; see `capture`.

    Parameters
    ----------
    command : argparse.ArgumentParser
    """
    command.add_argument("--session", metavar="NAME", help="of a capture, follow this session (default: the first)")
    command.add_argument(
        "--lines",
        type=lambda text: [line for line in text.split(",") if line],
        metavar="A[,B]",
        help="of a capture, follow these lines, for example 239.1.1.1:30001 (default: all of the session)",
    )


def capture(options) -> dict:
    """Return what was chosen of a capture, as arguments of `photonlab.replay`.

    Parameters
    ----------
    options : argparse.Namespace
    """
    return {"session": options.session, "lines": options.lines}


def shown(options):
    """Return whether progress is to be shown.

    Parameters
    ----------
    options : argparse.Namespace

    Returns
    -------
    bool
    """
    return sys.stderr.isatty() if options.progress is None else options.progress


def count(text):
    """Read a whole number of at least 0; 1e6 and 1_000_000 are the same.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Raises
    ------
    argparse.ArgumentTypeError
    """
    from photonlab.lab.publish.parameters import fit

    try:
        number = fit("number", 0, text)
    except UserError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0")
    return number


def symbols(text):
    """Read names between commas.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str

    Raises
    ------
    argparse.ArgumentTypeError
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("no symbol given")
    return names
