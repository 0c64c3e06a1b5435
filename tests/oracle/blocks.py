"""Pool, arena and list in plain Python: lists and dicts, no thought of speed."""


class Slots:
    """Slots 1 to n; what came back last goes out first, then fresh ones upwards."""

    def __init__(self, count, order=None):
        self.free = [] if order is None else [int(slot) for slot in reversed(order)]
        self.fresh = list(range(count, 0, -1)) if order is None else []
        self.live = set()

    def take(self):
        if not self.free and not self.fresh:
            return 0
        slot = self.free.pop() if self.free else self.fresh.pop()
        assert slot not in self.live
        self.live.add(slot)
        return slot

    def give(self, slot):
        self.live.remove(slot)
        self.free.append(slot)


class Bump:
    """An arena of some bytes; None when there is not enough left."""

    def __init__(self, size):
        self.size, self.used = size, 0

    def allot(self, size, alignment):
        begin = -(-self.used // alignment) * alignment
        if begin + size > self.size:
            return None
        self.used = begin + size
        return begin


def churn(blocks, live, victims):
    """Replace blocks at random: `blocks` is a `Slots`, `live` a list; the sum of the steps of what was taken back."""
    written, total = dict.fromkeys(live, 0), 0
    for step, place in enumerate(victims):
        slot = blocks.take()
        written[slot] = step
        total += written[live[place]]
        old, live[place] = live[place], slot
        blocks.give(old)
    return total
