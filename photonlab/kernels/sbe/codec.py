"""Messages as dicts: decoding a buffer and encoding a dict by a compiled schema, in plain Python."""

import math
import struct
from typing import NamedTuple

from photonlab.kernels.sbe.schema import Encoding, Group, Tables
from photonlab.kernels.sbe.schema_file import SbeError


class Message(NamedTuple):
    """A decoded message.

    Attributes
    ----------
    name : str
    header : dict of str to int
    value : dict
        Field → value; None for none. Numbers, arrays as lists; enums and sets by names (a value without a name as its
        integer, a bit without one as its number); text as str, trailing NULs dropped; a composite as a dict; a group as
        a list of dicts; variable data as str if the schema gives an encoding and the bytes have it, else bytes.
    length : int
        Bytes of the message, header included.
    """

    name: str
    header: dict
    value: dict
    length: int


def decode(tables: Tables, data, offset=0) -> Message:
    """Decode the message at an offset of a buffer.

    Raises
    ------
    SbeError
        With the offset, if the buffer ends within the message, or the schema or template is another.
    """
    view = memoryview(data).cast("B")
    if not 0 <= offset <= len(view):
        raise SbeError(f"offset {offset} of a buffer of {len(view)} bytes")
    reader = _Reader(view)
    header = reader.composite(tables.header, offset, tables.header.size, tables.version, offset)
    if None in [header[name] for name in ("blockLength", "templateId", "schemaId", "version")]:
        raise SbeError(f"offset {offset}: null in the header")
    if header["schemaId"] != tables.id:
        raise SbeError(f"offset {offset}: schema {header['schemaId']}, where {tables.source} is {tables.id}")
    message = tables.messages.get(header["templateId"])
    if message is None:
        known = ", ".join(str(template) for template in tables.messages)
        raise SbeError(f"offset {offset}: no template {header['templateId']}; the schema has {known}")
    block = offset + tables.header.size
    value, end = reader.block(message, block, header["blockLength"], header["version"], message.name)
    return Message(message.name, header, value, end - offset)


def encode(tables: Tables, name, value, version=None) -> bytes:
    """Encode a dict as a message with its header.

    Parameters
    ----------
    tables : Tables
    name : str or int
        Of the message, or its template.
    value : dict
        As `decode` gives it. Optional fields, groups and data may be left out; constants too.
    version : int, optional
        The version to write: what came later is left out. The schema's own by default.

    Raises
    ------
    SbeError
        Naming the field that is unknown, missing or does not fit.
    """
    message = tables.message(name)
    version = tables.version if version is None else version
    if not 0 <= version <= tables.version:
        raise SbeError(f"version {version} of a schema of version {tables.version}")
    writer = _Writer(version)
    head = {"templateId": message.id, "schemaId": tables.id, "version": version, "blockLength": writer.room(message)}
    for member in tables.header.members:  # the counts of groups and data that later versions of SBE have
        head.setdefault(member.name, {"numGroups": len(message.groups)}.get(member.name, len(message.data)))
    header = writer.value(tables.header, {member.name: head[member.name] for member in tables.header.members}, "header")
    return header + writer.block(message, value, message.name)


