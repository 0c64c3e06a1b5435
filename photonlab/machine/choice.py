"""Kernels chosen by the type of their first argument, while a caller is compiled: a policy costs nothing when it runs.

>>> @by_type
... def home(policy, key, shift):
...     "Return the home slot of a key."
>>> home.kernels[Fibonacci] = fibonacci_home      # a kernel of the same arguments; more types may follow
"""

import functools
import inspect

from numba.extending import overload

_OPTIONS = {
    "forceinline": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def by_type(stub):
    """Make a function that stands in kernels for whichever kernel is registered for its first argument's type.

    Parameters
    ----------
    stub : callable
        Its signature, of 1 to 4 arguments, and its docstring; it is never called.

    Returns
    -------
    callable
        With a dict ``kernels`` from NamedTuple class to kernel. Called from Python it chooses too, which serves where
        kernels run as the Python that they are written in.
    """
    kernels = {}

    @functools.wraps(stub)
    def chosen(*arguments):
        return kernels[type(arguments[0])](*arguments)

    chosen.kernels = kernels
    overload(chosen, jit_options=_OPTIONS)(_CHOOSERS[len(inspect.signature(stub).parameters)](kernels))
    return chosen


def _kernel_of(kernels, kind):
    return kernels.get(getattr(kind, "instance_class", None))


def _of_one(kernels):
    def choose(a):
        kernel = _kernel_of(kernels, a)
        return kernel and (lambda a: kernel(a))

    return choose


def _of_two(kernels):
    def choose(a, b):
        kernel = _kernel_of(kernels, a)
        return kernel and (lambda a, b: kernel(a, b))

    return choose


def _of_three(kernels):
    def choose(a, b, c):
        kernel = _kernel_of(kernels, a)
        return kernel and (lambda a, b, c: kernel(a, b, c))

    return choose


def _of_four(kernels):
    def choose(a, b, c, d):
        kernel = _kernel_of(kernels, a)
        return kernel and (lambda a, b, c, d: kernel(a, b, c, d))

    return choose


_CHOOSERS = {1: _of_one, 2: _of_two, 3: _of_three, 4: _of_four}
