"""The fingerprint on whole, empty, unreadable and nonsensical systems: every fact is always there."""

import importlib.metadata
import json
import random
import tomllib

import pytest

from photonlab import paths
from photonlab.machine import fingerprint

PATHS = (
    "proc/cpuinfo proc/meminfo proc/stat proc/loadavg proc/cmdline proc/1/cgroup etc/os-release "
    "proc/sys/kernel/io_uring_disabled proc/sys/kernel/perf_event_paranoid sys/hypervisor/type "
    "sys/class/dmi/id/product_name sys/devices/system/node/online sys/devices/system/cpu/online "
    "sys/devices/system/cpu/isolated sys/devices/system/cpu/smt/active sys/devices/system/cpu/cpuidle/current_governor "
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor sys/devices/system/cpu/intel_pstate/no_turbo "
    "sys/devices/system/cpu/cpufreq/boost sys/kernel/mm/transparent_hugepage/enabled "
    "sys/devices/system/clocksource/clocksource0/current_clocksource "
    "sys/devices/system/clocksource/clocksource0/available_clocksource "
    + " ".join(
        f"sys/devices/system/cpu/cpu0/cache/index{i}/{name}"
        for i in range(4)
        for name in ("level", "type", "size", "coherency_line_size", "shared_cpu_list")
    )
).split()

NAMES = {section: list(facts) for section, facts in fingerprint.SECTIONS.items()}

FROM_THE_PROCESS = {
    ("processor", "instruction set"),
    ("processor", "CPUs allowed"),
    ("memory", "page size"),
    ("clock", "read by kernels"),
    ("clock", "why"),
    ("clock", "rate"),
    ("clock", "hardware counter"),
    ("system", "kernel"),
    ("system", "C library"),
}


def write(root, path, content):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())


def check_shape(facts):
    assert {section: list(names) for section, names in facts.items()} == NAMES
    for section, names in facts.items():
        for name, value in names.items():
            assert value is not None, (section, name)
            assert value not in ("", [], {}), (section, name)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_this_machine():
    facts = fingerprint.collect()
    check_shape(facts)
    assert facts["software"]["numba"] == importlib.metadata.version("numba")
    assert facts["clock"]["read by kernels"] != fingerprint.UNKNOWN
    assert facts["processor"]["CPUs allowed"]


def test_empty_system_says_unknown(tmp_path):
    facts = fingerprint.collect(tmp_path)
    check_shape(facts)
    for section, names in facts.items():
        for name, value in names.items():
            if section != "software" and (section, name) not in FROM_THE_PROCESS:
                assert value == fingerprint.UNKNOWN, (section, name)


def test_unreadable_system_says_unknown(tmp_path):
    for path in PATHS:
        (tmp_path / path).mkdir(parents=True, exist_ok=True)  # reading a folder fails, for root as well
    write(tmp_path, "sys/kernel/mm/hugepages", "not a folder")
    facts = fingerprint.collect(tmp_path)
    check_shape(facts)
    assert facts["processor"]["model"] == facts["memory"]["total"] == fingerprint.UNKNOWN
    assert facts["memory"]["huge page sizes"] == fingerprint.UNKNOWN


@pytest.mark.parametrize("seed", range(12))
def test_nonsense_never_raises(tmp_path, seed):
    rng = random.Random(seed)
    words = [
        "flags",
        ":",
        "cpu",
        "family",
        "model",
        "name",
        "99999999999999999999",
        "-1",
        "[",
        "]",
        "\0",
        "kB",
        "MemTotal:",
        "K",
    ]
    words += [
        "vendor_id : GenuineIntel\ncpu family : x\nmodel : \n",
        "CPU part : zz\n",
        "[never",
        "0-",
        "\n",
        "=",
        "é",
        "1e999",
        "nan",
    ]
    for path in PATHS:
        text = "".join(rng.choice([w, w + " ", w + "\n"]) for w in rng.choices(words, k=rng.randrange(30)))
        write(tmp_path, path, rng.choice([b"", rng.randbytes(200), text.encode(), text.encode("utf-16")]))
    (tmp_path / "sys/kernel/mm/hugepages/hugepages-xkB").mkdir(parents=True)
    check_shape(fingerprint.collect(tmp_path))


