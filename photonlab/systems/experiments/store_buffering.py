"""What a sequentially consistent store is for: each of two threads stores to its own word and loads the other's.

In any order of the four steps at least one thread sees the other's store. If neither does, both loads were carried
out before the stores had left their processors: release and acquire allow that, sequential consistency does not.
"""

import numpy as np

from photonlab.machine.atomics import load_acquire, load_seq_cst, store_release, store_seq_cst
from photonlab.machine.jit import kernel
from photonlab.systems.spin import given_up, meet

_1 = np.uint64(1)
_READY, _WORD, _APART = np.uint64(0), np.uint64(32), np.uint64(16)
WORDS = 64


@kernel
def store_and_look(words, side, strong, flags, missed):
    """In each round, store the round's number and note in `missed` whether the other's was not seen.

    Parameters
    ----------
    words : ndarray of uint64, shape (WORDS,)
        Zeroed; what each side writes has a line of its own.
    side : uint64
        0 or 1.
    strong : bool
        Sequentially consistent instead of release and acquire.
    flags : ndarray of uint64
        Of `photonlab.systems.spin.together`.
    missed : ndarray of uint8
        One a round; of a round that was not reached it stays as it is.
    """
    if not meet(flags, side):
        return
    mine, others = _APART * side, _APART * (_1 - side)
    for i in range(missed.size):
        number, spins = np.uint64(i) + _1, np.uint64(0)
        store_release(words, _READY + mine, number)
        while load_acquire(words, _READY + others) < number:
            if given_up(flags, spins):
                return
            spins += _1
        if strong:
            store_seq_cst(words, _WORD + mine, number)
            seen = load_seq_cst(words, _WORD + others)
        else:
            store_release(words, _WORD + mine, number)
            seen = load_acquire(words, _WORD + others)
        missed[i] = np.uint8(seen < number)
