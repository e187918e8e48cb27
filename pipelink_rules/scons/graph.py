"""The build graph: one node per action, which depends on exactly what the action reads.

    declaration ─▶ check ┄▶ variants ─▶ collect ─▶ place ─▶ glue ─▶ link + audit ─▶ manifest, map
                   (before)   compile + probe        │                ▲
                              runtime ───────────────┼────────────────┘
                                                  plan.json: no places, no prose

Besides its files every node depends on a Value: its request, the version of the rules
and, where a tool runs, the fingerprint of the toolkit.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from SCons.Scanner import ScannerBase

from pipelink_rules.actions import labels, paths
from pipelink_rules.actions.build_key import tool_version
from pipelink_rules.actions.header_deps import includes_of, require_declared, resolve
from pipelink_rules.actions.prebuilt import finished_files
from pipelink_rules.actions.requests import CompileRequest, RequestedVariant
from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.installed_files import shipped_root
from pipelink_rules.model.variant import Variant
from pipelink_rules.scons.action import Action
from pipelink_rules.scons.session import BUILD, ComponentRule, IncludeScope, RuntimeRule, Session

Inputs = tuple[str, ...]  # all files that a node depends on


@dataclass(frozen=True)
class Headers:
    """What a source may include: -I folders as the compiler gets them, and declared headers."""

    folders: tuple[str, ...] = ()
    nodes: tuple[Any, ...] = ()
    defines: tuple[str, ...] = ()


@dataclass
class Graph:
    """The nodes of one run."""

    env: Any
    session: Session
    component: Callable[[labels.Label], ComponentRule | None]
    fingerprint: str
    folders: dict[str, labels.Label] = field(default_factory=dict)  # variant -> its component
    _headers: dict[labels.Label, Headers] = field(default_factory=dict)

    def add(
        self,
        stage: str,
        action: Action,
        targets: Sequence[str],
        sources: Iterable[Any],
        key: Iterable[str],
        headers: Headers | None = None,
        *,
        tool: bool = False,
    ) -> list[Any]:
        """Add one node; return its files.

        stage: its code is part of the signature.  sources: SCons nodes, or paths.  key: what else
        the result depends on.  headers: what its source may include.  tool: whether the toolkit is
        part of the signature.
        """
        text = "\0".join([stage, tool_version(stage), self.fingerprint if tool else "", *key])
        value = self.env.Value(hashlib.sha256(text.encode()).hexdigest())
        self.session.actions[targets[0]] = action
        make = self.env.PipelinkAction
        if headers is not None:
            make = self.env.PipelinkCompile
            self.session.scopes[targets[0]] = IncludeScope(
                tuple(os.path.join(self.session.top, folder) for folder in headers.folders),
                {node.abspath: node for node in headers.nodes},
            )
        nodes = [self.node(one) if isinstance(one, str) else one for one in sources]
        return list(make([f"#{name}" for name in targets], [*nodes, value]))

    def node(self, path: str) -> Any:
        """Return a file; a relative path is below the top."""
        return self.env.File(path if os.path.isabs(path) else f"#{path}")

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
        sidecar: str = "",
    ) -> paths.VariantFiles:
        """Return the files of a variant, compiled from its source and probed.

        noun: the variant in full, for the actions.  sidecar: of a prebuilt object, which is not
        compiled.
        """
        files = paths.variant_files(BUILD, arch, variant.name, variant.component)
        self.folders[variant.name] = rule.label
        if files.fatbin in self.session.actions:  # another megakernel requests it, too
            return files
        local = Headers(_folders(rule.srcs))
        headers = self.abi() if sidecar else joined(self.headers(rule.label), local)
        request = CompileRequest(
            label=str(rule.label),
            variant=noun,
            sources=tuple(map(str, rule.srcs)),
            includes=headers.folders,
            copts=tuple(options),
            defines=(*headers.defines, *rule.local_defines),
            arch=arch,
            out_dir=files.folder,
            declared=tuple(map(str, headers.nodes)),
            strict=self.session.options.strict,
        )

        def write_header(inputs: Inputs) -> None:
            from pipelink_rules.contract.header import emit_header

            write_text(files.header, emit_header(noun()))

        action = Action("Header", f"{rule.label} {variant.digest} for {arch}", write_header)
        nodes = self.add("header", action, [files.header], [], [variant.code])
        arguments = " ".join(f"{name}={value}" for name, value in variant.arguments)
        subject = f"{rule.label} {arguments} for {arch}".replace("  ", " ")
        if sidecar:
            nodes += self._prebuilt(files, request, headers, subject, sidecar)
        else:
            nodes += self._compiled(files, request, headers, subject, variant, rule)
        nodes += self._probed(files, request, subject, variant, release)
        self.env.Alias(str(rule.label), nodes)
        return files

    def _compiled(
        self,
        files: paths.VariantFiles,
        request: CompileRequest,
        headers: Headers,
        subject: str,
        variant: RequestedVariant,
        rule: ComponentRule,
    ) -> list[Any]:
        def run(inputs: Inputs) -> None:
            from pipelink_rules.actions.component import compile_component

            self.session.say(compile_component(request, self.session.toolkit, inputs).warnings)

        key = [variant.code, request.arch, *request.copts, ""]
        key += [*request.defines, "", *map(self.portable, (*request.includes, *request.sources))]
        key += ["strict"] if request.strict else []
        header = self.node(files.header)
        action = Action("CudaCompile", subject, run, memory=1 << 30)
        targets, sources = [files.fatbin, files.shadow, files.record], [*rule.srcs, *rule.hdrs]
        scope = joined(headers, Headers(nodes=(header,)))
        return self.add("compile", action, targets, [*sources, header], key, scope, tool=True)

    def _prebuilt(
        self,
        files: paths.VariantFiles,
        request: CompileRequest,
        headers: Headers,
        subject: str,
        sidecar: str,
    ) -> list[Any]:
        def run(inputs: Inputs) -> None:
            from pipelink_rules.actions.component import unpack_prebuilt

            out, arch, includes = request.out_dir, request.arch, request.includes
            toolkit, strict = self.session.toolkit, request.strict
            self.session.say(unpack_prebuilt(sidecar, out, arch, includes, toolkit, strict))

        action, key = Action("Prebuilt", subject, run), [request.arch]
        key += ["strict"] if request.strict else []
        targets, sources = [files.fatbin, files.shadow, files.record], finished_files(sidecar)
        return self.add("compile", action, targets, sources, key, headers, tool=True)

    def _probed(
        self,
        files: paths.VariantFiles,
        request: CompileRequest,
        subject: str,
        variant: RequestedVariant,
        release: RuntimeRule,
    ) -> list[Any]:
        """Add the register probe and its kernel, which does not depend on the source."""
        runtime = self.runtime(request.arch, release, variant.flags)

        def compile_kernel(inputs: Inputs) -> None:
            from pipelink_rules.actions.component import compile_probe

            compile_probe(request, self.session.toolkit)

        def probe(inputs: Inputs) -> None:
            from pipelink_rules.actions.component import probe_component

            probe_component(request, runtime, self.session.toolkit)

        header, abi, key = self.node(files.header), self.abi(), [variant.code, request.arch]
        # The kernel's text is written by the action, so that no scanner sees its first include.
        sources = [header, *(node for node in abi.nodes if node.name == "glue.cuh")]
        action = Action("ProbeCompile", subject, compile_kernel, memory=1 << 30)
        whole = [*key, *map(self.portable, abi.folders)]
        scope = joined(abi, Headers(nodes=(header,)))
        nodes = self.add("compile", action, [files.probe], sources, whole, scope, tool=True)
        action = Action("Probe", subject, probe, memory=1 << 29)
        sources = [files.fatbin, files.record, files.probe, runtime]
        targets = [files.interface, files.sidecar]
        return nodes + self.add("compile", action, targets, sources, key, tool=True)

    def runtime(self, arch: str, rule: RuntimeRule, flags: Sequence[str] = ()) -> str:
        """The object of a build of the device runtime, with the code-generation flags of a link."""
        from pipelink_rules.toolkit.weak_symbols import weak_file

        out = paths.runtime_fatbin(BUILD, arch, rule.label.name, flags)
        if out in self.session.actions:
            return out
        local = Headers((*rule.includes, *_folders(rule.srcs)), rule.hdrs, rule.defines)
        headers = joined(local, self.abi())
        name, source = f"the device runtime `{rule.label.name}`", str(rule.srcs[0])

        def run(inputs: Inputs) -> None:
            from pipelink_rules.compile.object import compile_object

            def inspect(source: str, depfile: Path) -> None:
                allowed, system = (source, *inputs), self.session.toolkit.includes
                require_declared(name, source, depfile, allowed, system, map(str, headers.nodes))

            compile_object(
                source,
                out,
                arch,
                self.session.toolkit,
                includes=headers.folders,
                defines=headers.defines,
                flags=flags,
                name=name,
                inspect=inspect,
            )

        key = [arch, *flags, "", *headers.defines, ""]
        key += map(self.portable, (*headers.folders, source))
        action = Action("CudaCompile", f"{rule.label} for {arch}", run, memory=1 << 30)
        targets, sources = [out, weak_file(out).as_posix()], [*rule.srcs, *rule.hdrs]
        self.add("object", action, targets, sources, key, headers, tool=True)
        return out

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


def scanner() -> Any:
    """Find only declared headers: the generated one is written by the compile step itself, and
    the compiler's own list of headers is checked after the compile."""
    return ScannerBase(_scan, name="PipelinkHeaders", path_function=_scope_of, recursive=True)


def _scope_of(env: Any, folder: Any, target: Any = None, source: Any = None) -> tuple[str, ...]:
    """Return the key of the scope: SCons keeps what it found under it."""
    return (str(target[0] if isinstance(target, (list, tuple)) else target),)


def _scan(node: Any, env: Any, path: tuple[str, ...]) -> list[Any]:
    scope: IncludeScope | None = env["PIPELINK"].scopes.get(path[0]) if path else None
    if scope is None or not node.exists():
        return []
    folder = node.get_dir().abspath
    found = (
        resolve(name, quoted, folder, scope.roots, scope.declared)
        for name, quoted in includes_of(node.get_text_contents())
    )
    return [scope.declared[name] for name in dict.fromkeys(found) if name]
