"""The state of one build: options, lock, cache, toolkit, declarations, diagnostics."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelink_rules.actions.labels import LIBRARY, Label
from pipelink_rules.diagnostics.diagnostic import CheckResult, Diagnostic, PipelinkError
from pipelink_rules.files.installed_files import shipped_root
from pipelink_rules.model.source_span import Span
from pipelink_rules.scons.lock import BuildLock, Journal
from pipelink_rules.scons.options import CACHE, Options

if TYPE_CHECKING:
    from pipelink_rules.scons.action import Action
    from pipelink_rules.toolkit.toolkit import Toolkit


BUILD = "build"  # the build directory, below the top
GIB = 1 << 30
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class IncludeScope:
    """What a source may include: absolute -I folders in order, and declared headers by path."""

    roots: tuple[str, ...]
    declared: dict[str, Any]  # absolute path -> node


@dataclass(frozen=True)
class ComponentRule:
    """A declared component.  Files are SCons nodes; folders are paths as the compiler gets them."""

    label: Label
    contract: Any = None  # node; None = headers only
    srcs: tuple[Any, ...] = ()
    hdrs: tuple[Any, ...] = ()
    deps: tuple[Label, ...] = ()
    includes: tuple[str, ...] = ()
    copts: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()  # also for those that depend on it
    local_defines: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()  # () = all of the contract
    prebuilt: tuple[str, ...] = ()  # sidecars of finished objects; then there are no sources
    span: Span | None = None


@dataclass(frozen=True)
class MegakernelRule:
    """A declared megakernel, as written: read when all declarations are known."""

    label: Label
    attributes: tuple[tuple[str, Any], ...]
    span: Span | None
    text: str  # of the SConscript, for places in findings


@dataclass(frozen=True)
class RuntimeRule:
    """A build of the device runtime."""

    label: Label
    srcs: tuple[Any, ...]
    hdrs: tuple[Any, ...]
    includes: tuple[str, ...]
    defines: tuple[str, ...]


@dataclass(frozen=True)
class Declared:
    """What a declaration returns."""

    label: str
    nodes: tuple[Any, ...]

    def __str__(self) -> str:
        return self.label


@dataclass
class Session:
    """One run of scons over one build directory."""

    top: Path
    options: Options
    quiet: bool = False  # nothing is built: -h, -n, -q, -c
    components: dict[Label, ComponentRule] = field(default_factory=dict)
    megakernels: dict[str, MegakernelRule] = field(default_factory=dict)
    runtimes: dict[Label, RuntimeRule] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)  # by first target
    scopes: dict[str, IncludeScope] = field(default_factory=dict)  # by first target
    findings: list[Diagnostic] = field(default_factory=list)  # of declarations, until all are read
    reported: list[Diagnostic] = field(default_factory=list)
    finished: bool = False

    def __post_init__(self) -> None:
        self.build = self.top / BUILD
        self.lock = BuildLock(self.build)
        self.journal = Journal(self.build, self.top)
        self.budget = Budget(memory_bytes())
        self._toolkit: Toolkit | None = None
        self._packages: set[str] = set()

    def __semi_deepcopy__(self) -> Session:
        return self  # env.Clone() shares the run

    @property
    def toolkit(self) -> Toolkit:
        """The CUDA toolkit, located on first use."""
        if self._toolkit is None:
            from pipelink_rules.toolkit.find import find_toolkit

            self._toolkit = find_toolkit(self.build)
        return self._toolkit

    @property
    def cache_folder(self) -> Path:
        """The folder of the object cache."""
        chosen = self.options.cache
        return Path(chosen).absolute() if chosen else self.build / CACHE

    def report(self, findings: Iterable[Diagnostic], outcome: str = "") -> None:
        """Print diagnostics without interleaving; `outcome`: the consequence of the errors."""
        from pipelink_rules.diagnostics.render import render_text

        findings = tuple(findings)
        self.reported += findings
        color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        sys.stdout.flush()
        sys.stderr.write(render_text(findings, outcome=outcome, color=color))
        sys.stderr.flush()

    def say(self, text: str) -> None:
        """Print the output of a tool without interleaving."""
        if text:
            sys.stdout.flush()
            sys.stderr.write(text.rstrip() + "\n")

    def canonical(self, label: Label) -> Label:
        """Return the label; `@pipelink//...` is this repository if the library itself is built."""
        if label.repository == LIBRARY and shipped_root() == self.top:
            return Label("", label.package, label.name)
        return label

    def library(self, env: Any, package: str) -> None:
        """Read the declarations of one label package of the library, once."""
        script = shipped_root() / package / "SConscript"
        if package in self._packages or not script.is_file():
            return
        self._packages.add(package)
        env.SConscript(str(script), exports={"env": env}, must_exist=True)


# One session per build directory in a process: SCons itself has one list of targets and one
# signature file however many environments there are, and the lock must not be taken twice.
sessions: dict[Path, Session] = {}  # by top


def write_document(
    path: Path, form: str, findings: Iterable[Diagnostic], kept: Iterable[str] = ()
) -> None:
    """Write all diagnostics of a build to one file; form: json or sarif.

    kept: check files with the warnings of compositions that did not change.
    """
    from pipelink_rules.diagnostics.render import render_json
    from pipelink_rules.diagnostics.sarif import render_sarif
    from pipelink_rules.files.atomic import write_text
    from pipelink_rules.files.codec import read_json

    found = list(findings)
    for name in kept:
        with suppress(PipelinkError):  # not written, or not by this version
            found += read_json(name, CheckResult).diagnostics
    write_text(path, render_sarif(found) if form == "sarif" else render_json(found))


def memory_bytes() -> int:
    """Memory of this machine or container."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in _LIMITS:
        try:
            return min(machine, int(Path(name).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such file; "max"
            continue
    return machine


def jobs(processors: int, memory: int) -> int:
    """Return the default of `-j`: the compilation of a small component needs 1 GiB."""
    return max(1, min(processors, memory // GIB))


class Budget:
    """Memory that running actions share.  An action that needs more than all of it runs alone."""

    def __init__(self, total: int):
        self._total = total
        self._free = total
        self._changed = threading.Condition()

    @contextmanager
    def reserve(self, amount: int) -> Iterator[None]:
        """Wait until `amount` bytes are free, and reserve them."""
        amount = min(amount, self._total)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= amount)
            self._free -= amount
        try:
            yield
        finally:
            with self._changed:
                self._free += amount
                self._changed.notify_all()
