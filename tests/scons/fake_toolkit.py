"""A toolkit folder whose tools are `fake/tool.py`: PIPELINK_CUDA points to it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TOOL = Path(__file__).parent / "fake/tool.py"
_FILES = (
    "bin/fatbinary",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
    "nvvm/lib64/libnvvm.so",
    "lib/libcudadevrt.a",
    "include/cuda_runtime.h",
)


@dataclass(frozen=True)
class FakeToolkit:
    """The folder, and what its tools were called with."""

    root: Path

    def calls(self) -> list[dict[str, Any]]:
        """Every call since the last `forget`, in order."""
        log = self.root / "log.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []

    def forget(self) -> None:
        """Empties the record."""
        (self.root / "log.jsonl").unlink(missing_ok=True)

    def steer_link(self, **how: Any) -> None:
        """`sleep=3`: a link takes that many seconds."""
        (self.root / "nvlink.json").write_text(json.dumps(how))

    def change(self) -> None:
        """A new release of the compiler."""
        with open(self.root / "nvvm/bin/cicc", "a") as stream:
            stream.write("newer\n")


def make_toolkit(root: Path) -> FakeToolkit:
    """Writes the folder."""
    text = f"#!{sys.executable} -IS\n{_TOOL.read_text()}"
    for name in _FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#pragma once\n" if name.endswith(".h") else "fake\n")
    for name in ("nvcc", "nvlink", "ptxas", "cuobjdump", "nvdisasm"):
        path = root / "bin" / name
        path.write_text(text)
        os.chmod(path, 0o755)
    return FakeToolkit(root)
