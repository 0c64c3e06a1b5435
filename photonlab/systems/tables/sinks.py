"""Where tables go: Parquet files that get their names when they are whole, or memory."""

import contextlib
import json
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from photonlab.errors import UserError

UNFINISHED = ".unfinished-"
PROVENANCE = b"photonlab"
_PAGE = 1 << 22
_NUMBERS = ("reference", "number", "replaces")
_REPEATED = (pa.uint32(), pa.int64(), pa.decimal128(10, 4), pa.float64())


class MemorySink:
    """Keeps tables as Arrow tables."""

    keeps = True

    def __init__(self, converter, layouts):
        self._schemas = {layout.name: converter.schema(layout) for layout in layouts}
        self._batches = {layout.name: [] for layout in layouts}

    def put(self, layout, batch):
        """Take a record batch."""
        self._batches[layout.name].append(batch)

    def mark_broken(self, broken):
        """Set the flag of the trades whose match number is broken; yield all trades."""
        self._batches["trades"] = [_marked(batch, broken) for batch in self._batches["trades"]]
        yield from self._batches["trades"]

    def finish(self, wanted, provenance):
        """Return the wanted tables by name."""
        about = {PROVENANCE: json.dumps(provenance).encode()}
        return {
            name: pa.Table.from_batches(self._batches[name], self._schemas[name])
            .replace_schema_metadata(about)
            .unify_dictionaries()
            for name in wanted
        }

    def abandon(self):
        """Forget everything."""
        self._batches.clear()


class ParquetSink:
    """Streams tables into Parquet files in a folder, a row group to the batch.

    Parameters
    ----------
    folder : path-like
    converter, layouts
        As `MemorySink` takes them.
    compression : str
        none, lz4, zstd or snappy.
    """

    keeps = False

    def __init__(self, folder, converter, layouts, compression="lz4"):
        self.folder = Path(folder)
        if compression not in ("none", "lz4", "zstd", "snappy"):
            raise UserError(f"compression is none, lz4, zstd or snappy, not {compression!r}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder}: {error.strerror.lower()}, expected a folder for the tables") from None
        self._compression = compression
        self._mark = uuid.uuid4().hex[:8]
        self._writers = {}
        for layout in layouts:
            self._writers[layout.name] = self._writer(layout.name, converter.schema(layout))

    def _writer(self, name, schema, mark=""):
        # what counts up is small in steps; what repeats is smaller, and sooner written, by its place in a dictionary
        stamps = [f.name for f in schema if f.name.endswith(("sequence", "ns", "time"))]
        steps = stamps + [f.name for f in schema if pa.types.is_uint64(f.type) and f.name.endswith(_NUMBERS)]
        coded = [f.name for f in schema if pa.types.is_dictionary(f.type)]
        if self._compression != "none":
            coded += [f.name for f in schema if f.type in _REPEATED and f.name not in steps]
        return pq.ParquetWriter(
            self._place(name, mark),
            schema,
            compression=self._compression,
            compression_level=1 if self._compression == "zstd" else None,
            use_dictionary=coded,
            column_encoding=dict.fromkeys(steps, "DELTA_BINARY_PACKED"),
            write_statistics=stamps,
            data_page_size=_PAGE,
        )

    def _place(self, name, mark=""):
        return self.folder / f"{UNFINISHED}{self._mark}{mark}-{name}.parquet"

    def put(self, layout, batch):
        """Write a record batch."""
        self._writers[layout.name].write_batch(batch, row_group_size=batch.num_rows)

    def mark_broken(self, broken):
        """Write the trades anew, with the flag of those set whose match number is broken; yield all trades."""
        first = self._writers["trades"]
        first.close()
        self._writers["trades"] = self._writer("trades", first.schema, "-marked")
        with pq.ParquetFile(self._place("trades")) as file:
            for group in range(file.num_row_groups):
                for batch in file.read_row_group(group).combine_chunks().to_batches():
                    marked = _marked(batch, broken)
                    self._writers["trades"].write_batch(marked, row_group_size=batch.num_rows)
                    yield marked
        self._place("trades", "-marked").rename(self._place("trades"))

    def finish(self, wanted, provenance):
        """Give the wanted tables' files their names; return those by table."""
        for writer in self._writers.values():
            writer.add_key_value_metadata({PROVENANCE: json.dumps(provenance).encode()})
            writer.close()
        paths = {}
        for name in self._writers:
            if name in wanted:
                paths[name] = self._place(name).rename(self.folder / f"{name}.parquet")
            else:
                self._place(name).unlink()
        return paths

    def abandon(self):
        """Remove everything."""
        for name, writer in self._writers.items():
            with contextlib.suppress(Exception):
                writer.close()
            for mark in ("", "-marked"):
                self._place(name, mark).unlink(missing_ok=True)


def _marked(batch, broken):
    hit = pc.is_in(batch.column("match_number"), pa.array(np.asarray(broken, np.uint64)))
    place = batch.schema.get_field_index("broken")
    return batch.set_column(place, batch.schema.field(place), hit)
