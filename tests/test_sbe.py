"""The SBE codec against plain Python: random schemas and values, older and newer versions, damage; and bad schemas."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import photonlab.sbe as sbe
from photonlab.kernels.sbe import walk
from photonlab.machine.jit import kernel
from photonlab.sbe import fields
from tests.oracle import sbe as oracle

NEWEST = 3
INTEGERS = [name for name in oracle.SIZES if name.startswith(("int", "uint"))]


def make_shape(rng, depth=0):
    """A random description; fields of later versions come later."""
    sinces = sorted(rng.choice([0, 0, 0, 1, 2, 3]) for _ in range(rng.randrange(0 if depth else 1, 6)))
    made = [make_field(rng, f"f{n}", since, 0) for n, since in enumerate(sinces)]
    groups, data = [], []
    if depth < 3:
        later = sorted(rng.choice([0, 0, 1, 3]) for _ in range(rng.randrange(3 - depth)))
        groups = [(f"g{n}", make_shape(rng, depth + 1), since) for n, since in enumerate(later)]
    if not any(since for *_, since in groups):
        later = sorted(rng.choice([0, 0, 2]) for _ in range(rng.randrange(3)))
        data = [(f"d{n}", rng.choice(["UTF-8", ""]), since) for n, since in enumerate(later)]
    return {"fields": made, "groups": groups, "data": data, "spare": rng.choice([0, 0, 3])}


def make_field(rng, name, since, depth):
    kind = rng.choice(["number"] * 5 + ["enum", "set"] + ["composite"] * (depth < 2))
    if kind == "composite":
        members = [make_field(rng, f"m{n}", 0, depth + 1) for n in range(rng.randrange(1, 4))]
        return (name, kind, members, 1, "required", since)
    if kind in ("enum", "set"):
        return (name, kind, rng.choice(["uint8", "uint16", "uint32", "uint64"]), 1, "required", since)
    primitive = rng.choice([*INTEGERS, "char", "float", "double"])
    presence = rng.choice(["required", "required", "optional", "constant"])
    if primitive in ("char", "float", "double"):
        presence = "required"
    length = 1 if presence == "constant" else rng.choice([2, 5]) if primitive == "char" else rng.choice([1, 1, 1, 4])
    return (name, kind, primitive, length, presence, since)


def make_value(rng, shape):
    value = {field[0]: make_one(rng, field) for field in shape["fields"]}
    for name, inner, _ in shape["groups"]:
        value[name] = [make_value(rng, inner) for _ in range(rng.randrange(4))]
    for name, charset, _ in shape["data"]:
        value[name] = rng.choice(["", "text", "größer"]) if charset else rng.randbytes(rng.randrange(9))
    return value


def make_one(rng, field):
    _, kind, primitive, length, presence, _ = field
    if kind == "composite":
        return {member[0]: make_one(rng, member) for member in primitive}
    if kind == "enum":
        return rng.choice([*oracle.ENUM.values(), 5, None])
    if kind == "set":
        return [name for name in oracle.SET.values() if rng.random() < 0.5]
    if presence == "constant":
        return 7
    if primitive == "char":
        return "".join(rng.choice("aZ9 ") for _ in range(rng.randrange(length + 1)))
    values = []
    for _ in range(length):
        bits = 8 * oracle.SIZES[primitive]
        if primitive in ("float", "double"):
            values.append(rng.choice([0.0, -1.5, 2.0**40]))
            continue
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if primitive[0] == "i" else (0, (1 << bits) - 1)
        one = rng.choice([low, high, 0, rng.randint(low, high)])
        none = presence == "optional" and (one == oracle.null(primitive) or rng.random() < 0.3)
        values.append(None if none else one)
    return values if length > 1 else values[0]


def compiled(tmp_path_factory, shape, big):
    path = Path(tmp_path_factory.mktemp("sbe")) / "schema.xml"
    path.write_text(oracle.xml(shape, big, NEWEST))
    return sbe.load(path)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.integers(0, NEWEST), st.sampled_from([b"", b"later"]))
def test_random_schemas_read_write_and_walk_as_plain_python_does(tmp_path_factory, seed, big, version, longer):
    rng = random.Random(seed)
    shape = make_shape(rng)
    value = make_value(rng, shape)
    schema = compiled(tmp_path_factory, shape, big)
    version = NEWEST if longer else version
    data, blocks = oracle.message(shape, value, big, version, NEWEST, longer=longer)
    message = schema.decode(b"front" + data + b"rest", 5)
    assert message.value == oracle.without(shape, value, version)
    assert message.length == len(data)
    if not longer:
        assert schema.encode("M", value, version) == data
    index = np.zeros((len(blocks), 4), np.uint64)
    rows = schema.walk(schema.plan("M"), b"front" + data, 5, 5 + len(data), index)
    names = list(walk.parts(schema.tables.message("M")))
    assert [(names[row[0]], row[1] - 5, row[2]) for row in index[:rows].tolist()] == blocks
    for cut in {0, 3, len(data) // 2, len(data) - 1} - {len(data)}:
        with pytest.raises(sbe.SbeError, match="offset"):
            schema.decode(data[:cut])
        with pytest.raises(sbe.SbeError, match="offset"):
            schema.walk(schema.plan("M"), data[:cut], 0, cut, index)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_damage_is_an_error_or_another_message_in_kernel_and_decoder_alike(tmp_path_factory, seed, big):
    rng = random.Random(seed)
    shape = make_shape(rng)
    schema = compiled(tmp_path_factory, shape, big)
    data = bytearray(oracle.message(shape, make_value(rng, shape), big, NEWEST, NEWEST)[0])
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    index, buffer = np.zeros((4096, 4), np.uint64), np.frombuffer(data, np.uint8)
    _, at, fault = walk.find(schema.plan("M"), buffer, np.uint64(0), np.uint64(len(data)), index)
    try:
        end = schema.decode(bytes(data)).length
    except sbe.SbeError:
        end = None
    if fault != walk.FULL:
        assert (int(at) if fault == 0 else None) == end


@kernel
def read_and_write(data, block, length, codes, nulls, out):
    """Read fields by their codes and write them into another block."""
    for n in range(codes.size):
        value = fields.get_or(data, block, length, codes[n], nulls[n])
        nulls[n] = value
        fields.put(out, np.uint64(0), codes[n], value)


@pytest.mark.parametrize("big", [False, True])
def test_fields_of_kernels_have_sign_order_and_null(tmp_path_factory, big):
    shape = {
        "fields": [(f"f{n}", "number", name, 1, "optional", n // 5) for n, name in enumerate(INTEGERS)],
        "groups": [], "data": [], "spare": 0,
    }  # fmt: skip
    schema = compiled(tmp_path_factory, shape, big)
    value = {name: oracle.null(kind) for name, _, kind, *_ in shape["fields"]}
    value = {name: null + (1 if null < 0 else -3) for name, null in value.items()}
    data, _ = oracle.message(shape, value, big, NEWEST, NEWEST)
    codes = np.array([schema.code(f"M.{name}") for name in value])
    nulls = np.full(len(codes), -99, np.int64)
    out = np.zeros(len(data) - 8, np.uint8)
    read_and_write(np.frombuffer(data, np.uint8).copy(), np.uint64(8), np.uint64(out.size), codes, nulls, out)
    assert [int(n) % 2**64 for n in nulls] == [n % 2**64 for n in value.values()]
    assert out.tobytes() == data[8:]
    nulls[:] = -99
    read_and_write(np.frombuffer(data, np.uint8).copy(), np.uint64(8), np.uint64(1), codes, nulls, out)
    assert nulls[0] != -99 and (nulls[1:] == -99).all()


GOOD = oracle.xml(
    {"fields": [("a", "number", "uint8", 1, "required", 0)], "groups": [], "data": [], "spare": 0}, False, 0
)


def with_types(more):
    return GOOD.replace("</types>", more + "</types>")


BAD = {
    "not XML": ("<", "not XML"),
    "another root": ("<types/>", "messageSchema"),
    "an entity": ('<!DOCTYPE x [<!ENTITY a "b">]>' + GOOD.partition("?>")[2], "document type"),
    "an entity in UTF-16": (
        '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE x [<!ENTITY a "b">]>' + GOOD.partition("?>")[2],
        "document type",
    ),
    "an unknown byte order": (GOOD.replace("littleEndian", "middleEndian"), "byteOrder"),
    "no type": (GOOD.replace('type="T0"', 'type="None"'), "no type 'None'"),
    "a type within itself": (with_types('<composite name="C"><ref name="c" type="C"/></composite>').replace(
        'type="T0"', 'type="C"'), "deep"),
    "two types of a name": (with_types('<type name="T0" primitiveType="int8"/>'), "second type"),
    "overlapping offsets": (GOOD.replace('name="a" id="1"', 'name="a" id="1" offset="-1"'), "offset"),
    "a block too short": (GOOD.replace('blockLength="1"', 'blockLength="0"'), "blockLength"),
    "a null that is none": (with_types('<type name="N" primitiveType="int8" nullValue="300"/>').replace(
        'type="T0"', 'type="N"'), "no value of int8"),
    "a bit too high": (with_types('<set name="S" encodingType="uint8"><choice name="x">8</choice></set>').replace(
        'type="T0"', 'type="S"'), "bit 8"),
    "an inclusion from elsewhere": (with_types('<include href="http://example.org/types.xml"/>'), "own folder"),
    "an inclusion from above": (with_types('<include href="../types.xml"/>'), "own folder"),
    "an inclusion of nothing": (with_types('<include href="nothing.xml"/>'), "cannot be read"),
    "an inclusion of itself": (with_types('<include href="schema.xml"/>'), "includes itself"),
    "a constant without a value": (GOOD.replace('id="1" type', 'id="1" presence="constant" type'), "has no value"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_schema_is_an_error_that_says_what(tmp_path, name):
    text, why = BAD[name]
    encoding = "utf-16" if "UTF-16" in text else "utf-8"
    (tmp_path / "schema.xml").write_bytes(text.encode(encoding))
    with pytest.raises(sbe.SbeError, match=why):
        sbe.load(tmp_path / "schema.xml")


def test_a_missing_schema_is_an_error():
    with pytest.raises(sbe.SbeError, match="cannot be read"):
        sbe.load("/nowhere/schema.xml")


def test_messages_of_others_and_values_that_do_not_fit_are_errors(tmp_path):
    (tmp_path / "schema.xml").write_text(GOOD)
    schema = sbe.load(tmp_path / "schema.xml")
    data = schema.encode("M", {"a": 7})
    for at, why in ((4, "schema 8"), (2, "no template 4")):
        other = bytearray(data)
        other[at] -= 1
        with pytest.raises(sbe.SbeError, match=f"offset 0: {why}"):
            schema.decode(other)
        with pytest.raises(sbe.SbeError, match="another"):
            schema.walk(schema.plan("M"), other, 0, len(other), np.zeros((9, 4), np.uint64))
    for value in ({}, {"a": 256}, {"a": "x"}, {"b": 1}, {"a": [1]}, 5):
        with pytest.raises(sbe.SbeError, match=r"M"):
            schema.encode("M", value)
    for wrong in (lambda: schema.code("M.b"), lambda: schema.code("N.a"), lambda: schema.part("M.g"),
                  lambda: schema.encode("M", {"a": 1}, 4), lambda: schema.decode(data, 99)):  # fmt: skip
        with pytest.raises(sbe.SbeError):
            wrong()


LYING = {
    "empty entries, of which later versions have groups": ("", "M.g", 1, (0, 1 << 18, b"")),
    "empty entries in each of many": ("", "M.g.h", 0, (0, 500, (bytes(2) + (3000).to_bytes(4, "little")) * 500)),
    "a length and a count of null": ('presence="optional"', "null", 0, (1, (1 << 32) - 1, b"")),
}


@pytest.mark.parametrize("name", LYING)
def test_a_count_of_entries_that_take_no_bytes_is_not_believed(tmp_path, name):
    presence, why, since, (length, count, rest) = LYING[name]
    inner = {"fields": [("b", "number", "uint8", 1, "required", 0)], "groups": [], "data": [], "spare": 0}
    group = {"fields": [("a", "number", "uint8", 1, "required", 0)], "groups": [("h", inner, since)], "data": []}
    text = oracle.xml({"fields": [], "groups": [("g", {**group, "spare": 0}, 0)], "data": [], "spare": 0}, False, since)
    begin = text.index('name="numInGroup"')
    end = text.index("/>", begin)
    text = f'{text[:begin]}name="numInGroup" primitiveType="uint32" {presence}{text[end:]}'
    (tmp_path / "schema.xml").write_text(text)
    schema = sbe.load(tmp_path / "schema.xml")
    head = schema.encode("M", {"g": []}, 0)[: schema.tables.header.size]
    with pytest.raises(sbe.SbeError, match=why):
        schema.decode(head + length.to_bytes(2, "little") + count.to_bytes(4, "little") + rest)
