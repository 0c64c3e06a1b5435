"""Captures in plain Python: frames of every kind round a payload, and pcap and pcapng files round the frames."""

import struct

GROUP, PORT = "239.1.1.1", 30001
IPV6_GROUP = b"\xff\x0e" + b"\0" * 13 + b"\7"
NULL, ETHERNET, RAW, LOOP, COOKED, COOKED_2, RAW_IPV4, RAW_IPV6 = 0, 1, 101, 108, 113, 276, 228, 229


def udp(payload, port=PORT):
    return struct.pack(">HHHH", 40000, port, 8 + len(payload), 0) + payload


def ipv4(payload, group=GROUP, port=PORT, options=b"", fragment=0, protocol=17, length=None):
    """Give an IPv4 packet; `fragment` is the field of flags and offset."""
    body = udp(payload, port) if protocol == 17 else payload
    header = 20 + len(options)
    total = header + len(body) if length is None else length
    address = bytes(int(part) for part in group.split("."))
    front = struct.pack(">BBHHHBBH", 0x40 | header // 4, 0, total, 7, fragment, 16, protocol, 0)
    return front + b"\x0a\0\0\1" + address + options + body


def ipv6(payload, group=IPV6_GROUP, port=PORT, extensions=(), protocol=17):
    """Give an IPv6 packet; `extensions` are (number, bytes of the header after its first byte)."""
    body = udp(payload, port) if protocol == 17 else payload
    following = [*[number for number, _ in extensions[1:]], protocol]
    chain = b"".join(bytes([n]) + rest for n, (_, rest) in zip(following, extensions, strict=False))
    first = extensions[0][0] if extensions else protocol
    return struct.pack(">IHBB", 6 << 28, len(chain + body), first, 16) + b"\xfe\x80" + b"\0" * 14 + group + chain + body


def ethernet(ip, tags=(), ethertype=None):
    """Give an Ethernet frame; `tags` are the types of VLAN tags before the packet."""
    kind = ethertype if ethertype is not None else (0x86DD if ip[0] >> 4 == 6 else 0x0800)
    return (
        b"\1\0\x5e\1\1\1"
        + b"\2" * 6
        + b"".join(struct.pack(">HH", tag, 5) for tag in tags)
        + struct.pack(">H", kind)
        + ip
    )


def framed(ip, link):
    """Give a packet in a frame of a link type."""
    kind = 0x86DD if ip[0] >> 4 == 6 else 0x0800
    return {
        ETHERNET: lambda: ethernet(ip),
        COOKED: lambda: struct.pack(">HHH8sH", 0, 1, 6, b"\2" * 8, kind) + ip,
        COOKED_2: lambda: struct.pack(">HHIHBB8s", kind, 0, 1, 1, 0, 6, b"\2" * 8) + ip,
        NULL: lambda: struct.pack("<I", 2 if kind == 0x0800 else 30) + ip,
        LOOP: lambda: struct.pack(">I", 2 if kind == 0x0800 else 24) + ip,
    }.get(link, lambda: ip)()


def pcap(frames, link=ETHERNET, order="<", nanoseconds=False, cut=None, start=1_700_000_000):
    """Give a pcap file; `cut` is the snapshot length. Frames are 1,001 units of time apart."""
    magic, unit = (0xA1B23C4D, 10**9) if nanoseconds else (0xA1B2C3D4, 10**6)
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, cut or 65535, link)]
    for n, frame in enumerate(frames):
        kept = frame[:cut]
        seconds, rest = divmod(start * unit + 1001 * n, unit)
        out += [struct.pack(order + "IIII", seconds, rest, len(kept), len(frame)), kept]
    return b"".join(out)


def block(kind, body, order="<"):
    body += b"\0" * (-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def section(order="<"):
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link=ETHERNET, order="<", resolution=None, snap=0):
    """Give the description of an interface; `resolution` is the byte of if_tsresol."""
    options = b"" if resolution is None else struct.pack(order + "HH4s", 9, 1, bytes([resolution])) + b"\0" * 4
    comment = struct.pack(order + "HH4s", 2, 3, b"eth")
    return block(1, struct.pack(order + "HHI", link, 0, snap) + comment + options, order)


def enhanced(frame, order="<", number=0, time=0, cut=None):
    kept = frame[:cut]
    words = struct.pack(order + "IIIII", number, time >> 32, time & 0xFFFFFFFF, len(kept), len(frame))
    return block(6, words + kept + b"\0" * (-len(kept) % 4) + struct.pack(order + "HH", 0, 0), order)


def obsolete(frame, order="<", number=0, time=0):
    words = struct.pack(order + "HHIIII", number, 0, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
    return block(2, words + frame, order)


def simple(frame, order="<", snap=0):
    return block(3, struct.pack(order + "I", len(frame)) + (frame[:snap] if snap else frame), order)


def pcapng(frames, link=ETHERNET, order="<", resolution=None):
    """Give a pcapng file of one section and interface, with blocks of no interest in it."""
    parts = [section(order), interface(link, order, resolution), block(0xBAD, b"of no interest", order)]
    return b"".join([*parts, *(enhanced(frame, order, time=5 + n) for n, frame in enumerate(frames))])
