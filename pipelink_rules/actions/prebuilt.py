"""Prebuilt components: sidecars -> variants of a component without its source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import InstanceSpec, MegakernelSpec
from pipelink_rules.model.variant import BuildRecord, Variant

_COMBINATIONS = 64  # of variants to try where the declaration leaves several open


@dataclass(frozen=True)
class Prebuilt:
    """One variant without a source: its sidecar for each target."""

    variant: Variant
    sidecars: tuple[tuple[str, str], ...]  # (target, path), sorted

    @property
    def archs(self) -> tuple[str, ...]:
        """The targets that have an object."""
        return tuple(arch for arch, _ in self.sidecars)

    def sidecar(self, arch: str) -> str:
        """Return the sidecar for a target; KeyError where there is none."""
        return dict(self.sidecars)[arch]


def load_prebuilt(sidecars: Sequence[str]) -> tuple[Prebuilt, ...]:
    """The variants of a folder of finished objects, each sidecar checked against its digests."""
    from pipelink_rules.contract.sidecar import load_sidecar

    found: dict[str, tuple[Variant, dict[str, str]]] = {}
    for path in sidecars:
        variant, build = load_sidecar(path)
        _, objects = found.setdefault(variant.digest, (variant, {}))
        objects[arch_of(build)] = str(path)
    return tuple(
        Prebuilt(replace(variant, prebuilt=str(Path(next(iter(o.values()))).parent)), _sorted(o))
        for _, (variant, o) in sorted(found.items())
    )


def _sorted(objects: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(objects.items()))


def arch_of(build: BuildRecord) -> str:
    """Return the target an object was compiled for; "" where the sidecar does not say."""
    return dict(build.extra).get("arch", "")


def choose(
    spec: MegakernelSpec,
    prebuilt: Mapping[str, Sequence[Prebuilt]],
    contracts: Mapping[str, Contract],
    flags: Mapping[str, Sequence[str]],
) -> tuple[MegakernelSpec, dict[str, Prebuilt]]:
    """Return the spec with the parameters of prebuilt instances, and instance -> variant.

    A variant matches if it has the parameters of the declaration.  If several match, the one that
    binds with the connected instances is used.  Raise PL1310 if none or more than one remains.
    """
    open_ = [item for item in spec.instances if item.label in prebuilt]
    if not open_:
        return spec, {}
    options = {item.name: _fitting(item, prebuilt[item.label]) for item in open_}
    findings = [
        _none_fits(spec, item, prebuilt[item.label]) for item in open_ if not options[item.name]
    ]
    if findings:
        raise PipelinkError(findings)
    combinations = [
        dict(zip(options, combination, strict=True))
        for combination in islice(product(*options.values()), _COMBINATIONS)
    ]
    if len(combinations) > 1:
        combinations = _that_bind(spec, combinations, contracts, flags)
    if len(combinations) != 1:
        raise PipelinkError(
            Diagnostic(
                "PL1310",
                f"ambiguous prebuilt variant for `{item.name}`",
                _places(spec, item),
                expected="parameters that select one variant",
                found="; ".join(_arguments(one.variant) for one in options[item.name]),
                suggestions=(f"set the parameters in which they differ in `{item.name}`",),
                subject=f"{spec.name}.{item.name}",
            )
            for item in open_
            if len(options[item.name]) > 1
        )
    return _filled(spec, combinations[0]), combinations[0]


def _fitting(item: InstanceSpec, candidates: Sequence[Prebuilt]) -> list[Prebuilt]:
    given = dict(item.arguments)
    return [
        one
        for one in candidates
        if all(dict(one.variant.arguments).get(name) == value for name, value in given.items())
    ]


def _that_bind(
    spec: MegakernelSpec,
    combinations: Sequence[dict[str, Prebuilt]],
    contracts: Mapping[str, Contract],
    flags: Mapping[str, Sequence[str]],
) -> list[dict[str, Prebuilt]]:
    from pipelink_rules.program.infer import bind_instances

    kept = []
    for combination in combinations:
        trial = with_prebuilt_contracts(_filled(spec, combination), contracts, combination)
        try:
            bind_instances(*trial, flags)
        except PipelinkError:
            continue
        kept.append(combination)
    return kept


def with_prebuilt_contracts(
    spec: MegakernelSpec, contracts: Mapping[str, Contract], chosen: Mapping[str, Prebuilt]
) -> tuple[MegakernelSpec, dict[str, Contract]]:
    """Return spec and contracts in which every prebuilt instance has a separate label.

    Two instances of one prebuilt component may be different variants.
    """
    result = dict(contracts)
    instances = []
    for item in spec.instances:
        if item.name in chosen:
            variant = chosen[item.name].variant
            item = replace(item, label=f"{item.label}@{variant.digest}")
            result[item.label] = variant.contract
        instances.append(item)
    return replace(spec, instances=tuple(instances)), result


def _filled(spec: MegakernelSpec, chosen: Mapping[str, Prebuilt]) -> MegakernelSpec:
    return replace(
        spec,
        instances=tuple(
            replace(item, arguments=chosen[item.name].variant.arguments)
            if item.name in chosen
            else item
            for item in spec.instances
        ),
    )


def _none_fits(
    spec: MegakernelSpec, item: InstanceSpec, candidates: Sequence[Prebuilt]
) -> Diagnostic:
    given = ", ".join(f"{name}={value}" for name, value in item.arguments)
    return Diagnostic(
        "PL1310",
        f"no prebuilt variant of `{item.label}` has {given or 'these parameters'}",
        _places(spec, item),
        expected=given,
        found="; ".join(_arguments(one.variant) for one in candidates) or "no variant",
        suggestions=("set the parameters of a delivered variant", "or build it from source"),
        subject=f"{spec.name}.{item.name}",
    )


def _places(spec: MegakernelSpec, item: InstanceSpec) -> tuple[Label, ...]:
    where = spec.where("instances", item.name)
    return (Label(where, f"instance of {item.label}"),) if where else ()


def _arguments(variant: Variant) -> str:
    return " ".join(f"{name}={value}" for name, value in variant.arguments) or "no parameters"
