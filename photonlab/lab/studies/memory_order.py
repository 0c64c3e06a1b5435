"""Memory order at the level of instructions: tables and the verdict's rows from emitted assembly (claim S10)."""

import pandas as pd

from photonlab.systems.experiments.memory_order import (
    ADD,
    ARM,
    EXCHANGE,
    FENCE,
    LOAD,
    ORDERS,
    STORE,
    SWAP,
    TARGETS,
    X86,
    instructions,
)

STRENGTHS = {STORE: ("relaxed", "release", "seq_cst"), LOAD: ("relaxed", "acquire", "seq_cst")}
"""The orders that the claim compares: none, one way, and one order for all."""

_BETWEEN = "acquire / release"
_TARGETS = {target.name: target for target in TARGETS}


def groups(name, operation) -> list[tuple[list[str], str]]:
    """Put the compared orders together that become the same instructions.

    Parameters
    ----------
    name : str
        Of a target.
    operation : str
        "store" or "load".

    Returns
    -------
    list of (orders, instructions)
    """
    found = {}
    for order in STRENGTHS[operation]:
        found.setdefault(_text(name, operation, order), []).append(order)
    return [(orders, text) for text, orders in found.items()]


def table() -> pd.DataFrame:
    """Lay out the same store and the same load, by target and order."""
    rows = []
    for operation in (STORE, LOAD):
        for name in _TARGETS:
            plain, relaxed, between, strongest = (_text(name, operation, order) for order in ORDERS[operation])
            rows.append(
                {
                    "target": name,
                    "operation": operation,
                    "plain": plain,
                    "relaxed": relaxed,
                    _BETWEEN: between,
                    "sequentially consistent": strongest,
                    "distinct": len(groups(name, operation)),
                }
            )
    return pd.DataFrame(rows)


def update_table() -> pd.DataFrame:
    """Lay out what changes a word in one step, and fences, by target and order."""
    rows = []
    for operation in (EXCHANGE, ADD, SWAP, FENCE):
        for name in _TARGETS:
            weakest, between, strongest = (_text(name, operation, order) for order in ORDERS[operation][-3:])
            rows.append(
                {
                    "target": name,
                    "operation": operation,
                    "relaxed (fence: release)": weakest,
                    "acquire and release": between,
                    "sequentially consistent": strongest,
                }
            )
    return pd.DataFrame(rows)


def rows() -> list[dict]:
    """Arguments of `record` for claim S10: how many different stores, and loads, three orders become on each target."""
    return [
        {
            "statistic": f"distinct {operation}s",
            "variant": name,
            "value": len(groups(name, operation)),
            "unit": "1",
            "note": "; ".join(f"{' and '.join(orders)}: {text}" for orders, text in groups(name, operation)),
        }
        for operation in (STORE, LOAD)
        for name in _TARGETS
    ]


def sentence() -> str:
    """Say what the three orders of a store become, and where a load differs; Markdown."""
    x86, arm = len(groups(X86, STORE)), len(groups(ARM, STORE))
    says = (
        "the three stores are one instruction, as published"
        if x86 == 1
        else f"they are {x86} instructions, not one as published: {_told(X86, STORE)}"
    )
    differs = "differ" if arm > 1 else "do not differ"
    free = [name for name in _TARGETS if len(groups(name, LOAD)) == 1]
    loads = f"Of a load all three are the same on {' and '.join(free) or 'no target'}"
    unchanged = all(
        _text(name, operation, "plain") == _text(name, operation, "relaxed")
        for name in _TARGETS
        for operation in STRENGTHS
    )
    plain = (
        "A relaxed access is the plain instruction on every target: what it forbids is the compiler's, which may not "
        "keep the word in a register."
        if unchanged
        else "A relaxed access is another instruction than a plain one on some target."
    )
    return f"On x86-64 {says}. On AArch64 they {differs}: {_told(ARM, STORE)}. {loads}. {plain}"


def _told(name, operation):
    return ", ".join(f"{' and '.join(orders)} `{text}`" for orders, text in groups(name, operation))


def _text(name, operation, order):
    return "; ".join(instructions(_TARGETS[name], operation, order)) or "none"
