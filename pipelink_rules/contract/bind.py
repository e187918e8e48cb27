"""Binding of parameters: Contract, arguments, code-generation flags -> Variant."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipelink_rules.contract.codegen_flags import FLAG_DEFAULTS, normal_flags
from pipelink_rules.contract.header import digest_of
from pipelink_rules.contract.parse_params import violated_limit
from pipelink_rules.contract.parse_ports import SWIZZLES
from pipelink_rules.contract.validate_numbers import check_bound
from pipelink_rules.diagnostics.diagnostic import DiagnosticSink, Location, PipelinkError
from pipelink_rules.diagnostics.wording import list_of, similar_name_help
from pipelink_rules.expression import expression
from pipelink_rules.expression.evaluate import Value
from pipelink_rules.model.contract import (
    DTYPES,
    Contract,
    Layout,
    Param,
    Role,
    TileAccess,
    round_registers,
)
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.model.variant import Variant

SETMAXNREG_LEAST = 24


def bind(
    contract: Contract,
    arguments: Mapping[str, int | str],
    flags: Sequence[str] = (),
    place: Span | None = None,
) -> Variant:
    """Return the variant of a contract; `place` is the span of the arguments.

    Raise all errors together: unknown, missing and invalid arguments, false `where` conditions,
    flags that contradict `numeric`, numbers out of range.
    """
    findings = DiagnosticSink()
    given = (place, "given here")
    values = _arguments(contract, arguments, given, findings)
    try:
        named = normal_flags(flags, place)
    except PipelinkError as problem:
        findings.extend(problem.diagnostics)
        named = ()
    _check_flags(contract, named, given, findings)
    findings.raise_if_any()
    _check_where(contract, values, given, findings)
    findings.raise_if_any()
    bound = _substitute(contract, values, findings)
    if findings.items:  # two clauses may have the same expression, e.g. `want` defaults to `min`
        raise PipelinkError(dict.fromkeys(findings.items))
    bound = replace(bound, where=(), roles=tuple(_round_registers(role) for role in bound.roles))
    check_bound(contract, bound, values, place)
    variant = Variant(bound, tuple(sorted(values.items())), named)
    return replace(variant, digest=digest_of(variant, named))


def _arguments(
    contract: Contract,
    arguments: Mapping[str, int | str],
    given: Location,
    findings: DiagnosticSink,
) -> dict[str, Value]:
    name = contract.component
    params = {param.name: param for param in contract.params}
    for unknown in sorted(set(arguments) - set(params)):
        suggestions = similar_name_help(unknown, params, "parameters") or (
            f"remove it: `{name}` has no parameters",
        )
        if unknown in {item.name for item in contract.symbols}:
            suggestions = (f"remove `{unknown}`: it is a symbol, inferred from tensors at launch",)
        findings.add(
            "PL0023",
            f"unknown parameter `{unknown}` for component `{name}`",
            given,
            (contract.span, "this component"),
            suggestions=suggestions,
            subject=f"{name}.{unknown}",
        )
    values: dict[str, Value] = {}
    for param in contract.params:
        value = arguments.get(param.name, param.default)
        if value is None:
            findings.add(
                "PL0024",
                f"missing value of parameter `{param.name}` of `{name}`",
                given,
                (param.span, "declared here, without a default"),
                expected=_allowed(param),
                suggestions=(f'add "{param.name}": ... to the parameters of the instance',),
                subject=f"{name}.{param.name}",
            )
        elif _fits(contract, param, value, given, findings):
            values[param.name] = value
    return values


def _allowed(param: Param) -> str:
    if param.choices:
        return "one of " + ", ".join(map(str, param.choices))
    if param.type == "dtype":
        return "one of " + ", ".join(DTYPES)
    parts = ["an integer"]
    parts += [f"at least {param.minimum}"] if param.minimum is not None else []
    parts += [f"at most {param.maximum}"] if param.maximum is not None else []
    parts += [f"a multiple of {param.multiple_of}"] if param.multiple_of is not None else []
    return ", ".join(parts)


def _fits(
    contract: Contract, param: Param, value: int | str, given: Location, findings: DiagnosticSink
) -> bool:
    declared = (param.span, "declared here")
    of, subject = f"`{param.name}` of `{contract.component}`", f"{contract.component}.{param.name}"
    dtype = param.type == "dtype"
    if (value not in tuple(DTYPES)) if dtype else type(value) is not int:
        kind = "string" if isinstance(value, str) else type(value).__name__
        findings.add(
            "PL0025",
            f"invalid value {str(value)[:60]!r} for parameter {of}",
            given,
            declared,
            expected="a dtype: " + ", ".join(DTYPES) if dtype else "an integer",
            found=f"the {kind} {str(value)[:60]!r}",
            suggestions=similar_name_help(str(value), DTYPES) if dtype else (),
            subject=subject,
        )
        return False
    reason = violated_limit(param, value)
    if reason:
        findings.add(
            "PL0026",
            f"{value} is not an allowed value of parameter {of}",
            given,
            declared,
            expected=reason,
            found=str(value),
            suggestions=_nearest(param, value),
            subject=subject,
        )
    return not reason


def _nearest(param: Param, value: int | str) -> tuple[str, ...]:
    """Suggest the nearest allowed integers."""
    if isinstance(value, str) or param.type == "dtype":
        return ()
    numbers = [item for item in param.choices if isinstance(item, int)]
    if not numbers:
        step = param.multiple_of or 1
        low = value // step * step
        numbers = [
            item for item in (low, low + step, param.minimum, param.maximum) if item is not None
        ]
    fitting = [item for item in numbers if not violated_limit(param, item)]
    below = max((item for item in fitting if item < value), default=None)
    above = min((item for item in fitting if item > value), default=None)
    near = [str(item) for item in (below, above) if item is not None]
    values = "values" if len(near) > 1 else "value"
    return (f"use {' or '.join(near)}, the nearest allowed {values}",) if near else ()


def _check_flags(
    contract: Contract, flags: tuple[str, ...], given: Location, findings: DiagnosticSink
) -> None:
    actual = {**FLAG_DEFAULTS, **{f.split("=")[0]: f.endswith("=true") for f in flags}}
    for name, value in contract.numeric.flags:
        if actual[name] == value:
            continue
        wanted, found = (f"{name}={str(item).lower()}" for item in (value, actual[name]))
        findings.add(
            "PL1101",
            f"`{contract.component}` requires {wanted}, but is built with {found}",
            (contract.numeric.span, "required here"),
            given,
            expected=wanted,
            found=found + ("" if any(name in flag for flag in flags) else " (the default)"),
            suggestions=(f"set {wanted} in the code-generation flags of the program",),
            subject=f"{contract.component}.{name}",
        )


def _check_where(
    contract: Contract, values: Mapping[str, Value], given: Location, findings: DiagnosticSink
) -> None:
    for condition in contract.where:
        try:
            if expression.evaluate(condition, values):
                continue
        except PipelinkError as problem:
            findings.extend(problem.diagnostics)
            continue
        used = sorted(expression.names(condition))
        numbers = ", ".join(f"{name}={values[name]}" for name in used)
        findings.add(
            "PL0027",
            f"`where` condition `{condition}` of `{contract.component}` is false for {numbers}",
            (condition.span, f"with {numbers}"),
            given,
            expected=condition.text,
            found=_sides(condition, values) or numbers,
            suggestions=(f"change {list_of(used, 'or')}",) if used else (),
            subject=f"{contract.component}: {condition}",
        )


def _sides(condition: Expr, values: Mapping[str, Value]) -> str:
    """Return a single comparison with its sides evaluated, like `32 == 128`."""
    for sign in ("==", "!=", "<=", ">=", "<", ">"):
        left, found, right = condition.text.partition(f" {sign} ")
        if found and not any(word in condition.text for word in (" and ", " or ", "not ")):
            try:
                sides = [expression.evaluate(side, values) for side in (left, right)]
            except PipelinkError:
                return ""
            return f"{sides[0]} {sign} {sides[1]}"
    return ""


def _substitute(noun: Any, values: Mapping[str, Value], findings: DiagnosticSink) -> Any:
    """Return the noun with parameters replaced in all its expressions and dtypes."""
    if isinstance(noun, Expr):
        try:
            return expression.substitute(noun, values)
        except PipelinkError as problem:
            findings.extend(problem.diagnostics)
            return noun
    if isinstance(noun, tuple):
        return tuple(_substitute(item, values, findings) for item in noun)
    if not dataclasses.is_dataclass(noun) or isinstance(noun, (Span, Param)):
        return noun
    changes = {}
    for item in dataclasses.fields(noun):
        value = getattr(noun, item.name)
        if item.name in ("dtype", "accumulate", "rounds_to"):
            changes[item.name] = values.get(value, value)
        elif isinstance(noun, Contract) and item.name == "where":
            continue  # conditions on the parameters themselves: they have been checked
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            changes[item.name] = _substitute(value, values, findings)
    if isinstance(noun, (Layout, TileAccess)) and noun.swizzle_by is not None:
        span = changes["swizzle_by"].literal
        if span in SWIZZLES:
            changes |= {"swizzle": span, "swizzle_by": None}
    return replace(noun, **changes)


def _round_registers(role: Role) -> Role:
    """Round to counts that setmaxnreg accepts (PTX ISA: multiples of 8 from 24 up)."""
    registers = role.registers
    least = _up(registers.minimum, SETMAXNREG_LEAST)
    want = _up(registers.want, least.literal or SETMAXNREG_LEAST)
    return replace(role, registers=replace(registers, minimum=least, want=want))


def _up(expr: Expr, least: int) -> Expr:
    value = expr.literal
    return expr if value is None else replace(expr, text=str(max(least, round_registers(value))))
