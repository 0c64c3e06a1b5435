"""Hash policies in plain Python: 64-bit words, and a table in which a home slot is found."""

M = 2**64
GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(word):
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % M
    word = (word ^ word >> 27) * 0x94D049BB133111EB % M
    return word ^ word >> 31


def murmur(word):
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD % M
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 % M
    return word ^ word >> 33


def cut_down(word):
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD % M
    return word ^ word >> 33


def neighbours(word, bits):
    turned = (word >> 2 | word << 62) % M
    group = (turned >> 2) * GOLDEN % M >> (64 - bits)
    return group // 4 * 4 + turned % 4


HOMES = {
    "identity": lambda word, bits: word % 2**bits,
    "Fibonacci": lambda word, bits: word * GOLDEN % M >> (64 - bits),
    "splitmix64": lambda word, bits: splitmix64(word) % 2**bits,
    "Murmur": lambda word, bits: murmur(word) % 2**bits,
    "cut-down Murmur": lambda word, bits: cut_down(word) % 2**bits,
    "neighbours": neighbours,
}
"""Policy → home slot of a word in a table of 2^bits slots."""


def occupied(homes, slots):
    """Give the slots that keys of these homes fill under linear probing, in whatever order they come."""
    full = set()
    for home in homes:
        while home % slots in full:
            home += 1
        full.add(home % slots)
    return full


def walk(home, full, slots):
    """Give how many slots a search in vain that begins at `home` looks at, the empty one at its end included."""
    steps = 1
    while (home + steps - 1) % slots in full:
        steps += 1
    return steps
