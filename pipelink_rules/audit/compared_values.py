"""Values at which a role's code may change its behavior: the constants in its PTX -> test inputs.

Collected from every instruction that compares, masks or divides a number that depends on a field
of the work tile or counts a loop: the values around each constant, before and after the offsets
and factors that the code applies to such numbers.
"""

from collections.abc import Iterator

from pipelink_rules.audit.control_flow import FunctionCode, function_code, written_registers
from pipelink_rules.audit.decode_ptx import registers_of
from pipelink_rules.audit.machine_state import InconclusiveError
from pipelink_rules.audit.opcode_table import OpcodeClass, check_opcode, opcode_row
from pipelink_rules.toolkit.ptx import Function, Module, Statement

LARGEST = 1 << 24  # larger constants are addresses and bit patterns
_MOST = 16  # values of one role
_MAGIC_BITS = 32  # a division by a constant multiplies by about 2**(32 + shift) / divisor
_MOST_SHIFT = 8
_MOST_STEP = 8  # that a loop adds to its counter
_COMPARING = ("setp", "set", "min", "max", "slct")


def compared_values(module: Module, name: str) -> tuple[int, ...]:
    """Return the values around the constants of a role's entry and of the functions it calls."""
    found: dict[int, None] = {}
    for function in reachable_functions(module, name):
        code = function_code(function)
        found |= dict.fromkeys(_values_of(code, entry=function.name == name))
    return tuple(sorted([value for value in found if 0 <= value <= LARGEST][:_MOST]))


def reachable_functions(module: Module, name: str) -> list[Function]:
    """Return the functions of the module that a function may call, with itself."""
    found: dict[str, Function] = {}
    pending = [name]
    while pending:
        function = module.function(pending.pop())
        if function is None or function.name in found:
            continue
        found[function.name] = function
        for statement in function.statements:
            if statement.base == "call":
                pending += [text for text in statement.arguments() if text[:1] != "("]
    return list(found.values())


