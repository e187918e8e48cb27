"""SARIF: the parts of the 2.1.0 form that are written, and that nothing of a finding is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from pipelink_rules.diagnostics.catalogue import catalogue
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.diagnostics.sarif import as_sarif, render_sarif
from pipelink_rules.model.source_span import Span


def thing(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def listed(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


TEXT = {"type": "string", "minLength": 1}
NUMBER = {"type": "integer", "minimum": 1}
INDEX = {"type": "integer", "minimum": 0}
MESSAGE = thing("text", text=TEXT, markdown=TEXT)
BAG = {"type": "object"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
URI = {"type": "string", "pattern": r"^[!-~]+$", "not": {"pattern": r"[ <>\"{}|\\^`]"}}
PLACE = thing(
    "artifactLocation",
    artifactLocation=thing("uri", uri=URI, uriBaseId=TEXT),
    region=thing(
        "startLine startColumn endColumn", startLine=NUMBER, startColumn=NUMBER, endColumn=NUMBER
    ),
)
LOCATION = thing("physicalLocation", id=INDEX, physicalLocation=PLACE, message=MESSAGE)
RULE = thing(
    "id", id=TEXT, name=TEXT, shortDescription=MESSAGE, fullDescription=MESSAGE, help=MESSAGE,
    defaultConfiguration=thing("level", level=LEVEL), properties=BAG,
)  # fmt: skip
RESULT = thing(
    "ruleId ruleIndex level message", ruleId=TEXT, ruleIndex=INDEX, level=LEVEL, message=MESSAGE,
    locations=listed(LOCATION), relatedLocations=listed(LOCATION), partialFingerprints=BAG,
    properties=BAG,
)  # fmt: skip
RUN = thing(
    "tool results",
    tool=thing("driver", driver=thing("name", name=TEXT, semanticVersion=TEXT, rules=listed(RULE))),
    invocations=listed(
        thing("executionSuccessful", executionSuccessful={"type": "boolean"}, exitCode=INDEX)
    ),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=listed(RESULT),
)
LOG = Draft7Validator(
    thing(
        "version runs",
        **{"$schema": {"type": "string", "format": "uri"}},
        version={"const": "2.1.0"},
        runs=listed(RUN),
    )
)

TWO_PLACES = Diagnostic(
    "PL0202",
    "bytes do not match on `load.ab -> mma.ab`",
    (Label(Span("parts/load it.yaml", 3, 18, 15), "expects 32768"), Label(Span("/abs/m.yaml"))),
    expected="32768",
    found="24576",
    chain=("load waits",),
    suggestions=("use box [TK, TN]", "or another"),
    subject="load.ab -> mma.ab",
)


def test_a_finding_with_two_places() -> None:
    log = as_sarif([TWO_PLACES])
    LOG.validate(log)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "PL0202"
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 3}]
    (place,) = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "parts/load%20it.yaml", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 3, "startColumn": 18, "endColumn": 33},
    }
    assert place["message"]["text"] == "expects 32768"
    (other,) = result["relatedLocations"]
    assert other["physicalLocation"] == {"artifactLocation": {"uri": "file:///abs/m.yaml"}}
    text = result["message"]["text"]
    assert "expected: 32768" in text and "help: use box [TK, TN]" in text
    assert result["properties"]["suggestions"] == list(TWO_PLACES.suggestions)


def test_nothing_found() -> None:
    log = as_sarif([])
    LOG.validate(log)
    assert log["runs"][0]["results"] == []
    assert log["runs"][0]["invocations"][0] == {"executionSuccessful": True, "exitCode": 0}


def test_a_rule_of_every_code_has_its_page() -> None:
    log = as_sarif(Diagnostic(code, "message") for code in catalogue())
    LOG.validate(log)
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(catalogue())
    assert all(rule["help"]["markdown"].startswith(f"# {rule['id']}") for rule in rules)


def test_the_fingerprint_outlives_moved_lines() -> None:
    moved = Diagnostic("PL0202", "other words", (Label(Span("x", 9)),), subject="load.ab -> mma.ab")
    first, second = (
        as_sarif([item])["runs"][0]["results"][0]["partialFingerprints"]
        for item in (TWO_PLACES, moved)
    )
    assert first == second


words = st.text(max_size=12)
spans = st.builds(Span, words.filter(bool), st.integers(0, 99), st.integers(0, 99), st.integers(0))
findings = st.builds(
    Diagnostic,
    st.sampled_from([*catalogue(), "PL7777"]),
    words.filter(bool),
    st.lists(st.builds(Label, spans, words), max_size=3).map(tuple),
    words,
    subject=words,
    severity=st.sampled_from(["error", "warning"]),
    allowed=words,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(findings, max_size=3))
def test_any_finding_is_valid(found: list[Diagnostic]) -> None:
    log = json.loads(render_sarif(found))
    LOG.validate(log)
    assert render_sarif(found) == render_sarif(found)
