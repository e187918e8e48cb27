"""Instructions that no interpreted input reached: a tested verdict does not cover them."""

from pipelink_rules.audit.compared_values import reachable_functions
from pipelink_rules.audit.control_flow import FunctionCode, function_code
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.machine_state import InconclusiveError
from pipelink_rules.audit.opcode_table import OpcodeClass, check_opcode, opcode_row
from pipelink_rules.toolkit.ptx import Module, Statement

_HARMLESS = ("membar", "trap", "exit", "ret", "bra")


def check_functions(module: Module, name: str, like: Interpreter) -> None:
    """Raise the error of an instruction that is unknown, forbidden or was not reached.

    like: any lane of the role: all its lanes record the branches that they take.
    """
    functions = reachable_functions(module, name)
    for function in functions:
        for statement in function_code(function).instructions:
            check_opcode(statement)
    for function in functions:
        code = function_code(function)
        reached = _reached(code, like.edges)
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
