"""photonlab feed: an exchange's feed over UDP multicast: send a day, serve what was lost, receive and keep the books.

Each runs until its end or Ctrl-C, says what it did in any case, and exits with 130 if it was interrupted.
"""

from photonlab.commands import feed_receive, feed_send


def add(commands):
    """Describe the command to argparse.

    Parameters
    ----------
    commands : argparse subparsers
    """
    feed = commands.add_parser("feed", help="an exchange's feed over UDP multicast: send or receive it")
    feed.set_defaults(leaves_at_once=True)
    parts = feed.add_subparsers(title="parts, each a process of its own", required=True, metavar="PART")
    feed_send.add(parts)
    feed_receive.add(parts)
