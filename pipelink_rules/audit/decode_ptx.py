"""Arithmetic of PTX instructions: statements -> functions over a register file.

A register holds an unsigned integer of its width, a truth value, or None: unknown data.  An
instruction that is not modeled makes its destination unknown, which is always sound.
"""

import re
from collections.abc import Callable

from pipelink_rules.toolkit.ptx import Statement

Value = int | None
Registers = dict[str, Value]
Computation = Callable[[Registers], None]

_WIDTH = re.compile(r"\.([usb])(8|16|32|64)\b")
_FLOAT = re.compile(r"\.(f16|f32|f64|bf16|f16x2|bf16x2|tf32)\b")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def registers_of(operand: str) -> list[str]:
    """Return the registers of an operand: `{%r1, %r2}`, `%r1|%p1` or `%r1`."""
    return re.findall(r"[%\w$]+", operand)


def signed(value: int, width: int) -> int:
    """Return the value as two's complement."""
    return value - (1 << width) if value >> (width - 1) & 1 else value


def operand(text: str) -> Callable[[Registers], Value]:
    """Return a reader of a register or an integer literal; anything else is unknown."""
    number = _literal(text)
    if number is not None:
        return lambda regs: number
    if text.startswith("!"):
        name = text[1:].strip()

        def negated(regs: Registers) -> Value:
            value = regs.get(name)
            return None if value is None else int(not value)

        return negated
    return lambda regs: regs.get(text)


def _literal(text: str) -> int | None:
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", text):
        return int(text.rstrip("U"), 0) & ((1 << 64) - 1)
    return None


def width_of(opcode: str) -> tuple[int, bool]:
    """Return (bits, signed) of the last type in an opcode; 32 where there is none."""
    found = _WIDTH.findall(opcode)
    if not found:
        return 32, False
    return int(found[-1][1]), found[-1][0] == "s"


def is_float(opcode: str) -> bool:
    """Return whether an instruction processes floating-point data, which is never known."""
    return _FLOAT.search(opcode) is not None


def arithmetic(statement: Statement) -> Computation:
    """Return the computation of an instruction without memory accesses, control or events."""
    arguments = statement.arguments()
    base = statement.base
    special = _special(statement.opcode, base, arguments)
    if special is not None:
        return special
    function = None if is_float(statement.opcode) else _function(statement.opcode, base)
    if ".hi" in statement.opcode and base in ("mul", "mad"):
        function = _high(width_of(statement.opcode)[0])
    if function is None or not _takes(function, len(arguments) - 1):
        return unknown(arguments)
    width, sign = width_of(statement.opcode)
    wide = ".wide" in statement.opcode
    target_width = 2 * width if wide else width
    if base == "cvt":
        target_width = int(_WIDTH.findall(statement.opcode)[0][1])
    if ".pred" in statement.opcode:
        width = target_width = 1
    mask, source_mask = (1 << target_width) - 1, (1 << width) - 1
    target = arguments[0]
    reads = [operand(text) for text in arguments[1:]]
    shift = base in ("shl", "shr")
    if not (sign or shift or wide) and len(reads) in (1, 2):
        return _plain(target, reads, function, source_mask, mask)

    def step(regs: Registers) -> None:
        values = []
        for position, read in enumerate(reads):
            value = read(regs)
            if value is None:
                regs[target] = None
                return
            if not (shift and position) and not (wide and position == 2):
                value &= source_mask
                if sign:
                    value = signed(value, width)
            values.append(value)
        result = function(*values)
        regs[target] = None if result is None else result & mask

    return step


def _special(opcode: str, base: str, arguments: list[str]) -> Computation | None:
    """Return the computation of a comparison, a selection or a vector move."""
    if base == "mov" and arguments and ("{" in arguments[0] or "{" in arguments[1]):
        return _vector_move(arguments)
    if base == "setp" and not _FLOAT.search(opcode):
        return _compare(opcode, arguments)
    if base == "selp" and len(arguments) == 4:
        return _select(arguments)
    return None


def _takes(function: Callable[..., Value], count: int) -> bool:
    code = function.__code__
    return code.co_argcount - len(function.__defaults__ or ()) <= count <= code.co_argcount


