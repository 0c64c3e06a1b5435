"""The functions of photonlab.machine.atomics in plain Python, one after the other, as if there were no other thread."""

import operator

import numpy as np

ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")


def _put(words, at, value):
    kind, value = words.dtype, int(value) % 2**64
    words[int(at)] = np.uint64(value).astype(kind) if kind == np.uint64 else np.uint64(value).view(np.int64)


def plain_load(words, at):
    return words[int(at)]


def plain_store(words, at, value):
    _put(words, at, value)


def exchange(words, at, value):
    old = words[int(at)]
    _put(words, at, value)
    return old


def compare_and_swap(words, at, expected, value):
    old = words[int(at)]
    if (int(old) - int(expected)) % 2**64 == 0:
        _put(words, at, value)
    return old


def _fetch(operation):
    def fetch(words, at, value):
        old = words[int(at)]
        _put(words, at, operation(int(old), int(value)))
        return old

    return fetch


fetch_add, fetch_sub = _fetch(operator.add), _fetch(operator.sub)
fetch_and, fetch_or = _fetch(operator.and_), _fetch(operator.or_)


def pause():
    pass


_NAMES = ("exchange", "compare_and_swap", "fetch_add", "fetch_sub", "fetch_and", "fetch_or")
UPDATES = {name: globals()[name] for name in _NAMES}
"""Operations that change a word and return what it was."""

for _order in ORDERS:
    globals().update({f"{name}_{_order}": update for name, update in UPDATES.items()})
    globals()[f"fence_{_order}"] = pause
load_relaxed = load_acquire = load_seq_cst = plain_load
store_relaxed = store_release = store_seq_cst = plain_store
