"""PL11xx: what components promise of their numbers."""

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL1101",
        "numeric-flags",
        "Built with other flags than it asks for, a component computes other numbers.",
        "nvcc manual: --ftz, --prec-div, --prec-sqrt, --fmad",
        "text",
    ),
)
