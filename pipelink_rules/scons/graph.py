"""The build graph: one node per action, which depends on exactly what the action reads.

    declaration ─▶ check ┄▶ variants ─▶ collect ─▶ place ─▶ glue ─▶ link + audit ─▶ manifest, map
                   (before)   compile + probe        │                ▲
                              runtime ───────────────┼────────────────┘
                                                  plan.json: no places, no prose

Besides its files every node depends on a Value: its request, the version of the rules
and, where a tool runs, the fingerprint of the toolkit.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from SCons.Scanner import ScannerBase

from pipelink_rules.actions import labels, paths
from pipelink_rules.actions.build_key import tool_version
from pipelink_rules.actions.header_deps import includes_of, resolve
from pipelink_rules.actions.requests import RequestedVariant
from pipelink_rules.files.installed_files import shipped_root
from pipelink_rules.model.variant import Variant
from pipelink_rules.scons.action import Action
from pipelink_rules.scons.session import BUILD, ComponentRule, IncludeScope, RuntimeRule, Session

if TYPE_CHECKING:
    from pipelink_rules.actions.compile_actions import CompileRequest


Run = Callable[[tuple[str, ...]], None]


@dataclass(frozen=True)
class Headers:
    """What a source may include: -I folders as the compiler gets them, and declared headers."""

    folders: tuple[str, ...] = ()
    nodes: tuple[Any, ...] = ()
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeRequest:
    """A node: what it does, the files it writes and reads, and what else its result depends on."""

    stage: str  # whose sources are part of the signature
    action: Action
    targets: Sequence[str]  # below the build directory
    sources: Sequence[Any]  # SCons nodes
    key: Sequence[str]  # its request
    headers: Headers | None = None  # what its source may include
    tool: bool = False  # whether the toolkit is part of the signature


@dataclass
class Graph:
    """The nodes of one run."""

    env: Any
    session: Session
    component: Callable[[labels.Label], ComponentRule | None]
    fingerprint: str
    folders: dict[str, labels.Label] = field(default_factory=dict)  # variant -> its component
    _headers: dict[labels.Label, Headers] = field(default_factory=dict)

    def add(self, request: NodeRequest) -> list[Any]:
        """Add one node; return its files."""
        stage, headers = request.stage, request.headers
        fingerprint = self.fingerprint if request.tool else ""
        text = "\0".join([stage, tool_version(stage), fingerprint, *request.key])
        value = self.env.Value(hashlib.sha256(text.encode()).hexdigest())
        names = [f"{BUILD}/{target}" for target in request.targets]
        self.session.actions[names[0]] = request.action
        if headers is not None:
            top = str(self.session.top)
            self.session.scopes[names[0]] = IncludeScope(
                tuple(os.path.join(top, folder) for folder in headers.folders),
                {node.abspath: node for node in headers.nodes},
            )
        make = self.env.PipelinkAction if headers is None else self.env.PipelinkCompile
        return list(make([f"#{name}" for name in names], [*request.sources, value]))

    def headers(self, label: labels.Label) -> Headers:
        """Folders, headers and definitions that come with a dependency, the nearest first."""
        if label in self._headers:
            return self._headers[label]
        self._headers[label] = Headers()  # a cycle of deps adds nothing
        rule = self.component(label)
        if rule is None:
            raise KeyError(label)
        found = Headers(rule.includes, rule.hdrs, rule.defines)
        for dependency in rule.deps:
            found = joined(found, self.headers(dependency))
        self._headers[label] = found
        return found

    def portable(self, folder: str) -> str:
        """Return a folder as it may enter a signature: the library has one name everywhere."""
        root = str(shipped_root())
        return f"@{labels.LIBRARY}{folder[len(root) :]}" if folder.startswith(root) else folder

    def variant(
        self,
        arch: str,
        variant: RequestedVariant,
        noun: Callable[[], Variant],
        rule: ComponentRule,
        options: Sequence[str],
        release: RuntimeRule,
    ) -> paths.VariantFiles:
        """Return the files of a variant, compiled from its source and probed.

        noun: the variant in full, for the steps.
        """
        from pipelink_rules.actions.compile_actions import CompileRequest, compile_component

        files = paths.named_files(arch, variant.name, variant.component)
        if not self._first(files, variant, rule):
            return files
        headers = joined(self.headers(rule.label), Headers(_folders(rule.srcs)))
        request = CompileRequest(
            label=str(rule.label),
            variant=noun,
            sources=tuple(map(str, rule.srcs)),
            includes=headers.folders,
            copts=tuple(options),
            defines=(*headers.defines, *rule.local_defines),
            arch=arch,
            out_dir=f"{BUILD}/{files.folder}",
            declared=tuple(str(node) for node in headers.nodes),
            strict=self.session.options.strict,
        )
        header = self._header(files, variant, request)
        headers = joined(headers, Headers(nodes=(header,)))

        def run(inputs: tuple[str, ...]) -> None:
            self.session.say(compile_component(request, self.session.toolkit, inputs))

        key = [variant.code, arch, *request.copts, ""]
        key += [*request.defines, "", *map(self.portable, (*request.includes, *request.sources))]
        key += ["strict"] if request.strict else []
        action = Action("CudaCompile", _subject(rule.label, variant, arch), run, memory=1 << 30)
        targets = [files.fatbin, files.shadow, files.record]
        sources = [*rule.srcs, *rule.hdrs, header]
        nodes = self.add(NodeRequest("compile", action, targets, sources, key, headers, tool=True))
        self._probed(files, variant, request, release, [*nodes, header])
        return files

    def prebuilt(
        self,
        arch: str,
        variant: RequestedVariant,
        noun: Callable[[], Variant],
        rule: ComponentRule,
        sidecar: str,
        release: RuntimeRule,
    ) -> paths.VariantFiles:
        """Return the files of a variant with a prebuilt object, which is probed."""
        from pipelink_rules.actions.compile_actions import (
            CompileRequest,
            PrebuiltRequest,
            finished_files,
            unpack_prebuilt,
        )

        files = paths.named_files(arch, variant.name, variant.component)
        if not self._first(files, variant, rule):
            return files
        out = f"{BUILD}/{files.folder}"

        folders, strict = self.abi().folders, self.session.options.strict
        finished = PrebuiltRequest(sidecar, out, arch, folders, strict)

        def run(inputs: tuple[str, ...]) -> None:
            self.session.say(unpack_prebuilt(finished, self.session.toolkit))

        sources = [
            self.env.File(name if os.path.isabs(name) else f"#{name}")
            for name in finished_files(sidecar)
        ]
        action = Action("Prebuilt", _subject(rule.label, variant, arch), run)
        targets = [files.fatbin, files.shadow, files.record]
        key = [arch, *(["strict"] if strict else [])]
        nodes = self.add(
            NodeRequest("compile", action, targets, sources, key, self.abi(), tool=True)
        )
        request = CompileRequest(str(rule.label), noun, (), folders, (), (), arch, out, ())
        header = self._header(files, variant, request)
        self._probed(files, variant, request, release, [*nodes, header])
        return files

    def _first(
        self, files: paths.VariantFiles, variant: RequestedVariant, rule: ComponentRule
    ) -> bool:
        """Return whether this is the first megakernel that requests the variant."""
        self.folders[variant.name] = rule.label
        return f"{BUILD}/{files.fatbin}" not in self.session.actions

    def _header(
        self, files: paths.VariantFiles, variant: RequestedVariant, request: CompileRequest
    ) -> Any:
        """Return the generated header, which the source and the probe kernel include."""
        from pipelink_rules.actions.compile_actions import write_header

        def run(inputs: tuple[str, ...]) -> None:
            write_header(request.variant(), f"{BUILD}/{files.header}")

        action = Action("Header", f"{request.label} {variant.digest} for {request.arch}", run)
        return self.add(NodeRequest("header", action, [files.header], [], [variant.code]))[0]

    def _probed(
        self,
        files: paths.VariantFiles,
        variant: RequestedVariant,
        request: CompileRequest,
        release: RuntimeRule,
        nodes: list[Any],
    ) -> None:
        """Add the register probe and its kernel, which does not depend on the source."""
        from pipelink_rules.actions.compile_actions import compile_probe_kernel, probe_component

        runtime = f"{BUILD}/{self.runtime(request.arch, release, variant.flags)}"
        rule = labels.parse_label(request.label)
        assert rule is not None
        subject = _subject(rule, variant, request.arch)
        key = [variant.code, request.arch]

        def kernel(inputs: tuple[str, ...]) -> None:
            compile_probe_kernel(request, self.session.toolkit)

        def probe(inputs: tuple[str, ...]) -> None:
            probe_component(request, runtime, self.session.toolkit)

        # The kernel's text is written by the step, so that no scanner sees its first include.
        first = [node for node in self.abi().nodes if node.name == "glue.cuh"]
        sources = [self.node(files.header), *first]
        action = Action("ProbeCompile", subject, kernel, memory=1 << 30)
        folders = list(map(self.portable, self.abi().folders))
        headers = joined(self.abi(), Headers(nodes=(self.node(files.header),)))
        nodes += self.add(
            NodeRequest(
                "compile", action, [files.probe], sources, key + folders, headers, tool=True
            )
        )
        action = Action("Probe", subject, probe, memory=1 << 29)
        sources = [self.node(name) for name in (files.fatbin, files.record, files.probe)]
        sources.append(self.env.File(f"#{runtime}"))
        targets = [files.interface, files.sidecar]
        nodes += self.add(NodeRequest("compile", action, targets, sources, key, tool=True))
        self.env.Alias(request.label, nodes)

    def node(self, path: str) -> Any:
        """Return a file below the build directory."""
        return self.env.File(f"#{BUILD}/{path}")

    def runtime(self, arch: str, rule: RuntimeRule, flags: Sequence[str] = ()) -> str:
        """The object of a build of the device runtime, with the code-generation flags of a link."""
        from pipelink_rules.actions.compile_actions import ObjectRequest, compile_source

        name = paths.runtime_fatbin(arch, rule.label.name, flags)
        if f"{BUILD}/{name}" in self.session.actions:
            return name
        local = Headers((*rule.includes, *_folders(rule.srcs)), rule.hdrs, rule.defines)
        headers = joined(local, self.abi())
        request = ObjectRequest(
            label=f"the device runtime `{rule.label.name}`",
            source=str(rule.srcs[0]),
            includes=headers.folders,
            defines=headers.defines,
            arch=arch,
            out=f"{BUILD}/{name}",
            declared=tuple(str(node) for node in headers.nodes),
            flags=tuple(flags),
        )

        def run(inputs: tuple[str, ...]) -> None:
            compile_source(request, self.session.toolkit, inputs)

        key = [arch, *flags, "", *request.defines, ""]
        key += map(self.portable, (*request.includes, request.source))
        action = Action("CudaCompile", f"{rule.label} for {arch}", run, memory=1 << 30)
        targets = [name, paths.weak_table(name)]
        sources = [*rule.srcs, *rule.hdrs]
        self.add(NodeRequest("object", action, targets, sources, key, headers, tool=True))
        return name

    def abi(self) -> Headers:
        """Return the device ABI."""
        return self.headers(self.session.canonical(labels.ABI))


def joined(first: Headers, second: Headers) -> Headers:
    """Both, the first one's folders first, nothing twice."""
    return Headers(
        tuple(dict.fromkeys((*first.folders, *second.folders))),
        tuple(dict.fromkeys((*first.nodes, *second.nodes))),
        tuple(dict.fromkeys((*first.defines, *second.defines))),
    )


