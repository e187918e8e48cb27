"""Which stage does a file belong to, and where is the repository it comes from?"""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.model.source_span import Span


def root_of(arguments: argparse.Namespace, file: Path) -> Path:
    """`--root`, or the nearest folder above `file` with an SConstruct, or the working directory."""
    if arguments.root:
        return Path(arguments.root)
    for folder in file.resolve().parents:
        if (folder / "SConstruct").is_file():
            arguments.root = str(folder)
            return folder
    return Path.cwd()


def existing(name: str) -> Path:
    """The path, PL0010 where nothing is there."""
    path = Path(name)
    if not path.exists():
        raise error("PL0010", f"there is no file {name}", Span(name), helps=("build it first",))
    return path


def stem_of(path: Path, suffix: str) -> str:
    """`gemm` of `gemm.program.json`."""
    return path.name.removesuffix(suffix)


def megakernel_in(name: str, suffix: str) -> Path:
    """The one `*<suffix>` file of a build folder, or the file itself; PL0010 otherwise."""
    path = existing(name)
    if path.is_file():
        return path
    found = sorted(path.glob(f"*{suffix}"))
    if len(found) == 1:
        return found[0]
    raise error(
        "PL0010",
        f"{name} is not the folder of one built megakernel",
        Span(name),
        expected=f"one *{suffix}",
        found=", ".join(item.name for item in found) or "none",
        helps=("name the file, or a folder like build/sm_90a/megakernels/gemm",),
    )
