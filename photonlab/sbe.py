"""Simple Binary Encoding (FIX SBE 1.0): messages as dicts for people, and fields for kernels.

>>> schema = photonlab.sbe.load("schema.xml")
>>> message = schema.decode(buffer)           # name, header, value (a dict), length
>>> schema.encode("Car", message.value)       # the same bytes again
>>> MPG = schema.code("Car.fuelFigures.mpg")  # a constant for kernels: `fields.get(data, block, MPG)`
>>> plan, index = schema.plan("Car"), np.zeros((100, 4), np.uint64)
>>> schema.walk(plan, data, 0, len(data), index)  # where the blocks of all entries lie, checked, without a copy
"""

from photonlab.kernels.sbe import codec, fields, schema, walk
from photonlab.kernels.sbe.codec import Message
from photonlab.kernels.sbe.schema_file import SbeError

__all__ = ["Message", "SbeError", "Schema", "fields", "load"]


class Schema:
    """A compiled schema.

    Attributes
    ----------
    tables : photonlab.kernels.sbe.schema.Tables
    """

    def __init__(self, tables):
        self.tables = tables

    def __repr__(self):
        names = ", ".join(one.name for one in self.tables.messages.values())
        return f"<SBE schema {self.tables.id}, version {self.tables.version}: {names}>"

    def decode(self, data, offset=0) -> Message:
        """Decode the message at an offset; see `photonlab.kernels.sbe.codec.decode`."""
        return codec.decode(self.tables, data, offset)

    def encode(self, name, value, version=None) -> bytes:
        """Encode a dict as a message with its header; see `photonlab.kernels.sbe.codec.encode`."""
        return codec.encode(self.tables, name, value, version)

    def code(self, path):
        """Return the constant by which kernels read and write a field: "Message.group.field.member", "header.version".

        Raises
        ------
        SbeError
            If there is no such field, or it is no single value.
        """
        return self.tables.find(path).code

    def null(self, path):
        """Return the value that stands for none in a field."""
        return self.tables.find(path).null

    def plan(self, name):
        """Return a message's structure as tables for `walk`."""
        return walk.make_plan(self.tables, name)

    def part(self, path) -> int:
        """Return the number that a group or variable data has in an index of `walk`: "Message.group.inner"."""
        name, _, inner = path.partition(".")
        names = list(walk.parts(self.tables.message(name)))
        if inner not in names:
            raise SbeError(f"{name} has no group or data {inner!r}; it has {', '.join(names[1:])}")
        return names.index(inner)

    def walk(self, plan, data, offset, end, index) -> int:
        """Find the blocks of a message; see `photonlab.kernels.sbe.walk.find`.

        Returns
        -------
        int
            Rows of the index that are filled.

        Raises
        ------
        SbeError
            With the offset of what does not fit.
        """
        return walk.find_blocks(plan, data, offset, end, index)


def load(path) -> Schema:
    """Load and compile a schema.

    Parameters
    ----------
    path : path-like
        An XML file; files that it includes must lie in its folder or below it.

    Raises
    ------
    SbeError
        Naming file, line and what is wrong.
    """
    return Schema(schema.compile_file(path))
