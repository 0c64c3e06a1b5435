"""What holds for every kernel of the package: no floating-point variable, no allocation, and checks that can fail."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import int64, uint64
from numba.core.errors import NumbaError

from photonlab import paths
from photonlab.kernels import book, decode, framing
from photonlab.lab.measure.allocation import allocating_walk, allocation_calls, prove
from photonlab.machine.jit import kernel
from photonlab.machine.memory import as_bytes_array
from photonlab.systems import message_loop
from tests.kernel_survey import has_floats
from tests.oracle import itch as oracle
from tests.oracle import streams

FLOATS_ALLOWED = {}
"""Kernels that may compute in floating point, and why."""

ALLOCATION_ALLOWED = {
    "photonlab.lab.measure.allocation.allocating_walk": "the planted twin of the proof",
    "photonlab.machine.libc.usable_sizes": "asks malloc what it gives",
    "photonlab.kernels.chained.insert": "a node from malloc for each member is what it is",
    "photonlab.systems.experiments.map_work.chained_work": "works on such a table",
    "photonlab.systems.experiments.maps.typed_dict": "makes Numba's own dict",
    **{
        f"photonlab.systems.experiments.allocators.malloc_{loop}": "malloc is what it times"
        for loop in ("cycles", "fill", "fill_with_decoys", "churn", "chunks", "spans", "evidence")
    },
}

pytestmark = pytest.mark.timeout(900)  # every kernel of the house is compiled anew

WATCHED = (
    "photonlab.kernels.",
    *(f"photonlab.systems.{room}." for room in ("captures", "message_loop", "replayer", "sift", "synth", "tables")),
)
"""Rooms of which every kernel must be in the survey; of others, what it happens to reach is held to the rules too."""


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Facts on all kernels, from a process in which each was compiled afresh."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernel_survey"],
        cwd=paths.ROOT,
        env={**os.environ, "PHOTONLAB_CACHE": str(tmp_path_factory.mktemp("cache"))},
        capture_output=True,
        text=True,
        timeout=880,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_survey_reaches_the_kernels(survey):
    """A kernel that this fails for is new: let `tests/kernel_survey.py` put it to work."""
    idle = {name for name, facts in survey.items() if not facts["signatures"]}
    assert not {name for name in idle if name.startswith(WATCHED)}
    assert len(survey) > 100


def test_no_floating_point_variable_in_any_kernel(survey):
    """Trap 12: uint64 and int64 meet in float64, and 2^53 + 1 is lost."""
    found = {name: facts["floats"] for name, facts in survey.items() if facts["floats"] and name not in FLOATS_ALLOWED}
    assert found == {}


def test_no_allocation_in_the_code_of_any_kernel(survey):
    """Claim F2."""
    found = {name: facts["calls"] for name, facts in survey.items() if facts["calls"]}
    assert found.keys() == ALLOCATION_ALLOWED.keys()


def test_mixed_signs_would_be_found():
    @kernel(cache=False)
    def mixed(flag, number):
        value = uint64(number)
        if flag:
            value = int64(1)
        return value + number

    mixed(False, np.uint64(2**53 + 1))
    (compiled,) = mixed.overloads.values()
    assert any(has_floats(kind) for kind in compiled.type_annotation.typemap.values())
    assert mixed(False, np.uint64(2**53 + 1)) != 2**54 + 2, "and it is wrong, which is why it is looked for"


DATA = streams.long_stream(4, 5000, faults=0.05)


def replay_arguments():
    data = as_bytes_array(DATA)
    feed = message_loop.make_feed(book.make_book(1 << 16, 1 << 16, 1 << 16))
    return feed, data, np.uint64(0), np.uint64(data.size), True


HOT = {
    "walk": (framing.walk, lambda: (as_bytes_array(DATA), 0)),
    "index": (framing.index, lambda: (as_bytes_array(DATA), 0, framing.frames(5000))),
    "decode_all": (decode.decode_all, lambda: (as_bytes_array(DATA), 0)),
    "replay": (message_loop.replay, replay_arguments),
}


@pytest.mark.parametrize("name", HOT)
def test_hot_kernels_allocate_nothing_while_they_run(name):
    """Claim F2: the code holds no allocating call, and the runtime's counters stand still."""
    hot, arguments = HOT[name]
    proof = prove(hot, *arguments())
    assert proof.clean, proof


def test_the_proof_fails_on_a_planted_allocation():
    messages = len(oracle.walk(DATA).messages)
    proof = prove(allocating_walk, as_bytes_array(DATA), 0)
    assert not proof.clean
    assert proof.allocation_calls_in_code == ("NRT_MemInfo_alloc_aligned",)
    assert proof.allocations_while_running == messages == 5000
    assert proof.kernel == "photonlab.lab.measure.allocation.allocating_walk"


def test_a_kernel_that_allocates_does_not_compile():
    @kernel(cache=False)
    def allocates(n):
        return np.empty(n, np.uint64)[0]

    with pytest.raises(NumbaError, match="built-in function empty"):
        allocates(3)


def test_reading_allocating_calls_from_code():
    code = """
      %a = call i8* @NRT_MemInfo_alloc_aligned(i64 8, i32 32)
      %b = tail call noalias ptr @"NRT_Allocate"(i64 %n)
      call void @NRT_incref(ptr %a)
      call void @NRT_MemInfo_call_dtor(ptr %a)
      declare ptr @NRT_MemInfo_alloc_safe(i64)
      %c = call ptr @malloc(i64 1)
    """
    assert allocation_calls(code) == ("NRT_MemInfo_alloc_aligned", "NRT_Allocate", "malloc")
