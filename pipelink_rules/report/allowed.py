"""The allowed diagnostics of a megakernel: those of the check and those of the link."""

from collections.abc import Iterable

from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit


def all_allowed(
    checked: Iterable[AllowedDiagnostics], audit: Audit | None
) -> tuple[AllowedDiagnostics, ...]:
    """Return every diagnostic that the declaration allows, each once."""
    return tuple(dict.fromkeys((*checked, *(audit.allowed if audit else ()))))


def allowed_lines(allowed: Iterable[AllowedDiagnostics], of: str = "") -> list[str]:
    """`PL0505 allowed: what was found`, and the reason below it.  of: a prefix, such as a name."""
    lines = []
    for item in allowed:
        lines += [f"{of}{item.code} allowed: {item.message}", f"  because: {item.reason}"]
    return lines
