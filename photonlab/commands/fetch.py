"""photonlab fetch: list and download days from a public sample server."""

from pathlib import Path

from photonlab.commands.options import add_progress, shown


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    fetch = commands.add_parser(
        "fetch",
        help="list or download days of an exchange's sample server",
        description="Without NAME, list what the server offers; with it, download that file, or go on with it where an "
        "earlier download broke off. Nothing else of photonlab ever opens a connection.",
    )
    fetch.add_argument("names", metavar="NAME", nargs="*", help="files to download")
    fetch.add_argument("--out", metavar="DIR", type=Path, default=Path(), help="where they go (default: here)")
    fetch.add_argument("--from", dest="address", metavar="URL", help="the server's folder (default: NASDAQ's samples)")
    fetch.add_argument("--sizes", action="store_true", help="ask for the size of each file in the list")
    add_progress(fetch)
    fetch.set_defaults(run=_run)


def _run(options):
    from photonlab import console
    from photonlab.systems import sample_server

    if not options.names:
        for offer in sample_server.listing(options.address, options.sizes):
            print(offer.name if offer.size is None else f"{offer.size:>16,}  {offer.name}")
    for name in options.names:
        with console.progress(shown(options)) as progress:
            print(sample_server.fetch(name, options.out, options.address, progress=progress))
