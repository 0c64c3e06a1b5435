"""A capture as a stream of messages: MoldUDP64 out of pcap or pcapng, lines A and B made one, framed as in a file."""

import ipaddress

import numpy as np

from photonlab.errors import UserError
from photonlab.kernels import arbitration, moldudp64
from photonlab.machine.memory import huge_array
from photonlab.systems.captures import headers, records

_PCAP = {b"\xa1\xb2\xc3\xd4": 1, b"\xd4\xc3\xb2\xa1": 0, b"\xa1\xb2\x3c\x4d": 1, b"\x4d\x3c\xb2\xa1": 0}
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_ORDER_MAGICS = (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a")
MAGIC_BYTES = 12
"""So many first bytes tell for certain whether a file is a capture; 4 do nearly."""

_PCAP_HEADER, _PCAPNG_HEADER = 24, 28
_BUFFER = 2 * records.LARGEST_RECORD
_OUT = 1 << 20

_HERE = {
    "packets": records.PACKETS, "udp": headers.UDP, "mold_packets": records.MOLD, "other_udp": records.OTHER_UDP,
    "not_ip": headers.NOT_IP, "not_udp": headers.NOT_UDP, "fragments_refused": headers.FRAGMENTS,
    "truncated": records.TRUNCATED, "bad_headers": headers.BAD_HEADERS, "unsupported_link": headers.UNSUPPORTED_LINK,
    "unknown_interface": records.UNKNOWN_INTERFACE, "empty_messages": records.EMPTY, "conflicts": records.CONFLICTS,
}  # fmt: skip
_FROM_ARBITER = (
    "messages", "heartbeats", "ends", "duplicates", "gaps", "missing", "late", "held_back", "other_session", "short",
    "trailing", "no_header",
)  # fmt: skip
ANOMALIES = (
    "fragments_refused", "truncated", "bad_headers", "unsupported_link", "unknown_interface", "empty_messages",
    "conflicts", "gaps", "missing", "late", "other_session", "short", "trailing", "no_header", "short_tail",
)  # fmt: skip
"""Counters that are zero for a capture in which nothing is out of order."""


def is_capture(first_bytes) -> bool:
    """Tell whether a file that begins so is a capture.

    Parameters
    ----------
    first_bytes : bytes-like
        The first `MAGIC_BYTES`, or 4 at least.
    """
    first = bytes(first_bytes[:MAGIC_BYTES])
    if first[:4] == _PCAPNG:
        return len(first) < MAGIC_BYTES or first[8:12] in _ORDER_MAGICS
    return first[:4] in _PCAP


class CaptureStream:
    """The messages of one MoldUDP64 session in a capture, in order and each once.

    A destination (address and port) on which packets of MoldUDP64 are seen is a line; all lines that carry the session
    are taken as copies of each other, as A and B are. Whatever else was captured is counted and left out.

    Parameters
    ----------
    file : object with ``readinto``
        Of the capture's bytes, from the first one on; a file, a pipe, or a gzip.GzipFile.
    name : str
        What it is called in errors.
    session : str, optional
        The session to follow; by default the first one met. Packets of others are counted as ``other_session``.
    lines : iterable of str, optional
        The lines to follow, as "239.1.1.1:30001" or "[ff0e::7]:30001"; by default all on which MoldUDP64 is seen.
    window : int
        Packets held back at most while one is missing.

    Attributes
    ----------
    counters : dict of str to int
        Packets and messages by what became of them.
    gaps : list of (int, int)
        First number, and how many messages, of each gap.
    """

    def __init__(self, file, name="capture", session=None, lines=None, window=256):
        self.name = name
        self._wanted = session
        self._readinto = getattr(file, "readinto1", file.readinto)
        words = None if session is None else moldudp64.session_words(session)
        self._arbiter = arbitration.make_arbiter(
            session=words, window=window, slot=records.LARGEST_PACKET, lines=records.LINES
        )
        self._capture = records.make_capture()
        for number, line in enumerate(lines or ()):
            self._capture.lines[4 * number : 4 * number + 4] = _words_of(line, number)
            self._capture.state[records.CHOSEN] = 1
        self._data = huge_array(_BUFFER, np.uint8)
        self._begin = self._end = 0  # of the bytes in `_data` that were not read yet
        self._offset = 0  # of the file, of `_data`'s first byte
        self._out = huge_array(_OUT + records.LARGEST_PACKET, np.uint8)
        self._served = self._filled = 0
        self._started = self._finishing = False
        self._compile()
        self._damage = None
        self.short_tail = 0

    def readinto(self, buffer) -> int:
        """Fill a buffer with the next messages, each behind its length in 2 bytes; they may break off anywhere.

        Parameters
        ----------
        buffer : writable bytes-like or ndarray of uint8

        Returns
        -------
        int
            Bytes written; 0 at the end.

        Raises
        ------
        UserError
            If the capture is damaged, once all messages before the damage have been handed on; or if it is none, or
            holds no MoldUDP64.
        """
        target = buffer.view(np.uint8) if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
        while self._served == self._filled:
            if not self._advance():
                return 0
        size = min(target.size, self._filled - self._served)
        target[:size] = self._out[self._served : self._served + size]
        self._served += size
        return size

    def _advance(self):
        """Fill `_out` anew; return False at the end."""
        self._served = self._filled = 0
        if not self._started:
            self._start()
        if self._finishing:
            self._filled = int(records.finish(self._capture, self._arbiter, self._out))
            if not self._filled:
                self._fail_without_messages()
            return self._filled > 0
        outcome, position, filled, wanted = (
            int(n)
            for n in records.walk(
                self._capture, self._arbiter, self._data, np.uint64(self._begin), np.uint64(self._end), self._out
            )
        )
        self._begin, self._filled = position, filled
        if outcome == records.MORE:
            if not self._read():
                cut = self._capture.state
                skipped = int(cut[records.SKIPPED] - cut[records.SKIP]) if cut[records.SKIP] else 0
                self.short_tail = self._end - self._begin or skipped
                self._finishing = True
        elif outcome != records.FULL:
            self._finishing = True
            self._note_damage(outcome, wanted)
        return True

    def _note_damage(self, outcome, wanted):
        """Note damage, to be told of once what was held back is handed on."""
        if outcome == records.CONFLICT:
            self._damage = (
                f"{self.name}: offset {self._offset + self._begin}: {', '.join(self.lines)} carry session "
                f"{self.session!r}, but not the same messages in it: expected copies of one stream; choose its lines"
            )
            return
        where = f"{self.name}: damaged at offset {self._offset + self._begin}"
        after = f"after {int(self._capture.state[records.PACKETS]):,} packets"
        what = {
            records.NO_MAGIC: "expected the byte-order magic 1a2b3c4d of a pcapng section",
            records.BAD_LENGTH: f"expected the length of a packet or block, found {wanted:,}",
            records.BAD_END: f"expected a block's length of {wanted:,} again at its end",
        }[outcome]
        self._damage = f"{where}, {after}: {what}"

    def _read(self):
        """Read more behind what is left; return False if there is no more."""
        if self._begin:
            left = self._end - self._begin
            self._data[:left] = self._data[self._begin : self._end].copy()
            self._offset += self._begin
            self._begin, self._end = 0, left
        count = self._readinto(memoryview(self._data)[self._end :])
        self._end += count or 0
        return bool(count)

    def _compile(self):
        """Compile the kernels, or load them from the cache, before anybody looks at the clock."""
        records.begin_pcap(self._capture, self._data)
        records.walk(self._capture, self._arbiter, self._data, np.uint64(0), np.uint64(0), self._out)
        records.finish(self._capture, self._arbiter, self._out)

    def _start(self):
        """Read the file's header."""
        self._started = True
        while self._end < _PCAPNG_HEADER and self._read():
            pass
        head = self._data[: self._end].tobytes()[:_PCAPNG_HEADER]
        if not is_capture(head):
            raise UserError(
                f"{self.name}: not a capture: offset 0: expected the magic number of a pcap or pcapng, found "
                f"{head[:4].hex(' ') or 'nothing'}"
            )
        state = self._capture.state
        if head[:4] == _PCAPNG:
            state[records.PCAPNG] = 1
            return
        if len(head) < _PCAP_HEADER:
            raise UserError(f"{self.name}: cut off at offset {len(head)}, within the 24 bytes of a pcap's header")
        state[records.BIG] = _PCAP[head[:4]]
        records.begin_pcap(self._capture, self._data)
        self._begin = _PCAP_HEADER
        link = int(state[records.LINK])
        if link not in headers.LINKS:
            raise UserError(
                f"{self.name}: link type {link} at offset 20: expected Ethernet (1), Linux cooked (113, 276), raw IP "
                "(101) or loopback (0)"
            )

    def _fail_without_messages(self):
        """Tell of the damage that ended the walk, or that there was nothing to find."""
        if self._damage:
            raise UserError(self._damage)
        counted = self.counters
        if self._wanted and not counted["messages"] and counted["other_session"]:
            state = self._arbiter.state
            other = moldudp64.session_text(state[arbitration.OTHER_HIGH], state[arbitration.OTHER_LOW])
            raise UserError(f"{self.name}: no session {self._wanted!r}; there is {other!r}")
        if counted["mold_packets"] == 0:
            kinds = ["not_ip", "not_udp", "other_udp", "fragments_refused", "bad_headers", "unsupported_link"]
            seen = ", ".join(f"{counted[kind]:,} {kind.replace('_', ' ')}" for kind in kinds if counted[kind])
            raise UserError(
                f"{self.name}: no MoldUDP64 in {counted['packets']:,} packets{f' ({seen})' if seen else ''}: expected "
                "UDP datagrams with a session, a sequence number, a count and so many messages"
            )

    @property
    def counters(self) -> dict[str, int]:
        """What was met, by kind."""
        found = {name: int(self._capture.state[word]) for name, word in _HERE.items()}
        arbiter = arbitration.counters(self._arbiter)
        return found | {name: arbiter[name] for name in _FROM_ARBITER} | {"short_tail": self.short_tail}

    @property
    def anomalies(self) -> dict[str, int]:
        """Those counters that are zero if nothing is out of order."""
        counted = self.counters
        return {name: counted[name] for name in ANOMALIES}

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """First number, and how many messages, of each gap."""
        return arbitration.gaps(self._arbiter)

    @property
    def session(self) -> str:
        """Name of the session that is followed; empty before the first packet."""
        state = self._arbiter.state
        started = state[arbitration.STARTED]
        return moldudp64.session_text(state[arbitration.HIGH], state[arbitration.LOW]) if started else ""

    @property
    def next_sequence(self) -> int:
        """Number that the next message of the session has."""
        return int(self._arbiter.state[arbitration.EXPECTED])

    @property
    def lines(self) -> dict[str, dict[str, int]]:
        """By destination: packets, messages, those first there, those left out by jumps, those behind."""
        kinds = ("packets", "messages", "first", "left_out", "behind")
        found = {}
        for number, (high, low, port, used) in enumerate(self._capture.lines.reshape(-1, 4).tolist()):
            if used:
                words = self._arbiter.lines.reshape(-1, arbitration.LINE_WORDS)[number].tolist()
                found[_destination(high, low, port)] = dict(zip(kinds, words[1:6], strict=True))
        return found

    @property
    def times(self) -> tuple[int, int] | None:
        """When the first packet and the last were captured, in ns since 1970; None if the capture does not tell."""
        state = self._capture.state
        if not state[records.FIRST_TIME]:
            return None
        pairs = ((records.FIRST_TIME, records.FIRST_TICKS), (records.LAST_TIME, records.LAST_TICKS))
        first, last = (_nanoseconds(int(state[time]), int(state[ticks])) for time, ticks in pairs)
        return first, last


def _destination(high, low, port):
    if high:
        return f"[{ipaddress.IPv6Address(high << 64 | low)}]:{port}"
    return f"{ipaddress.IPv4Address(low)}:{port}"


def _words_of(line, number):
    """Return a line's words in the table of lines."""
    host, _, port = str(line).rpartition(":")
    try:
        address = ipaddress.ip_address(host.strip("[]"))
        if not 0 < int(port) < 1 << 16 or number >= records.LINES:
            raise ValueError
    except ValueError:
        raise UserError(f"expected at most {records.LINES} lines as address:port, not {line!r}") from None
    return int(address) >> 64, int(address) & (1 << 64) - 1, int(port), 1


def _nanoseconds(time, resolution):
    """Return a pcapng's time in ns: units of 10^-n seconds, or of 2^-n where the topmost bit is set."""
    units = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    return time * 10**9 // units
