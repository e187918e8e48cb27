"""A project in a folder of its own: scons runs in it, and what ran is recorded."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
_STEP = re.compile(
    r"^(Header|CudaCompile|ProbeCompile|Probe|Prebuilt|Declare|Check|Collect|Place|Glue|DeviceLink"
    r"|Describe|Twin) +(.+)$"
)
_RETRIEVED = re.compile(r"^Retrieved `(.+)' from cache$")


@dataclass(frozen=True)
class Run:
    """One finished scons."""

    status: int
    text: str  # stdout and stderr
    steps: tuple[str, ...]  # "Place scaled", in the order they began
    retrieved: tuple[str, ...]
    commands: Counter[str]  # what the tools were called for: "nvcc scale.cu", "nvlink scaled"

    def of(self, mnemonic: str) -> list[str]:
        """The subjects of the steps of one kind, sorted."""
        return sorted(s.split(" ", 1)[1] for s in self.steps if s.startswith(f"{mnemonic} "))


@dataclass
class Project:
    """A folder with an SConstruct."""

    root: Path
    toolkit: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scratch = self.root / "tmp"
        self.scratch.mkdir(exist_ok=True)

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A scons that runs; its record begins empty."""
        (self.scratch / "log.jsonl").unlink(missing_ok=True)
        environment = {**os.environ, "PIPELINK_CUDA": str(self.toolkit), "NO_COLOR": "1"}
        environment |= {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(self.scratch)}
        environment |= self.environment
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a hundred starts: reading code counts
        return subprocess.Popen(
            [sys.executable, "-m", "SCons", "-Q", *words],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Run:
        """What it did, once it has ended."""
        text, _ = process.communicate(timeout=120)
        steps = tuple(
            f"{match[1]} {_short(match[2])}"
            for line in text.splitlines()
            if (match := _STEP.match(line))
        )
        retrieved = tuple(m[1] for line in text.splitlines() if (m := _RETRIEVED.match(line)))
        commands = Counter(filter(None, map(_command, self.calls())))
        return Run(process.returncode, text, steps, retrieved, commands)

    def run(self, *words: str) -> Run:
        """scons, to its end, whatever comes of it."""
        return self.finish(self.start(*words))

    def build(self, *words: str) -> Run:
        """scons, which must succeed."""
        run = self.run(*words)
        assert run.status == 0, run.text
        return run

    def calls(self) -> list[dict[str, Any]]:
        """Every call of a tool, as the tool recorded it."""
        log = self.scratch / "log.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []

    def wait_for(self, tool: str, word: str, seconds: float = 30) -> None:
        """Until a tool has been called with an argument that holds `word`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for call in self.calls():
                if call["tool"] == tool and any(word in part for part in call["argv"]):
                    return
            time.sleep(0.02)
        raise AssertionError(f"{tool} was not called with {word}")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replaces text in a file; it must be there."""
        path = self.root / name
        text = path.read_text()
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new))

    def append(self, name: str, text: str) -> None:
        """Adds text to a file."""
        with open(self.root / name, "a") as stream:
            stream.write(text)

    def up_to_date(self) -> bool:
        """What `scons -q` says."""
        return self.run("-q").status == 0

    def digests(self, *suffixes: str) -> dict[str, str]:
        """Build file -> sha256, of those with one of the suffixes."""
        found = {}
        for path in sorted((self.root / "build").glob("sm_*/**/*")):
            if path.is_file() and path.name.endswith(suffixes):
                name = path.relative_to(self.root).as_posix()
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def copy_runner(self) -> Project:
        """Another user of the same folder, with a record of its own."""
        other = Project(self.root, self.toolkit, {**self.environment})
        other.scratch = self.root / "tmp2"
        other.scratch.mkdir(exist_ok=True)
        return other

    def cpu_seconds(self, *words: str) -> float:
        """Processor time of one run: other work on the machine does not count."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.run(*words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def copy(self, root: Path, *, built: bool = True) -> Project:
        """The same project elsewhere, with or without what was built."""
        left_out = () if built else ("build",)
        shutil.copytree(
            self.root, root, symlinks=True, ignore=shutil.ignore_patterns("tmp", "tmp2", *left_out)
        )
        return Project(root, self.toolkit, dict(self.environment))


def _short(subject: str) -> str:
    """`//kernels:scale D=1024 for sm_90a` -> `scale`; other targets than sm_90a stay."""
    subject = re.sub(r"^(@\w+)?//[\w/]*:", "", subject)
    name, _, arch = subject.rpartition(" for ")
    words = name.split()
    stem = words[-1] if name.startswith("glue of") else words[0]
    prefix = "glue of " if name.startswith("glue of") else ""
    return f"{prefix}{stem}" + ("" if arch == "sm_90a" else f" {arch}")


def _command(call: dict[str, Any]) -> str:
    """What a call was for; "" for those that only look: versions, listings, disassembly."""
    argv, tool = call["argv"], call["tool"]
    if "pl_toolkit" in " ".join(argv) or any("/.toolkit/" in part for part in [call["cwd"], *argv]):
        return ""
    if tool == "nvcc" and "--fatbin" in argv:
        source = next(part for part in argv if part.endswith(".cu"))
        return f"nvcc {source.rpartition('/')[2]}"
    if tool == "nvlink" and "-o" in argv:
        if "-emit-ptx" in argv:
            return "nvlink probe"
        glue = next(part for part in argv if part.endswith(".glue.fatbin"))
        return f"nvlink {glue.rpartition('/')[2].removesuffix('.glue.fatbin')}"
    return "ptxas probe" if tool == "ptxas" and "-o" in argv else ""
