"""How does a finding look?  Diagnostics -> text for people, or JSON for programs.

error[PL0031]: `warps` of role `load` names `WG2`, which is not declared
  --> components/gemm/load.contract.yaml:21:12
   |
21 |     warps: 4 * WG2
   |                ^^^
   = help: a similar name exists: `WG`
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipelink_rules.diagnostics.catalogue import code_of
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.diagnostics.source_snippet import Lines, printable, quote, source_lines
from pipelink_rules.diagnostics.wording import plural

JSON_SCHEMA = "pipelink/diagnostics/2"

EXIT_OK = 0
EXIT_ERROR = 1  # the user's error: toolkit, files, build, launch
EXIT_USAGE = 2  # the command line
EXIT_CONTRACT = 3  # contracts, checks, placement: a composition that must not link
EXIT_BUG = 4  # ours

_CONTRACT_STAGES = ("text", "resolve", "check", "place")
_COLORS = {"error": "1;31", "warning": "1;33", "mark": "1;34", "primary": "1;31", "help": "1;32"}


def unique(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """One finding per code and subject, in the order they were found."""
    found: dict[tuple[object, ...], Diagnostic] = {}
    for item in diagnostics:
        key = (item.code, item.subject) if item.subject else (item.code, item.message, item.labels)
        found.setdefault(key, item)
    return tuple(found.values())


def exit_code(diagnostics: Iterable[Diagnostic]) -> int:
    """What a command exits with: 0 without errors, else the gravest of 1, 3 and 4."""
    worst = EXIT_OK
    for item in diagnostics:
        if item.severity != "error":
            continue
        code = code_of(item.code)
        stage = code.stage if code else "internal"
        grave = EXIT_BUG if stage == "internal" else EXIT_ERROR
        worst = max(worst, EXIT_CONTRACT if stage in _CONTRACT_STAGES else grave)
    return worst


def render_text(
    diagnostics: Iterable[Diagnostic],
    *,
    color: bool = False,
    root: str | Path | None = None,
    outcome: str = "",
) -> str:
    """All findings and a summary line; "" where there are none.

    Files are read relative to `root` (default: the working directory).  `outcome` says what the
    errors mean, e.g. "nothing was compiled".
    """
    found = unique(diagnostics)
    if not found:
        return ""
    lines = source_lines(Path(root) if root is not None else None)
    parts = [render_one(item, color=color, lines=lines) for item in found]
    return "\n\n".join([*parts, summary(found, outcome, color=color)]) + "\n"


def render_one(item: Diagnostic, *, color: bool = False, lines: Lines | None = None) -> str:
    """One finding, without a final newline."""
    paint = _Paint(color)
    lines = lines or source_lines()
    files = _by_file(item.labels)
    gutter = max((len(str(label.span.line)) for label in item.labels), default=1)
    allowed = ", allowed" if item.allowed else ""
    head = paint(item.severity, f"{item.severity}[{item.code}]{allowed}")
    text = [f"{head}: {paint('bold', printable(item.message))}"]
    for number, (file, labels) in enumerate(files):
        arrow = "-->" if number == 0 else ":::"
        text.append(f"{'':{gutter}}{paint('mark', arrow)} {labels[0][0].span}")
        quoted = quote(labels, lines(file), gutter)
        if quoted:
            text += [paint.snippet(line, gutter) for line in quoted]
        else:  # the file cannot be quoted: say what the label says, and where
            text += [
                f"{'':{gutter}}     {printable(label.text)}" for label, _ in labels if label.text
            ]
    clauses = _clauses(item)
    if clauses and files:
        text.append(f"{'':{gutter}} {paint('mark', '|')}")
    for name, value in clauses:
        first, *rest = map(printable, value.split("\n"))
        mark = paint("mark", "=")
        title = paint("help" if name == "help" else "bold", name)
        text.append(f"{'':{gutter}} {mark} {title}: {first}".rstrip())
        text += [f"{'':{gutter}}     {line}".rstrip() for line in rest]
    return "\n".join(text)


def summary(found: Sequence[Diagnostic], outcome: str = "", *, color: bool = False) -> str:
    """`error: 2 errors, 1 warning; nothing was compiled`, and how to learn more."""
    paint = _Paint(color)
    errors = sum(item.severity == "error" for item in found)
    counts = [plural(errors, "error")] if errors else []
    if len(found) > errors:
        allowed = sum(bool(item.allowed) for item in found)
        counts.append(
            plural(len(found) - errors, "warning") + (f" ({allowed} allowed)" if allowed else "")
        )
    severity = "error" if errors else "warning"
    tail = f"; {outcome}" if outcome and errors else ""
    codes = sorted({item.code for item in found})
    shown = " ".join(codes[:3]) + (" ..." if len(codes) > 3 else "")
    return (
        f"{paint(severity, severity)}: {', '.join(counts)}{tail}\n"
        f"  for more information, run `pipelink explain {shown}`"
    )


def as_json(item: Diagnostic) -> dict[str, Any]:
    """One finding as JSON-ready data; keys are never removed or renamed within a schema version."""
    code = code_of(item.code)
    return {
        "code": item.code,
        "name": code.name if code else "",
        "severity": item.severity,
        "allowed": item.allowed,
        "message": item.message,
        "subject": item.subject,
        "labels": [
            {**asdict(label.span), "text": label.text, "primary": number == 0}
            for number, label in enumerate(item.labels)
        ],
        "expected": item.expected,
        "found": item.found,
        "spec": code.spec if code else "",
        "at_run_time": item.at_run_time,
        "notes": list(item.notes),
        "chain": list(item.chain),
        "counterexample": list(item.counterexample),
        "suggestions": list(item.suggestions),
    }


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """All findings as one JSON document."""
    found = unique(diagnostics)
    errors = sum(item.severity == "error" for item in found)
    data = {
        "schema": JSON_SCHEMA,
        "errors": errors,
        "warnings": len(found) - errors,
        "exit_code": exit_code(found),
        "diagnostics": [as_json(item) for item in found],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _by_file(labels: Sequence[Label]) -> list[tuple[str, list[tuple[Label, bool]]]]:
    """Labels grouped by file; the file of the primary label first, and it first within its file."""
    files: dict[str, list[tuple[Label, bool]]] = {}
    for number, label in enumerate(labels):
        files.setdefault(label.span.file, []).append((label, number == 0))
    return list(files.items())


def _chain_name(code: str) -> str:
    """What the chain of a diagnostic is: operations that were executed, or a cycle."""
    if "PL0915" <= code <= "PL0934":
        return "executed"
    return "wait cycle" if code == "PL0401" else "cycle"


def _clauses(item: Diagnostic) -> list[tuple[str, str]]:
    code = code_of(item.code)
    clauses = [
        ("allowed", item.allowed),
        ("expected", item.expected),
        ("found", item.found),
        ("spec", code.spec if code else ""),
        ("at run time", item.at_run_time),
        (_chain_name(item.code), "".join(f"\n{line}" for line in item.chain)),
        ("counterexample", "".join(f"\n{line}" for line in item.counterexample)),
        *(("note", note) for note in item.notes),
        *(("help", text) for text in item.suggestions),
    ]
    return [(name, value) for name, value in clauses if value]


class _Paint:
    """Escape codes, or none."""

    def __init__(self, color: bool):
        self.color = color

    def __call__(self, style: str, text: str) -> str:
        return f"\033[{_COLORS.get(style, '1')}m{text}\033[0m" if self.color and text else text

    def snippet(self, line: str, gutter: int) -> str:
        """A quoted line: the gutter and the marks coloured."""
        if not self.color or line == "...":
            return line
        head, text = line[: gutter + 2], line[gutter + 2 :]
        stripped = text.lstrip()
        if head[:gutter].strip() == "" and stripped[:1] in ("^", "-"):
            text = self("primary" if stripped[0] == "^" else "mark", text)
        return self("mark", head) + text
