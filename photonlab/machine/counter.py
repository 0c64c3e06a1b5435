"""The instructions that read time inside a kernel, and the switch between the hardware's counter and the system clock.

Which of the two is read is decided at run time by one word in memory, not when a kernel is compiled: a kernel cached
on disk stays right when the machine's counter turns out to be unfit (no constant TSC, cores that disagree). The test
of that word is a predicted branch outside the timed region. `photonlab.machine.clock` decides, calibrates and names;
timing code imports from there.

Why the fences: the counter is read when the instruction executes, and the processor executes out of order. A region
is opened by ``lfence; rdtsc; lfence`` (nothing earlier is still running, nothing later has begun) and closed by
``rdtscp; lfence`` (everything earlier is done, nothing later has begun). Without the second fence of the opening, up
to about ten ns of work hides behind the read: in a trial a chain of eight dependent steps read the same as an empty
region.

The fences order instructions, not the compiler: it may move plain arithmetic across the reads unless the work leaves
through memory. A kernel that times arithmetic therefore stores its result to an array inside the region.
"""

import platform
import time

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from photonlab.machine.jit import kernel

HARDWARE, SYSTEM = 0, 1
"""Values of the switch: the processor's counter, or clock_gettime(CLOCK_MONOTONIC)."""

_SWITCH = "photonlab_clock_switch"
_switch = np.full(8, SYSTEM, np.uint64)  # a cache line; lives as long as the process, since kernels hold its address
llvmlite.binding.add_symbol(_SWITCH, _switch.ctypes.data)

_I32, _U64 = ir.IntType(32), ir.IntType(64)
_X86_CLOBBERS = "~{memory},~{dirflag},~{fpsr},~{flags}"
_JOIN = "shlq $$32, %rdx; orq %rdx, %rax"


class Read:
    """One way of reading the counter as inline assembly: text and constraints by architecture."""

    def __init__(self, x86, x86_constraints, aarch64):
        self.x86 = (f"{x86}; {_JOIN}", f"{x86_constraints},{_X86_CLOBBERS}")
        self.aarch64 = (aarch64, "=r,~{memory}")

    def build(self, builder, architecture):
        """Emit the read for an architecture named by `architecture`, and return the ticks as an i64."""
        text, constraints = self.x86 if architecture == "x86-64" else self.aarch64
        return builder.call(ir.InlineAsm(ir.FunctionType(_U64, []), text, constraints, side_effect=True), [])


PLAIN = Read("rdtsc", "={rax},~{rdx}", "mrs $0, cntvct_el0")
BEGIN = Read("lfence; rdtsc; lfence", "={rax},~{rdx}", "isb; mrs $0, cntvct_el0; isb")
END = Read("rdtscp; lfence", "={rax},~{rdx},~{rcx}", "isb; mrs $0, cntvct_el0; isb")


def architecture() -> str:
    """Return "x86-64", "aarch64", or "" for a processor whose counter is not read here."""
    machine = platform.machine().lower()
    return {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "aarch64", "arm64": "aarch64"}.get(machine, "")


def switch(to: int | None = None) -> int:
    """Return what kernels read, `HARDWARE` or `SYSTEM`, after setting it to `to` if that is given."""
    if to is not None:
        _switch[0] = to
    return int(_switch[0])


def _system_ns(builder, clock_id, by_system_call=False):
    """Emit a read of a POSIX clock in ns, through libc (on Linux: the vDSO) or by a real system call."""
    spec = cgutils.alloca_once(builder, ir.ArrayType(_U64, 2))
    pointer = builder.bitcast(spec, cgutils.voidptr_t)
    if by_system_call:
        kind = ir.FunctionType(_U64, [_U64, _U64, cgutils.voidptr_t])
        function = cgutils.get_or_insert_function(builder.module, kind, "syscall")
        builder.call(function, [_U64(CLOCK_GETTIME_CALL.get(architecture(), _NO_CALL)), _U64(clock_id), pointer])
    else:
        kind = ir.FunctionType(_I32, [_I32, cgutils.voidptr_t])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [_I32(clock_id), pointer])
    seconds, nanoseconds = (builder.load(cgutils.gep_inbounds(builder, spec, 0, i)) for i in (0, 1))
    return builder.add(builder.mul(seconds, _U64(1_000_000_000)), nanoseconds)


CLOCK_GETTIME_CALL = {"x86-64": 228, "aarch64": 113}
"""Linux system call numbers, for the clock by the long way round (claim P5)."""
_NO_CALL = 0xFFFF


def _switched(builder, hardware, system):
    """Emit ``hardware()`` or ``system()`` by the switch; both emit a list of i64 values."""
    name = architecture()
    if not name:
        return system()
    module = builder.module
    word = module.globals.get(_SWITCH) or ir.GlobalVariable(module, _U64, _SWITCH)
    use_hardware = builder.icmp_unsigned("==", builder.load(word), _U64(HARDWARE))
    with builder.if_else(use_hardware, likely=True) as (then, otherwise):
        with then:
            first, from_first = hardware(), builder.block
        with otherwise:
            second, from_second = system(), builder.block
    joined = []
    for a, b in zip(first, second, strict=True):
        phi = builder.phi(_U64)
        phi.add_incoming(a, from_first)
        phi.add_incoming(b, from_second)
        joined.append(phi)
    return joined


