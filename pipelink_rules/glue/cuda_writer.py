"""A writer of CUDA text: lines, indentation, wrapped lists, and C++ names."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from textwrap import wrap

from pipelink_rules.contract.header import cap_words
from pipelink_rules.model.linked_kernel import KernelParameter
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Expr

WIDTH = 100


class CudaWriter:
    """Collects lines; blocks indent by two spaces."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        """One line at the current depth; an empty one stays empty."""
        self._lines.append("  " * self._depth + text if text else "")

    def comment(self, text: str) -> None:
        """A comment, wrapped."""
        room = WIDTH - 2 * self._depth - 3
        for part in wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]:
            self.line(f"// {part}")

    def listed(self, head: str, items: Iterable[str], tail: str) -> None:
        """`head` + comma separated items + `tail`, on one line or one item a line."""
        found = list(items)
        joined = head + ", ".join(found) + tail
        if 2 * self._depth + len(joined) <= WIDTH:
            self.line(joined)
            return
        self.line(head)
        for item in found[:-1]:
            self.line(f"    {item},")
        self.line(f"    {''.join(found[-1:])}{tail}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head {` ... `}`."""
        self.line(f"{head} {{")
        with self.indented():
            yield
        self.line("}")

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Deeper, where the opening line is already written."""
        self._depth += 1
        yield
        self._depth -= 1

    def branch(self, condition: str, first: bool) -> None:
        """Open `if (condition) {`, or closes the branch before and open `} else if`."""
        if not first:
            self._depth -= 1
        self.line(f"{'if' if first else '} else if'} ({condition}) {{")
        self._depth += 1

    def end(self) -> None:
        """Close the last branch."""
        self._depth -= 1
        self.line("}")

    def text(self) -> str:
        """Return the whole text, ending in one newline."""
        return "\n".join(self._lines) + "\n"


def constant(name: str) -> str:
    """Return `load.ab` -> `kLoadAb`, `mma.acc>bias.acc` -> `kMmaAccToBiasAcc`."""
    stem = name.replace(">", "_to_").replace(".", "_")
    return f"k{cap_words(re.sub(r'[^A-Za-z0-9_]', '_', stem))}"


def stem(program: Program, instance: str, role: str) -> str:
    """Return the stem of a role's variables: the instance, and the role if it has several."""
    roles = [r for r in program.instance(instance).variant.contract.roles if not r.scheduler]
    return instance if len(roles) <= 1 else f"{instance}_{role}"


def parameter_names(parameters: tuple[KernelParameter, ...]) -> tuple[str, ...]:
    """C++ names of the entry's parameters: unique, and never those of a local variable."""
    suffix = {"tensor_map": "map", "pointer": "data", "i32": "extent"}
    suffix |= {"scratch": "scratch", "counters": "counters"}
    found: list[str] = []
    for parameter in parameters:
        stem = parameter.name.replace(".", "_")
        name = f"{stem}_{suffix.get(parameter.kind, 'value')}"
        while name in found:
            name += "_2"
        found.append(name)
    return tuple(found)


def cpp_expression(expr: Expr) -> str:
    """Return a contract expression over symbols as C++ (all values are non-negative: // is /)."""
    text = re.sub(r"\bceildiv\b", "pipelink::ceildiv", expr.text).replace("//", "/")
    return re.sub(r"(?<![:\w])([A-Za-z_]\w*)(?!\w*\s*[(:])", r"\1_extent", text)
