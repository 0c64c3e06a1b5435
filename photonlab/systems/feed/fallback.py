"""What a feed runs over where multicast is refused: unicast on this machine, and the sentence that says so."""

from typing import NamedTuple

from photonlab.errors import UserError
from photonlab.machine import multicast

INTERFACE = "lo"


class Usable(NamedTuple):
    """Lines that a feed can have here."""

    lines: list
    """Endpoints, as asked for or in their place."""
    said: str
    """What was refused, why, and what is used instead; empty if nothing was."""


def usable(lines, strict=False) -> Usable:
    """Return lines as they are if this machine gets back what it sends to their groups; else unicast ones.

    Who sends and who receives come to the same lines on one machine: line B has the port behind line A's, since both
    have one address then.

    Parameters
    ----------
    lines : sequence of simulator.Endpoint
    strict : bool
        Whether a refusal is an error.

    Raises
    ------
    UserError
        A refusal, if strict; an interface that there is not, or an address that is none, in any case.
    """
    why = ""
    for line in lines:
        if multicast.is_group(line.address):
            multicast.interface_address(line.interface)  # a wrong name is to be mended, not got round
            why = why or multicast.why_not(line.interface, line.address)
    if not why:
        return Usable(list(lines), "")
    if strict:
        raise UserError(why)
    instead = [
        line._replace(address=multicast.LOOPBACK, port=line.port + i, interface=INTERFACE)
        for i, line in enumerate(lines)
    ]
    ports = " and ".join(str(line.port) for line in instead)
    return Usable(instead, f"{why}; unicast to {multicast.LOOPBACK}, port {ports}, is used instead")