def _ticks(read):
    @intrinsic
    def ticks(typingctx):
        def codegen(context, builder, signature, args):
            def hardware():
                return [read.build(builder, architecture())]

            def system():
                return [_system_ns(builder, time.CLOCK_MONOTONIC)]

            return _switched(builder, hardware, system)[0]

        return types.uint64(), codegen

    return ticks


# () -> uint64, for use inside kernels
ticks = _ticks(PLAIN)  # cheapest, unordered: for long spans, deadlines, pacing
ticks_begin = _ticks(BEGIN)  # opens a timed region
ticks_end = _ticks(END)  # closes it


@intrinsic
def ticks_cpu(typingctx):
    """Return (ticks, CPU number), both uint64, read together; fenced as `ticks_end`.

    On x86-64 the two come from one instruction. Elsewhere, and with the system's clock, the CPU is asked for right
    afterwards. `NO_CPU` stands for a system that does not tell. A different CPU at the two ends of a region is a
    migration.
    """

    def codegen(context, builder, signature, args):
        def hardware():
            if architecture() != "x86-64":
                return [END.build(builder, architecture()), _current_cpu(builder)]
            kind = ir.FunctionType(ir.LiteralStructType([_U64, _U64]), [])
            text, constraints = f"rdtscp; lfence; {_JOIN}", f"={{rax}},={{rcx}},~{{rdx}},{_X86_CLOBBERS}"
            both = builder.call(ir.InlineAsm(kind, text, constraints, side_effect=True), [])
            # Linux keeps the NUMA node above the low twelve bits
            return [builder.extract_value(both, 0), builder.and_(builder.extract_value(both, 1), _U64(0xFFF))]

        def system():
            return [_system_ns(builder, time.CLOCK_MONOTONIC), _current_cpu(builder)]

        return context.make_tuple(builder, signature.return_type, _switched(builder, hardware, system))

    return types.UniTuple(types.uint64, 2)(), codegen


NO_CPU = 0xFFFF_FFFF_FFFF_FFFF


def _current_cpu(builder):
    if platform.system() != "Linux":
        return _U64(NO_CPU)
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I32, []), "sched_getcpu")
    return builder.sext(builder.call(function, []), _U64)


def _clock(clock_id, by_system_call=False):
    @intrinsic
    def nanoseconds(typingctx):
        def codegen(context, builder, signature, args):
            return _system_ns(builder, clock_id, by_system_call)

        return types.uint64(), codegen

    return nanoseconds


# () -> uint64 ns, whatever the switch says
monotonic_ns = _clock(time.CLOCK_MONOTONIC)
monotonic_raw_ns = _clock(getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC))  # for calibration: no NTP
monotonic_ns_by_system_call = _clock(time.CLOCK_MONOTONIC, by_system_call=True)  # Linux only; see CLOCK_GETTIME_CALL


@intrinsic
def frequency_register(typingctx):
    """Return the frequency that an AArch64 system claims for its counter, in Hz as uint64; 0 on other processors."""

    def codegen(context, builder, signature, args):
        if architecture() != "aarch64":
            return _U64(0)
        return builder.call(ir.InlineAsm(ir.FunctionType(_U64, []), "mrs $0, cntfrq_el0", "=r", side_effect=True), [])

    return types.uint64(), codegen


@kernel(forceinline=True)
def elapsed(begin, end):
    """Return ``end - begin`` in ticks, and 0 instead of 1.8e19 where the clock stepped back between the two reads.

    Parameters
    ----------
    begin, end : uint64
        Of `ticks_begin` and `ticks_end`.
    """
    b = types.uint64(begin)
    e = types.uint64(end)
    return e - b if e > b else types.uint64(0)


@kernel
def ticks_to_ns(span, hz):
    """Return a span of ticks in whole ns, rounded down, exact over the whole range of a 64-bit counter.

    Parameters
    ----------
    span : uint64
        A difference of two reads: subtract first (the difference is small and exact), convert then.
    hz : uint64
        Ticks per second, at most 1.8e10.

    Returns
    -------
    uint64
        ``span * 10**9 // hz``, modulo 2**64 where the span is longer than 584 years.
    """
    s = types.uint64(span)
    f = types.uint64(hz)
    billion = types.uint64(1_000_000_000)
    seconds = s // f
    return seconds * billion + (s - seconds * f) * billion // f


@kernel
def spans_to_ns(spans, hz, out):
    """Convert an array of spans as `ticks_to_ns` does, into `out` (both uint64, of one length)."""
    for i in range(spans.size):
        out[i] = ticks_to_ns(spans[i], hz)
