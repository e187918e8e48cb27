"""Errors of a compiler: text of nvcc or g++ -> PL0905 at the lines of source and contract."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.model.contract import Contract, Param, Port, Role
from pipelink_rules.model.source_span import Span
from pipelink_rules.toolkit.process import ToolOutput, command_note, quote, run
from pipelink_rules.toolkit.toolkit import Toolkit

_NVCC = re.compile(r"^(?P<file>[^\s:(][^(:]*)\((?P<line>\d+)\): error(?: #[\w-]+)?: (?P<text>.*)$")
_GCC = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$"
)


@dataclass(frozen=True)
class Subject:
    """The owner of compiled code, for messages."""

    name: str  # "component `bias`", "the glue of `gemm`"
    contract: Contract | None = None
    header: str = ""  # text of the generated contract header, for similar names


def compile_checked(
    argv: Sequence[str], toolkit: Toolkit, subject: Subject, cwd: str | Path | None = None
) -> ToolOutput:
    """Run a compiler; PL0905 with its errors at their source lines if it fails."""
    output = run(argv, toolkit, cwd)
    if not output.ok:
        raise PipelinkError(diagnose(output, subject))
    return output


def diagnose(output: ToolOutput, subject: Subject) -> Diagnostic:
    """Return the diagnostic of a failed compilation."""
    labels: list[Label] = []
    suggestions: list[str] = []
    for line in output.text.splitlines():
        found = _NVCC.match(line) or _GCC.match(line)
        if not found:
            continue
        labels.append(Label(_span_of(found), found["text"]))
        labels += _contract_labels(found["text"], subject)
        suggestions += _suggestions(found["text"], subject)
    contract = subject.contract
    if not labels and contract is not None and contract.file:
        labels.append(Label(contract.span or Span(contract.file), "this contract"))
    return Diagnostic(
        "PL0905",
        f"compilation of {subject.name} failed",
        tuple(dict.fromkeys(labels)),
        expected="a source that compiles with the header generated from its contract",
        found=quote(output.text),
        notes=(command_note(output),),
        suggestions=tuple(dict.fromkeys(suggestions)),
        subject=subject.name,
    )


def _span_of(found: re.Match[str]) -> Span:
    """Return the location of an error: nvcc prints only the line, but often quotes a word of it."""
    number = int(found["line"][-9:])
    column = int((found.groupdict().get("column") or "0")[-9:])
    try:
        text = Path(found["file"]).read_text(encoding="utf-8", errors="replace")
        line = text.split("\n")[number - 1]
    except (OSError, IndexError, ValueError):
        return Span(found["file"], number, max(column, 1))
    for word in reversed(re.findall(r'"(\w+)"', found["text"])):
        if hit := re.search(rf"\b{word}\b", line):
            return Span(found["file"], number, hit.start() + 1, len(word))
    code = line.strip()
    start = column or len(line) - len(line.lstrip()) + 1
    return Span(found["file"], number, start, 1 if column else max(1, len(code)))


def _undefined(text: str) -> str:
    found = re.match(r'identifier "(\w+)" is undefined', text)
    return found[1] if found else ""


def _contract_labels(text: str, subject: Subject) -> list[Label]:
    name, contract = _undefined(text), subject.contract
    if not name or contract is None:
        return []
    close = set(_close(name, subject))
    declared: list[Param | Port | Role] = [*contract.params, *contract.ports, *contract.roles]
    return [
        Label(item.span, f"the contract declares `{item.name}`")
        for item in declared
        if item.span and ({item.name, f"k{item.name}"} & close or name.endswith(item.name))
    ]


def _suggestions(text: str, subject: Subject) -> list[str]:
    name, contract = _undefined(text), subject.contract
    if name and re.search(rf"\b{name}\b", subject.header):
        return [f"write PL_COMPONENT::{name}: it is in the component's namespace"]
    if name and contract is not None:
        close = _close(name, subject)
        if close:
            return [f"a similar name exists: `{close[0]}`"]
        params = ", ".join(f"k{param.name}" for param in contract.params)
        return [f"use the constants of the generated header for parameters: {params}"]
    if "incompatible with previous" in text or "declaration is incompatible" in text:
        return ["declare the parameters of the generated prototype, which follow the ports"]
    missing = re.match(r"(\S+\.contract\.cuh): No such file", text)
    if missing and contract is not None:
        return [f"include the header of this component, {contract.component}.contract.cuh"]
    return []


def _close(name: str, subject: Subject) -> list[str]:
    known = set(re.findall(r"\b[A-Za-z_]\w*\b", subject.header))
    if subject.contract is not None:
        known |= {f"k{param.name}" for param in subject.contract.params}
    return difflib.get_close_matches(name, sorted(known - {name}), 2, 0.6)
