"""Memory order in emitted assembly: what this LLVM makes of each order, and that kernels get the same (claim S10)."""

import platform

import numpy as np
import pytest

from photonlab.lab.judge import claims, judging
from photonlab.lab.studies import memory_order as study
from photonlab.machine import atomics
from photonlab.machine.jit import kernel
from photonlab.systems.experiments import memory_order
from photonlab.systems.experiments.memory_order import LOAD, ORDERS, STORE, TARGETS

BY_NAME = {target.name: target for target in TARGETS}
STORES = {  # as the processors' manuals map C11's orders
    "x86-64": ("mov", "mov", "xchg"),
    "AArch64": ("str", "stlr", "stlr"),
    "AArch64, v8.3": ("str", "stlr", "stlr"),
    "POWER": ("std", "lwsync; std", "sync; std"),
    "RISC-V": ("sd", "fence; sd", "fence; sd; fence"),
}
LOADS = {
    "x86-64": ("mov", "mov", "mov"),
    "AArch64": ("ldr", "ldar", "ldar"),
    "AArch64, v8.3": ("ldr", "ldapr", "ldar"),
    "POWER": ("ld", "ld; cmpd; bne-; isync", "sync; ld; cmpd; bne-; isync"),
    "RISC-V": ("ld", "ld; fence", "fence; ld; fence"),
}


def names(target, operation, order):
    """Give the instructions without their operands and AT&T's suffix of size."""
    words = [line.split()[0] for line in memory_order.instructions(BY_NAME[target], operation, order)]
    return "; ".join(word.removesuffix("q") if target == "x86-64" else word for word in words)


@pytest.mark.parametrize("target", BY_NAME)
@pytest.mark.parametrize(("operation", "expected"), [(STORE, STORES), (LOAD, LOADS)])
def test_each_order_becomes_what_the_manuals_say(target, operation, expected):
    assert tuple(names(target, operation, order) for order in study.STRENGTHS[operation]) == expected[target]


@pytest.mark.parametrize("target", BY_NAME)
@pytest.mark.parametrize("operation", ORDERS)
def test_every_operation_has_code_without_calls(target, operation):
    """A target without atomic instructions would call a library."""
    for order in ORDERS[operation]:
        text = "; ".join(memory_order.instructions(BY_NAME[target], operation, order))
        assert text or (operation, target) == ("fence", "x86-64")
        assert "atomic" not in text and "call" not in text and "bl " not in text


def test_the_rows_are_those_that_the_verdict_wants():
    claim = next(claim for claim in claims.load() if claim.id == "S10")
    rows = {(row["statistic"], row["variant"]): row["value"] for row in study.rows()}
    for statistic, variant, _unit in judging.wanted(claim):
        assert (statistic, variant) in rows
    assert rows["distinct stores", "x86-64"] == 2 and rows["distinct stores", "AArch64"] == 2
    assert rows["distinct loads", "x86-64"] == 1


def test_tables_and_sentence_tell_of_every_target():
    assert len(study.table()) == 2 * len(TARGETS) and len(study.update_table()) == 4 * len(TARGETS)
    assert "not one as published" in study.sentence() and "stlr" in study.sentence()


def test_comments_directives_and_labels_are_no_instructions():
    text = "\t.text\n# a comment\nf:   # @f\n\tstr\tx1, [x0]  // wide\n.LBB0:\n\tret\n"
    assert memory_order.read(text) == ["str x1, [x0]", "ret"]


@kernel(cache=False)
def store_both(words, value):
    atomics.store_release(words, 0, value)
    atomics.store_seq_cst(words, 1, value)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86-64 assembly")
def test_a_kernel_gets_the_same_instructions():
    words = np.zeros(2, np.uint64)
    store_both(words, np.uint64(7))
    assert words.tolist() == [7, 7]
    text = store_both.inspect_asm(store_both.signatures[0])
    assert text.count("xchgq") == 1
