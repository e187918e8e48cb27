"""Values of expressions that are known at link time."""

from collections.abc import Mapping

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.source_span import Expr


def constant_or_none(expr: Expr, env: Mapping[str, int | str] | None = None) -> int | None:
    """Return the value of the expression, or None if one of its names has none yet."""
    if expr.literal is not None:
        return expr.literal
    env = env or {}
    try:
        return evaluate(expr, env) if names(expr) <= set(env) else None
    except PipelinkError:  # a division by zero and the like; the contract stage reports it
        return None


def constant_value(expr: Expr) -> int:
    """Return the value of an expression over bound parameters; raise PL0031 otherwise."""
    return expr.literal if expr.literal is not None else evaluate(expr, {})
