"""Where things are, as absolute paths: nothing in photonlab depends on the working directory."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
FIGURES = ROOT / "figures"
OUT = ROOT / "out"
CACHE = Path(os.environ.get("PHOTONLAB_CACHE", DATA / "cache"))
"""Synthetic days and compiled kernels; safe to delete at any time."""
