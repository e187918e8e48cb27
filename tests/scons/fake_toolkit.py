"""A toolkit folder whose tools are `fake/tool.py`: PIPELINK_CUDA points to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_TOOL = Path(__file__).parent / "fake/tool.py"
_FILES = (
    "bin/fatbinary",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
    "nvvm/lib64/libnvvm.so",
    "lib/libcudadevrt.a",
    "include/cuda_runtime.h",
)


def make_toolkit(root: Path) -> Path:
    """Writes the folder."""
    text = f"#!{sys.executable} -IS\n{_TOOL.read_text()}"
    for name in _FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#pragma once\n" if name.endswith(".h") else "fake\n")
    (root / "roles.ptx").write_text(_TOOL.with_name("roles.ptx").read_text())
    for name in ("nvcc", "nvlink", "ptxas", "cuobjdump", "nvdisasm"):
        path = root / "bin" / name
        path.write_text(text)
        os.chmod(path, 0o755)
    return root
