"""Floor 4: measure, judge, publish."""

__all__ = [
    "claims",
    "comparison",
    "compilation",
    "consistency",
    "histogram",
    "intervals",
    "judging",
    "notebook",
    "openloop",
    "percentiles",
    "record",
    "results",
    "rows",
    "rules",
    "timing",
    "verdicts",
]


def __getattr__(name):
    """Import a room on first use, so that the command line does not pay for pandas and Parquet."""
    import importlib

    if name == "record":
        return importlib.import_module("photonlab.lab.results").record
    if name in __all__:
        return importlib.import_module(f"photonlab.lab.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
