"""A cache line of 64 bytes at once, eight words or sixteen halves, by as few instructions as the processor has for it.

Numba's vectoriser works on loops and leaves eight assignments in a row alone: eight stores where one or two would do.
They are plain accesses, like those of `photonlab.machine.atomics.plain_load`: a sanitizer sees each of the words.
"""

from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from photonlab.machine import atomic_ir, sanitizer

WORDS, HALVES = 8, 16
_I64, _I32, _I16 = ir.IntType(64), ir.IntType(32), ir.IntType(16)
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


@intrinsic
def stream_line(typingctx, source, at, into, to):
    """Copy as `copy_line` does, past the cache: for what is not read soon. A line must begin where one of memory does.

    Such stores reach others late: hand over what they wrote by a lock, or by another atomic operation that orders them.
    """
    if not _are_words(source, into):
        return None

    def codegen(context, builder, signature, args):
        kinds = signature.args
        line = _load(builder, _first(context, builder, kinds[0], args[0], args[1]))
        first = _first(context, builder, kinds[2], args[2], args[3])
        if sanitizer.HOOKED:
            _store(builder, line, first)
        else:
            store = builder.store(line, builder.bitcast(first, _LINE.as_pointer()), align=64)
            store.set_metadata("nontemporal", builder.module.add_metadata([_I32(1)]))
        return context.get_dummy_value()

    return types.void(source, types.uint64, into, types.uint64), codegen


@intrinsic
def count_above(typingctx, halves, at, value):
    """Return how many of ``halves[at : at + 16]`` (uint32) are greater than a value below 2^32."""
    if not (isinstance(halves, types.Array) and halves.dtype == types.uint32 and halves.layout == "C"):
        return None

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        if config.BOUNDSCHECK:
            last = builder.add(args[1], _I64(HALVES - 1))
            with builder.if_then(builder.icmp_unsigned(">=", last, array.nitems), likely=False):
                context.call_conv.return_user_exc(builder, IndexError, ("line beyond the array",))
        kind = ir.VectorType(_I32, HALVES)
        first = builder.bitcast(builder.gep(array.data, [args[1]]), kind.as_pointer())
        line = builder.load(first, align=4)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), builder.trunc(args[2], _I32), _I32(0))
        ones = builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), ir.Constant(kind, [0] * HALVES))
        greater = builder.bitcast(builder.icmp_unsigned(">", line, ones), _I16)
        return builder.zext(builder.ctpop(greater), _I64)

    return types.uint64(halves, types.uint64, types.uint64), codegen
