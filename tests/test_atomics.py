"""Words that two threads share: each operation does what it says, loses nothing, and a wait ends (trap 13)."""

import mmap
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numba.core.errors import TypingError

from photonlab.machine import atomics
from photonlab.machine.jit import kernel
from tests.oracle import atomics as oracle

EDGES = [0, 1, 2, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]

WAIT = """
import os, threading, time
import numpy as np
from photonlab.machine import atomics
from photonlab.machine.jit import kernel

@kernel(cache=False)
def wait(words):
    while {load} == 0:
        pass
    return atomics.load_acquire(words, 1)

@kernel(cache=False)
def publish(words, value):
    words[1] = value
    atomics.store_release(words, 0, np.uint64(1))

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


@pytest.mark.parametrize(
    ("load", "seen"),
    [
        ("atomics.load_acquire(words, 0)", "[42]"),
        ("atomics.load_relaxed(words, 0)", "[42]"),
        ("words[0]", "[]"),
        ("atomics.plain_load(words, 0)", "[]"),
    ],
)
def test_trap_13_a_wait_ends_if_it_loads_atomically_and_only_then(load, seen):
    """The plain load is hoisted out of the loop: the wait never sees the word change."""
    script = WAIT.replace("{load}", load)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == seen


@kernel(cache=False)
def update_in_turn(words, kept, value, other):
    """Do each operation in some order once; keep what it returns."""
    kept[0] = atomics.exchange_acq_rel(words, 0, value)
    kept[1] = atomics.fetch_add_relaxed(words, 0, other)
    kept[2] = atomics.fetch_sub_release(words, 0, value)
    kept[3] = atomics.fetch_or_acquire(words, 0, other)
    kept[4] = atomics.fetch_and_seq_cst(words, 0, value)
    kept[5] = atomics.compare_and_swap_acq_rel(words, 0, value, other)
    kept[6] = atomics.compare_and_swap_release(words, 0, kept[5], other)
    atomics.fence_seq_cst()
    kept[7] = atomics.load_relaxed(words, 0) - atomics.load_seq_cst(words, 0)
    atomics.store_relaxed(words, 0, value)
    kept[8] = atomics.load_acquire(words, 0)
    atomics.store_seq_cst(words, 0, other)
    kept[9] = atomics.plain_load(words, 0)
    atomics.plain_store(words, 0, value)
    atomics.pause()


def reference(word, value, other):
    words, kept = np.array([word], np.uint64), []
    kept.append(oracle.exchange(words, 0, value))
    kept.append(oracle.fetch_add(words, 0, other))
    kept.append(oracle.fetch_sub(words, 0, value))
    kept.append(oracle.fetch_or(words, 0, other))
    kept.append(oracle.fetch_and(words, 0, value))
    kept.append(oracle.compare_and_swap(words, 0, value, other))
    kept.append(oracle.compare_and_swap(words, 0, kept[5], other))
    return [*map(int, kept), 0, value, other], value


@pytest.mark.parametrize("kind", [np.uint64, np.int64])
def test_every_operation_equals_the_oracle_at_the_edges(kind):
    words, kept = np.zeros(1, kind), np.zeros(10, kind)
    for word in EDGES:
        for value in EDGES:
            for other in EDGES[::3]:
                words.view(np.uint64)[0] = word
                mine = np.array([value, other], np.uint64).view(kind)
                update_in_turn(words, kept, *mine)
                expected, left = reference(word, value, other)
                assert kept.view(np.uint64).tolist() == expected
                assert int(words.view(np.uint64)[0]) == left


SOURCES = {
    **{f"{name}_{order}": f"{name}_{order}(words, 1, value)" for name in oracle.UPDATES for order in oracle.ORDERS},
    **{f"compare_and_swap_{order}": f"compare_and_swap_{order}(words, 1, words[1], value)" for order in oracle.ORDERS},
    **{f"load_{order}": f"load_{order}(words, 1)" for order in ("relaxed", "acquire", "seq_cst")},
    "plain_load": "plain_load(words, 1)",
}


def test_every_order_is_there_and_what_it_returns_stays_unsigned():
    """A signed word on one path would make the other float64 (trap 12)."""
    for name, text in SOURCES.items():
        space = {"np": np, "a": atomics}
        exec(f"def use(words, value):\n    kept = np.uint64(1)\n    kept = a.{text}\n    return kept + value", space)
        used = kernel(cache=False)(space["use"])
        before = 2**63 + 5
        words = np.array([7, before, 7], np.uint64)
        assert used(words, np.uint64(3)) == before + 3, name
        kinds = {str(kind) for kind in used.overloads[used.signatures[0]].type_annotation.typemap.values()}
        assert not [kind for kind in kinds if "float" in kind], name
        twin = np.array([7, before, 7], np.uint64)
        arguments = (twin, 1, before, 3) if "swap" in name else (twin, 1) if "load" in name else (twin, 1, 3)
        assert int(getattr(oracle, name)(*arguments)) == before
        assert words.tolist() == twin.tolist(), name


@kernel(cache=False)
def count_up(words, times, way):
    for _ in range(times):
        if way == 0:
            atomics.fetch_add_relaxed(words, 0, np.uint64(1))
        elif way == 1:
            old = atomics.load_relaxed(words, 0)
            while True:
                seen = atomics.compare_and_swap_acq_rel(words, 0, old, old + np.uint64(1))
                if seen == old:
                    break
                old = seen
        else:
            while atomics.exchange_acquire(words, 8, np.uint64(1)) != np.uint64(0):
                atomics.pause()
            atomics.plain_store(words, 0, atomics.plain_load(words, 0) + np.uint64(1))
            atomics.store_release(words, 8, np.uint64(0))


@pytest.mark.parametrize("way", [0, 1, 2], ids=["fetch_add", "compare_and_swap", "lock by exchange"])
def test_two_threads_lose_no_increment(way):
    memory = mmap.mmap(-1, 4096)
    words, times = np.frombuffer(memory, np.uint64), 30_000
    count_up(words, 1, way)
    threads = [threading.Thread(target=count_up, args=(words, times, way)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(words[0]) == 2 * times + 1


def test_two_processes_share_a_mapped_word(tmp_path):
    path = tmp_path / "shared"
    path.write_bytes(bytes(4096))
    script = (
        "import mmap, sys, numpy as np\n"
        "from photonlab.machine import atomics\n"
        "from photonlab.machine.jit import kernel\n"
        "@kernel(cache=False)\n"
        "def add(words, times):\n"
        "    for _ in range(times):\n"
        "        atomics.fetch_add_seq_cst(words, 0, np.uint64(1))\n"
        "with open(sys.argv[1], 'r+b') as file:\n"
        "    add(np.frombuffer(mmap.mmap(file.fileno(), 4096), np.uint64), 50_000)\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", script, str(path)]) for _ in range(2)]
    assert [child.wait(120) for child in children] == [0, 0]
    assert int(np.frombuffer(path.read_bytes(), np.uint64)[0]) == 100_000


@kernel(cache=False)
def load_first(words):
    return atomics.load_acquire(words, 0)


@kernel(cache=False)
def store_first(words):
    atomics.store_release(words, 0, 1)


@pytest.mark.parametrize(
    "words",
    [
        np.zeros(8, np.uint64)[::2],
        np.zeros((2, 2), np.uint64),
        np.zeros(8, np.uint32),
        np.zeros(8),
    ],
    ids=["strided", "two axes", "32 bits", "float"],
)
def test_what_is_no_array_of_words_is_refused(words):
    with pytest.raises(TypingError, match="atomic words are those of a contiguous 1-D array"):
        load_first(words)


def test_words_that_must_not_change_can_be_loaded_only():
    words = np.array([5], np.uint64)
    words.flags.writeable = False
    assert load_first(words) == 5
    with pytest.raises(TypingError, match="writable"):
        store_first(words)


def test_with_bounds_checks_a_word_beyond_the_array_or_unaligned_is_an_error():
    """Trap 16; the index is unsigned, so a negative one is beyond it too."""
    script = (
        "import numpy as np\n"
        "from photonlab.machine import atomics\n"
        "from photonlab.machine.jit import kernel\n"
        "@kernel(cache=False)\n"
        "def swap(words, at):\n"
        "    return atomics.compare_and_swap_acq_rel(words, at, np.uint64(0), np.uint64(1))\n"
        "for at in (3, 4, -1):\n"
        "    try: print(int(swap(np.zeros(4, np.uint64), at)))\n"
        "    except IndexError as error: print(error)\n"
        "try: swap(np.zeros(33, np.uint8)[1:].view(np.uint64), 0)\n"
        "except IndexError as error: print(error)\n"
    )
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment)
    assert done.stdout.splitlines() == ["0", *["atomic word beyond the array, or unaligned"] * 3], done.stderr
