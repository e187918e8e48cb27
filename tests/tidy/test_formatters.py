"""Formatters, linters and type checker find nothing: the commands of .pre-commit-config.yaml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml
from repository_files import REPOSITORY, files

CUDA = ("*.cu", "*.cuh")


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def tool(name: str) -> str:
    """The program that the extra `test` installs beside this interpreter."""
    return str(Path(sys.executable).with_name(name))


def test_ruff_finds_nothing() -> None:
    run(tool("ruff"), "check", ".")


def test_python_is_formatted() -> None:
    run(tool("ruff"), "format", "--check", ".")


def test_types_are_consistent() -> None:
    run(tool("mypy"), "pipelink_rules")


def test_cuda_is_formatted() -> None:
    sources = [str(path) for path in files(*CUDA)]
    assert len(sources) > 40
    run(tool("clang-format"), "--dry-run", "--Werror", *sources)


def test_pre_commit_runs_what_is_tested_here() -> None:
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = {hook["id"]: hook["entry"] for repo in config["repos"] for hook in repo["hooks"]}
    assert hooks == {
        "ruff-check": "ruff check --fix",
        "ruff-format": "ruff format",
        "mypy": "mypy pipelink_rules",
        "clang-format": "clang-format -i",
        "tidy": "pytest -q -n 0 tests/tidy",
    }
