"""Is there hardware here by which a program can go around the kernel's network (T12)? A probe, not a benchmark."""

from ctypes import util
from pathlib import Path

import pandas as pd

DRIVERS = ("sfc", "vfio-pci", "uio_pci_generic", "igb_uio", "mlx5_core", "ixgbe", "i40e", "ice", "ena", "virtio_net")
"""Drivers for whose devices DPDK has drivers of its own; `sfc` is ef_vi's."""

LIBRARIES = {"ef_vi": "ciul1", "DPDK": "rte_eal"}


def probe(root=Path("/")) -> pd.DataFrame:
    """Look for what kernel bypass needs.

    Parameters
    ----------
    root : Path
        In place of the file system's root, for tests.

    Returns
    -------
    DataFrame
        Columns "what", "found here", "enough" (bool).
    """
    cards = _drivers(root / "sys/class/net")
    solarflare = [name for name, driver in cards.items() if driver == "sfc"]
    groups = [path.name for path in _list(root / "dev/vfio") if path.name != "vfio"]
    uio = [path.name for path in _list(root / "dev") if path.name.startswith("uio")]
    pages = _read(root / "proc/sys/vm/nr_hugepages")
    found = [
        ("network devices and their drivers", ", ".join(f"{n} ({d})" for n, d in cards.items()) or "none", bool(cards)),
        ("a Solarflare card, for ef_vi", ", ".join(solarflare) or "none", bool(solarflare)),
        ("devices given to programs: VFIO groups, UIO", ", ".join([*groups, *uio]) or "none", bool(groups or uio)),
        ("reserved huge pages, for DPDK", pages or "unknown", pages not in ("", "0")),
    ]
    for name, library in LIBRARIES.items():
        there = util.find_library(library) if root == Path("/") else None
        found.append((f"the library of {name}", there or "none", bool(there)))
    return pd.DataFrame(found, columns=["what", "found here", "enough"])


def _list(folder):
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _read(path):
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _drivers(folder):
    found = {}
    for device in _list(folder):
        if device.name != "lo":
            link = device / "device" / "driver"
            found[device.name] = link.resolve().name if link.exists() else "no hardware behind it"
    return found


def reason(found) -> str:
    """Say why kernel bypass cannot be measured here, or that this notebook does not: it never sends through a card."""
    lacking = [row.what for row in found.itertuples() if not row.enough]
    if lacking:
        return f"not here: {'; '.join(lacking)}"
    return "all of it is here, but no second machine or switch port that this notebook could send to is known to it"


def row(found) -> dict:
    """Arguments of `record`."""
    return {"value": None, "unit": "ns", "note": reason(found)}


def table(found) -> pd.DataFrame:
    """Lay out the probe."""
    return found.assign(enough=found.enough.map({True: "yes", False: "no"}))
