"""Put a ring to work under ThreadSanitizer: two threads without the GIL. A process of its own, see `sanitizer`.

    python -m photonlab.systems.experiments.sanitized_ring FLAW MESSAGES

Prints one line of JSON: where the ring lies, how long it took, and how many words arrived wrong.
"""

import json
import sys
import threading
import time
from importlib import import_module

from photonlab.systems.experiments import ring_flaws

SLOTS = 64
"""Few, so that the ring is often full and often empty."""


def main(flaw, messages):
    """Pass messages through a ring from one thread to another.

    Parameters
    ----------
    flaw : str
        `ring_flaws.SOUND`, or the name of a flaw.
    messages : int
    """
    begin = time.monotonic()
    if flaw != ring_flaws.SOUND:
        ring_flaws.plant(flaw)
    np = import_module("numpy")
    rings = import_module("photonlab.kernels.ring")
    loops = import_module("photonlab.systems.experiments.sanitized_loops")
    ring = rings.make_ring(SLOTS, start=2**64 - messages // 2)  # the indices wrap around half way
    buffers = np.zeros((2, loops.BATCH * int(ring.slot_words)), np.uint64)
    loops.produce(ring, buffers[0], np.uint64(1))
    wrong = [loops.consume(ring, buffers[1], np.uint64(1))]
    compiled, count = time.monotonic(), np.uint64(messages - 1)
    threads = [
        threading.Thread(target=lambda: loops.produce(ring, buffers[0], count), daemon=True),
        threading.Thread(target=lambda: wrong.append(loops.consume(ring, buffers[1], count)), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    facts = {
        "address": ring.words.__array_interface__["data"][0],
        "base": int(ring.base),
        "slot_words": int(ring.slot_words),
        "slots": SLOTS,
        "messages": messages,
        "wrong": int(sum(wrong)),
        "prepared_s": compiled - begin,
        "passed_s": time.monotonic() - compiled,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
