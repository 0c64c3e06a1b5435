"""SBE in plain Python: descriptions of messages as lists, their XML, and their bytes put together piece by piece.

A description: {"fields": […], "groups": [(name, description, since)…], "data": [(name, charset, since)…], "spare": n}
with fields (name, kind, primitive, length, presence, since) of kinds number, enum, set and composite (its members as
fields in place of the primitive).
"""

import struct

SIZES = {"char": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
         "float": 4, "double": 8}  # fmt: skip
ENUM = {1: "One", 2: "Two", 77: "Many"}
SET = {0: "first", 3: "fourth", 7: "last"}


def null(primitive):
    """The value that stands for none."""
    bits = 8 * SIZES[primitive]
    return 0 if primitive == "char" else -(1 << bits - 1) if primitive[0] == "i" else (1 << bits) - 1


def size(field):
    """Bytes that a field takes."""
    _, kind, primitive, length, presence, _ = field
    if presence == "constant":
        return 0
    return sum(map(size, primitive)) if kind == "composite" else SIZES[primitive] * length


def number(value, primitive, big):
    """Bytes of one value."""
    if primitive in ("float", "double"):
        return struct.pack((">" if big else "<") + primitive[0], value)
    return value.to_bytes(SIZES[primitive], "big" if big else "little", signed=primitive[0] == "i")


def field_bytes(field, value, big):
    """Bytes of a field."""
    _, kind, primitive, length, presence, _ = field
    if presence == "constant":
        return b""
    if kind == "composite":
        return b"".join(field_bytes(member, value[member[0]], big) for member in primitive)
    if kind == "enum" and isinstance(value, str):
        value = next(code for code, name in ENUM.items() if name == value)
    if kind == "set":
        value = sum(1 << next(bit for bit, name in SET.items() if name == one) for one in value)
    if primitive == "char" and kind == "number":
        return (value or "").encode().ljust(length, b"\0")
    if length > 1:
        return b"".join(number(null(primitive) if one is None else one, primitive, big) for one in value)
    return number(null(primitive) if value is None else value, primitive, big)


def block_length(shape, version):
    """Bytes of a block in a version, whose later fields come last."""
    kept = [field for field in shape["fields"] if field[5] <= version]
    spare = shape["spare"] if len(kept) == len(shape["fields"]) else 0
    return sum(map(size, kept)) + spare


def message(shape, value, big, version, newest, *, longer=b""):
    """Bytes of a message; `longer` stands behind each block as fields of a version to come."""
    blocks = []
    length = block_length(shape, version) + len(longer)
    head = b"".join(number(word, "uint16", big) for word in (length, 5, 9, version if not longer else newest + 1))
    return head + block(shape, value, big, version, longer, blocks, len(head), ""), blocks


def block(shape, value, big, version, longer, blocks, at, path):
    """Bytes of a block and what follows; notes path, offset and length of each block and data."""
    out = b"".join(field_bytes(one, value[one[0]], big) for one in shape["fields"] if one[5] <= version)
    out = out.ljust(block_length(shape, version), b"\0") + longer
    blocks.append((path, at, len(out)))
    for name, inner, since in shape["groups"]:
        if since <= version:
            length = block_length(inner, version) + len(longer)
            out += number(length, "uint16", big) + number(len(value[name]), "uint8", big)
            for entry in value[name]:
                out += block(inner, entry, big, version, longer, blocks, at + len(out), f"{path}.{name}".lstrip("."))
    for name, _, since in shape["data"]:
        if since <= version:
            raw = value[name].encode() if isinstance(value[name], str) else value[name]
            out += number(len(raw), "uint16", big)
            blocks.append((f"{path}.{name}".lstrip("."), at + len(out), len(raw)))
            out += raw
    return out


def without(shape, value, version):
    """What a reader of the newest version sees of a message of an older one."""
    seen = {one[0]: value[one[0]] if one[5] <= version or one[4] == "constant" else None for one in shape["fields"]}
    for name, inner, since in shape["groups"]:
        seen[name] = [without(inner, entry, version) for entry in value[name]] if since <= version else []
    for name, _, since in shape["data"]:
        seen[name] = value[name] if since <= version else None
    return seen


def xml(shape, big, newest):
    """The schema of a message M, template 5 of schema 9."""
    types, made = [], []
    head = "".join(f'<type name="{name}" primitiveType="uint16"/>' for name in
                   ("blockLength", "templateId", "schemaId", "version"))  # fmt: skip
    types.append(f'<composite name="messageHeader">{head}</composite>')
    types.append('<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>'
                 '<type name="numInGroup" primitiveType="uint8"/></composite>')  # fmt: skip
    for charset in ("UTF-8", ""):
        encoding = f'characterEncoding="{charset}"' if charset else ""
        types.append(f'<composite name="data{charset}"><type name="length" primitiveType="uint16"/>'
                     f'<type name="varData" primitiveType="uint8" length="0" {encoding}/></composite>')  # fmt: skip

    def type_of(field, name):
        _, kind, primitive, length, presence, _ = field
        if kind == "composite":
            return f'<composite name="{name}">{"".join(type_of(one, one[0]) for one in primitive)}</composite>'
        if kind == "enum":
            values = "".join(f'<validValue name="{text}">{code}</validValue>' for code, text in ENUM.items())
            return f'<enum name="{name}" encodingType="{primitive}">{values}</enum>'
        if kind == "set":
            values = "".join(f'<choice name="{text}">{bit}</choice>' for bit, text in SET.items())
            return f'<set name="{name}" encodingType="{primitive}">{values}</set>'
        text = "7" if presence == "constant" else ""
        return (f'<type name="{name}" primitiveType="{primitive}" length="{length}" presence="{presence}">'
                f"{text}</type>")  # fmt: skip

    def inside(one):
        text = ""
        for field in one["fields"]:
            made.append(type_of(field, f"T{len(made)}"))
            text += f'<field name="{field[0]}" id="1" type="T{len(made) - 1}" sinceVersion="{field[5]}"/>'
        for name, inner, since in one["groups"]:
            text += (f'<group name="{name}" id="2" sinceVersion="{since}" blockLength="{block_length(inner, newest)}">'
                     f"{inside(inner)}</group>")  # fmt: skip
        for name, charset, since in one["data"]:
            text += f'<data name="{name}" id="3" sinceVersion="{since}" type="data{charset}"/>'
        return text

    body = inside(shape)
    order = "bigEndian" if big else "littleEndian"
    return (f'<?xml version="1.0"?><messageSchema id="9" version="{newest}" byteOrder="{order}">'
            f'<types>{"".join(types + made)}</types>'
            f'<message name="M" id="5" blockLength="{block_length(shape, newest)}">{body}</message></messageSchema>'
            )  # fmt: skip
