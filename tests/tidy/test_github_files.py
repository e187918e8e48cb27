"""Workflows and issue forms are valid, and run commands that exist.  They are never run here."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from repository_files import REPOSITORY

GITHUB = REPOSITORY / ".github"
SCHEMAS = {
    "workflows/ci.yml": "github-workflows",
    "workflows/release.yml": "github-workflows",
    "ISSUE_TEMPLATE/bug.yml": "github-issue-forms",
    "ISSUE_TEMPLATE/wrong_verdict.yml": "github-issue-forms",
    "ISSUE_TEMPLATE/new_component.yml": "github-issue-forms",
    "ISSUE_TEMPLATE/config.yml": "github-issue-config",
}


class Loader(yaml.SafeLoader):
    """YAML 1.2 as GitHub reads it: `on` is a word, not a boolean."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != "tag:yaml.org,2002:bool"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))


def read(name: str) -> Any:
    return yaml.load((GITHUB / name).read_text(encoding="utf-8"), Loader)


def commands(workflow: str) -> str:
    jobs = read(workflow)["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


@pytest.mark.parametrize("name", SCHEMAS)
def test_file_matches_its_schema(name: str) -> None:
    vendored = files("check_jsonschema.builtin_schemas.vendor")
    schema = json.loads((vendored / f"{SCHEMAS[name]}.json").read_text(encoding="utf-8"))
    jsonschema.validate(read(name), schema)


def test_every_file_has_a_schema() -> None:
    found = {path.relative_to(GITHUB).as_posix() for path in GITHUB.rglob("*.yml")}
    assert found == set(SCHEMAS)


def test_invalid_workflow_is_rejected() -> None:
    vendored = files("check_jsonschema.builtin_schemas.vendor")
    schema = json.loads((vendored / "github-workflows.json").read_text(encoding="utf-8"))
    workflow = read("workflows/ci.yml")
    workflow["jobs"]["full"]["needs"] = {"job": "quick"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(workflow, schema)


def test_ci_runs_the_commands_of_the_repository() -> None:
    text = commands("workflows/ci.yml")
    assert ".ci/run" in text and "pytest -m quick --time-limit=120" in text
    assert "--time-limit=900" in (REPOSITORY / ".ci/run").read_text(encoding="utf-8")
    assert Path(REPOSITORY / ".ci/run").stat().st_mode & 0o111


def test_contributing_says_that_workflows_are_untested() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.search(r"workflows.*never\s+been\s+run", page, re.S)
