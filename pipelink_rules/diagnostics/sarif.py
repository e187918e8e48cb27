"""How do findings reach a code-scanning service?  Diagnostics -> one SARIF 2.1.0 log.

The form is OASIS SARIF 2.1.0 (Static Analysis Results Interchange Format): rules are the codes
that occur, results are the findings, further places of a finding are related locations.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from pipelink_rules import __version__
from pipelink_rules.diagnostics.catalogue import FAMILIES, code_of, page_of
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.diagnostics.render import exit_code, unique

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "SRCROOT"  # what relative paths are relative to: the top of the repository


def render_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """All findings as one SARIF log with one run; equal for equal findings, on every machine."""
    return json.dumps(as_sarif(diagnostics), indent=2, ensure_ascii=False) + "\n"


def as_sarif(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """The log as JSON-ready data."""
    found = unique(diagnostics)
    codes = sorted({item.code for item in found})
    index = {code: number for number, code in enumerate(codes)}
    code = exit_code(found)
    rules = [_rule(name) for name in codes]
    driver = {"name": "pipelink", "semanticVersion": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": code == 0, "exitCode": code}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(item, index[item.code]) for item in found],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str) -> dict[str, Any]:
    code = code_of(name)
    if code is None:
        return {"id": name}
    page = page_of(code)
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in code.name.split("-")),
        "shortDescription": {"text": code.rationale},
        "fullDescription": {"text": " ".join(filter(None, (code.rationale, code.spec)))},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": "error"},
        "properties": {"stage": code.stage, "tags": [FAMILIES.get(name[2:4], "")]},
    }


def _result(item: Diagnostic, index: int) -> dict[str, Any]:
    first, *others = item.labels or (None,)
    result: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": index,
        "level": item.severity if item.severity in ("error", "warning", "note") else "none",
        "message": {"text": _message(item)},
        "locations": [_location(first)] if first else [],
        "partialFingerprints": {"codeAndSubject/v1": _fingerprint(item)},
    }
    if others:
        result["relatedLocations"] = [
            {"id": number, **_location(label)} for number, label in enumerate(others, 1) if label
        ]
    properties = {
        "subject": item.subject,
        "chain": list(item.chain),
        "counterexample": list(item.counterexample),
        "suggestions": list(item.suggestions),
        "allowed": item.allowed,
    }
    result["properties"] = {name: value for name, value in properties.items() if value}
    return result


def _message(item: Diagnostic) -> str:
    """What a viewer shows that knows of messages only."""
    clauses = (
        ("allowed", item.allowed),
        ("expected", item.expected),
        ("found", item.found),
        ("at run time", item.at_run_time),
        *(("help", text) for text in item.suggestions[:1]),
    )
    said = [f"{name}: {text}" for name, text in clauses if text]
    return "\n".join((item.message, *said))


def _location(label: Label) -> dict[str, Any]:
    span = label.span
    place: dict[str, Any] = {"artifactLocation": _artifact(span.file)}
    if span.line > 0:
        column = max(span.column, 1)
        end = column + max(span.length, 1)
        place["region"] = {"startLine": span.line, "startColumn": column, "endColumn": end}
    location: dict[str, Any] = {"physicalLocation": place}
    if label.text:
        location["message"] = {"text": label.text}
    return location


def _artifact(file: str) -> dict[str, str]:
    uri = quote(PurePath(file).as_posix())
    if PurePath(file).is_absolute():
        return {"uri": f"file://{uri}"}
    return {"uri": uri, "uriBaseId": ROOT}


def _fingerprint(item: Diagnostic) -> str:
    """The same finding in the next run, wherever its lines have moved to."""
    text = f"{item.code}\n{item.subject or item.message}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
