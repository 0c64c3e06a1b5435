"""What a reader must know of the machine beside its numbers. Nothing is left out: what cannot be read says "unknown".

Linux is read from /proc and /sys, macOS by sysctl. Every fact is gathered by a small function that may fail;
`collect` turns any failure into "unknown", so that a foreign, hardened or damaged system costs a fact and never a
run.
"""

import ctypes
import importlib.metadata
import math
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from photonlab.machine import clock, counter, system
from photonlab.machine.system import read_text, sysctl

UNKNOWN = "unknown"

FLAGS = (
    *("constant_tsc", "nonstop_tsc", "rdtscp", "tsc_known_freq", "movbe", "bmi1", "bmi2", "popcnt"),
    *("sse4_2", "avx2", "avx512f", "pdpe1gb", "waitpkg", "atomics", "crc32", "sve"),
)
"""Features on which kernels or their timing depend; the fact lists those that the processor has."""

PACKAGES = ("numpy", "numba", "llvmlite", "pandas", "pyarrow", "matplotlib", "papermill", "nbconvert", "jupyterlab")

_ROOT = Path("/")

# (vendor, family) -> [(models, name)]; public tables of the makers
_MICROARCHITECTURES = {
    ("GenuineIntel", 6): [
        ({0x25, 0x2C, 0x2F}, "Westmere"),
        ({0x2A, 0x2D}, "Sandy Bridge"),
        ({0x3A, 0x3E}, "Ivy Bridge"),
        ({0x3C, 0x3F, 0x45, 0x46}, "Haswell"),
        ({0x3D, 0x47, 0x4F, 0x56}, "Broadwell"),
        ({0x4E, 0x5E}, "Skylake"),
        ({0x55}, "Skylake-SP, Cascade Lake or Cooper Lake"),
        ({0x8E, 0x9E}, "Kaby Lake or Coffee Lake"),
        ({0xA5, 0xA6}, "Comet Lake"),
        ({0x6A, 0x6C}, "Ice Lake-SP"),
        ({0x7D, 0x7E}, "Ice Lake"),
        ({0x8C, 0x8D}, "Tiger Lake"),
        ({0x97, 0x9A, 0xBE}, "Alder Lake"),
        ({0xB7, 0xBA, 0xBF}, "Raptor Lake"),
        ({0x8F}, "Sapphire Rapids"),
        ({0xCF}, "Emerald Rapids"),
        ({0xAA, 0xAC}, "Meteor Lake"),
        ({0xAD, 0xAE}, "Granite Rapids"),
        ({0xAF}, "Sierra Forest"),
        ({0xC5, 0xC6}, "Arrow Lake"),
        ({0xBD}, "Lunar Lake"),
    ],
    ("AuthenticAMD", 0x17): [
        ({*range(0x08), *range(0x10, 0x20), *range(0x20, 0x30)}, "Zen or Zen+"),
        ({*range(0x30, 0x40), *range(0x60, 0x80), *range(0x90, 0xB0)}, "Zen 2"),
    ],
    ("AuthenticAMD", 0x19): [
        ({*range(0x10), *range(0x20, 0x30), *range(0x40, 0x60)}, "Zen 3"),
        ({*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0)}, "Zen 4"),
    ],
    ("AuthenticAMD", 0x1A): [(set(range(0x80)), "Zen 5")],
}
_ARM_CORES = {
    0xD08: "Cortex-A72",
    0xD0B: "Cortex-A76",
    0xD0C: "Neoverse N1",
    0xD40: "Neoverse V1",
    0xD49: "Neoverse N2",
    0xD4F: "Neoverse V2",
    0xD8E: "Neoverse N3",
    0xD84: "Neoverse V3",
}


def collect(root: Path | str = _ROOT) -> dict[str, dict[str, object]]:
    """Gather the facts.

    Parameters
    ----------
    root : Path
        The file system to read /proc, /sys and the like from; another one than "/" for tests. Facts that come from the
        running process (versions, allowed CPUs, calibration) do not depend on it.

    Returns
    -------
    dict of section to dict of name to value
        Values are text, whole or decimal numbers, or lists of them: fit for JSON. Every name is always there.
    """
    root = Path(root)
    return {
        section: {name: _fact(gather, root) for name, gather in facts.items()} for section, facts in SECTIONS.items()
    }


