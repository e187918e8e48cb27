"""How do findings look on a terminal?  The renderer of the diagnostics, at the edge."""

from __future__ import annotations

from collections.abc import Iterable

from pipelink_rules.diagnostics.diagnostic import Diagnostic


def shown(findings: Iterable[Diagnostic]) -> str:
    """The text of findings, each with its places, expected, found and helps."""
    try:
        from pipelink_rules.diagnostics.render import render_text
    except ImportError:
        return "".join(_plain(item) for item in findings)
    return str(render_text(tuple(findings)))


def _plain(item: Diagnostic) -> str:
    lines = [f"{item.severity}[{item.code}]: {item.message}"]
    lines += [f"  --> {label.span} {label.text}".rstrip() for label in item.labels]
    lines += [f"  = expected: {item.expected}"] if item.expected else []
    lines += [f"  = found: {item.found}"] if item.found else []
    lines += [f"  = at run time: {item.at_run_time}"] if item.at_run_time else []
    lines += [f"  = {line}" for line in (*item.trace, *item.notes)]
    lines += [f"  = help: {line}" for line in item.helps]
    return "\n".join(lines) + "\n"
