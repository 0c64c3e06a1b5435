"""The L3 book in plain Python: dicts and lists, one method per rule; the book kernel is held against it.

An order lives in `orders` by its reference; a level is a list of references, first in first out, in a dict by price per
(locate, side). A level exists if and only if its list is not empty. The rules are those of the ITCH 5.0 specification,
sections 1.3 (add), 1.4 (modify) and 1.5 (trade); what the specification leaves open stands beside each method.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass

from tests.oracle import itch

BUY, SELL = "B", "S"
REFERENCING = "ECXDU"
"""The types that name an order which must be known already."""


@dataclass
class Order:
    reference: int
    locate: int
    side: str
    price: int
    shares: int


@dataclass
class Trading:
    """What the feed has said on an instrument's trading; `state` and `halted` stay as they are until it says so."""

    state: str = "T"
    halted: bool = False
    opened: bool = False


class Book:
    """Books of all instruments of a feed, with every counter of the replay."""

    def __init__(self):
        self.orders = {}  # reference -> Order
        self.levels = {}  # (locate, side) -> {price -> [reference, …] in order of time}
        self.names = {}  # locate -> symbol
        self.volume = Counter()  # locate -> shares traded, printable
        self.counts = Counter()  # type (one character) -> messages
        self.unknown_reference = Counter()  # type -> messages
        self.anomalies = Counter()
        self.market_hours = False
        self.trading = {}  # locate -> Trading

    # -- bytes -----------------------------------------------------------------------------------------------------

    def feed(self, data):
        """Apply every whole message of `data`, up to a zero prefix; a rest counts as short tail. Gives the walk."""
        walk = itch.walk(data)
        for _, message in walk.messages:
            self.apply(message)
        self.anomalies["short_tail"] += walk.short_tail
        return walk

    def apply(self, message):
        """Apply one message, given as its bytes without the length prefix."""
        kind = chr(message[0])
        self.counts[kind] += 1
        if kind not in itch.LENGTH:
            self.anomalies["unknown_type"] += 1
        elif len(message) != itch.LENGTH[kind]:
            self.anomalies["bad_length"] += 1
        else:
            rule = getattr(self, f"_on_{kind}", None)  # types that change no book have no rule
            if rule is not None:
                rule(itch.decode(message))

    # -- the rules, one per type -----------------------------------------------------------------------------------

    def _on_A(self, fields):
        """A reference that is live already: the old order goes, for the exchange's last word stands."""
        side = fields["buy_sell_indicator"].decode("latin-1")
        if side not in (BUY, SELL):
            self.anomalies["bad_side"] += 1
            return
        locate = fields["stock_locate"]
        self.names.setdefault(locate, text(fields["stock"]))
        was_crossed = self.crossed(locate)
        self._add(Order(fields["order_reference_number"], locate, side, fields["price"], fields["shares"]))
        self._count_crossing(locate, was_crossed)

    _on_F = _on_A

    def _on_E(self, fields):
        """An execution is applied by reference, wherever its order stands in the queue."""
        order = self._find("E", fields["order_reference_number"])
        if order is not None:
            self.volume[order.locate] += min(fields["executed_shares"], order.shares)
            self._reduce(order, fields["executed_shares"])

    def _on_C(self, fields):
        """The shares leave the level on display, not the execution price's; printable `N` is no volume."""
        order = self._find("C", fields["order_reference_number"])
        if order is not None:
            if fields["printable"] != b"N":
                self.volume[order.locate] += min(fields["executed_shares"], order.shares)
            self._reduce(order, fields["executed_shares"])

    def _on_X(self, fields):
        order = self._find("X", fields["order_reference_number"])
        if order is not None:
            self._reduce(order, fields["canceled_shares"])

    def _on_D(self, fields):
        order = self._find("D", fields["order_reference_number"])
        if order is not None:
            self._remove(order)

    def _on_U(self, fields):
        """The new order stands at the tail of its level; side and instrument are the old order's."""
        old = self._find("U", fields["original_order_reference_number"])
        if old is None:
            return
        was_crossed = self.crossed(old.locate)
        self._remove(old)
        new = Order(fields["new_order_reference_number"], old.locate, old.side, fields["price"], fields["shares"])
        self._add(new)
        self._count_crossing(old.locate, was_crossed)

    def _on_P(self, fields):
        self.volume[fields["stock_locate"]] += fields["shares"]

    def _on_Q(self, fields):
        locate = fields["stock_locate"]
        self.volume[locate] += fields["cross_shares"]
        if fields["cross_type"] == b"O":
            self._trading(locate).opened = True

    def _on_R(self, fields):
        """The directory has the last word on a name; locates are reused from day to day."""
        self.names[fields["stock_locate"]] = text(fields["stock"])

    def _on_S(self, fields):
        if fields["event_code"] == b"Q":
            self.market_hours = True
        elif fields["event_code"] == b"M":
            self.market_hours = False

    def _on_H(self, fields):
        self._trading(fields["stock_locate"]).state = fields["trading_state"].decode("latin-1")

    def _on_h(self, fields):
        self._trading(fields["stock_locate"]).halted = fields["operational_halt_action"] == b"H"

    # -- orders and levels -----------------------------------------------------------------------------------------

    def _find(self, kind, reference):
        order = self.orders.get(reference)
        if order is None:
            self.unknown_reference[kind] += 1
        return order

    def _add(self, order):
        if order.reference in self.orders:
            self.anomalies["duplicate_reference"] += 1
            self._remove(self.orders[order.reference])
        self.orders[order.reference] = order
        levels = self.levels.setdefault((order.locate, order.side), {})
        levels.setdefault(order.price, []).append(order.reference)

    def _reduce(self, order, shares):
        """Take shares off an order, which keeps its place; nothing left, or more asked than there is: it goes."""
        if shares > order.shares:
            self.anomalies["over_fill"] += 1
        if shares >= order.shares:
            self._remove(order)
        else:
            order.shares -= shares

    def _remove(self, order):
        levels = self.levels[order.locate, order.side]
        levels[order.price].remove(order.reference)
        if not levels[order.price]:
            del levels[order.price]
        del self.orders[order.reference]

    # -- best prices and crossings ---------------------------------------------------------------------------------

    def best(self, locate):
        """Give (best bid, best ask) of an instrument as raw prices; None on a side without orders."""
        return (
            max(self.levels.get((locate, BUY), {}), default=None),
            min(self.levels.get((locate, SELL), {}), default=None),
        )

    def crossed(self, locate):
        """Tell whether the best bid is at or above the best ask."""
        bid, ask = self.best(locate)
        return bid is not None and ask is not None and bid >= ask

    def continuous(self, locate):
        """Tell whether an instrument trades continuously: market hours, opened by its cross, trading, not halted."""
        trading = self._trading(locate)
        return self.market_hours and trading.opened and trading.state == "T" and not trading.halted

    def _trading(self, locate):
        return self.trading.setdefault(locate, Trading())

    def _count_crossing(self, locate, was_crossed):
        """Count a book that this message crossed. Only what adds an order can: a removal moves the sides apart."""
        if self.crossed(locate) and not was_crossed:
            self.anomalies["crossed" if self.continuous(locate) else "crossed_outside_trading"] += 1

    # -- what the tests compare ------------------------------------------------------------------------------------

    def queue(self, locate, side):
        """Give the side of a book, best price first: [(price, [(reference, shares), …] in queue order), …]."""
        levels = self.levels.get((locate, side), {})
        return [
            (price, [(reference, self.orders[reference].shares) for reference in levels[price]])
            for price in sorted(levels, reverse=side == BUY)
        ]

    def depth(self, locate, side):
        """Give the side of a book summed up, best price first: [(price, shares, orders), …]."""
        return [(price, sum(shares for _, shares in orders), len(orders)) for price, orders in self.queue(locate, side)]

    def locates(self):
        """Give the locates that hold a live order, ascending."""
        return sorted({order.locate for order in self.orders.values()})

    def state(self):
        """Give all that a replay must agree on as plain dicts without zero entries, equal if the books are."""
        return {
            "counts": nonzero(self.counts),
            "anomalies": nonzero(self.anomalies),
            "unknown_reference": nonzero(self.unknown_reference),
            "orders": {
                order.reference: (order.locate, order.side, order.price, order.shares)
                for order in sorted(self.orders.values(), key=lambda order: order.reference)
            },
            "queues": {
                (locate, side): self.queue(locate, side)
                for locate in self.locates()
                for side in (BUY, SELL)
                if self.queue(locate, side)
            },
            "best": {locate: self.best(locate) for locate in self.locates()},
            "volume": nonzero(self.volume),
            "names": dict(sorted(self.names.items())),
        }

    def digest(self):
        """Give the state in 16 hexadecimal digits."""
        return hashlib.sha256(repr(self.state()).encode()).hexdigest()[:16]


def text(alpha):
    """Give a left-justified, space-padded text field as a str."""
    return alpha.decode("latin-1").rstrip(" ")


def nonzero(counter):
    """Give a counter as a sorted dict without its zero entries."""
    return {key: counter[key] for key in sorted(counter) if counter[key]}
