"""Operations on shared 64-bit words in LLVM's language, by memory order; `atomics` makes kernels' functions of them.

Each emitter takes a builder, a pointer to an aligned word and values of 64 bits. With ThreadSanitizer's hooks (see
`photonlab.machine.sanitizer`) the same operation is a call of its runtime, which carries it out and remembers it.
"""

from llvmlite import ir

from photonlab.machine.sanitizer import HOOKED

WORD = ir.IntType(64)
_BYTES = 8
_I32, _VOID, _POINTER = ir.IntType(32), ir.VoidType(), ir.IntType(8).as_pointer()

ORDERS = {
    "relaxed": "monotonic",
    "acquire": "acquire",
    "release": "release",
    "acq_rel": "acq_rel",
    "seq_cst": "seq_cst",
}
"""Memory orders as C11 names them, and as LLVM does."""

LOAD_ORDERS = ("relaxed", "acquire", "seq_cst")
STORE_ORDERS = ("relaxed", "release", "seq_cst")
FENCE_ORDERS = ("acquire", "release", "acq_rel", "seq_cst")

_ON_FAILURE = {"release": "relaxed", "acq_rel": "acquire"}  # a swap that failed stored nothing to release
_C11 = {"relaxed": 0, "acquire": 2, "release": 3, "acq_rel": 4, "seq_cst": 5}

_PAUSE = {"x86_64": "pause", "i686": "pause", "aarch64": "isb", "arm64": "isb", "powerpc64le": "or 27,27,27"}


def load(builder, pointer, order):
    """Emit an atomic load; return the word."""
    if HOOKED:
        return _hook(builder, "atomic64_load", WORD, pointer, order)
    return builder.load_atomic(pointer, ORDERS[order], _BYTES)


def store(builder, pointer, value, order):
    """Emit an atomic store."""
    if HOOKED:
        _hook(builder, "atomic64_store", _VOID, pointer, value, order)
    else:
        builder.store_atomic(value, pointer, ORDERS[order], _BYTES)


def plain_load(builder, pointer):
    """Emit a load that no other thread's store may coincide with; return the word."""
    if HOOKED:
        _hook(builder, "read8", _VOID, pointer)
    return builder.load(pointer, align=_BYTES)


def plain_store(builder, pointer, value):
    """Emit a store that no other thread's access may coincide with."""
    if HOOKED:
        _hook(builder, "write8", _VOID, pointer)
    builder.store(value, pointer, align=_BYTES)


def read_modify_write(builder, pointer, operation, value, order):
    """Emit an exchange ("xchg") or a fetch-and-operate ("add", "sub", "and", "or", "xor"); return the word before."""
    if HOOKED:
        name = "exchange" if operation == "xchg" else f"fetch_{operation}"
        return _hook(builder, f"atomic64_{name}", WORD, pointer, value, order)
    return builder.atomic_rmw(operation, pointer, value, ORDERS[order])


def compare_and_swap(builder, pointer, expected, value, order):
    """Emit a compare-and-swap that fails only if the word is another than expected; return the word before."""
    on_failure = _ON_FAILURE.get(order, order)
    if HOOKED:
        return _hook(builder, "atomic64_compare_exchange_val", WORD, pointer, expected, value, order, on_failure)
    both = builder.cmpxchg(pointer, expected, value, ORDERS[order], ORDERS[on_failure])
    return builder.extract_value(both, 0)


def fence(builder, order):
    """Emit a fence."""
    if HOOKED:
        _hook(builder, "atomic_thread_fence", _VOID, order)
    else:
        builder.fence(ORDERS[order])


def pause(builder, machine):
    """Emit the instruction by which a machine is told that the program spins; none where there is no such."""
    text = _PAUSE.get(machine, "")
    builder.call(ir.InlineAsm(ir.FunctionType(_VOID, []), text, "~{memory}", side_effect=True), [])


def _hook(builder, name, result, *arguments):
    """Call a function of the sanitizer's runtime; a memory order is an argument by its name."""
    values = []
    for argument in arguments:
        if isinstance(argument, str):
            argument = ir.Constant(_I32, _C11[argument])
        elif isinstance(argument.type, ir.PointerType):
            argument = builder.bitcast(argument, _POINTER)
        values.append(argument)
    name = f"__tsan_{name}"
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(result, [value.type for value in values]), name)
    return builder.call(function, values)
