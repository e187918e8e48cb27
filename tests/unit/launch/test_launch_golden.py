"""tests/golden/launch/*: a call described as JSON, and the whole text that it is answered with.

case.json: `arrays` replaces arguments (null: left out), `scalars` likewise, `manifest` and
`driver` change the megakernel and the machine, `cubin` its file, `report` is what a watchdog wrote.
The page of the code quotes the same text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_arrays import Capsule, TorchLike
from fake_driver import FakeDriver
from manifests import saved
from test_launch_call import arguments

from pipelink_rules.diagnostics.render import exit_code, render_text
from pipelink_rules.launch import LaunchError, load

ROOT = Path(__file__).parents[3]
CASES = sorted((ROOT / "tests" / "golden" / "launch").glob("PL*"))


def _array(described: dict[str, Any]) -> Any:
    words = {key: tuple(v) if isinstance(v, list) else v for key, v in described.items()}
    kind = words.pop("kind", "torch")
    return Capsule(**words) if kind == "dlpack" else TorchLike(**words)


def _answer(case: dict[str, Any], folder: Path) -> LaunchError:
    driver = FakeDriver(parameters=8, **{
        key: tuple(value) if isinstance(value, list) else value
        for key, value in case.get("driver", {}).items()
    })  # fmt: skip
    manifest = saved(folder, **{
        key: tuple(tuple(item) for item in value) if isinstance(value, list) else value
        for key, value in case.get("manifest", {}).items()
    })  # fmt: skip
    given = arguments(**case.get("scalars", {}))
    for name, described in case.get("arrays", {}).items():
        given[name] = None if described is None else _array(described)
    given = {name: value for name, value in given.items() if value is not None}
    if "cubin" in case:
        (folder / "gemm_bias.cubin").write_text(case["cubin"])
    with pytest.raises(LaunchError) as caught:
        kernel = load(manifest, driver=driver)
        kernel(**given, stream=case.get("stream"))
        driver.report(*case.get("report", ()))
        kernel.check()
    return caught.value


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_golden(folder: Path, tmp_path: Path) -> None:
    case = json.loads((folder / "case.json").read_text())
    problem = _answer(case, tmp_path)
    text = render_text(problem.diagnostics)
    assert text == (folder / "expect.txt").read_text()
    code = folder.name.partition("_")[0]
    assert {item.code for item in problem.diagnostics} == {code}
    assert exit_code(problem.diagnostics) == 1
    page = (ROOT / "docs" / "errors" / f"{code}.md").read_text()
    assert text.partition("\n\n")[0] in page, f"{code}.md quotes another message"


def test_every_code_has_a_case() -> None:
    from pipelink_rules.diagnostics.codes.f14_launch import CODES

    assert [folder.name for folder in CASES] == [f"{code.id}_{code.slug}" for code in CODES]
