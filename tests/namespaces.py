"""Programs run in a network namespace of their own: with loopback down as it is made, or up, or without multicast.

And without sendmmsg, as in a sandbox that does not know it.
"""

import contextlib
import ctypes
import functools
import os
import platform
import socket
import struct
import subprocess
import sys
from pathlib import Path

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_NO_NEW_RIGHTS, _FILTER_CALLS, _BY_FILTER, _ALLOW, _NO_CALL = 38, 22, 2, 0x7FFF0000, 0x00050000 | 38  # prctl, seccomp
_SENDMMSG = {"x86_64": 307, "aarch64": 269}
_MEMBERSHIPS = Path("/proc/sys/net/ipv4/igmp_max_memberships")
ROOT = Path(__file__).resolve().parent.parent


def enter():
    """Put this process into a new network namespace: as root, or by a user namespace in which it is root."""
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    if libc.unshare(_NEW_NET) == 0:
        return
    if libc.unshare(_NEW_USER | _NEW_NET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def set_up():
    """Bring loopback up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        ioctl = __import__("fcntl").ioctl
        flags = struct.unpack("16sh", ioctl(one, _GET_FLAGS, struct.pack("16sh22x", b"lo", 0))[:18])[1]
        ioctl(one, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _UP))


def refuse_groups():
    """Let nobody join a group."""
    _MEMBERSHIPS.write_text("0")


def refuse_sendmmsg():
    """Let sendmmsg fail with ENOSYS, by a filter of four instructions: load the number, compare, allow, refuse."""
    steps = ((0x20, 0, 0, 0), (0x15, 1, 0, _SENDMMSG[platform.machine()]), (6, 0, 0, _ALLOW), (6, 0, 0, _NO_CALL))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((_NO_NEW_RIGHTS, 1, 0, 0, 0), (_FILTER_CALLS, _BY_FILTER, program, 0, 0)):
        if libc.prctl(*(one if one is program else ctypes.c_ulong(one) for one in call)) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


STEPS = {"up": set_up, "no-groups": refuse_groups, "no-sendmmsg": refuse_sendmmsg}


def main(arguments):
    """Enter, do the steps of these names, and become the program that follows "--"."""
    at = arguments.index("--")
    enter()
    for step in arguments[:at]:
        STEPS[step]()
    os.execv(sys.executable, [sys.executable, *arguments[at + 1 :]])


def inside(steps, *arguments, **options):
    """Run Python with some arguments in a namespace of its own; return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "tests.namespaces", *steps, "--", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False, **options,
    )  # fmt: skip


@functools.cache
def why_not(*steps) -> str:
    """Return why no such namespace can be made here, an empty text if one can."""
    done = inside(steps, "-c", "")
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


if __name__ == "__main__":
    main(sys.argv[1:])
