"""MoldUDP64 and arbitration in plain Python: `struct`, dicts and sets, nothing shared with the package."""

import struct
from bisect import bisect_right

SESSION = b"DAY1      "


def packet(sequence, messages, session=SESSION, count=None):
    """Give a packet; `count` may tell a lie, or be 0 or 0xFFFF where there are no messages."""
    header = struct.pack(">10sQH", session, sequence, len(messages) if count is None else count)
    return header + b"".join(struct.pack(">H", len(message)) + message for message in messages)


def parse(data):
    """Give (status, session, sequence, count, whole messages) of a packet; status as in `moldudp64.STATUS`."""
    if len(data) < 20:
        return "no header", None, None, None, []
    session, sequence, count = struct.unpack_from(">10sQH", data)
    at, messages = 20, []
    for _ in range(0 if count == 0xFFFF else count):
        if at + 2 > len(data):
            return "fewer blocks than its count", session, sequence, count, messages
        (length,) = struct.unpack_from(">H", data, at)
        if at + 2 + length > len(data):
            return "fewer blocks than its count", session, sequence, count, messages
        messages.append(data[at + 2 : at + 2 + length])
        at += 2 + length
    status = "ok" if at == len(data) else "bytes behind the last block"
    return status, session, sequence, count, messages


class Arbiter:
    """What arbitration with a window of a number of packets must deliver; one session, sound packets."""

    def __init__(self, first=0, window=256):
        self.expected, self.window = first, window
        self.held = []  # (sequence, messages), sorted
        self.announced = first
        self.delivered = []  # (sequence, message)
        self.gaps = []  # (first, count)
        self.duplicates = 0
        self.ended = False

    def take(self, data):
        """Take in a packet."""
        _, _, sequence, count, messages = parse(data)
        if self.expected == 0:
            self.expected = self.announced = max(sequence, 1)
        self.announced = max(self.announced, sequence + len(messages))
        self.ended |= count == 0xFFFF
        if not messages:
            return
        if sequence > self.expected:
            starts = [one for one, _ in self.held]
            place = bisect_right(starts, sequence)
            if place and self.held[place - 1][0] + len(self.held[place - 1][1]) >= sequence + len(messages):
                self.duplicates += len(messages)
                return
            self.held.insert(place, (sequence, messages))
            if len(self.held) > self.window:
                self.give_up()
        else:
            self._deliver(sequence, messages)
        self.drain()

    def drain(self):
        """Deliver what is next of what was held back."""
        while self.held and self.held[0][0] <= self.expected:
            self._deliver(*self.held.pop(0))

    def missing(self):
        """Give the first range that is missing as first and behind."""
        return self.expected, max(self.held[0][0] if self.held else self.announced, self.expected)

    def give_up(self):
        """Give up the first range that is missing."""
        first, behind = self.missing()
        if first < behind:
            self.gaps.append((first, behind - first))
            self.expected = behind

    def close(self):
        """Give up whatever is missing."""
        while self.held or self.missing()[0] < self.missing()[1]:
            self.give_up()
            self.drain()

    def _deliver(self, sequence, messages):
        for number, message in enumerate(messages, sequence):
            if number < self.expected:
                self.duplicates += 1
            else:
                self.delivered.append((number, message))
                self.expected = number + 1
