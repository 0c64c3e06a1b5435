"""SoupBinTCP in plain Python: packets by `struct`, and a server of threads that follows a script per connection."""

import socket
import struct
import threading
import time


def packet(kind, payload=b""):
    return struct.pack(">Hc", 1 + len(payload), kind) + payload


def accepted(sequence, session=b"DAY1"):
    return packet(b"A", session.rjust(10) + b"%20d" % sequence)


def sequenced(messages):
    return b"".join(packet(b"S", message) for message in messages)


def unframe(data, following=1, wanted=1):
    """Give (messages wanted, counts by type, bytes of whole packets taken) up to an end, a login, a length of 0."""
    messages, counts, at = [], {}, 0
    while at + 3 <= len(data):
        length, kind = struct.unpack_from(">Hc", data, at)
        if length == 0 or at + 2 + length > len(data) or kind in b"AJ":
            break
        payload = data[at + 3 : at + 2 + length]
        at += 2 + length
        counts[kind] = counts.get(kind, 0) + 1
        if kind == b"S":
            if following >= wanted and payload:
                messages.append(payload)
            following += 1
        if kind == b"Z":
            break
    return messages, counts, at


class Connection:
    """One client of the server, for a script."""

    def __init__(self, conn):
        self.socket, self.received = conn, []

    def send(self, data, piece=None):
        """Send data, in pieces of so many bytes if that is given."""
        for at in range(0, len(data), piece or max(len(data), 1)):
            self.socket.sendall(data[at : at + (piece or len(data))])

    def next(self):
        """Give the next packet of the client as (type, payload); (None, b"") when it has gone."""
        head = self._exactly(2)
        body = self._exactly(int.from_bytes(head, "big")) if head else b""
        found = (body[:1], body[1:]) if body else (None, b"")
        self.received.append(found)
        return found

    def login(self):
        """Give username, password, session and number of a login."""
        kind, body = self.next()
        assert kind == b"L" and len(body) == 46
        return body[:6], body[6:16], body[16:26], int(body[26:])

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                return b""
            data += piece
        return data


class Server:
    """Listens on loopback; the n-th connection is served by the n-th script, a function of a `Connection`."""

    def __init__(self, *scripts):
        self.connections, self.errors = [], []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._thread = threading.Thread(target=self._serve, args=(scripts,), daemon=True)
        self._thread.start()

    def _serve(self, scripts):
        for script in scripts:
            conn, _ = self._listener.accept()
            conn.settimeout(5)
            with conn:
                self.connections.append(Connection(conn))
                try:
                    script(self.connections[-1])
                except OSError as error:
                    self.errors.append(error)
                except AssertionError as error:
                    self.errors.append(error)
        self._listener.close()

    def close(self):
        self._thread.join(5)
        assert not self._thread.is_alive()


def wait(seconds):
    time.sleep(seconds)
