"""The codec on messages that others made: the reference car, and a capture of CME's market data."""

import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest

import photonlab.sbe as sbe
from photonlab.kernels.sbe import walk
from photonlab.machine.memory import as_bytes_array

FOLDER = os.environ.get("PHOTONLAB_REAL_DATA", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="PHOTONLAB_REAL_DATA names no folder")


def expected():
    return json.loads(Path(FOLDER, "expected_sbe.json").read_text())


def same(mine, wanted):
    """Compare as the list of expectations writes values: constants of characters and of numbers as text."""
    if isinstance(wanted, dict):
        return mine.keys() == wanted.keys() and all(same(mine[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return len(mine) == len(wanted) and all(map(same, mine, wanted))
    if isinstance(wanted, str) and wanted.startswith("const:"):
        return wanted == f"const:Model.{mine}"
    return mine == wanted or str(mine) == wanted


def test_the_reference_car_field_by_field_and_back():
    schema = sbe.load(Path(FOLDER, "sbe", "example-schema.xml"))
    data = Path(FOLDER, "sbe", "car_example_baseline_data.sbe").read_bytes()
    car, message = expected()["car"], schema.decode(data)
    assert (message.name, message.header, message.length) == (car["name"], car["header"], car["consumed"])
    assert same(message.value, car["value"])
    assert schema.encode("Car", message.value) == data
    index = np.zeros((32, 4), np.uint64)
    rows = schema.walk(schema.plan("Car"), data, 0, len(data), index)
    mph, part = (
        schema.code("Car.performanceFigures.acceleration.mph"),
        schema.part("Car.performanceFigures.acceleration"),
    )
    out = np.zeros(32, np.int64)
    count = walk.column(as_bytes_array(data), index, np.uint64(rows), np.uint64(part), mph, np.int64(-1), out)
    assert out[:count].tolist() == [30, 60, 100] * 2
    for cut in range(len(data)):
        with pytest.raises(sbe.SbeError):
            schema.decode(data[:cut])
        with pytest.raises(sbe.SbeError):
            schema.walk(schema.plan("Car"), data[:cut], 0, cut, index)


def messages_of(path):
    """The SBE messages of a capture of UDP over Ethernet and IPv4: each behind its size in two bytes."""
    data, at = path.read_bytes(), 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frame, at = data[at + 16 : at + 16 + size], at + 16 + size
        tags = 4 if frame[12:14] == b"\x81\x00" else 0
        ip = 14 + tags
        udp = ip + 4 * (frame[ip] & 15)
        payload = frame[udp + 8 : udp + struct.unpack_from(">H", frame, udp + 4)[0]]
        inner = 12  # the packet's sequence and time
        while inner < len(payload):
            length = struct.unpack_from("<H", payload, inner)[0]
            yield payload[inner + 2 : inner + length]
            inner += length


SUMS = {
    "px_mantissa_sum": ("MDEntryPx", "mantissa"), "size_sum": ("MDEntrySize", ""), "secid_sum": ("SecurityID", ""),
    "rptseq_sum": ("RptSeq", ""),
}  # fmt: skip


@pytest.mark.parametrize("by", ["decoder", "kernel"])
def test_a_capture_of_cme_gives_the_sums_that_others_find(by):
    schema, wanted = sbe.load(Path(FOLDER, "sbe", "cme_mdp3_v9.xml")), expected()["cme"][0]
    found = {}
    every = list(messages_of(Path(FOLDER, "sbe", "cme_mdp3_v9_100packets.pcap")))
    assert len(every) == wanted["messages"]
    for data in every:
        message = schema.decode(data)
        assert message.length == len(data)
        assert schema.encode(message.name, message.value) == data
        template = message.header["templateId"]
        sums = found.setdefault(str(template), {"msgs": 0, "entries": 0})
        sums["msgs"] += 1
        columns = columns_by_kernel(schema, message.name, data) if by == "kernel" else columns_of(message)
        sums["entries"] += len(message.value["NoMDEntries"])
        for name, values in columns.items():
            values = [value for value in values if value is not None]
            sums[name] = sums.get(name, 0) + sum(values)
            if name in ("px_mantissa_sum", "size_sum"):
                count = name.split("_")[0] + "_n"
                sums[count] = sums.get(count, 0) + len(values)
    assert found == wanted["sbe_0_4_3"]


def columns_of(message):
    found = {}
    for name, (field, member) in SUMS.items():
        entries = [entry for entry in message.value["NoMDEntries"] if field in entry]
        if entries:
            found[name] = [entry[field][member] if member else entry[field] for entry in entries]
    return found


def columns_by_kernel(schema, name, data):
    index, out, found = np.zeros((256, 4), np.uint64), np.zeros(256, np.int64), {}
    rows = schema.walk(schema.plan(name), data, 0, len(data), index)
    for column, (field, member) in SUMS.items():
        path = f"{name}.NoMDEntries.{field}" + (f".{member}" if member else "")
        try:
            code, null = schema.code(path), schema.null(path)
        except sbe.SbeError:
            continue
        part = np.uint64(schema.part(f"{name}.NoMDEntries"))
        count = walk.column(as_bytes_array(data), index, np.uint64(rows), part, code, np.int64(-1), out)
        optional = schema.tables.find(path).presence == "optional"
        found[column] = [None if optional and value == null else value for value in out[: int(count)].tolist()]
    return found
