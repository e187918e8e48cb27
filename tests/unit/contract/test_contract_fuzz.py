"""Whatever the text, reading it gives a contract or findings, never another exception."""

from __future__ import annotations

import random
from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_contract import SAMPLE

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.contract.sidecar import dump_sidecar
from pipelink_rules.diagnostics.catalogue import catalogue
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.render import render_json, render_text
from pipelink_rules.model.variant import BuildRecord

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [SAMPLE] + [
    path.read_text() for path in sorted((ROOT / "components").rglob("*.contract.yaml"))
]
PIECES = [
    *"{}[]:,-?|>'\"#&*!%@`\n\t \\",
    "  ",
    "\n  - ",
    ": ",
    "TM",
    "ring",
    "0",
    "-1",
    "99999999999999999999",
    "é",
    "\u2028",
    "\x00",
    "null",
    "release ab lag ",
    "sizeof(",
    "repeat: k\n",
]


def survives(text: str) -> None:
    """The property: a contract that binds and renders, or findings that render."""
    try:
        contract = parse_contract(text, "fuzz.contract.yaml")
        arguments = {
            param.name: param.choices[0] if param.choices else 64
            for param in contract.params
            if param.default is None
        }
        dump_sidecar(bind(contract, arguments), BuildRecord("13", ""))
    except PipelinkError as problem:
        assert problem.diagnostics
        for item in problem.diagnostics:
            assert item.code in catalogue()
            assert item.labels
            assert "\n" not in item.message and len(item.message) < 500
        assert render_text(problem.diagnostics)
        assert render_json(problem.diagnostics)


@settings(max_examples=150)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    survives(text)


@settings(max_examples=400)
@given(st.sampled_from(TEXTS), st.integers(0, 2**32), st.integers(1, 4))
def test_mutated_characters(text: str, seed: int, count: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        start = chance.randrange(len(text))
        end = min(len(text), start + chance.choice([0, 0, 1, 2, 8]))
        text = text[:start] + chance.choice(["", *PIECES]) + text[end:]
    survives(text)


@settings(max_examples=200)
@given(st.sampled_from(TEXTS), st.integers(0, 2**32))
def test_mutated_lines(text: str, seed: int) -> None:
    chance = random.Random(seed)
    lines = text.split("\n")
    for _ in range(chance.choice([1, 2, 5])):
        kind, at = chance.randrange(4), chance.randrange(len(lines))
        if kind == 0:
            lines.pop(at)
        elif kind == 1:
            lines.insert(at, chance.choice(lines))
        elif kind == 2:
            lines[at] = "  " + lines[at]
        else:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        if not lines:
            lines = [""]
    survives("\n".join(lines))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("T"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.sampled_from(TEXTS), st.integers(0, 2**32), JSON)
def test_values_of_any_type(text: str, seed: int, value: object) -> None:
    chance = random.Random(seed)
    data = node = yaml.safe_load(text)
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = chance.choice(keys)
        if not isinstance(node[key], (dict, list)) or not node[key] or chance.random() < 0.25:
            node[key] = value
            break
        node = node[key]
    survives(yaml.safe_dump(data, sort_keys=False))
