"""docs/instrumented.md shows what the commands print for the files in docs/examples/."""

from __future__ import annotations

from pathlib import Path

import pytest
from noted import example_hang, example_trace

from pipelink_rules.cli import main
from pipelink_rules.files.codec import to_json

DOCS = Path(__file__).parents[3] / "docs"
EXAMPLES = {"trace": example_trace, "record": example_hang}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_shows_what_the_command_prints(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = DOCS / "examples" / f"gemm.{name}.json"
    assert file.read_text(encoding="utf-8") == to_json(EXAMPLES[name]())
    assert main([name, str(file)]) == (0 if name == "trace" else 1)
    page = (DOCS / "instrumented.md").read_text(encoding="utf-8")
    assert f"```text\n{capsys.readouterr().out}```" in page
