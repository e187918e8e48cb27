"""Commands and snippets of README.md, CONTRIBUTING.md and docs/ work as written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from checkout import REPOSITORY, Checkout
from shipped_declarations import megakernels

from pipelink_rules.contract.load import load_contract

pytestmark = pytest.mark.live

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{p.name}" for p in (REPOSITORY / "docs").glob("*.md")),
]


@dataclass(frozen=True)
class Fence:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    before: str  # the paragraph in front of it


def fences(page: str) -> Iterator[Fence]:
    path = REPOSITORY / page
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    start, language, paragraph = None, "", ""
    for number, line in enumerate(lines, 1):
        opened = re.match(r"```(\w*)$", line)
        if start is None and opened:
            start, language = number, opened[1]
        elif start is not None and line == "```":
            yield Fence(page, start, language, "\n".join(lines[start : number - 1]), paragraph)
            start = None
        elif start is None and line.strip():
            paragraph = line
    assert start is None, f"{page}:{start}: the block is not closed"


def commands() -> list[Any]:
    """Every `$ ` line of a console block, in page order."""
    return [
        pytest.param(fence.page, line[2:], id=f"{fence.page}:{line[2:]}")
        for page in PAGES
        if page != "docs/contracts.md"  # run as a whole below
        for fence in fences(page)
        if fence.language == "console"
        for line in fence.text.splitlines()
        if line.startswith("$ ")
    ]


@pytest.mark.parametrize(("page", "command"), commands())
def test_command_works(page: str, command: str, built: Checkout) -> None:
    if command.startswith("pip install"):
        # .ci/run does the installation in a fresh environment; the rest of the line runs here.
        if command.endswith("pytest"):
            assert command in (REPOSITORY / ".ci/run").read_text(encoding="utf-8")
            return
        command = command.partition("&&")[2].strip()
    command = re.sub(r"^pipelink\b", "python -m pipelink_rules.cli", command)
    done = built.run(command)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert (done.stdout + done.stderr).strip()


def test_readme_declares_what_the_repository_declares() -> None:
    (block,) = [f for f in fences("README.md") if f.text.startswith("env.Megakernel(")]
    call = ast.parse(block.text).body[0].value  # type: ignore[attr-defined]
    shown = {item.arg: ast.literal_eval(item.value) for item in call.keywords}
    real = megakernels()["gemm_bias_gelu"]
    assert shown == {key: real[key] for key in shown}


def test_readme_launch_snippet_names_what_the_manifest_takes(built: Checkout) -> None:
    from pipelink_rules.files.codec import read_json
    from pipelink_rules.model.linked_kernel import Manifest

    (block,) = [f for f in fences("README.md") if "pipelink_rules.launch" in f.text]
    tree = ast.parse(block.text)
    (path,) = [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load"
    ]
    manifest = read_json(built.path / path, Manifest)
    call = tree.body[-1].value  # type: ignore[attr-defined]
    assert {item.arg for item in call.keywords} == {tensor.name for tensor in manifest.tensors}


def test_the_component_of_contracts_page_builds(toolkit: object, tmp_path: Path) -> None:
    """Build what docs/contracts.md shows, in an empty folder."""
    names = {"yaml": "scale.contract.yaml", "cuda": "scale.cu", "python": "SConstruct"}
    blocks = [f for f in fences("docs/contracts.md") if f.language in names]
    assert [f.language for f in blocks] == ["yaml", "cuda", "python"]
    for block in blocks:
        assert names[block.language] in block.before
        (tmp_path / names[block.language]).write_text(block.text + "\n", encoding="utf-8")
    load_contract(tmp_path / "scale.contract.yaml")
    (command,) = [f.text for f in fences("docs/contracts.md") if f.language == "console"]
    checkout = Checkout(tmp_path)
    done = checkout.run(f"PYTHONPATH={REPOSITORY} {command.removeprefix('$ ')}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert (tmp_path / "build/sm_90a/megakernels/scaled_gemm/scaled_gemm.cubin").exists()


def test_contracts_page_lists_every_operation() -> None:
    from pipelink_rules.contract.parse_operations import VERBS

    text = (REPOSITORY / "docs/contracts.md").read_text(encoding="utf-8")
    assert not [verb for verb in VERBS if f"`{verb} " not in text]
