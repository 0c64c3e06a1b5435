"""The synthetic day: a file of ITCH 5.0 that looks like an exchange's, made from a seed, with the truth about it."""

from photonlab.systems.synth.files import cached, generate, truth_path, write
from photonlab.systems.synth.presets import PRESETS, PROFILES
from photonlab.systems.synth.statistics import statistics
from photonlab.systems.synth.truth import Truth

__all__ = ["PRESETS", "PROFILES", "Truth", "cached", "generate", "statistics", "truth_path", "write"]
