"""Sockets for UDP, multicast or not: made and set in Python, with an error that says what to mend where one cannot be.

A group is joined, and sent to, on an interface that is named: without a name the system asks its routes, and there may
be none. On the loopback interface multicast needs no route and no privilege.
"""

import errno
import fcntl
import ipaddress
import socket
import struct
from typing import NamedTuple

from photonlab.errors import UserError

LOOPBACK = "127.0.0.1"
_ADDRESS_OF_INTERFACE = 0x8915  # SIOCGIFADDR
_MULTICAST_ALL, _FORCED_BUFFER, _BUSY_POLL, _LOSSES, _STAMPS = (
    49,
    33,
    46,
    40,
    35,
)
"""Linux's numbers of options that `socket` does not name."""


class Granted(NamedTuple):
    """What the system made of what was asked for."""

    buffer: int
    """Bytes of the receive buffer, as read back: each packet takes some hundreds beside its own."""
    buffer_asked: int
    busy_poll: str
    """Microseconds of busy polling as read back, or why there is none."""
    losses: bool
    """Whether the socket says how many packets it lost."""
    stamps: bool
    """Whether it says when each packet came."""


def interface_address(name: str) -> str:
    """Return the IPv4 address of an interface.

    Parameters
    ----------
    name : str
        Of an interface, or an address already.

    Raises
    ------
    UserError
        There is no such interface, or it has no IPv4 address.
    """
    if _is_address(name):
        return name
    try:
        socket.if_nametoindex(name)
    except OSError:
        known = ", ".join(known for _, known in socket.if_nameindex())
        raise UserError(f"interface {name}: there is none of this name; there are {known or 'none'}") from None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            packed = fcntl.ioctl(asking, _ADDRESS_OF_INTERFACE, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            raise UserError(f"interface {name}: it has no IPv4 address ({error.strerror})") from None
    return socket.inet_ntoa(packed[20:24])


def is_group(address: str) -> bool:
    """Return whether an IPv4 address is that of a multicast group.

    Raises
    ------
    UserError
        It is no address.
    """
    if not _is_address(address):
        raise UserError(f"{address}: expected an IPv4 address, such as 239.1.1.1")
    return ipaddress.IPv4Address(address).is_multicast


def receiver(address, port, interface=LOOPBACK, *, buffer=8 << 20, losses=True, stamps=False, busy_poll=0, seconds=0.0):
    """Return a socket that receives what is sent to a group, or to an address of this machine, and what was granted.

    Parameters
    ----------
    address : str
        Of the group; any other IPv4 address is received on as it is.
    port : int
    interface : str
        Name or address of the interface on which the group is joined.
    buffer : int
        Bytes of receive buffer to ask for.
    losses, stamps : bool
        Whether the socket shall say how many packets it lost, and when each came (`udp.notes`).
    busy_poll : int
        Microseconds for which the system shall poll the network card; 0 for none.
    seconds : float
        How long a call that waits may wait; 0 for ever.

    Returns
    -------
    tuple of (socket.socket, Granted)

    Raises
    ------
    UserError
        The port is in use, the group cannot be joined, or there is no such interface or address.
    """
    group, at = is_group(address), interface_address(interface)
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        _bind(one, address, port)
        if group:
            _join(one, address, interface, at)
        granted = _ask(one, buffer, losses, stamps, busy_poll)
        if seconds:
            _set_timeout(one, seconds)
    except BaseException:
        one.close()
        raise
    return one, granted


def sender(address, port, interface=LOOPBACK, *, hops=1):
    """Return a socket that sends to a group or an address, connected to it.

    Parameters
    ----------
    address, port, interface
        See `receiver`.
    hops : int
        How many networks packets to a group may cross; this machine gets them in any case.

    Raises
    ------
    UserError
        There is no way to it.
    """
    group, at = is_group(address), interface_address(interface)
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        if group:
            try:
                one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(at))
            except OSError as error:
                raise UserError(f"{address}: cannot be sent to on {interface}: {_reason(error)}") from None
            one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
            one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        try:
            one.connect((address, _port(port)))
        except OSError as error:
            raise UserError(f"{address}:{port}: cannot be sent to on {interface}: {_reason(error)}") from None
    except BaseException:
        one.close()
        raise
    return one


def why_not(interface=LOOPBACK, group="239.1.1.1") -> str:
    """Send one packet to a group on an interface; return why it does not come back, an empty text if it does."""
    try:
        listening, _ = receiver(group, 0, interface, seconds=0.0)
        with listening:
            listening.settimeout(0.5)
            with sender(group, listening.getsockname()[1], interface) as sending:
                sending.send(b"?")
                listening.recv(16)
    except UserError as error:
        return str(error)
    except OSError as error:
        return f"a packet sent to {group} on {interface} does not come back: {_reason(error)}"
    return ""


def _bind(one, address, port):
    try:
        one.bind((address, _port(port)))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"{address}:{port}: the port is in use: another receiver runs, or choose another") from None
        raise UserError(f"{address}:{port}: cannot be received on: {_reason(error)}") from None


def _join(one, address, interface, at):
    try:
        one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(address) + socket.inet_aton(at))
    except OSError as error:
        raise UserError(f"{address}: the group cannot be joined on {interface}: {_reason(error)}") from None
    _try(one, socket.IPPROTO_IP, _MULTICAST_ALL, 0)  # only what this socket has joined, whatever others of the host do


def _ask(one, buffer, losses, stamps, busy_poll):
    if not _try(one, socket.SOL_SOCKET, _FORCED_BUFFER, buffer):
        _try(one, socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    granted = "not asked for"
    if busy_poll:
        refused = _try(one, socket.SOL_SOCKET, _BUSY_POLL, busy_poll) is False
        granted = "refused" if refused else f"{one.getsockopt(socket.SOL_SOCKET, _BUSY_POLL)} µs"
    return Granted(
        one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), buffer, granted,
        losses and _try(one, socket.SOL_SOCKET, _LOSSES, 1), stamps and _try(one, socket.SOL_SOCKET, _STAMPS, 1),
    )  # fmt: skip


def _try(one, level, option, value) -> bool:
    try:
        one.setsockopt(level, option, value)
    except OSError:
        return False
    return True


def _set_timeout(one, seconds):
    """Let a call that waits end after some seconds; Python's own time-out would make the socket non-blocking."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(seconds), int(seconds % 1 * 1e6)))


def _port(port):
    if not 0 <= port < 1 << 16:
        raise UserError(f"a port is a number from 0 to 65,535, not {port}")
    return port


def _is_address(text):
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _reason(error):
    if error.errno == errno.ENETUNREACH:
        return "no route leads there; name the interface"
    if error.errno == errno.ENODEV:
        return "no interface of this machine has this address"
    return (error.strerror or str(error)).lower()
