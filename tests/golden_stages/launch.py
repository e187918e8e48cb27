"""A call of a megakernel described in case.json, on a driver without a GPU -> diagnostics.

`arrays` replaces arguments (null: left out), `scalars` likewise, `manifest` and `driver` change the
megakernel and the machine, `cubin` its file, `report` is what a watchdog wrote, `method` is called
instead of the kernel.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "unit" / "launch"))

from fake_arrays import Capsule, TorchLike
from fake_driver import FakeDriver
from manifests import saved
from test_launch_call import arguments

from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.launch import LaunchError, load


def run(case: Path) -> tuple[Diagnostic, ...]:
    """The findings of the call; none where it was launched."""
    words = json.loads((case / "case.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        try:
            _call(words, Path(folder))
        except LaunchError as problem:
            return problem.diagnostics
    return ()


def _call(words: dict[str, Any], folder: Path) -> None:
    driver = FakeDriver(parameters=8, **_tuples(words.get("driver", {})))
    manifest = saved(folder, **_tuples(words.get("manifest", {})))
    given = arguments(**words.get("scalars", {}))
    for name, described in words.get("arrays", {}).items():
        given[name] = None if described is None else _array(_tuples(described))
    given = {name: value for name, value in given.items() if value is not None}
    if "cubin" in words:
        (folder / "gemm_bias.cubin").write_text(words["cubin"])
    kernel = load(manifest, driver=driver)
    launch = getattr(kernel, words["method"]) if "method" in words else kernel
    launch(**given, stream=words.get("stream"))
    driver.report(*words.get("report", ()))
    kernel.check()


def _array(words: dict[str, Any]) -> Any:
    kind = words.pop("kind", "torch")
    return Capsule(**words) if kind == "dlpack" else TorchLike(**words)


def _tuples(value: Any) -> Any:
    """JSON lists as the tuples that nouns are made of."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
