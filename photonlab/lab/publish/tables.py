"""Tables that everybody can read: caption, header cells with scope, numbers with sensible digits."""

import html
import math
import numbers

import numpy as np
from IPython.display import display

MISSING = "–"
LONG = 40


def number(value, digits=3):
    """Write a number for a reader.

    Parameters
    ----------
    value : int, float, bool, str or None
    digits : int
        Significant digits of a fraction; a whole number keeps all of its own.

    Returns
    -------
    str
        Thousands apart, no exponent between a thousandth and a quadrillion; a dash for None and NaN; text as it is.
    """
    if value is None or (isinstance(value, numbers.Real) and math.isnan(value)):
        return MISSING
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}".replace("-", "−")
    if not isinstance(value, numbers.Real):
        return str(value)
    value = float(value)
    if math.isinf(value):
        text = "∞" if value > 0 else "-∞"
    elif value and not 1e-3 <= abs(value) < 1e15:
        text = f"{value:.{digits - 1}e}"
    else:
        # The rounded value decides how many decimals there are, so that 9.996 becomes 10.0 and not 10.00.
        rounded = float(f"{value:.{digits - 1}e}") if value else 0.0
        whole = math.floor(math.log10(abs(rounded))) + 1 if rounded else 1
        text = f"{value:,.{max(digits - whole, 0)}f}"
    return text.replace("-", "−")


def table(frame, caption, *, formats=None, index=False, note=""):
    """Show a table in the notebook.

    Parameters
    ----------
    frame : pandas.DataFrame
        Column names are the header: say the unit there ("p50 [ns]").
    caption : str
        Stands above the table.
    formats : dict of str to (str or callable), optional
        Column → format specification (",.1f") or function of a cell; other columns go through `number`.
    index : bool
        Whether the index is the first column, as row headers; else the first column of the frame is.
    note : str
        Stands below the table.
    """
    data = {"text/html": to_html(frame, caption, formats=formats, index=index, note=note), "text/plain": repr(frame)}
    display(data, raw=True)


def to_html(frame, caption, *, formats=None, index=False, note=""):
    """Write a table as HTML; parameters as for `table`.

    Returns
    -------
    str
    """
    if not caption:
        raise ValueError("a table needs a caption")
    unknown = set(formats or {}) - set(frame.columns)
    if unknown:
        raise ValueError(f"formats for columns that are not there: {', '.join(sorted(map(str, unknown)))}")
    if index:
        frame = frame.reset_index()
    columns = [frame.iloc[:, position] for position in range(frame.shape[1])]
    writers = [_writer((formats or {}).get(name)) for name in frame.columns]
    texts = [[html.escape(write(cell)) for cell in column] for write, column in zip(writers, columns, strict=True)]
    kinds = [_kind(column, cells) for column, cells in zip(columns, texts, strict=True)]
    lines = [f"<thead><tr>{''.join(map(_header, frame.columns, kinds))}</tr></thead>", "<tbody>"]
    for first, *others in zip(*texts, strict=True):
        cells = [f"<td{kind}>{text}</td>" for text, kind in zip(others, kinds[1:], strict=True)]
        lines.append(f'<tr><th scope="row">{first}</th>{"".join(cells)}</tr>')
    if not len(frame):
        lines.append(f'<tr><td colspan="{len(columns)}">none</td></tr>')
    lines.append("</tbody>")
    foot = f'<p class="note">{html.escape(note)}</p>' if note else ""
    label = html.escape(caption, quote=True)
    # The box scrolls sideways on a narrow screen, so it must be reachable by keyboard and have a name.
    return (
        f'<div class="table" role="region" tabindex="0" aria-label="{label}"><table>'
        f"<caption><span>{html.escape(caption)}</span></caption>{''.join(lines)}</table>{foot}</div>"
    )


def _kind(column, texts):
    """The class of a column's cells: numbers stand to the right, long text is kept from becoming a thin tower."""
    if column.dtype.kind in "iuf":
        return ' class="number"'
    return ' class="long"' if any(len(text) > LONG for text in texts) else ""


def _header(name, kind):
    return f'<th scope="col"{kind}>{html.escape(str(name))}</th>'


def _writer(form):
    if form is None:
        return number
    if callable(form):
        return lambda cell: str(form(cell))
    return lambda cell: MISSING if number(cell) == MISSING else format(cell, form)
