"""Latency in an open loop counts from the time an event was due, whether or not its server was free.

Counting from the time it was taken up instead ("coordinated omission") hides every event that had to wait: one stall of
50 ms in a stream of one event each 10 µs is one slow event then, and 5,000 late ones in truth. What a closed loop
measures is labelled service time here.
"""

import numpy as np
from numba import types

from photonlab.machine.jit import kernel


def due_times(count: int, interval: int, start: int = 0) -> np.ndarray:
    """Due times of evenly paced events.

    Returns
    -------
    uint64 array, shape (count,)
        ``start + i * interval``, in the unit of `interval`.
    """
    return np.uint64(start) + np.arange(count, dtype=np.uint64) * np.uint64(interval)


@kernel
def since_due(due, finished, latency):
    """Latency of each event from its due time; an event finished before it was due (the pacing was early) has 0.

    Parameters
    ----------
    due, finished : uint64 array, shape (n,)
        On one clock.
    latency : uint64 array, shape (n,)
        Written.
    """
    for i in range(due.size):
        latency[i] = finished[i] - due[i] if finished[i] > due[i] else types.uint64(0)


@kernel
def serve(due, service, taken, finished):
    """One server in an open loop: each event is taken up when it is due or when the one before it is finished.

    Parameters
    ----------
    due, service : uint64 array, shape (n,)
        Due times, not decreasing, and the time that serving each event takes.
    taken, finished : uint64 array, shape (n,)
        Written: ``finished - due`` is the latency, ``finished - taken`` the service time.
    """
    free = types.uint64(0)
    for i in range(due.size):
        taken[i] = due[i] if due[i] > free else free
        free = taken[i] + service[i]
        finished[i] = free
