"""SoupBinTCP: what stands in its stream of bytes (SoupBinTCP 3.00, 2017; 4.1 only adds a field to the login).

A packet is a length of two bytes, a type and a payload; the length counts the type. The payload of a sequenced packet
is one message, and messages are numbered by counting them: no number is sent but in the answer to the login.
"""

import numpy as np

from photonlab.kernels.moldudp64 import copy_range
from photonlab.machine.bits import load_be16, load_u8, store_be16
from photonlab.machine.jit import kernel

PREFIX = 2
"""Bytes of the length."""

LONGEST = PREFIX + 0xFFFF
"""Bytes of the longest packet."""

_0, _1, _2, _3 = (np.uint64(i) for i in range(4))
_ACCEPTED, _REJECTED, _SEQUENCED, _UNSEQUENCED, _HEARTBEAT, _DEBUG, _END = (np.uint64(ord(c)) for c in "AJSUH+Z")
_LONGEST = np.uint64(LONGEST)

# How a run over packets ended
MORE, FULL, ENDED, LOGIN, NO_TYPE = range(5)
_MORE, _FULL, _ENDED, _LOGIN, _NO_TYPE = (np.uint64(i) for i in range(5))

# Words of the state: number of the next message to come, and of the next that is wanted; then counters
NEXT, WANTED, MESSAGES, DUPLICATES, EMPTY, HEARTBEATS, UNSEQUENCED, DEBUG, UNKNOWN = (np.uint64(i) for i in range(9))
COUNTERS = ("messages", "duplicates", "empty_messages", "heartbeats", "unsequenced", "debug", "unknown_packets")
"""Names of the counters, from `MESSAGES` on."""


def make_state(wanted=0) -> np.ndarray:
    """Return the state before the first packet; `wanted` is the number of the first message that is."""
    state = np.zeros(16, np.uint64)
    state[NEXT] = state[WANTED] = wanted
    return state


@kernel
def unframe(state, data, begin, end, out):
    """Copy the messages of sequenced packets, framed as in a file, and count what else there is.

    Parameters
    ----------
    state : ndarray of uint64, shape (16,)
    data : ndarray of uint8
    begin, end : uint64
        The bytes that there are; a packet begins at `begin`.
    out : ndarray of uint8
        Filled from its first byte on.

    Returns
    -------
    outcome : uint64
        `MORE`: no whole packet is left; `FULL`: `out` has no room for another; `ENDED`: the session did; `LOGIN`: an
        answer to a login stands at `position`, whole; `NO_TYPE`: a length of 0 does.
    position, filled : uint64
        Offset of the first packet that was not taken, and bytes in `out`.
    """
    filled, room = _0, np.uint64(out.size)
    while begin + _3 <= end:
        length = load_be16(data, begin)
        following = begin + _2 + length
        if length == _0:
            return _NO_TYPE, begin, filled
        if following > end:
            break
        kind = load_u8(data, begin + _2)
        if kind == _SEQUENCED:
            if filled + length + _1 > room:
                return _FULL, begin, filled
            if state[NEXT] < state[WANTED]:
                state[DUPLICATES] += _1
            elif length == _1:  # in a file, a length of zero would end the session
                state[EMPTY] += _1
                state[WANTED] += _1
            else:
                store_be16(out, filled, length - _1)
                filled = copy_range(data, begin + _3, following, out, filled + _2)
                state[MESSAGES] += _1
                state[WANTED] += _1
            state[NEXT] += _1
        elif kind in (_ACCEPTED, _REJECTED):
            return _LOGIN, begin, filled
        elif kind == _END:
            return _ENDED, following, filled
        else:
            what = UNKNOWN
            if kind == _HEARTBEAT:
                what = HEARTBEATS
            elif kind == _UNSEQUENCED:
                what = UNSEQUENCED
            elif kind == _DEBUG:
                what = DEBUG
            state[what] += _1
        begin = following
    return _MORE, begin, filled
