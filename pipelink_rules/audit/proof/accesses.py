"""Loads, stores and atomics of PTX as effects on a symbolic state."""

import re

from pipelink_rules.audit.decode_ptx import registers_of, width_of
from pipelink_rules.audit.opcode_table import EXPECTED
from pipelink_rules.audit.proof import memory
from pipelink_rules.audit.proof.effect import ADDRESS, Effect, Outcome, Reader, reader, unproved
from pipelink_rules.audit.proof.prover import Prover
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term
from pipelink_rules.toolkit.ptx import Statement

_SIZE = re.compile(r"\.(?:[usbf]|bf)(8|16|32|64|128)\b")
_STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")


def memory_access(prover: Prover, statement: Statement) -> Effect:
    opcode, arguments = statement.opcode, statement.arguments()
    loads = statement.base in ("ld", "ldu", "ldmatrix")
    place, data = (arguments[1], arguments[0]) if loads else (arguments[0], arguments[1])
    found = ADDRESS.match(place)
    if found is None:
        return unproved(f"the address `{place}`, which the proof cannot read")
    names, shift = registers_of(data), int(found[2] or "0", 0)
    if ".param" in opcode:
        return _parameter(prover, found[1] + (f"+{shift}" if shift else ""), names[0], loads)
    sizes = _SIZE.findall(opcode)
    size = int(sizes[-1]) // 8 if sizes else 4
    base = reader(prover, found[1])
    matrix = "matrix" in statement.base
    if matrix and ".x4" not in opcode:
        return unproved(f"`{opcode}`, which takes the addresses of some lanes only")
    if ".shared" in opcode or matrix:
        total = 16 if matrix else size * len(names)
        return _shared(prover, statement, base, shift, total, names if loads else [])
    if ".const" in opcode:
        return unproved(f"`{opcode}`, which the proof does not model")
    return _generic(prover, statement, base, shift, size, names)


def _generic(
    prover: Prover, statement: Statement, base: Reader, shift: int, size: int, names: list[str]
) -> Effect:
    """An access by a pointer: to data of a port, to shared memory or to a struct."""
    opcode, loads = statement.opcode, statement.base in ("ld", "ldu")
    strong = any(f".{word}" in opcode for word in _STRONG)
    data_only = re.search(r"\.(f16|f32|f64|bf16)\b", opcode) is not None
    reads = [reader(prover, name) for name in names]
    kind = "read" if loads else "write"

    def effect(state: WarpState) -> Outcome:
        pointer = base(state)
        if isinstance(pointer, Pointer):
            pointer = pointer.moved(shift)
        if strong and memory.port_of(pointer) is not None:
            prover.refute(state, orders_ctas(opcode, pointer))
        if memory.access(prover, state, kind, pointer, size * len(names)):
            for name in names if loads else ():
                state.registers[name] = DATA
            return None
        assert isinstance(pointer, Pointer)
        for number, name in enumerate(names):
            at = pointer.moved(size * number)
            if loads:
                value = memory.load(state, at, size)
                state.registers[name] = DATA if data_only else value
            else:
                given = DATA if data_only else reads[number](state)
                memory.store(prover, state, at, size, given)
        return None

    return effect


def _parameter(prover: Prover, key: str, name: str, loads: bool) -> Effect:
    value = reader(prover, name)

    def effect(state: WarpState) -> Outcome:
        if loads:
            state.registers[name] = state.registers.get(key, DATA)
        else:
            state.registers[key] = value(state)
        return None

    return effect


def _shared(
    prover: Prover,
    statement: Statement,
    base: Reader,
    shift: int,
    size: int,
    loaded: list[str],
) -> Effect:
    reads = statement.base in ("ld", "ldu", "ldmatrix")
    matrix = "matrix" in statement.base

    def effect(state: WarpState) -> Outcome:
        address = _shared_address(base(state), shift)
        if matrix:
            prover.converged(state, statement.opcode, "PL0707")
        memory.reach_shared(prover, state, "read" if reads else "write", address, size)
        for name in loaded:
            state.registers[name] = DATA
        return None

    return effect


def _shared_address(value: Term, shift: int) -> Term:
    if isinstance(value, Pointer) and value.region == "shared":
        value = value.offset
    if value is DATA:
        raise UnprovedError("an access to shared memory at an address that depends on data")
    if isinstance(value, Pointer):
        raise UnprovedError("an access to shared memory by another pointer")
    if not isinstance(value, int):
        value = terms.simplified(terms.bits(value, 32))
    return terms.add(value, shift, 32)


def atomic(prover: Prover, statement: Statement) -> Effect:
    """Atomics on shared memory read and write; on global memory they order CTAs, which is ours."""
    arguments = statement.arguments()
    place = next(argument for argument in arguments if argument.startswith("["))
    found = ADDRESS.match(place)
    if found is None:
        return unproved(f"the address `{place}`, which the proof cannot read")
    base, shift = reader(prover, found[1]), int(found[2] or "0", 0)
    results = registers_of(arguments[0]) if statement.base == "atom" else []
    size = width_of(statement.opcode)[0] // 8

    def effect(state: WarpState) -> Outcome:
        pointer = base(state)
        if ".shared" in statement.opcode and not isinstance(pointer, Pointer):
            pointer = Pointer("shared", terms.bits(_shared_address(pointer, 0), 64))
        if not isinstance(pointer, Pointer) or pointer.region != "shared":
            prover.refute(state, orders_ctas(statement.opcode, pointer))
        assert isinstance(pointer, Pointer)
        address = _shared_address(pointer, shift)
        memory.reach_shared(prover, state, "write", address, size, atomic=True)
        for name in results:
            state.registers[name] = DATA
        return None

    return effect


def orders_ctas(opcode: str, pointer: Term) -> RefutedError:
    """Return the error of a strong access: the linker orders CTAs, through counters."""
    port = memory.port_of(pointer) or ""
    return RefutedError(
        "PL0936",
        "synchronizes through global memory",
        target=port,
        expected=EXPECTED["PL0936"],
        found=f"`{opcode}` on `{port}`" if port else f"`{opcode}`",
    )


def merged_accesses(prover: Prover, statement: Statement) -> Effect:
    """Adjacent accesses to data, as `function_code` merges them: `[base + 0, 4, 8]`."""
    base, *shifts = statement.operands.split()
    offsets = sorted(int(shift) for shift in shifts)
    kind = "read" if statement.base == "ld" else "write"
    least, end = offsets[0], offsets[-1] + 4
    dense = offsets == list(range(least, end, 4))

    def effect(state: WarpState) -> Outcome:
        pointer = state.registers.get(base, DATA)
        if not isinstance(pointer, Pointer):
            memory.access(prover, state, kind, pointer, 4)
        assert isinstance(pointer, Pointer)
        if pointer.region.startswith(("port ", "shared")):
            pieces = [(least, end - least)] if dense else [(offset, 4) for offset in offsets]
            for offset, size in pieces:
                memory.access(prover, state, kind, pointer.moved(offset), size)
        elif kind == "write":
            for offset in offsets:
                memory.store(prover, state, pointer.moved(offset), 4, DATA)
        return None

    return effect