def _fact(gather, root):
    try:
        value = _fit(gather(root))
    except Exception:  # whatever a foreign system makes of it: a fact is lost, the run goes on
        return UNKNOWN
    return UNKNOWN if value in (None, "", []) else value


def _fit(value):
    """Return a fact as it may stand in a table and in JSON: text on one line and not too long, finite numbers."""
    if isinstance(value, list):
        return [_fit(part) for part in value]
    if isinstance(value, str):
        line = "".join(letter if letter.isprintable() else " " for letter in value)
        return " ".join(line.split())[:160]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(value)
    return value


def caches(root: Path = _ROOT, cpu: int = 0) -> list[dict[str, object]]:
    """Return the data and unified caches of a CPU, nearest first.

    Parameters
    ----------
    root : Path
        The file system to read /sys from.
    cpu : int
        Which CPU.

    Returns
    -------
    list of dict
        ``level`` (int), ``type`` (text), ``bytes`` (int), ``line_bytes`` (int or "unknown"), ``shared_by`` (number of
        CPUs, or "unknown"). Empty where the system does not tell.
    """
    found = []
    for index in range(16):
        folder = f"/sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
        level, kind, size = (read_text(f"{folder}/{name}", root) or "" for name in ("level", "type", "size"))
        if level.isdecimal() and kind in ("Data", "Unified") and _bytes(size):
            line = read_text(f"{folder}/coherency_line_size", root) or ""
            sharing = system.parse_cpus(read_text(f"{folder}/shared_cpu_list", root))
            found.append(
                {
                    "level": int(level),
                    "type": kind,
                    "bytes": _bytes(size),
                    "line_bytes": int(line) if line.isdecimal() else UNKNOWN,
                    "shared_by": len(sharing) or UNKNOWN,
                }
            )
    return sorted(found or _other_caches(root), key=lambda cache: cache["level"])


def _other_caches(root):
    """Return what sysctl (macOS) or getconf (glibc) say, where /sys says nothing."""
    rows = []
    if root != _ROOT:
        return rows
    for level, mac, conf in (
        (1, ("hw.perflevel0.l1dcachesize", "hw.l1dcachesize"), "LEVEL1_DCACHE"),
        (2, ("hw.perflevel0.l2cachesize", "hw.l2cachesize"), "LEVEL2_CACHE"),
        (3, ("hw.l3cachesize",), "LEVEL3_CACHE"),
    ):
        size = next((int(text) for name in mac if (text := sysctl(name) or "").isdecimal()), 0)
        size = size or _number(_run("getconf", f"{conf}_SIZE"))
        line = _number(sysctl("hw.cachelinesize") or _run("getconf", f"{conf}_LINESIZE"))
        if size:
            kind = "Data" if level == 1 else "Unified"
            line = line or UNKNOWN
            rows.append({"level": level, "type": kind, "bytes": size, "line_bytes": line, "shared_by": UNKNOWN})
    return rows


def _bytes(size: str) -> int:
    """Return a size such as ``32K`` or ``16M`` in bytes, 0 for anything else."""
    match = re.fullmatch(r"(\d{1,9})([KMG]?)", size)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else 0


def _number(text) -> int:
    return int(text) if text and text.strip().isdecimal() else 0


def _run(*command) -> str:
    """Return the output of a small system tool, empty when it is not there or does not answer."""
    if shutil.which(command[0]) is None:
        return ""
    asked = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    return asked.stdout.strip()


def _cpuinfo(root) -> dict[str, str]:
    """Return the first processor of /proc/cpuinfo as a dict."""
    fields: dict[str, str] = {}
    for line in (read_text("/proc/cpuinfo", root) or "").splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() not in fields:
            fields[key.strip()] = value.strip()
    return fields


def _model(root):
    info = _cpuinfo(root)
    return info.get("model name") or info.get("Model") or (root == _ROOT and sysctl("machdep.cpu.brand_string")) or None


def _identity(root):
    info = _cpuinfo(root)
    if "cpu family" in info:
        return (
            f"family {info['cpu family']}, model {info.get('model', UNKNOWN)}, stepping {info.get('stepping', UNKNOWN)}"
        )
    if "CPU part" in info:
        return f"implementer {info.get('CPU implementer', UNKNOWN)}, part {info['CPU part']}"
    return None


