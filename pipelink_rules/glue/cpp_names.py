"""Which C++ names and expressions stand for the nouns of a program in the glue?"""

from __future__ import annotations

import re

from pipelink_rules.contract.header import cap_words
from pipelink_rules.model.linked_kernel import KernelParameter
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Expr


def constant(name: str) -> str:
    """`load.ab` -> `kLoadAb`, `mma.acc>bias.acc` -> `kMmaAccToBiasAcc`."""
    stem = name.replace(">", "_to_").replace(".", "_")
    return f"k{cap_words(re.sub(r'[^A-Za-z0-9_]', '_', stem))}"


def stem(program: Program, instance: str, role: str) -> str:
    """The stem of the variables of one entry: the instance, and the role where it has several."""
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
    """A contract expression over symbols as C++ (all values are non-negative: // is /)."""
    text = re.sub(r"\bceildiv\b", "pipelink::ceildiv", expr.text).replace("//", "/")
    return re.sub(
        r"(?<![:\w])([A-Za-z_]\w*)(?!\w*\s*[(:])",
        lambda match: f"{match[1]}_extent",
        text,
    )
