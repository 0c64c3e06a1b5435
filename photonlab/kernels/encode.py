"""Encoding: from fields to the bytes of a message. For people, `encode` and `frame`; for kernels, one `put_` a type.

A `put_` is an intrinsic made from the message table: `put_A(buf, at, stock_locate, tracking_number, timestamp, …)`
stores the length prefix, the type and every field, big-endian, and returns the offset behind them. Its arguments are
integers named as the fields are; text is the big-endian integer of its characters, which `text_value` gives.
"""

import inspect
import operator

from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic

from photonlab.errors import UserError
from photonlab.kernels.framing import PREFIX
from photonlab.kernels.itch import BY_TYPE, MESSAGES, Field, Message

END_OF_SESSION = bytes(PREFIX)
"""The zero length that closes a file."""

_U64 = ir.IntType(64)


def encode(type_: str, **fields) -> bytes:
    """Return the bytes of one message, without a length prefix.

    Parameters
    ----------
    type_ : str
        The type's character.
    **fields
        Integers for numbers (prices raw, with their implied decimals; time stamps in nanoseconds since midnight); str
        or bytes for text, which is padded with spaces. What is not named is zero, or spaces.

    Returns
    -------
    bytes

    Raises
    ------
    UserError
        For an unknown type or field, a number that does not fit its field, text that is too long or not ASCII.
    """
    if type_ not in BY_TYPE:
        raise UserError(f"no ITCH 5.0 message type {type_!r}; the types are {' '.join(BY_TYPE)}")
    message = BY_TYPE[type_]
    names = [field.name for field in message.fields[1:]]
    for name in fields:
        if name not in names:
            raise UserError(f"{type_} ({message.name}) has no field {name!r}; it has {', '.join(names)}")
    body = (_field_bytes(message, field, fields.get(field.name)) for field in message.fields[1:])
    return type_.encode() + b"".join(body)


def _field_bytes(message: Message, field: Field, value) -> bytes:
    """Return the bytes of one field, or say what is wrong with its value."""
    where = f"{message.type}.{field.name}"
    if field.is_text:
        value = b"" if value is None else value
        if not isinstance(value, str | bytes):
            raise UserError(f"{where} is text, not {value!r}")
        try:
            text = value.encode("ascii") if isinstance(value, str) else value
        except UnicodeEncodeError:
            raise UserError(f"{where} must be ASCII, not {value!r}") from None
        if len(text) > field.width:
            raise UserError(f"{where} has room for {field.width} characters, not for {value!r}")
        return text.ljust(field.width)
    try:
        number = operator.index(0 if value is None else value)
    except TypeError:
        raise UserError(f"{where} is an unsigned integer, not {value!r}") from None
    if not 0 <= number < 1 << (8 * field.width):
        raise UserError(f"{where} must be from 0 to {(1 << (8 * field.width)) - 1}, not {number}")
    return number.to_bytes(field.width, "big")


def frame(messages) -> bytes:
    """Return messages in one piece, each behind its length in two big-endian bytes, as NASDAQ's files hold them.

    Parameters
    ----------
    messages : iterable of bytes

    Raises
    ------
    UserError
        For an empty message, whose prefix would end the session, or one too long for its prefix.
    """
    pieces = []
    for message in messages:
        if not 0 < len(message) < 1 << (8 * PREFIX):
            raise UserError(f"a message of {len(message)} bytes cannot be framed; 1 to {(1 << (8 * PREFIX)) - 1} can")
        pieces += [len(message).to_bytes(PREFIX, "big"), message]
    return b"".join(pieces)


def text_value(text: str, width: int) -> int:
    """Return text, padded with spaces to `width`, as the big-endian integer that a `put_` takes."""
    return int.from_bytes(text.encode("ascii").ljust(width), "big")


def _store(builder, base, offset: int, width: int, value):
    """Store the low `width` bytes of a 64-bit value, big-endian and unaligned; 6 bytes go as 2 and 4."""
    if width == 6:
        _store(builder, base, offset, 2, builder.lshr(value, ir.Constant(_U64, 32)))
        return _store(builder, base, offset + 2, 4, value)
    word = ir.IntType(8 * width)
    value = builder.trunc(value, word) if width < 8 else value
    value = builder.bswap(value) if width > 1 else value
    at = builder.gep(base, [ir.Constant(_U64, offset)])
    return builder.store(value, builder.bitcast(at, word.as_pointer()), align=1)


def _putter(message: Message):
    """Make the intrinsic that stores one type, with the names of its fields as its signature."""
    size = PREFIX + message.length

    def put(typingctx, buf, at, *values, **named):
        values = (*values, *(named[field.name] for field in message.fields[1 + len(values) :]))
        if not (isinstance(buf, types.Array) and all(isinstance(value, types.Integer) for value in (at, *values))):
            return None

        def codegen(context, builder, signature, args):
            at = context.cast(builder, args[1], signature.args[1], types.uint64)
            end = builder.add(at, ir.Constant(_U64, size))
            array = context.make_array(signature.args[0])(context, builder, args[0])
            if config.BOUNDSCHECK:
                room = builder.mul(array.nitems, array.itemsize)
                with builder.if_then(builder.icmp_unsigned(">", end, room), likely=False):
                    context.call_conv.return_user_exc(builder, IndexError, (f"no room for a message {message.type}",))
            base = builder.gep(builder.bitcast(array.data, ir.IntType(8).as_pointer()), [at])
            _store(builder, base, 0, PREFIX, ir.Constant(_U64, message.length))
            _store(builder, base, PREFIX, 1, ir.Constant(_U64, ord(message.type)))
            for field, value, kind in zip(message.fields[1:], args[2:], signature.args[2:], strict=True):
                _store(
                    builder, base, PREFIX + field.offset, field.width, context.cast(builder, value, kind, types.uint64)
                )
            return end

        return types.uint64(buf, at, *values), codegen

    names = ("typingctx", "buf", "at", *(field.name for field in message.fields[1:]))
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    put.__signature__ = inspect.Signature([inspect.Parameter(name, positional) for name in names])
    put.__name__ = f"put_{message.type}"
    put.__doc__ = f"Store {message.name} ({size} bytes with its prefix) at byte `at`; return the offset behind it."
    return intrinsic(put)


(
    put_S, put_R, put_H, put_Y, put_L, put_V, put_W, put_K, put_J, put_h, put_A, put_F,
    put_E, put_C, put_X, put_D, put_U, put_P, put_Q, put_B, put_I, put_N, put_O,
) = (_putter(message) for message in MESSAGES)  # fmt: skip

PUT = {message.type: globals()[f"put_{message.type}"] for message in MESSAGES}
"""Each type's `put_` by its character, for code that walks over all types."""
