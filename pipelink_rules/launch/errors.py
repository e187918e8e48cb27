"""How does a launch that cannot happen say so?  With the same diagnostics as the linker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from pipelink_rules.diagnostics.diagnostic import Details, Diagnostic, Label, PipelinkError
from pipelink_rules.model.linked_kernel import Site
from pipelink_rules.model.source_span import Span


class LaunchError(PipelinkError):
    """A call that was refused, or that the driver refused; `diagnostics` holds every finding."""

    def __str__(self) -> str:
        return "\n".join(_text(item) for item in self.diagnostics)


class WatchdogError(LaunchError):
    """A wait of a watchdog megakernel ran over its limit: what hung, where, and in which state."""

    def __init__(self, diagnostic: Diagnostic, site: Site | None, stage: int, phase: int):
        super().__init__(diagnostic)
        self.site = site
        self.stage = stage
        self.phase = phase


def finding(
    code: str, subject: str, message: str, *places: Span, **details: Unpack[Details]
) -> Diagnostic:
    """One finding of the launcher; `subject` is the argument, symbol or device it is about."""
    return Diagnostic(code, message, tuple(map(Label, places)), subject=subject, **details)


def refuse(
    code: str, subject: str, message: str, *places: Span, **details: Unpack[Details]
) -> LaunchError:
    """The exception for a single finding; `places` are files, where it is about some."""
    return LaunchError(finding(code, subject, message, *places, **details))


def raise_if_any(findings: Iterable[Diagnostic]) -> None:
    """Raises one LaunchError with all findings, or does nothing."""
    found = tuple(findings)
    if found:
        raise LaunchError(found)


def _text(item: Diagnostic) -> str:
    """A finding for the last line of a traceback: what, expected, found, and the fix."""
    lines = [f"{item.code}: {item.message}"]
    if item.expected:
        lines.append(f"  expected: {item.expected}")
    if item.found:
        lines.append(f"  found:    {item.found}")
    lines += [f"  note: {note}" for note in item.notes]
    lines += [f"  help: {text}" for text in item.suggestions]
    return "\n".join(lines)