def _microarchitecture(root):
    info = _cpuinfo(root)
    if "CPU part" in info:
        return _ARM_CORES.get(int(info["CPU part"], 16))
    known = _MICROARCHITECTURES.get((info["vendor_id"], int(info["cpu family"])), [])
    return next((name for models, name in known if int(info["model"]) in models), None)


def _flags(root):
    have = set((_cpuinfo(root).get("flags") or _cpuinfo(root)["Features"]).split())
    return [flag for flag in FLAGS if flag in have]


def _cache_text(root):
    return [
        f"L{c['level']} {_human(c['bytes'])}, lines of {c['line_bytes']} bytes, CPUs that share it: {c['shared_by']}"
        for c in caches(root)
    ] or None


def _human(size: int) -> str:
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.4g} {unit}"
    return f"{size} bytes"


def _smt(root):
    state = read_text("/sys/devices/system/cpu/smt/active", root)
    return {"1": "on", "0": "off, or hidden by the hypervisor" if _hypervisor_flag(root) else "off"}.get(state)


def _numa(root):
    return len(system.parse_cpus(read_text("/sys/devices/system/node/online", root))) or None


def _governor(root):
    frequency = read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", root)
    return frequency or (f"{UNKNOWN} (no cpufreq)" if _exists(root, "/sys/devices/system/cpu") else None)


def _turbo(root):
    if (text := read_text("/sys/devices/system/cpu/intel_pstate/no_turbo", root)) in ("0", "1"):
        return "off" if text == "1" else "on"
    return {"1": "on", "0": "off"}.get(read_text("/sys/devices/system/cpu/cpufreq/boost", root))


def _boot_option(name):
    def gather(root):
        line = read_text("/proc/cmdline", root)
        values = [word.partition("=")[2] for word in (line or "").split() if word.partition("=")[0] == name]
        return None if line is None else (values[-1] if values else "none")

    return gather


def _huge_page_sizes(root):
    names = os.listdir(Path(root, "sys/kernel/mm/hugepages"))
    sizes = sorted(int(match[1]) for name in names if (match := re.fullmatch(r"hugepages-(\d+)kB", name)))
    reserved = [read_text(f"/sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages", root) for kb in sizes]
    return [f"{_human(kb << 10)} ({n or UNKNOWN} reserved)" for kb, n in zip(sizes, reserved, strict=True)] or None


def _transparent(root):
    text = read_text("/sys/kernel/mm/transparent_hugepage/enabled", root) or ""
    chosen = re.search(r"\[([a-z+]+)\]", text)
    return chosen[1] if chosen else None


def _hypervisor_flag(root) -> bool:
    return "hypervisor" in (_cpuinfo(root).get("flags") or "").split()


def _virtualised(root):
    """Say whether this is a virtual machine, and by which signs; None only when there is nothing to judge by."""
    signs = []
    if _hypervisor_flag(root):
        signs.append("the processor's hypervisor flag")
    kind = read_text("/sys/hypervisor/type", root)
    product = read_text("/sys/class/dmi/id/product_name", root)
    if kind:
        signs.append(f"/sys/hypervisor: {kind}")
    if product and re.search(r"KVM|Virtual|VMware|QEMU|Bochs|HVM|Droplet|Compute Engine", product):
        signs.append(f"product name {product}")
    detected = _run("systemd-detect-virt", "--vm") if root == _ROOT else ""
    if detected and detected != "none":
        signs.append(f"systemd-detect-virt: {detected}")
    if root == _ROOT and sysctl("kern.hv_vmm_present") == "1":
        signs.append("kern.hv_vmm_present")
    if signs:
        return f"yes ({'; '.join(signs)})"
    judged = _cpuinfo(root).get("flags") or product or detected or (root == _ROOT and sysctl("kern.hv_vmm_present"))
    return "no sign of it" if judged else None


def _container(root):
    signs = [name for name in ("/.dockerenv", "/run/.containerenv", "/run/systemd/container") if _exists(root, name)]
    groups = read_text("/proc/1/cgroup", root)
    signs += sorted({word for word in ("docker", "kubepods", "lxc", "containerd") if word in (groups or "")})
    if signs:
        return f"yes ({', '.join(signs)})"
    return "no sign of it" if groups is not None else None


