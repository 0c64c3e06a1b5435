"""Atomic words of an array, for kernels that share one between threads: a spin loop reads a plain load only once.

`words` is a contiguous 1-D array of uint64 or int64 in any memory, shared memory too, at a multiple of 8 bytes; what
is read has its type.
The last part of a name is the memory order, as C11 has it.

    load_relaxed, load_acquire, load_seq_cst             (words, at)
    store_relaxed, store_release, store_seq_cst          (words, at, value)
    exchange_…                                           (words, at, value)             the word before
    compare_and_swap_…                                   (words, at, expected, value)   the word before
    fetch_add_…, fetch_sub_…, fetch_and_…, fetch_or_…    (words, at, value)             the word before
    fence_acquire, fence_release, fence_acq_rel, fence_seq_cst ()
    pause ()                                             in a loop that spins
    plain_load (words, at), plain_store (words, at, value)

with … of relaxed, acquire, release, acq_rel, seq_cst. A swap has happened if and only if the word before was the
expected one. The plain ones are what `words[at]` is, for words that other orders already keep apart; a sanitizer
sees them (`photonlab.machine.sanitizer`), and does not see `words[at]`.

`NUMBA_BOUNDSCHECK=1` makes them check their index, as indexing does, and the address.
"""

import platform

from numba.core import config, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from photonlab.machine import atomic_ir, sanitizer
from photonlab.machine.atomic_ir import FENCE_ORDERS, LOAD_ORDERS, ORDERS, STORE_ORDERS

sanitizer.check_runtime()


def _check(array, index, *values, written=True):
    """Refuse what is no shared word: strides and other sizes have no atomic access. Numba's types know no alignment."""
    if not isinstance(array, types.Array):
        raise TypingError(f"an atomic word is one of an array, not of {array}")
    is_words = array.ndim == 1 and array.dtype in (types.uint64, types.int64)
    if not is_words or array.layout not in "CF" or (written and not array.mutable):
        what = "writable, contiguous" if written else "contiguous"
        raise TypingError(f"atomic words are those of a {what} 1-D array of uint64 or int64, not of {array}")
    if not all(isinstance(value, types.Integer) for value in (index, *values)):
        raise TypingError(f"index and values of atomic words are integers, not {(index, *values)}")


def _pointer(context, builder, signature, args):
    """Return the pointer to the word that the first two arguments, array and index, name."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    index = context.cast(builder, args[1], signature.args[1], types.uint64)
    pointer = builder.gep(array.data, [index])
    if config.BOUNDSCHECK:
        address = builder.ptrtoint(pointer, atomic_ir.WORD)
        unaligned = builder.icmp_unsigned("!=", builder.and_(address, address.type(7)), address.type(0))
        beyond = builder.icmp_unsigned(">=", index, array.nitems)
        with builder.if_then(builder.or_(beyond, unaligned), likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("atomic word beyond the array, or unaligned",))
    return pointer


def _word(context, builder, signature, args, number):
    """Return an argument as a word of the array."""
    return context.cast(builder, args[number], signature.args[number], signature.args[0].dtype)


def _load(emit, *order):
    @intrinsic
    def load(typingctx, words, at):
        _check(words, at, written=False)

        def codegen(context, builder, signature, args):
            return emit(builder, _pointer(context, builder, signature, args), *order)

        return words.dtype(words, at), codegen

    return load


def _store(emit, *order):
    @intrinsic
    def store(typingctx, words, at, value):
        _check(words, at, value)

        def codegen(context, builder, signature, args):
            word = _word(context, builder, signature, args, 2)
            emit(builder, _pointer(context, builder, signature, args), word, *order)
            return context.get_dummy_value()

        return types.void(words, at, value), codegen

    return store


def _update(operation):
    """Make the functions of all orders that change a word by one value."""

    def of(order):
        @intrinsic
        def update(typingctx, words, at, value):
            _check(words, at, value)

            def codegen(context, builder, signature, args):
                word = _word(context, builder, signature, args, 2)
                pointer = _pointer(context, builder, signature, args)
                return atomic_ir.read_modify_write(builder, pointer, operation, word, order)

            return words.dtype(words, at, value), codegen

        return update

    return [of(order) for order in ORDERS]


def _swap(order):
    @intrinsic
    def swap(typingctx, words, at, expected, value):
        _check(words, at, expected, value)

        def codegen(context, builder, signature, args):
            old, new = (_word(context, builder, signature, args, number) for number in (2, 3))
            pointer = _pointer(context, builder, signature, args)
            return atomic_ir.compare_and_swap(builder, pointer, old, new, order)

        return words.dtype(words, at, expected, value), codegen

    return swap


def _fence(order):
    @intrinsic
    def fence(typingctx):
        def codegen(context, builder, signature, args):
            atomic_ir.fence(builder, order)
            return context.get_dummy_value()

        return types.void(), codegen

    return fence


load_relaxed, load_acquire, load_seq_cst = (_load(atomic_ir.load, order) for order in LOAD_ORDERS)
store_relaxed, store_release, store_seq_cst = (_store(atomic_ir.store, order) for order in STORE_ORDERS)
exchange_relaxed, exchange_acquire, exchange_release, exchange_acq_rel, exchange_seq_cst = _update("xchg")
fetch_add_relaxed, fetch_add_acquire, fetch_add_release, fetch_add_acq_rel, fetch_add_seq_cst = _update("add")
fetch_sub_relaxed, fetch_sub_acquire, fetch_sub_release, fetch_sub_acq_rel, fetch_sub_seq_cst = _update("sub")
fetch_and_relaxed, fetch_and_acquire, fetch_and_release, fetch_and_acq_rel, fetch_and_seq_cst = _update("and")
fetch_or_relaxed, fetch_or_acquire, fetch_or_release, fetch_or_acq_rel, fetch_or_seq_cst = _update("or")
(
    compare_and_swap_relaxed,
    compare_and_swap_acquire,
    compare_and_swap_release,
    compare_and_swap_acq_rel,
    compare_and_swap_seq_cst,
) = (_swap(order) for order in ORDERS)
fence_acquire, fence_release, fence_acq_rel, fence_seq_cst = (_fence(order) for order in FENCE_ORDERS)
plain_load, plain_store = _load(atomic_ir.plain_load), _store(atomic_ir.plain_store)


@intrinsic
def pause(typingctx):
    """Tell the processor that this loop spins: it saves power, and its sibling thread gets on."""

    def codegen(context, builder, signature, args):
        atomic_ir.pause(builder, platform.machine().lower())
        return context.get_dummy_value()

    return types.void(), codegen
