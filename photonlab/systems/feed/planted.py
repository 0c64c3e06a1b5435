"""What a simulator left out on purpose, as ranges of numbers: a receiver's list of gaps must agree with it."""

import json

import numpy as np

from photonlab.errors import UserError

ROOM = 1 << 20
"""Lost packets of a line that are listed; more are counted only."""


def ranges(pairs) -> np.ndarray:
    """Return ranges in the order of their numbers, those that touch as one.

    Parameters
    ----------
    pairs : ndarray of uint64, shape (n, 2)
        First number and count of each, ascending and apart.

    Returns
    -------
    ndarray of int64, shape (m, 2)
    """
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    if not len(pairs):
        return pairs
    begins, ends = pairs[:, 0], pairs.sum(axis=1)
    new = np.concatenate([[True], begins[1:] != ends[:-1]])
    last = np.concatenate([new[1:], [True]])
    return np.column_stack([begins[new], ends[last] - begins[new]])


def on_both(one, other) -> np.ndarray:
    """Return what two lists of ranges have in common, as such a list."""
    found, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        begin = max(one[i][0], other[j][0])
        ends = one[i].sum(), other[j].sum()
        if begin < min(ends):
            found.append((begin, min(ends) - begin))
        if ends[0] <= ends[1]:
            i += 1
        else:
            j += 1
    return ranges(np.array(found, np.int64))


def missing(lists) -> np.ndarray:
    """Return what was lost on every line: without a server that sends it again, it never comes."""
    return ranges(lists[0]) if len(lists) == 1 else on_both(*map(ranges, lists))


def write(path, sending):
    """Write down as JSON what was planted, line by line, and what was lost on every line.

    Parameters
    ----------
    path : path-like
    sending : simulator.Simulator
        When it has ended.

    Raises
    ------
    UserError
        The file cannot be written.
    """
    sent = sending.sent()
    lines = [
        {
            "to": str(line), "shares": faults._asdict(), "counts": counts, "lost": ranges(lost).tolist(),
            "not_listed": counts["lost"] - len(lost),
        }
        for line, faults, counts, lost in zip(sending.lines, sending.planted, sent.lines, sending.lost, strict=False)
    ]  # fmt: skip
    found = {
        "session": sending.session, "seed": sending.seed, "messages": sent.messages, "complete": sent.complete,
        "lines": lines, "lost_on_every_line": missing(sending.lost).tolist(),
    }  # fmt: skip
    try:
        with open(path, "w") as file:
            json.dump(found, file)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from None
