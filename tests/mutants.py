"""Planted bugs: each one in a copy of the package, of which the oracle must find every one.

Run as `python -m tests.mutants [NAME ...]`; prints JSON: for each mutant by name how it was found, null if it was not.
Compiling the loop takes seconds, so the kernels are run here as the Python that they are written in, with
tests/oracle/bits.py in place of the few functions that only a compiler knows. Each mutant has a process of its own,
forked when the packages below photonlab are loaded; what makes a loop endless is found by an alarm.
"""

import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

SECONDS = 5  # of a processor: several times what a sound package takes
ROOT = Path(__file__).resolve().parent.parent
PARTS = ("__init__.py", "errors.py", "paths.py", "machine", "kernels", "systems")

HASHING, POOL, INDEX, TREE, BOOK, BATCH, LOOP, REPLAYER, MOLD, ARBITER, SOUP, HEADERS, RECORDS, RING = (
    "kernels/hashing.py", "kernels/pool.py", "kernels/order_index.py", "kernels/price_tree.py", "kernels/book.py",
    "systems/batch.py", "systems/message_loop.py", "systems/replayer.py",
    "kernels/moldudp64.py", "kernels/arbitration.py", "kernels/soupbintcp.py",
    "systems/captures/headers.py", "systems/captures/records.py",
    "kernels/ring.py",
)  # fmt: skip

DEALT, SHARDED = "systems/dealt_loop.py", "systems/sharded.py"

SIFT, RECORD, LIVES, STEPS, UNFOLDING = (
    "systems/sift.py", "systems/tables/record.py", "systems/tables/lives.py", "systems/tables/steps.py",
    "systems/tables/unfolding.py",
)  # fmt: skip

CUT, SENDING = "machine/udp_segments.py", "systems/feed/sending.py"

LINK, TRADE = "systems/transports/link.py", "systems/tick_to_trade/loops.py"

URING = "machine/io_uring.py"

RECEIVING, CONSUMING = "systems/feed/receiving.py", "systems/feed/consuming.py"

VARIANTS, STRESS = "kernels/ring_variants.py", "systems/experiments/copied_stress.py"

LEVELS, ENGINE, WALK = "kernels/level_book.py", "systems/tick_to_trade/engine.py", "kernels/sbe/walk.py"

