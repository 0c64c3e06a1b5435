"""Words that two threads share: what is written is seen, and a wait ends; trap 13."""

import subprocess
import sys

import pytest

WAIT = """
import os, threading, time
import numpy as np
from photonlab.machine import atomics
from photonlab.machine.jit import kernel

@kernel(cache=False)
def atomic(words):
    while atomics.load_acquire(words, 0) == 0:
        pass
    return atomics.load_acquire(words, 1)

@kernel(cache=False)
def plain(words):
    while words[0] == 0:
        pass
    return words[1]

@kernel(cache=False)
def publish(words, value):
    words[1] = value
    atomics.store_release(words, 0, np.uint64(1))

wait = {which}
words = np.array([1, 0], np.uint64)
wait(words)
publish(words, np.uint64(7))
words[:] = 0
seen = []
thread = threading.Thread(target=lambda: seen.append(int(wait(words))), daemon=True)
thread.start()
time.sleep(0.2)
publish(words, np.uint64(42))
thread.join(2)
print(seen, flush=True)
os._exit(0)  # a thread that spins for ever would keep the process
"""


@pytest.mark.parametrize(("which", "seen"), [("atomic", "[42]"), ("plain", "[]")])
def test_trap_13_a_wait_ends_if_it_loads_atomically_and_only_then(which, seen):
    """The plain load is hoisted out of the loop: the wait never sees the word change."""
    script = WAIT.replace("{which}", which)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == seen
