"""Errors of the launcher, with the diagnostics of the linker."""

from collections.abc import Iterable
from typing import Unpack

from pipelink_rules.diagnostics.diagnostic import Details, Diagnostic, PipelinkError, report
from pipelink_rules.model.linked_kernel import Site
from pipelink_rules.model.source_span import Span


class LaunchError(PipelinkError):
    """A call that the launcher or the driver rejected, with all its diagnostics."""

    def __str__(self) -> str:
        """Return the diagnostics for the last lines of a traceback."""
        lines = []
        for item in self.diagnostics:
            lines.append(f"{item.code}: {item.message}")
            for name, text in (("expected: ", item.expected), ("found:    ", item.found)):
                if text:
                    lines.append(f"  {name}{text}")
            lines += [f"  note: {note}" for note in item.notes]
            lines += [f"  help: {text}" for text in item.suggestions]
        return "\n".join(lines)


class WatchdogError(LaunchError):
    """A wait of a watchdog megakernel exceeded its limit: site, stage and barrier phase."""

    def __init__(self, diagnostic: Diagnostic, site: Site | None, stage: int, phase: int):
        super().__init__(diagnostic)
        self.site = site
        self.stage = stage
        self.phase = phase


def refuse(
    code: str, subject: str, message: str, *places: Span, **details: Unpack[Details]
) -> LaunchError:
    """Return the exception for a single diagnostic.

    subject: the argument, symbol or device that it is about; places: the files.
    """
    return LaunchError(report(code, message, *places, subject=subject, **details))


def raise_if_any(findings: Iterable[Diagnostic]) -> None:
    """Raise one LaunchError with all diagnostics, if there are any."""
    found = tuple(findings)
    if found:
        raise LaunchError(found)
