"""State of many arrays behind one: a handle of addresses, from which a kernel gets the state back for nothing.

A NamedTuple of thirty arrays costs more to hand to a function that is called by address than most of what the function
does: some two hundred words a call. Its handle is one array, and of what is read back from it the compiler keeps only
what is used.
"""

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types


def leaves(state):
    """Return the arrays of a nested NamedTuple, in order.

    Parameters
    ----------
    state : NamedTuple of ndarray and NamedTuple

    Returns
    -------
    list of ndarray
    """
    found = []
    for part in state:
        found += [part] if isinstance(part, np.ndarray) else leaves(part)
    return found


def make_handle(state) -> np.ndarray:
    """Return addresses and lengths of the arrays of a nested NamedTuple, which must outlive the handle.

    Parameters
    ----------
    state : NamedTuple of ndarray and NamedTuple
        All arrays of one dimension, contiguous.

    Returns
    -------
    ndarray of uint64, shape (2 * arrays,)
    """
    words = []
    for array in leaves(state):
        if array.ndim != 1 or not array.flags.c_contiguous:
            raise ValueError("a handle is of contiguous arrays of one dimension")
        words += [array.ctypes.data, array.size]
    return np.array(words, np.uint64)


def reading(exemplar):
    """Return what an intrinsic needs to get a state back from its handle.

    Parameters
    ----------
    exemplar : function
        Makes a state of the same type, as small as may be.

    Returns
    -------
    function
        For `numba.extending.intrinsic`: of the typing context and a handle.
    """
    known = []

    def typing(typingctx, handle):
        if not isinstance(handle, types.Array) or handle.dtype != types.uint64 or handle.ndim != 1:
            return None
        if not known:
            known.append(numba.typeof(exemplar()))

        def codegen(context, builder, signature, args):
            words = context.make_array(signature.args[0])(context, builder, args[0]).data
            value, _ = _read(context, builder, known[0], words, 0)
            return value

        return known[0](handle), codegen

    return typing


def _read(context, builder, kind, words, at):
    """Return the value of a type from the handle's words from `at` on, and where the next one begins."""
    if isinstance(kind, types.Array):
        return _array(context, builder, kind, words, at), at + 2
    parts = []
    for part in kind.types:
        value, at = _read(context, builder, part, words, at)
        parts.append(value)
    return context.make_tuple(builder, kind, parts), at


def _array(context, builder, kind, words, at):
    word = ir.IntType(64)
    address, length = (
        builder.load(cgutils.gep_inbounds(builder, words, ir.Constant(word, at + one)), align=8) for one in (0, 1)
    )
    array = context.make_array(kind)(context, builder)
    size = context.get_constant(types.intp, np.dtype(str(kind.dtype)).itemsize)
    context.populate_array(
        array, data=builder.inttoptr(address, array.data.type), shape=[length], strides=[size], itemsize=size,
        meminfo=None,
    )  # fmt: skip
    return array._getvalue()