MUTANTS = {
    "none": (LOOP, "", ""),
    # hashing
    "shift: off by one": (HASHING, ">= ((slot - hole) & mask)", "> ((slot - hole) & mask)"),
    "shift: nothing moves": (HASHING, "home = (entries[word] * _GOLDEN) >> state[SHIFT]", "home = slot"),
    "insert: not counted": (HASHING, "        state[USED] += _1\n", ""),
    "insert: the last slot too": (HASHING, "state[USED] + _1 >= state[SIZE]", "state[USED] >= state[SIZE]"),
    "find: no wrap-around": (HASHING, "        slot = (slot + _1) & mask\n        word = (size + slot) << _1\n    ret",
                             "        slot = slot + _1\n        word = (size + slot) << _1\n    ret"),
    "double: old shift": (HASHING, "    state[SHIFT] -= _1\n", ""),
    "double: half of the members": (HASHING, "while old < size << _1", "while old < size + (size >> _1)"),
    # pool
    "pool: one slot too many": (POOL, "slot >= state[CAPACITY]", "slot > state[CAPACITY]"),
    "pool: free list lost": (POOL, "state[FREE] = np.uint64(pool.links[slot])", "state[FREE] = _0"),
    "pool: slot twice": (POOL, "    state[FRESH] = slot + _1\n", ""),
    # ring
    "copied: a message unread": (VARIANTS, "for i in range(there):\n        total += read(queue.into, i *",
                                 "for i in range(_1, there):\n        total += read(queue.into, i *"),
    "copied: the first again": (VARIANTS, "queue.slot_words, value + i)\n    return put",
                                "queue.slot_words, value)\n    return put"),
    "stress: any order will do": (STRESS, "right = right and word ==", "right = right or word =="),
    "ring: one slot too many": (RING, "words[HEAD + SEEN] = tail\n        free = capacity -",
                                "words[HEAD + SEEN] = tail\n        free = capacity + _1 -"),
    "ring: read again": (RING, "release_to(ring, first + _1)", "release_to(ring, first)"),
    "ring: batch published in part": (RING, "publish_to(ring, first + count)", "publish_to(ring, first + _1)"),
    "ring: slots do not wrap around": (RING, "(index & ring.mask) *", "index *"),
    "link: a slot says that it is full": (LINK, "last | part << _TOP", "last | _PAYLOAD << _TOP"),
    "link: a byte too many in a slot": (LINK, "_REST = np.uint64(PAYLOAD)", "_REST = np.uint64(PAYLOAD + 1)"),
    "link: pieces over one another": (LINK, "store_le64(link.data, at + came +", "store_le64(link.data, at +"),
    "buffers: handed back too soon": (URING, "        if part == left:\n", "        if True:\n"),
    "buffers: from the beginning again": (URING, "[BUFFER_BITS]) + words[TAKEN], min", "[BUFFER_BITS]), min"),
    "buffers: another one goes back": (URING, "            hand_back(words, number)",
                                       "            hand_back(words, words[HELD_HEAD] & _1)"),
    "buffers: the ring's tail is forgotten": (URING, " | ((tail + _1) & np.uint64(0xFFFF)) << np.uint64(16)", ""),
    "exchange: an order's last bytes": (TRADE, "    last = size - _8\n", "    last = size - _8 - _1\n"),
    "ring: old head is enough": (RING, "if there < wanted:", "if there == _0:"),
    # feed
    "buffer: a longer packet in it": (CUT, "if following > size or", "if"),
    "buffer: goes on behind a shorter one": (CUT, " and last == size:", ":"),
    "buffer: longer than a packet may be": (CUT, "following > size or following > room", "following > size"),
    "line: buffers taken for packets": (SENDING, "        sent += packets\n", "        sent += done\n"),
    "line: a late packet never comes": (SENDING, "            words[HELD] = _0\n            n += _1\n    _send_all",
                                        "            words[HELD] = _0\n    _send_all"),
    "line: what is lost is listed wrongly": (SENDING, "= sending.firsts[slot], sending.counts[slot]",
                                             "= packet, sending.counts[slot]"),
    # order index
    "index: page kept": (INDEX, "    pool.give(index.page_pool, np.uint64(index.chunks[entry]) >> COUNT_BITS)\n", ""),
    "index: chunk kept": (INDEX, "        pool.give(index.chunk_pool, chunk)\n        index.recent[CHANGES]",
                          "        index.recent[CHANGES]"),
    "index: directory entry kept": (INDEX, "        hashing.remove(index.directory, key)\n", ""),
    "index: dead chunk remembered": (INDEX, "            index.recent[recent] = ~_0", "            pass"),
    "index: stale entries": (INDEX, "        index.recent[CHANGES] += _1\n        if", "        if"),
    "index: reference loses its page": (INDEX, "_turned(reference) & ~_PAGE_MASK", "_turned(reference) & _PAGE_MASK"),
    # price tree
    "tree: next includes itself": (TREE, "~((_1 << slot) | ((_1 << slot) - _1))", "~((_1 << slot) - _1)"),
    "tree: unmark does not climb": (TREE, "        while new == _0:\n", "        while False:\n"),
    "tree: mark does not climb": (TREE, "        while old == _0:\n", "        while False:\n"),
    "tree: sweep keeps hints": (TREE, "                tree.sides[remembered] = _0\n", "                pass\n"),
    "tree: sweep keeps children": (TREE, "                tree.children[at] = np.uint32(0)\n", ""
                                   "                pass\n"),
    "tree: sweep takes full nodes": (TREE, "if node != _0 and _has_child(tree, node):", "if False:"),
    "tree: hint of another price": (TREE, "return at if word >> _32 == (position >> _TRUNK_SHIFT) + _1 else _0",
                                    "return at"),
    # book
    "reduce: volume kept": (BOOK, "    book.pairs[volume_at(level)] -= shares\n", ""),
    "reduce: order kept": (BOOK, "    book.words[at] = np.uint64(book.words[at]) - shares\n", ""),
    "remove: ring link forgotten": (BOOK, "    words[word_at(after) + BEFORE] = before\n", ""),
    "remove: volume kept": (BOOK, "    book.pairs[volume_at(level)] -= np.uint64(words[at + SHARES])\n", ""),
    "remove: order stays live": (BOOK, "    words[at + LEVEL] = np.uint32(0)\n", ""),
    "best: not looked for again": (BOOK, "if tree.sides[record + BEST_LEVEL] == level:", "if False:"),
    "best: worse is better": (BOOK, "if key < tree.sides[record + BEST_KEY]", "if key > tree.sides[record + BEST_KEY]"),
    "level: chain cut": (BOOK, "    words[at + CHAIN] = following\n", "    words[at + CHAIN] = np.uint32(0)\n"),
    "level: chain out of order": (BOOK, "np.uint64(words[word_at(following) + KEY]) < key", "False"),
    "level: slot kept": (BOOK, "    pool.give(book.levels, (level - book.tally[LEVEL_BASE]) >> _1)\n", ""),
    "add: at the head": (BOOK, "    words[ring + LAST] = node\n", ""),
    "position: no order round a dollar": (BOOK, "price + _DOLLAR * np.uint64(63)", "price + _DOLLAR * np.uint64(62)"),
    "position: bids as asks": (BOOK, "spread ^ (((side & _1) - _1) & _MASK33)", "spread"),
    "key: bids as asks": (BOOK, "price ^ (((side & _1) - _1) & _MASK32)", "price"),
    # messages
    "U: other side": (LOOP, "        reference = load_be64(data, at + NEW_REFERENCE)\n",
                      "        reference, side = load_be64(data, at + NEW_REFERENCE), side ^ _1\n"),
    "U: keeps the old order": (LOOP, "        books.remove_order(book, entry, node, level, reference)\n        if what",
                               "        if what == REPLACE:\n            pass\n        else:\n            "
                               "books.remove_order(book, entry, node, level, reference)\n        if what"),
    "U: other shares": (LOOP, "load_be32(data, at + NEW_SHARES)", "load_be32(data, at + TAKEN_SHARES)"),
    "C: reduces nothing": (LOOP, "        if what < DELETE:\n", "        if what == EXECUTE_AT:\n            return\n"
                           "        if what < DELETE:\n"),
    "C: not printable counts": (LOOP, "load_u8(data, at + PRINTABLE) != _N", "True"),
    "over-fill: wraps around": (LOOP, "if shares < open_shares:", "if shares != open_shares:"),
    "over-fill: not counted": (LOOP, "np.uint64(shares > open_shares)", "_0"),
    "over-fill: traded in full": (LOOP, "min(shares, open_shares)", "shares"),
    "nothing left: stays": (LOOP, "if shares < open_shares:", "if shares <= open_shares:"),
    "unknown: not counted": (LOOP, "            feed.unknown_reference[load_u8(data, at)] += _1\n", ""),
    "repeated: both stay": (LOOP, "        _remove(book, entry, node, reference)\n", ""),
    "repeated: not counted": (LOOP, "        feed.anomalies[DUPLICATE_REFERENCE] += _1\n", ""),
    "crossed: counted again": (LOOP, " and not was_crossed:", ":"),
    "crossed: locked is not": (BOOK, "return bid_price >= sides", "return bid_price > sides"),
    "crossed: first order of a side": (LOOP, "old = price_tree.NO_KEY if empty else ", "old = "),
    "halted: not noted": (LOOP, "            trading[locate] &= ~TRADING\n", "            pass\n"),
    "halted by others: not noted": (LOOP, "            trading[locate] &= ~NOT_HALTED\n", "            pass\n"),
    "closed: not noted": (LOOP, "            session[MARKET_HOURS] = _0\n", "            pass\n"),
    "name: first of a side": (LOOP, "    if names[side >> _1] == _0:\n", "    if True:\n"),
    "full: no sweep": (BOOK, "    price_tree.sweep(book.tree)\n    return room(", "    return room("),
    # packets
    "packet: last block may be cut": (MOLD, "if following > end:\n            return", "if False:\n            return"),
    "packet: end of session has messages": (MOLD, "return _0 if count == _END else count", "return count"),
    "pack: one message too many": (MOLD, "while messages < most and", "while messages <= most and"),
    "copy: empty blocks stay": (MOLD, "if length == _0:\n            at =", "if False:\n            at ="),
    "lines: a copy is new": (ARBITER, "min(messages, expected - sequence) if sequence < expected else _0", "_0"),
    "lines: ahead is next": (ARBITER, "    if sequence > expected:\n", "    if False:\n"),
    "window: out of order": (ARBITER, "        if held[previous] <= sequence:\n", "        if True:\n"),
    "window: one packet less": (ARBITER, "if state[HELD] > state[WINDOW]:", "if state[HELD] >= state[WINDOW]:"),
    "window: slot used twice": (ARBITER, "    arbiter.slots[state[WINDOW] - state[HELD]] = begin\n", ""),
    "gap: not counted": (ARBITER, "    state[MISSING] += behind - first\n", ""),
    "tail: not announced": (ARBITER, "        state[ANNOUNCED] = following\n", "        pass\n"),
    "soup: length without the type": (SOUP, "following = begin + _2 + length", "following = begin + _3 + length"),
    "soup: again what was had": (SOUP, "if state[NEXT] < state[WANTED]:", "if False:"),
    # captures
    "capture: fragments taken": (HEADERS, "load_be16(data, ip + _6) & _MORE_OR_OFFSET != _0", "False"),
    "capture: padding taken": (HEADERS, "min(stop, udp + load_be16(data, udp + _4))", "end"),
    "capture: options of IP taken": (HEADERS, "(load_u8(data, ip) & _15) << _2", "_20"),
    "capture: one tag only": (HEADERS, "            ip += _4\n", "            ip += _4\n            break\n"),
    "capture: time of another clock": (RECORDS, "ticks = load_u8(data, option + _4)", "pass"),
    "capture: order of a section": (RECORDS, "np.uint64(magic == _ORDER_MAGIC)", "_0"),
    "capture: cut record taken": (RECORDS,
                                  "end:\n                return _MORE, position, filled, size\n            unit",
                                  "end:\n                pass\n            unit"),
    "capture: held back for ever": (RECORDS, "if filled > room or give_up(arbiter) == _0:", "if True:"),
    # tables
    "touch: shares of the best alone": (RECORD, "np.uint64(was_best) | np.uint64(new_key", "np.uint64(new_key"),
    "touch: a row for nothing": (RECORD, "touch[last + _1] == bids and", "False and"),
    "trade: not of a fill": (RECORD, "what - EXECUTE <= EXECUTE_AT - EXECUTE:", "what == EXECUTE_AT:"),
    "depth: one rank late": (STEPS, "book_views.level_after(book, before) if before", "before if before"),
    "depth: an ended level stays": (STEPS, "np.uint64(book.words[at + books.FIRST]) == level or ", ""),
    "depth: a level that is another now": (STEPS, " or np.uint64(book.words[at + books.KEY]) != key", ""),
    "depth: a replacement's row": (RECORD, "        steps.end_row(rows)\n\n\n@kernel(**_COLD)\ndef _depth_anew",
                                   "        pass\n\n\n@kernel(**_COLD)\ndef _depth_anew"),
    "depth: old shares": (UNFOLDING, "        store_le64(now, amounts + (rank << _3), shares)\n        return",
                          "        return"),
    "depth: a row for nothing": (UNFOLDING, "if changed != _0:", "if True:"),
    "depth: the last rows": (UNFOLDING, "if filled != _0:", "if False:"),
    "orders: a delete cancels nothing": (LIVES, "elif what - CANCEL <= DELETE - CANCEL:", "elif what == CANCEL:"),
    "sift: decided once for all": (SIFT, " or (kind == _R and sieve.symbols.size != 0):", ":"),
    "sift: numbers of what is left": (SIFT, "sieve.numbers[kept] = number", "sieve.numbers[kept] = kept"),
    # several cores
    "deal: the session is one core's": (DEALT, "if what == OTHER and load_u8(data, message) == _S:", "if False:"),
    "deal: hands kept": (SHARDED, "piece.size, piece.hands.sizes[:] = 0, 0", "piece.size = 0"),
    "deal: rest lost": (SHARDED, "                self._rest += piece.memory[begin:end].tobytes()\n",
                        "                pass\n"),
    "play: the first batch over": (DEALT, "card = np.uint64(cards[played + i])", "card = np.uint64(cards[i])"),
    "play: entries of before": (DEALT, "            if order_indices.changes_of(book.index) != changes:\n",
                                "            if False:\n"),
    # tick to trade
    "level: new takes its own slot": (LEVELS, "taken = _LAST if action == NEW else place", "taken = place"),
    "level: deleted keeps its size": (LEVELS, "words[slot + _1] = size_and_orders & keep",
                                      "words[slot + _1] = size_and_orders"),
    "level: touch of the old order": (LEVELS, "    words[touch] = words[best]\n", ""),
    "order: taken twice": (ENGINE, "    words[other + _1] = quoted - quantity * fires\n", ""),
    "order: on the strength of lost ticks": (ENGINE, " & (late ^ _1)", ""),
    "order: bids as offers": (ENGINE, "if offer != _0 else (words[mine]", "if offer == _0 else (words[mine]"),
    "tick: again": (ENGINE, "if sequence < expected:", "if False:"),
    "walk: beyond the end": (WALK, "stack[deep, _3]\n            if length > end - at:",
                             "stack[deep, _3]\n            if False:"),
    # receiver and consumer
    "receive: a gap untold": (RECEIVING, "if not _up_to(receiving, ring, sequence) or rings", "if rings"),
    "receive: a full ring as a loss": (RECEIVING, "            state[PENDING_FIRST] = state[NEXT]\n", ""),
    "receive: a packet's first number only": (RECEIVING, "        at += length\n        sequence += _1\n",
                                              "        at += length\n"),
    "receive: nothing is strange": (RECEIVING, "not fits or np.uint64(LEN", "not fits and np.uint64(LEN"),
    "consume: a gap not flagged": (CONSUMING, "        state[INCOMPLETE] = first\n", "        pass\n"),
    "consume: a gap of no numbers": (CONSUMING, "    state[NEXT] = behind\n", ""),
    "consume: released unread": (CONSUMING, "rings.release(ring, count)", "rings.release(ring, count + _1)"),
    # framing
    "frame: last message waits": (BATCH, "if following > end:", "if following >= end:"),
    "frame: bad length applied": (BATCH, "        what = SKIP\n", ""),
    "frame: zero is no end": (BATCH, "SKIP, following, END_OF_SESSION", "SKIP, following, MORE"),
    "chunks: rest lost": (REPLAYER, "                self._rest += data[begin:].tobytes()\n", "                pass\n"),
}  # fmt: skip
"""Name → (file, text that stands in it once, text in its place)."""