def _exists(root, path) -> bool:
    return Path(root, path.lstrip("/")).exists()


def _clock_source(root):
    return read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", root)


def _libc(root):
    if sys.platform.startswith("linux"):
        function = ctypes.CDLL(None).gnu_get_libc_version
        function.restype = ctypes.c_char_p
        return f"glibc {function().decode()}"
    return " ".join(platform.libc_ver()).strip() or None


def _distribution(root):
    for line in (read_text("/etc/os-release", root) or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip().strip('"')
    return f"macOS {platform.mac_ver()[0]}" if root == _ROOT and platform.mac_ver()[0] else None


def _memory(root):
    for line in (read_text("/proc/meminfo", root) or "").splitlines():
        if (match := re.fullmatch(r"MemTotal:\s+(\d+) kB", line.strip())) is not None:
            return _human(round(int(match[1]) / 2**10) << 20)
    size = sysctl("hw.memsize") if root == _ROOT else None
    return _human(int(size)) if size else None


def _load(root):
    return [float(word) for word in read_text("/proc/loadavg", root).split()[:3]]


def _steal(root):
    """Return the share of CPU time since boot that the host took away."""
    for line in (read_text("/proc/stat", root) or "").splitlines():
        fields = line.split()
        if fields[:1] == ["cpu"]:
            spent = [int(field) for field in fields[1:9]]
            return f"{100 * spent[7] / sum(spent):.2f} % since boot"
    return None


def _setting(path, meanings=None):
    def gather(root):
        text = read_text(path, root)
        return text if not text or meanings is None else f"{text} ({meanings.get(text, UNKNOWN)})"

    return gather


def _frequency(root):
    now = clock.calibrate()
    return f"{now.hz / 1e9:.6f} GHz ± {now.error_ppm:.1f} ppm"


def _version(name):
    return lambda root: importlib.metadata.version(name)


SECTIONS = {
    "processor": {
        "model": _model,
        "vendor": lambda root: _cpuinfo(root).get("vendor_id") or _cpuinfo(root).get("CPU implementer"),
        "identity": _identity,
        "microarchitecture": _microarchitecture,
        "instruction set": lambda root: platform.machine(),
        "features of interest": _flags,
        "caches": _cache_text,
        "CPUs online": lambda root: len(system.parse_cpus(read_text("/sys/devices/system/cpu/online", root))) or None,
        "CPUs allowed": lambda root: list(system.allowed_cpus()),
        "SMT": _smt,
        "NUMA nodes": _numa,
    },
    "placement": {
        "virtual machine": _virtualised,
        "container": _container,
        "frequency governor": _governor,
        "turbo": _turbo,
        "idle governor": _setting("/sys/devices/system/cpu/cpuidle/current_governor"),
        "isolcpus": _boot_option("isolcpus"),
        "nohz_full": _boot_option("nohz_full"),
        "rcu_nocbs": _boot_option("rcu_nocbs"),
        "load at start (1, 5, 15 min)": _load,
        "steal": _steal,
    },
    "memory": {
        "total": _memory,
        "page size": lambda root: _human(os.sysconf("SC_PAGE_SIZE")),
        "transparent huge pages": _transparent,
        "huge page sizes": _huge_page_sizes,
    },
    "clock": {
        "read by kernels": lambda root: clock.name(),
        "why": lambda root: clock.choice().reason,
        "rate": _frequency,
        "kernel clock source": _clock_source,
        "hardware counter": lambda root: counter.architecture() and (clock.unfit(root) or "fit"),
    },
    "system": {
        "distribution": _distribution,
        "kernel": lambda root: f"{platform.system()} {platform.release()}",
        "C library": _libc,
        "io_uring_disabled": _setting(
            "/proc/sys/kernel/io_uring_disabled",
            {"0": "allowed", "1": "for privileged processes only", "2": "disabled"},
        ),
        "perf_event_paranoid": _setting("/proc/sys/kernel/perf_event_paranoid"),
    },
    "software": {
        "Python": lambda root: f"{platform.python_implementation()} {platform.python_version()}",
        **{name: _version(name) for name in PACKAGES},
    },
}
"""Facts by section: each a function of the root of the file system."""
