"""Closed table of PTX opcodes: what an instruction may do, by the section of its manual.

Each opcode of the PTX ISA (version 9, chapter "Instruction Set") is listed; one that is not listed
makes an audit inconclusive wherever it stands, because nothing is known about its effects.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cache

from pipelink_rules.audit.machine_state import InconclusiveError, RestrictionError
from pipelink_rules.toolkit.ptx import Statement


class OpcodeClass(Enum):
    """What an instruction changes besides its destination registers."""

    REGISTER = "register only"
    MEMORY = "memory"
    OPERATION = "operation"  # synchronizes threads or starts an asynchronous operation
    CONTROL = "control"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True)
class Opcode:
    """One row: an opcode, or a prefix of one (`cp.async.bulk`)."""

    name: str
    kind: OpcodeClass
    section: str  # of the PTX ISA
    code: str = ""  # of the diagnostic, if it is forbidden
    message: str = ""


# Forbidden with PL0932: the interpreter does not model them.
_SECTIONS: tuple[tuple[OpcodeClass, str, str], ...] = (
    (
        OpcodeClass.REGISTER,
        "Integer Arithmetic Instructions",
        "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi "
        "bmsk szext dp4a dp2a",
    ),
    (OpcodeClass.REGISTER, "Extended-Precision Integer Arithmetic Instructions", "addc subc madc"),
    (
        OpcodeClass.REGISTER,
        "Floating-Point Instructions",
        "testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh",
    ),
    (OpcodeClass.REGISTER, "Comparison and Selection Instructions", "set setp selp slct"),
    (OpcodeClass.REGISTER, "Logic and Shift Instructions", "and or xor not cnot lop3 shf shl shr"),
    (
        OpcodeClass.REGISTER,
        "Data Movement and Conversion Instructions",
        "mov prmt cvt cvta isspacep createpolicy prefetch prefetchu applypriority shfl",
    ),
    (
        OpcodeClass.MEMORY,
        "Data Movement and Conversion Instructions",
        "ld ldu st",
    ),
    (
        OpcodeClass.OPERATION,
        "Data Movement and Conversion Instructions: Asynchronous Copy",
        "cp.async.bulk mapa",
    ),
    (
        OpcodeClass.CONTROL,
        "Control Flow Instructions",
        "bra call ret exit trap",
    ),
    (
        OpcodeClass.REGISTER,
        "Parallel Synchronization and Communication Instructions",
        "vote match activemask redux elect",
    ),
    (
        OpcodeClass.OPERATION,
        "Parallel Synchronization and Communication Instructions",
        "bar barrier membar fence atom red mbarrier",
    ),
    (OpcodeClass.MEMORY, "Warp-Level Matrix Instructions", "ldmatrix stmatrix"),
    (OpcodeClass.REGISTER, "Warp-Level Matrix Instructions", "mma movmatrix"),
    (OpcodeClass.OPERATION, "Asynchronous Warpgroup-Level Matrix Instructions", "wgmma"),
    (
        OpcodeClass.REGISTER,
        "Video Instructions",
        "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 "
        "vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
    ),
    (OpcodeClass.REGISTER, "Miscellaneous Instructions", "nanosleep pmevent"),
    (
        OpcodeClass.FORBIDDEN,
        "Data Movement and Conversion Instructions",
        "st.bulk cp.async cp.async.bulk.shared::cluster.shared::cta",
    ),
    (OpcodeClass.FORBIDDEN, "Control Flow Instructions", "brx.idx"),
    (
        OpcodeClass.FORBIDDEN,
        "Parallel Synchronization and Communication Instructions",
        "mbarrier.pending_count",
    ),
    (OpcodeClass.FORBIDDEN, "Warp-Level Matrix Instructions", "wmma mma.sp"),
    (OpcodeClass.FORBIDDEN, "TensorCore 5th Generation Family Instructions", "tcgen05"),
    (
        OpcodeClass.FORBIDDEN,
        "Stack Manipulation Instructions",
        "stacksave stackrestore alloca",
    ),
    (OpcodeClass.FORBIDDEN, "Miscellaneous Instructions", "brkpt"),
)

_DATA_MOVEMENT = "Data Movement and Conversion Instructions"
_PARALLEL = "Parallel Synchronization and Communication Instructions"
_UNDECLARED = "accesses memory that no port declares"
_GLOBAL = "synchronizes through global memory"
_REMOTE = "uses the shared memory of another CTA"
_RESTRICTED: tuple[tuple[str, str, str, str], ...] = (
    ("discard", _DATA_MOVEMENT, "PL0930", "destroys the contents of global memory"),
    ("tex tld4 txq istypep", "Texture Instructions", "PL0930", _UNDECLARED),
    ("suld sust sured suq", "Surface Instructions", "PL0930", _UNDECLARED),
    ("tensormap", _DATA_MOVEMENT, "PL0907", "changes a tensor map"),
    ("setmaxnreg", "Miscellaneous Instructions", "PL0907", "executes setmaxnreg"),
    ("mbarrier.init mbarrier.inval", _PARALLEL, "PL0907", "initializes an mbarrier"),
    (
        "tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit",
        "TensorCore 5th Generation Family Instructions",
        "PL0907",
        "allocates tensor memory",
    ),
    ("st.async red.async getctarank", _DATA_MOVEMENT, "PL0914", _REMOTE),
    ("clusterlaunchcontrol", _PARALLEL, "PL0914", "requests work tiles from the hardware"),
    ("griddepcontrol", _PARALLEL, "PL0914", "orders kernels of dependent launches"),
    ("multimem", _DATA_MOVEMENT, "PL0936", _GLOBAL),
    ("cp.reduce", _DATA_MOVEMENT, "PL0936", _GLOBAL),
    ("atom.global red.global", _PARALLEL, "PL0936", _GLOBAL),
)
EXPECTED = {
    "PL0907": "resources that the linker assigns and the launcher initializes",
    "PL0914": "ports and operations of the contract, which stay within a CTA",
    "PL0930": "reads and writes of the role's ports",
    "PL0936": "plain reads and writes of global ports",
}
# Executed by all lanes of a mask, or of a warp, together (PTX ISA: .sync, .aligned).
_TOGETHER = "shfl vote match redux elect ldmatrix stmatrix mma movmatrix wgmma bar barrier"
COLLECTIVE = frozenset(_TOGETHER.split())


def _rows() -> Iterable[Opcode]:
    for kind, section, listed in _SECTIONS:
        for name in listed.split():
            yield Opcode(name, kind, section, "PL0932" if kind is OpcodeClass.FORBIDDEN else "")
    for listed, section, code, message in _RESTRICTED:
        for name in listed.split():
            yield Opcode(name, OpcodeClass.FORBIDDEN, section, code, message)


OPCODES = {row.name: row for row in _rows()}
_SCOPED = re.compile(r"(atom|red)\.(?:[\w:]+\.)*?global\b")


@cache
def opcode_row(opcode: str) -> Opcode | None:
    """Return the row of the longest listed prefix of an opcode, at a dot; None if none is listed.

    The state space of an atomic follows its qualifiers: `red.relaxed.gpu.global.add.u32`.
    """
    scoped = _SCOPED.match(opcode)
    if scoped:
        return OPCODES[f"{scoped[1]}.global"]
    parts = opcode.split(".")
    for length in range(len(parts), 0, -1):
        row = OPCODES.get(".".join(parts[:length]))
        if row is not None:
            return row
    return None


def is_register_only(opcode: str) -> bool:
    """Return whether an instruction changes nothing but registers, for one lane by itself."""
    row = opcode_row(opcode)
    collective = opcode.partition(".")[0] in COLLECTIVE
    return row is not None and row.kind is OpcodeClass.REGISTER and not collective


def check_opcode(statement: Statement) -> None:
    """Raise the error of an unknown or forbidden instruction, whether a run reaches it or not."""
    row = opcode_row(statement.opcode)
    if row is None:
        raise InconclusiveError(f"unknown instruction `{statement.opcode}`")
    if row.kind is not OpcodeClass.FORBIDDEN:
        return
    if row.code == "PL0932":
        raise InconclusiveError(f"instruction `{statement.opcode}`, which the audit does not model")
    raise RestrictionError(row.code, row.message, "", EXPECTED[row.code], f"`{statement.opcode}`")
