"""A SoupBinTCP client as a stream of messages: login, heartbeats, end of session, and back again when the line breaks.

>>> with SoupBinStream("glimpse.example:26400", "user", "secret", sequence=1) as stream:
...     while count := stream.readinto(buffer):
...         replayer.feed(buffer[:count])
"""

import contextlib
import socket
import time

import numpy as np

from photonlab.errors import UserError
from photonlab.kernels import soupbintcp as soup

HEARTBEAT_SECONDS = 1.0
"""A client must not send nothing for longer (SoupBinTCP 3.00, 2.3.4)."""

SILENCE_SECONDS = 15.0
"""A server that sends nothing for so long is taken for dead."""

_REJECTED = {"A": "not authorised: check username and password", "S": "the session asked for is not available"}
_DATA, _OUT = 1 << 18, 1 << 18


class SoupBinStream:
    """The messages that a SoupBinTCP server sends, each behind its length in 2 bytes, as in NASDAQ's files.

    Parameters
    ----------
    address : str or (str, int)
        Of the server: "host:port", or host and port.
    username, password : str
        At most 6 and 10 ASCII characters.
    session : str
        Empty for the one that is active.
    sequence : int
        Number of the first message wanted; 0 for whichever comes next.
    retries : int
        Attempts to connect anew after a connection was lost or could not be made, before a message arrives again.
    heartbeat, silence : float
        Seconds without a word after which this client sends a heartbeat, and after which the server is taken for dead.
    pause : float
        Seconds before a further attempt.
    timeout : float
        Seconds that a connection and the answer to a login may take.

    Attributes
    ----------
    counters : dict of str to int
    gaps : list of (int, int)
        First number and count of messages that the server would not send again.
    session : str
        That the server logged this client into.
    next_sequence : int
        Number of the next message.
    """

    def __init__(
        self, address, username="", password="", session="", sequence=0, *, retries=3, heartbeat=HEARTBEAT_SECONDS,
        silence=SILENCE_SECONDS, pause=0.2, timeout=5.0,
    ):  # fmt: skip
        self.address = _address(address)
        self.name = f"SoupBinTCP server {self.address[0]}:{self.address[1]}"
        self.session = str(session)
        self.gaps = []
        self.reconnects = 0
        self._username, self._password = _text("username", username, 6), _text("password", password, 10)
        _text("session", session, 10)
        if not 0 <= sequence < 1 << 63:
            raise UserError(f"sequence must be a number of a message from 1 on, or 0, not {sequence}")
        self._state = soup.make_state(sequence)
        self._retries, self._heartbeat, self._silence = retries, heartbeat, silence
        self._pause, self._timeout = pause, timeout
        self._left = retries  # attempts left
        self._socket = None
        self._data, self._out = np.zeros(_DATA, np.uint8), np.zeros(_OUT, np.uint8)
        self._begin = self._end = self._served = self._filled = 0
        self._ended = False
        self._sent = self._heard = 0.0  # when something last was
        self._unframe()  # nothing: compile, or load from the cache, before anybody waits for an answer

    def readinto(self, buffer) -> int:
        """Fill a buffer with the next messages, as they come; they may break off anywhere.

        Parameters
        ----------
        buffer : writable bytes-like or ndarray of uint8

        Returns
        -------
        int
            Bytes written; 0 when the session has ended.

        Raises
        ------
        UserError
            If the server rejects the login, breaks the protocol, or cannot be reached any more.
        """
        target = buffer.view(np.uint8) if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
        while self._served == self._filled:
            if self._ended:
                return 0
            try:
                self._advance()
            except _LostError as error:
                self._again(error)
            except UserError:
                self._drop()
                raise
        size = min(target.size, self._filled - self._served)
        target[:size] = self._out[self._served : self._served + size]
        self._served += size
        return size

    def close(self) -> None:
        """Log out and close the connection."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendall(_packet(b"O"))
        self._drop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def counters(self) -> dict[str, int]:
        """Packets by kind, connections made anew, and messages that the server would not send again."""
        words = self._state[int(soup.MESSAGES) :].tolist()
        found = dict(zip(soup.COUNTERS, words, strict=False))
        return found | {"reconnects": self.reconnects, "missing": sum(count for _, count in self.gaps)}

    @property
    def next_sequence(self) -> int:
        """Number of the next message."""
        return int(self._state[soup.WANTED])

    # -- connection ------------------------------------------------------------------------------------------------

    def _advance(self):
        """Take what has come; wait for more if that is nothing."""
        if self._socket is None:
            self._connect()
        outcome = self._unframe()
        if outcome == soup.LOGIN and not self._filled:
            raise UserError(f"{self.name}: an answer to a login in the middle of the session")
        if outcome == soup.ENDED:
            self._ended = True
            self._drop()
        elif outcome == soup.MORE:
            if not self._filled:
                self._receive(self._heard + self._silence)
            self._keep_alive()
        if self._filled:
            self._left = self._retries

    def _unframe(self):
        outcome, position, filled = soup.unframe(
            self._state, self._data, np.uint64(self._begin), np.uint64(self._end), self._out
        )
        self._begin, self._served, self._filled = int(position), 0, int(filled)
        if outcome == soup.NO_TYPE and not self._filled:  # else first what came before
            raise UserError(
                f"{self.name}: broke the protocol before message {self.next_sequence:,}: a packet of length 0, where "
                "the length counts the packet's type"
            )
        return int(outcome)

    def _receive(self, deadline):
        """Wait for bytes, with a heartbeat whenever one is due."""
        left = self._end - self._begin
        if self._begin:
            self._data[:left] = self._data[self._begin : self._end].copy()
            self._begin, self._end = 0, left
        while True:
            now = time.monotonic()
            if now >= deadline:
                raise _LostError(f"silent for {now - self._heard:.1f} s")
            self._socket.settimeout(max(min(deadline, self._sent + self._heartbeat) - now, 0.001))
            try:
                count = self._socket.recv_into(memoryview(self._data)[self._end :])
            except TimeoutError:
                self._keep_alive()
                continue
            except OSError as error:
                raise _LostError(error.strerror or str(error)) from None
            if not count:
                raise _LostError("closed without an end of session")
            self._end += count
            self._heard = time.monotonic()
            return

    def _keep_alive(self):
        if self._socket is not None and time.monotonic() >= self._sent + self._heartbeat:
            self._send(_packet(b"R"))

    def _send(self, data):
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(data)
        except OSError as error:
            raise _LostError(error.strerror or str(error)) from None
        self._sent = time.monotonic()

    def _connect(self):
        """Connect and log in, from the next message on."""
        try:
            self._socket = socket.create_connection(self.address, self._timeout)
        except OSError as error:
            raise _LostError(error.strerror or str(error)) from None
        self._begin = self._end = 0
        wanted, before = self.next_sequence, int(self._state[soup.NEXT])
        self._heard = time.monotonic()
        self._send(_packet(b"L" + self._username + self._password + self.session.encode().rjust(10) + b"%20d" % wanted))
        while (outcome := self._unframe()) == soup.MORE and self._state[soup.NEXT] == before:
            self._receive(self._heard + self._timeout)
        if outcome != soup.LOGIN or self._state[soup.NEXT] != before:
            self._filled = 0
            raise UserError(f"{self.name}: expected an answer to the login first")
        size = 2 + int.from_bytes(self._data[self._begin : self._begin + 2].tobytes(), "big")
        answer = self._data[self._begin + 2 : self._begin + size].tobytes()
        self._begin += size
        if answer[:1] == b"J":
            self._drop()
            reason = answer[1:2].decode("ascii", "replace")
            raise UserError(f"{self.name}: login rejected: {_REJECTED.get(reason, f'reason {reason!r}')}")
        self._accept(answer, wanted)

    def _accept(self, answer, wanted):
        """Take in session and number of an accepted login."""
        session, number = answer[1:11].decode("ascii", "replace").strip(), answer[11:31].strip()
        if len(answer) != 31 or not number.isdigit():
            raise UserError(f"{self.name}: an accepted login has a session and a number, found {answer[1:40]!r}")
        if self.session.strip() and session != self.session.strip():
            raise UserError(f"{self.name}: logged into session {session!r}, expected {self.session.strip()!r}")
        self.session, number = session, int(number)
        if number >= 1 << 63:
            raise UserError(f"{self.name}: the next message cannot have the number {number}")
        if wanted == 0:
            self._state[soup.WANTED] = number
        elif number > wanted:
            self.gaps.append((wanted, number - wanted))
            self._state[soup.WANTED] = number
        self._state[soup.NEXT] = number

    def _again(self, error):
        """Get ready for a further attempt, if there is one left."""
        self._drop()
        if self._left == 0:
            raise UserError(
                f"{self.name}: {error}; message {self.next_sequence:,} was next, and {self._retries} further attempts "
                "did not bring it"
            ) from None
        self._left -= 1
        self.reconnects += 1
        time.sleep(self._pause)

    def _drop(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class _LostError(Exception):
    """A connection that is of no use any more."""


def _packet(content):
    return len(content).to_bytes(2, "big") + content


def _text(what, text, size):
    if not isinstance(text, str) or not text.isascii() or len(text) > size:
        raise UserError(f"{what} has at most {size} ASCII characters")
    return text.encode().ljust(size)


def _address(address):
    host, port = address if isinstance(address, tuple) else str(address).rpartition(":")[::2]
    if not str(port).isdigit() or not 0 < int(port) < 1 << 16 or not host:
        raise UserError(f"expected the address of a server as host:port, not {address!r}")
    return host.strip("[]"), int(port)
