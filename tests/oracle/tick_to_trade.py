"""The engine in plain Python: books as lists of levels, orders as dicts."""

import struct

DEPTH = 10
EMPTY = (0, 0, 0)


def tick(time, sequence, venue, entries, *, root=b"", spare=0, version=1, schema=77, template=46):
    """Bytes of a tick; an entry is (price, size, security, orders, level, action, offer). May have longer blocks."""
    body = struct.pack("<QIBB2x", time, sequence, venue, 128) + root
    body += struct.pack("<HB", 32 + spare, len(entries))
    for price, size, security, orders, level, action, offer in entries:
        body += struct.pack("<qiIIiBBB5x", price, size, security, 1, orders, level, action, ord("0") + offer)
        body += b"\xee" * spare
    return struct.pack("<HHHHHH", 12 + len(body), 0xCAFE, 16 + len(root), template, schema, version) + body


def orders_of(data):
    """Orders as dicts."""
    names = ["id", "price", "time", "security", "quantity", "tick", "venue", "side", "type", "force"]
    found = []
    for at in range(0, len(data), 52):
        *head, rest = *struct.unpack_from("<6H", data, at), struct.unpack_from("<QqQIIIBBBB", data, at + 12)
        assert head == [52, 0xCAFE, 40, 68, 77, 1]
        found.append(dict(zip(names, rest, strict=True)))
    return found


class Engine:
    """Takes ticks as tuples, gives the orders that they call for."""

    def __init__(self, instruments, edge=1):
        self.instruments, self.edge, self.number = instruments, edge, 1
        self.levels = {(i, v, s): [EMPTY] * DEPTH for i in range(instruments) for v in (0, 1) for s in (0, 1)}
        self.touch = dict.fromkeys(self.levels, (0, 0))
        self.next, self.late = [1, 1], [False, False]
        self.counts = dict.fromkeys(
            ["ticks", "orders", "repeated", "lost", "unknown template", "unknown security", "bad entry", "empty level"],
            0,
        )

    def on_tick(self, time, sequence, venue, entries):
        """Apply a tick; returns orders."""
        if sequence < self.next[venue]:
            self.counts["repeated"] += 1
            return []
        if sequence > self.next[venue]:
            self.counts["lost"] += sequence - self.next[venue]
            self.late[venue] = True
        self.next[venue] = sequence + 1
        self.counts["ticks"] += 1
        sent = []
        for entry in entries:
            sent += self.apply(time, sequence, venue, *entry)
        return sent

    def apply(self, time, sequence, venue, price, size, security, orders, level, action, offer):
        """Apply one entry."""
        if security >= self.instruments:
            self.counts["unknown security"] += 1
            return []
        removes = action in (2, 3, 4)
        if not 1 <= level <= DEPTH or offer not in (0, 1) or action > 5 or (not removes and size < 1):
            self.counts["bad entry"] += 1
            return []
        key, level = (security, venue, offer), level - 1
        side = self.levels[key]
        if action in (1, 2, 5):
            self.counts["empty level"] += side[level] == EMPTY
        if action == 0:
            side.insert(level, (price, size, orders))
            del side[DEPTH:]
        elif action in (1, 5):
            side[level] = (price, size, orders)
        else:
            first, last = {2: (level, level), 3: (0, level), 4: (level, DEPTH - 1)}[action]
            del side[first : last + 1]
            side += [EMPTY] * (DEPTH - len(side))
        self.touch[key] = side[0][:2]
        return [] if action in (3, 4) else self.decide(time, sequence, venue, offer, security)

    def decide(self, time, sequence, venue, offer, security):
        """Return the order that takes the other venue's quote, if it is late."""
        other = (security, 1 - venue, 1 - offer)
        (mine, shown), (limit, there) = self.touch[security, venue, offer], self.touch[other]
        profit = limit - mine if offer else mine - limit
        quantity = min(shown, there)
        if profit < self.edge or quantity == 0 or any(self.late):
            return []
        self.touch[other] = (limit, there - quantity)
        self.counts["orders"] += 1
        self.number += 1
        return [
            {
                "id": self.number - 1, "price": limit, "time": time, "security": security, "quantity": quantity,
                "tick": sequence, "venue": 1 - venue, "side": ord("2") if offer else ord("1"), "type": ord("2"),
                "force": ord("3"),
            }
        ]  # fmt: skip
