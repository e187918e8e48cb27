"""Which nodes make a megakernel?  One node per step; each depends on exactly what the step reads.

    declaration ─▶ check ┄▶ variants ─▶ collect ─▶ place ─▶ glue ─▶ link + audit ─▶ manifest, map
                   (before)   compile + probe        │                ▲
                              runtime ───────────────┼────────────────┘
                                                  plan.json: no places, no prose

Besides its files every node depends on a Value: what it was asked for, the version of the rules
and, where a tool runs, the fingerprint of the toolkit.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelink_rules.files.shipped import shipped_root
from pipelink_rules.model.contract import Variant
from pipelink_rules.scons.action import Step
from pipelink_rules.scons.headers import Scope
from pipelink_rules.scons.session import BUILD, ComponentRule, RuntimeRule, Session
from pipelink_rules.steps import labels, paths
from pipelink_rules.steps.neutral import neutral
from pipelink_rules.steps.rules import rule_version
from pipelink_rules.steps.signature import Signatures

Run = Callable[[tuple[str, ...]], None]


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
    signatures: Signatures = field(default_factory=Signatures)
    _headers: dict[labels.Label, Headers] = field(default_factory=dict)

    def step(
        self,
        stage: str,
        step: Step,
        targets: Sequence[str],
        sources: Iterable[Any],
        asked: Sequence[str],
        headers: Headers | None = None,
        tool: bool = False,
    ) -> list[Any]:
        """One node with its files; `targets` below the build directory."""
        text = "\0".join([stage, rule_version(stage), self.fingerprint if tool else "", *asked])
        value = self.env.Value(hashlib.sha256(text.encode()).hexdigest())
        names = [f"{BUILD}/{target}" for target in targets]
        self.session.steps[names[0]] = step
        if headers is not None:
            top = str(self.session.top)
            self.session.scopes[names[0]] = Scope(
                tuple(os.path.join(top, folder) for folder in headers.folders),
                {node.abspath: node for node in headers.nodes},
            )
        make = self.env.PipelinkStep if headers is None else self.env.PipelinkCompile
        return list(make([f"#{name}" for name in names], [*sources, value]))

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
        """A folder as it may enter a signature: the library has one name on every machine."""
        root = str(shipped_root())
        return f"@{labels.LIBRARY}{folder[len(root) :]}" if folder.startswith(root) else folder

    def variant(
        self,
        arch: str,
        variant: Variant,
        rule: ComponentRule,
        options: Sequence[str],
        release: RuntimeRule,
    ) -> paths.VariantFiles:
        """Object, interface, sidecar, shadow and header of a variant, compiled and probed."""
        from pipelink_rules.steps.objects import CompileRequest, compile_component

        files = paths.variant_files(arch, variant)
        if f"{BUILD}/{files.fatbin}" in self.session.steps:
            return files
        self.folders[variant.name] = rule.label
        headers = self.headers(rule.label)
        runtime = f"{BUILD}/{self.runtime(arch, release, variant.flags)}"
        request = CompileRequest(
            label=str(rule.label),
            variant=variant,
            sources=tuple(map(str, rule.srcs)),
            includes=tuple(dict.fromkeys((*headers.folders, *_folders(rule.srcs)))),
            copts=tuple(options),
            defines=(*headers.defines, *rule.local_defines),
            arch=arch,
            out_dir=f"{BUILD}/{files.folder}",
            runtime=runtime,
            declared=tuple(str(node) for node in headers.nodes),
        )

        def run(inputs: tuple[str, ...]) -> None:
            warnings = compile_component(request, self.session.toolkit, inputs)
            self.session.say(warnings)

        asked = [self.signatures.of(neutral(variant)), arch, *request.copts, "", *request.defines]
        asked += ["", *(self.portable(folder) for folder in request.includes)]
        nodes = self.step(
            "compile",
            Step("CudaCompile", _subject(rule.label, variant, arch), run, memory=1 << 30),
            files.all,
            [*rule.srcs, *rule.hdrs, *self._included_anyway(), self.env.File(f"#{runtime}")],
            asked,
            headers,
            tool=True,
        )
        self.env.Alias(str(rule.label), nodes)
        return files

    def prebuilt(
        self, arch: str, variant: Variant, rule: ComponentRule, sidecar: str
    ) -> paths.VariantFiles:
        """The same files, taken from finished objects."""
        from pipelink_rules.steps.objects import finished_files, unpack_prebuilt

        files = paths.variant_files(arch, variant)
        if f"{BUILD}/{files.fatbin}" in self.session.steps:
            return files
        self.folders[variant.name] = rule.label
        out = f"{BUILD}/{files.folder}"

        def run(inputs: tuple[str, ...]) -> None:
            unpack_prebuilt(sidecar, out)

        sources = [self.env.File(f"#{name}") for name in finished_files(sidecar)]
        step = Step("Prebuilt", _subject(rule.label, variant, arch), run)
        asked = [self.signatures.of(variant), arch]
        nodes = self.step("compile", step, files.all, sources, asked, tool=True)
        self.env.Alias(str(rule.label), nodes)
        return files

    def runtime(self, arch: str, rule: RuntimeRule, flags: Sequence[str] = ()) -> str:
        """The object of a build of the device runtime, with the code-generation flags of a link."""
        from pipelink_rules.steps.objects import ObjectRequest, compile_source

        name = paths.runtime_fatbin(arch, rule.label.name, flags)
        if f"{BUILD}/{name}" in self.session.steps:
            return name
        headers = joined(Headers(rule.includes, rule.hdrs, rule.defines), self.abi())
        request = ObjectRequest(
            label=f"the device runtime `{rule.label.name}`",
            source=str(rule.srcs[0]),
            includes=tuple(dict.fromkeys((*headers.folders, *_folders(rule.srcs)))),
            defines=headers.defines,
            arch=arch,
            out=f"{BUILD}/{name}",
            declared=tuple(str(node) for node in headers.nodes),
            flags=tuple(flags),
        )

        def run(inputs: tuple[str, ...]) -> None:
            compile_source(request, self.session.toolkit, inputs)

        asked = [arch, *flags, "", *request.defines, ""]
        asked += [self.portable(folder) for folder in request.includes]
        step = Step("CudaCompile", f"{rule.label} for {arch}", run, memory=1 << 30)
        targets = [name, paths.weak_table(name)]
        sources = [*rule.srcs, *rule.hdrs]
        self.step("object", step, targets, sources, asked, headers, tool=True)
        return name

    def _included_anyway(self) -> list[Any]:
        """Headers that the generated header and the probe include: no scanner sees those texts."""
        return [node for node in self.abi().nodes if node.name in ("component.cuh", "glue.cuh")]

    def abi(self) -> Headers:
        """The device ABI."""
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


def _subject(label: labels.Label, variant: Variant, arch: str) -> str:
    arguments = " ".join(f"{name}={value}" for name, value in variant.arguments)
    return f"{label} {arguments} for {arch}".replace("  ", " ")
