"""What does an SConscript declare?  The rules: each records what was written, and reads nothing.

Attributes follow rules_cuda: name, srcs, hdrs, deps, includes, copts, defines, local_defines, archs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import SCons.Node.FS
import SCons.Util

from pipelink_rules.collect.locate import locate
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.diagnostics.suggest import did_you_mean
from pipelink_rules.files.shipped import shipped_root
from pipelink_rules.model.source import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.scons.session import (
    BUILD,
    ComponentRule,
    Declared,
    MegakernelRule,
    RuntimeRule,
    Session,
)
from pipelink_rules.steps import labels
from pipelink_rules.steps.labels import LIBRARY

# A call is placed at the first frame outside of these packages.
_OWN = str(Path(__file__).resolve().parent.parent)
_ENGINE = str(Path(SCons.Util.__file__ or "").resolve().parent.parent)


def kernel_component(
    env: Any,
    name: str,
    contract: Any = None,
    srcs: Any = (),
    hdrs: Any = (),
    deps: Sequence[str] = (),
    includes: Sequence[str] = (),
    copts: Sequence[str] = (),
    defines: Sequence[str] = (),
    local_defines: Sequence[str] = (),
    archs: str | Sequence[str] = (),
    **others: Any,
) -> Declared:
    """Device code with a contract; without `srcs`, headers that others name in `deps`.

    contract: `<name>.contract.yaml` where it is left out and there are sources.  includes: folders
    relative to the SConscript that go to the compiler, also of those who depend on it.
    """
    site = _Site(env, "KernelComponent", name, others)
    sources, headers = site.files("srcs", srcs), site.files("hdrs", hdrs)
    if sources and contract is None:
        contract = f"{name}.contract.yaml"
    contracts = site.files("contract", contract) if contract is not None else ()
    if bool(sources) != bool(contracts):
        site.wrong("contract", "a component has sources and a contract, or headers only")
    dependencies = [site.label("deps", text) for text in site.strings("deps", deps)]
    if site.session.canonical(labels.ABI) != site.label_of_rule:
        dependencies.append(site.session.canonical(labels.ABI))
    rule = ComponentRule(
        label=site.label_of_rule,
        contract=contracts[0] if contracts else None,
        srcs=sources,
        hdrs=headers,
        deps=tuple(dict.fromkeys(label for label in dependencies if label)),
        includes=tuple(site.folder(text) for text in site.strings("includes", includes)),
        copts=site.strings("copts", copts),
        defines=site.strings("defines", defines),
        local_defines=site.strings("local_defines", local_defines),
        archs=site.archs(archs),
        span=site.span,
    )
    return site.component(rule)


def prebuilt_component(
    env: Any, name: str, dir: Any = None, artefacts: Any = (), **others: Any
) -> Declared:
    """Finished objects of a component, without its source: sidecars, each beside its fatbin.

    dir: a folder with any number of `*.contract.yaml` below it.  artefacts: those sidecars, named.
    """
    site = _Site(env, "PrebuiltComponent", name, others)
    if (dir is None) == (not artefacts):
        site.wrong("dir", "either dir= or artefacts= says where the finished objects are")
    sidecars = [str(node) for node in site.files("artefacts", artefacts)]
    if dir is not None:
        folder = Path(env.Dir(dir).srcnode().abspath)
        sidecars = [site.shown(path) for path in sorted(folder.rglob("*.contract.yaml"))]
        if not sidecars:
            site.wrong("dir", f"there is no sidecar (*.contract.yaml) in {site.shown(folder)}")
    return site.component(
        ComponentRule(site.label_of_rule, prebuilt=tuple(sidecars), span=site.span)
    )


def device_runtime(
    env: Any,
    name: str,
    srcs: Any,
    hdrs: Any = (),
    includes: Sequence[str] = (),
    defines: Sequence[str] = (),
    **others: Any,
) -> Declared:
    """A build of the device runtime: `runtime=` of a megakernel names it."""
    site = _Site(env, "DeviceRuntime", name, others)
    rule = RuntimeRule(
        site.label_of_rule,
        site.files("srcs", srcs),
        site.files("hdrs", hdrs),
        tuple(site.folder(text) for text in site.strings("includes", includes)),
        site.strings("defines", defines),
    )
    if site.label_of_rule in site.session.runtimes:
        site.twice()
    site.session.runtimes[site.label_of_rule] = rule
    return Declared(str(site.label_of_rule), tuple(env.Alias(str(site.label_of_rule))))


def megakernel(env: Any, name: str, instances: Mapping[str, Any], **attributes: Any) -> Declared:
    """A kernel linked from instances of components; see `collect.spec.make_spec` for attributes."""
    site = _Site(env, "Megakernel", name, {})
    known = (*_MEGAKERNEL, "name", "instances")
    for other in sorted(set(attributes) - set(known)):
        site.unknown(other, known)
        del attributes[other]
    attributes["instances"] = site.instances(instances)
    if name in site.session.megakernels:
        site.twice(site.session.megakernels[name].span)
    else:
        site.session.megakernels[name] = MegakernelRule(
            site.label_of_rule, tuple(attributes.items()), site.span, site.text
        )
    archs = attributes.get("archs", ("sm_90a",))
    archs = (archs,) if isinstance(archs, str) else tuple(archs)
    cubins = [
        env.File(f"#{BUILD}/{arch}/megakernels/{name}/{name}.cubin")
        for arch in archs
        if not site.session.options.archs or arch in site.session.options.archs
    ]
    return Declared(str(site.label_of_rule), tuple(cubins))


_MEGAKERNEL = (
    "connect",
    "tensors",
    "scalars",
    "transfers",
    "stages",
    "warps",
    "archs",
    "occupancy",
    "cluster",
    "runtime",
    "summary",
)


@lru_cache(maxsize=None)
def _text(file: str) -> str:
    path = Path(file)
    return path.read_text(encoding="utf-8") if path.is_file() else ""


class _Site:
    """One call of a rule: where it stands, and how its values are read."""

    def __init__(self, env: Any, rule: str, name: Any, others: Mapping[str, Any]):
        self.env = env
        self.session: Session = env["PIPELINK"]
        self.rule = rule
        self.span, self.text = self._here()
        folder = Path(env.Dir(".").srcnode().abspath)
        repository, package = "", self._relative(folder, self.session.top)
        if package is None:
            repository, package = LIBRARY, self._relative(folder, shipped_root()) or ""
        self.label_of_rule = labels.Label(repository, package, str(name))
        if not isinstance(name, str) or labels.parse_label(f"//x:{name}") is None:
            self.wrong("name", f"`{name}` cannot be part of a label")
        for other in sorted(others):
            self.unknown(other, _ATTRIBUTES)

    @staticmethod
    def _relative(folder: Path, root: Path) -> str | None:
        if not folder.is_relative_to(root):
            return None
        text = folder.relative_to(root).as_posix()
        return "" if text == "." else text

    def _here(self) -> tuple[Span | None, str]:
        """The call in the SConscript, or in the Python file that makes the call for it."""
        frame = sys._getframe(2)
        while frame is not None:
            file = os.path.abspath(frame.f_code.co_filename)
            if not file.startswith((_OWN + os.sep, _ENGINE + os.sep)):
                return Span(self.shown(Path(file)), frame.f_lineno, 1), _text(file)
            frame = frame.f_back  # type: ignore[assignment]
        return None, ""

    def shown(self, path: Path) -> str:
        """A path as the user would type it: relative to the top where it is below it."""
        inside = path.is_relative_to(self.session.top)
        return path.relative_to(self.session.top).as_posix() if inside else str(path)

    def find(self, code: str, attribute: str, message: str, **clauses: Any) -> None:
        """Keeps a finding of this call, at one of its attributes."""
        span = self.span
        if span is not None:
            place = locate(self.text, span.line, attribute)
            span = Span(span.file, *place) if place else span
        places = (Label(span, str(self.label_of_rule)),) if span else ()
        self.session.attempt(PipelinkError(Diagnostic(code, message, places, **clauses)))

    def wrong(self, attribute: str, message: str, **clauses: Any) -> None:
        subject = f"{self.label_of_rule} {attribute}"
        self.find("PL1307", attribute, f"{self.rule}: {message}", subject=subject, **clauses)

    def unknown(self, attribute: str, known: Iterable[str]) -> None:
        self.wrong(
            attribute, f"there is no attribute `{attribute}`", helps=did_you_mean(attribute, known)
        )

    def twice(self, first: Span | None = None) -> None:
        notes = (f"the first one is at {first}",) if first else ()
        message = f"{self.label_of_rule} is declared twice"
        self.find("PL1301", "name", message, notes=notes, subject=str(self.label_of_rule))

    def strings(self, attribute: str, value: Any) -> tuple[str, ...]:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)) or not all(isinstance(i, str) for i in items):
            self.wrong(attribute, f"`{attribute}` is not a list of strings", found=repr(value)[:80])
            return ()
        return tuple(items)

    def files(self, attribute: str, value: Any) -> tuple[Any, ...]:
        """Nodes, each of them there or built by something."""
        nodes = []
        for item in SCons.Util.flatten([value]):
            if isinstance(item, str):
                nodes.append(self.env.File(item).srcnode())
            elif isinstance(item, SCons.Node.FS.File):
                nodes.append(item)
            else:
                self.wrong(attribute, f"`{attribute}` holds no file", found=repr(item)[:80])
        for node in nodes:
            if not node.has_builder() and not os.path.isfile(node.abspath):
                beside = os.listdir(node.dir.abspath) if os.path.isdir(node.dir.abspath) else []
                self.wrong(
                    attribute,
                    f"there is no file {self.shown(Path(node.abspath))}",
                    helps=did_you_mean(node.name, beside)[:1],
                )
        return tuple(nodes)

    def folder(self, text: str) -> str:
        return self.shown(Path(self.env.Dir(text).srcnode().abspath)) or "."

    def label(self, attribute: str, text: str) -> labels.Label | None:
        found = labels.parse_label(text, self.label_of_rule)
        if found is None:
            self.wrong(attribute, f"`{text}` is no label", expected="//package:name or :name")
            return None
        return self.session.canonical(found)

    def archs(self, value: Any) -> tuple[str, ...]:
        names = self.strings("archs", value)
        for name in names:
            if name not in TARGETS:
                self.wrong(
                    "archs", f"there is no target `{name}`", helps=did_you_mean(name, TARGETS)
                )
        return tuple(name for name in names if name in TARGETS)

    def instances(self, value: Any) -> Any:
        """Labels of this package (`:name`) written out; all else is judged by `make_spec`."""
        if not isinstance(value, Mapping):
            return value
        result = {}
        for key, item in value.items():
            pair = (item, {}) if isinstance(item, str) else item
            if isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str):
                label = labels.parse_label(pair[0], self.label_of_rule)
                if pair[0].startswith(":") and label:
                    pair = (str(label), pair[1])
            result[key] = tuple(pair) if isinstance(pair, list) else pair
        return result

    def component(self, rule: ComponentRule) -> Declared:
        known = self.session.components
        if rule.label in known:
            self.twice(known[rule.label].span)
        else:
            known[rule.label] = rule
        return Declared(str(rule.label), tuple(self.env.Alias(str(rule.label))))


_ATTRIBUTES = (
    "name",
    "contract",
    "srcs",
    "hdrs",
    "deps",
    "includes",
    "copts",
    "defines",
    "local_defines",
    "archs",
    "dir",
    "artefacts",
)
