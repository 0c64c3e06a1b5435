"""What a notebook measured, as tidy rows: one call records one figure, a run's rows become Parquet and CSV.

While a notebook runs, each row is appended to ``<out>/rows/<notebook>.jsonl``; `collect` and `write` bring the rows of
all notebooks of a run together. Verdicts, summaries and charts read these rows and never a notebook's text.

The run is named by the environment: ``PHOTONLAB_OUT`` (its folder), ``PHOTONLAB_RUN`` (its id) and
``PHOTONLAB_NOTEBOOK`` (the notebook that records). Without them rows go to ``out/interactive``.
"""

import csv
import io
import json
import math
import numbers
import os
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from photonlab import paths
from photonlab.lab.judge import claims

COLUMNS = ("run", "notebook", "claim", "variant", "statistic", "value", "unit", "low", "high", "note", "cell")
NUMERIC = ("value", "low", "high")
EXACT = 2**53
"""Integers beyond this are not exact in the float64 column `value`; a checksum goes into the note as hexadecimal."""

_SCHEMA = pa.schema([(name, pa.float64() if name in NUMERIC else pa.string()) for name in COLUMNS])


def out() -> Path:
    """The folder of the run that is being recorded."""
    return Path(os.environ.get("PHOTONLAB_OUT") or paths.OUT / "interactive")


def run_id() -> str:
    """The id of the run that is being recorded."""
    return os.environ.get("PHOTONLAB_RUN") or "interactive"


def rows_file(run_dir: Path, notebook: str) -> Path:
    """Where the rows of `notebook` lie in the folder of a run."""
    return Path(run_dir) / "rows" / f"{notebook}.jsonl"


