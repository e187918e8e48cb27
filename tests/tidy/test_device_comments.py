"""The public device headers can be turned into a reference: every declaration has its comment.

A comment is a block of `///` lines above the declaration: sentences, then `@threads`, `@ptx` and
`@operation` (of a contract) where they apply.  Every operation of the runtime has all three.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository_files import REPOSITORY

HEADERS = sorted((REPOSITORY / "components/include/pipelink").glob("*.cuh"))
DECLARATION = re.compile(
    r"(?:__host__ )?__device__ .*?\b(\w+)\(|(?:struct|enum)(?: \S+\))? (\w+)\b.*\{"
)
TAG = re.compile(r"/// @(\w+) ")


def declarations(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each function, struct and enum of a namespace, and the comment above it."""
    comment: list[str] = []
    for line in text.splitlines():
        if line.startswith("///"):
            comment.append(line)
        elif line.startswith("template <") and line != "template <>":
            continue
        elif found := DECLARATION.match(line):
            yield found[1] or found[2], comment
            comment = []
        elif line.startswith("template <>"):
            comment = ["/// a specialization"]
        else:
            comment = []


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_every_declaration_has_a_comment(header: Path) -> None:
    text = header.read_text(encoding="utf-8")
    overloads = set()
    for name, comment in declarations(text):
        assert comment or name in overloads, f"{name} has no `///` comment"
        overloads.add(name)


def test_every_runtime_operation_names_threads_ptx_and_contract_operation() -> None:
    text = (REPOSITORY / "components/include/pipelink/runtime.cuh").read_text(encoding="utf-8")
    found = dict(declarations(text))
    operations = {name for name in found if name.startswith("pl_")}
    assert operations == set(re.findall(r"\b(pl_\w+)\(", text))
    for name in operations:
        tags = [tag[1] for line in found[name] if (tag := TAG.match(line))]
        assert tags == ["threads", "ptx", "operation"], name


def test_the_header_of_the_glue_is_marked_internal() -> None:
    text = (REPOSITORY / "components/include/pipelink/glue.cuh").read_text(encoding="utf-8")
    assert text.startswith("// INTERNAL: ")