def _folders(nodes: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.dirname(str(node)) or "." for node in nodes))


def _subject(label: labels.Label, variant: RequestedVariant, arch: str) -> str:
    arguments = " ".join(f"{name}={value}" for name, value in variant.arguments)
    return f"{label} {arguments} for {arch}".replace("  ", " ")


def scanner() -> Any:
    """Find only declared headers: the generated one is written by the compile step itself, and
    the compiler's own list of headers is checked after the compile."""
    return ScannerBase(_scan, name="PipelinkHeaders", path_function=_scope_of, recursive=True)


def _scope_of(env: Any, folder: Any, target: Any = None, source: Any = None) -> tuple[str, ...]:
    """Return the key of the scope: SCons keeps what it found under it."""
    first = target[0] if isinstance(target, (list, tuple)) else target
    return (str(first),)


def _scan(node: Any, env: Any, path: tuple[str, ...]) -> list[Any]:
    scope: IncludeScope | None = env["PIPELINK"].scopes.get(path[0]) if path else None
    if scope is None or not node.exists():
        return []
    text, folder = node.get_text_contents(), node.get_dir().abspath
    found = (
        resolve(name, quoted, folder, scope.roots, scope.declared)
        for name, quoted in includes_of(text)
    )
    return [scope.declared[name] for name in dict.fromkeys(found) if name]
