"""SBE schemas (FIX SBE 1.0) compiled to field tables: every field with its offset, width, kind and null value."""

import math
import struct
from dataclasses import dataclass, field, replace

import numpy as np

from photonlab.kernels.sbe import schema_file
from photonlab.kernels.sbe.schema_file import SbeError

FORMATS = {
    "char": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
    "uint64": "Q", "float": "f", "double": "d",
}  # fmt: skip
"""`struct` characters of the primitive types."""

WIDTHS = {name: struct.calcsize("<" + character) for name, character in FORMATS.items()}
NULLS = {"char": 0, "float": math.nan, "double": math.nan}
NULLS |= {name: -(1 << (8 * WIDTHS[name] - 1)) for name in FORMATS if name.startswith("int")}
NULLS |= {name: (1 << (8 * WIDTHS[name])) - 1 for name in FORMATS if name.startswith("uint")}
"""Value that stands for none, by primitive type (SBE 1.0, field encoding)."""

DEEPEST = 32
"""Composites and groups within each other at most."""

_WIDTH, _SIGNED, _BIG = 32, 40, 41


@dataclass(frozen=True)
class Encoding:
    """How one field, or one member of a composite, lies in its block.

    Attributes
    ----------
    name : str
    kind : str
        "number", "enum", "set" or "composite".
    primitive : str
        Of numbers, enums and sets.
    offset : int
        From the beginning of the block or composite that it stands in.
    size : int
        Bytes that it takes there; 0 for a constant.
    length : int
        Elements of a fixed array; 1 for a single value.
    presence : str
        "required", "optional" or "constant".
    null : int or float
        Value that stands for none.
    constant : object
        Value of a constant, as `decode` gives it.
    since : int
        First version of the schema that has it.
    charset : str
        Of an array of characters.
    names : dict of int to str
        Values of an enum, or bits of a set.
    members : tuple of Encoding
        Of a composite.
    big : bool
        Whether the most significant byte comes first.
    """

    name: str
    kind: str
    primitive: str = ""
    offset: int = 0
    size: int = 0
    length: int = 1
    presence: str = "required"
    null: object = None
    constant: object = None
    since: int = 0
    charset: str = ""
    names: dict = field(default_factory=dict)
    members: tuple = ()
    big: bool = False

    @property
    def format(self) -> struct.Struct:
        """The packing of its value or of all elements of its array."""
        return struct.Struct(f"{'>' if self.big else '<'}{self.length}{FORMATS[self.primitive]}")

    @property
    def code(self) -> np.uint64:
        """What `fields.get` and `fields.put` take: offset, width, sign and byte order in one word."""
        if self.kind == "composite" or self.length != 1 or not self.size:
            raise SbeError(f"{self.name} is no single value in a message")
        signed = self.primitive.startswith("int")
        return np.uint64(self.offset | self.size << _WIDTH | signed << _SIGNED | self.big << _BIG)


@dataclass(frozen=True)
class Group:
    """A message's root, or a repeating group.

    Attributes
    ----------
    name, id, since
    block : int
        Bytes of its own fields, by the schema.
    fields : tuple of Encoding
    groups : tuple of Group
        In the order in which they follow the block.
    data : tuple of Data
        Variable data behind the groups.
    dimension : Encoding or None
        The composite in front of a repeating group.
    """

    name: str
    id: int
    since: int
    block: int
    fields: tuple
    groups: tuple
    data: tuple
    dimension: Encoding | None = None


@dataclass(frozen=True)
class Data:
    """Variable data: a length and as many bytes.

    Attributes
    ----------
    name, id, since
    length : Encoding
        Of the length.
    charset : str
        Empty for bytes.
    """

    name: str
    id: int
    since: int
    length: Encoding
    charset: str


@dataclass(frozen=True)
class Tables:
    """A compiled schema.

    Attributes
    ----------
    source : str
    id, version : int
    big : bool
    header : Encoding
        The composite in front of each message.
    messages : dict of int to Group
        By template.
    """

    source: str
    id: int
    version: int
    big: bool
    header: Encoding
    messages: dict

    def message(self, name) -> Group:
        """Return a message by its name or template."""
        for one in self.messages.values():
            if name in (one.name, one.id):
                return one
        names = ", ".join(one.name for one in self.messages.values())
        raise SbeError(f"{self.source}: no message {name!r}; it has {names}")

    def find(self, path) -> Encoding:
        """Return a field by its path: "Message.field", "Message.group.field.member"; its offset counts from its block.

        "header.templateId" is a field of the header, "Message.group" the dimensions in front of a group's entries.
        """
        first, *rest = path.split(".")
        if first == "header":
            return _member(replace(self.header), rest, path)
        group, names = self.message(first), list(rest)
        while names and (inner := {one.name: one for one in group.groups}.get(names[0])):
            group = inner
            names.pop(0)
        if not names or (group.dimension is not None and names[0] in (m.name for m in group.dimension.members)):
            if group.dimension is None:
                raise SbeError(f"{self.source}: {path} is no field")
            return _member(group.dimension, names, path)
        for one in group.fields:
            if one.name == names[0]:
                return _member(one, names[1:], path)
        raise SbeError(f"{self.source}: no field {path}")


