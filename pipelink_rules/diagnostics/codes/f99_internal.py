"""PL99xx: mistakes of PipeLink itself."""

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL9901",
        "internal-error",
        "PipeLink met a situation that its authors did not think of.",
        "",
        "internal",
    ),
)
