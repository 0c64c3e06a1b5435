"""Eight words at once: a cache line of 64 bytes, moved by as few instructions as the processor has for it.

Numba's vectoriser works on loops and leaves eight assignments in a row alone: eight stores where one or two would do.
They are plain accesses, like those of `photonlab.machine.atomics.plain_load`: a sanitizer sees each of the words.
"""

from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from photonlab.machine import atomic_ir, sanitizer

WORDS = 8
_I64, _I32 = ir.IntType(64), ir.IntType(32)
_LINE = ir.VectorType(_I64, WORDS)
_ASCENDING = ir.Constant(_LINE, list(range(WORDS)))


def _are_words(*arrays):
    return all(isinstance(one, types.Array) and one.dtype == types.uint64 and one.layout == "C" for one in arrays)


def _first(context, builder, kind, array, index):
    """Return the pointer to the first word of a line."""
    array = context.make_array(kind)(context, builder, array)
    if config.BOUNDSCHECK:
        last = builder.add(index, _I64(WORDS - 1))
        with builder.if_then(builder.icmp_unsigned(">=", last, array.nitems), likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("line beyond the array",))
    return builder.gep(array.data, [index])


def _load(builder, first):
    if not sanitizer.HOOKED:
        return builder.load(builder.bitcast(first, _LINE.as_pointer()), align=8)
    line = ir.Constant(_LINE, ir.Undefined)
    for j in range(WORDS):
        word = atomic_ir.plain_load(builder, builder.gep(first, [_I64(j)]))
        line = builder.insert_element(line, word, _I32(j))
    return line


def _store(builder, line, first):
    if not sanitizer.HOOKED:
        builder.store(line, builder.bitcast(first, _LINE.as_pointer()), align=8)
        return
    for j in range(WORDS):
        atomic_ir.plain_store(builder, builder.gep(first, [_I64(j)]), builder.extract_element(line, _I32(j)))


@intrinsic
def copy_line(typingctx, source, at, into, to):
    """Copy ``source[at : at + 8]`` to ``into[to : to + 8]`` (uint64); all is read before anything is written."""
    if not _are_words(source, into):
        return None

    def codegen(context, builder, signature, args):
        kinds = signature.args
        line = _load(builder, _first(context, builder, kinds[0], args[0], args[1]))
        _store(builder, line, _first(context, builder, kinds[2], args[2], args[3]))
        return context.get_dummy_value()

    return types.void(source, types.uint64, into, types.uint64), codegen


@intrinsic
def count_line(typingctx, words, at, value):
    """Write value, value + 1, … value + 7 to ``words[at : at + 8]`` (uint64)."""
    if not _are_words(words):
        return None

    def codegen(context, builder, signature, args):
        line = builder.insert_element(ir.Constant(_LINE, ir.Undefined), args[2], _I32(0))
        everywhere = ir.Constant(ir.VectorType(_I32, WORDS), [0] * WORDS)
        line = builder.shuffle_vector(line, ir.Constant(_LINE, ir.Undefined), everywhere)
        first = _first(context, builder, signature.args[0], args[0], args[1])
        _store(builder, builder.add(line, _ASCENDING), first)
        return context.get_dummy_value()

    return types.void(words, types.uint64, types.uint64), codegen


@intrinsic
def sum_line(typingctx, words, at):
    """Return the sum of ``words[at : at + 8]`` (uint64), modulo 2^64."""
    if not _are_words(words):
        return None

    def codegen(context, builder, signature, args):
        line = _load(builder, _first(context, builder, signature.args[0], args[0], args[1]))
        name = f"llvm.vector.reduce.add.v{WORDS}i64"
        kind = ir.FunctionType(_I64, [_LINE])
        reduce = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(reduce, [line])

    return types.uint64(words, types.uint64), codegen
