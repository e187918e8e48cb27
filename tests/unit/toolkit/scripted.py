"""A toolkit of scripts: compiles by copying, links by joining; what it does wrong can be chosen."""

from __future__ import annotations

import stat
from pathlib import Path

_NVCC = """#!/bin/sh
case "$*" in
  *--version*) echo "Cuda compilation tools, release {short}, V{version}"; exit 0;;
  *--list-gpu-arch*) echo compute_90; exit 0;;
esac
echo run >> {root}/compiled
while [ $# -gt 0 ]; do case "$1" in -o) out=$2;; *.cu) source=$1;; esac; shift; done
{compile}
"""
_NVLINK = """#!/bin/sh
case "$*" in *--version*) echo "V{version}"; exit 0;; esac
{link}
"""
COMPILE = 'cp "$source" "$out"'
LINK = (
    'while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done;'
    ' printf "%s" .text.pl_toolkit_probe > "$out"'
)
DROPS_SUFFIX = (
    "echo \"ptxas probe.ptx, line 9; error : Instruction 'setmaxnreg.inc' not supported"
    " on .target 'sm_90'\" >&2; exit 1"
)
EMPTY_KERNEL = LINK.replace(".text.pl_toolkit_probe", "nothing")
IGNORES = LINK + "; echo \"(C7508) 'setmaxnreg' ignored; unable to determine register count\""


def fake_toolkit(
    root: Path, version: str = "13.5.37", compile_: str = COMPILE, link: str = LINK
) -> Path:
    """Makes a toolkit folder in the wheel layout."""
    short = ".".join(version.split(".")[:2])
    numbers = {"root": root, "version": version, "short": short}
    scripts = {
        "bin/nvcc": _NVCC.format(compile=compile_, **numbers),
        "bin/nvlink": _NVLINK.format(link=link, **numbers),
        "bin/ptxas": f"#!/bin/sh\necho V{version}\n",
        "bin/fatbinary": "#!/bin/sh\n",
        "nvvm/bin/cicc": "#!/bin/sh\n",
    }
    files = ["nvvm/libdevice/libdevice.10.bc", "lib/libnvvm.so.4", "lib/libcudadevrt.a"]
    for name, text in {**scripts, **dict.fromkeys([*files, "include/cuda_runtime.h"], "")}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if name in scripts:
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return root


def compilations(root: Path) -> int:
    """How often it has compiled."""
    log = root / "compiled"
    return len(log.read_text().splitlines()) if log.exists() else 0
