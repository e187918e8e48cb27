"""The build rules of an SConscript; each records its declaration and reads no file.

Attributes follow rules_cuda: name, srcs, hdrs, deps, includes, copts, defines, local_defines,
archs.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Unpack

import SCons.Node.FS
import SCons.Util

from pipelink_rules.actions import labels
from pipelink_rules.actions.labels import LIBRARY
from pipelink_rules.diagnostics.diagnostic import Details, Diagnostic, Label
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.files.installed_files import shipped_root
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.program.declaration_locations import locate
from pipelink_rules.scons.session import (
    BUILD,
    ComponentRule,
    Declared,
    MegakernelRule,
    RuntimeRule,
    Session,
)

# The location of a call is the first frame outside of these packages.
_PIPELINK = str(Path(__file__).resolve().parent.parent)
_SCONS = str(Path(SCons.Util.__file__ or "").resolve().parent.parent)
_ATTRIBUTES = (
    *("name", "contract", "srcs", "hdrs", "deps", "includes", "copts"),
    *("defines", "local_defines", "archs", "dir", "artifacts"),
)
_MEGAKERNEL = (
    *("connect", "tensors", "scalars", "transfers", "stages", "warps", "archs"),
    *("occupancy", "cluster", "runtime", "summary", "allow", "default", "name", "instances"),
)


@cache
def _text(file: str) -> str:
    path = Path(file)
    return path.read_text(encoding="utf-8") if path.is_file() else ""


class RuleCall:
    """One call of a rule: its location, and the reading of its values."""

    def __init__(self, env: Any, rule: str, name: Any, others: Mapping[str, Any]):
        self.env = env
        self.session: Session = env["PIPELINK"]
        self.rule = rule
        self.span, self.text = self._here()
        folder = Path(env.Dir(".").srcnode().abspath)
        repository, root = "", self.session.top
        if not folder.is_relative_to(root):
            repository, root = LIBRARY, shipped_root()
        package = folder.relative_to(root) if folder.is_relative_to(root) else Path()
        self.label_of_rule = labels.Label(repository, "/".join(package.parts), str(name))
        if not isinstance(name, str) or labels.parse_label(f"//x:{name}") is None:
            self.attribute_error("name", f"`{name}` is not a valid name in a label")
        for other in sorted(others):
            self.unknown_attribute(other, _ATTRIBUTES)

    def _here(self) -> tuple[Span | None, str]:
        """Return the call in the SConscript, or in the Python file that calls for it."""
        frame = sys._getframe(2)
        while frame is not None:
            file = os.path.abspath(frame.f_code.co_filename)
            if not file.startswith((_PIPELINK + os.sep, _SCONS + os.sep)):
                return Span(self.shown(Path(file)), frame.f_lineno, 1), _text(file)
            frame = frame.f_back  # type: ignore[assignment]
        return None, ""

    def shown(self, path: Path) -> str:
        """Return a path relative to the top if it is below it."""
        inside = path.is_relative_to(self.session.top)
        return path.relative_to(self.session.top).as_posix() if inside else str(path)

    def report(self, attribute: str, diagnostic: Diagnostic) -> None:
        """Record a diagnostic of this call, located at one of its attributes."""
        span = self.span
        if span is not None:
            place = locate(self.text, span.line, attribute)
            span = Span(span.file, *place) if place else span
        places = (Label(span, str(self.label_of_rule)),) if span else ()
        self.session.findings.append(replace(diagnostic, labels=places))

    def attribute_error(self, attribute: str, message: str, **clauses: Unpack[Details]) -> None:
        subject = f"{self.label_of_rule} {attribute}"
        finding = Diagnostic("PL1307", f"{self.rule}: {message}", subject=subject, **clauses)
        self.report(attribute, finding)

    def unknown_attribute(self, attribute: str, known: Iterable[str]) -> None:
        similar = similar_name_help(attribute, known)
        self.attribute_error(attribute, f"unknown attribute `{attribute}`", suggestions=similar)

    def duplicate_label(self, first: Span | None = None) -> None:
        notes = (f"first declared at {first}",) if first else ()
        subject = str(self.label_of_rule)
        message = f"duplicate declaration of {subject}"
        self.report("name", Diagnostic("PL1301", message, notes=notes, subject=subject))

    def strings(self, attribute: str, value: Any) -> tuple[str, ...]:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)) or not all(isinstance(i, str) for i in items):
            message = f"`{attribute}` must be a list of strings"
            self.attribute_error(attribute, message, found=repr(value)[:80])
            return ()
        return tuple(items)

    def files(self, attribute: str, value: Any) -> tuple[Any, ...]:
        """Return nodes, each of which exists or is built by another rule."""
        nodes = []
        for item in SCons.Util.flatten([value]):
            if isinstance(item, str):
                nodes.append(self.env.File(item).srcnode())
            elif isinstance(item, SCons.Node.FS.File):
                nodes.append(item)
            else:
                message = f"`{attribute}` must contain files only"
                self.attribute_error(attribute, message, found=repr(item)[:80])
        for node in nodes:
            shown = self.shown(Path(node.abspath))
            if attribute != "artifacts" and self._leads_out(node):  # those are delivered
                self.attribute_error(
                    attribute,
                    f"{shown} is outside the label package",
                    expected=f"a file in {self.folder('.')} or below",
                    suggestions=("declare it in its own folder and list that rule in `deps`",),
                )
            elif not node.has_builder() and not os.path.isfile(node.abspath):
                beside = os.listdir(node.dir.abspath) if os.path.isdir(node.dir.abspath) else []
                similar = similar_name_help(node.name, beside)[:1]
                self.attribute_error(attribute, f"{shown} does not exist", suggestions=similar)
        return tuple(nodes)

    def _leads_out(self, node: Any) -> bool:
        """Return whether the file is neither in the label package nor an output of the build."""
        place = Path(node.abspath)
        roots = (Path(self.env.Dir(".").srcnode().abspath), self.session.build)
        return not node.has_builder() and not any(place.is_relative_to(root) for root in roots)

    def folder(self, text: str) -> str:
        return self.shown(Path(self.env.Dir(text).srcnode().abspath)) or "."

    def label(self, attribute: str, text: str) -> labels.Label | None:
        found = labels.parse_label(text, self.label_of_rule)
        if found is None:
            expected = "//package:name or :name"
            self.attribute_error(attribute, f"`{text}` is not a label", expected=expected)
            return None
        return self.session.canonical(found)

    def archs(self, value: Any) -> tuple[str, ...]:
        names = self.strings("archs", value)
        for name in names:
            if name not in TARGETS:
                similar = similar_name_help(name, TARGETS)
                self.attribute_error("archs", f"unknown target `{name}`", suggestions=similar)
        return tuple(name for name in names if name in TARGETS)

    def instances(self, value: Any) -> Any:
        """Return instances with `:name` labels written out; `parse_declaration` checks the rest."""
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
            self.duplicate_label(known[rule.label].span)
        else:
            known[rule.label] = rule
        return Declared(str(rule.label), tuple(self.env.Alias(str(rule.label))))


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
    """Declare device code with a contract, or without `srcs` headers for `deps` of others.

    contract: by default `<name>.contract.yaml` if there are sources.  includes: include folders
    relative to the SConscript, also for components that depend on this one.
    """
    call = RuleCall(env, "KernelComponent", name, others)
    sources, headers = call.files("srcs", srcs), call.files("hdrs", hdrs)
    if sources and contract is None:
        contract = f"{name}.contract.yaml"
    contracts = call.files("contract", contract) if contract is not None else ()
    if bool(sources) != bool(contracts):
        call.attribute_error(
            "contract", "a component requires both sources and a contract, or headers only"
        )
    dependencies = [call.label("deps", text) for text in call.strings("deps", deps)]
    if call.session.canonical(labels.ABI) != call.label_of_rule:
        dependencies.append(call.session.canonical(labels.ABI))
    rule = ComponentRule(
        label=call.label_of_rule,
        contract=contracts[0] if contracts else None,
        srcs=sources,
        hdrs=headers,
        deps=tuple(dict.fromkeys(label for label in dependencies if label)),
        includes=tuple(call.folder(text) for text in call.strings("includes", includes)),
        copts=call.strings("copts", copts),
        defines=call.strings("defines", defines),
        local_defines=call.strings("local_defines", local_defines),
        archs=call.archs(archs),
        span=call.span,
    )
    return call.component(rule)


def prebuilt_component(
    env: Any, name: str, dir: Any = None, artifacts: Any = (), **others: Any
) -> Declared:
    """Declare prebuilt objects of a component: sidecars, each beside its fatbin.

    dir: a folder with any number of `*.contract.yaml` below it.  artifacts: the sidecars by name.
    """
    call = RuleCall(env, "PrebuiltComponent", name, others)
    if (dir is None) == (not artifacts):
        call.attribute_error("dir", "requires exactly one of `dir` and `artifacts`")
    sidecars = [str(node) for node in call.files("artifacts", artifacts)]
    if dir is not None:
        folder = Path(env.Dir(dir).srcnode().abspath)
        sidecars = [call.shown(path) for path in sorted(folder.rglob("*.contract.yaml"))]
        if not sidecars:
            message = f"{call.shown(folder)} contains no sidecar (*.contract.yaml)"
            call.attribute_error("dir", message)
    return call.component(
        ComponentRule(call.label_of_rule, prebuilt=tuple(sidecars), span=call.span)
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
    """Declare a device runtime, which `runtime=` of a megakernel names."""
    call = RuleCall(env, "DeviceRuntime", name, others)
    rule = RuntimeRule(
        call.label_of_rule,
        call.files("srcs", srcs),
        call.files("hdrs", hdrs),
        tuple(call.folder(text) for text in call.strings("includes", includes)),
        call.strings("defines", defines),
    )
    if call.label_of_rule in call.session.runtimes:
        call.duplicate_label()
    call.session.runtimes[call.label_of_rule] = rule
    return Declared(str(call.label_of_rule), tuple(env.Alias(str(call.label_of_rule))))


def megakernel(env: Any, name: str, instances: Mapping[str, Any], **attributes: Any) -> Declared:
    """Declare a kernel linked from component instances; attributes: `program.spec`."""
    call = RuleCall(env, "Megakernel", name, {})
    for other in sorted(set(attributes) - set(_MEGAKERNEL)):
        call.unknown_attribute(other, _MEGAKERNEL)
        del attributes[other]
    attributes["instances"] = call.instances(instances)
    if name in call.session.megakernels:
        call.duplicate_label(call.session.megakernels[name].span)
    else:
        call.session.megakernels[name] = MegakernelRule(
            call.label_of_rule, tuple(attributes.items()), call.span, call.text
        )
    archs = attributes.get("archs", ("sm_90a",))
    archs = (archs,) if isinstance(archs, str) else tuple(archs)
    cubins = [
        env.File(f"#{BUILD}/{arch}/megakernels/{name}/{name}.cubin")
        for arch in archs
        if not call.session.options.archs or arch in call.session.options.archs
    ]
    return Declared(str(call.label_of_rule), tuple(cubins))