class _Reader:
    """Reads from one buffer, and never beyond it."""

    def __init__(self, view):
        self.view = view
        self.empty = 0  # entries that took no bytes: only their count, which may be a lie, bounds them

    def need(self, at, size, what):
        if at + size > len(self.view):
            raise SbeError(f"offset {at}: {what} needs {size} bytes; {max(len(self.view) - at, 0)} are left")

    def block(self, group: Group, at, length, version, path):
        """Return the fields of a block with what follows it, and the offset behind."""
        self.need(at, length, f"the block of {path}")
        value = {one.name: self.field(one, at, length, version, f"{path}.{one.name}") for one in group.fields}
        at += length
        for inner in group.groups:
            value[inner.name], at = self.group(inner, at, version, f"{path}.{inner.name}")
        for one in group.data:
            value[one.name], at = self.data(one, at, version, f"{path}.{one.name}")
        return value, at

    def group(self, group, at, version, path):
        if group.since > version:
            return [], at
        dimension = self.composite(group.dimension, at, group.dimension.size, version, path)
        length, count = dimension["blockLength"], dimension["numInGroup"]
        if length is None or count is None:
            raise SbeError(f"offset {at}: the dimensions of {path} are null")
        at += group.dimension.size
        if count * max(length, 1) > len(self.view) - at and length:
            raise SbeError(f"offset {at}: {count} entries of {length} bytes in {path}; {len(self.view) - at} are left")
        entries = []
        for _ in range(count):
            begin = at
            entry, at = self.block(group, at, length, version, path)
            entries.append(entry)
            self.empty += at == begin
            if self.empty > len(self.view):
                raise SbeError(f"offset {at}: more entries of no bytes than the buffer has bytes, in {path}")
        return entries, at

    def data(self, one, at, version, path):
        if one.since > version:
            return None, at
        size = self.number(one.length, at, path)
        at += one.length.offset + one.length.size
        self.need(at, size, path)
        raw = bytes(self.view[at : at + size])
        return _text_or_bytes(raw, one.charset), at + size

    def number(self, one, at, path):
        at += one.offset
        self.need(at, one.size, path)
        return one.format.unpack_from(self.view, at)[0]

    def field(self, one: Encoding, base, length, version, path):
        """Return a field's value; None if the block or version is too old for it."""
        if one.presence == "constant" and one.kind != "composite":
            return one.constant
        if one.since > version or one.offset + one.size > length:
            return None
        if one.kind == "composite":
            return self.composite(one, base + one.offset, one.size, version, path)
        at = base + one.offset
        self.need(at, one.size, path)
        if one.primitive == "char" and one.kind == "number" and one.length != 1:
            raw = bytes(self.view[at : at + one.size]).rstrip(b"\0")
            return None if not raw and one.presence == "optional" else _text(raw, one.charset)
        values = one.format.unpack_from(self.view, at)
        if one.length != 1:
            return [_plain(one, value) for value in values]
        return _plain(one, values[0])

    def composite(self, one, at, length, version, path):
        self.need(at, length, path)
        return {part.name: self.field(part, at, length, version, f"{path}.{part.name}") for part in one.members}


def _is_null(one, value):
    return value == one.null or (isinstance(value, float) and math.isnan(value) and math.isnan(one.null))


def _plain(one, value):
    """Return one element as people read it."""
    if one.kind == "set":
        bits = [bit for bit in range(8 * one.format.size) if value >> bit & 1]
        return [one.names.get(bit, bit) for bit in bits]
    if one.kind == "enum" and value in one.names:
        return one.names[value]
    if _is_null(one, value) and (one.presence == "optional" or one.kind == "enum"):
        return None
    if one.primitive == "char" and one.kind == "number":
        return chr(value)
    return value


def _text(raw, charset):
    try:
        return raw.decode(charset or "latin-1")
    except (UnicodeDecodeError, LookupError):
        return raw.decode("latin-1")


def _text_or_bytes(raw, charset):
    try:
        return raw.decode(charset) if charset else raw
    except (UnicodeDecodeError, LookupError):
        return raw


