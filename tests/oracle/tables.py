"""Tables in plain Python: the book of tests/oracle/book.py, asked before and after every message.

A row is a tuple in the order of the table's columns, the symbol given as the locate; missing values are None.
"""

from tests.oracle import itch
from tests.oracle.book import BUY, SELL, Book


class Tables(Book):
    """A book that writes down best prices, depth, trades and what becomes of each order."""

    def __init__(self, levels=2):
        super().__init__()
        self.ranks = levels
        self.bbo, self.depth_rows, self.trades, self.lives = [], [], [], []
        self.broken = set()
        self._last_touch, self._last_depth = {}, {}
        self._notes = {}  # reference -> [replaces, shares, executed, cancelled, mpid, sequence, ns]
        self._dirty, self._sequence, self._now = set(), -1, None

    def apply(self, message):
        self._sequence += 1
        self._dirty, self._kind = set(), chr(message[0])
        good = self._kind in itch.LENGTH and len(message) == itch.LENGTH[self._kind]
        self._now = itch.decode(message) if good else None
        super().apply(message)
        for locate in sorted(self._dirty):
            head = (self._sequence, self._now["timestamp"], locate)
            touch = self.touch(locate, 1)
            if touch != self._last_touch.get(locate, (None,) * 4):
                self._last_touch[locate] = touch
                self.bbo.append((*head, *touch))
            depth = self.touch(locate, self.ranks)
            if depth != self._last_depth.get(locate, (None,) * 4 * self.ranks):
                self._last_depth[locate] = depth
                self.depth_rows.append((*head, *depth))

    def touch(self, locate, levels):
        """Give prices and shares of the best bids, then of the best asks."""
        found = ()
        for side in (BUY, SELL):
            rows = self.depth(locate, side)[:levels]
            rows += [(None, None, None)] * (levels - len(rows))
            found += tuple(price for price, _, _ in rows) + tuple(shares for _, shares, _ in rows)
        return found

    # -- trades ----------------------------------------------------------------------------------------------------

    def _trade(self, side, price, shares, reference, printable=True, cross=""):
        now = self._now
        self.trades.append((
            self._sequence, now["timestamp"], now["stock_locate"] if self._kind in "PQ" else self._order.locate,
            self._kind, side, price, shares, now["match_number"], reference, printable, cross,
        ))  # fmt: skip

    def _on_E(self, fields):
        self._execution(fields)
        super()._on_E(fields)

    def _on_C(self, fields):
        self._execution(fields)
        super()._on_C(fields)

    def _execution(self, fields):
        self._order = order = self.orders.get(fields["order_reference_number"])
        if order is not None:
            shares = min(fields["executed_shares"], order.shares)
            self._notes[order.reference][2] += shares
            self._trade(
                order.side, fields.get("execution_price", order.price), shares, order.reference,
                fields.get("printable") != b"N",
            )  # fmt: skip

    def _on_P(self, fields):
        super()._on_P(fields)
        side = fields["buy_sell_indicator"].decode("latin-1").strip(" \0")
        self._trade(side, fields["price"], fields["shares"], fields["order_reference_number"])

    def _on_Q(self, fields):
        super()._on_Q(fields)
        cross = fields["cross_type"].decode("latin-1").strip(" \0")
        self._trade("", fields["cross_price"], fields["cross_shares"], 0, True, cross)

    def _on_B(self, fields):
        self.broken.add(fields["match_number"])

    # -- orders ----------------------------------------------------------------------------------------------------

    def _on_X(self, fields):
        order = self.orders.get(fields["order_reference_number"])
        if order is not None:
            self._notes[order.reference][3] += min(fields["canceled_shares"], order.shares)
        super()._on_X(fields)

    def _on_D(self, fields):
        order = self.orders.get(fields["order_reference_number"])
        if order is not None:
            self._notes[order.reference][3] += order.shares
        super()._on_D(fields)

    def _on_U(self, fields):
        old = self._notes.get(fields["original_order_reference_number"])
        self._heir = (fields["original_order_reference_number"], old[4]) if old else None
        super()._on_U(fields)

    def _add(self, order):
        replaces, mpid = 0, ""
        if self._kind == "U":
            replaces, mpid = self._heir
        elif self._kind == "F":
            mpid = self._now["attribution"].decode("latin-1").rstrip(" ")
        super()._add(order)
        self._dirty.add(order.locate)
        stamp = self._now["timestamp"]
        self._notes[order.reference] = [replaces, order.shares, 0, 0, mpid, self._sequence, stamp]

    def _reduce(self, order, shares):
        self._dirty.add(order.locate)
        super()._reduce(order, shares)

    def _remove(self, order):
        self._dirty.add(order.locate)
        super()._remove(order)
        self.lives.append(self._life(order, self._kind, self._sequence, self._now["timestamp"]))

    def _life(self, order, *end):
        replaces, *counted, mpid, sequence, ns = self._notes.pop(order.reference)
        return (order.locate, order.reference, replaces, order.side, order.price, *counted, mpid, sequence, ns, *end)

    def all_lives(self):
        """Give the rows of all orders, those that are still live included; call once, at the end."""
        return self.lives + [self._life(order, "", None, None) for order in list(self.orders.values())]