def system_of(root, cpuinfo):
    write(root, "proc/cpuinfo", cpuinfo)
    write(root, "proc/meminfo", "MemTotal:       24684084 kB\nMemFree: 1 kB\n")
    write(root, "proc/cmdline", "console=ttyS0 quiet isolcpus=2-3 nohz_full=3 secret=abc\n")
    write(root, "proc/loadavg", "0.50 1.25 2.00 1/100 4242\n")
    write(root, "proc/stat", "cpu  800 0 100 50 0 0 0 50 0 0\n")
    write(root, "proc/1/cgroup", "0::/docker/abcdef\n")
    write(root, "etc/os-release", 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    write(root, "proc/sys/kernel/io_uring_disabled", "2\n")
    write(root, "sys/devices/system/cpu/online", "0-7\n")
    write(root, "sys/devices/system/cpu/smt/active", "1\n")
    write(root, "sys/devices/system/node/online", "0-1\n")
    write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
    write(root, "sys/devices/system/cpu/intel_pstate/no_turbo", "1\n")
    write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    write(root, "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n")
    write(root, "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n")
    write(root, "sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    caches = (
        (1, "Data", "32K", "0,4"),
        (1, "Instruction", "32K", "0,4"),
        (2, "Unified", "1M", "0,4"),
        (3, "Unified", "33M", "0-7"),
    )
    for index, (level, kind, size, shared) in enumerate(caches):
        folder = f"sys/devices/system/cpu/cpu0/cache/index{index}"
        for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
            write(root, f"{folder}/{name}", f"{text}\n")
        write(root, f"{folder}/coherency_line_size", "64\n" if level < 3 else "sixty-four\n")


AMD = (
    "processor : 0\nvendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nmodel name : AMD EPYC\nstepping : 1\n"
    "flags : fpu rdtscp constant_tsc nonstop_tsc movbe hypervisor\n\nprocessor : 1\nmodel name : another\n"
)


def test_full_system(tmp_path):
    system_of(tmp_path, AMD)
    facts = fingerprint.collect(tmp_path)
    check_shape(facts)
    processor, placement = facts["processor"], facts["placement"]
    assert processor["model"] == "AMD EPYC"
    assert processor["microarchitecture"] == "Zen 4"
    assert processor["identity"] == "family 25, model 17, stepping 1"
    assert processor["features of interest"] == ["constant_tsc", "nonstop_tsc", "rdtscp", "movbe"]
    assert processor["CPUs online"] == 8
    assert processor["NUMA nodes"] == 2
    assert processor["SMT"] == "on"
    assert processor["caches"] == [
        "L1 32 KiB, lines of 64 bytes, CPUs that share it: 2",
        "L2 1 MiB, lines of 64 bytes, CPUs that share it: 2",
        "L3 33 MiB, lines of unknown bytes, CPUs that share it: 8",
    ]
    assert placement["virtual machine"] == "yes (the processor's hypervisor flag)"
    assert placement["container"] == "yes (docker)"
    assert placement["frequency governor"] == "performance"
    assert placement["turbo"] == "off"
    assert (placement["isolcpus"], placement["nohz_full"], placement["rcu_nocbs"]) == ("2-3", "3", "none")
    assert placement["load at start (1, 5, 15 min)"] == [0.5, 1.25, 2.0]
    assert placement["steal"] == "5.00 % since boot"
    assert facts["memory"]["total"] == "23.54 GiB"
    assert facts["memory"]["transparent huge pages"] == "madvise"
    assert facts["memory"]["huge page sizes"] == ["2 MiB (512 reserved)", "1 GiB (0 reserved)"]
    assert facts["clock"]["kernel clock source"] == "tsc"
    assert facts["system"]["distribution"] == "Debian GNU/Linux 12 (bookworm)"
    assert facts["system"]["io_uring_disabled"] == "2 (disabled)"
    assert "secret" not in json.dumps(facts)  # the rest of the boot line is nobody's business


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\nflags : fpu\n", "Sapphire Rapids"),
        ("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 37\nflags : fpu\n", "Westmere"),
        ("vendor_id : AuthenticAMD\ncpu family : 26\nmodel : 2\nflags : fpu\n", "Zen 5"),
        ("CPU implementer : 0x41\nCPU part : 0xd40\nFeatures : fp crc32 atomics\n", "Neoverse V1"),
        ("CPU implementer : 0x41\nCPU part : 0xfff\nFeatures : fp\n", "unknown"),
        ("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 9999\nflags : fpu\n", "unknown"),
        ("vendor_id : NewMaker\ncpu family : 1\nmodel : 1\nflags : fpu\n", "unknown"),
    ],
)
def test_microarchitectures(tmp_path, cpuinfo, name):
    write(tmp_path, "proc/cpuinfo", cpuinfo)
    facts = fingerprint.collect(tmp_path)
    assert facts["processor"]["microarchitecture"] == name
    assert facts["placement"]["virtual machine"] == ("unknown" if "flags" not in cpuinfo else "no sign of it")


@pytest.mark.parametrize(
    ("text", "size"), [("32K", 32768), ("1M", 1 << 20), ("2G", 2 << 30), ("64", 64), ("", 0), ("K", 0)]
)
def test_sizes(text, size):
    assert fingerprint._bytes(text) == size


def test_a_package_that_is_not_there(monkeypatch):
    monkeypatch.setitem(fingerprint.SECTIONS["software"], "no-such-package", fingerprint._version("no-such-package"))
    assert fingerprint.collect()["software"]["no-such-package"] == fingerprint.UNKNOWN


def test_all_packages_that_measure_are_listed():
    depends = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {"numpy", "numba", "pandas"} <= set(fingerprint.PACKAGES)
    assert set(fingerprint.PACKAGES) - {"llvmlite"} <= {text.split(">")[0] for text in depends}