def _plain(
    target: str,
    reads: list[Callable[[Registers], Value]],
    function: Callable[..., Value],
    source_mask: int,
    mask: int,
) -> Computation:
    """Return a computation on one or two unsigned operands of one width: the most frequent."""
    left, right = reads[0], reads[-1]

    def one(regs: Registers) -> None:
        a = left(regs)
        result = None if a is None else function(a & source_mask)
        regs[target] = None if result is None else result & mask

    def two(regs: Registers) -> None:
        a, b = left(regs), right(regs)
        if a is None or b is None:
            regs[target] = None
        else:
            result = function(a & source_mask, b & source_mask)
            regs[target] = None if result is None else result & mask

    return one if len(reads) == 1 else two


def _high(width: int) -> Callable[..., Value]:
    """Return the upper half of a product, plus an addend."""
    return lambda a, b, c=0: (a * b >> width) + c


def unknown(arguments: list[str]) -> Computation:
    """Return a computation that makes the destination unknown."""
    targets = registers_of(arguments[0]) if arguments else []

    def step(regs: Registers) -> None:
        for target in targets:
            regs[target] = None

    return step


def _function(opcode: str, base: str) -> Callable[..., Value] | None:
    if base in ("mul", "mad") and ".hi" in opcode:
        return None
    table: dict[str, Callable[..., Value]] = {
        "mov": lambda a: a,
        "cvta": lambda a: a,
        "cvt": lambda a: a,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "mad": lambda a, b, c: a * b + c,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "not": lambda a: ~a,
        "neg": lambda a: -a,
        "abs": lambda a: abs(a),
        "min": lambda a, b: min(a, b),
        "max": lambda a, b: max(a, b),
        "shl": lambda a, b: a << min(b, 64),
        "shr": lambda a, b: a >> min(b, 64),
        "div": lambda a, b: None if b == 0 else _quotient(a, b),
        "rem": lambda a, b: None if b == 0 else a - b * _quotient(a, b),
        "bfe": lambda a, at, length: a >> (at & 255) & ((1 << (length & 255)) - 1),
    }
    if base in ("add", "sub", "mad") and ".cc" in opcode:
        return None
    if base == "bfe" and ".s" in opcode:
        return None
    return table.get(base)


def _quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _compare(opcode: str, arguments: list[str]) -> Computation:
    parts = opcode.split(".")
    name = _UNSIGNED.get(parts[1], parts[1])
    if name not in _COMPARE or len(parts) > 3 or len(arguments) != 3:
        return unknown(arguments)
    compare = _COMPARE[name]
    width, sign = width_of(opcode)
    mask = (1 << width) - 1
    targets = [text.strip() for text in arguments[0].split("|")]
    left, right = operand(arguments[1]), operand(arguments[2])

    def step(regs: Registers) -> None:
        a, b = left(regs), right(regs)
        value: Value = None
        if a is not None and b is not None:
            a, b = a & mask, b & mask
            value = int(compare(signed(a, width), signed(b, width)) if sign else compare(a, b))
        for position, target in enumerate(targets):
            regs[target] = value if not position or value is None else 1 - value

    return step


def _select(arguments: list[str]) -> Computation:
    target = arguments[0]
    yes, no, which = (operand(text) for text in arguments[1:])

    def step(regs: Registers) -> None:
        chosen = which(regs)
        if chosen is None:
            a, b = yes(regs), no(regs)
            regs[target] = a if a == b else None
        else:
            regs[target] = yes(regs) if chosen else no(regs)

    return step


def _vector_move(arguments: list[str]) -> Computation:
    """Return the computation of `mov.b64 %rd, {%r1, %r2}` or its reverse; the rest is data."""
    targets, sources = registers_of(arguments[0]), registers_of(arguments[1])
    if "{" in arguments[0] and len(targets) == 2 and targets[0].startswith("%r"):
        source = operand(arguments[1])

        def split(regs: Registers) -> None:
            value = source(regs)
            for position, target in enumerate(targets):
                regs[target] = None if value is None else value >> 32 * position & 0xFFFFFFFF

        return split
    if "{" in arguments[1] and len(sources) == 2 and targets[0].startswith("%rd"):
        low, high = operand(sources[0]), operand(sources[1])

        def join(regs: Registers) -> None:
            a, b = low(regs), high(regs)
            regs[targets[0]] = None if a is None or b is None else a | b << 32

        return join
    return unknown(arguments)
