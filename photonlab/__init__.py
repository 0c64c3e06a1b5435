"""Numba kernels for low-latency market data, and notebooks that put published claims about such code to the test."""

__all__ = ["replay", "sbe", "tables"]


def __getattr__(name):
    """Import what is asked for: the command line's help should not wait for a compiler."""
    if name == "replay":
        from photonlab.systems.replay import replay

        return replay
    if name == "tables":
        from photonlab.systems.tables.make import tables

        return tables
    if name == "sbe":
        from importlib import import_module

        return import_module("photonlab.sbe")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
