"""From the columns that kernels wrote to Arrow: views where the bytes are the same, dictionaries of codes."""

import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from photonlab.errors import UserError

NEW_YORK = "America/New_York"
PRICES = ("integer", "decimal", "float")
_CODE = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    "sequence": pa.int64(),
    "ns": pa.int64(),
    "symbol": _CODE,
    "char": _CODE,
    "alpha": _CODE,
    "flag": pa.bool_(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "uint32": pa.uint32(),
    "uint16": pa.uint16(),
    "price4": pa.uint32(),
    "price8": pa.uint64(),
}
_DECIMALS = {"price4": pa.decimal128(10, 4), "price8": pa.decimal128(20, 8)}
_SCALES = {"price4": 10_000, "price8": 100_000_000}


class Converter:
    """Makes Arrow tables of what kernels wrote.

    Parameters
    ----------
    names : ndarray of uint64, shape (65536,)
        Symbols by locate, read anew each time.
    date : datetime.date, optional
        The day in New York; with it, each time column in nanoseconds is followed by one of time stamps.
    prices : str
        Of `PRICES`: raw integers in units of 0.0001, exact decimals, or floating-point numbers.
    """

    def __init__(self, names, date=None, prices="integer"):
        if prices not in PRICES:
            raise UserError(f"prices are {', '.join(PRICES)}, not {prices!r}")
        self._names, self._prices = names, prices
        self._midnight = None
        if date is not None:
            midnight = datetime.datetime(date.year, date.month, date.day, tzinfo=ZoneInfo(NEW_YORK))
            self._midnight = int(midnight.timestamp()) * 1_000_000_000

    def schema(self, layout) -> pa.Schema:
        """Return the schema of a table."""
        fields = []
        for column in layout.columns:
            if column.kind == "count":
                continue
            fields.append(pa.field(column.name, self._type(column.kind), nullable=bool(column.nullable)))
            if column.kind == "ns" and self._midnight is not None:
                fields.append(pa.field(_time_name(column.name), pa.timestamp("ns", NEW_YORK), bool(column.nullable)))
        return pa.schema(fields)

    def _type(self, kind):
        if kind in _DECIMALS and self._prices != "integer":
            return _DECIMALS[kind] if self._prices == "decimal" else pa.float64()
        return _TYPES[kind]

    def batch(self, layout, views, copy=False) -> pa.RecordBatch:
        """Return a table's rows as a record batch.

        Parameters
        ----------
        layout : Layout
        views : list of ndarray
            A view for each column of the layout.
        copy : bool
            Whether the batch is to live longer than the views.
        """
        counts = {c.name: view for c, view in zip(layout.columns, views, strict=True) if c.kind == "count"}
        masks, arrays = {}, []
        for column, view in zip(layout.columns, views, strict=True):
            if column.kind == "count":
                continue
            mask = None
            if column.nullable:
                if column.nullable not in masks:
                    masks[column.nullable] = _validity(counts[column.nullable[0]], column.nullable[1])
                mask = masks[column.nullable]
            arrays.append(self._array(column.kind, np.array(view) if copy else view, mask))
            if column.kind == "ns" and self._midnight is not None:
                stamps = view.view(np.int64) + self._midnight
                arrays.append(_plain(stamps, pa.timestamp("ns", NEW_YORK), mask))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema(layout))

    def _array(self, kind, values, mask):
        if kind == "symbol":
            return _coded(values, self._symbol)
        if kind == "char":
            return _coded(values, _character)
        if kind == "alpha":
            return _coded_text(values)
        if kind == "flag":
            return pa.Array.from_buffers(
                pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))]
            )
        if kind in _DECIMALS and self._prices == "decimal":
            wide = np.zeros((len(values), 2), np.uint64)
            wide[:, 0] = values
            return _plain(wide, _DECIMALS[kind], mask)
        if kind in _DECIMALS and self._prices == "float":
            return _plain(values / _SCALES[kind], pa.float64(), mask)
        return _plain(values, _TYPES[kind], mask)

    def _symbol(self, locate):
        word = int(self._names[locate])
        return word.to_bytes(8, "big").decode("latin-1").rstrip(" ") if word else f"#{locate}"


def _time_name(name):
    return name.removesuffix("ns") + "time"


def _plain(values, type_, mask):
    validity, missing = mask if mask is not None else (None, 0)
    return pa.Array.from_buffers(type_, len(values), [validity, pa.py_buffer(values)], missing)


def _validity(count, rank):
    """Return a bitmap of where a count reaches a rank, and how often it does not; no bitmap if it always does."""
    there = count >= rank
    missing = len(there) - int(np.count_nonzero(there))
    return (pa.py_buffer(np.packbits(there, bitorder="little")), missing) if missing else None


def _character(byte):
    return "" if byte in (0, 0x20) else chr(byte)


def _coded(codes, text):
    """Return small integers as a dictionary of the texts that they stand for: of those that occur, in their order."""
    used = np.flatnonzero(np.bincount(codes, minlength=1))
    places = np.zeros(int(used[-1]) + 1 if len(used) else 1, np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    texts = pa.array([text(int(code)) for code in used], pa.string())
    if len(set(texts.to_pylist())) < len(texts):  # blank and zero; a symbol that has two locates
        return pa.DictionaryArray.from_arrays(pa.array(places[codes]), texts).cast(pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(pa.array(places[codes]), texts)


def _coded_text(values):
    width = values.dtype.itemsize if values.ndim == 1 else values.shape[1]
    coded = pa.Array.from_buffers(
        pa.binary(width), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))]
    ).dictionary_encode()
    texts = [text.replace(b"\0", b" ").decode("latin-1").rstrip(" ") for text in coded.dictionary.to_pylist()]
    array = pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.string()))
    return array if len(set(texts)) == len(texts) else array.cast(pa.string()).dictionary_encode()
