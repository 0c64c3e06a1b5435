"""A replay that calls the user's own compiled functions: what `photonlab.replay(path, on_bbo=…)` does."""

import numba
import numpy as np
import pandas as pd
from numba.core import types
from numba.core.errors import NumbaError
from numba.core.types.function_type import FunctionType

from photonlab.errors import UserError
from photonlab.systems import called_loop
from photonlab.systems.replayer import Replayer

DAY = 86_400 * 10**9
NAMES = ("on_event", "on_bbo", "on_time")


class CallingReplayer(Replayer):
    """A replayer with functions that are called from inside its loop.

    Parameters
    ----------
    on_event : function, optional
        Called after each message of a wanted instrument has been applied.
    on_bbo : function, optional
        Called after each message that changed price or shares of an instrument's best bid or offer.
    on_time : function, optional
        Called on a grid of time: the books are those after all messages up to and with that time.
    every : int, str or Timedelta
        Step of the grid, nanoseconds or such as "1s".
    start, end : int, str or Timedelta
        First and last time of the grid since midnight, such as "09:30:00".
    state : any
        What the functions keep: an array, or a tuple or NamedTuple of arrays. Handed to each of them.
    **options
        Of `Replayer`.

    Notes
    -----
    A function is ``f(books, event, state)``, made by ``numba.njit``: `books` is for the questions of `photonlab.books`,
    `event` an array of uint64 whose words `photonlab.event` names, good during the call only. It returns nothing. An
    exception that it raises ends the replay. (A repeated reference takes the old order out of its own instrument's
    book; if that is another instrument than the message's, the change is seen there with the next message only.)
    """

    def __init__(
        self, *, on_event=None, on_bbo=None, on_time=None, every="1s", start=0, end=DAY, state=None, **options
    ):
        super().__init__(**options)
        step = nanoseconds(every, "every") if on_time is not None else 0
        if on_time is not None and step <= 0:
            raise UserError(f"every must be longer than nothing, not {every!r}")
        self.state = np.zeros(1, np.uint64) if state is None else state
        first, last = nanoseconds(start, "start"), nanoseconds(end, "end")
        book = self.feed_state.book
        self.calls = called_loop.make_calls(book, on_event is not None, on_bbo is not None, step, first, last)
        try:
            kept = numba.typeof(self.state)
        except (ValueError, TypeError) as error:
            raise UserError(f"state: Numba cannot take {type(self.state).__name__}: {error}") from None
        signature = types.void(types.uint64[::1], types.uint64[::1], kept)
        self._functions = [
            compiled(function, name, signature)
            for name, function in zip(NAMES, (on_event, on_bbo, on_time), strict=True)
        ]
        called = FunctionType(signature)
        feed, told = numba.typeof(self.feed_state), numba.typeof(self.calls)
        span = (types.uint8[::1], types.uint64, types.uint64)
        self._loop = entry_point(called_loop.replay, (feed, told, called, called, called, kept, *span))
        self._finish = entry_point(called_loop.finish, (feed, told, called, kept))

    def _apply(self, data, begin, end):
        return self._loop(self.feed_state, self.calls, *self._functions, self.state, data, begin, end)

    def close(self):
        """See `Replayer.close`; the calls up to the time of the last message are made first."""
        super().close()
        self._finish(self.feed_state, self.calls, self._functions[2], self.state)


def entry_point(dispatcher, arguments):
    """Return what runs a dispatcher's code for arguments of these types; compiled only if it is not there yet."""
    there = dispatcher.overloads.get(arguments)
    return dispatcher.compile(arguments) if there is None else there.entry_point


def compiled(function, name, signature):
    """Return a function of the user's as Numba compiles it for what it will be called with.

    Parameters
    ----------
    function : function or None
        By `numba.njit`, or plain: then it is compiled here.
    name : str
        For the error.
    signature : numba signature

    Raises
    ------
    UserError
        If Numba cannot compile it, or if it returns something.
    """
    function = _nothing if function is None else function
    if not hasattr(function, "py_func"):
        if not callable(function):
            raise UserError(f"{name} must be a function, not {type(function).__name__}")
        function = numba.njit(function)
    try:
        entry_point(function, signature.args)
    except (NumbaError, TypeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise UserError(
            f"{name}: Numba cannot compile {function.__name__}(books, event, state): {' '.join(lines[:4])}"
        ) from None
    returned = function.overloads[signature.args].signature.return_type
    if returned != types.none:
        raise UserError(
            f"{name}: {function.__name__} returns {returned}, expected nothing: what it finds goes into state"
        )
    return function


@numba.njit
def _nothing(books, event, state):
    pass


def nanoseconds(value, name) -> int:
    """Return a span of time, or a time of day, as nanoseconds.

    Parameters
    ----------
    value : int, str or Timedelta
    name : str
        For the error.

    Raises
    ------
    UserError
    """
    try:
        found = int(value) if isinstance(value, int | np.integer) else pd.Timedelta(value).value
    except (ValueError, TypeError):
        found = -1
    if not 0 <= found <= DAY:
        raise UserError(f"{name} must be nanoseconds, or such as '1s' or '09:30:00', within a day, not {value!r}")
    return found
