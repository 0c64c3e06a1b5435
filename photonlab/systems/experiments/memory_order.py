"""What a memory order becomes in machine code, on processors that need not be here (claim S10).

Each operation is emitted by the same code as in kernels (`photonlab.machine.atomic_ir`), alone in a function of its
own, and compiled to assembly by LLVM for each target: there is nothing to run, and nothing to count on but the text.
"""

import functools
import re
from typing import NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir

from photonlab.machine import atomic_ir


class Target(NamedTuple):
    """A processor as LLVM knows it."""

    name: str
    triple: str
    features: str
    returns: tuple[str, ...]
    """Instructions by which a function returns."""


X86, ARM = "x86-64", "AArch64"
TARGETS = (
    Target(X86, "x86_64-unknown-linux-gnu", "", ("retq", "ret")),
    Target(ARM, "aarch64-unknown-linux-gnu", "", ("ret",)),
    Target("AArch64, v8.3", "aarch64-unknown-linux-gnu", "+lse,+rcpc", ("ret",)),
    Target("POWER", "powerpc64le-unknown-linux-gnu", "", ("blr",)),
    Target("RISC-V", "riscv64-unknown-linux-gnu", "+a", ("ret",)),
)

STORE, LOAD, ADD, SWAP, EXCHANGE, FENCE = "store", "load", "fetch and add", "compare and swap", "exchange", "fence"
ORDERS = {
    STORE: ("plain", "relaxed", "release", "seq_cst"),
    LOAD: ("plain", "relaxed", "acquire", "seq_cst"),
    EXCHANGE: ("relaxed", "acq_rel", "seq_cst"),
    ADD: ("relaxed", "acq_rel", "seq_cst"),
    SWAP: ("relaxed", "acq_rel", "seq_cst"),
    FENCE: ("acquire", "release", "acq_rel", "seq_cst"),
}
"""Operation → orders that it has."""

_WORD, _POINTER, _VOID = atomic_ir.WORD, atomic_ir.WORD.as_pointer(), ir.VoidType()


def _emit(builder, operation, order, pointer, value, other):
    """Emit one operation; return its result, or None."""
    if operation == STORE:
        if order == "plain":
            return atomic_ir.plain_store(builder, pointer, value)
        return atomic_ir.store(builder, pointer, value, order)
    if operation == LOAD:
        return atomic_ir.plain_load(builder, pointer) if order == "plain" else atomic_ir.load(builder, pointer, order)
    if operation == FENCE:
        return atomic_ir.fence(builder, order)
    if operation == SWAP:
        return atomic_ir.compare_and_swap(builder, pointer, value, other, order)
    return atomic_ir.read_modify_write(builder, pointer, "add" if operation == ADD else "xchg", value, order)


def source(operation, order, triple) -> str:
    """Return LLVM's text of a function (pointer, value, other value) that does one operation.

    Parameters
    ----------
    operation, order : str
        See `ORDERS`.
    triple : str
        The target.

    Returns
    -------
    str
    """
    module = ir.Module("order")
    module.triple = triple
    result = _VOID if operation in (STORE, FENCE) else _WORD
    function = ir.Function(module, ir.FunctionType(result, [_POINTER, _WORD, _WORD]), "operation")
    function.attributes.add("nounwind")
    builder = ir.IRBuilder(function.append_basic_block())
    value = _emit(builder, operation, order, *function.args)
    if result is _VOID:
        builder.ret_void()
    else:
        builder.ret(value)
    return str(module)


@functools.cache
def instructions(target, operation, order) -> tuple[str, ...]:
    """Return the instructions of one operation on a target, without the function's return.

    Parameters
    ----------
    target : Target
    operation, order : str
        See `ORDERS`.

    Returns
    -------
    tuple of str

    Raises
    ------
    RuntimeError
        This LLVM was built without the target.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(opt=2, features=target.features)
    module = llvm.parse_assembly(source(operation, order, target.triple))
    lines = read(machine.emit_assembly(module))
    return tuple(line for line in lines if line not in target.returns)


def read(assembly) -> list[str]:
    """Return the instructions of an assembly listing, without comments, directives and labels.

    Parameters
    ----------
    assembly : str

    Returns
    -------
    list of str
    """
    found = []
    for line in assembly.splitlines():
        text = re.split(r"\s*(?:#|//|@ )", line, maxsplit=1)[0].strip() if not line.lstrip().startswith("#") else ""
        if text and not text.startswith(".") and not text.endswith(":"):
            found.append(re.sub(r"\s+", " ", text))
    return found


def distinct(target, operation, orders) -> int:
    """Return how many different sequences of instructions an operation's orders have on a target."""
    return len({instructions(target, operation, order) for order in orders})
