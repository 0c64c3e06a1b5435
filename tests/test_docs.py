"""The documentation of the API is written from docstrings, kernels too, and asks nobody for anything."""

import re
import subprocess
import sys

import pytest


def test_kernels_are_documented_offline(tmp_path):
    pytest.importorskip("pdoc", reason="pdoc is missing: pip install 'photonlab[docs]'")
    command = [sys.executable, "-m", "pdoc", "-d", "numpy", "-o", str(tmp_path), "photonlab.kernels.open_table"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    page = (tmp_path / "photonlab" / "kernels" / "open_table.html").read_text()
    read = " ".join(re.sub(r"<[^>]+>", "", page).split())
    assert "Return the home slot of a key" in read and "Slots that it may grow to, a power of two" in read
    assert not re.search(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//', page)
