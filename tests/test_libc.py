"""The C library's allocator as kernels and Python see it."""

import errno
import platform
import subprocess
import sys

import numpy as np
import pytest
from numba.core import types

from photonlab import paths
from photonlab.machine import libc
from photonlab.machine.jit import kernel

LINUX = platform.system() == "Linux"


@kernel(cache=False)
def write_and_read(size, value):
    block = libc.malloc(np.uint64(size))
    libc.set_word_at(block, value)
    found = libc.word_at(block)
    libc.free(block)
    return found


def test_a_block_holds_what_was_written():
    for value in (0, 2**53 + 1, 2**63, 2**64 - 1):
        assert write_and_read(64, np.uint64(value)) == value


def test_usable_sizes_are_at_least_what_was_asked_for():
    sizes, out = np.array([1, 24, 64, 100, 4096], np.uint64), np.zeros(5, np.uint64)
    libc.usable_sizes(sizes, out)
    assert (out >= sizes).all()


def test_a_window_is_the_memory_itself():
    memory = np.arange(8, dtype=np.uint32)
    seen = libc.window(int(libc.address_of(memory)), memory.nbytes)
    seen[3] = 99
    assert memory[3] == 99 and seen.size == 8 and seen.flags.writeable


@pytest.mark.skipif(not LINUX, reason="the dynamic linker's answer is Linux's")
def test_who_answers_malloc():
    assert "/" in libc.provider().library


def test_preloadable_libraries_are_found_or_not():
    assert libc.preloadable("no-such-allocator-at-all") == ""


@pytest.mark.skipif(not libc.provider().glibc, reason="mallopt is glibc's")
def test_settings_are_taken_in_a_process_of_their_own():
    code = "from photonlab.machine import libc; print([libc.set_option(n, 1 << 20) for n in libc.OPTIONS], libc.trim())"
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("[True, True, True, True]"), done.stderr
    assert libc.trim() in (True, False)


def test_without_glibc_nothing_is_set(monkeypatch):
    monkeypatch.setattr(libc, "provider", lambda: libc.Provider("elsewhere", ""))
    assert not libc.set_option("M_TOP_PAD", 0) and not libc.trim()


_close = types.ExternalFunction("close", types.int32(types.int32))


@kernel(cache=False)
def why_not_closed(number):
    return _close(number), libc.errno()


def test_errno_says_why_a_call_failed():
    assert why_not_closed(types.int32.cast_python_value(-1)) == (-1, errno.EBADF)
