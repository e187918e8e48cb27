"""Names, messages, headings and prose avoid what wording.yaml lists.

wording_hits.yaml has the number of hits that are still to be rewritten, by scope and entry.  A
number there only becomes smaller: `pytest tests/tidy/test_wording.py --update-golden` lowers it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from repository_files import PACKAGE, files, module_of, relative, text_of

HERE = Path(__file__).resolve().parent
LISTED: dict[str, dict[str, str]] = yaml.safe_load((HERE / "wording.yaml").read_text("utf-8"))
HITS = HERE / "wording_hits.yaml"
# The list itself, the license, and texts that quote others or record a run.
EXEMPT = re.compile(r"tests/tidy/|LICENSE$|benchmarks/results/|tests/(golden/.*/files|data)/")
PYTHON = ("*.py", "SConstruct", "SConscript", "*/SConscript")
CUDA = ("*.cu", "*.cuh")

Found = tuple[str, int, str]  # file, line, text


def snake(name: str) -> str:
    """Return `OwnCopies`, `own-copies` and `own_copies` as `_own_copies_`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"_{words.replace('-', '_').replace('.', '_').strip('_')}_"


def name_pattern(entry: str) -> re.Pattern[str]:
    start, end = not entry.startswith("*"), not entry.endswith("*")
    words = re.escape(entry.strip("*").strip("_"))
    if start and end:
        return re.compile(f"_{words}_")
    return re.compile(f"^_{words}_." if start else f"._{words}_$")


def listed_files(*patterns: str) -> list[Path]:
    return [path for path in files(*patterns) if not EXEMPT.search(relative(path))]


def names() -> Iterator[Found]:
    """Yield what files define (functions, classes, parameters, variables), and their own names."""
    for path in listed_files():
        yield relative(path), 1, snake(path.stem)
    for path in listed_files(*PYTHON):
        for node in ast.walk(module_of(path)):
            name = ""
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = node.name
            elif isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                name = node.attr
            if name:
                yield relative(path), getattr(node, "lineno", 1), snake(name)


@cache
def docstrings(path: Path) -> frozenset[int]:
    """Return the ids of the nodes that are docstrings."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = set()
    for node in ast.walk(module_of(path)):
        if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr):
            found.add(id(node.body[0].value))
    return frozenset(found)


def messages() -> Iterator[Found]:
    """Yield the texts with a space in the tool, and the expected texts of the golden cases."""
    for path in listed_files("*.py"):
        if PACKAGE in path.parents:
            for node in ast.walk(module_of(path)):
                if not isinstance(node, ast.Constant) or id(node) in docstrings(path):
                    continue
                if isinstance(node.value, str) and " " in node.value:
                    yield relative(path), node.lineno, node.value.lower()
    for path in listed_files("tests/golden/*/*/expect.txt"):
        yield from lines_of(path)


def headings() -> Iterator[Found]:
    """Yield the headings of pages."""
    for path in listed_files("*.md"):
        yield from (found for found in lines_of(path) if found[2].startswith("#"))


def prose() -> Iterator[Found]:
    """Yield docstrings, comments, and pages without their code and headings."""
    for path in listed_files(*PYTHON):
        for node in ast.walk(module_of(path)):
            if id(node) in docstrings(path) and isinstance(node, ast.Constant):
                yield relative(path), node.lineno, str(node.value).lower()
        for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
            if token.type == tokenize.COMMENT:
                yield relative(path), token.start[0], token.string.lower()
    for path in listed_files(*CUDA, "*.contract.yaml"):
        for file, line, text in lines_of(path):
            comment = re.search(r"(//|# ).*", text)
            if comment:
                yield file, line, comment[0]
    for path in listed_files("*.md"):
        fenced = False
        for file, line, text in lines_of(path):
            fenced ^= text.startswith("```")
            if not fenced and not text.startswith("#"):
                yield file, line, re.sub(r"`[^`]*`", "`", text)


def lines_of(path: Path) -> Iterator[Found]:
    for number, line in enumerate(text_of(path).splitlines(), 1):
        yield relative(path), number, line.lower()


SCOPES = {
    "names": (names, ["names"]),
    "messages": (messages, ["phrases", "messages"]),
    "headings": (headings, ["phrases", "messages"]),
    "prose": (prose, ["phrases"]),
}


def hits(scope: str) -> dict[str, list[str]]:
    """Return entry -> where it is found."""
    source, lists = SCOPES[scope]
    patterns = {
        entry: name_pattern(entry) if name == "names" else re.compile(rf"(?<!\w)(?:{entry})(?!\w)")
        for name in lists
        for entry in LISTED[name]
    }
    either = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in patterns.values()))
    found: dict[str, list[str]] = {}
    for file, line, text in source():
        if either.search(text):
            for entry, pattern in patterns.items():
                where = [f"{file}:{line}: {match[0]}" for match in pattern.finditer(text)]
                if where:
                    found.setdefault(entry, []).extend(where)
    return found


def replacement(entry: str) -> str:
    return next(names[entry] for names in LISTED.values() if entry in names)


@pytest.mark.parametrize("scope", SCOPES)
def test_nothing_new_is_written_that_is_never_right(
    scope: str, request: pytest.FixtureRequest
) -> None:
    left: dict[str, dict[str, int]] = yaml.safe_load(HITS.read_text("utf-8")) or {}
    found = hits(scope)
    allowed = Counter(left.get(scope, {}))
    if request.config.getoption("--update-golden"):
        left[scope] = {entry: min(n, len(found.get(entry, []))) for entry, n in allowed.items()}
        kept = {s: {e: n for e, n in numbers.items() if n} for s, numbers in left.items()}
        HITS.write_text(yaml.safe_dump({s: numbers for s, numbers in kept.items() if numbers}))
    wrong = {
        f"{entry} -> {replacement(entry)} ({len(where)} times, {allowed[entry]} are left)": where
        for entry, where in found.items()
        if len(where) > allowed[entry]
    }
    assert not wrong, yaml.safe_dump(wrong, width=200)


def test_every_entry_has_a_replacement_and_compiles() -> None:
    assert set(LISTED) == {"names", "phrases", "messages"}
    for entry, use in ((e, u) for listed in LISTED.values() for e, u in listed.items()):
        assert use
        assert not re.search(rf"\b(?:{entry.strip('*')})\b", use), f"{entry}: {use}"


@pytest.mark.parametrize(
    ("entry", "matching", "other"),
    [
        ("own", ["own_barriers", "OwnCopies", "is_own"], ["owner", "unknown"]),
        ("words_*", ["words_order", "WordsOrder"], ["words", "keywords_of", "swords_order"]),
        ("begun", ["Begun", "begun_at", "has_begun"], ["begin", "begunner"]),
        ("work_item", ["work_item", "WorkItem"], ["work_items", "item", "network_item"]),
    ],
)
def test_names_match_whole_words(entry: str, matching: list[str], other: list[str]) -> None:
    pattern = name_pattern(entry)
    assert [name for name in matching + other if pattern.search(snake(name))] == matching