def plant(name, folder):
    """Copy what is needed of the package, with one bug."""
    file, old, new = MUTANTS[name]
    for part in PARTS:
        source = ROOT / "photonlab" / part
        if source.is_dir():
            shutil.copytree(source, folder / "photonlab" / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / "photonlab").mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / "photonlab" / part)
    path = folder / "photonlab" / file
    text = path.read_text()
    if old and text.count(old) != 1:
        raise LookupError(f"no longer applies: {file} has it {text.count(old)} times")
    path.write_text(text.replace(old, new) if old else text)


def start(name, folder):
    """Plant a bug and look for it in a process of its own; give that process and the pipe that it reports to."""
    plant(name, Path(folder))
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    os.close(read)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    found = ""
    try:
        for name_of_room in ("bits", "atomics", "lines"):
            sys.modules[f"photonlab.machine.{name_of_room}"] = importlib.import_module(f"tests.oracle.{name_of_room}")
        importlib.import_module("tests.mutant_checks").check_all(MUTANTS[name][0] in (BOOK, BATCH, LOOP, REPLAYER))
    except BaseException as error:
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        checks = [name for name in names if name.startswith("check_") and name != "check_all"]
        found = f"{(checks or ['?'])[0]}: {type(error).__name__}"
    os.write(write, found.encode())
    os._exit(0)


def finish(child, read):
    """Give how a mutant was found, None if it was not."""
    with os.fdopen(read) as pipe:
        found = pipe.read()
    _, status = os.waitpid(child, 0)
    return found or ("endless" if os.WIFSIGNALED(status) else None)


def run(names):
    """Give how each mutant was found, as many at a time as there are cores."""
    results, width = {}, len(os.sched_getaffinity(0))
    for begin in range(0, len(names), width):
        with tempfile.TemporaryDirectory() as folder:
            running = {}
            for name in names[begin : begin + width]:
                try:
                    running[name] = start(name, os.path.join(folder, str(len(running))))
                except LookupError as error:
                    results[name] = str(error.args[0])
            results |= {name: finish(*process) for name, process in running.items()}
    return results


def main(names):
    """Run the mutants of these names, or all."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    warnings.simplefilter("ignore")
    for module in ("numba", "numba.extending", "numpy", "llvmlite.binding", "hypothesis.strategies"):
        importlib.import_module(module)
    print(json.dumps(run(names or list(MUTANTS)), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
