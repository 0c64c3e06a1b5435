"""What a kernel needs of single words: byte order, unaligned access, bit scans, prefetch.

Each is one or two instructions.

All offsets and values are unsigned. `NUMBA_BOUNDSCHECK=1` makes the loads and stores check their offset, as indexing
does.
"""

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from photonlab.machine.jit import kernel

_U64 = ir.IntType(64)


def _data_pointer(context, builder, array_type, array, offset, size):
    """Return an i8 pointer to byte `offset` of an array; check it when Numba's bounds checks are on."""
    struct = context.make_array(array_type)(context, builder, array)
    if config.BOUNDSCHECK:
        end = builder.add(offset, ir.Constant(_U64, size))
        length = builder.mul(struct.nitems, struct.itemsize)
        beyond = builder.or_(
            builder.icmp_unsigned(">", end, length), builder.icmp_unsigned("<", end, ir.Constant(_U64, size))
        )
        with builder.if_then(beyond, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, (f"{size}-byte access beyond the array",))
    base = builder.bitcast(struct.data, ir.IntType(8).as_pointer())
    return builder.gep(base, [offset])


def _check(array, offset):
    return isinstance(array, types.Array) and isinstance(offset, types.Integer) and not offset.signed


def _loader(width, swap):
    size = width // 8

    @intrinsic
    def load(typingctx, array, offset):
        if not _check(array, offset):
            return None

        def codegen(context, builder, signature, args):
            at = context.cast(builder, args[1], signature.args[1], types.uint64)
            pointer = _data_pointer(context, builder, signature.args[0], args[0], at, size)
            word = ir.IntType(width)
            value = builder.load(builder.bitcast(pointer, word.as_pointer()), align=1)
            if swap and size > 1:
                value = builder.bswap(value)
            return value if width == 64 else builder.zext(value, _U64)

        return types.uint64(array, offset), codegen

    return load


def _storer(width, swap):
    size = width // 8

    @intrinsic
    def store(typingctx, array, offset, value):
        if not _check(array, offset) or not isinstance(value, types.Integer):
            return None

        def codegen(context, builder, signature, args):
            at = context.cast(builder, args[1], signature.args[1], types.uint64)
            pointer = _data_pointer(context, builder, signature.args[0], args[0], at, size)
            word = ir.IntType(width)
            value = context.cast(builder, args[2], signature.args[2], types.uint64)
            value = value if width == 64 else builder.trunc(value, word)
            if swap and size > 1:
                value = builder.bswap(value)
            builder.store(value, builder.bitcast(pointer, word.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(array, offset, value), codegen

    return store


# (array of any dtype, byte offset as unsigned integer) -> uint64; (array, byte offset, value) for the stores
load_be16, load_be32, load_be64 = _loader(16, True), _loader(32, True), _loader(64, True)
load_le16, load_le32, load_le64 = _loader(16, False), _loader(32, False), _loader(64, False)
load_u8 = _loader(8, False)
store_be16, store_be32, store_be64 = _storer(16, True), _storer(32, True), _storer(64, True)
store_le16, store_le32, store_le64 = _storer(16, False), _storer(32, False), _storer(64, False)
store_u8 = _storer(8, False)


@kernel(forceinline=True)
def load_be48(array, offset):
    """Return the unaligned 6-byte big-endian integer at byte `offset`, as ITCH time stamps have it, as uint64."""
    return (load_be16(array, offset) << types.uint64(32)) | load_be32(array, offset + types.uint64(2))


@kernel(forceinline=True)
def store_be48(array, offset, value):
    """Store the low 48 bits of `value` at byte `offset`, big-endian."""
    store_be16(array, offset, types.uint64(value) >> types.uint64(32))
    store_be32(array, offset + types.uint64(2), types.uint64(value) & types.uint64(0xFFFFFFFF))


def _counter(name):
    @intrinsic
    def count(typingctx, value):
        if not isinstance(value, types.Integer):
            return None

        def codegen(context, builder, signature, args):
            word = context.cast(builder, args[0], signature.args[0], types.uint64)
            if name == "ctpop":
                return builder.ctpop(word)
            return getattr(builder, name)(word, ir.Constant(ir.IntType(1), 0))

        return types.uint64(value), codegen

    return count


ctz64 = _counter("cttz")  # 64 for zero: never undefined
clz64 = _counter("ctlz")  # 64 for zero
popcount64 = _counter("ctpop")


def _prefetcher(write):
    @intrinsic
    def fetch(typingctx, array, index):
        if not (isinstance(array, types.Array) and isinstance(index, types.Integer)):
            return None

        def codegen(context, builder, signature, args):
            struct = context.make_array(signature.args[0])(context, builder, args[0])
            at = context.cast(builder, args[1], signature.args[1], types.uint64)
            pointer = builder.bitcast(builder.gep(struct.data, [at]), cgutils.voidptr_t)
            i32 = ir.IntType(32)
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, i32, i32, i32]),
                "llvm.prefetch.p0",
            )
            builder.call(function, [pointer, ir.Constant(i32, write), ir.Constant(i32, 3), ir.Constant(i32, 1)])
            return context.get_dummy_value()

        return types.void(array, index), codegen

    return fetch


prefetch = _prefetcher(0)  # (array, index in elements); any index is allowed, out of range too
prefetch_write = _prefetcher(1)


@intrinsic
def address_of(typingctx, array):
    """Return the address of an array's first element as uint64."""
    if not isinstance(array, types.Array):
        return None

    def codegen(context, builder, signature, args):
        struct = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(struct.data, _U64)

    return types.uint64(array), codegen