def start(notebook: str) -> Path:
    """Begin the rows of `notebook`: forget those of an earlier execution, and record under this name from now on.

    Returns
    -------
    Path
        The emptied file of rows.
    """
    if not notebook or "/" in notebook or notebook.startswith("."):
        raise ValueError(f"{notebook!r} is not the name of a notebook (without folder and .ipynb)")
    os.environ["PHOTONLAB_NOTEBOOK"] = notebook
    path = rows_file(out(), notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def record(claim, *, value, unit, statistic="value", variant="", low=None, high=None, note="") -> dict:
    """Record one measured figure.

    Parameters
    ----------
    claim : str
        Id in the ledger; ``""`` for a figure that belongs to no claim and is kept as context.
    value : number or None
        The figure. None says that it could not be measured here; `note` must then say why, in the words of the probe
        that found it out.
    unit : str
        Unit of value, low and high ("ns", "×", "%", "1" for a plain number).
    statistic, variant : str
        What the figure is ("p50", "ratio") and of what ("Add", "modulo / mask"); the ledger's checks name them.
    low, high : number or None
        Ends of the 95 % interval, where there is one.
    note : str
        Anything a reader of the row should know (placement, input, reason).

    Returns
    -------
    dict
        The row as written.

    Raises
    ------
    ValueError
        Unknown claim, NaN or infinity, an integer that float64 does not hold, None without a reason, low above high.
    RuntimeError
        No notebook has been started.
    """
    if claim and claim not in claims.by_id():
        raise ValueError(f"claim {claim!r} is not in the ledger ({claims.LEDGER.name})")
    notebook = os.environ.get("PHOTONLAB_NOTEBOOK")
    if not notebook:
        raise RuntimeError("no notebook has been started: call photonlab.lab.publish.notebook.start(name) first")
    if value is None and not note:
        raise ValueError(f"{claim} {statistic} {variant}: a value that is None needs a note that says why")
    if not unit or not statistic:
        raise ValueError(f"{claim}: a row needs a unit ('1' for a plain number) and a statistic")
    row = {
        "run": run_id(),
        "notebook": notebook,
        "claim": claim,
        "variant": variant,
        "statistic": statistic,
        "value": _number(value, claim, "value"),
        "unit": unit,
        "low": _number(low, claim, "low"),
        "high": _number(high, claim, "high"),
        "note": note,
        "cell": cell(),
    }
    if row["low"] is not None and row["high"] is not None and row["low"] > row["high"]:
        raise ValueError(f"{claim} {statistic} {variant}: low {low} is above high {high}")
    path = rows_file(out(), notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    return row


def collect(run_dir: Path) -> pd.DataFrame:
    """All rows of a run.

    Notebooks in the order of their names, rows in the order of recording. A figure recorded again (a cell executed
    twice) stands where it stood, with its last value.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`; value, low and high are float64 with NaN for "none", the rest are text.
    """
    kept: dict[tuple, dict] = {}
    for path in sorted(Path(run_dir).glob("rows/*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                row = json.loads(line)
                key = tuple(row[name] for name in ("notebook", "claim", "variant", "statistic"))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path} line {number} is not a row of results") from error
            kept[key] = {"cell": ""} | row
    frame = pd.DataFrame(list(kept.values()), columns=list(COLUMNS))
    return frame.astype({name: "float64" if name in NUMERIC else "object" for name in COLUMNS})


def write(run_dir: Path) -> tuple[Path, Path]:
    """Write ``results.parquet`` and ``results.csv`` of a run; equal rows give equal bytes.

    Returns
    -------
    tuple of Path
        The two files.
    """
    run_dir = Path(run_dir)
    columns = {name: _column(collect_column) for name, collect_column in collect(run_dir).items()}
    table = pa.table(columns, schema=_SCHEMA)
    parquet, text = run_dir / "results.parquet", run_dir / "results.csv"
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    _replace(parquet, sink.getvalue())
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_shown(cell) for cell in row] for row in zip(*columns.values(), strict=True))
    _replace(text, lines.getvalue().encode())
    return parquet, text


def read(run_dir: Path) -> pd.DataFrame:
    """The rows of a run: from ``results.parquet``, the notebooks' files, or ``results.csv``.

    Raises
    ------
    FileNotFoundError
        The folder holds neither.
    """
    run_dir = Path(run_dir)
    if (run_dir / "results.parquet").is_file():
        frame = pq.read_table(run_dir / "results.parquet").to_pandas().reindex(columns=list(COLUMNS))
        return frame.astype({name: "float64" if name in NUMERIC else "object" for name in COLUMNS})
    if (run_dir / "rows").is_dir():
        return collect(run_dir)
    if (run_dir / "results.csv").is_file():
        frame = pd.read_csv(run_dir / "results.csv", keep_default_na=False, na_values=dict.fromkeys(NUMERIC, ""))
        frame = frame.reindex(columns=list(COLUMNS))
        return frame.astype({name: "float64" if name in NUMERIC else "object" for name in COLUMNS}).fillna({"cell": ""})
    raise FileNotFoundError(f"{run_dir} holds no results of a run")


def cell() -> str:
    """The number of the execution that is under way, where a notebook's kernel counts them; else an empty text."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell else None
    if running is None:
        return ""
    # The inputs so far, this one included: the shell's own counter is a step ahead of the notebook's in newer IPythons.
    return str(len(running.history_manager.input_hist_parsed) - 1)


def _number(value, claim: str, what: str) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise ValueError(f"{claim}: {what} {value!r} is not a number")
    if isinstance(value, numbers.Integral) or (hasattr(value, "dtype") and value.dtype.kind in "biu"):
        if abs(int(value)) > EXACT:
            raise ValueError(f"{claim}: {what} {int(value)} is beyond 2**53; put it into the note as hexadecimal")
        return int(value)
    if not math.isfinite(value):
        raise ValueError(f"{claim}: {what} is {value}; record None and the reason instead")
    return float(value)


def _column(column: pd.Series) -> list:
    return [None if cell is None or cell != cell else cell for cell in column]


def _shown(cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) <= EXACT else repr(cell)
    return cell


def _replace(path: Path, content: bytes) -> None:
    """Write `content` so that a reader sees the old file or the new one, never half of it."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
