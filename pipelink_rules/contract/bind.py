"""Binding of parameters: Contract, arguments, code-generation flags -> Variant."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipelink_rules.contract.codegen_flags import FLAG_DEFAULTS, normal_flags
from pipelink_rules.contract.header import digest_of
from pipelink_rules.contract.parse_params import violated_limit
from pipelink_rules.contract.validate_numbers import check_bound
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.diagnostics.wording import list_of, similar_name_help
from pipelink_rules.expression import expression
from pipelink_rules.expression.evaluate import Value
from pipelink_rules.model.contract import DTYPES, Contract, Param, Role, round_registers
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
    found: list[Diagnostic] = []
    values = _arguments(contract, arguments, place, found)
    try:
        named = normal_flags(flags, place)
    except PipelinkError as problem:
        found += problem.diagnostics
        named = ()
    _check_flags(contract, named, place, found)
    if found:
        raise PipelinkError(found)
    _check_where(contract, values, place, found)
    if found:
        raise PipelinkError(found)
    bound = _substitute(contract, values, found)
    if found:  # two clauses may have the same expression, e.g. `want` that defaults to `min`
        raise PipelinkError(dict.fromkeys(found))
    bound = replace(bound, where=(), roles=tuple(_round_registers(role) for role in bound.roles))
    check_bound(contract, bound, values, place)
    variant = Variant(bound, tuple(sorted(values.items())), named)
    return replace(variant, digest=digest_of(variant, named))


def _place(place: Span | None, text: str = "given here") -> tuple[Label, ...]:
    return (Label(place, text),) if place else ()


def _arguments(
    contract: Contract,
    arguments: Mapping[str, int | str],
    place: Span | None,
    found: list[Diagnostic],
) -> dict[str, Value]:
    name = contract.component
    params = {param.name: param for param in contract.params}
    for unknown in sorted(set(arguments) - set(params)):
        symbol = unknown in {item.name for item in contract.symbols}
        suggestions = similar_name_help(unknown, params, "parameters") or (
            f"remove it: `{name}` has no parameters",
        )
        if symbol:
            suggestions = (f"remove `{unknown}`: it is a symbol, inferred from tensors at launch",)
        labels = (*_place(place), *_place(contract.span, "this component"))
        message = f"unknown parameter `{unknown}` for component `{name}`"
        found.append(
            Diagnostic(
                "PL0023", message, labels, suggestions=suggestions, subject=f"{name}.{unknown}"
            )
        )
    values: dict[str, Value] = {}
    for param in contract.params:
        value = arguments.get(param.name, param.default)
        if value is None:
            found.append(
                Diagnostic(
                    "PL0024",
                    f"missing value of parameter `{param.name}` of `{name}`",
                    (*_place(place), *_place(param.span, "declared here, without a default")),
                    expected=_allowed(param),
                    suggestions=(f'add "{param.name}": ... to the parameters of the instance',),
                    subject=f"{name}.{param.name}",
                )
            )
        elif problem := _check_value(contract, param, value, place):
            found.append(problem)
        else:
            values[param.name] = value
    return values


def _allowed(param: Param) -> str:
    if param.choices:
        return "one of " + ", ".join(map(str, param.choices))
    if param.type == "dtype":
        return "one of " + ", ".join(DTYPES)
    parts = [f"at least {param.minimum}"] if param.minimum is not None else []
    parts += [f"at most {param.maximum}"] if param.maximum is not None else []
    parts += [f"a multiple of {param.multiple_of}"] if param.multiple_of is not None else []
    return "an integer" + (", " + ", ".join(parts) if parts else "")


def _check_value(
    contract: Contract, param: Param, value: object, place: Span | None
) -> Diagnostic | None:
    labels = (*_place(place), *_place(param.span, "declared here"))
    subject = f"{contract.component}.{param.name}"
    of_type = isinstance(value, str) if param.type == "dtype" else type(value) is int
    if not of_type or (param.type == "dtype" and value not in DTYPES):
        return Diagnostic(
            "PL0025",
            f"invalid value {str(value)[:60]!r} for parameter `{param.name}` of "
            f"`{contract.component}`",
            labels,
            expected="a dtype: " + ", ".join(DTYPES) if param.type == "dtype" else "an integer",
            found=f"the {'string' if isinstance(value, str) else type(value).__name__} "
            f"{str(value)[:60]!r}",
            suggestions=similar_name_help(str(value), DTYPES) if param.type == "dtype" else (),
            subject=subject,
        )
    assert isinstance(value, (int, str))
    if reason := violated_limit(param, value):
        return Diagnostic(
            "PL0026",
            f"{value} is not an allowed value of parameter `{param.name}` of "
            f"`{contract.component}`",
            labels,
            expected=reason,
            found=str(value),
            suggestions=_nearest(param, value),
            subject=subject,
        )
    return None


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
    contract: Contract, flags: tuple[str, ...], place: Span | None, found: list[Diagnostic]
) -> None:
    given = {**FLAG_DEFAULTS, **{f.split("=")[0]: f.endswith("=true") for f in flags}}
    for name, value in contract.numeric.flags:
        if given[name] != value:
            wanted, actual = (f"{name}={str(item).lower()}" for item in (value, given[name]))
            found.append(
                Diagnostic(
                    "PL1101",
                    f"`{contract.component}` requires {wanted}, but is built with {actual}",
                    (*_place(contract.numeric.span, "required here"), *_place(place)),
                    expected=wanted,
                    found=actual
                    + ("" if any(name in flag for flag in flags) else " (the default)"),
                    suggestions=(f"set {wanted} in the code-generation flags of the program",),
                    subject=f"{contract.component}.{name}",
                )
            )


def _check_where(
    contract: Contract, values: Mapping[str, Value], place: Span | None, found: list[Diagnostic]
) -> None:
    for condition in contract.where:
        try:
            if expression.evaluate(condition, values):
                continue
        except PipelinkError as problem:
            found += problem.diagnostics
            continue
        used = sorted(expression.names(condition))
        numbers = ", ".join(f"{name}={values[name]}" for name in used)
        found.append(
            Diagnostic(
                "PL0027",
                f"`where` condition `{condition}` of `{contract.component}` is false for {numbers}",
                (*_place(condition.span, f"with {numbers}"), *_place(place)),
                expected=condition.text,
                found=_sides(condition, values) or numbers,
                suggestions=(f"change {list_of(used, 'or')}",) if used else (),
                subject=f"{contract.component}: {condition}",
            )
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


def _substitute(noun: Any, values: Mapping[str, Value], found: list[Diagnostic]) -> Any:
    """Return the noun with parameters replaced in all its expressions and dtypes."""
    if isinstance(noun, Expr):
        try:
            return expression.substitute(noun, values)
        except PipelinkError as problem:
            found += problem.diagnostics
            return noun
    if isinstance(noun, tuple):
        return tuple(_substitute(item, values, found) for item in noun)
    if not dataclasses.is_dataclass(noun) or isinstance(noun, (Span, Param)):
        return noun
    changes = {}
    for item in dataclasses.fields(noun):
        value = getattr(noun, item.name)
        if item.name in ("dtype", "accumulate", "rounds_to"):
            changes[item.name] = values.get(value, value)
        elif item.name != "where" and (isinstance(value, tuple) or dataclasses.is_dataclass(value)):
            changes[item.name] = _substitute(value, values, found)
    return replace(noun, **changes)  # type: ignore[type-var]


def _round_registers(role: Role) -> Role:
    """Round to counts that setmaxnreg accepts (PTX ISA: multiples of 8 from 24 up)."""
    registers = role.registers
    least = _up(registers.minimum, SETMAXNREG_LEAST)
    want = _up(registers.want, least.literal or SETMAXNREG_LEAST)
    return replace(role, registers=replace(registers, minimum=least, want=want))


def _up(expr: Expr, least: int) -> Expr:
    value = expr.literal
    return expr if value is None else replace(expr, text=str(max(least, round_registers(value))))