class _Writer:
    """Writes for one version of the schema."""

    def __init__(self, version):
        self.version = version

    def room(self, group):
        """Return the length of a block in this version: up to its last field that there was."""
        kept = [one for one in group.fields if one.since <= self.version]
        if len(kept) == len(group.fields):
            return group.block
        return max((one.offset + one.size for one in kept), default=0)

    def block(self, group, value, path):
        if not isinstance(value, dict):
            raise SbeError(f"{path} is given as a dict, not as {value!r}")
        parts = [*group.fields, *group.groups, *group.data]
        for name in value:
            if name not in [part.name for part in parts]:
                raise SbeError(f"{path} has no {name!r}; it has {', '.join(part.name for part in parts)}")
        out = bytearray(self.room(group))
        for one in group.fields:
            if one.since <= self.version and one.size:
                piece = self.value(one, value.get(one.name), f"{path}.{one.name}")
                out[one.offset : one.offset + one.size] = piece
        for inner in group.groups:
            if inner.since <= self.version:
                out += self.group(inner, value.get(inner.name) or [], f"{path}.{inner.name}")
        for one in group.data:
            if one.since <= self.version:
                out += self.data(one, value.get(one.name), f"{path}.{one.name}")
        return bytes(out)

    def group(self, group, entries, path):
        head = {"blockLength": self.room(group), "numInGroup": len(entries)}
        for member in group.dimension.members:
            head.setdefault(member.name, {"numGroups": len(group.groups)}.get(member.name, len(group.data)))
        out = self.value(group.dimension, {m.name: head[m.name] for m in group.dimension.members}, path)
        return out + b"".join(self.block(group, entry, f"{path}[{n}]") for n, entry in enumerate(entries))

    def data(self, one, value, path):
        value = b"" if value is None else value
        if isinstance(value, str):
            value = _encoded(value, one.charset, path)
        if not isinstance(value, bytes | bytearray | memoryview):
            raise SbeError(f"{path} is str or bytes, not {value!r}")
        value = bytes(value)
        return bytes(one.length.offset) + self.packed(one.length, [len(value)], path) + value

    def value(self, one: Encoding, value, path):
        """Return the bytes of a field."""
        if one.kind == "composite":
            return self.composite(one, value, path)
        if one.kind == "set":
            value = self.bits(one, value, path)
        elif one.kind == "enum" and isinstance(value, str):
            if value not in one.names.values():
                raise SbeError(f"{path} is one of {', '.join(one.names.values())}, not {value!r}")
            value = next(number for number, name in one.names.items() if name == value)
        elif one.kind == "number" and one.primitive == "char" and one.length != 1:
            raw = _encoded("" if value is None else value, one.charset, path)
            if len(raw) > one.length or (value is None and one.presence != "optional"):
                raise SbeError(f"{path} is text of up to {one.length} bytes, not {value!r}")
            return raw.ljust(one.length, b"\0")
        elif one.kind == "number" and one.primitive == "char" and isinstance(value, str):
            raw = _encoded(value, one.charset, path)
            if len(raw) != 1:
                raise SbeError(f"{path} is one character, not {value!r}")
            value = raw[0]
        if one.length != 1:
            if value is None and one.presence == "optional":
                value = [None] * one.length
            if not isinstance(value, list | tuple) or len(value) != one.length:
                raise SbeError(f"{path} is a list of {one.length}, not {value!r}")
            return self.packed(one, [one.null if part is None else part for part in value], path)
        if value is None and (one.presence == "optional" or one.kind == "enum"):
            value = one.null
        return self.packed(one, [value], path)

    def packed(self, one, values, path):
        try:
            return one.format.pack(*values)
        except (struct.error, OverflowError, TypeError):
            shown = values[0] if len(values) == 1 else values
            raise SbeError(f"{path} is {one.primitive}, which {shown!r} is not") from None

    def bits(self, one, value, path):
        numbers = {name: bit for bit, name in one.names.items()}
        word = 0
        for name in value or ():
            bit = numbers.get(name, name)
            if not isinstance(bit, int) or not 0 <= bit < 8 * one.size:
                raise SbeError(f"{path} has the names {', '.join(numbers)}, not {name!r}")
            word |= 1 << bit
        return word

    def composite(self, one, value, path):
        if value is None and one.presence == "optional":
            value = {}
        if not isinstance(value, dict):
            raise SbeError(f"{path} is given as a dict, not as {value!r}")
        for name in value:
            if name not in [part.name for part in one.members]:
                raise SbeError(f"{path} has no {name!r}")
        out = bytearray(one.size)
        for part in one.members:
            if part.size and part.since <= self.version:
                given = value.get(part.name)
                if given is None and one.presence == "optional" and part.kind == "number":
                    given = part.null if part.length == 1 else [part.null] * part.length
                out[part.offset : part.offset + part.size] = self.value(part, given, f"{path}.{part.name}")
        return bytes(out)


def _encoded(value, charset, path):
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    try:
        return value.encode(charset or "latin-1")
    except (UnicodeEncodeError, LookupError):
        try:
            return value.encode("latin-1")
        except UnicodeEncodeError:
            raise SbeError(f"{path} must be {charset or 'latin-1'}, not {value!r}") from None
    except AttributeError:
        raise SbeError(f"{path} is text, not {value!r}") from None
