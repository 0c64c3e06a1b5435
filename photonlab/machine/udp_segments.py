"""UDP segmentation: several packets of a box given to the system as one buffer, which it cuts up again (Linux 4.18).

The system takes one size for all packets of a buffer, and what is left over for the last one. So packets that follow
each other and are equally long go together, and perhaps a shorter one behind them. Who receives sees the same packets
in the same order, but the way through the system is gone once for each buffer, not for each packet.

    bundles = udp_segments.bundle(box, first, behind, most)     # of packets that udp.put has said where to find
    done, why = udp.send(box, fd, 0, bundles, 0)
    packets = udp_segments.packets(box, done)                   # that have gone with them

Packets are not moved for it: a buffer is gathered from as many places as it has packets.
"""

import numpy as np

from photonlab.machine.jit import kernel
from photonlab.machine.libc import address_of
from photonlab.machine.udp import _CONTROL, _CONTROL_SIZE, _CONTROL_WORDS, _HEADER_WORDS, _VECTOR, _VECTORS

MOST = 64
"""Packets of a buffer at most, as every system that can do this at all takes them."""

_UDP, _SEGMENT = 17, 103  # SOL_UDP, UDP_SEGMENT
_0, _1 = np.uint64(0), np.uint64(1)
_BYTES = np.uint64(65_507)  # of a buffer: those of the longest UDP packet
_NOTE_BYTES = np.uint64(24)  # a control message with two bytes in it
_REFUSALS = (np.uint64(22), np.uint64(5), np.uint64(92), np.uint64(95))  # EINVAL, EIO, ENOPROTOOPT, EOPNOTSUPP

# Words of a box's `state`, behind those of `udp`
VECTORS, CONTROL = np.uint64(10), np.uint64(11)


def why_not(one) -> str:
    """Return why a socket's system does not cut up buffers, an empty text if it does.

    Where it does not know the option it would send a whole buffer as one packet, so this must be asked.
    """
    try:
        one.getsockopt(_UDP, _SEGMENT)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def prepare(box):
    """Let the packets of a box be bundled; it is one without notes and names."""
    box.state[VECTORS], box.state[CONTROL] = address_of(box.vectors), address_of(box.control)
    notes = box.control.reshape(-1, _CONTROL_WORDS)
    notes[:, 0], notes[:, 1] = 18, _UDP | _SEGMENT << 32
    return box


@kernel(inner=True)
def bundle(box, first, behind, most):
    """Write down the buffers in which packets shall go, from the box's first header on.

    Parameters
    ----------
    box : Box
        A prepared one.
    first, behind : uint64
        The packets, by their places.
    most : uint64
        Packets of a buffer at most, up to `MOST`; 1 to send each by itself.

    Returns
    -------
    uint64
        Buffers.
    """
    headers, vectors, count = box.headers, box.vectors, _0
    while first < behind:
        size = vectors[(first << _1) + _1]
        run, room, last = _1, _BYTES - size, size
        while run < most and first + run < behind and last == size:
            following = vectors[((first + run) << _1) + _1]
            if following > size or following > room:
                break
            last = following
            room -= following
            run += _1
        at = count * _HEADER_WORDS
        headers[at + _VECTOR] = box.state[VECTORS] + (first << np.uint64(4))
        headers[at + _VECTORS] = run
        headers[at + _CONTROL_SIZE] = _0
        if run > _1:
            note = count * np.uint64(_CONTROL_WORDS)
            headers[at + _CONTROL] = box.state[CONTROL] + (note << np.uint64(3))
            headers[at + _CONTROL_SIZE] = _NOTE_BYTES
            box.control[note + np.uint64(2)] = size
        first += run
        count += _1
    return count


@kernel(inner=True)
def packets(box, bundles):
    """Return how many packets are in the first so many buffers."""
    count = _0
    for i in range(bundles):
        count += box.headers[np.uint64(i) * _HEADER_WORDS + _VECTORS]
    return count


@kernel(inner=True)
def is_refusal(why):
    """Tell whether a call that failed for this reason may succeed if each packet goes by itself.

    So it is where a packet needs more than a frame of the interface, or the interface adds no checksums.
    """
    return why in _REFUSALS
