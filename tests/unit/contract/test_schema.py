"""The published JSON Schema and the loader agree about which clauses there are."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_contract import SAMPLE

from pipelink_rules.contract import (
    load,
    parse_operations,
    parse_params,
    parse_ports,
)
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.target import TARGETS

ROOT = Path(__file__).resolve().parents[3]


def _maker() -> ModuleType:
    """The generator of the schema, docs/make_schema.py."""
    spec = importlib.util.spec_from_file_location("make_schema", ROOT / "docs/make_schema.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


schema = _maker()
SCHEMA = json.loads((ROOT / "pipelink_rules/contract/contract.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CONTRACTS = [path.read_text() for path in sorted((ROOT / "components").rglob("*.contract.yaml"))]
CONTRACTS = [*CONTRACTS, SAMPLE]
# Findings that a schema can see: what a clause needs or excludes may depend on derived clauses.
STRUCTURE = {"PL0005", "PL0007"}


def structural(text: str) -> list[str]:
    """What the loader says about the structure of a contract."""
    try:
        parse_contract(text, "s.contract.yaml")
    except PipelinkError as problem:
        return [item.message for item in problem.diagnostics if item.code in STRUCTURE]
    return []


def valid(data: Any) -> bool:
    return bool(VALIDATOR.is_valid(data))


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key and list entry."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*path, key)
            yield from places(value, (*path, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from places(value, (*path, number))


def parent(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        data = data[step]
    return data


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", CONTRACTS, ids=lambda text: text.split("component: ")[1][:20])
def test_contracts_are_valid(text: str) -> None:
    errors = [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(text))]
    assert errors == []


@st.composite
def mutations(draw: st.DrawFn) -> Any:
    """A contract with one key deleted, renamed, added or given a value of another type."""
    data = copy.deepcopy(yaml.safe_load(draw(st.sampled_from(CONTRACTS))))
    path = draw(st.sampled_from([path for path in places(data) if isinstance(path[-1], str)]))
    table, key = parent(data, path), path[-1]
    kind = draw(st.sampled_from(["delete", "rename", "add", "retype", "move"]))
    if kind == "delete":
        del table[key]
    elif kind == "rename":
        table[draw(st.sampled_from(["color", "sizes", key + "s", key.upper() + "_"]))] = table.pop(
            key
        )
    elif kind == "add":
        table[draw(st.sampled_from(["color", "sizes"]))] = draw(st.sampled_from([1, "x", [], {}]))
    elif kind == "move":
        words = [word for rows in KEYS.values() for word in rows]
        table[draw(st.sampled_from(sorted(set(words))))] = draw(st.sampled_from([1, "in", True]))
    else:
        table[key] = draw(st.sampled_from([[], [[]], {"color": 1}, [{}]]))
    return data


KEYS = {
    "": load.KEYS,
    "param": parse_params.PARAM_KEYS,
    "symbol": parse_params.SYMBOL_KEYS,
    "work": parse_params.WORK_KEYS,
    "role": parse_operations.ROLE_KEYS,
    "tile": parse_ports.MEMBER_KEYS,
    "buffer": parse_ports.BUFFER_KEYS,
    "named_barrier": parse_ports.BARRIER_KEYS,
    "numeric": parse_params.NUMERIC_KEYS,
    "repeat": parse_operations.REPEAT_KEYS,
}


@pytest.mark.parametrize("name", KEYS)
def test_schema_and_loader_have_the_same_clauses(name: str) -> None:
    table = SCHEMA["$defs"][name] if name else SCHEMA
    assert list(table["properties"]) == list(KEYS[name])
    needed = {key for key, needed in KEYS[name].items() if needed}
    assert set(table.get("required", ())) <= needed


def test_every_clause_is_described() -> None:
    silent = []
    for name, table in [("", SCHEMA), *SCHEMA["$defs"].items()]:
        for key, clause in table.get("properties", {}).items():
            target = clause.get("$ref", "").rpartition("/")[2]
            if "description" not in {**SCHEMA["$defs"].get(target, {}), **clause}:
                silent.append(f"{name}.{key}")
    assert set(silent) <= {".work", "role.registers", "repeat.body"}


def test_the_file_is_generated() -> None:
    path = ROOT / "pipelink_rules/contract/contract.schema.json"
    made = json.dumps(schema.contract_schema(), indent=1) + "\n"
    assert path.read_text() == made, "run: python docs/make_schema.py"


@pytest.mark.parametrize("space", parse_ports.SPACES)
def test_schema_and_loader_have_the_same_ports(space: str) -> None:
    (rule,) = (
        rule["then"]
        for rule in SCHEMA["$defs"]["port"]["allOf"]
        if rule["if"].get("properties") == {"space": {"const": space}}
    )
    assert {clause for clause, allowed in rule["properties"].items() if allowed is False} == {
        clause for clause, spaces in parse_ports.CLAUSES.items() if space not in spaces
    }


def test_schema_and_loader_have_the_same_words() -> None:
    assert SCHEMA["properties"]["arch"]["items"]["enum"] == list(TARGETS)
    assert SCHEMA["$defs"]["role"]["properties"]["converged"]["enum"] == list(
        parse_operations.CONVERGED
    )
    assert SCHEMA["$defs"]["role"]["properties"]["split"]["enum"] == list(parse_operations.SPLIT)
    tile = SCHEMA["$defs"]["tile"]["properties"]
    assert tile["swizzle"]["anyOf"][0]["enum"] == list(parse_ports.SWIZZLES)
    assert SCHEMA["$defs"]["buffer"]["properties"]["align"]["enum"] == list(parse_ports.ALIGNMENTS)
    flags = SCHEMA["$defs"]["numeric"]["properties"]["flags"]["properties"]
    assert set(flags) == set(parse_params.CODEGEN_FLAGS)


@settings(max_examples=250)
@given(mutations())
def test_schema_and_loader_refuse_the_same_structures(data: Any) -> None:
    """Both see one mutated contract; a number, word or name of a wrong value is the loader's."""
    text = yaml.safe_dump(data, sort_keys=False)
    found = structural(text)
    if found:
        assert not valid(data), found
    elif valid(data):
        return
    else:  # the schema refuses: the loader has some finding too, if not of the structure
        with pytest.raises(PipelinkError):
            parse_contract(text, "s.contract.yaml")


WORDS = ("x", "y", "->", "x.t", "lag", "1", "full", "mma", "store", "-1", "global")
WORDS += ("x[rows]", "[rows]", "y[rows, 1].tile", "x[", "[]")


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from([*parse_operations.VERBS, *WORDS]),
        min_size=1,
        max_size=5,
    ).map(" ".join)
)
def test_schema_and_loader_agree_on_the_form_of_operations(text: str) -> None:
    try:
        quoted = json.dumps(text)
        parse_contract(SAMPLE.replace("- wait x", f"- {quoted}"), "s.contract.yaml")
        codes = set()
    except PipelinkError as problem:
        codes = {item.code for item in problem.diagnostics}
    data = yaml.safe_load(SAMPLE)
    data["roles"]["compute"]["body"][0] = text
    assert valid(data) is ("PL0014" not in codes)
