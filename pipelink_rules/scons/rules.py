"""What does an SConscript declare?  The rules: each records what was written, and reads nothing.

Attributes follow rules_cuda: name, srcs, hdrs, deps, includes, copts, defines, local_defines,
archs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelink_rules.actions import labels
from pipelink_rules.scons.rule_call import RuleCall
from pipelink_rules.scons.session import (
    BUILD,
    ComponentRule,
    Declared,
    MegakernelRule,
    RuntimeRule,
)


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
    site = RuleCall(env, "KernelComponent", name, others)
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
    site = RuleCall(env, "PrebuiltComponent", name, others)
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
    site = RuleCall(env, "DeviceRuntime", name, others)
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
    site = RuleCall(env, "Megakernel", name, {})
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
    "allow",
)
