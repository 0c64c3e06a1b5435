"""From a captured frame to the payload of its UDP datagram: link layer, VLAN tags, IPv4 or IPv6, UDP.

Link types by their numbers at tcpdump.org: Ethernet, Linux cooked (both versions), raw IP, and the BSDs' loopback.
A fragment of a datagram is refused: only the first one says which ports it is for.
"""

import numpy as np

from photonlab.machine.bits import load_be16, load_be32, load_be64, load_u8
from photonlab.machine.jit import kernel

_0, _1, _2, _3, _4, _6, _8, _9, _12, _14, _15, _16, _20, _24, _32, _40 = (
    np.uint64(i) for i in (0, 1, 2, 3, 4, 6, 8, 9, 12, 14, 15, 16, 20, 24, 32, 40)
)

NULL, ETHERNET, COOKED, COOKED_2, LOOP, RAW_IPV4, RAW_IPV6 = (np.uint64(i) for i in (0, 1, 113, 276, 108, 228, 229))
RAW, RAW_BSD, RAW_OPENBSD = (np.uint64(i) for i in (101, 12, 14))
LINKS = {int(n) for n in (NULL, ETHERNET, COOKED, COOKED_2, LOOP, RAW_IPV4, RAW_IPV6, RAW, RAW_BSD, RAW_OPENBSD)}
"""Link types that are understood."""

_IPV4, _IPV6, _VLAN, _QINQ, _OLD_QINQ = (np.uint64(i) for i in (0x0800, 0x86DD, 0x8100, 0x88A8, 0x9100))
_NO_ETHERTYPE = np.uint64(1 << 16)
_UDP, _HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION = (np.uint64(i) for i in (17, 0, 43, 44, 51, 60))
_MORE_OR_OFFSET, _IPV6_MORE_OR_OFFSET = np.uint64(0x3FFF), np.uint64(0xFFF9)

# Words of the tally that are counted here
NOT_IP, NOT_UDP, FRAGMENTS, BAD_HEADERS, UNSUPPORTED_LINK, UDP = (np.uint64(i) for i in range(6))


@kernel(inner=True)
def find_udp(tally, data, at, end, link):
    """Find the payload of the datagram in a frame.

    Parameters
    ----------
    tally : ndarray of uint64
        Counts by kind what has none.
    data : ndarray of uint8
    at, end : uint64
        Where the frame stands, as far as it was captured.
    link : uint64
        Link type.

    Returns
    -------
    begin, stop : uint64
        Where the payload stands, as far as it was captured; `stop` is 0 if there is none.
    high, low, port : uint64
        Destination: address (an IPv4 address is all in `low`) and port.
    """
    none = (_0, _0, _0, _0, _0)
    ethertype = _NO_ETHERTYPE
    if link == ETHERNET:
        ip, field = at + _14, at + _12
    elif link == COOKED:
        ip, field = at + _16, at + _14
    elif link == COOKED_2:
        ip, field = at + _20, at
    elif link in (NULL, LOOP):
        ip, field = at + _4, at
    elif link in (RAW, RAW_IPV4, RAW_IPV6, RAW_BSD, RAW_OPENBSD):
        ip, field = at, at
    else:
        tally[UNSUPPORTED_LINK] += _1
        return none
    if ip >= end:
        tally[BAD_HEADERS] += _1
        return none
    if link in (ETHERNET, COOKED, COOKED_2):
        ethertype = load_be16(data, field)
        while ethertype in (_VLAN, _QINQ, _OLD_QINQ):
            if ip + _4 >= end:
                tally[BAD_HEADERS] += _1
                return none
            ethertype = load_be16(data, ip + _2)
            ip += _4
        if ethertype != _IPV4 and ethertype != _IPV6:
            tally[NOT_IP] += _1
            return none
    version = load_u8(data, ip) >> _4
    if version == _4 and ethertype != _IPV6:
        protocol, udp, stop = _over_ipv4(data, ip, end)
    elif version == _6 and ethertype != _IPV4:
        protocol, udp, stop = _over_ipv6(data, ip, end)
    else:
        tally[NOT_IP if ethertype == _NO_ETHERTYPE else BAD_HEADERS] += _1
        return none
    if stop == _0:
        tally[BAD_HEADERS] += _1
        return none
    if protocol == _FRAGMENT:
        tally[FRAGMENTS] += _1
        return none
    if protocol != _UDP:
        tally[NOT_UDP] += _1
        return none
    if udp + _8 > stop or load_be16(data, udp + _4) < _8:
        tally[BAD_HEADERS] += _1
        return none
    tally[UDP] += _1
    stop = min(stop, udp + load_be16(data, udp + _4))
    port = load_be16(data, udp + _2)
    if version == _4:
        return udp + _8, stop, _0, load_be32(data, ip + _16), port
    return udp + _8, stop, load_be64(data, ip + _24), load_be64(data, ip + _32), port


@kernel(inner=True)
def _over_ipv4(data, ip, end):
    """Return protocol (`_FRAGMENT` for any part of a datagram), and where its content begins and stops (0: damaged)."""
    if ip + _20 > end:
        return _0, ip, _0
    header = (load_u8(data, ip) & _15) << _2
    length = load_be16(data, ip + _2)
    length = length if length != _0 else end - ip  # left to the network card, which had not filled it in yet
    if header < _20 or length < header:
        return _0, ip, _0
    protocol = load_u8(data, ip + _9)
    if load_be16(data, ip + _6) & _MORE_OR_OFFSET != _0:
        protocol = _FRAGMENT
    return protocol, ip + header, min(end, ip + length)


@kernel(inner=True)
def _over_ipv6(data, ip, end):
    """Do the same for IPv6, behind its extension headers."""
    if ip + _40 > end:
        return _0, ip, _0
    length = load_be16(data, ip + _4)
    stop = min(end, ip + _40 + length) if length != _0 else end
    protocol, at = load_u8(data, ip + _6), ip + _40
    while True:
        options = protocol in (_HOP_BY_HOP, _ROUTING, _DESTINATION)
        if not options and protocol != _FRAGMENT and protocol != _AUTHENTICATION:
            return protocol, at, stop
        if at + _8 > stop:
            return _0, at, _0
        if protocol == _FRAGMENT and load_be16(data, at + _2) & _IPV6_MORE_OR_OFFSET != _0:
            return _FRAGMENT, at, stop
        following = load_u8(data, at)
        if options:
            at += (load_u8(data, at + _1) + _1) << _3
        elif protocol == _FRAGMENT:  # of one part: whole
            at += _8
        else:
            at += (load_u8(data, at + _1) + _2) << _2
        protocol = following
