"""The order map in plain Python: a dict with a bound, and Fibonacci hashing for keys of one's choice."""

GOLDEN = 0x9E3779B97F4A7C15
INVERSE = pow(GOLDEN, -1, 2**64)


class Map:
    """A dict that holds `most` members at most; 0 stands for "not there", as in the kernel."""

    def __init__(self, most):
        self.members = {}
        self.most = most

    def find(self, key):
        return self.members.get(key, 0)

    def insert(self, key, value):
        if key not in self.members and len(self.members) >= self.most:
            return 0
        self.members[key] = value
        return 1

    def remove(self, key):
        return self.members.pop(key, 0)


def home(key, slots):
    """Give the slot in which a search for `key` begins, in a table of so many slots: the high bits of the product."""
    return (key * GOLDEN % 2**64) >> (64 - (slots.bit_length() - 1))


def keys_at(slot, slots, count, step=1):
    """Give keys whose home is `slot`: the products are taken from its range and divided by the constant."""
    width = 2**64 // slots
    return [(slot * width + 1 + n * step) * INVERSE % 2**64 for n in range(count)]
