"""Compare what two revisions produce: golden texts, generated glue, machine code.

    python -m benchmarks.measure.same_output 8c79a23 HEAD

Each revision is built by its own rules in a checkout of its own; a folder is taken as a finished
build.  Hashes in symbol names are left out of the comparison, since they cover the text of the
contract; everything else has to be equal.  Prints a table, exits with 1 where machine code differs.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelink_rules.link.elf import Elf

ROOT = Path(__file__).resolve().parents[2]

HASH = re.compile(r"(?<=_)[0-9a-f]{12}\b|\b[0-9a-f]{64}\b")


@dataclass(frozen=True)
class Outputs:
    """What one revision produces: megakernel and target -> text, or code of each section."""

    glue: dict[str, str]
    code: dict[str, dict[str, bytes]]


def build(revision: str, work: Path) -> Path:
    """The build folder of a revision."""
    if Path(revision).is_dir():
        return Path(revision)
    checkout = work / revision
    subprocess.run(
        ["git", "worktree", "add", "--detach", "-f", str(checkout), revision], cwd=ROOT, check=True
    )
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run([sys.executable, "-m", "SCons", "-Q"], cwd=checkout, env=environment, check=True)
    return checkout / "build"


def outputs(build_folder: Path) -> Outputs:
    """Glue and code of all megakernels in a build folder."""
    glue, code = {}, {}
    for path in sorted(build_folder.glob("*/megakernels/*/*.cubin")):
        if path.name.count(".") > 1:  # a twin
            continue
        name = f"{path.stem} {path.parts[-4]}"
        glue[name] = HASH.sub("#", path.with_suffix(".glue.cu").read_text(encoding="utf-8"))
        code[name] = {
            HASH.sub("#", section.name): section.data
            for section in Elf(path.read_bytes()).sections
            if section.name.startswith(".text") or section.name.startswith(".nv.constant")
        }
    return Outputs(glue, code)


def goldens(revision: str) -> dict[str, str]:
    """Case -> expected text, as committed."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", revision, "tests/golden"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    texts = {}
    for name in listed:
        if name.endswith("expect.txt"):
            shown = subprocess.run(
                ["git", "show", f"{revision}:{name}"], cwd=ROOT, capture_output=True, check=True
            )
            texts[name] = shown.stdout.decode()
    return texts


def changed_lines(before: str, after: str) -> int:
    """How many lines a unified diff adds and removes."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in lines)


def rows(before: Outputs, after: Outputs) -> Iterator[tuple[str, str, str]]:
    """Megakernel, its glue, its machine code."""
    for name in sorted({*before.code, *after.code}):
        if name not in before.code or name not in after.code:
            yield name, "only one side", "only one side"
            continue
        lines = changed_lines(before.glue[name], after.glue[name])
        same = before.code[name] == after.code[name]
        yield name, f"{lines} lines differ" if lines else "equal", "equal" if same else "differs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        try:
            made = [
                outputs(build(name, Path(work))) for name in (arguments.before, arguments.after)
            ]
        finally:
            subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
    failed = False
    print(f"{'megakernel':42} {'glue':20} machine code")
    for name, glue, code in rows(*made):
        print(f"{name:42} {glue:20} {code}")
        failed |= code != "equal"
    if not any(Path(name).is_dir() for name in (arguments.before, arguments.after)):
        old, new = goldens(arguments.before), goldens(arguments.after)
        same = sum(old[name] == new.get(name) for name in old)
        print(f"golden texts: {same} of {len(old)} equal, {len(new)} now")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
