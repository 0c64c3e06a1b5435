"""The parameters of a notebook: what its cell declares, and values given from outside made to fit that declaration.

The literal in the notebook's `parameters` cell is the declaration of the type. A value given as text becomes that type
or is refused; it is never guessed from its looks, so a symbol written 010 or NAN stays the text that it is.
"""

import ast
import math
from decimal import Decimal, InvalidOperation
from pathlib import Path

from photonlab.errors import UserError

SCALARS = (bool, int, float, str)
TRUE, FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def read_notebook(path):
    """Read a notebook in the format of today.

    Parameters
    ----------
    path : pathlib.Path

    Returns
    -------
    nbformat.NotebookNode

    Raises
    ------
    UserError
        Missing, unreadable or not a notebook.
    """
    import nbformat  # slow, and the command line needs this module for every number that it reads

    try:
        return nbformat.read(path, as_version=4)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except Exception as error:  # nbformat raises whatever it stumbles over
        raise UserError(f"{path}: not a notebook") from error


def declared(path):
    """Read the names and defaults from the notebook's cell with the tag `parameters`.

    Parameters
    ----------
    path : pathlib.Path

    Returns
    -------
    dict of str to bool, int, float, str or list
        In the order of the cell.

    Raises
    ------
    UserError
        No such cell or more than one; anything in it but `name = literal`; a literal of another type (a derived value
        would be computed from the default before the given value replaces it, so it cannot stand there).
    """
    tagged = [
        (number, cell.source)
        for number, cell in enumerate(read_notebook(path).cells, 1)
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])
    ]
    if len(tagged) != 1:
        raise UserError(f"{Path(path).name}: {len(tagged)} cells have the tag 'parameters', expected 1")
    number, source = tagged[0]
    where = f"{Path(path).name}, cell {number}"
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise UserError(f"{where}: not Python: {error.msg}") from error
    values = {}
    for statement in statements:
        name, value = _assignment(statement, where)
        if name in values:
            raise UserError(f"{where}: {name} is set twice")
        values[name] = value
    return values


def _assignment(statement, where):
    """Name and value of `name = literal` or `name: type = literal`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    value = getattr(statement, "value", None)
    one_name = len(targets) == 1 and isinstance(targets[0], ast.Name)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not one_name or value is None:
        raise UserError(f"{where}: a parameters cell holds only 'name = literal', not '{ast.unparse(statement)}'")
    name = targets[0].id
    try:
        literal = ast.literal_eval(value)
    except ValueError as error:
        raise UserError(f"{where}: {name} is derived, not a literal: '{ast.unparse(value)}'") from error
    items = list(literal) if isinstance(literal, (list, tuple)) else [literal]
    if not all(type(item) in SCALARS for item in items) or len({type(item) for item in items}) > 1:
        raise UserError(f"{where}: {name} is neither a bool, int, float or str nor a list of one of these")
    return name, items if isinstance(literal, tuple) else literal


def fit(name, default, value):
    """Make a value fit the type of the declared default.

    Parameters
    ----------
    name : str
        For the message.
    default : bool, int, float, str or list
        The declaration.
    value : same, or str
        Text is read as the declared type; a list is written with commas. Anything else must have that type already,
        except that an int does for a float.

    Returns
    -------
    bool, int, float, str or list

    Raises
    ------
    UserError
        The value does not fit.
    """
    if isinstance(default, list):
        items = [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value
        if not isinstance(items, list):
            raise UserError(f"{name}: expected a list, got {value!r}")
        return [fit(name, default[0] if default else "", item) for item in items]
    kind = type(default)
    if type(value) is kind and kind is not float:
        return value
    if kind is float and type(value) in (int, float):
        value = repr(value)
    if not isinstance(value, str):
        raise UserError(f"{name}: expected {kind.__name__}, got {value!r}")
    try:
        return {bool: _to_bool, int: _to_int, float: _to_float}[kind](value)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise UserError(f"{name}: expected {kind.__name__} as in the default {default!r}, got {value!r}") from error


def _to_bool(text):
    if text.lower() not in TRUE | FALSE:
        raise ValueError(text)
    return text.lower() in TRUE


def _to_int(text):
    """`1_000_000` and `1e6` are the same whole number; `1.5`, `1e-3` and `nan` are none."""
    number = Decimal(text.strip())
    if not number.is_finite() or number != number.to_integral_value() or number.adjusted() > 30:
        raise ValueError(text)
    return int(number)


def _to_float(text):
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def fit_all(path, given):
    """Make given values fit what the notebook declares, and refuse a name that it does not declare.

    Parameters
    ----------
    path : pathlib.Path
        The notebook.
    given : dict of str to object
        Values or their text.

    Returns
    -------
    dict
        Only the given names, typed.
    """
    known = declared(path)
    for name in given:
        if name not in known:
            raise UserError(f"{Path(path).stem} has no parameter '{name}'; it has: {', '.join(known) or 'none'}")
    return {name: fit(f"{Path(path).stem}.{name}", known[name], value) for name, value in given.items()}
