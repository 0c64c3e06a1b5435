"""Plain programs with TCP sockets that know nothing of the library of test_preload.py: `tcp_programs.py FUNCTION`."""

import asyncio
import contextlib
import ctypes
import os
import socket
import sys


def families(*sockets):
    """Return what the system itself says of sockets, whatever is preloaded."""
    libc, value, size = ctypes.CDLL("libc.so.6"), ctypes.c_int(), ctypes.c_uint(4)
    found = []
    for one in sockets:
        libc.getsockopt(one.fileno(), socket.SOL_SOCKET, socket.SO_DOMAIN, ctypes.byref(value), ctypes.byref(size))
        found.append(socket.AddressFamily(value.value).name)
    return found


def connected():
    """Print what a program sees of its connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        one = socket.create_connection(server.getsockname(), timeout=5)
        other, address = server.accept()
        print(address == one.getsockname() == other.getpeername())
        print(server.getsockname() == one.getpeername() == other.getsockname(), server.getsockname()[0])
        with socket.socket(fileno=os.dup(one.fileno())) as copy:
            print(one.family.name, other.family.name, copy.proto)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        other.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x10)
        print(
            one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), one.gettimeout(), os.get_inheritable(one.fileno())
        )
        one.shutdown(socket.SHUT_WR)
        print(other.recv(5))
        print(*families(server, one, other))
        one.close()
        other.close()


def dribbled():
    """Send bytes one by one, and read them in pieces of 7."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
        for i in range(200):
            one.send(bytes([i]))
        one.close()
        pieces = iter(lambda: other.recv(7), b"")
        print(sum(int.from_bytes(piece, "big") for piece in pieces))


def refused():
    """Try what TCP refuses."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as second:
        port = server.getsockname()[1]
        for attempt in (lambda: second.bind(("127.0.0.1", port)), lambda: second.bind(("192.0.2.1", 0))):
            try:
                attempt()
            except OSError as error:
                print(error.errno)
    with socket.socket() as one:
        for where in (("127.0.0.1", port), ("127.0.0.1", 0)):
            try:
                one.connect(where)
            except OSError as error:
                print(error.errno)
        one.setblocking(False)
        print(one.connect_ex(("127.0.0.1", port)) in (111, 115))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        print(bound.connect_ex(("127.0.0.1", port)))


def mixed():
    """Use sockets that are none of TCP's over IPv4's loopback, beside one that is."""
    with contextlib.ExitStack() as kept:
        udp, sender = (kept.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
        udp.bind(("127.0.0.1", 0))
        sender.sendto(b"datagram", udp.getsockname())
        print(udp.recv(20))
        everywhere = kept.enter_context(socket.create_server(("0.0.0.0", 0)))
        one = kept.enter_context(socket.create_connection(("127.0.0.1", everywhere.getsockname()[1]), timeout=5))
        other, _ = everywhere.accept()
        kept.enter_context(other)
        one.sendall(b"stream")
        print(other.recv(20), *families(udp, everywhere, one, other))
        pair = socket.socketpair()
        print(pair[0].getsockname() == "", pair[0].getpeername() == "")
        for end in pair:
            end.close()
        moved = kept.enter_context(socket.create_server(("127.0.0.2", 0)))
        near = kept.enter_context(socket.create_connection(moved.getsockname()))
        print(near.getsockname()[0], near.getpeername()[0])


def events():
    """Let an event loop serve many connections at once."""

    async def serve(reader, writer):
        while line := await reader.readline():
            writer.write(line[::-1])
            await writer.drain()
        writer.close()

    async def ask(port, number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"%d" % number * 20_000 + b"\n")
        said = await reader.readexactly(20_000 * len(str(number)) + 1)
        writer.close()
        return said[1:2]

    async def both():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        print(await asyncio.gather(*(ask(port, number) for number in range(30))))
        server.close()

    asyncio.run(both())


def asked_by_a_kernel():
    """Print the family of a socket's address as a Numba kernel hears it, and as ctypes does of process and libc."""
    import numba
    import numpy as np
    from numba.core import types

    getsockname = types.ExternalFunction("getsockname", types.int32(types.int32, types.uint64, types.uint64))

    @numba.njit
    def asked(fd, address, size):
        return getsockname(types.int32(fd), types.uint64(address), types.uint64(size))

    with socket.create_server(("127.0.0.1", 0)) as server:
        asks, found = [asked], []
        for name in (None, "libc.so.6"):
            by_ctypes = ctypes.CDLL(name).getsockname
            by_ctypes.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
            asks.append(by_ctypes)
        for ask in asks:
            address, size = np.zeros(128, np.uint8), np.array([128], np.uint32)
            assert ask(server.fileno(), address.ctypes.data, size.ctypes.data) == 0
            found.append(socket.AddressFamily(int(address[:2].view(np.uint16)[0])).name)
        print(*found)


def listen():
    """Say the port, and echo what one client sends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        one, _ = server.accept()
        while data := one.recv(100):
            one.sendall(data)
        print(*families(one), flush=True)


def call(port):
    """Send to a port, and print what comes back."""
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5) as one:
        one.sendall(b"hello")
        print(one.recv(100), *families(one))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
