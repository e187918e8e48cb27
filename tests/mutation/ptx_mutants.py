"""Mutants of a role's PTX, for the proof: each changes one instruction in a way that matters.

An operator applies to an instruction on which operations, addresses or branches depend; changes of
floating-point data are left out, because the proof says nothing about values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pipelink_rules.toolkit.ptx import Function, Module

_CALL = re.compile(r"call(\.uni)?\s+(\(\w+\),\s*)?(pl_\w+)")
_COMPARE = {
    "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq",
}  # fmt: skip
_OTHER = {  # a runtime function with the same parameters
    "pl_ring_acquire": "pl_ring_wait",
    "pl_ring_wait": "pl_ring_acquire",
    "pl_ring_commit": "pl_ring_release",
    "pl_ring_release": "pl_ring_commit",
    "pl_fence_async": "pl_fence_global",
    "pl_barrier_sync": "pl_barrier_arrive",
    "pl_tensor_await_load": "pl_tensor_await_store",
    "pl_tensor_fence_before": "pl_tensor_fence_after",
    "pl_tensor_fence_after": "pl_tensor_fence_before",
    "pl_mma_commit_empty": "pl_mma_commit_full",
    "pl_mma_commit_full": "pl_mma_commit_empty",
}


@dataclass(frozen=True)
class Mutant:
    """One changed statement of a function."""

    what: str
    old: str
    new: str
    function: Function

    def of(self, module: Module) -> Module:
        """Return the module with the changed function."""
        functions = tuple(
            self.function if one.name == self.function.name else one for one in module.functions
        )
        return replace(module, functions=functions)


def mutants(function: Function) -> Iterator[Mutant]:
    """Yield the mutants of a function, statement by statement."""
    statements = re.split(r"(?<=;)", function.body)
    for number, text in enumerate(statements):
        for what, new in _changes(text):
            body = "".join((*statements[:number], new, *statements[number + 1 :]))
            changed = Function(function.name, function.linkage, False, function.header, body)
            yield Mutant(what, " ".join(text.split()), " ".join(new.split()), changed)


def _changes(text: str) -> Iterator[tuple[str, str]]:
    call = _CALL.search(text)
    if call:
        yield "drop a call", ""
        if call[3] in _OTHER:
            yield "call another function", text.replace(call[3], _OTHER[call[3]])
        return
    if re.search(r"%f\d|%SP", text) and not re.search(r"\b(ld|st)\.", text):
        return
    yield from _of_comparisons(text)
    yield from _of_numbers(text)
    yield from _of_memory(text)
    if re.search(r"@%p\d+\s+bra", text):
        yield "negate a branch", text.replace("@%p", "@!%p")
    elif re.search(r"@!%p\d+\s+bra", text):
        yield "negate a branch", text.replace("@!%p", "@%p")


def _of_comparisons(text: str) -> Iterator[tuple[str, str]]:
    found = re.search(r"setp\.(lt|le|gt|ge|eq|ne)\.([su])(32|64)", text)
    if found:
        other = f"setp.{_COMPARE[found[1]]}.{found[2]}{found[3]}"
        yield "compare otherwise", text.replace(found[0], other)


def _of_numbers(text: str) -> Iterator[tuple[str, str]]:
    found = re.search(
        r"\b(add|sub|shl|shr|mad|mul|and|or|setp|mov|xor)\.[\w.]*\s+[^;]*?,\s*(-?\d+);", text
    )
    if found and int(found[2]) != -1:
        start = found.start(2)
        for what, value in (("add 1", int(found[2]) + 1), ("double", int(found[2]) * 2)):
            if value != int(found[2]) and not (found[1] == "or" and abs(value) > 1 << 40):
                yield f"{what} to a number", text[:start] + str(value) + text[found.end(2) :]


def _of_memory(text: str) -> Iterator[tuple[str, str]]:
    found = re.search(
        r"\b(ld|st|ldmatrix|stmatrix)\.([\w.:]*)\s*([^;]*)\[(%rd?\d+)(\+-?\d+)?\]", text
    )
    if not found or "param" in found[2] or "local" in found[2]:
        return
    shift = int((found[5] or "+0").lstrip("+"))
    moved = f"[{found[4]}+{shift + (1 << 20)}]"
    yield "move an access", text.replace(f"[{found[4]}{found[5] or ''}]", moved)