def _member(one, names, path):
    offset = one.offset
    for name in names:
        found = [member for member in one.members if member.name == name]
        if not found:
            raise SbeError(f"no field {path}: {one.name} has no {name}")
        one = found[0]
        offset += one.offset
    return replace(one, offset=offset)


def compile_file(path) -> Tables:
    """Compile a schema's file.

    Raises
    ------
    SbeError
        Naming file, line and what is wrong.
    """
    return _Compiler(schema_file.read(path)).tables()


class _Compiler:
    """One pass over a schema's tree."""

    def __init__(self, root):
        if root.tag != "messageSchema":
            raise root.wrong(f"a schema begins with <messageSchema>, not <{root.tag}>")
        order = root.get("byteOrder", "littleEndian")
        if order not in ("littleEndian", "bigEndian"):
            raise root.wrong(f"byteOrder must be littleEndian or bigEndian, not {order!r}")
        self.root, self.big, self.declared = root, order == "bigEndian", {}
        for types in root.children:
            for one in types.children if types.tag == "types" else ():
                if one.tag not in ("type", "composite", "enum", "set"):
                    raise one.wrong(f"<{one.tag}> among the types")
                if one.named() in self.declared:
                    raise one.wrong(f"a second type {one.named()!r}")
                self.declared[one.named()] = one

    def tables(self) -> Tables:
        """Return the compiled schema."""
        root = self.root
        header = self.type(root.get("headerType", "messageHeader"), root, 0)
        self._whole(header, ("blockLength", "templateId", "schemaId", "version"), root)
        messages = {}
        for one in root.children:
            if one.tag == "message":
                message = self.group(one, 0)
                if message.id in messages:
                    raise one.wrong(f"a second message with id {message.id}")
                messages[message.id] = message
        version = root.number("version", 0)
        return Tables(root.where, root.number("id", 0), version, self.big, header, messages)

    def type(self, name, user, depth) -> Encoding:
        """Return a type by its name, at offset 0."""
        if depth > DEEPEST:
            raise user.wrong(f"{name}: composites within each other, more than {DEEPEST} deep")
        if name in self.declared:
            return self.encoding(self.declared[name], depth)
        if name in FORMATS:
            return self._number(name, name, 1)
        raise user.wrong(f"no type {name!r}")

    def _number(self, name, primitive, length, **more):
        more = {"null": NULLS[primitive], **more}
        size = 0 if more.get("presence") == "constant" else WIDTHS[primitive] * length
        return Encoding(name, "number", primitive, size=size, length=length, big=self.big, **more)

    def encoding(self, one, depth) -> Encoding:
        """Return what an element among the types, or in a composite, describes."""
        since = one.number("sinceVersion", 0)
        if one.tag == "type":
            return self._simple(one, since)
        if one.tag in ("enum", "set"):
            return self._named(one, since, depth)
        if one.tag == "composite":
            members, at = [], 0
            for child in one.children:
                if child.tag == "ref":
                    if not child.get("type"):
                        raise child.wrong("<ref> without a type")
                    member = self.type(child.get("type"), child, depth + 1)
                    member = replace(member, name=child.named(), since=child.number("sinceVersion", 0))
                elif child.tag in ("type", "composite", "enum", "set"):
                    member = self.encoding(child, depth + 1)
                else:
                    raise child.wrong(f"<{child.tag}> in a composite")
                member, at = self._placed(child, member, at)
                members.append(member)
            self._once(one, members)
            return Encoding(one.named(), "composite", size=at, since=since, members=tuple(members), big=self.big)
        raise one.wrong(f"<{one.tag}> is no type")

    def _simple(self, one, since):
        primitive, presence = one.get("primitiveType"), one.get("presence", "required")
        if primitive not in FORMATS:
            raise one.wrong(f"primitiveType must be one of {', '.join(FORMATS)}, not {primitive!r}")
        if presence not in ("required", "optional", "constant"):
            raise one.wrong(f"presence must be required, optional or constant, not {presence!r}")
        text = one.text.strip()
        constant, length = None, one.number("length", 1, most=1 << 16)
        if presence == "constant":
            constant = self._constant(one, primitive, text) if text else None
            length = len(text) if primitive == "char" and "length" not in one.attributes else length
        null = one.get("nullValue")
        null = NULLS[primitive] if null is None else self._literal(one, primitive, null)
        return self._number(
            one.named(), primitive, length, presence=presence, null=null, constant=constant, since=since,
            charset=one.get("characterEncoding", ""),
        )  # fmt: skip

    def _constant(self, one, primitive, text):
        return text if primitive == "char" else self._literal(one, primitive, text)

    def _literal(self, one, primitive, text):
        try:
            if primitive in ("float", "double"):
                return float(text)
            value = ord(text) if primitive == "char" and len(text) == 1 else int(text)
            struct.pack("<" + FORMATS[primitive], value)
            return value
        except (ValueError, struct.error, TypeError):
            raise one.wrong(f"{text!r} is no value of {primitive}") from None

    def _named(self, one, since, depth):
        """Return an enum or a set."""
        base = self.type(one.get("encodingType", ""), one, depth + 1)
        if base.kind != "number" or base.length != 1 or base.primitive in ("float", "double"):
            raise one.wrong(f"encodingType {one.get('encodingType')!r} is no single integer or character")
        names = {}
        for value in one.children:
            if value.tag != ("validValue" if one.tag == "enum" else "choice"):
                raise value.wrong(f"<{value.tag}> in <{one.tag}>")
            number = self._literal(value, base.primitive if one.tag == "enum" else "uint8", value.text.strip())
            if one.tag == "set" and number >= 8 * base.size:
                raise value.wrong(f"bit {number} of {8 * base.size}")
            if number in names or value.named() in names.values():
                raise value.wrong(f"{value.named()} = {number} is there already")
            names[number] = value.named()
        return replace(base, name=one.named(), kind=one.tag, since=since, names=names, size=WIDTHS[base.primitive])

    def _placed(self, element, one, at):
        """Put a field or member at its offset, or behind those before it; return it and where the next one goes."""
        if one.presence == "constant":
            return replace(one, size=0, offset=at), at
        offset = element.number("offset", at, most=1 << 16)
        if offset < at:
            raise element.wrong(f"{one.name} at offset {offset} lies on what ends at {at}")
        return replace(one, offset=offset), offset + one.size

    def group(self, element, depth) -> Group:
        """Compile a message or a repeating group."""
        if depth > DEEPEST:
            raise element.wrong(f"groups within each other, more than {DEEPEST} deep")
        fields, groups, data, at = [], [], [], 0
        for child in element.children:
            if child.tag == "field" and not groups and not data:
                one, at = self._placed(child, self._field(child), at)
                fields.append(one)
            elif child.tag == "group" and not data:
                groups.append(self.group(child, depth + 1))
            elif child.tag == "data":
                data.append(self._data(child))
            else:
                raise child.wrong(f"<{child.tag}> here; fields come first, then groups, then data")
        self._once(element, [*fields, *groups, *data])
        block = element.number("blockLength", at, most=(1 << 16) - 1)
        if block < at:
            raise element.wrong(f"blockLength {block} of {element.named()}, whose fields take {at}")
        dimension = None
        if element.tag == "group":
            dimension = self.type(element.get("dimensionType", "groupSizeEncoding"), element, 0)
            self._whole(dimension, ("blockLength", "numInGroup"), element)
        return Group(
            element.named(), element.number("id", 0), element.number("sinceVersion", 0), block, tuple(fields),
            tuple(groups), tuple(data), dimension,
        )  # fmt: skip

    def _field(self, element):
        if not element.get("type"):
            raise element.wrong(f"{element.named()} has no type")
        one = self.type(element.get("type"), element, 0)
        presence = element.get("presence", one.presence)
        if presence not in ("required", "optional", "constant"):
            raise element.wrong(f"presence must be required, optional or constant, not {presence!r}")
        constant = one.constant
        if presence == "constant" and element.get("valueRef"):
            name = element.get("valueRef").rpartition(".")
            kind = self.type(name[0], element, 0) if name[0] else one
            if name[2] not in kind.names.values():
                raise element.wrong(f"valueRef {element.get('valueRef')!r} names no value")
            constant = name[2]
        elif presence == "constant" and element.text.strip():
            constant = self._constant(element, one.primitive or "char", element.text.strip())
        if presence == "constant" and constant is None and one.kind != "composite":
            raise element.wrong(f"{element.named()} is constant and has no value")
        since = element.number("sinceVersion", 0)
        return replace(one, name=element.named(), presence=presence, constant=constant, since=since)

    def _data(self, element):
        one = self.type(element.get("type", ""), element, 0)
        self._whole(one, ("length",), element)
        text = next((member for member in one.members if member.name == "varData"), None)
        length = next(member for member in one.members if member.name == "length")
        if text is None:
            raise element.wrong(f"{one.name} has no varData")
        since = element.number("sinceVersion", 0)
        return Data(element.named(), element.number("id", 0), since, length, text.charset)

    def _whole(self, one, names, element):
        """Check that a composite has unsigned single members of these names."""
        for name in names:
            found = [member for member in one.members if member.name == name]
            if not found or not found[0].primitive.startswith("uint") or found[0].length != 1 or not found[0].size:
                raise element.wrong(f"{one.name} must have an unsigned integer {name}")

    def _once(self, element, parts):
        names = [part.name for part in parts]
        for name in names:
            if names.count(name) > 1:
                raise element.wrong(f"a second {name!r} in {element.named()}")