def _values_of(code: FunctionCode, *, entry: bool) -> Iterator[int]:
    constants = _moved_constants(code)
    fields, counters = _fields(code), _written_twice(code)
    thresholds: dict[int, None] = {}
    offsets, factors = {0: None}, {1: None}
    for statement in code.instructions:
        if not _computes(statement):
            continue
        sources = statement.arguments()[1:]
        numbers = [constants[text] for text in sources if text in constants]
        numbers += [int(text, 0) for text in sources if _is_number(text)]
        names = set(registers_of(" ".join(sources))) if numbers else set()
        if not names or (entry and not names & fields and not names & counters):
            continue
        for number in map(_signed, numbers):
            thresholds |= dict.fromkeys(_thresholds(statement, number))
            if not 0 < abs(number) <= (LARGEST if names & fields else _MOST_STEP):
                continue
            if statement.base in ("add", "sub", "mad"):
                offsets |= {number: None, -number: None}
            if statement.base in ("mul", "mad", "shl"):
                factors[1 << number if statement.base == "shl" else abs(number)] = None
    for threshold in thresholds:
        yield from _around(threshold)
    for threshold in thresholds:
        for offset in offsets:
            for factor in factors:
                yield from _around((threshold + offset) // factor)


def _thresholds(statement: Statement, number: int) -> Iterator[int]:
    base = statement.base
    if base in _COMPARING and abs(number) <= LARGEST:
        yield number
    elif base == "and" and 0 < number <= LARGEST:
        yield from (number, number + 1, number & -number)
    elif base in ("rem", "div") and 0 < number <= LARGEST:
        yield number
    elif base == "shr" and number < 24:
        yield 1 << number
    elif base == "mul" and (".hi" in statement.opcode or ".wide" in statement.opcode):
        yield from _divisors(number & 0xFFFFFFFF)


def _divisors(magic: int) -> Iterator[int]:
    """Yield numbers by which the code divides if it multiplies by this one."""
    if magic < 1 << 24:
        return
    for shift in range(_MOST_SHIFT):
        divisor = round(2 ** (_MAGIC_BITS + shift) / magic)
        if 2 < divisor <= 1 << _MOST_SHIFT and abs(divisor * magic - 2 ** (32 + shift)) <= divisor:
            yield divisor


def _around(value: int) -> tuple[int, ...]:
    return value - 1, value, value + 1


def _signed(number: int) -> int:
    number &= (1 << 64) - 1
    if number >> 63:
        return number - (1 << 64)
    return number - (1 << 32) if number >> 31 == 1 else number


def _is_number(text: str) -> bool:
    try:
        int(text, 0)
    except ValueError:
        return False
    return True


def _moved_constants(code: FunctionCode) -> dict[str, int]:
    """Return the registers that hold a constant."""
    found: dict[str, int] = {}
    for name, statements in code.writers.items():
        arguments = statements[0].arguments()
        single = len(statements) == 1 and statements[0].base == "mov" and len(arguments) == 2
        if single and _is_number(arguments[1]):
            found[name] = int(arguments[1], 0)
    return found


def _fields(code: FunctionCode) -> set[str]:
    """Return the registers that depend on fields of the work tile, an entry's third argument."""
    work = code.parameters[2] if len(code.parameters) > 2 else ""
    pointers, found, before = set[str](), set[str](), -1
    while len(pointers) + len(found) != before:
        before = len(pointers) + len(found)
        for statement in code.instructions:
            loads = statement.base == "ld"
            if not loads and not _computes(statement):
                continue
            names = set(registers_of(" ".join(statement.arguments()[1:])))
            if loads and names & {work, *pointers}:
                (pointers if ".param" in statement.opcode else found).update(
                    written_registers(statement)
                )
            elif not loads:
                pointers |= written_registers(statement) if names & pointers else set()
                found |= written_registers(statement) if names & found else set()
    return found


def _computes(statement: Statement) -> bool:
    row = opcode_row(statement.opcode)
    return row is not None and row.kind is OpcodeClass.REGISTER


def _written_twice(code: FunctionCode) -> set[str]:
    """Return the registers that may count a loop, also with a number added."""
    found = {
        name for name, statements in code.writers.items() if sum(map(_computes, statements)) > 1
    }
    before = -1
    while len(found) != before:
        before = len(found)
        for statement in code.instructions:
            arguments = statement.arguments()
            if statement.base in ("add", "sub") and _is_number(arguments[-1]):
                found |= {arguments[0]} if arguments[1] in found else set()
    return found


# -- instructions that no interpreted input reached: a tested verdict does not cover them ---------
_HARMLESS = ("membar", "trap", "exit", "ret", "bra")


def check_functions(module: Module, name: str, edges: set[tuple[str, int, int]]) -> None:
    """Raise the error of an instruction that is unknown, forbidden or was not reached.

    edges: (function, from, to) of every branch that a lane of the role has taken.
    """
    functions = reachable_functions(module, name)
    for function in functions:
        for statement in function_code(function).instructions:
            check_opcode(statement)
    for function in functions:
        code = function_code(function)
        reached = _reached(code, edges)
        for position, statement in enumerate(code.instructions):
            if position not in reached and _matters(statement):
                shown = " ".join(statement.text.split())[:80]
                raise InconclusiveError(f"`{shown}` was not reached by any tested work tile")


def _reached(code: FunctionCode, edges: set[tuple[str, int, int]]) -> set[int]:
    """Return the positions that are reachable along the branches that were taken."""
    found: set[int] = set()
    pending = [0]
    while pending:
        position = pending.pop()
        if position in found or position >= len(code.instructions):
            continue
        found.add(position)
        statement = code.instructions[position]
        conditional = statement.base == "bra" and statement.guard
        pending += [
            following
            for following in code.successors(position)
            if not conditional or (code.function.name, position, following) in edges
        ]
    return found


def _matters(statement: Statement) -> bool:
    """Return whether other threads can observe an instruction."""
    if ".param" in statement.opcode or ".local" in statement.opcode:
        return False
    row = opcode_row(statement.opcode)
    return row is None or (row.kind is not OpcodeClass.REGISTER and statement.base not in _HARMLESS)
