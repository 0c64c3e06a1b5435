"""Options that the parts of `photonlab feed` share."""

import argparse

from photonlab.commands.options import count

LOOK = 0.02
"""Seconds between two looks at what a thread has done: Ctrl-C waits no longer."""


def add_lines(part):
    """Give a part the options that name its lines."""
    part.add_argument("--group", default="239.1.1.1", help="of line A; an address that is no group is sent to as it is")
    part.add_argument("--group-b", metavar="GROUP", help="of line B, if there is one")
    part.add_argument("--port", type=count, default=30_001, help="of both lines (30001)")
    part.add_argument("--interface", default="lo", help="name or address of the network interface (lo)")
    part.add_argument(
        "--no-fallback", action="store_true", help="fail where multicast is refused, instead of unicast on this machine"
    )


def lines_of(options):
    """Return the lines that can be had, after saying so if they are not those that were asked for."""
    from photonlab.systems.feed import fallback
    from photonlab.systems.feed.simulator import Endpoint

    groups = [options.group] + ([options.group_b] if options.group_b else [])
    found = fallback.usable([Endpoint(group, options.port, options.interface) for group in groups], options.no_fallback)
    if found.said:
        print(f"no multicast: {found.said}", flush=True)
    return found.lines


def shares(text):
    """Read one share from 0 to 1 or two, for lines A and B."""
    try:
        found = tuple(float(part) for part in text.split(","))
        if len(found) > 2:
            raise ValueError
        return found
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no share from 0 to 1, nor two of them") from None


def host_and_port(text):
    """Read HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT")
    return host, int(port)
