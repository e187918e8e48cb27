"""Output of `ptxas -v`, alone or through either linker: text -> registers, spills, remarks."""

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for '?([^\s']+)'?")
_STACK = re.compile(
    r"(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads"
)
_USED = re.compile(r"Used (\d{1,9}) registers(?:, used (\d{1,9}) barriers)?(.*)")
_SHARED = re.compile(r"(\d{1,9}) bytes smem")
_CODED = re.compile(r"\((C\d{4})\)\s*(.*)")
_FLOOR = re.compile(r"register target of (\d{1,9})")

SETMAXNREG_IGNORED = frozenset({"C7504", "C7505", "C7506", "C7507", "C7508", "C7509"})
WGMMA_SERIALIZED = frozenset(f"C75{number}" for number in range(10, 21))
TOO_FEW_REGISTERS = "C7602"


@dataclass(frozen=True)
class FunctionLog:
    """The numbers of one entry or function."""

    name: str
    registers: int = 0
    barriers: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared_bytes: int = 0  # static


@dataclass(frozen=True)
class AssemblerLog:
    """The numbers of all functions, and remarks."""

    functions: tuple[FunctionLog, ...]
    coded: tuple[tuple[str, str], ...]  # (code, text): remarks with a number, of any level
    register_floor: int = 0  # "try to compile with register target of N"; 0 = not stated

    def function(self, name: str) -> FunctionLog | None:
        """Return the numbers of one function if they were printed."""
        return next((item for item in self.functions if item.name == name), None)


def read_assembler_log(text: str) -> AssemblerLog:
    """Parse the text; unknown lines are ignored."""
    functions: dict[str, dict[str, int]] = {}
    coded: list[tuple[str, str]] = []
    current, used_by, floor = "", "", 0
    for line in text.splitlines():
        if found := _ENTRY.search(line):
            current = used_by = found[1]
            functions.setdefault(current, {})
        elif found := _PROPERTIES.search(line):
            current = found[1]
            functions.setdefault(current, {})
        elif (found := _STACK.search(line)) and current:
            keys = ("stack_bytes", "spill_stores", "spill_loads")
            functions[current] |= {
                key: int(value) for key, value in zip(keys, found.groups(), strict=True)
            }
        elif (found := _USED.search(line)) and used_by:
            shared = _SHARED.search(found[3])
            functions[used_by] |= {
                "registers": int(found[1]),
                "barriers": int(found[2] or 0),
                "shared_bytes": int(shared[1]) if shared else 0,
            }
        if found := _CODED.search(line):
            coded.append((found[1], found[2].strip()))
            if target := _FLOOR.search(line):
                floor = max(floor, int(target[1]))
    return AssemblerLog(
        tuple(FunctionLog(name, **numbers) for name, numbers in functions.items()),
        tuple(dict.fromkeys(coded)),
        floor,
    )
