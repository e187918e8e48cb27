"""Arithmetic of PTX instructions: statements -> functions over a register file.

A register holds an unsigned integer of its width, a truth value, None (unknown data), or one of
these for each thread (`Lanes`).  An instruction that is not modeled makes its destination unknown,
which is always sound.
"""

import operator
import re
from collections.abc import Callable, Iterable, Sequence

from pipelink_rules.audit.lanes import Cell, Lanes, Registers, Value, cell_of, lift, uniform
from pipelink_rules.toolkit.ptx import Statement

Computation = Callable[[Registers], None]

_WIDTH = re.compile(r"\.([usb])(8|16|32|64)\b")
_FLOAT = re.compile(r"\.(f16|f32|f64|bf16|f16x2|bf16x2|tf32)\b")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
# Functions without a check of their operands: they raise TypeError for unknown data.
_FAST: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_MODULAR = ("add", "sub", "mul", "mad", "and", "or", "xor", "not", "neg")
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def registers_of(operand: str) -> list[str]:
    """Return the registers of an operand: `{%r1, %r2}`, `%r1|%p1` or `%r1`."""
    return re.findall(r"[%\w$]+", operand)


def signed(value: int, width: int) -> int:
    """Return the value as two's complement."""
    return value - (1 << width) if value >> (width - 1) & 1 else value


def _narrow(column: Sequence[int], width: int, sign: bool) -> list[int]:
    mask, half = (1 << width) - 1, 1 << width - 1
    if sign:
        return [((value & mask) ^ half) - half for value in column]
    return [value & mask for value in column]


def operand(text: str) -> Callable[[Registers], Value]:
    """Return a reader of a register or an integer literal; anything else is unknown.

    The reader raises VariesError if the value differs between threads.
    """
    read = cell_operand(text)
    return lambda regs: uniform(read(regs))


def cell_operand(text: str) -> Callable[[Registers], Cell]:
    """Return a reader like that of `operand`, of values that may differ between threads."""
    number = _literal(text)
    if number is not None:
        return lambda regs: number
    if text.startswith("!"):
        name = text[1:].strip()

        def negated(regs: Registers) -> Cell:
            value = regs.get(name)
            return _NOT(value) if isinstance(value, Lanes) else _negation(value)

        return negated
    return lambda regs: regs.get(text)


def _negation(value: Value) -> Value:
    return None if value is None else int(not value)


_NOT = lift(_negation)


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
    return _applied(statement.opcode, base, arguments, function)


def _applied(
    opcode: str, base: str, arguments: list[str], function: Callable[..., Value]
) -> Computation:
    """Return the computation that applies a function to operands of the opcode's type."""
    width, sign = width_of(opcode)
    wide, shift = ".wide" in opcode, base in ("shl", "shr")
    target_width = 2 * width if wide else width
    if base == "cvt":
        target_width = int(_WIDTH.findall(opcode)[0][1])
    if ".pred" in opcode:
        width = target_width = 1
    mask, source_mask = (1 << target_width) - 1, (1 << width) - 1
    target = arguments[0]
    reads = [cell_operand(text) for text in arguments[1:]]
    if base in _MODULAR and not wide and ".hi" not in opcode:
        sign = False  # only the low bits count
    if not (sign or shift or wide) and len(reads) in (1, 2):
        return _plain(target, base, reads, function, source_mask, mask)

    def compute(*values: int) -> Value:
        found = [value & source_mask for value in values]
        if sign:
            found = [signed(value, width) for value in found]
        if shift or wide:  # the last operand may have another width
            found[shift or 2 :] = values[shift or 2 :]
        result = function(*found)
        return None if result is None else result & mask

    def columns(values: Sequence[Sequence[int]]) -> list[int]:
        last = shift or 2 if shift or wide else len(values)
        narrow = [_narrow(column, width, sign) for column in values[:last]]
        results = map(_FAST.get(base, function), *narrow, *values[last:])
        return [value & mask for value in results]  # type: ignore[operator]

    lifted = lift(compute, columns)

    def step(regs: Registers) -> None:
        regs[target] = lifted(*[read(regs) for read in reads])

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
    base: str,
    reads: list[Callable[[Registers], Cell]],
    function: Callable[..., Value],
    source_mask: int,
    mask: int,
) -> Computation:
    """Return a computation on one or two unsigned operands of one width: the most frequent."""
    left, right = reads[0], reads[-1]

    def apply(*values: int) -> Value:
        result = function(*[value & source_mask for value in values])
        return None if result is None else result & mask

    def columns(values: Sequence[Sequence[int]]) -> list[int]:
        narrow = [[value & source_mask for value in column] for column in values]
        results = map(_FAST.get(base, function), *narrow)
        return [value & mask for value in results]  # type: ignore[operator]

    lifted = lift(apply, columns)

    def one(regs: Registers) -> None:
        a = left(regs)
        if isinstance(a, Lanes):
            regs[target] = lifted(a)
            return
        result = None if a is None else function(a & source_mask)
        regs[target] = None if result is None else result & mask

    def two(regs: Registers) -> None:
        a, b = left(regs), right(regs)
        if a is None or b is None:
            regs[target] = None
        elif isinstance(a, Lanes) or isinstance(b, Lanes):
            regs[target] = lifted(a, b)
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
        "bfi": _inserted,
    }
    if base in ("add", "sub", "mad") and ".cc" in opcode:
        return None
    if base == "bfe" and ".s" in opcode:
        return None
    return table.get(base)


