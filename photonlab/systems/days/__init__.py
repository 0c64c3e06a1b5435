"""Many days at once: each a unit of work of its own, done by local processes or on a cluster, and done only once."""

from photonlab.systems.days.many import run

__all__ = ["run"]
