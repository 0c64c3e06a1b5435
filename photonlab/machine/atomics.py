"""Atomic words of an array, for kernels that share one between threads: a spin loop reads a plain load only once."""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _word(context, builder, signature, args):
    array = context.make_array(signature.args[0])(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.uint64)
    return builder.gep(array.data, [index])


def _is_word(array, index):
    words = isinstance(array, types.Array) and array.ndim == 1 and array.dtype in (types.uint64, types.int64)
    return words and isinstance(index, types.Integer)


@intrinsic
def load_acquire(typingctx, array, index):
    """Return ``array[index]`` of 64-bit integers; what follows in the program happens after it. No bounds check."""
    if not _is_word(array, index):
        return None

    def codegen(context, builder, signature, args):
        return builder.load_atomic(_word(context, builder, signature, args), "acquire", 8)

    return array.dtype(array, index), codegen


@intrinsic
def store_release(typingctx, array, index, value):
    """Set ``array[index]`` of 64-bit integers; what precedes in the program happened before it. No bounds check."""
    if not _is_word(array, index) or not isinstance(value, types.Integer):
        return None

    def codegen(context, builder, signature, args):
        word = context.cast(builder, args[2], signature.args[2], signature.args[0].dtype)
        word = builder.bitcast(word, ir.IntType(64))
        builder.store_atomic(word, _word(context, builder, signature, args), "release", 8)
        return context.get_dummy_value()

    return types.void(array, index, value), codegen