def _inserted(a: int, b: int, at: int, length: int) -> int:
    mask = (1 << (length & 255)) - 1 << (at & 255)
    return b & ~mask | a << (at & 255) & mask


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
    left, right = cell_operand(arguments[1]), cell_operand(arguments[2])

    def holds(a: int, b: int) -> int:
        a, b = a & mask, b & mask
        return int(compare(signed(a, width), signed(b, width)) if sign else compare(a, b))

    def columns(values: Sequence[Sequence[int]]) -> Iterable[int]:
        return map(int, map(compare, *[_narrow(column, width, sign) for column in values]))

    lifted = lift(holds, columns)

    def step(regs: Registers) -> None:
        a, b = left(regs), right(regs)
        value: Cell = None
        if isinstance(a, Lanes) or isinstance(b, Lanes):
            value = lifted(a, b)
        elif a is not None and b is not None:
            value = holds(a, b)
        regs[targets[0]] = value
        for target in targets[1:]:
            regs[target] = _NOT(value)

    return step


def _select(arguments: list[str]) -> Computation:
    target = arguments[0]
    yes, no, which = (cell_operand(text) for text in arguments[1:])

    def step(regs: Registers) -> None:
        chosen = which(regs)
        if chosen is None:
            a, b = yes(regs), no(regs)
            regs[target] = a if a == b else None
        elif isinstance(chosen, Lanes):
            regs[target] = _selected(chosen, yes(regs), no(regs))
        else:
            regs[target] = yes(regs) if chosen else no(regs)

    return step


def _selected(chosen: Lanes, yes: Cell, no: Cell) -> Cell:
    """Return for each thread what its own predicate selects."""
    size = len(chosen.values)
    ones, others = (c.values if isinstance(c, Lanes) else (c,) * size for c in (yes, no))
    return cell_of(
        (a if which else b) if which is not None else (a if a == b else None)
        for which, a, b in zip(chosen.values, ones, others, strict=True)
    )


def _vector_move(arguments: list[str]) -> Computation:
    """Return the computation of `mov.b64 %rd, {%r1, %r2}` or its reverse; the rest is data."""
    targets, sources = registers_of(arguments[0]), registers_of(arguments[1])
    if "{" in arguments[0] and len(targets) == 2 and targets[0].startswith("%r"):
        source = cell_operand(arguments[1])

        def split(regs: Registers) -> None:
            value = source(regs)
            regs[targets[0]], regs[targets[1]] = LOW_WORD(value), HIGH_WORD(value)

        return split
    if "{" in arguments[1] and len(sources) == 2 and targets[0].startswith("%rd"):
        low, high = cell_operand(sources[0]), cell_operand(sources[1])

        def join(regs: Registers) -> None:
            regs[targets[0]] = join_words(low(regs), high(regs))

        return join
    return unknown(arguments)


LOW_WORD = lift(lambda value: value & 0xFFFFFFFF)
HIGH_WORD = lift(lambda value: value >> 32 & 0xFFFFFFFF)
_JOIN = lift(lambda low, high: low | high << 32)


def join_words(low: Cell, high: Cell) -> Cell:
    """Return the 64-bit value of two words."""
    if isinstance(low, Lanes) or isinstance(high, Lanes):
        return _JOIN(low, high)
    return None if low is None or high is None else low | high << 32
