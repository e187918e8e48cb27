"""docs/debugging.md shows what the commands print for the files in docs/examples/."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_gemm import example_trace

from pipelink_rules.cli import main
from pipelink_rules.files.codec import to_json

DOCS = Path(__file__).parents[3] / "docs"
STATUS = {"trace": 0, "record": 1}


@pytest.mark.parametrize("name", STATUS)
def test_the_page_shows_what_the_command_prints(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = DOCS / "examples" / f"gemm.{name}.json"
    assert main([name, str(file)]) == STATUS[name]
    page = (DOCS / "debugging.md").read_text(encoding="utf-8")
    assert f"```text\n{capsys.readouterr().out}```" in page


def test_the_trace_is_the_one_that_the_tests_play() -> None:
    file = DOCS / "examples" / "gemm.trace.json"
    assert file.read_text(encoding="utf-8") == to_json(example_trace())
