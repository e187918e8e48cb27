"""Prebuilt components: sidecars -> variants of a component without its source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError, labels
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import InstanceSpec, MegakernelSpec
from pipelink_rules.model.variant import Variant

_FINISHED = (".contract.yaml", ".fatbin", ".shadow.ptx")
_COMBINATIONS = 64  # of variants to try where the declaration leaves several open


@dataclass(frozen=True)
class Prebuilt:
    """One variant without a source: its sidecar for each target."""

    variant: Variant
    sidecars: tuple[tuple[str, str], ...]  # (target, path), sorted


def finished_files(sidecar: str) -> tuple[str, ...]:
    """Return the files of a prebuilt variant: the sidecar, and object and shadow beside it."""
    path = Path(sidecar)
    stem = path.name.removesuffix(".contract.yaml")
    return tuple(str(path.with_name(stem + suffix)) for suffix in _FINISHED)


def load_prebuilt(sidecars: Sequence[str]) -> tuple[Prebuilt, ...]:
    """The variants of a folder of finished objects, each sidecar checked against its digests."""
    from pipelink_rules.contract.sidecar import load_sidecar

    found: dict[str, tuple[Variant, dict[str, str]]] = {}
    for path in sidecars:
        variant, build = load_sidecar(path)
        _, objects = found.setdefault(variant.digest, (variant, {}))
        objects[dict(build.extra).get("arch", "")] = str(path)  # "" where it is not recorded
    return tuple(
        Prebuilt(
            replace(variant, prebuilt=str(Path(next(iter(objects.values()))).parent)),
            tuple(sorted(objects.items())),
        )
        for _, (variant, objects) in sorted(found.items())
    )


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
    findings = []
    for item in open_:
        if not options[item.name]:
            given = ", ".join(f"{name}={value}" for name, value in item.arguments)
            message = f"no prebuilt variant of `{item.label}` has {given or 'these parameters'}"
            fixes = ("set the parameters of a delivered variant", "or build it from source")
            findings.append(_refused(spec, item, message, given, prebuilt[item.label], fixes))
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
            _refused(
                spec,
                item,
                f"ambiguous prebuilt variant for `{item.name}`",
                "parameters that select one variant",
                options[item.name],
                (f"set the parameters in which they differ in `{item.name}`",),
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


def _refused(
    spec: MegakernelSpec,
    item: InstanceSpec,
    message: str,
    expected: str,
    candidates: Sequence[Prebuilt],
    suggestions: tuple[str, ...],
) -> Diagnostic:
    found = (
        " ".join(f"{name}={value}" for name, value in one.variant.arguments) or "no parameters"
        for one in candidates
    )
    return Diagnostic(
        "PL1310",
        message,
        labels((spec.where("instances", item.name), f"instance of {item.label}")),
        expected=expected,
        found="; ".join(found) or "no variant",
        suggestions=suggestions,
        subject=f"{spec.name}.{item.name}",
    )
